"""What holds for every attack: the signature, what is counted, where is asked, what is refused."""

import inspect

import numpy as np
import pytest

from overexplain.baselines.attacks import ATTACKS, baseline
from overexplain.errors import BudgetExhausted, InvalidInput, NoExplanation
from overexplain.extraction.extract import extract
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.scores import Scored
from overexplain.oracles.wrappers import Budgeted, LabelsOnly

SECRET = Hyperplane([1.0, -2.0, 0.5, 0.25], 0.4)
OPEN_ENDED = [name for name in ATTACKS if name != "equations"]
every_attack = pytest.mark.parametrize("name", ATTACKS)


def service(mechanism="l2"):
    inner = ModelOracle(SECRET, mechanism)
    inner.score = Scored(SECRET).score  # so that it is offered all the way down
    return inner


@every_attack
def test_the_signature_is_that_of_extract_without_a_strategy(name):
    ours = inspect.signature(extract).parameters
    theirs = inspect.signature(ATTACKS[name].run).parameters
    shared = [each for each in ours if each not in ("strategy", "watch", "confirm")]
    assert list(theirs)[: len(shared)] == shared
    assert all(theirs[each].default == ours[each].default for each in shared)
    assert all(each.default is not inspect.Parameter.empty for each in list(theirs.values())[1:])
    assert ATTACKS[name].name == name
    assert set(ATTACKS[name].needs) <= {"scores", "labels", "explanations"}
    assert baseline(name) is ATTACKS[name]


def test_unknown_names_are_refused():
    with pytest.raises(InvalidInput, match="unknown attack 'magic'; known are equations, retraining"):
        baseline("magic")


@every_attack
def test_spent_is_what_the_service_counted_and_the_log_holds_it(name, counted):
    oracle = counted(service())
    found = ATTACKS[name].run(oracle, bounds=(-1.0, 1.0), budget=61, rng=0)
    assert (found.spent.labels, found.spent.explanations) == (oracle.labels, oracle.explanations)
    assert found.spent.requests == (5 if name == "equations" else 61) == len(found.log)
    assert (found.error_bound, found.offset_bound, found.exact, found.oriented) == (None, None, False, True)
    assert len(found.unidentified) == 0
    assert found.hyperplane.angle_to(SECRET) < 0.2


@every_attack
def test_the_seed_decides_everything(name):
    one, same, other = (
        ATTACKS[name].run(service(), bounds=(-1.0, 1.0), budget=60, rng=rng) for rng in (7, np.random.default_rng(7), 8)
    )
    assert one.hyperplane == same.hyperplane
    assert one.log == same.log
    assert one.log != other.log


@every_attack
def test_nothing_is_kept_without_record(name):
    found = ATTACKS[name].run(service(), bounds=(-1.0, 1.0), budget=60, rng=0, record=False)
    assert found.log is None
    assert found.hyperplane == ATTACKS[name].run(service(), bounds=(-1.0, 1.0), budget=60, rng=0).hyperplane


@every_attack
@pytest.mark.parametrize(
    "bounds", [([0.0, -1.0, 2.0, -3.0], [4.0, 1.0, 2.5, 9.0]), 1.5, ([0.0, -np.inf, -9.0, -9.0], np.inf)]
)
def test_questions_stay_inside_the_bounds(name, bounds, counted):
    oracle = counted(service("l1"))
    start = [1.0, 0.0, 2.2, 1.0]
    ATTACKS[name].run(oracle, bounds=bounds, start=start, budget=60, rng=0)
    asked = oracle.questions
    if isinstance(bounds, float):
        assert np.linalg.norm(asked - start, axis=1).max() <= bounds
    else:
        assert (asked >= bounds[0]).all()
        assert (asked <= bounds[1]).all()


@every_attack
def test_a_plane_far_from_the_start_is_found_without_bounds(name):
    far = Hyperplane(SECRET.normal, 300.0)
    inner = ModelOracle(far, "l2")
    inner.score = Scored(far).score
    found = ATTACKS[name].run(inner, budget=300, rng=0)
    assert found.hyperplane.angle_to(far) < 0.1
    assert abs(found.hyperplane.offset * np.linalg.norm(far.normal) - 300.0) < 40.0


@every_attack
@pytest.mark.parametrize("distance", ["l1", "linf"])
def test_normals_have_length_one_in_the_published_distance(name, distance):
    found = ATTACKS[name].run(service(distance), bounds=(-1.0, 1.0), budget=80, rng=0)
    assert np.isclose(float(Mechanism(distance).distance.dual(found.hyperplane.normal)), 1.0)


@every_attack
def test_no_budget_no_question(name, counted):
    oracle = counted(service())
    with pytest.raises(BudgetExhausted) as refusal:
        ATTACKS[name].run(oracle, budget=0)
    assert oracle.labels + oracle.explanations == 0
    assert len(refusal.value.log) == 0


@pytest.mark.parametrize("name", OPEN_ENDED)
def test_a_service_that_stops_answering_leaves_its_answers_in_the_error(name):
    with pytest.raises(BudgetExhausted) as refusal:
        ATTACKS[name].run(Budgeted(service(), 25), bounds=(-1.0, 1.0), budget=60, rng=0)
    assert len(refusal.value.log) == 25


@pytest.mark.parametrize("name", OPEN_ENDED)
def test_what_a_service_lacks_is_said_before_anything_is_asked(name, counted):
    needs = ATTACKS[name].needs
    if "explanations" in needs:
        with pytest.raises(NoExplanation, match="this service gives none"):
            ATTACKS[name].run(LabelsOnly(service()))
    blind = service()
    blind.classify = None
    if name == "averaging":
        assert not ATTACKS[name].run(blind, bounds=(-1.0, 1.0), budget=10, rng=0).oriented
    else:
        with pytest.raises(InvalidInput, match="labels, and this service gives none"):
            ATTACKS[name].run(blind)


@every_attack
def test_bad_arguments_are_refused(name):
    for wrong, said in (
        ({"accuracy": 0.0}, "accuracy must be positive"),
        ({"accuracy": np.nan}, "accuracy has nan"),
        ({"bounds": (1.0, -1.0)}, "low < high"),
        ({"bounds": (-1.0, 1.0), "start": [5.0] * 4}, "outside the bounds"),
        ({"budget": -1}, "budget must be"),
        ({"rng": "seed"}, "rng must be"),
    ):
        with pytest.raises(InvalidInput, match=said):
            ATTACKS[name].run(service(), **wrong)


@every_attack
def test_one_hot_groups_are_asked_as_they_must_be_and_hide_a_direction(name):
    inner = service()
    inner.domain = Domain(4, low=[0, 0, -3, -3], high=[1, 1, 3, 3], groups=[[0, 1]])
    found = ATTACKS[name].run(inner, budget=90, rng=0)
    # Explanations leave the groups; DualCF must not ask about those.
    for x in found.log.points:
        inner.domain.refuse(x)
    if "explanations" in ATTACKS[name].needs:  # these explanations leave the group, and so show all weights
        assert len(found.unidentified) == 0
    else:
        assert np.allclose(found.unidentified, [[2**-0.5, 2**-0.5, 0, 0]])
    inputs = inner.domain.sample(0, 1000)
    assert (found.hyperplane.labels(inputs) == SECRET.labels(inputs)).mean() > 0.9
