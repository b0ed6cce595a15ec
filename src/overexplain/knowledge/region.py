"""The fast side of knowledge: facts in, codes for millions of points out, each resting on a bound that holds in float64."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import UNIT_ROUNDOFF
from overexplain.knowledge.cone import Cone, build_cone
from overexplain.knowledge.core import THIN
from overexplain.knowledge.facts import Facts, Flips, OnPlane, OnSide, Steepest
from overexplain.knowledge.gauge.fit import Gauge, NoInterior, fit_gauge
from overexplain.knowledge.gauge.view import View
from overexplain.knowledge.program import column_exponents
from overexplain.knowledge.rational_norms import exponent_and_weights, is_flat
from overexplain.knowledge.shells import Directions, touching_steps
from overexplain.knowledge.smooth import OPEN, smooth_codes, smooth_facts

UNKNOWN = 0
WIDE = 2.0
"""How much larger than its reach a cone is searched when the charge for tolerances is worked out."""


@final
class Region:
    """Codes of points: +1, −1, 0 (two consistent models disagree) or OPEN (3): to be settled exactly.

    `trusted`: a 0 is proved. Otherwise it only says that the linear rows leave the point open.
    """

    def __init__(self, facts: Facts, touching: Directions | None = None) -> None:
        whole, facts = facts, _measured(facts)
        self.facts = facts
        vectors = [
            facts.queries(),
            *(np.append(f.point, -1.0)[None, :] for f in facts.explained if hasattr(f, "point")),
        ]
        self.exponents = column_exponents(np.vstack(vectors))
        self._largest = float(np.ldexp(1.0, 400 - int(self.exponents[:-1].max())))
        self.smooth = [*smooth_facts(facts), *touching_steps(facts)]
        self.cone: Cone = build_cone(facts, -self.exponents, touching)
        if facts is not whole:
            self.cone = replace(self.cone, is_complete=False)
        self.gauge: Gauge | None = None
        self.view: View | None = None
        self._fit()
        self.trusted = self.gauge is not None and self.cone.is_complete and self._core_keeps()

    def prepared(self) -> Region:
        """A copy with all that is worked out before points are seen, and nothing that points taught it."""
        return self._with(None if self.gauge is None else self.gauge.prepared())

    def fork(self) -> Region:
        """A copy that learns for itself."""
        return self._with(None if self.gauge is None else self.gauge.fork())

    def _with(self, gauge: Gauge | None) -> Region:
        twin = copy.copy(self)
        twin.gauge = gauge
        return twin

    @property
    def is_empty(self) -> bool:
        """True if nothing is known."""
        return not len(self.cone.rows)

    def _fit(self) -> None:
        if self.is_empty:
            return
        rows, errors, self._kept = self.cone.reduced()
        exact = self.facts.is_linear and self.cone.core.exact is None
        dimension = rows.shape[1]
        if not len(rows) or not dimension:
            return
        if (exact or self.cone.core.exact is not None) and _rank(rows) < dimension:
            return
        try:
            self.gauge = fit_gauge(rows, None if exact else errors)
        except NoInterior:
            return
        self.view = self._view(exact)

    def _view(self, exact: bool) -> View | None:
        """How points are seen by the gauge, with what tolerances cost over its whole reach."""
        assert self.gauge is not None
        if exact:
            return View.of(self.gauge)
        core = self.cone.core
        view = View.of(self.gauge, core.basis)
        extent = np.abs(core.basis) @ (np.abs(self.gauge.centre) + WIDE * np.abs(self.gauge.spread) @ self.gauge.reach)
        rounded = 8 * UNIT_ROUNDOFF * (core.basis.shape[1] + 2) * extent
        spill = rounded
        if core.equalities:
            lengths = self.cone.lengths()
            if any(np.isnan(lengths[equality.number]).any() for equality in core.equalities):
                return None
            most = [float(np.abs(longest) @ extent) for longest in lengths]  # of t, on the core itself
            widths = [
                equality.width * most[equality.number] + 8 * UNIT_ROUNDOFF * float(np.abs(equality.row) @ extent)
                for equality in core.equalities
            ]
            off = np.abs(core.lift) @ np.array(widths)
            for number in {equality.number for equality in core.equalities}:
                if not float(np.abs(lengths[number][:-1]) @ off[:-1]) <= most[number] / 2:
                    return None  # t may be more than twice that off the core (docs/theory/gauge.md, Corollary 9)
            spill = rounded + 2 * off
        room = -(self.cone.rows @ (core.basis @ self.gauge.centre))
        cost = np.abs(self.cone.rows) @ spill
        kept = self._kept
        if not (room[kept] > 0).all():
            return None
        relax = float((cost[kept] / room[kept]).max(initial=0.0)) * (1 + 1e-6)
        if not relax < 0.5:
            return None
        return replace(view, error=view.error + spill * (1 + 1e-6), relax=relax)

    def _core_keeps(self) -> bool:
        """True if rounding cannot take a model of the core out of the tolerances, so that the rows say everything.

        In units of t a consistent model has |a_i| ≤ ‖e_i‖ and |b| ≤ ‖x'‖ + τ; how far the core's equalities are off then is bounded
        by the size of their rows on its basis.
        """
        core = self.cone.core
        if any(isinstance(f, Steepest) and f.tolerance > 0 and not _is_sharp(f) for f in self.facts.explained):
            return False
        if not core.equalities:
            return True
        inverse = np.abs(core.inverse())
        planes = [f for f in self.facts.explained if isinstance(f, OnPlane) and f.norm is not None]
        for number, norm in enumerate(self.facts.norms):
            points = [f for f in planes if f.norm == norm]
            if not points:
                return False
            size = np.append(
                norm.units(self.facts.dimension), max(float(norm(f.point)) + f.tolerance for f in points[:1])
            )
            spread = inverse @ size
            for equality in core.equalities:
                if equality.number == number:
                    off = np.abs(equality.row @ core.basis) + 4 * UNIT_ROUNDOFF * len(size) * (
                        np.abs(equality.row) @ np.abs(core.basis)
                    )
                    if not float(off @ spread) <= 0.5 * max(equality.width, 1e-300):
                        return False
        for fact in self.facts.explained:
            if isinstance(fact, OnSide) and fact.norm is not None and fact.norm not in [f.norm for f in planes]:
                return False
        return True

    def inside(self) -> FloatArray | None:
        """A model inside, in float64."""
        return None if self.gauge is None else self.cone.core.basis @ self.gauge.centre

    @np.errstate(all="ignore")
    def codes(self, X: FloatArray) -> NDArray[np.int8]:
        """A code for every point (row)."""
        if len(X) and not max(float(X.max()), -float(X.min())) < self._largest:
            # Products would overflow: such points are left to the exact step.
            near = (np.abs(X) < self._largest).all(axis=1)
            codes = np.full(len(X), OPEN, dtype=np.int8)
            codes[near] = self._codes(X[near])
            return codes
        return self._codes(X)

    def _codes(self, X: FloatArray) -> NDArray[np.int8]:
        codes = np.full(len(X), OPEN, dtype=np.int8)
        if self.is_empty:
            core = self.cone.core
            if self.cone.is_complete and core.exact is None and not core.equalities:
                codes[:] = UNKNOWN
            return codes
        todo = np.arange(len(X))
        for fact in self.smooth:
            codes[todo] = smooth_codes(fact, X[todo])
            todo = todo[codes[todo] == OPEN]
        if self.smooth or not len(todo):
            return codes
        if self.gauge is None or self.view is None:
            return codes
        return self._decide(X)

    def _decide(self, X: FloatArray) -> NDArray[Any]:
        assert self.gauge is not None
        assert self.view is not None
        found = self.gauge.decide(self.view, X)
        if not self.trusted:
            found[found == UNKNOWN] = OPEN
        return found


def _measured(facts: Facts) -> Facts:
    """The facts without those whose tolerance is a share of a length that no step tells."""
    told = {fact.norm for fact in facts.explained if isinstance(fact, Steepest)}
    kept = [
        f for f in facts.explained if not (isinstance(f, OnPlane | Flips) and f.tolerance > 0 and f.norm not in told)
    ]
    return facts if len(kept) == len(facts.explained) else facts.with_explained(kept)


def _is_sharp(fact: Steepest) -> bool:
    """True if every model inside what the rows of the step leave has an optimum within its tolerance, and rounding is far smaller.

    ℓ1: what moved moved far, and moves of the same gain are the only ones. ℓ∞: what moved farthest moved equally far.
    """
    if not is_flat(fact.norm) or fact.tolerance > THIN * fact.length:
        return False
    q, _ = exponent_and_weights(fact.norm, len(fact.step))
    moved = np.abs(fact.step) * fact.norm.units(len(fact.step))
    if q == 1:
        return not np.any((moved > 0) & (moved <= 1e-6 * fact.length))
    near = moved >= fact.length - 4 * fact.tolerance
    return bool(moved.max() - moved[near].min() <= fact.tolerance / 4)


def _rank(rows: FloatArray) -> int:
    """The rank of rows whose columns may have any units."""
    columns = np.abs(rows).max(axis=0)
    scaled = rows / np.where(columns > 0, columns, 1.0)
    size = np.abs(scaled).max(axis=1, keepdims=True)
    return int(np.linalg.matrix_rank(scaled / np.where(size > 0, size, 1.0)))
