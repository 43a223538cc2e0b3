"""The warnings of MkDocs of dead links, with the line of each and the new name of a page that was renamed."""

import logging
import posixpath
import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote, urlsplit

from livepages.course import Course
from livepages.source import Page, find_fences

_LINK = re.compile(r"Doc file '(?P<page>.+?)' contains an? .*?link '(?P<link>[^']+)'")  # of MkDocs' warnings


class LinkWarnings(logging.Filter):
    """Adds to MkDocs' warnings of dead links the line, and for a page that was renamed what to write.

    A build warns a page once of each link, even if it converts the page again, and once of each old name. Where
    MkDocs proposes another file of like name, the warning has the new name of the page. If no page says that it had the
    old name, but there was a page of that name, the warning says how to keep it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pages: dict[str, Page] = {}
        self._moved: dict[str, str] = {}
        self._reported: set[str] = set()
        self._was_page: Callable[[str], bool] = lambda name: False

    def begin(self, pages: Iterable[Page], course: Course, was_page: Callable[[str], bool]) -> None:
        """Note the pages of a build and their former names; `was_page` returns whether any page had a name."""
        self._reported.clear()
        self._was_page = was_page
        self._pages = {page.path.relative_to(course.docs).as_posix(): page for page in pages}
        moved = ((posixpath.normpath(old), new) for new, page in self._pages.items() for old in page.redirect_from)
        self._moved = {old: new for old, new in moved if old not in self._pages}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a warning is shown, with what to write in it."""
        found = _LINK.match(record.getMessage())
        if not found:
            return True
        name, link = found["page"], urlsplit(found["link"])
        old = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(link.path)))
        if new := self._moved.get(old):
            warning = f"{name} {old}"
            address = link._replace(path=posixpath.relpath(new, posixpath.dirname(name) or ".")).geturl()
            now = f"but {old} is now {new}: write '{address}', in other links of this page to it as well."
            record.msg, record.args = f"{found[0]}, {now}", ()
        else:
            warning = record.getMessage()
            if " is not found " in warning and self._was_page(old):
                how = f"write `redirect_from: [{old}]` into the front matter of the page that it is now"
                record.msg, record.args = f"{warning} There was such a page: if it was renamed, {how}.", ()
        repeated = warning in self._reported
        self._reported.add(warning)
        page = self._pages.get(name)
        if page and (line := _line_of_link(page, found["link"])):
            record.msg, record.args = f"{page.name}:{line}: {record.getMessage()}", ()
        return not repeated


def _line_of_link(page: Page, link: str) -> int | None:
    """Return the first line of a page with a link; None if an extension or a plugin has made the link."""
    written = re.compile(rf"""(?:\(|\]:|=)\s*[<"']?{re.escape(link)}(?=[\s)>"']|$)""")
    fences = find_fences(page.text, page.origin, [])
    code = {number for fence in fences for number in range(fence.start, fence.end)}
    found = (at for at, line in enumerate(page.text) if at not in code and written.search(line))
    return next((page.origin[at] for at in found), None)
