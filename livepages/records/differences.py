"""The comparison of two outputs of the same code: text exactly, numbers as nearly as float32 can promise.

Differences without meaning, from run to run or from one release of the runtime to the next, are ignored: addresses,
ids of objects, paths, and the runtime's own messages.
"""

import difflib
import math
import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

TOLERANCE = 1e-5  # of a number, relative to itself: what sums in another order leave of float32
# The tolerance of an array's small numbers relative to its largest, as a part of `TOLERANCE`: where large numbers
# cancel, their rounding is left. By default this is four times the rounding of float32. Numbers in a sentence are
# compared one by one.
ARRAY_SCALE_FACTOR = 0.05
NUMBERS, WHOLE_NUMBERS = "numbers", "whole numbers"

Patterns = Sequence[tuple[re.Pattern[str], str]]
_MEANINGLESS: Patterns = (
    (re.compile(r"\b0x(?:[0-9a-f]{6,}|…)"), "ADDRESS"),
    (re.compile(r"\b(object id|id=|thread) ?\d{4,}"), r"\1"),
    (re.compile(r"(?<![\w/])(?:/[\w.+-]+){2,}"), "PATH"),
    # In figures that a page saves as SVG, Matplotlib notes the time, and gives random ids to elements used twice.
    (re.compile(r"<dc:date>[^<]*</dc:date>"), "DATE"),
    (re.compile(r"(?<=[\"#])[a-z]+[0-9a-f]{10}(?=[\")])"), "ID"),
)
_TOKEN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?\b(?:nan|inf)\b|\w+|[^\w\s]")
_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf)")
_FLOAT = re.compile(r".*[.e]|[-+]?(?:nan|inf)")


class ComparableOutput(Protocol):
    """The part of a block's outcome that is compared."""

    @property
    def outcome(self) -> str:
        """The way it ended."""
        ...

    @property
    def figures(self) -> int:
        """The number of figures that it drew."""
        ...

    @property
    def error(self) -> str:
        """The error that it raised, the class first."""
        ...

    @property
    def text(self) -> str:
        """Everything that it printed, its error included."""
        ...


@dataclass(frozen=True)
class Difference:
    """The difference between the outcomes of a block in two places."""

    cause: str  # the same for blocks that differ in the same way
    diff: str  # the lines that differ
    absolute: float = 0.0  # the largest difference between two numbers
    relative: float = 0.0  # the largest, relative to the first of the two

    def __str__(self) -> str:
        return f"{self.cause}{self.size}:\n{self.diff}"

    @property
    def size(self) -> str:
        """The largest difference between numbers, in words; empty if other text differs."""
        if not self.absolute:
            return ""
        return f", by {self.absolute:.2g} at most, relative {self.relative:.2g}"


def differ(
    old: ComparableOutput,
    new: ComparableOutput,
    tolerance: float = 0.0,
    volatile: bool = False,
    noise_patterns: Patterns = (),
) -> Difference | None:
    """Compare the outcomes of a block on two hosts; None if they are the same.

    Args:
        old: the outcome in one place.
        new: the outcome in the other.
        tolerance: of floating-point numbers, relative to themselves; `TOLERANCE` if zero.
        volatile: whether the output changes from run to run, so that only how the block ended is compared.
        noise_patterns: patterns of more text without meaning, such as messages of the runtime, and their replacements.
    """
    diff = _diff(old.text, new.text)
    if old.outcome != new.outcome:
        return Difference(f"{old.outcome} → {new.outcome}", diff)
    before, after = (each.error.partition(":")[0] if each.outcome == "raised" else "" for each in (old, new))
    if before != after:
        return Difference(f"{before} → {after}", diff)
    if old.figures != new.figures:
        return Difference(f"{old.figures} figures → {new.figures}", diff)
    if volatile:
        return None
    return _texts(old.text, new.text, tolerance or TOLERANCE, diff, tuple(noise_patterns))


def _normal(text: str, noise_patterns: Patterns) -> str:
    """Return text with differences without meaning replaced."""
    for pattern, name in (*noise_patterns, *_MEANINGLESS):
        text = pattern.sub(name, text)
    return text


@lru_cache(maxsize=4096)  # while serving, most outputs stay unchanged
def _texts(old: str, new: str, tolerance: float, diff: str, noise_patterns: Patterns) -> Difference | None:
    if old == new:
        return None
    olds, news = list(_tokens(old, noise_patterns)), list(_tokens(new, noise_patterns))
    words, changed = [word for word, _ in olds], [word for word, _ in news]
    if [_kind(word) for word in words] != [_kind(word) for word in changed]:
        return Difference(_replaced(words, changed), diff)
    if any(a != b and not _is_float(a, b) for a, b in zip(words, changed, strict=True)):
        return Difference(WHOLE_NUMBERS, diff, *_apart(words, changed))
    for (a, scale), (b, _) in zip(olds, news, strict=True):
        if a != b and not _near(a, b, scale, tolerance):
            return Difference(NUMBERS, diff, *_apart(words, changed))
    return None


def _tokens(text: str, noise_patterns: Patterns) -> Iterator[tuple[str, float]]:
    """The words, signs and numbers of a text; those in brackets with the largest floating-point number of their line.

    White space is none of them: columns move when a number gets another digit.
    """
    depth = 0
    for line in _normal(text, noise_patterns).splitlines():
        tokens = _TOKEN.findall(line)
        inside = []
        for token in tokens:
            depth = max(0, depth + (token == "[") - (token == "]"))
            inside.append(depth > 0)
        sizes = (abs(float(token)) for token, within in zip(tokens, inside, strict=True) if within and _is_float(token))
        scale = max((size for size in sizes if math.isfinite(size)), default=0.0)
        yield from ((token, scale if within else 0.0) for token, within in zip(tokens, inside, strict=True))


def _kind(token: str) -> str:
    """Return what must be the same for two tokens to be compared as numbers: of one that is none, itself."""
    return "float" if _is_float(token) else "int" if _NUMBER.fullmatch(token) else token


def _is_float(*tokens: str) -> bool:
    return all(_NUMBER.fullmatch(token) and _FLOAT.match(token) for token in tokens)


def _near(old: str, new: str, scale: float, tolerance: float) -> bool:
    a, b = float(old), float(new)
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    near = tolerance * max(abs(a), abs(b), ARRAY_SCALE_FACTOR * scale)
    return abs(a - b) <= near + 1.001 * min(_last_digit(old), _last_digit(new))


def _last_digit(number: str) -> float:
    """Return the value of one unit in the last digit of a rounded number; 0 if too few digits are printed."""
    mantissa, _, exponent = number.partition("e")
    if len(re.sub(r"\D", "", mantissa).lstrip("0")) < 3:
        return 0.0
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))


def _apart(old: list[str], new: list[str]) -> tuple[float, float]:
    """The largest absolute and the largest relative difference between the numbers of two texts."""
    pairs = [(float(a), float(b)) for a, b in zip(old, new, strict=True) if a != b]
    finite = [(abs(a - b), abs(a)) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]
    return max((d for d, _ in finite), default=math.inf), max(
        (d / a if a else math.inf for d, a in finite), default=0.0
    )


def _replaced(old: list[str], new: list[str]) -> str:
    """The first words that differ, as ``old → new``."""
    same = os.path.commonprefix([old, new])  # the matcher would take long for a common beginning
    old, new = old[len(same) :], new[len(same) :]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what != "equal":
            before, after = (" ".join(words[:6]) for words in (old[i1:i2], new[j1:j2]))
            return (
                f"“{before}” → “{after}”"
                if before and after
                else f"without “{before}”"
                if before
                else f"with “{after}”"
            )
    raise AssertionError("the texts are the same")


def _diff(old: str, new: str) -> str:
    """The lines of two texts that differ, each after a minus or a plus."""
    if old == new:  # as nearly always: a build compares all its blocks
        return ""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
