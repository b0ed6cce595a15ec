"""What a served endpoint has been asked and has answered: the second opinion on what a client says it spent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import final


@final
@dataclass
class Counts:
    """Numbers that only grow.

    requests  POSTs that reached a verb of the model, whatever became of them
    classify  labels given, one for each instance; those given again under the same Idempotency-Key do not count again
    explain   explanations given, "there is none" among them; counted likewise
    keys      different Idempotency-Key values that came
    repeated  replies given again for a key that had one

    >>> Counts(requests=2, classify=1, explain=4).answers
    5
    """

    requests: int = 0
    classify: int = 0
    explain: int = 0
    keys: int = 0
    repeated: int = 0

    @property
    def answers(self) -> int:
        """Labels and explanations together."""
        return self.classify + self.explain

    def to_dict(self) -> dict[str, int]:
        """The numbers by name, as GET /counts shows them."""
        return asdict(self)
