"""Values in sentences: `` `{python} expression` `` in prose, which shows what the expression gives at its place."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from livepages.source.fences import CONTAINER, Fence, LineError, is_indented_code

MARK = "{python}"


@dataclass(frozen=True)
class Value:
    """An expression in prose, and where its code span is: the line of the text, from 0, and the columns of that."""

    line: int
    columns: tuple[int, int]
    expression: str


# What hides a code span, in the order in which Markdown finds it: an escape, a comment, HTML that is taken as it is.
_SPAN = re.compile(
    r"(?P<hidden>\\[\\`]|<!--.*?(?:-->|\Z)|<(?P<tag>pre|script|style|textarea)\b.*?(?:</(?P=tag)>|\Z))"
    r"|(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)|`+",
    re.DOTALL | re.IGNORECASE,
)
# Markdown reads each paragraph, item, row and heading by itself: no code span goes on in the next.
_BEGINS = re.compile(rf"[> \t]*(?:$|[|#]|{CONTAINER.pattern})")


def find_values(
    lines: Sequence[str], origin: Sequence[int], fences: Iterable[Fence], faults: list[LineError]
) -> Iterator[Value]:
    """Yield the values in the prose of a page, in order.

    Args:
        lines: the page's, after includes.
        origin: for each of them its line in the page.
        fences: all fences in them.
        faults: to which each value is added that cannot be taken.
    """
    if not any(MARK in line for line in lines):
        return
    inside = {number for fence in fences for number in range(fence.start, fence.end)}
    prose = ["" if number in inside else line for number, line in enumerate(lines)]
    unquoted = [re.sub(r"^ {0,3}(> ?)+", "", line) for line in prose]
    for first, text in _parts(prose):
        for match in _SPAN.finditer(text):
            code = match["code"] or ""
            if match["ticks"] != "`" or not re.match(rf"{re.escape(MARK)}\s", code):
                continue
            before = text[: match.start()]
            line = first + before.count("\n")
            if is_indented_code(unquoted, line):
                continue
            start = len(before) - (before.rfind("\n") + 1)
            value = Value(line, (start, start + len(match[0])), code.removeprefix(MARK).strip())
            if message := _wrong(value, lines[line]):
                faults.append(LineError(origin[line], f"`{' '.join(code.split())}`: {message}"))
            else:
                yield value


def _parts(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text that a code span or a comment can't leave, each with the number of its first line."""
    first, part = 0, ""
    for number, line in enumerate(lines):
        if part and _BEGINS.match(line) and not _is_open(part):
            yield first, part
            part = ""
        first = first if part else number
        part += f"{line}\n"
    yield first, part


def _is_open(part: str) -> bool:
    """Return whether a comment, or HTML that is taken as it is, has begun and not ended yet."""
    found = [match for match in _SPAN.finditer(part) if match["hidden"]]
    return bool(found) and found[-1].end() == len(part)


def _wrong(value: Value, line: str) -> str:
    """Return what is wrong with a value on a line; empty if nothing is."""
    if "\n" in value.expression:
        return "write a value on one line"
    try:
        ast.parse(value.expression, mode="eval")
    except (SyntaxError, ValueError) as error:
        return f"is not an expression: {error.msg if isinstance(error, SyntaxError) else error}"
    if re.match(r"#\s", line):
        return "the title of a page holds no value: it is needed before the page runs"
    if re.match(r"#{2,6}\s", line) and not re.search(r"\{[^}]*#[\w.-]+[^}]*\}\s*$", line):
        return "a heading with a value has an id of its own, as { #name }: its address must not change with the value"
    return ""
