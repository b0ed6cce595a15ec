"""What a command line says about explanations whose rows in the log do not say it themselves."""

from __future__ import annotations

from dataclasses import dataclass

from overexplain.cli.options import ANY, SECRET
from overexplain.geometry.mechanism import Mechanism


@dataclass(frozen=True)
class Terms:
    """The terms of bare explanations: none, if there is neither a distance nor `slack` None.

    `slack` is a number, or None for explanations that need not be near ones (`--slack any`). `radius` is a number, None if there
    is no ball, or `SECRET`.
    """

    distance: str | None = None
    tolerance: float | None = None
    slack: float | None = 0.0
    robustness: str | None = None
    radius: float | str | None = None

    @property
    def mechanism(self) -> Mechanism | None:
        """The terms as a mechanism, if any were given.

        >>> Terms("l1", robustness="l2", radius=0.1).mechanism.describe(), Terms("l1", radius=SECRET).mechanism.describe()
        ('l1, robust l2 0.1', 'l1, robust (radius secret)')
        """
        if self.distance is None and self.slack is not None:
            return None
        radius = None if self.radius == SECRET else float(self.radius or 0.0)
        return Mechanism(self.distance, self.robustness, radius, self.tolerance, self.slack)

    @property
    def options(self) -> list[str]:
        """The terms as they stand on a command line: whoever checks a proof must state what it rests on."""
        said = [] if self.distance is None else ["--distance", self.distance]
        if self.robustness is not None:
            said += ["--robustness", self.robustness]
        if self.radius is not None:
            said += ["--radius", SECRET if self.radius == SECRET else repr(self.radius)]
        if self.tolerance is not None:
            said += ["--tolerance", repr(self.tolerance)]
        if self.slack != 0:
            said += ["--slack", ANY if self.slack is None else repr(self.slack)]
        return said
