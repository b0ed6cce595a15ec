"""`audit`: a model and its cases in, everything its explanations give away out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, Literal

import numpy as np

from overexplain.auditing.audit_report import (
    AuditedService,
    AuditReport,
    Curve,
    Defences,
    Quota,
    Subject,
    UntilKnown,
)
from overexplain.auditing.cases import as_cases
from overexplain.auditing.defending.defences import compare_defences
from overexplain.auditing.determining.curves import checkpoints, determined_curve, first_order
from overexplain.auditing.determining.evidence import Evidence, figures_to_prove
from overexplain.auditing.determining.quota import quota
from overexplain.auditing.findings import with_findings
from overexplain.auditing.gates import judge, parse_gate
from overexplain.auditing.maps import draw_maps
from overexplain.auditing.names import name_of, short_name_of
from overexplain.auditing.span import Span, span_of
from overexplain.auditing.units import Units
from overexplain.auditing.until_known import until_known
from overexplain.auditing.worked_proof import worked_proof
from overexplain.auditing.workers import one_thread, process_pool
from overexplain.auditing.written import provenance
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.answers import written_form
from overexplain.models.coefficients import to_entries
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model
from overexplain.oracles.services import Service

TARGET: Final = 0.5
ORDERS: Final = 20
JUDGED: Final = 500
MAPS: Final = 3
COMPARED: Final = ("l2", "l1", "linf", "labels")
PACKAGES: Final = ("numpy", "scipy", "scikit-learn", "highspy", "clarabel", "numba")

Progress = Callable[[str, int, int], None]
Population = Literal["all", "denied"]


def audit(
    model: Any,
    data: Any,
    services: Iterable[str | Mechanism | Service] = ("l1",),
    *,
    compare: bool = True,
    standardize: bool = False,
    target: float = TARGET,
    fail_on: Sequence[str] = (),
    orders: int = ORDERS,
    judged: int = JUDGED,
    answers: Sequence[int] | None = None,
    defences: bool = True,
    maps: int = MAPS,
    name: str = "the cases given",
    seed: int = 0,
    command: str | None = None,
    left_out: int = 0,
    drawn_from: Units | None = None,
    workers: int | None = None,
    keep: Callable[[Evidence], None] | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """What the explanations of a model give away, for the population in the data; see `AuditReport`.

    model        whatever `load_model` takes
    data         cases: rows in the order of the model's features, or a frame with columns of these names
    services     the ways to answer that are audited, the main one first: lines such as "l1; robust=l2:0.1", Mechanisms, Services
    compare      also show other distances and decisions alone, beside them
    standardize  count distances, margins and decimals in standard deviations of the data
    target       the determined share that a quota is to keep
    fail_on      gates, e.g. "determined@200>60%"; the report says which failed
    orders       random orders of asking; judged: unseen cases judged in each; answers: numbers of answers to look at
    defences     compare ways to defend the main service
    maps         how many pairs of features to draw
    seed         makes everything reproducible; name, command, left_out: said in the report
    drawn_from   `data` is a sample, drawn at random, of data with these units; `left_out` says how many rows there are besides
    workers      processes that share the work; None: this one alone (others start by importing the main module again, so a script
                 that gives a number here needs ``if __name__ == "__main__"``)
    keep         called with what proofs of the chief figures can be made from: answers and cases, which the report does not have
    progress     called with (what is being done, how far, of how many)
    """
    gates = [parse_gate(text) for text in fail_on]
    if not 0 < target < 1:
        raise InvalidInput(f"target is a share between 0 and 1, got {target!r}")
    given = load_model(model)
    rows = as_cases(data, given)
    units = (drawn_from or Units.standard(rows)) if standardize else Units.own(given.dimension)
    audited, cases = units.model(given), units.into(rows)
    listed = _listed(services, compare, audited, cases)
    for terms in (entry.service.mechanism for entry in listed):
        if terms is not None:  # a norm of the user's own is refused by name
            written_form(terms.distance)
            written_form(terms.robustness)
    span = span_of(rows, () if given.domain is None else given.domain.groups)
    work = _Work(audited, units, cases, listed, span, np.random.default_rng(seed), progress or (lambda *_: None))
    numbers = tuple(answers) if answers is not None else checkpoints(given.dimension, len(cases))
    looks = Looks(numbers, orders, judged, seed)
    with one_thread(), process_pool(workers) as pool:
        known = work.known()
        curves = work.curves(looks, pool)
        quotas = tuple(
            quota(curve, target, _requests(known, curve.service)) for curve in curves if curve.population == "all"
        )
        compared = work.defences(quotas[0], pool) if defences and listed[0].service.explains else None
    work.show("drawing maps", 0, 1)
    drawn = draw_maps(given, rows, listed[0].service, units, maps, work.chance())
    report = AuditReport(
        subject=replace(
            _subject(given, rows, name, standardize, left_out),
            cases_drawn=drawn_from is not None and left_out > 0,
            directions=None if span is None else span.dimension,
            directions_from=None if span is None else span.source,
        ),
        services=tuple(entry.described for entry in listed),
        known=known,
        curves=curves,
        headline=_headline(known[0], curves),
        quotas=quotas,
        maps=drawn,
        proof=worked_proof(drawn[0]) if drawn else None,
        defences=compared,
        gates=(),
        findings=(),
        advice=(),
        provenance=provenance(seed, PACKAGES, command),
    )
    report = with_findings(replace(report, gates=tuple(judge(gate, report) for gate in gates)))
    if keep is not None:
        for evidence in work.evidence(report, looks):
            keep(evidence)
    return report


@dataclass(frozen=True)
class Looks:
    """How often, at how many cases and after how many answers it is looked what is determined; `seed`: in which orders."""

    answers: tuple[int, ...]
    orders: int
    judged: int
    seed: int

    def options(self, population: Population) -> dict[str, Any]:
        """The arguments of `determined_curve` and `first_order`; every service meets the same cases in the same orders."""
        return {
            "answers": self.answers,
            "orders": self.orders,
            "judged": self.judged,
            "rng": self.seed + (population == "denied"),
        }


@dataclass(frozen=True)
class Listed:
    """A service and how the report calls it."""

    service: Service
    described: AuditedService


@dataclass(frozen=True, eq=False)
class _Work:
    """The parts that take time, each with chance of its own: leaving one out does not change the others."""

    model: LinearModel
    units: Units
    cases: FloatArray
    listed: Sequence[Listed]
    span: Span | None
    rng: np.random.Generator
    show: Callable[..., None]

    def chance(self) -> np.random.Generator:
        return self.rng.spawn(1)[0]

    def known(self) -> tuple[UntilKnown, ...]:
        found = []
        for i, (entry, own) in enumerate(zip(self.listed, self.chance().spawn(len(self.listed)), strict=True)):
            self.show("rebuilding the model", i, len(self.listed))
            row = until_known(self.model, self.cases, entry.service, entry.described.id, rng=own)
            found.append(replace(row, valid=self._valid(entry.service, row)))
        return tuple(found)

    def _valid(self, service: Service, row: UntilKnown) -> int | None:
        """The answers that valid cases need, if they are fewer than those for the whole model."""
        if self.span is None or row.answers is None:
            return None
        needed = self.span.answers(service, self.model.hyperplane, self.units.scale)
        return needed if needed is not None and needed < row.answers else None

    def curves(self, looks: Looks, pool: Executor | None) -> tuple[Curve, ...]:
        jobs: list[tuple[Listed, Population]] = [(entry, "all") for entry in self.listed]
        if self.listed[0].service.explains and (self.model.hyperplane.labels(self.cases) == NO).any():
            jobs.append((self.listed[0], "denied"))
        found = []
        for i, (entry, population) in enumerate(jobs):
            self.show("counting what is determined", i, len(jobs))
            found.append(
                determined_curve(
                    self.model, self.cases, entry.service, entry.described.id, population=population, workers=pool,
                    **looks.options(population),
                )
            )  # fmt: skip
        return _with_decisions(found, {entry.described.id for entry in self.listed if not entry.service.explains})

    def evidence(self, report: AuditReport, looks: Looks) -> Iterator[Evidence]:
        """The first order, at every figure to prove."""
        services = {entry.described.id: entry.service for entry in self.listed}
        for id, figures in groupby(figures_to_prove(report), key=lambda figure: figure[0]):
            order = first_order(self.model, self.cases, services[id], **looks.options("all"))
            curve = report.curve_of(id)
            assert curve is not None
            for _, answers in figures:
                share = curve.first[curve.answers.index(answers)]
                yield Evidence(id, answers, order.log(answers), order.judged, share, self.units)

    def defences(self, allowed: Quota, pool: Executor | None) -> Defences:
        self.show("comparing defences", 0, 1)
        entry = self.listed[0]
        return compare_defences(
            self.model, self.cases, entry.service, entry.described.id, rng=self.chance(), pool=pool,
            quota=None if allowed.is_unsettled else allowed,
            progress=lambda done, total: self.show("comparing defences", done, total),
        )  # fmt: skip


def _listed(
    services: Iterable[str | Mechanism | Service], compare: bool, model: LinearModel, cases: FloatArray
) -> list[Listed]:
    if isinstance(services, str | Mechanism | Service):
        services = [services]
    asked = [_service(entry) for entry in services]
    if not asked:
        raise InvalidInput('name at least one service to audit, e.g. "l1"')
    specs = [service.spec for service in asked]
    others = [Service.parse(text) for text in COMPARED if compare and text not in specs]
    entries = []
    for number, service in enumerate([*asked, *others], start=1):
        role: Literal["audited", "also audited", "comparison"] = "comparison"
        if number <= len(asked):
            role = "audited" if number == 1 else "also audited"
        described = AuditedService(
            id=f"s{number}",
            name=service.name or name_of(service),
            short=short_name_of(service),
            spec=service.spec,
            role=role,
            explains=service.explains,
            published=_told(service, model, cases),
        )
        entries.append(Listed(service, described))
    return entries


def _told(service: Service, model: LinearModel, cases: FloatArray) -> dict[str, Any] | None:
    """The terms that the service tells the asker; None: none."""
    terms: Mechanism | None = service.oracle(model, cases, 0).mechanism
    return None if terms is None else terms.to_dict()


def _service(entry: str | Mechanism | Service) -> Service:
    if isinstance(entry, Service):
        return entry
    return Service(entry) if isinstance(entry, Mechanism) else Service.parse(entry)


def _with_decisions(curves: Sequence[Curve], plain: Collection[str]) -> tuple[Curve, ...]:
    """The curves, those of explained answers at least as high as that of decisions alone, which come with them.

    Where a limit left explained answers unsettled, their decisions may have been settled. All services met the same cases in the
    same orders, so it holds for every order, and for whatever is counted over them. What proofs are written of (`first`) stays.
    """
    lower = next((c for c in curves if c.service in plain and c.population == "all"), None)
    if lower is None:
        return tuple(curves)
    return tuple(
        replace(
            c,
            median=tuple(map(max, c.median, lower.median)),
            low=tuple(map(max, c.low, lower.low)),
            high=tuple(map(max, c.high, lower.high)),
            highest=tuple(map(max, c.highest, lower.highest)),
        )
        if c.undecided and c.population == "all" and c.answers == lower.answers
        else c
        for c in curves
    )


def _requests(known: Sequence[UntilKnown], id: str) -> int | None:
    return next((row.answers for row in known if row.service == id), None)


def _headline(known: UntilKnown, curves: Sequence[Curve]) -> int:
    """Half of the answers that give the model away, or the nearest number that was looked at."""
    half = max(1, -(-(known.answers or 1) // 2))
    numbers = curves[0].answers
    return min(numbers, key=lambda n: (abs(n - half), n))


def _subject(model: LinearModel, rows: FloatArray, name: str, standardize: bool, left_out: int) -> Subject:
    written = json.dumps(to_entries(model), indent=2, allow_nan=False) + "\n"
    return Subject(
        model=model.source or "linear model",
        features=model.features or tuple(f"x{i}" for i in range(model.dimension)),
        classes=model.classes,
        threshold=model.threshold,
        data=name,
        cases=len(rows),
        cases_left_out=left_out,
        yes_share=float(np.mean(model.hyperplane.labels(rows) == YES)),
        one_hot=sum(column.categories is not None for column in model.columns or ()),
        units="standard deviations" if standardize else "as given",
        model_sha256=hashlib.sha256(written.encode()).hexdigest(),
        data_sha256=hashlib.sha256(np.ascontiguousarray(rows, dtype="<f8").tobytes()).hexdigest(),
    )
