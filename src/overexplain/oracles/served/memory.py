"""What was answered under which Idempotency-Key, so that the same request has the same reply and costs nothing twice."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final, final

from overexplain.oracles.served.bodies import Refused

MOST_KEYS: Final = 100_000
MOST_BYTES: Final = 256 * 2**20
LONGEST_KEY: Final = 255


@final
class Memory:
    """The replies of the last `most_keys` keys, at most `most_bytes` of them; the key not used for longest is forgotten first.

    >>> memory = Memory()
    >>> memory.meets("a", b"question"), memory.reply("a")
    (True, None)
    >>> memory.keep("a", b"answer")
    >>> memory.meets("a", b"question"), memory.reply("a")
    (False, b'answer')
    """

    def __init__(self, most_keys: int = MOST_KEYS, most_bytes: int = MOST_BYTES) -> None:
        self._most_keys, self._most_bytes, self._bytes = most_keys, most_bytes, 0
        self._seen: OrderedDict[str, tuple[bytes, bytes | None]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def meets(self, key: str, request: bytes) -> bool:
        """True if the key is new; raises Refused if it came with another request before."""
        if not 0 < len(key) <= LONGEST_KEY:
            raise Refused(400, f"an Idempotency-Key has 1 to {LONGEST_KEY} characters, this one has {len(key)}")
        digest = hashlib.sha256(request).digest()
        known = self._seen.get(key)
        if known is None:
            self._seen[key] = (digest, None)
            self._forget()
            return True
        if known[0] != digest:
            raise Refused(422, "this Idempotency-Key came with another request before; a new request needs a new key")
        self._seen.move_to_end(key)
        return False

    def reply(self, key: str) -> bytes | None:
        """The reply given under this key; None if there is none yet."""
        return self._seen[key][1]

    def keep(self, key: str, reply: bytes) -> None:
        """Remember the reply of a key that `meets` has seen."""
        digest, before = self._seen[key]
        self._seen[key] = (digest, reply)
        self._bytes += len(reply) - len(before or b"")
        self._forget()

    def _forget(self) -> None:
        while len(self._seen) > self._most_keys or (self._bytes > self._most_bytes and len(self._seen) > 1):
            _, (_, reply) = self._seen.popitem(last=False)
            self._bytes -= len(reply or b"")
