"""The verdict on one answer, and the score of many."""

import difflib
import functools
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from examiner.limit import limited
from examiner.tools import NotWritten, Refused

Check = Callable[[Any], None]


@dataclass(frozen=True)
class Exercise:
    """One exercise."""

    name: str
    level: str  # "warm-up", "core" or "challenge"
    page: str  # of the course, which explains what it takes
    check: Check

    @property
    def part(self) -> str:
        """The part of the course that it belongs to, which is the name of the page that holds its hints."""
        return self.check.__module__.rpartition(".")[2]


CHECKS: dict[str, Exercise] = {}  # by name
PARTS = ("basics", "speed", "debug", "scale", "train")
silent = False  # while a file is examined from outside, its own call of `grade` does nothing


def check(level: str, page: str) -> Callable[[Check], Check]:
    """Register the check of the exercise that has the function's name, which raises `Refused` for a wrong answer."""

    def register(function: Check) -> Check:
        CHECKS[function.__name__] = Exercise(function.__name__, level, page, function)
        return function

    return register


def judge(answer: Any, name: str) -> None:
    """Examine an answer to the exercise of this name, silently.

    Raises:
        Refused: it is wrong or not written; the message says what is wrong with it, without its name.
    """
    try:
        # The check for key reuse has errors of its own for leaked tracers, so only checks of keys turn it on.
        with jax.debug_key_reuse(False), jax.default_matmul_precision("highest"):
            limited(name, lambda: CHECKS[name].check(_written(answer)))
    except Refused:
        raise
    except Exception as error:  # whatever the answer raises is what is wrong with it
        first, *rest = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}").strip().splitlines()
        if "Traceback (most" in first:  # of a callback: JAX's frames, then a line that says what happened
            message = [first, *rest][-1]
            # by a function that the check has passed to the answer
            refusal = re.match(r"[\w.]*\bRefused: ", message)
            raise Refused(
                message[refusal.end() :] if refusal else f"raised {type(error).__name__}: {message}"
            ) from None
        if first.endswith(":"):  # the sizes, for example, stand below it
            first = " ".join([first, *rest[:4]])
        raise Refused(f"raised {first.removesuffix(': ')}") from error


def examine(answer: Any, name: str = "") -> None:
    """Print that an answer is right.

    Args:
        answer: a function or a class.
        name: the exercise; without it, the one that has the answer's own name.

    Raises:
        Refused: the answer is wrong; the message says why.
        KeyError: there is no such exercise.
    """
    name = _known(name or answer.__name__)
    try:
        judge(answer, name)
    except Refused as refusal:
        raise Refused(f"{name}: {refusal}") from refusal.__cause__
    print(f"{name}: right")


def grade(answers: Mapping[str, Any], *names: str, part: str = "") -> int:
    """Print a verdict on each answer that is written, then the score, and return the number of right answers.

    Args:
        answers: the answers by name, such as `globals()`.
        names: the exercises to grade; without any, all of them.
        part: grade one part only, for example "basics".
    """
    if silent:
        return 0
    chosen = [_known(name) for name in names] or exercises(part)
    missing, right = [], 0
    for name in chosen:
        try:
            judge(answers.get(name, _nothing), name)
        except NotWritten:
            missing.append(name)
        except Refused as refusal:
            print(wrapped(f"{name}: {refusal}"), flush=True)
        else:
            print(f"{name}: right", flush=True)
            right += 1
    wrong = len(chosen) - right - len(missing)
    score = [f"{right} of {len(chosen)} right", *([f"{wrong} wrong"] if wrong else [])]
    if missing:
        score.append(f"{len(missing)} not written yet; the next one is {missing[0]}")
    print(", ".join(score))
    return right


def exercises(part: str = "") -> list[str]:
    """The names of the exercises of a part, else of all parts, in the order of the pages."""
    inside = [exercise for exercise in CHECKS.values() if part in ("", exercise.part)]
    return [exercise.name for exercise in sorted(inside, key=lambda exercise: PARTS.index(exercise.part))]


def first_at(place: str) -> str:
    """Return the name of the exercise to begin with: the first of a part or of a page of the course, or that itself.

    Args:
        place: such as "train", "train/training", "training" or "fit"; the name of a file does as well.

    Raises:
        KeyError: there is no such place; the message names all.
    """
    firsts: dict[str, str] = {}
    ordered = [CHECKS[name] for name in exercises()]
    for names in ("name", "part", "page"):
        for exercise in ordered:
            firsts.setdefault(getattr(exercise, names).lower(), exercise.name)
    for exercise in ordered:
        firsts.setdefault(exercise.page.rpartition("/")[2], exercise.name)
    wanted = place.strip().lower().removesuffix(".md").strip("/").removeprefix("docs/")
    if wanted in firsts:
        return firsts[wanted]
    close = difflib.get_close_matches(wanted, firsts, n=1)
    pages = dict.fromkeys(exercise.page for exercise in ordered)
    raise KeyError(
        f"There is no part, page or exercise {place!r}{f'; did you mean {close[0]!r}?' if close else '.'} Begin with\n"
        + "\n".join(
            textwrap.fill(f"{kind}: {', '.join(found)}", 100, initial_indent="  ", subsequent_indent="    ")
            for kind, found in (("a part", PARTS), ("a page of the course", pages), ("an exercise", exercises()))
        )
    )


def wrapped(text: str) -> str:
    """The text in lines for a terminal."""
    return textwrap.fill(text, 78, subsequent_indent="    ", break_on_hyphens=False)


def _known(name: str) -> str:
    if name not in CHECKS:
        raise KeyError(f"there is no exercise {name!r}; pass the name of one as the second argument")
    return name


def _nothing(*_: Any, **__: Any) -> Any:
    return NotImplemented


def _written(answer: Any) -> Any:
    """The answer, made to say so when it is still a stub; a class or a compiled function as it is."""
    if (
        isinstance(answer, type)
        and answer.__init__ is object.__init__  # type: ignore[misc]
        and answer.__new__ is object.__new__  # type: ignore[comparison-overlap]
        and "__call__" not in vars(answer)
    ):
        raise NotWritten
    if isinstance(answer, type) or hasattr(answer, "lower"):
        return answer

    @functools.wraps(answer)
    def checked(*args: Any, **options: Any) -> Any:
        result = answer(*args, **options)
        if result is NotImplemented:
            raise NotWritten
        return result

    return checked
