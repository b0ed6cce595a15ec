"""The one place where a served endpoint's questions are answered: one at a time, logged before they are told, counted once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES
from overexplain.log.jsonl.formats import JsonlWriter
from overexplain.log.rows import Row, Status
from overexplain.oracles.protocol import Oracle, checked_explanation, checked_label, offers
from overexplain.oracles.served.bodies import Layout, Refused, read_instances, read_object
from overexplain.oracles.served.counts import Counts
from overexplain.oracles.served.memory import Memory
from overexplain.oracles.served.tensors import read_tensors, write_labels

Verb = Literal["predict", "explain", "infer"]


@final
@dataclass(frozen=True)
class Asked:
    """One request: its verb, its body, who asks and under which key."""

    verb: Verb
    body: bytes
    client: str | None = None
    key: str | None = None


@final
class Answers:
    """Answers requests by an oracle, from any number of threads.

    An oracle may draw from a random generator and need not be safe for threads, so one request is answered at a time. What
    cannot be logged is not told: after the log failed once, nothing is answered any more.
    """

    def __init__(self, oracle: Oracle, layout: Layout, name: str, log: JsonlWriter | None = None) -> None:
        self.oracle, self.layout, self.name = oracle, layout, name
        self.counts = Counts()
        self._log, self._log_failed = log, ""
        self._memory = Memory()
        self._lock = threading.Lock()
        self._counting = threading.Lock()  # apart: who only counts must not wait for answers
        self._stopping = threading.Event()

    def arrived(self) -> None:
        """Count a request, before anything can go wrong with it."""
        with self._counting:
            self.counts.requests += 1

    def stop(self) -> None:
        """Answer nothing any more: requests that are being answered are refused at their next instance."""
        self._stopping.set()

    def reply(self, asked: Asked) -> bytes:
        """The JSON reply; raises Refused."""
        with self._lock:
            if asked.key is None:
                return self._answered(asked)
            self.counts.keys += self._memory.meets(asked.key, asked.verb.encode() + b"\0" + asked.body)
            known = self._memory.reply(asked.key)
            if known is not None:
                self.counts.repeated += 1
                return known
            reply = self._answered(asked)
            self._memory.keep(asked.key, reply)
            return reply

    def close(self) -> None:
        """Close the log, if there is one."""
        with self._lock:
            if self._log is not None:
                self._log.close()

    def _answered(self, asked: Asked) -> bytes:
        explains = asked.verb == "explain"
        if not offers(self.oracle, "explain" if explains else "classify"):
            does = "gives labels and explains nothing" if explains else "explains and gives no labels"
            raise Refused(501, f"the model {self.name!r} {does}")
        body = read_object(asked.body)
        if asked.verb == "infer":
            points, request = read_tensors(body, self.layout)
            return _encode(write_labels(self.name, self._labels(points, asked), request))
        points = read_instances(body, self.layout)
        if explains:
            given = [{"counterfactual": None if x is None else x.tolist()} for x in self._explanations(points, asked)]
            return _encode({"explanations": given})
        return _encode({"predictions": [int(label == YES) for label in self._labels(points, asked)]})

    def _labels(self, points: FloatArray, asked: Asked) -> list[int]:
        labels = [self._ask(self.oracle.classify, checked_label, point, i) for i, point in enumerate(points)]
        rows = zip(points, labels, strict=True)
        self._write([Row(point, label, **self._about(asked)) for point, label in rows])
        self.counts.classify += len(labels)
        return labels

    def _explanations(self, points: FloatArray, asked: Asked) -> list[FloatArray | None]:
        answers: list[FloatArray | None] = []
        for i, point in enumerate(points):
            try:
                answers.append(self._ask(self.oracle.explain, self._checked, point, i))
            except Refused as error:
                if error.status == 500:
                    self._write([self._explained(point, None, Status.FAILED, asked)])
                raise
        states = [Status.NONE if answer is None else Status.ASKED for answer in answers]
        rows = zip(points, answers, states, strict=True)
        self._write([self._explained(point, answer, status, asked) for point, answer, status in rows])
        self.counts.explain += len(answers)
        return answers

    def _checked(self, answer: Any) -> FloatArray | None:
        return checked_explanation(answer, self.layout.dimension)

    def _ask(self, verb: Callable[[Any], Any], check: Callable[[Any], Any], point: FloatArray, i: int) -> Any:
        """One checked answer of the oracle."""
        if self._stopping.is_set():
            raise Refused(503, "the service is being stopped; nothing of this request was answered")
        try:
            answer = verb(point.copy())
        except InvalidInput as error:  # outside of what the service takes
            raise Refused(400, f"instance {i}: {error}") from None
        except Exception as error:  # whatever the oracle's own code raises
            raise Refused(500, f"the service failed on instance {i}: {type(error).__name__}: {error}") from error
        try:
            return check(answer)
        except InvalidInput as error:
            raise Refused(500, f"the service failed on instance {i}: {error}") from None

    def _explained(self, point: FloatArray, answer: FloatArray | None, status: Status, asked: Asked) -> Row:
        return Row(point, None, answer, status, self.oracle.mechanism, **self._about(asked))

    def _about(self, asked: Asked) -> dict[str, Any]:
        return {"client": asked.client, "time": time.time(), "source": f"serve {self.name}"}

    def _write(self, rows: list[Row]) -> None:
        if self._log is None:
            return
        if not self._log_failed:
            try:
                for row in rows:
                    self._log.write(row)
                return
            except (OSError, ValueError) as error:
                self._log_failed = str(error)
        raise Refused(500, f"the answer was not logged and is not told: {self._log_failed}")


def _encode(reply: dict[str, Any]) -> bytes:
    """The reply as JSON whose floats are read back exactly."""
    return json.dumps(reply, allow_nan=False, separators=(",", ":")).encode()
