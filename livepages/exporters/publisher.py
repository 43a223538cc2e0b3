"""The pages' other forms, written into a built site: scripts, notebooks, Markdown, and what machines look for."""

import os.path
import posixpath
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from livepages.course import Course, SitePaths, history
from livepages.execution import Run
from livepages.exporters import kernel_bundle
from livepages.exporters.cells import pieces, split_cells, summary
from livepages.exporters.contents import WHOLE, ListedPage, contents
from livepages.exporters.download import Download
from livepages.exporters.feed import FeedEntry, feed
from livepages.exporters.markdown import front_matter, plain
from livepages.exporters.notebook import notebook
from livepages.exporters.script import script
from livepages.rendering import fill_inline_as_markdown
from livepages.source import MARKDOWN, Page, PageError, Project, ProjectError

# Returns the value of this kind and this page that was made before from equal things, or makes it; JSON can hold it.
Memo = Callable[[str, str, object, Callable[[], Any]], Any]


def no_memo(kind: str, name: str, given: object, make: Callable[[], Any]) -> Any:
    """Make the value, whatever was made before."""
    return make()


class SiteFolder:
    """The folder that holds a built site, in which a file of its author is never replaced."""

    def __init__(self, folder: Path, docs: Path, emptied: bool) -> None:
        """Note which files of the author are in it.

        Args:
            folder: the folder.
            docs: the folder of pages, whose other files programs copy.
            emptied: whether it was empty before the site was built, so that all its files are of this build.
        """
        self.folder, self._docs, self._emptied = folder, docs, emptied
        self.left: list[str] = []  # names of files of the author that would have been replaced

    def write(self, name: str, content: bytes) -> None:
        """Write a file of this name, unless the author has one."""
        file = self.folder / name
        copied = file.suffix not in MARKDOWN and (self._docs / name).is_file()
        emptied = self._emptied and not name.startswith(".")  # MkDocs leaves the hidden files of an earlier build
        if file.exists() and (emptied or copied):
            self.left.append(name)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


class Publication:
    """The pages' other forms, ``llms.txt`` and its parts, ``live-kernel.py`` and ``feed.xml``.

    Args:
        project: the project.
        course: its pages in order, and its name and address, without which there is no feed.
        ran: the pages that could be read, and the run of each.
        site: the folder that holds the built site.
        memo: returns the value that was made before from the same page.
    """

    def __init__(
        self, project: Project, course: Course, ran: Iterable[tuple[Page, Run]], site: SiteFolder, memo: Memo = no_memo
    ) -> None:
        self._project, self._course, self._site, self._memo = project, course, site, memo
        self._base = course.url.rstrip("/") + "/" if course.url else ""
        hidden = history.ignored(project)  # as a file that holds a key: it is not for readers
        self._ran = {
            page.path: (page, replace(run, files=tuple(name for name in run.files if name not in hidden)))
            for page, run in ran
        }
        self._places = {path: course.place(path) for part in course.parts for path in part.pages if path in self._ran}
        self._everywhere = course.text, "\n".join(map(str, self._places))  # where a link to any page leads

    @property
    def pages(self) -> list[Path]:
        """The files of the pages, in the order in which their forms are written."""
        return [*self._places]

    def write(self) -> list[PageError]:
        """Write everything.

        Returns:
            for each page that cannot be run elsewhere as it is, why; no form of it is written.

        Raises:
            ProjectError: the HTML of a page is not in the site.
        """
        for path, place in self._places.items():
            if not (self._site.folder / place.html).is_file():
                name = self._project.name(path)
                raise ProjectError(f"{self._site.folder}: holds no HTML of {name}; build the site there first")
        everything = []
        refused = []
        for path in self._places:
            try:
                whole, forms = self.forms(path)
            except PageError as error:
                refused.append(error)
                continue
            everything.append(whole)
            for name, text in forms.items():
                self._write(name, text)
        for name, text in self._contents().items():
            self._write(name, text)
        self._write(WHOLE, "\n".join(everything))
        self._write(
            kernel_bundle.NAME, kernel_bundle.kernel_bundle(self._project.runtime, history.commit(self._project))
        )
        if self._base:
            course = self._course
            self._write("feed.xml", feed(course.name, course.description, self._base, self._entries()))
        return refused

    def forms(self, path: Path) -> tuple[str, dict[str, str]]:
        """The part of a page, given by its file, of ``llms-full.txt``, and its forms by the names of their files.

        Raises:
            PageError: the page cannot be run elsewhere as it is.
        """
        page, run, place = *self._ran[path], self._places[path]
        url = self._base and self._base + quote(place.url)
        day = self._days[path]
        given = ((page, run), url, day, self._project, self._project.runtime.version_label, self._everywhere)

        def make() -> tuple[str, dict[str, str]]:
            links = self._links(attrgetter("url"), None if self._base else place.folder)
            made = programs(page, run, self._project, url, links) if page.program else {}
            forms = {getattr(place, form): text for form, text in made.items()}
            forms[place.markdown], anywhere = (
                plain(page, run, self._project.runtime, pieces(page, run, self._links(attrgetter("markdown"), start)))
                for start in (place.folder, None)
            )
            forms[place.markdown] = front_matter(page, run, self._project.runtime, url, day) + forms[place.markdown]
            return anywhere, forms

        whole, forms = self._memo("forms", page.name, given, make)
        return whole, forms

    def _contents(self) -> dict[str, str]:
        """The tables of contents for programs, by the names of their files."""
        course, days = self._course, self._days
        head = [f"# {course.name}", *([f"> {course.description}"] if course.description else [])]
        about = f"Every output is from {self._project.runtime.version_label}."
        head.append(f"{about} The last change is of {max(days.values())}." if any(days.values()) else about)
        parts = ((part.title, [self._entry(path) for path in part.pages if path in self._ran]) for part in course.parts)
        return contents("\n\n".join(head), self._base, parts)

    def _entry(self, path: Path) -> ListedPage:
        page, place = fill_inline_as_markdown(*self._ran[path]), self._places[path]
        questions = ((section.title, section.anchor) for section in page.sections if section.title.endswith("?"))
        return ListedPage(page.title, self._base + quote(place.markdown), summary(page), tuple(questions))

    @cached_property
    def _days(self) -> dict[Path, str]:
        """The day of the last change of each page; empty where no history knows."""
        changed = history.days(self._project)
        return {path: history.last_change(*self._ran[path], self._project, changed) for path in self._places}

    def _entries(self) -> Iterable[FeedEntry]:
        for path, place in self._places.items():
            page = fill_inline_as_markdown(*self._ran[path])
            if day := self._days[path]:
                yield FeedEntry(page.title, self._base + quote(place.url), day, summary(page))

    def _links(self, form: Callable[[SitePaths], str], start: str | None = None) -> Callable[[Path], str]:
        """Return the function that rewrites links: to this form of a page, from this folder or from anywhere."""

        def address(file: Path) -> str:
            if place := self._places.get(file):
                target = form(place)
            elif file.suffix in MARKDOWN and file.is_relative_to(self._project.docs):
                target = self._course.place(file).url  # a page in no list has no Markdown
            else:
                target = Path(os.path.relpath(file, self._project.docs)).as_posix()
            if start is None:
                return self._base + quote(target)
            return quote(posixpath.relpath(target or ".", start or ".") + ("/" if target.endswith("/") else ""))

        return address

    def _write(self, name: str, text: str) -> None:
        # What UTF-8 cannot hold may come from an error message.
        self._site.write(name, text.encode("utf-8", errors="backslashreplace"))


def programs(page: Page, run: Run, project: Project, url: str, address: Callable[[Path], str]) -> dict[str, str]:
    """The texts of the forms of a page that run, by their names in a `SitePaths`.

    Args:
        page: the page.
        run: the results of its blocks.
        project: the project that both belong to.
        url: where the page is published; empty if unknown.
        address: returns the target of a link to a file of the site.
    """
    download = Download(page, run, project, url)
    cells = split_cells(pieces(page, run, address))
    return {"script": script(download, cells), "notebook": notebook(download, cells)}
