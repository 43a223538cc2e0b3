"""Numbers in the prose of the pages that a block of the page prints.

    python -m tests.site.printed  # each of them, with its page and line

Such a number is written as an inline expression, `` `{python} f"{loss:.2f}"` ``: then it follows the output, and is tested.
What the hosts recorded counts as printed, so no page runs. Some numbers are no results, and stay as they are:

- a single digit, because most outputs contain it by chance;
- one in the visible code of the section: it is an input, which the sentence names;
- a version, a year, the width of a type (32 bits), a part of a name, and one in mathematics or in a heading;
- one in code, unless a block prints the whole of the code and no block has it as its own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from livepages.course import read_course
from livepages.records import Records
from livepages.source import Page, find_fences, find_project, read_page

_NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)(?!\.\d)")
# What has numbers that are no results, in Markdown without fences.
_OTHER = re.compile(
    r"<!--.*?-->|^\$\$.*?\$\$|\$[^$\n]+\$|^#.*?$|\]\([^)]*\)|<[^>\n]*>"
    r"|\b(?:jax|jaxlib|Python|NumPy|CUDA|since|until|in|by|on|and|or) v?\d+\.\d+(?:\.\d+)*\b|\b\d+\.\d+\.\d+[\d.]*"
    r"|\b(?:8|16|32|64)(?:-bit| bits)\b|\b20[23]\d\b",
    re.DOTALL | re.MULTILINE,
)
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Printed:
    """A number in prose that a block prints."""

    page: str
    line: int
    number: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.number}"


def printed(page: Page, records: Records) -> Iterator[Printed]:
    """The numbers in the prose of a page that a block of the page prints, as hosts recorded it."""
    if not (candidates := list(_candidates(page))):
        return  # without reading the records
    seen = records.seen(page)
    outputs = "\n".join(outcome.entry.text for block in page.program for outcome in seen(block))
    results = {_plain(found) for found in _NUMBER.findall(outputs)}
    for number, found, code in candidates:
        if _plain(found) in results and code in outputs:
            yield Printed(page.name, _line(page, number), found.rstrip(","))


def _candidates(page: Page) -> Iterator[tuple[int, str, str]]:
    """The numbers in the prose of a page that may be results: line of the text, number, the code that has it if any."""
    prose = _prose(page)
    visible = [block for block in page.blocks if block.options.source != "none"]
    programs = "\n".join(block.code for block in visible)
    starts = sorted({0, *(section.start for section in page.sections), len(prose)})
    for start, end in pairwise(starts):
        code = "\n".join(block.code for block in visible if start <= block.fence.start < end)
        inputs = {_plain(found) for found in _NUMBER.findall(code)}
        text = "\n".join(prose[start:end])
        parts = [(0, _CODE.sub(_blank, text), "")]
        parts += [(span.start(), span[1], span[1]) for span in _CODE.finditer(text) if span[1] not in programs]
        for place, part, code in parts:
            for match in _NUMBER.finditer(part):
                plain = _plain(match[0])
                if len(plain) > 1 and plain not in inputs and match[0] != code:
                    yield start + text.count("\n", 0, place + match.start()), match[0], code


def _prose(page: Page) -> list[str]:
    """The lines of a page, with blanks in the place of fences and of what has no results."""
    lines = list(page.text)
    for fence in find_fences(page.text, list(range(1, len(page.text) + 1))):
        lines[fence.start : fence.end] = [""] * (fence.end - fence.start)
    return _OTHER.sub(_blank, "\n".join(lines)).split("\n")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _plain(number: str) -> str:
    return re.sub(r"[,_]", "", number)


def _line(page: Page, number: int) -> int:
    """The line in the file of a line of the page's text, which has more lines where a file is included."""
    lines = page.source.split("\n")
    return lines.index(page.text[number]) + 1 if page.text[number] in lines else 1


def all_printed() -> list[Printed]:
    """`printed` of all pages of this site."""
    project = find_project(Path(__file__))
    records = Records(project)
    pages = (read_page(path, project) for path in read_course(project).pages)
    return [found for page in pages for found in printed(page, records)]


if __name__ == "__main__":
    for found in all_printed():
        print(found)
