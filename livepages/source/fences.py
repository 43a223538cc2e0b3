"""The fences of a page, as pymdownx.superfences would find them."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from markdown import Markdown
from pymdownx.superfences import SuperFencesBlockPreprocessor

PYTHON = ("python", "py")


class LineError(Exception):
    """A line of a file, from 1, that has an error."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line, self.message = line, message


@dataclass(frozen=True)
class Fence:
    """A fence in the text after includes: line numbers from 0, `end` past the closing fence."""

    start: int
    end: int
    prefix: str  # blanks and quote marks before it
    info: str
    content: tuple[str, ...]
    comment: range | None = None  # the lines of the HTML comment that hides it

    @property
    def language(self) -> str:
        """The first word of the info string, in lower case."""
        return re.split(r"[\s{]", self.info, maxsplit=1)[0].lower().lstrip(".")


class FenceFinder(SuperFencesBlockPreprocessor):  # type: ignore[misc]  # (pymdownx has no types)
    """The reader of pymdownx.superfences, which here notes the fences that it finds and replaces none.

    Args:
        md: has the extension.
    """

    def __init__(self, md: Markdown) -> None:
        super().__init__(md)
        extension: Any = md.preprocessors["fenced_code_block"]
        self.config, self.extension = extension.config, extension.extension
        self.found: list[tuple[Fence, str, dict[str, Any]]] = []  # with its language, and its options
        # The opening line of each that turns out to be none, with the line that ended it; None for the end of the text.
        self.abandoned: dict[int, int | None] = {}
        self._number = self._opening = -1
        self.fence: Any = None  # the marker of the one that is open

    def find(self, lines: Iterable[str]) -> list[tuple[Fence, str, dict[str, Any]]]:
        """Return the fences of a text, each with its language and what its validator made of its options."""
        self.run(list(lines))
        if self.fence is not None:
            self.abandoned[self._opening] = None
        return self.found

    def parse_whitespace(self, line: str) -> str:
        """Note that this line may be an opening one."""
        self._number += 1
        self._opening = self._number
        return str(super().parse_whitespace(line))

    def parse_fence_line(self, line: str) -> tuple[str, str]:
        """Note that this line is inside a fence, or ends it."""
        self._number += 1
        ws, content = super().parse_fence_line(line)
        return ws, content

    def process_nested_block(self, ws: str, content: str, start: int, end: int) -> None:
        """Note a fence that has come to its end."""
        info = self.first[len(self.ws) + len(self.fence) :].strip()
        inside = tuple(line[self.ws_virtual_len :] for line in self.code)
        self.found.append((Fence(start, end, self.ws, info, inside), self.lang or "", self.options))
        self.fence = None
        self.clear()

    def clear(self) -> None:
        """Forget the open fence, if there is one: it turns out to be none."""
        if self.fence is not None:
            self.abandoned[self._opening] = self._number
        super().clear()


@cache
def _superfences() -> Markdown:
    """The extension, with any options and languages."""
    anything = {"name": "*", "class": "", "validator": lambda *_: True}
    return Markdown(
        extensions=["pymdownx.superfences"],
        extension_configs={"pymdownx.superfences": {"custom_fences": [anything]}},
    )


# A line that may begin with code in the text, but not with a fence of Python.
_LIKE_A_FENCE = re.compile(r"[> \t]*(`{3,}|~{3,})\s*(?:(?:python|py)\b|(?!.*\1)\S)")


def find_fences(
    lines: tuple[str, ...], origin: Sequence[int], errors: list[LineError] | None = None
) -> Iterator[Fence]:
    """Yield each fence of the lines after includes, which come from the lines `origin` of the page.

    Args:
        lines: the lines.
        origin: for each of them its line in the page.
        errors: to which the first line is added that a renderer would not read as a fence; only those above are found.

    Raises:
        LineError: there is such a line, and `errors` is None.
    """
    finder = FenceFinder(_superfences())
    fences = [fence for fence, _, _ in finder.find(lines)]
    faults: dict[int, str] = {}  # by line
    for start, abandoned_at in finder.abandoned.items():
        if abandoned_at is None:
            faults[start] = "the fence is not closed"
        else:
            faults[abandoned_at] = f"the fence of line {origin[start]} ends here: indented less than it"
    inside = {number for fence in fences for number in range(fence.start, fence.end)}
    comments: dict[int, range] = {}  # by each of their lines
    for number, line in enumerate(lines):
        if number in inside:
            continue
        if number not in comments and re.match(r"\s*<!--(?!.*-->)", line):
            comment = range(number, _closing(lines, number))
            comments |= dict.fromkeys(comment, comment)
        if number not in finder.abandoned and _LIKE_A_FENCE.match(line):
            faults[number] = f"not a fence as Markdown has them: {line.strip()}"
    for fence in fences:
        if fence.language in PYTHON and _is_text(lines, fence):
            faults.setdefault(fence.start, "an indented fence outside a list, tab or admonition is shown as text")
    end = min(faults, default=len(lines))
    if faults:
        fault = LineError(origin[end], faults[end])
        if errors is None:
            raise fault
        errors.append(fault)
    yield from (replace(fence, comment=comments.get(fence.start)) for fence in fences if fence.end <= end)


CONTAINER = re.compile(r"(?:!!!|\?\?\?\+?|===[!+]*|///|[-*+]|\d+[.)]|\[\^[^\]]+\]:|:)(?:\s|$)")


def _closing(lines: tuple[str, ...], start: int) -> int:
    """Return the number of the line after the comment that begins on a line."""
    return next((number + 1 for number in range(start, len(lines)) if "-->" in lines[number]), len(lines))


def _is_text(lines: tuple[str, ...], fence: Fence) -> bool:
    """Return whether a fence is indented and outside a list, tab or admonition."""
    before = lines[fence.start].partition("`")[0].partition("~")[0]
    return ">" not in before and not _is_contained(lines, fence.start, len(fence.prefix))


def fenced(text: str, language: str) -> str:
    """Text in a fence that is longer than any in it."""
    text = text.rstrip("\n")
    ticks = max([2, *(len(run) for run in re.findall("`+", text))]) + 1
    return f"{'`' * ticks}{language}\n{text}\n{'`' * ticks}"


def with_bare_fences(lines: Iterable[str]) -> list[str]:
    """Return lines whose fences have their languages alone, and end: Markdown shows others as text."""
    found = []
    marker = ""
    for line in lines:
        fence = re.match(r"([> \t]*)(`{3,}|~{3,})\s*([\w+-]*)", line)
        opens = fence is not None and not marker
        if fence and opens:
            marker = fence[2]
        elif fence and not fence[3] and fence[2].startswith(marker):
            marker = ""
        found.append(fence[0] if fence and opens else line)
    return [*found, marker] if marker else found


def is_indented_code(lines: Sequence[str], number: int) -> bool:
    """Return whether Markdown shows a line as code because it is indented."""
    # To where the paragraph begins, whose other lines may be indented as they like.
    while number > 0 and re.match(r"\s*[^\s#]", lines[number - 1]) and not CONTAINER.match(lines[number].lstrip()):
        number -= 1
    return not _is_contained(lines, number, _indent(lines[number]), 8)


def _is_contained(lines: Sequence[str], number: int, width: int, less: float = math.inf) -> bool:
    """Return whether a line so indented is in a list, tab or admonition, and in each indented by less than `less`."""
    indent = width
    while indent >= 4 and number > 0:
        number -= 1
        if not lines[number].strip() or _indent(lines[number]) >= indent:
            continue
        # What a list item says may go on in lines that are indented less.
        while not CONTAINER.match(lines[number].lstrip()):
            number -= 1
            if number < 0 or not lines[number].strip():
                return False
        if indent - _indent(lines[number]) >= less:
            return False
        indent = _indent(lines[number])
    return indent < 4


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())
