"""The words of prose on the pages of the course.

    python -m tests.site.words  # each page with its number of words, the longest first, then the median

Prose is what a reader reads as sentences, headings and tables: a page without its front matter, fences, HTML comments
and tags, formulas in blocks, and the addresses of its links. Solutions of exercises count, and so do footnotes. A span
of code is one word, as an inline expression is. Files that a page includes do not count, and the map of the course is
no page of it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import yaml

from livepages.source import find_fences, find_project

COURSE = ("Get started", "Learn")  # sections of the navigation

_NO_PROSE = re.compile(
    r"(?P<code>(?P<ticks>`+).+?(?P=ticks))|"
    r"<!--.*?-->|^\$\$.*?^\$\$|^ *--8<--.*?$|^\*\[[^\]]+\]:.*?$|</?\w[^>]*>|\{[:#.][^}\n]*\}|\{ [#.][^}\n]*\}",
    re.DOTALL | re.MULTILINE,
)
_ADDRESS = re.compile(r"\]\([^()\s]*(?:\([^()\s]*\))?[^()\s]*\)|\]\[[^\]]*\]")
_WORD = re.compile(r"\w[\w'’.,/+*^:-]*")


def words(text: str) -> int:
    """The number of words of prose in the Markdown of a page."""
    lines = text.split("\n")
    if lines[0] == "---":
        lines = lines[lines.index("---", 1) + 1 :]
    for fence in find_fences(tuple(lines), list(range(1, len(lines) + 1))):
        lines[fence.start : fence.end] = [""] * (fence.end - fence.start)
    prose = _NO_PROSE.sub(lambda found: "code" if found["code"] else "", "\n".join(lines))
    prose = _ADDRESS.sub("]", prose)
    return len(_WORD.findall(prose))


def course_pages() -> dict[str, int]:
    """The number of words of each page of the course, by its name."""
    project = find_project(Path(__file__))
    navigation = yaml.load((project.root / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"]
    course = [part for section in navigation for title, part in section.items() if title in COURSE]
    names = (name for name in _leaves(course) if name != "learn.md")
    return {name: words((project.docs / name).read_text(encoding="utf-8")) for name in names}


def _leaves(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    else:
        for inner in part.values() if isinstance(part, dict) else part:  # type: ignore[attr-defined]
            yield from _leaves(inner)


if __name__ == "__main__":
    counted = course_pages()
    for name, count in sorted(counted.items(), key=lambda item: -item[1]):
        print(f"{count:6} {name}")
    print(f"{median(counted.values()):6.0f} median of {len(counted)}")
