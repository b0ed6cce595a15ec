"""What the first answers of an order determine, as far as bounds in float64 and a few short looks can tell.

This is for logs that the prover does not read: robust counterfactuals, and answers from a domain. `Knowledge` first searches for
any model that fits a log, and settles what floats leave open one point at a time. Here the audited model itself fits, which saves
the search, and points are many. What the fast side determines is determined. A point that it leaves open is unknown once a model
is found that keeps every promise and decides it otherwise than the audited one (`opponents`). A point that was shown as an
explanation is what it was shown as. All that then remains is undecided. Nothing depends on the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.determining.opponents import Opponents
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.norm import Norm
from overexplain.knowledge.facts import Facts, Flips, Secret, Steepest
from overexplain.knowledge.region import Region
from overexplain.knowledge.shells import touching_steps
from overexplain.knowledge.smooth import OPEN, smooth_codes, smooth_facts
from overexplain.knowledge.verdicts import Verdict

MOST, NEW = 48, 8
"""Points of a ball that are kept, and those that one reading adds."""

SHARP = 1e-9
"""A step under a smooth distance whose direction is known to within this leaves one model alone."""

LARGEST = 1e100
"""Points beyond this are left to the region, which sees to it that nothing overflows."""


@final
class Touched:
    """Where models touch balls, those of distances and of robust counterfactuals, as far as the readings of one order showed it.

    Hölder's inequality may be written down at any point of a ball, whoever names it. Most is gained where the audited model touches
    it, for there the models do that are hard to tell from it, and where models do that were found not to fit; what is learnt after
    some answers helps after more and after fewer, too.
    """

    def __init__(self) -> None:
        self._learnt: dict[Norm, FloatArray] = {}

    def of(self, facts: Facts, truth: FloatArray) -> dict[int, FloatArray]:
        """The points of every ball, by the number of its norm."""
        balls = dict.fromkeys(fact.ball for fact in facts.off_plane)
        normal = truth[:-1] / np.abs(truth[:-1]).max()
        found = {}
        for ball in (ball for ball in balls if not isinstance(ball, Secret)):
            own = np.asarray(ball.maximizer(normal))
            found[facts.norms.index(ball)] = np.vstack([own, -own, self.known(ball, len(own))])
        return found

    def known(self, norm: Norm, dimension: int) -> FloatArray:
        """What was learnt about one ball."""
        return self._learnt.get(norm, np.zeros((0, dimension)))

    def learn(self, norm: Norm, points: Sequence[FloatArray]) -> None:
        """Keep more points of a ball; the oldest are forgotten."""
        if len(points):
            self._learnt[norm] = np.vstack([self.known(norm, len(points[0])), *points])[-MOST:]


@final
class Reading:
    """A log's facts read once, for points to be judged. `truth` is the audited model (a, b), which keeps them all."""

    def __init__(self, facts: Facts, truth: FloatArray, touched: Touched | None = None) -> None:
        self.facts, self.truth = facts, truth
        self.touched = Touched() if touched is None else touched
        self.smooth: list[Steepest] = [*smooth_facts(facts), *touching_steps(facts)]

    @cached_property
    def region(self) -> Region:
        """The fast side of all facts."""
        return Region(self.facts, self.touched.of(self.facts, self.truth))

    @cached_property
    def pinned_down(self) -> bool:
        """True if one model alone is left, up to the tolerance of the answers."""
        if self.smooth:
            return any(1 - fact.steepness / fact.length < SHARP for fact in self.smooth)
        return bool(self.region.cone.core.basis.shape[1] == 1) and not self.facts.is_linear

    def codes(self, points: FloatArray) -> NDArray[np.int8]:
        """A `Verdict` for every point."""
        codes = self._fast(points)
        left = np.flatnonzero(codes == OPEN)
        codes[left] = self._shown(points[left])
        left = left[codes[left] == OPEN]
        if not len(left) or self.pinned_down:
            return codes
        if not self.smooth:
            codes[left] = self._with_opponents(points[left])
        return codes

    def _with_opponents(self, points: FloatArray) -> NDArray[np.int8]:
        """Codes for points that the region left open."""
        codes = np.full(len(points), OPEN, dtype=np.int8)
        opponents = Opponents(self.facts, self.region, self.truth)
        codes[opponents.decide_otherwise(points)] = Verdict.UNKNOWN
        left, missed = np.flatnonzero(codes == OPEN), opponents.missed()
        for ball, ends in missed:
            self.touched.learn(ball, [np.asarray(ball.maximizer(a / np.abs(a).max())) for a in ends[-NEW:, :-1]])
        if len(left) and any(len(ends) for _, ends in missed):
            sharper = Region(self.facts, self.touched.of(self.facts, self.truth)).codes(points[left])
            codes[left] = np.where(np.abs(sharper) == 1, sharper, OPEN)
        return codes

    def _shown(self, points: FloatArray) -> NDArray[np.int8]:
        """Yes for the points that were shown to someone denied as a case that is not: a tie, which floats leave open.

        One that was shown as a No may lie on the plane of some model, which then says Yes.
        """
        across = {
            (fact.explanation + 0.0).tobytes()
            for fact in self.facts.explained
            if isinstance(fact, Flips) and fact.side == NO and not fact.share and not fact.tolerance
        }
        return np.array([YES if (x + 0.0).tobytes() in across else OPEN for x in points], dtype=np.int8)

    def _fast(self, points: FloatArray) -> NDArray[np.int8]:
        codes = np.full(len(points), OPEN, dtype=np.int8)
        if not len(points):
            return codes
        if not self.smooth or not np.abs(points).max() < LARGEST:
            return np.array(self.region.codes(points))
        for fact in self.smooth:
            left = np.flatnonzero(codes == OPEN)
            if not len(left):
                break
            codes[left] = smooth_codes(fact, points[left])
        return codes
