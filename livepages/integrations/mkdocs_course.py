"""The course as MkDocs is about to build it, when plugins and hooks have added, moved and removed pages."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure import StructureItem
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page as MkDocsPage

from livepages.course import Course, NavSection, site_paths

_CHANGE_PAGES = ("files", "nav")  # the events in which plugins add, move and remove pages


def may_change(config: MkDocsConfig, plugin: object) -> bool:
    """Return whether any plugin or hook but this one may add, move or remove pages."""
    handlers = (handler for event in _CHANGE_PAGES for handler in config.plugins.events[event])
    return any(getattr(handler, "__self__", None) is not plugin for handler in handlers)


def changed_course(course: Course, files: Files, nav: Navigation, config: MkDocsConfig, serving: bool) -> Course:
    """Return a course with the pages that MkDocs builds, drafts too if it is serving, where it puts them."""
    docs = course.docs
    built = {
        docs / file.src_uri: file
        for file in files.documentation_pages()
        if (file.inclusion.is_in_serve() if serving else file.inclusion.is_included())
    }
    pages = tuple(sorted(built))
    return replace(
        course,
        pages=pages,
        parts=tuple(_parts(docs, nav.items)) if config.nav else (NavSection("", pages),),
        places={page: site_paths(file.dest_uri, file.url, page.stem) for page, file in built.items()},
        texts={page: file.content_bytes for page, file in built.items() if _is_made(page, file)},
    )


def _is_made(page: Path, file: File) -> bool:
    """Return whether a plugin has made the text of a page: its file is missing, or has other text."""
    if file.abs_src_path == str(page):
        return False
    return not page.is_file() or page.read_bytes() != file.content_bytes


def _parts(docs: Path, items: Iterable[StructureItem]) -> Iterator[NavSection]:
    for item in items:
        yield NavSection(item.title or "" if isinstance(item, Section) else "", tuple(_pages(docs, item)))


def _pages(docs: Path, item: StructureItem) -> Iterator[Path]:
    if isinstance(item, MkDocsPage):
        yield docs / item.file.src_uri
    for child in getattr(item, "children", None) or ():
        yield from _pages(docs, child)
