"""Blocks of points as directions in the coordinates of a gauge, with the price of their rounding errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.gauge.bounds import BASE_SLOP, TINY, gamma
from overexplain.knowledge.gauge.view import View


@dataclass(frozen=True)
class Lens:
    """A view made ready for one gauge: values = X @ columns − shift are (q·anchor, q·matrix), off by at most |q|·charge."""

    columns: FloatArray
    shift: FloatArray
    charge: FloatArray
    charge_shift: float
    relax: float
    rounding: float
    """γ of products with a normalised direction"""

    @classmethod
    def of(cls, view: View, reach: FloatArray) -> Lens:
        both = np.hstack([view.anchor[:, None], view.matrix])
        charge = view.charge(reach)
        rounding = gamma(sum(both.shape) + 12)
        if not view.has_offset:
            return cls(np.ascontiguousarray(both), np.zeros(both.shape[1]), charge, TINY, view.relax, rounding)
        return cls(
            np.ascontiguousarray(both[:-1]),
            both[-1].copy(),
            charge[:-1].copy(),
            float(charge[-1]) + TINY,
            view.relax,
            rounding,
        )


@dataclass(frozen=True)
class Directions:
    """Points clearly off the plane of the centre: c = −sign(s0)·q·matrix / |s0|. Certain means max c·z < 1 over P."""

    label: NDArray[np.int8]
    c: FloatArray
    cost: FloatArray
    """(N,): what a bound on max c·z is off by, all rounding and the view's errors included"""
    place: NDArray[np.intp]


def directions(lens: Lens, X: FloatArray) -> tuple[Directions, NDArray[np.intp], FloatArray, FloatArray]:
    """(directions of the clear points; places, values and charges of the points whose sign at the centre is not clear)."""
    with np.errstate(all="ignore"):
        values = X @ lens.columns - lens.shift
        charge = (np.abs(X) @ lens.charge + lens.charge_shift) * (1.0 + lens.rounding)
        size = np.abs(values[:, 0])
        # Anything not finite fails this comparison or the next, and stays open.
        clear = (size > 2.0 * charge) & (size < 1e300)
        place = np.flatnonzero(clear)
        s0 = values[place, 0]
        c = values[place, 1:] / -s0[:, None]
        cost = charge[place] / size[place] + BASE_SLOP
    weak = np.flatnonzero(~clear)
    return Directions(np.where(s0 > 0, 1, -1).astype(np.int8), c, cost, place), weak, values[weak], charge[weak]
