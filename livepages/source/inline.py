"""Inline expressions: `` `{python} expression` `` in prose, which the page replaces by the value of the expression."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from livepages.source.fences import CONTAINER, Fence, LineError, is_indented_code

MARK = "{python}"


@dataclass(frozen=True)
class InlineExpression:
    """An expression in prose, with the line of its code span in the text, from 0, and the columns in that line."""

    line: int
    columns: tuple[int, int]
    code: str


# Code spans, and what hides them, in the order in which Markdown finds them: an escape, a comment, HTML left alone.
_SPAN = re.compile(
    r"(?P<hidden>\\[\\`]|<!--.*?(?:-->|\Z)|<(?P<tag>pre|script|style|textarea)\b.*?(?:</(?P=tag)>|\Z))"
    r"|(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)|`+",
    re.DOTALL | re.IGNORECASE,
)
# Markdown reads each paragraph, item, row and heading by itself: no code span goes on in the next.
_BEGINS = re.compile(rf"[> \t]*(?:$|[|#]|{CONTAINER.pattern})")


def find_inline(
    lines: Sequence[str], origin: Sequence[int], fences: Iterable[Fence], faults: list[LineError]
) -> Iterator[InlineExpression]:
    """Yield the inline expressions of a page, in order.

    Args:
        lines: the page's, after includes.
        origin: for each of them its line in the page.
        fences: all fences in them.
        faults: to which each expression is added that cannot be taken.
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
            found = InlineExpression(line, (start, start + len(match[0])), code.removeprefix(MARK).strip())
            if message := _wrong(found, lines[line]):
                faults.append(LineError(origin[line], f"`{' '.join(code.split())}`: {message}"))
            else:
                yield found


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
    """Return whether a comment, or an HTML element whose content Markdown leaves alone, is still open."""
    found = [match for match in _SPAN.finditer(part) if match["hidden"]]
    return bool(found) and found[-1].end() == len(part)


def _wrong(found: InlineExpression, line: str) -> str:
    """Return what is wrong with an inline expression on a line; empty if nothing is."""
    if "\n" in found.code:
        return "write an inline expression on one line"
    try:
        ast.parse(found.code, mode="eval")
    except (SyntaxError, ValueError) as error:
        return f"is not an expression: {error.msg if isinstance(error, SyntaxError) else error}"
    if re.match(r"#\s", line):
        return "the title of a page holds no inline expression: it is needed before the page runs"
    if re.match(r"#{2,6}\s", line) and not re.search(r"\{[^}]*#[\w.-]+[^}]*\}\s*$", line):
        return (
            "a heading with an inline expression needs an id, as { #name }: its address must not change with the value"
        )
    return ""
