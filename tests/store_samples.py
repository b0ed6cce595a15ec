"""What the tests of runs share: a new run, a question answered, a child process that does something and is gone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from overexplain.log.store.run import Outcome, Question, Run

YES = Outcome("label", label=1)


def new(path: Path, budget: int = 10, **options: object) -> Run:
    return Run.create(path / "run.sqlite", plan={"seed": 7}, dimension=2, budget=budget, **options)


def asked(run: Run, verb: str, x: object, outcome: Outcome) -> Question:
    question = run.question(verb, np.array(x, dtype=float))
    question.sending()
    question.heard(outcome)
    return question


def forked(action: Callable[[], None]) -> int:
    """The exit status of a child that does `action` and is gone, without closing anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
