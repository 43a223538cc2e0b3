"""The site as MkDocs's configuration describes it: its pages, and the order in which a reader meets them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pathspec import GitIgnoreSpec

from livepages.course.pages import find_pages
from livepages.course.site_paths import SitePaths, place
from livepages.execution import Failure
from livepages.source import Project, ProjectError, read_configuration


@dataclass(frozen=True)
class NavSection:
    """A titled group of pages, those of its sections included; pages outside any are in parts without a title."""

    title: str
    pages: tuple[Path, ...]


@dataclass(frozen=True)
class Course:
    """The site as its configuration describes it."""

    docs: Path
    pages: tuple[Path, ...] = ()  # the files of all pages, in a fixed order
    parts: tuple[NavSection, ...] = ()
    name: str = ""
    description: str = ""
    url: str = ""  # where the site is published; empty if not configured
    repository: str = ""  # owner/name, on whose branch `notebooks` the built notebooks are; empty where there is none
    site: str = "site"  # the folder that it is built in, relative to that of its configuration
    directory_urls: bool = True  # whether each page has a folder of its own in the site
    places: Mapping[Path, SitePaths] = field(default_factory=dict)  # of pages, where plugins may have moved them
    texts: Mapping[Path, bytes] = field(default_factory=dict)  # of pages that plugins have made

    @cached_property
    def text(self) -> str:
        """The course as text, faster to compare; without the folder of the site, which `mkdocs serve` makes anew."""
        return repr(replace(self, site=""))

    def place(self, page: Path) -> SitePaths:
        """Return the paths of a file's page in the built site."""
        return self.places.get(page) or place(page.relative_to(self.docs).as_posix(), self.directory_urls)


def read_course(project: Project) -> Course:
    """The course of a project, by the file of its configuration; all pages and nothing else where there is none.

    Raises:
        ProjectError: the file, or one that it inherits from, cannot be read; or as for `make_course`.
    """
    return make_course(project, read_configuration(project.mkdocs) if project.mkdocs.exists() else {})


def make_course(project: Project, settings: Mapping[str, object], drafts: bool = False) -> Course:
    """The course of a project.

    Args:
        project: the project.
        settings: the configuration of MkDocs, as read from its file or as MkDocs holds it.
        drafts: whether the files of `draft_docs` are pages, as they are while serving.

    Raises:
        ProjectError: a setting is not what MkDocs takes.
    """

    def text(name: str, values: Mapping[str, object] = settings) -> str:
        value = values.get(name)
        if not isinstance(value, str | None):
            raise ProjectError(f"{project.mkdocs}: {name}: {value!r} is not text")
        return value or ""

    extra, nav = settings.get("extra") or {}, settings.get("nav")
    if not isinstance(extra, Mapping):
        raise ProjectError(f"{project.mkdocs}: extra: {extra!r} is not a mapping")
    excluded = _patterns(project, settings, "exclude_docs")
    hidden = _patterns(project, {} if drafts else settings, "draft_docs")
    pages = tuple(find_pages(project.docs, excluded, hidden))
    if nav is None:
        parts = [NavSection("", pages)]
    elif isinstance(nav, list):
        parts = [_part(project, entry) for entry in nav]
    else:
        raise ProjectError(f"{project.mkdocs}: nav: {nav!r} is not a list")
    return Course(
        docs=project.docs,
        pages=pages,
        parts=tuple(parts),
        name=text("site_name"),
        description=text("site_description"),
        url=text("site_url"),
        repository=text("repository", extra),
        site=text("site_dir") or "site",
        directory_urls=settings.get("use_directory_urls") is not False,
    )


def clashes(course: Course, project: Project) -> list[Failure]:
    """Return a failure for each page that would replace another one in the built site."""
    first: dict[str, Path] = {}
    found = []
    for page in course.pages:
        html = course.place(page).html
        if page not in course.texts and (other := first.setdefault(html, page)) != page:
            message = f"this page and {project.name(other)} are both built to {html}; rename one of them"
            found.append(Failure(project.name(page), 1, 0, message))
    return found


def _part(project: Project, entry: object) -> NavSection:
    title, content = next(iter(entry.items())) if isinstance(entry, dict) and len(entry) == 1 else ("", entry)
    pages = tuple(project.docs / name for name in _names(project, content))
    return NavSection("" if isinstance(content, str) else str(title), pages)


def _names(project: Project, entry: object) -> Iterator[str]:
    """The pages, and the addresses elsewhere, that an entry of the navigation leads to, in order."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, list | dict):
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from _names(project, inner)
    else:
        raise ProjectError(f"{project.mkdocs}: nav: {entry!r} is neither a page nor a section")


def _patterns(project: Project, settings: Mapping[str, object], name: str) -> GitIgnoreSpec:
    value = settings.get(name)
    if isinstance(value, GitIgnoreSpec):  # MkDocs has read them
        return value
    if not isinstance(value, str | None):
        raise ProjectError(f"{project.mkdocs}: {name}: {value!r} is not text of one pattern a line")
    try:
        return GitIgnoreSpec.from_lines((value or "").splitlines())
    except ValueError as error:
        raise ProjectError(f"{project.mkdocs}: {name}: {error}") from None
