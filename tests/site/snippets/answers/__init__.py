"""Answers that learners would write, for each exercise about five right ones and five wrong ones.

Each has a decorator: `@right("tax")`, or `@wrong("tax", "a pattern that the reason has to match")`. The answers of a
part are in the module of its name; they are called `_`, because the decorator names the exercise that they answer.
"""

import importlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """An answer, and what the examiner has to say of it."""

    exercise: str
    answer: Any
    reason: str  # what the reason for refusing it has to match; empty if it is right
    place: str


ANSWERS: list[Answer] = []


def right(exercise: str) -> Callable[[T], T]:
    """Mark a right answer."""
    return _mark(exercise, "")


def wrong(exercise: str, reason: str) -> Callable[[T], T]:
    """Mark an answer that has to be refused for a reason that matches."""
    return _mark(exercise, reason)


def _mark(exercise: str, reason: str) -> Callable[[T], T]:
    caller = sys._getframe(2)
    place = f"{caller.f_globals['__name__'].rpartition('.')[2]}.py:{caller.f_lineno}"

    def keep(answer: T) -> T:
        ANSWERS.append(Answer(exercise, answer, reason, place))
        return answer

    return keep


def main(part: str) -> None:
    """Print, as JSON, how many right and wrong answers each exercise has, and what was judged otherwise."""
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
    from examiner.tools import Refused
    from examiner.verdict import judge

    importlib.import_module(f"tests.site.snippets.answers.{part}")
    counts: dict[str, list[int]] = {}
    problems = []
    for answer in ANSWERS:
        counts.setdefault(answer.exercise, [0, 0])[bool(answer.reason)] += 1
        try:
            judge(answer.answer, answer.exercise)
            verdict = ""
        except Refused as refusal:
            verdict = str(refusal)
        if bool(verdict) != bool(answer.reason):
            problems.append(f"{answer.place} {answer.exercise}: {'refused: ' + verdict if verdict else 'accepted'}")
        elif not re.search(answer.reason, verdict):
            problems.append(f"{answer.place} {answer.exercise}: {verdict!r} does not match {answer.reason!r}")
    print(json.dumps({"counts": counts, "problems": problems}))
