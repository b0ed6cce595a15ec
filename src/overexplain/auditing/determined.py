"""How many decisions a log has already determined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Determined:
    """What a log gives away about a set of points.

    counts                      points by verdict: YES, NO, UNKNOWN, BOUNDARY, UNDECIDED
    rows, labels, explanations  how much the log has (explanations whose terms are known)
    oriented                    False: it has no label, so Yes and No may be exchanged in all verdicts at once
    pinned_down                 True: one model alone fits the log
    proofs                      proofs written; None if none were asked for
    """

    counts: Mapping[str, int]
    rows: int
    labels: int
    explanations: int
    oriented: bool
    pinned_down: bool
    proofs: int | None = None

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
        """A JSON-ready form."""
        return {
            "points": self.points,
            "counts": dict(self.counts),
            "determined": self.share,
            "oriented": self.oriented,
            "pinned_down": self.pinned_down,
            "proofs": self.proofs,
            "log": {"rows": self.rows, "labels": self.labels, "explanations": self.explanations},
        }
