"""The defences that are compared: how each is put around the audited service, and what it is called.

Sizes are relative to the data: decimals and noise to its spread, margins to the median distance of the cases from the boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.auditing.defending.setting import Setting
from overexplain.errors import OverexplainError
from overexplain.geometry.arrays import as_point_or_rows
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Norm, l1, l2, linf
from overexplain.oracles.degraded import NearestRow, Noisy, Overshoot, RandomRadius, Rounded, Suboptimal, SwitchingNorm
from overexplain.oracles.silent import OneSided
from overexplain.oracles.wrapper import Wrapper

NOISE = 0.1
"""Standard deviation of the noise, in the data's unit."""

SLACK = 0.1
"""How much longer than the shortest a random explanation may be."""

MARGIN = 0.2
"""A fixed margin, as a share of the cases' median distance from the boundary."""

RANDOM_MARGIN = 0.5
"""The largest random margin, as a share of the same."""

BLOCK = 1_000_000
"""So many distances between questions and rows are held in memory at once."""

Make = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Defended:
    """A defence of the audited service: what it is called, and the oracle that answers so.

    spec        as given to --degrade; None: nothing, or no change of the answers that --degrade can make
    make        a new oracle, its chance from a generator
    shows_rows  answers are other people's cases
    """

    id: str
    name: str
    short: str
    spec: str | None
    make: Make
    shows_rows: bool = False


def defended(setting: Setting) -> list[Defended]:
    """Every defence that this service can have, none first."""
    return [entry for entry in _all(setting) if _is_possible(entry)]


def _is_possible(entry: Defended) -> bool:
    """False if the service lacks what the defence changes: a distance, a model behind it, …"""
    try:
        entry.make(np.random.default_rng(0))
    except OverexplainError:
        return False
    return True


def _all(setting: Setting) -> Iterator[Defended]:
    unit, service = setting.unit, setting.oracle
    yield Defended("none", "No defence", "none", None, service)
    for decimals in (2, 1):
        # Where the unit is not one, the step that means the same for this data is no number of decimals.
        places = f"{decimals} decimal{'s' * (decimals > 1)}" if unit == 1 else f"steps of {unit * 10.0**-decimals:.3g}"
        spec = f"rounded:{decimals}" if unit == 1 else None
        make = partial(_rounded, setting, decimals)
        yield Defended(f"rounded-{decimals}", f"Rounded to {places}", f"rounded, {places}"[:26], spec, make)
    noise = f"{NOISE * unit:.3g}"
    yield Defended(
        "noisy",
        f"Gaussian noise of {noise}",
        f"noise {noise}",
        f"noisy:{NOISE * unit!r}",
        lambda rng: Noisy(service(rng), NOISE, rng=rng),
    )
    yield Defended(
        "suboptimal",
        f"Random, within {100 * SLACK:.0f} % of the best",
        f"random, within {100 * SLACK:.0f} %",
        f"suboptimal:{SLACK!r}",
        lambda rng: Suboptimal(service(rng), SLACK, rng=rng),
    )
    yield from _margins(setting)
    yield Defended(
        "switching",
        "Distance changes each time",
        "distance changes",
        "switching:l1,l2,linf",
        lambda rng: SwitchingNorm(service(rng), [l1, l2, linf], rng=rng),
    )
    nearest = partial(_nearest, setting)
    yield Defended("nearest-row", "Nearest real case", "nearest real case", "nearest-row", nearest, shows_rows=True)
    denied = "Only the denied get explanations"
    yield Defended("one-sided", denied, "denied only", "one-sided", lambda rng: OneSided(service(rng)))


def _margins(setting: Setting) -> Iterator[Defended]:
    unit, service, terms = setting.unit, setting.oracle, setting.service.mechanism
    fixed, widest = (_three_digits(share * setting.typical) for share in (MARGIN, RANDOM_MARGIN))
    size, range_ = f"{fixed * unit:.3g}", f"0 to {widest * unit:.3g}"
    published = partial(_published, setting, fixed)
    yield Defended("margin", f"Fixed margin of {size}, published", f"margin {size}", None, published)
    # Going on past the boundary is a margin in the distance; a service with a ball of another norm has no such spelling.
    spelled = terms is None or not setting.service.is_plain or terms.robustness in (None, terms.distance)
    yield Defended(
        "secret-margin",
        f"Fixed margin of {size}, secret",
        f"margin {size}, secret",
        f"overshoot:{fixed * unit!r}" if spelled else None,
        partial(_secret, setting, fixed),
    )
    yield Defended(
        "random-margin",
        f"Random margin, {range_}",
        f"margin {range_}",
        f"random-radius:{widest * unit!r}:keyed",
        lambda rng: RandomRadius(service(rng), widest, keyed=True, rng=rng),
    )


def _rounded(setting: Setting, decimals: int, rng: np.random.Generator) -> Any:
    return Rounded(setting.oracle(rng), decimals)


def _with_margin(setting: Setting, radius: float) -> Mechanism:
    """The service's terms with a ball of `radius` in its own distance, or a larger one of the norm it has already."""
    terms = setting.mechanism
    return Mechanism(
        terms.distance, terms.robustness or terms.distance, (terms.radius or 0.0) + radius, terms.tolerance
    )


def _published(setting: Setting, radius: float, _: np.random.Generator) -> Any:
    return setting.model_oracle(_with_margin(setting, radius))


def _secret(setting: Setting, radius: float, rng: np.random.Generator) -> Any:
    if not setting.service.is_plain:
        return Overshoot(setting.oracle(rng), radius)
    terms = _with_margin(setting, radius)
    return setting.model_oracle(terms, Mechanism(terms.distance, terms.robustness, None, terms.tolerance))


def _nearest(setting: Setting, rng: np.random.Generator) -> Any:
    oracle = NearestRow(setting.oracle(rng), setting.rows)
    metric = _METRICS.get(setting.distance)
    return oracle if metric is None else NearestRows(oracle, setting.plane.labels(setting.rows), metric)


_METRICS: dict[Norm, str] = {l1: "cityblock", l2: "euclidean", linf: "chebyshev"}


@final
class NearestRows(Wrapper):
    """`NearestRow` with all questions of a batch answered at once."""

    def __init__(self, oracle: NearestRow, labels: ArrayLike, metric: str) -> None:
        super().__init__(oracle)
        given, self._metric = np.asarray(labels), metric
        self._across = {side: oracle.rows[given != side] for side in (NO, YES)}

    def explain(self, x: ArrayLike) -> Any:
        """The row that explains x."""
        from scipy.spatial.distance import cdist

        points = as_point_or_rows(x, self.dimension)
        rows = np.atleast_2d(points)
        answers = np.full(rows.shape, np.nan)
        labels = np.asarray(self.wrapped.classify(rows.copy()))
        for side, across in self._across.items():
            asked = np.flatnonzero(labels == side)
            for block in np.array_split(asked, 1 + len(asked) * len(across) // BLOCK):
                if len(across) and len(block):
                    answers[block] = across[cdist(rows[block], across, self._metric).argmin(axis=1)]
        if points.ndim == 2:
            return answers
        return None if np.isnan(answers[0]).all() else answers[0]


def _three_digits(value: float) -> float:
    """The value, short enough to be written down in full."""
    return float(f"{value:.3g}")
