"""How many decisions a log has already determined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.facts import Robust
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status


@dataclass(frozen=True)
class RobustUse:
    """How the robust counterfactuals of a log are used.

    level         how much of them: "paper", "perspective", "shared" or "exact"
    explanations  how many there are (whose terms are known)
    balls         the norms of the balls whose radius is known, by name; two weighted norms have the same
    secret        how many of the explanations have a secret radius
    leaves_open   True: the level rests on a convex set that may leave points open which "exact" decides
    """

    level: Robust
    explanations: int
    balls: tuple[str, ...]
    secret: int
    leaves_open: bool

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "level": self.level,
            "explanations": self.explanations,
            "balls": list(self.balls),
            "secret": self.secret,
        }


def robust_use(log: QueryLog, level: Robust) -> RobustUse | None:
    """How a log's robust counterfactuals are used at a level; None if it has none.

    >>> log = QueryLog(mechanism=Mechanism("l1", robustness="l2", radius=0.5))
    >>> log.add_explanation([0.0, 0.0], [1.5, 0.0], label=-1)
    0
    >>> robust_use(log, "shared")
    RobustUse(level='shared', explanations=1, balls=('l2',), secret=0, leaves_open=True)
    """
    asked = log.mechanism_ids[log.status == Status.ASKED]
    counts = {terms: int(np.count_nonzero(asked == i)) for i, terms in enumerate(log.mechanisms)}
    robust = {terms: count for terms, count in counts.items() if count and not terms.is_plain}
    if not robust:
        return None
    known = [terms for terms in robust if terms.radius is not None]
    return RobustUse(
        level,
        sum(robust.values()),
        tuple(Mechanism(ball).describe() for ball in dict.fromkeys(terms.robustness for terms in known)),
        sum(count for terms, count in robust.items() if terms.radius is None),
        level != "exact" and any(level == "paper" or not _is_convex(terms) for terms in known),
    )


def _is_convex(terms: Mechanism) -> bool:
    """True if what such an answer says is convex: then no level beyond the convex sets has more to say."""
    distance = terms.distance
    return terms.slack != 0 or (distance is not None and (distance.is_smooth or distance == terms.robustness))


@dataclass(frozen=True)
class Determined:
    """What a log gives away about a set of points.

    counts                      points by verdict: YES, NO, UNKNOWN, BOUNDARY, UNDECIDED
    rows, labels, explanations  how much the log has (explanations whose terms are known)
    oriented                    False: it has no label, so Yes and No may be exchanged in all verdicts at once
    pinned_down                 True: one model alone fits the log
    proofs                      proofs written; None if none were asked for
    robust                      how its robust counterfactuals are used; None if it has none
    """

    counts: Mapping[str, int]
    rows: int
    labels: int
    explanations: int
    oriented: bool
    pinned_down: bool
    proofs: int | None = None
    robust: RobustUse | None = None

    @property
    def points(self) -> int:
        """The number of points.

        >>> Determined({"YES": 2, "NO": 1, "UNKNOWN": 1}, 9, 9, 0, True, False).points
        4
        """
        return sum(self.counts.values())

    @property
    def share(self) -> float | None:
        """The share of the points whose decision is determined, Yes or No; None if there are no points.

        >>> Determined({"YES": 2, "NO": 1, "UNKNOWN": 1}, 9, 9, 0, True, False).share
        0.75
        """
        return self.share_of("YES", "NO")

    def share_of(self, *verdicts: str) -> float | None:
        """The share of the points that have one of these verdicts; None if there are no points."""
        return sum(self.counts.get(name, 0) for name in verdicts) / self.points if self.points else None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form; `robust` is there if the log has robust counterfactuals."""
        return {
            "points": self.points,
            "counts": dict(self.counts),
            "determined": self.share,
            "oriented": self.oriented,
            "pinned_down": self.pinned_down,
            "proofs": self.proofs,
            "log": {"rows": self.rows, "labels": self.labels, "explanations": self.explanations},
        } | ({} if self.robust is None else {"robust": self.robust.to_dict()})
