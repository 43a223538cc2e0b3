"""The lines of a page after includes, and the fences in them, as pymdownx.superfences would find them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from markdown import Markdown
from pymdownx.snippets import SnippetExtension, SnippetMissingError, SnippetPreprocessor

PYTHON = ("python", "py")


class LineError(Exception):
    """A line of the page, from 1, that cannot be taken as it is."""

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


class _Snippets(SnippetPreprocessor):  # type: ignore[misc]  # (pymdownx has no types)
    """As of pymdownx, which leaves out a file that is included in itself; here that is an error."""

    @property
    def seen(self) -> set[str]:
        """The files that are being included, each inside the one before."""
        return self._seen

    @seen.setter
    def seen(self, files: set[str]) -> None:
        self._seen = _Stack(files)


class _Stack(set[str]):
    def __contains__(self, file: object) -> bool:
        if super().__contains__(file):
            raise ValueError(f"{file} includes itself, directly or through a file that it includes")
        return False


def expand(lines: list[str], snippets: Path) -> Iterator[tuple[str, int]]:
    """The lines after includes, each with its line number (from 1) in the page."""
    preprocessor: _Snippets | None = None
    for number, directive in _directives(lines):
        if "8<-" not in directive[0]:
            yield directive[0], number
            continue
        if preprocessor is None:
            extension = SnippetExtension(base_path=[str(snippets)], check_paths=True, dedent_subsections=True)
            preprocessor = _Snippets(extension.getConfigs(), Markdown())
        try:
            for line in preprocessor.run(directive):
                yield line, number
        except SnippetMissingError as error:
            where = f"{snippets.name}, the folder that [tool.livepages] snippets names"
            raise LineError(number, f"include: {error} in {where}") from None
        except (OSError, ValueError) as error:
            raise LineError(number, f"include: {error}") from None


@lru_cache(maxsize=512)  # while serving, most pages stay what they are
def includes(text: str) -> frozenset[str]:
    """The names of the files that a page includes, without their sections."""
    found: set[str] = set()
    for _, directive in _directives(text.splitlines()):
        names = directive[1:-1] or re.findall(r"-+8<-+\s+[\"']([^\"']+)", directive[0])
        found |= {name.strip().partition(":")[0] for name in names}
    return frozenset(found)


def _directives(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Each line on its own, except that a ``--8<--`` block of several paths comes as one, with its first line."""
    several: list[str] = []
    first = 0
    for number, line in enumerate(lines, 1):
        marker = "8<" in line and re.fullmatch(r"[ \t]*-+8<-+[ \t]*", line)
        if several:
            several.append(line)
            if marker:
                yield first, several
                several = []
        elif marker:
            several, first = [line], number
        else:
            yield number, [line]
    if several:
        raise LineError(first, "include: the --8<-- block is not closed")


# As pymdownx.superfences has it: any mix of quote marks and blanks, then the fence.
_OPENING = re.compile(r"""(?P<prefix>[> \t]*)(?P<fence>`{3,}|~{3,})(?P<info>(?:[^`"'\n]|"[^"\n]*"|'[^'\n]*')*)""")
_CONTAINER = re.compile(r"(?:!!!|\?\?\?\+?|===[!+]*|///|[-*+]|\d+[.)]|\[\^[^\]]+\]:|:)(?:\s|$)")


def find_fences(lines: tuple[str, ...], origin: list[int]) -> Iterator[Fence]:
    """Each fence of the lines after includes, which come from the lines `origin` of the page.

    Raises:
        LineError: a renderer would not take this as a fence.
    """
    number = 0
    comment: range | None = None
    while number < len(lines):
        line = lines[number]
        if comment and number >= comment.stop:
            comment = None
        if not comment and re.match(r"\s*<!--(?!.*-->)", line):
            comment = range(number, _closing(lines, number))
        match = _OPENING.fullmatch(line)
        if not match:
            if re.match(r"[> \t]*(`{3,}|~{3,})\s*(python|py)\b", line):
                raise LineError(origin[number], f"not a fence as Markdown has them: {line.strip()}")
            number += 1
            continue
        start, prefix, marker, info = number, match["prefix"], match["fence"], match["info"].strip()
        width = len(prefix.expandtabs(4))
        content: list[str] = []
        for end in range(start + 1, len(lines)):
            inner = lines[end].expandtabs(4) if "\t" in lines[end][:width] else lines[end]
            head, tail = inner[:width], inner[width:]
            if tail.rstrip() == marker and not head.strip("> "):
                break
            if head.strip("> ") or (inner.strip("> ") and len(head) < width):
                raise LineError(origin[end], f"the fence of line {origin[start]} ends here: indented less than it")
            content.append(tail)
        else:
            raise LineError(origin[start], "the fence is not closed")
        fence = Fence(start, end + 1, prefix, info, tuple(content), comment)
        if fence.language in PYTHON:
            _check_container(lines, start, width, origin)
        yield fence
        number = end + 1


def _closing(lines: tuple[str, ...], start: int) -> int:
    """Return the number of the line after the comment that begins on a line."""
    return next((number + 1 for number in range(start, len(lines)) if "-->" in lines[number]), len(lines))


def _check_container(lines: tuple[str, ...], number: int, width: int, origin: list[int]) -> None:
    """Refuse an indented fence outside a list, tab or admonition, which Markdown shows as text."""
    start, indent = number, width
    if ">" in lines[number].partition("`")[0].partition("~")[0]:
        return
    while indent >= 4 and number > 0:
        number -= 1
        if not lines[number].strip() or _indent(lines[number]) >= indent:
            continue
        # What a list item says may go on in lines that are indented less.
        while not _CONTAINER.match(lines[number].lstrip()):
            number -= 1
            if number < 0 or not lines[number].strip():
                raise LineError(origin[start], "an indented fence outside a list, tab or admonition is shown as text")
        indent = _indent(lines[number])


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())
