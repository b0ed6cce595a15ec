"""The parts of the sample report, each made so that it fits the others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from audit_sample_maps import sample_maps, worked_proof
from overexplain.auditing.audit_report import (
    AuditedService,
    AuditReport,
    Cost,
    Curve,
    Defence,
    Defences,
    Gate,
    Quota,
    Subject,
    UntilKnown,
)
from overexplain.auditing.written import Provenance

ANSWERS = (*range(1, 31), 35, 40, 50, 75, 100, 150, 200, 300, 400)
JUDGED = 169


@cache
def whole_report() -> AuditReport:
    curves = _curves()
    maps = sample_maps()
    return AuditReport(
        subject=Subject(
            model="LogisticRegression",
            features=tuple(f"{part} {what}" for part in ("mean", "error", "worst") for what in _MEASURES),
            classes=("malignant", "benign"),
            threshold=0.5,
            data="breast cancer demonstration data",
            cases=569,
            cases_left_out=0,
            yes_share=0.629,
            units="standard deviations",
            model_sha256="5f" * 32,
            data_sha256="a7" * 32,
        ),
        services=_services(),
        known=(
            known_after("s1", 30, minimum=30, paper=31),
            known_after("s2", 1, minimum=1, paper=1),
            known_after("s3", 30, minimum=30, paper=31),
            replace(
                known_after("s4", 34),
                computed=None,
                labels=301,
                low=328,
                high=341,
                runs=5,
                method="warm",
                error_bound=9e-7,
            ),
            never_known("s5", "no way was found within 3,000 requests"),
            known_by_decisions("s6", 647, minimum=582, paper=905),
        ),
        curves=curves,
        headline=13,
        quotas=tuple(quota_of(curve, 0.6) for curve in curves if curve.population == "all"),
        maps=maps,
        proof=worked_proof(maps[0]),
        defences=all_defences(),
        gates=(Gate("determined@200>60%", False, "s1", curves[0].highest[ANSWERS.index(200)], 0.6),),
        findings=(),
        advice=(),
        provenance=Provenance(
            overexplain="0.6.0",
            python="3.13.5",
            packages={"numpy": "2.4.6", "scipy": "1.17.1", "scikit-learn": "1.9.1"},
            seed=0,
            command='overexplain audit scorecard.json --data cases.csv --service l1 --fail-on "determined@200>60%"',
        ),
    )


_MEASURES = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry",
    "fractal dimension",
)  # fmt: skip


def _services() -> tuple[AuditedService, ...]:
    rows = (
        ("Sum of changes (ℓ1)", "sum of changes (l1)", "l1", {"distance": "l1", "slack": 0.0}),
        ("Straight line (ℓ2)", "straight line (l2)", "l2", {"distance": "l2", "slack": 0.0}),
        ("Largest change (ℓ∞)", "largest change (linf)", "linf", {"distance": "linf", "slack": 0.0}),
        (
            "Sum of changes (ℓ1), rounded to one decimal",
            "l1, rounded to one decimal",
            "l1; round=1",
            {"distance": "l1"},
        ),
        ("Nearest real case shown", "nearest real case shown", "nearest", {"distance": "l1", "slack": None}),
        ("Decisions only", "decisions only", "labels", None),
    )
    return tuple(
        AuditedService(f"s{i}", name, short, spec, "audited" if i == 1 else "comparison", spec != "labels", published)
        for i, (name, short, spec, published) in enumerate(rows, 1)
    )


def known_after(id: str, count: int, minimum: int | None = None, paper: int | None = None) -> UntilKnown:
    return UntilKnown(
        service=id,
        computed=count,
        explanations=count,
        labels=0,
        low=count,
        high=count,
        runs=1,
        minimum=minimum,
        minimum_is=None if minimum is None else "theorem",
        paper_explanations=paper,
        paper_labels=None if paper is None else 0,
        accuracy=None,
        method="Theorem B",
        angle_error=2.1e-15,
        error_bound=4.0e-13,
        agreement=1.0,
        constant_agreement=0.629,
        failed=None,
    )


def known_by_decisions(id: str, count: int, minimum: int, paper: int) -> UntilKnown:
    return replace(
        known_after(id, count, minimum, paper),
        explanations=0,
        labels=count,
        low=count - 6,
        high=count + 9,
        runs=5,
        minimum_is="information bound",
        paper_explanations=0,
        paper_labels=paper,
        accuracy=1e-6,
        method="labels",
        angle_error=3.1e-7,
        error_bound=9.8e-7,
    )


def never_known(id: str, why: str) -> UntilKnown:
    nothing = dict.fromkeys(
        (
            "computed",
            "explanations",
            "labels",
            "low",
            "high",
            "minimum",
            "minimum_is",
            "paper_explanations",
            "paper_labels",
        )
    )
    nothing |= dict.fromkeys(("accuracy", "angle_error", "error_bound", "agreement", "constant_agreement"))
    return replace(known_after(id, 1), **nothing, runs=5, method="none", failed=why)


def _curves() -> tuple[Curve, ...]:
    one = (1.0,) * len(ANSWERS)
    l2 = replace(curve_of("s2", 1.0, 1.0), median=one, low=one, high=one, highest=one, first=one, known_at=1)
    shapes = {"s1": (9.6, 3.6), "s3": (8.2, 3.8), "s4": (10.4, 3.1), "s5": (760.0, 3.4), "s6": (790.0, 4.0)}
    made = {id: curve_of(id, half, steep) for id, (half, steep) in shapes.items()} | {"s2": l2}
    letters = tuple(n for n in ANSWERS if n <= 140)
    pooled = replace(curve_of("s1", 11.0, 3.4, letters), population="denied", askable=140)
    return (*(made[f"s{i}"] for i in range(1, 7)), pooled)


def curve_of(id: str, half: float, steep: float, answers: tuple[int, ...] = ANSWERS) -> Curve:
    """Shares that pass one half after `half` answers, in whole cases."""
    count = np.array(answers, dtype=float)

    def share(ahead: float) -> tuple[float, ...]:
        rising = np.clip(1.02 / (1 + (half / (ahead * count)) ** steep) - 0.004, 0, 1)
        return tuple(float(x) for x in np.round(rising * JUDGED) / JUDGED)

    median = share(1.0)
    known = [n for n, value in zip(answers, median, strict=True) if value == 1]
    return Curve(
        service=id,
        population="all",
        answers=answers,
        median=median,
        low=share(0.93),
        high=share(1.06),
        highest=share(1.1),
        first=share(0.99),
        orders=20,
        judged=JUDGED,
        askable=400,
        known_at=known[0] if known else None,
        wrong=0,
        undecided=0.0,
    )


def quota_of(curve: Curve, target: float) -> Quota:
    within = sum(share <= target for share in curve.highest)
    return Quota(
        service=curve.service,
        target=target,
        answers=curve.answers[within - 1] if within else 0,
        is_limit=within == len(curve.answers),
        highest=curve.highest[within - 1] if within else 0.0,
        beyond=None if within == len(curve.answers) else curve.highest[within],
        orders=curve.orders,
        adaptive={"s1": 30, "s2": 1, "s3": 30, "s4": 335, "s6": 647}.get(curve.service),
    )


def all_defences() -> Defences:
    def cost(count: int | None, labels: int = 0, error: float = 8e-4, certified: bool = True) -> Cost:
        if count is None:
            return Cost(None, None, None, False, error)
        return Cost(count - labels, labels, "decisions alone" if labels else "theorem", certified, error)

    rows = (
        ("none", "No defence", "none", None, cost(30), cost(30), 1.0, 0.0),
        (
            "switching",
            "Distance changes each time",
            "distance changes",
            "switch=l1,l2,linf",
            cost(30),
            cost(30),
            1.63,
            0.0,
        ),
        ("secret", "Fixed secret margin of 0.3", "secret margin 0.3", "radius=0.3", cost(31), cost(31), 1.16, 0.0),
        ("rounded-2", "Rounded to 2 decimals", "rounded to 2 decimals", "round=2", cost(42), cost(42), 1.0, 0.517),
        (
            "noisy",
            "Random, within 10 % of the best",
            "random, within 10 %",
            "noise=0.1",
            cost(110),
            cost(110),
            1.07,
            0.0,
        ),
        (
            "outward",
            "Rounded outward to 1 decimal",
            "outward to 1 decimal",
            "outward=1",
            cost(790),
            cost(330, 330),
            1.01,
            0.0,
        ),
        (
            "rounded-1",
            "Rounded to 1 decimal",
            "rounded to 1 decimal",
            "round=1",
            cost(1500),
            cost(321, 300),
            1.0,
            0.481,
        ),
        (
            "random",
            "Random margin, 0 to 0.5",
            "random margin 0 to 0.5",
            "radius=0..0.5",
            cost(None),
            cost(352, 352),
            1.13,
            0.0,
        ),
        (
            "nearest",
            "Nearest real case",
            "nearest real case",
            "nearest",
            cost(None, error=0.02),
            cost(352, 352),
            3.18,
            0.0,
        ),
    )
    return Defences(
        service="s1",
        accuracy=1e-3,
        limit=3000,
        runs=5,
        cases=569,
        rows=tuple(Defence(*row, unanswered=0.0, shows_rows=row[0] == "nearest") for row in rows),
    )
