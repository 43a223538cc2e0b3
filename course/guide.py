"""The guide of the course: the line under a page's title, the map of the course, the index of names.

Pages say in their front matter what they are about, and which pages to read before them::

    description: "A sentence."
    before: [basics/arrays.md]
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from posixpath import relpath
from urllib.parse import quote
from xml.etree.ElementTree import Element

from course import examiner
from course.less import hint_sparingly, without_marks
from livepages.course import Guide, Stash
from livepages.execution import Failure, count
from livepages.source import Page, PageNames, closest

WORDS_A_MINUTE = 200
BLOCKS_A_MINUTE = 4
MAP = "<!-- live: course -->"
INDEX = re.compile(r"<!-- live: names(?: (?P<but>-)?(?P<library>\w+))? -->")  # of all libraries, of one, of all but one


@dataclass(frozen=True)
class CourseGuide(Guide):
    """The pages of a course. Those that run nothing, and the home page, are about the course and no part of it."""

    def problems(self) -> list[Failure]:
        """A failure for each page to read first that is not a page."""
        docs = self.course.docs
        names = {path.relative_to(docs).as_posix() for path in self.course.pages}
        moved = {old: page.path.relative_to(docs) for page in self.pages.values() for old in page.redirect_from}

        def message(name: str) -> str:
            is_now = f"; it is now {moved[name].as_posix()}" if name in moved else closest(name, names)
            return f"before: {name} is not a page of {docs.name}{is_now}"

        return [
            Failure(page.name, line, 0, message(name))
            for page in self.pages.values()
            for name, line in _names(page)
            if name not in names
        ]

    def cache_key(self, page: Page) -> object:
        """Return a value that is equal for two guides that show the same of other pages on this one."""
        indexed = self.pages.values() if any(map(INDEX.fullmatch, page.text)) else ()
        uses = [
            (
                other.title,
                other.path,
                [(block.code, block.runs, _anchor(other, block.fence.start)) for block in other.blocks],
            )
            for other in indexed
        ]
        others = self.pages.values() if MAP in page.text else self._before(page)
        shown = [(other.title, other.description, other.path, minutes(other)) for other in others]
        return self.course.text, shown, uses

    def lines(self, page: Page, lines: list[str], updated: str, stash: Stash) -> list[str]:
        """A page's lines with the line under its title, and with the map or the index where the page wants it."""
        found = []
        for line in lines:
            if line == MAP:
                found += self._map(page)
            elif index := INDEX.fullmatch(line):
                found += self._index(page, index, stash)
            else:
                found.append(line)
        if not page.program or not any(page.path in part.pages for part in self.course.parts if part.title):
            return found
        title = next((section.start for section in page.sections if section.level == 1), len(page.text))
        if title > page.program[0].fence.start:
            return found
        facts = self._facts(page, updated, stash)
        masthead = ["", stash('<div class="live-masthead" data-search-exclude>'), "", facts, "", stash("</div>"), ""]
        return [*found[: title + 1], *masthead, *found[title + 1 :]]

    def more_downloads(self, page: Page) -> str:
        """Return a link that opens the page in Colab, where its notebooks are published, as HTML."""
        if not self.course.repository:
            return ""
        notebook = f"{self.course.repository}/blob/notebooks/{quote(self.course.place(page.path).notebook)}"
        return f', <a href="https://colab.research.google.com/github/{notebook}">Colab</a>'

    def tree(self, root: Element) -> None:
        """Have the theme show hints only where they help."""
        hint_sparingly(root)

    def html(self, html: str) -> str:
        """Return a page's HTML without parts that are long and carry no information."""
        return without_marks(html)

    def files(self) -> dict[str, str]:
        """Return the files for kernels and for programs that write JAX, and the script that upgrades old code."""
        snippets = self.course.docs.parent / "snippets"
        found = {examiner.NAME: examiner.program(snippets / "examiner")} if (snippets / "examiner").is_dir() else {}
        if not (snippets / "idioms.toml").is_file():
            return found  # the pages are of a test's own
        from course import jax_now, names

        explained: dict[str, tuple[str, str]] = {}
        for entry in self._entries:
            page, line = entry.place
            place = (self.course.place(page.path).url or "./") + _anchor(page, line), page.title
            explained |= dict.fromkeys(entry.names, place)
        url = self.course.url and self.course.url.rstrip("/") + "/"
        found |= jax_now.files(self.pages.values(), url)
        found["names.json"] = names.names_json(self.inventory, explained)
        found["libraries.json"] = names.libraries_json(self.inventory, explained)
        return found

    def _facts(self, page: Page, updated: str, stash: Stash) -> str:
        facts = [count(minutes(page), "minute")]
        if updated:
            facts.append(f"changed {updated}")
        if page.settings.settings_summary:
            facts.append(page.settings.settings_summary)
        if first := self._before(page):
            facts.append("read first: " + ", ".join(_link(page, other) for other in first))
        return (
            stash('<span class="live-fact">') + stash('</span><span class="live-fact">').join(facts) + stash("</span>")
        )

    def _before(self, page: Page) -> list[Page]:
        files = [self.course.docs / name for name, _ in _names(page)]
        return [self.pages[file] for file in files if file in self.pages]

    def _map(self, here: Page) -> list[str]:
        lines = []
        for part in self.course.parts:
            pages = [self.pages[path] for path in part.pages if path in self.pages and self.pages[path].program]
            if not part.title or not pages:
                continue
            total = sum(map(minutes, pages))
            lines += ["", f"## {part.title}", "", f"{count(len(pages), 'page')}, {count(total, 'minute')}.", ""]
            for number, page in enumerate(pages, 1):
                first = ", ".join(_link(here, other) for other in self._before(page))
                after = f" After {first}." if first else ""
                lines.append(
                    f"{number}. **{_link(here, page)}** {page.description} *{count(minutes(page), 'minute')}.*{after}"
                )
        return [*lines, ""]

    def _index(self, here: Page, wanted: re.Match[str], stash: Stash) -> list[str]:
        """Every documented name that the pages' code uses, and in which section of a page first."""
        lines: list[str] = []
        library = ""
        for entry in self._entries:
            if wanted["library"] and (entry.library == wanted["library"]) == bool(wanted["but"]):
                continue
            lines += ["", f"## {entry.library}", ""] if entry.library != library else []
            lines += entry.lines(here, stash)
            library = entry.library
        return lines

    @cached_property
    def _entries(self) -> list["_IndexEntry"]:
        entries: dict[str, _IndexEntry] = {}  # by address, which several names of one thing share
        for page in (self.pages[path] for part in self.course.parts for path in part.pages if path in self.pages):
            for block, uses in PageNames(page, self.inventory).blocks:
                for use in uses:
                    if use.address and use.name not in self.inventory.modules:
                        place = page, block.fence.start
                        entries.setdefault(use.address, _IndexEntry(use.address, place)).names.append(use.name)
        return sorted(entries.values(), key=lambda entry: (entry.library, entry.name.lower()))


@dataclass
class _IndexEntry:
    """One thing in the index."""

    address: str
    place: tuple[Page, int]  # that uses it first, and its line; with all of them the index is half as large again
    names: list[str] = field(default_factory=list)  # as used

    @property
    def name(self) -> str:
        """Of its names the one that its reference has, else the first that is used."""
        return next((name for name in self.names if name in self.address), self.names[0])

    @property
    def library(self) -> str:
        return self.name.partition(".")[0]

    def lines(self, here: Page, stash: Stash) -> list[str]:
        """The entry as Markdown."""
        # As HTML: a heading in Markdown gets a link to itself, which hundreds of entries make heavy.
        heading = stash(f'<div class="live-entry"><h3 id="{self.name}"><code>{self.name}</code></h3>')
        place = f"{_link(here, *self.place)}; [reference]({self.address})"
        return ["", heading, "", place, "{ data-search-exclude }", "", stash("</div>"), ""]


def minutes(page: Page) -> int:
    """Return the minutes that reading takes: the prose at a usual pace, and a fixed time for every shown block."""
    inside = {line for block in page.blocks for line in range(block.fence.start, block.fence.end)}
    words = sum(len(line.split()) for number, line in enumerate(page.text) if number not in inside)
    shown = sum(block.options.source != "none" for block in page.blocks)
    return max(1, round(words / WORDS_A_MINUTE + shown / BLOCKS_A_MINUTE))


def _names(page: Page) -> list[tuple[str, int]]:
    """The names of the pages to read first, each with its line."""
    names = page.meta.get("before", [])
    assert isinstance(names, list)
    return [(name, page.settings.lines["before"]) for name in names]


def _link(page: Page, other: Page, line: int = 0) -> str:
    """A link from a page to another, to the section of a line of its text."""
    return f"[{other.title}]({relpath(other.path.as_posix(), page.path.parent.as_posix())}{_anchor(other, line)})"


def _anchor(page: Page, line: int) -> str:
    """Return the fragment of a link to the section that holds a line of a page's text."""
    section = next((section for section in reversed(page.sections) if section.start < line), None)
    return f"#{section.anchor}" if section and section.level > 1 else ""
