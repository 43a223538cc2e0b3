"""Tables of contents as https://llmstxt.org describes them: one of the site, and one of each of its parts."""

from collections.abc import Iterable
from dataclasses import dataclass

from markdown.extensions.toc import slugify, unique

from livepages.execution import count

LIMIT = 15_000  # bytes of the site's, so that a program can read it whole before it begins
WHOLE = "llms-full.txt"


@dataclass(frozen=True)
class ListedPage:
    """A page: its title, the address of its Markdown, its summary, and its questions with their anchors."""

    title: str
    address: str
    summary: str
    questions: tuple[tuple[str, str], ...] = ()

    @property
    def short(self) -> str:
        """The page in a line, without its summary."""
        return f"- [{self.title}]({self.address})"

    @property
    def line(self) -> str:
        """The page in a line."""
        return f"{self.short}: {self.summary}" if self.summary else self.short

    @property
    def lines(self) -> str:
        """The page, and its questions below it."""
        return "\n".join([self.line, *(f"  - [{title}]({self.address}#{anchor})" for title, anchor in self.questions)])


def contents(head: str, base: str, parts: Iterable[tuple[str, list[ListedPage]]]) -> dict[str, str]:
    """Return the texts of ``llms.txt`` and of a file for each part with a title, by their names.

    The file of a part has everything. The one of the site lists each page with its summary; where that is more
    than `LIMIT`, the longest part is listed by titles alone, or is a link to its file, and so on until all fits.

    Args:
        head: the beginning of the site's file: its name as a heading, and remarks on all pages.
        base: the address of the site, with a slash at its end; empty if unknown.
        parts: the titles of parts, empty for pages outside of any, and their pages, in order.
    """
    groups: dict[str, list[ListedPage]] = {}
    for title, entries in parts:
        groups.setdefault(title, []).extend(entries)
    groups = {title: entries for title, entries in groups.items() if entries}
    used: set[str] = set()
    files = {title: f"llms-{unique(slugify(title, '-') or 'part', used)}.txt" for title in groups if title}
    forms: dict[str, list[str]] = {}  # of each part, the shortest first
    for title, entries in groups.items():
        with_questions = any(entry.questions for entry in entries)
        link = (
            f"- [{count(len(entries), 'page')}{', with its questions' * with_questions}]({base}{files[title]})"
            if title
            else ""
        )
        lists = [[entry.short for entry in entries], [entry.line for entry in entries]]
        forms[title] = [link] * bool(title) + [
            "\n".join([*each, *[link] * (with_questions and bool(title))]) for each in lists
        ]

    def text() -> str:
        found = (f"## {title or 'Start here'}\n\n{form[-1]}" for title, form in forms.items())
        return "\n\n".join([head, *found, f"All pages in one file: [{WHOLE}]({base}{WHOLE})"]) + "\n"

    while len(text().encode()) > LIMIT and (long := [form for form in forms.values() if len(form) > 1]):
        max(long, key=lambda form: len(form[-1])).pop()
    name, _, about = head.partition("\n")
    return {"llms.txt": text()} | {
        file: "\n\n".join([f"{name}: {title}{about and chr(10)}{about}", "\n".join(e.lines for e in groups[title])])
        + "\n"
        for title, file in files.items()
    }
