"""A process that has everything imported and forks one `overexplain` command line after the other, to be killed.

It reads a JSON object a line: the arguments, where to die, where output and acknowledgements go. Forking costs
milliseconds where starting Python costs seconds, so that hundreds of kills are part of every test run.

A child dies by SIGKILL, sent by itself at a point (`point`, at the `nth` time it comes by) or by the parent after `seconds`.
Production code has no hooks for this: the points are put around its own steps here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from overexplain.cli import probe as _probe  # noqa: F401 - imported once, before the forks
from overexplain.cli.app import parse
from overexplain.cli.main import run
from overexplain.log.store.file import _Connection
from overexplain.log.store.run import Question
from overexplain.oracles.http.wire import Wire, _Stream


class Point:
    """A place in the program: whoever passes it for the nth time is dead."""

    def __init__(self, name: str, nth: int) -> None:
        self.name, self.left = name, nth

    def passed(self, name: str) -> None:
        if name == self.name:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def put_points(point: Point, acknowledged: int) -> None:
    """Wrap every step; what `heard` has returned from is acknowledged, on a line that a kill cannot take back."""
    sending, heard, execute = Question.sending, Question.heard, _Connection.execute
    read, send = _Stream.read, Wire.send

    def with_intent(self: Question) -> None:
        point.passed("before intent")
        sending(self)
        point.passed("after intent")

    def with_sent(self: _Stream, *arguments: Any, **options: Any) -> bytes:
        point.passed("after send")  # the whole request is on its way: now the reply is waited for
        return read(self, *arguments, **options)

    def with_reply(self: Wire, *arguments: Any, **options: Any) -> Any:
        reply = send(self, *arguments, **options)
        point.passed("after reply")
        return reply

    def with_answer(self: Question, outcome: Any) -> None:
        heard(self, outcome)
        answer = None if outcome.explanation is None else outcome.explanation.tolist()
        entry = {"key": self.key, "kind": outcome.kind, "label": outcome.label, "explanation": answer}
        os.write(acknowledged, (json.dumps(entry) + "\n").encode())
        point.passed("after answer")

    def with_commit(self: Any, sql: str, *parameters: Any) -> Any:
        if sql == "COMMIT":
            point.passed("before commit")
        return execute(self, sql, *parameters)

    Question.sending, Question.heard = with_intent, with_answer
    _Stream.read, Wire.send, _Connection.execute = with_sent, with_reply, with_commit


def child(order: dict[str, Any]) -> None:
    os.chdir(order["folder"])
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    acknowledged = os.open(order["acknowledged"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    put_points(Point(order.get("point", ""), order.get("nth", 0)), acknowledged)
    code = 99
    try:
        code = run(order["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def main() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup nobody would be told to stop, and the tests never end
    parse(["probe", "endpoint.toml", "--dry-run"])  # puts the command line together, once, before the forks
    for line in sys.stdin:
        order = json.loads(line)
        process = os.fork()
        if process == 0:
            child(order)
        if order.get("seconds") is not None:
            time.sleep(order["seconds"])
            os.kill(process, order.get("signal", signal.SIGKILL))
        _, status = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(status)
        # Told to stop, it says 130; so early that nobody listens yet, the signal itself ends it.
        killed = code == -order.get("signal", signal.SIGKILL) or (code == 130 and "signal" in order)
        sys.stdout.write(json.dumps({"killed": killed, "code": None if killed else code}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
