"""`audit_multiclass`: how many explanations give a model of several classes away, carried out against the model itself."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from overexplain.auditing.cases import as_cases
from overexplain.auditing.multiclass_report import (
    ClassesService,
    ClassesSubject,
    Copies,
    LearningCurve,
    MulticlassReport,
)
from overexplain.auditing.names import name_of, short_name_of
from overexplain.auditing.units import Units
from overexplain.auditing.workers import one_thread
from overexplain.auditing.written import provenance
from overexplain.errors import InvalidInput, OverexplainError, UnsupportedNorm
from overexplain.extraction.multiclass.extract import extract_multiclass
from overexplain.extraction.multiclass.result import MulticlassExtraction
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.models.load import load_multiclass
from overexplain.models.multiclass import MulticlassModel, to_entries
from overexplain.oracles.multiclass import ArgmaxOracle
from overexplain.oracles.services import Service

BOX_POINTS: Final = 2000
COMPARED: Final = ("l2", "l1", "linf")
PACKAGES: Final = ("numpy", "scipy", "scikit-learn", "highspy")
INVERSE_PENALTY: Final = 1e3
"""Of the trained copy: answers are exact, so that it need not be held back much."""

MOST_STEPS: Final = 300

Copy = Callable[[FloatArray], IntArray]


def audit_multiclass(
    model: Any,
    data: Any,
    services: Iterable[str | Mechanism | Service] = ("l2",),
    *,
    compare: bool = True,
    standardize: bool = False,
    name: str = "the cases given",
    seed: int = 0,
    command: str | None = None,
    left_out: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> MulticlassReport:
    """What the explanations of a model of several classes give away; see `MulticlassReport`.

    model        whatever `load_multiclass` takes
    data         cases: rows in the order of the model's features, or a frame with columns of these names
    services     distances under which "what would make it class t?" is answered, the main one first: "l2", "l1", a Mechanism, …
    compare      also show the other distances of l2, l1, linf
    standardize  count distances in standard deviations of the data
    seed         makes everything reproducible; name, command, left_out: said in the report
    progress     called with (what is being done, how far, of how many)

    >>> rng = np.random.default_rng(0)
    >>> secret = ArgmaxModel(rng.normal(size=(4, 3)), rng.normal(size=4))
    >>> report = audit_multiclass(secret, rng.normal(size=(100, 3)), compare=False)
    >>> report.audited.minimum, report.audited.cases.rebuilt
    (4, 1.0)
    """
    given = load_multiclass(model)
    chosen = listed(given.argmax, services, compare)
    rows = as_cases(data, given)
    units = Units.standard(rows) if standardize else Units.own(given.dimension)
    secret, cases = _in_units(given.argmax, units), units.into(rows)
    names = given.classes or tuple(str(k) for k in range(secret.classes))
    box = np.random.default_rng(seed).uniform(cases.min(axis=0), cases.max(axis=0), (BOX_POINTS, given.dimension))
    with one_thread():
        attacks = []
        for i, (_, service) in enumerate(chosen):
            if progress is not None:
                progress("rebuilding the model", i, len(chosen))
            attacks.append(_attack(secret, service, cases, seed))
        curve = _curve(secret, {attack.asked for attack in attacks}, cases, box, seed)
    return MulticlassReport(
        subject=_subject(given, names, rows, name, standardize, left_out),
        services=tuple(
            _described(secret, names, service, role, f"s{i}", attack, curve, (cases, box))
            for i, ((role, service), attack) in enumerate(zip(chosen, attacks, strict=True), start=1)
        ),
        curve=curve,
        provenance=provenance(seed, PACKAGES, command),
    )


Role = Literal["audited", "also audited", "comparison"]


@dataclass(frozen=True, eq=False)
class _Attack:
    """How one attack went: what it found, or why it failed, and how many answers it was given."""

    found: MulticlassExtraction | None
    failed: str | None
    asked: int


def _attack(secret: ArgmaxModel, service: Service, cases: FloatArray, seed: int) -> _Attack:
    assert service.mechanism is not None  # _service refuses others
    try:
        found = extract_multiclass(ArgmaxOracle(secret, service.mechanism), examples=cases, rng=seed, record=False)
    except UnsupportedNorm:  # nothing was tried: that says nothing about the model
        raise
    except OverexplainError as error:
        return _Attack(None, str(error), len(error.log or ()))
    return _Attack(found, None, found.spent.requests)


def _described(
    secret: ArgmaxModel,
    names: Sequence[str],
    service: Service,
    role: Role,
    id: str,
    attack: _Attack,
    curve: LearningCurve,
    points: tuple[FloatArray, FloatArray],
) -> ClassesService:
    assert service.mechanism is not None
    found = attack.found
    reached = secret.classes - (0 if found is None else len(found.unreached))
    minimum, minimum_of = _minimum(service.mechanism, reached, secret.dimension)
    at = curve.answers.index(max(1, attack.asked))
    cases, box = (
        _copies(secret, found, shares[at], rows) for shares, rows in zip((curve.cases, curve.box), points, strict=True)
    )
    return ClassesService(
        id=id,
        name=service.name or name_of(service),
        short=short_name_of(service),
        spec=service.spec,
        role=role,
        asked=attack.asked,
        explanations=None if found is None else found.spent.explanations,
        labels=None if found is None else found.spent.labels,
        minimum=minimum,
        minimum_of=minimum_of,
        error=None if found is None or found.unreached else found.model.distance_to(secret),
        error_bound=None if found is None else found.error_bound,
        unreached=() if found is None else tuple(names[k] for k in found.unreached),
        method=None if found is None else found.method,
        assumptions=() if found is None else found.assumptions,
        failed=attack.failed,
        cases=cases,
        box=box,
    )


def _minimum(
    mechanism: Mechanism, classes: int, dimension: int
) -> tuple[int, Literal["any attack", "boundary points alone"]]:
    """The fewest explanations: a cycle of facets needs one for each class; boundary points are one equation each."""
    if mechanism.distance is not None and mechanism.distance.is_smooth:
        return classes if classes > 2 else 1, "any attack"
    return (classes - 1) * (dimension + 1) - 1, "boundary points alone"


def _copies(secret: ArgmaxModel, result: MulticlassExtraction | None, trained: float, points: FloatArray) -> Copies:
    truth = secret.labels(points)
    return Copies(
        rebuilt=None if result is None else float(np.mean(result.model.labels(points) == truth)),
        trained=trained,
        floor=float(np.bincount(truth).max() / len(truth)),
        points=len(points),
    )


def _curve(secret: ArgmaxModel, asked: set[int], cases: FloatArray, box: FloatArray, seed: int) -> LearningCurve:
    """What training on decisions about cases in random order, then about random points, learns."""
    most = max(1, *asked)
    numbers = sorted({n * 10**k for k in range(7) for n in (1, 2, 5) if n * 10**k < most} | {max(1, n) for n in asked})
    rng = np.random.default_rng(seed)
    beyond = rng.uniform(cases.min(axis=0), cases.max(axis=0), (max(0, most - len(cases)), cases.shape[1]))
    questions = np.vstack([rng.permutation(cases), beyond])
    answers = secret.labels(questions)
    truths = [(points, secret.labels(points)) for points in (cases, box)]
    shares = []
    for count in numbers:
        copy = trained_copy(questions[:count], answers[:count])
        shares.append([float(np.mean(copy(points) == truth)) for points, truth in truths])
    on_cases, in_box = zip(*shares, strict=True)
    return LearningCurve(tuple(numbers), tuple(on_cases), tuple(in_box))


def trained_copy(points: FloatArray, labels: IntArray) -> Copy:
    """Softmax regression trained on decisions.

    >>> trained_copy(np.array([[0.0], [3.0]]), np.array([2, 1]))(np.array([[-1.0], [4.0]])).tolist()
    [2, 1]
    """
    if len(np.unique(labels)) < 2:
        return lambda rows: np.full(len(rows), labels[0], dtype=np.int64)
    from sklearn.linear_model import LogisticRegression

    units = Units.standard(points)
    classifier = LogisticRegression(C=INVERSE_PENALTY, max_iter=MOST_STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # separable answers: it need not converge
        classifier.fit(units.into(points), labels)
    return lambda rows: np.asarray(classifier.predict(units.into(rows)), dtype=np.int64)


def _in_units(model: ArgmaxModel, units: Units) -> ArgmaxModel:
    """The same classifier of cases in the audited units."""
    return ArgmaxModel(model.weights * units.scale, model.intercepts + model.weights @ units.centre)


def listed(
    model: ArgmaxModel, services: Iterable[str | Mechanism | Service] = ("l2",), compare: bool = True
) -> list[tuple[Role, Service]]:
    """The services that an audit of `model` looks at, the main one first; what cannot be audited is refused.

    >>> [(role, service.spec) for role, service in listed(ArgmaxModel([[1.0], [0.0], [-1.0]], [0.0, 0.5, 0.0]), "l1")]
    [('audited', 'l1'), ('comparison', 'l2'), ('comparison', 'linf')]
    """
    if isinstance(services, str | Mechanism | Service):
        services = [services]
    asked = [_service(entry, model) for entry in services]
    if not asked:
        raise InvalidInput('name at least one service to audit, e.g. "l2"')
    chosen: list[tuple[Role, Service]] = [("audited" if i == 0 else "also audited", s) for i, s in enumerate(asked)]
    known = {service.spec for service in asked}
    return chosen + [("comparison", Service.parse(text)) for text in COMPARED if compare and text not in known]


def _service(entry: str | Mechanism | Service, model: ArgmaxModel) -> Service:
    service = entry
    if not isinstance(service, Service):
        service = Service(service) if isinstance(service, Mechanism) else Service.parse(service)
    terms = service.mechanism
    if not service.is_plain or service.published is not None or terms is None or not terms.is_plain or terms.slack != 0:
        raise InvalidInput(
            f'a model of several classes is audited under exact explanations in a known distance, e.g. "l2" or "l1"; '
            f"not under {service.spec!r}"
        )
    try:
        ArgmaxOracle(model, terms)
    except UnsupportedNorm as error:
        raise InvalidInput(f"the service {service.spec!r} cannot be audited: {error}") from None
    return service


def _subject(
    model: MulticlassModel, names: Sequence[str], rows: FloatArray, name: str, standardize: bool, left_out: int
) -> ClassesSubject:
    labels = model.argmax.labels(rows)
    written = json.dumps(to_entries(model), indent=2, allow_nan=False) + "\n"
    return ClassesSubject(
        model=model.source or "linear model",
        features=tuple(model.features or (f"x{i}" for i in range(model.dimension))),
        classes=tuple(names),
        shares=tuple(float(share) for share in np.bincount(labels, minlength=len(names)) / len(labels)),
        data=name,
        cases=len(rows),
        cases_left_out=left_out,
        units="standard deviations" if standardize else "as given",
        model_sha256=hashlib.sha256(written.encode()).hexdigest(),
        data_sha256=hashlib.sha256(np.ascontiguousarray(rows, dtype="<f8").tobytes()).hexdigest(),
    )
