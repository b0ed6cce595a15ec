"""What can be said about a point: certain, open, or on the plane itself."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray

if TYPE_CHECKING:
    from overexplain.knowledge.certificates import Certificate, Disagreement
    from overexplain.knowledge.known import Known


class Verdict(IntEnum):
    """What a log says about a point."""

    YES = 1
    """every consistent model says Yes: a·x ≥ b"""
    NO = -1
    """every consistent model says No: a·x < b"""
    UNKNOWN = 0
    """two consistent models disagree"""
    BOUNDARY = 2
    """on the plane for every consistent model: a·x = b"""
    UNDECIDED = 3
    """a limit was hit before it was settled"""

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        is_number = spec[-1:].isalpha() and not spec.endswith("s")
        return int.__format__(self, spec) if is_number else format(self.name, spec)


@final
class Verdicts:
    """The verdicts on some points, `codes[i]` for `points[i]`, and on demand the proof of each.

    `certify` makes them. Every code rests on a proof; `proof(i)` writes it down in rational numbers.
    """

    def __init__(self, codes: NDArray[np.int8], points: FloatArray, known: Known) -> None:
        self.codes, self.points, self._known = codes, points, known
        self.codes.setflags(write=False)
        self.points.setflags(write=False)

    @property
    def sides(self) -> NDArray[np.int8]:
        """For pictures and sums: 1 for a certain Yes, -1 for a certain No, 0 for all else.

        Codes are no scale: clipped to -1 … 1, BOUNDARY and UNDECIDED would read as a Yes.
        """
        return np.where(np.abs(self.codes) == 1, self.codes, 0).astype(np.int8)

    @property
    def oriented(self) -> bool:
        """False if no label says which side is Yes: verdicts hold up to swapping Yes and No."""
        return self._known.oriented

    def proof(self, i: int) -> Certificate | Disagreement:
        """Why the i-th verdict is true: weights that add up to the point, or two models that disagree at it."""
        return self._known.prove(self.points[i], Verdict(int(self.codes[i])))

    def interval(self, i: int) -> tuple[float, float]:
        """How far, at least and at most, the i-th point lies on the Yes side, by the convex set of robust counterfactuals.

        In units of their distance, as a float64 solver finds it. For an UNDECIDED point it has 0 inside.
        """
        return self._known.interval(self.points[i])

    def counts(self) -> dict[str, int]:
        """How many points have each verdict, by name."""
        return {verdict.name: int(np.count_nonzero(self.codes == verdict)) for verdict in Verdict}

    def to_frame(self) -> Any:
        """A pandas DataFrame: the points and their `verdict` by name."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("to_frame needs pandas: pip install 'overexplain[frames]'") from None
        features = self._known.log.features
        frame = pd.DataFrame(self.points, columns=list(features or [f"x{k}" for k in range(self.points.shape[1])]))
        frame["verdict"] = [Verdict(int(code)).name for code in self.codes]
        return frame

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, i: int) -> Verdict:
        return Verdict(int(self.codes[i]))

    def __repr__(self) -> str:
        said = ", ".join(f"{count} {name}" for name, count in self.counts().items() if count)
        return f"Verdicts({said or 'no points'})"
