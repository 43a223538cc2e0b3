"""The verdict on one answer, and the score of many."""

import functools
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import jax

from examiner.tools import NotWritten, Refused

Check = Callable[[Any], None]
CHECKS: dict[str, Check] = {}  # by the exercise's name


def check(function: Check) -> Check:
    """Registers the check of the exercise that has the function's name; it raises `Refused` for a wrong answer."""
    CHECKS[function.__name__] = function
    return function


def examine(answer: Any, name: str = "") -> None:
    """Prints that an answer to the exercise of this name (else the answer's own) is right.

    Raises:
        Refused: it is not; the message says what is wrong with it.
        KeyError: there is no such exercise.
    """
    name = name or answer.__name__
    if name not in CHECKS:
        raise KeyError(f"there is no exercise {name!r}; the name of one is the second argument")
    try:
        # Key reuse has other errors for leaked tracers, so only checks of keys turn it on.
        with jax.debug_key_reuse(False), jax.default_matmul_precision("highest"):
            CHECKS[name](_written(answer))
    except NotWritten as stub:
        raise Refused(f"{name}: {stub}") from stub
    except Refused as refusal:
        raise Refused(f"{name}: {refusal}") from None
    except Exception as error:  # whatever the answer raises is what is wrong with it
        first, *rest = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}").strip().splitlines()
        if "Traceback (most" in first:  # of a callback: frames of jax, and a last line that says what happened
            raise Refused(f"{name}: raised {type(error).__name__}: {[first, *rest][-1]}") from None
        raise Refused(f"{name}: raised {first.removesuffix(': ')}") from error
    print(f"{name}: right")


def grade(answers: Mapping[str, Any], *names: str) -> int:
    """Prints the verdicts on the answers to these exercises (else to all), and the score; gives how many are right."""
    names = names or tuple(sorted(CHECKS, key=[*answers, *CHECKS].index))  # as written down
    missing, right = [], 0
    for name in names:
        try:
            examine(answers[name], name)
            right += 1
        except Refused as refusal:
            if isinstance(refusal.__cause__, NotWritten):
                missing.append(name)
            else:
                print(textwrap.fill(str(refusal), 78, subsequent_indent="    ", break_on_hyphens=False))
    if missing:
        print(textwrap.fill(f"not written yet: {', '.join(missing)}", 78, subsequent_indent="    "))
    print(f"{right} of {len(names)}")
    return right


def _written(answer: Any) -> Any:
    """The answer, which says so when it is still a stub; a class or a compiled function as it is."""
    if isinstance(answer, type) and answer.__init__ is object.__init__ and answer.__new__ is object.__new__:  # type: ignore[misc,comparison-overlap]
        raise NotWritten
    if isinstance(answer, type) or hasattr(answer, "lower"):
        return answer

    @functools.wraps(answer)
    def asked(*args: Any, **options: Any) -> Any:
        result = answer(*args, **options)
        if result is NotImplemented:
            raise NotWritten
        return result

    return asked
