"""The conversion of a page of MkDocs, skipped if everything that it depends on is unchanged."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page as MkDocsPage
from mkdocs.structure.toc import AnchorLink, TableOfContents
from mkdocs.utils import CountHandler

from livepages.integrations.build import Build
from livepages.integrations.build_cache import BuildCache

# Fences that markdown-exec runs while it converts: their output is unknown beforehand. By what says which of a
# site's Python fences run.
_EXECUTED = {
    "all": re.compile(r"^[> \t]*(`{3,}|~{3,})(?!python\b|py\b).*\bexec=", re.MULTILINE),
    "exec": re.compile(r"^[> \t]*(`{3,}|~{3,})[ \t{.]*(bash|console|sh)\b.*\bexec=", re.MULTILINE),
}

# Packages whose extensions make their HTML of the page's text and the site's settings alone; except for one, which puts
# pictures into the page. Others may depend on more: mkdocstrings reads modules, and passes what it finds to autorefs.
_KNOWN = ("livepages", "markdown", "material", "pymdownx")
_READS_FILES = "pymdownx.b64"
_LOGGER = logging.getLogger(MkDocsPage.__module__.partition(".")[0])  # of MkDocs or ProperDocs


def convert_once(
    page: MkDocsPage,
    build: Build,
    path: Path,
    build_cache: BuildCache,
    missed: Callable[[MkDocsPage, MkDocsConfig, Files], None],
    failed: Callable[[str], str] | None = None,
) -> None:
    """Replace the page's `render` by one that converts only new text, if the extensions of the site allow it.

    `missed` is called if the HTML of no earlier build is kept, though it could be. `failed` makes HTML of the message
    of an exception, which is raised otherwise.
    """
    convert, warned = page.render, False

    def render(config: MkDocsConfig, files: Files) -> None:
        nonlocal warned  # also if this build has converted the page before: it does not repeat every warning
        addresses = sorted(f"{file.src_uri} {file.url}" for file in files)
        given = page.markdown, page.meta, build.cache_key(path, page.markdown or ""), "\n".join(addresses)
        counted = _LOGGER.isEnabledFor(logging.WARNING)  # otherwise, as with --quiet, a page with warnings may be kept
        appended = [file.read_text(encoding="utf-8", errors="replace") for file in appended_files(config)]
        key = build_cache.key([*given, appended, counted])
        executed = _EXECUTED[build.engine.project.fences]
        once = not executed.search(page.markdown or "") and all(map(_makes_all_of_text, config.markdown_extensions))
        if once:
            if (known := build_cache.get("pages", page.file.src_uri, key)) and _restore(page, known, files):
                return
            missed(page, config, files)
        faults = len(build.failures)
        with _warnings_counted() as warnings:
            try:
                convert(config, files)
            except Exception as error:  # of any extension, over a page that is half written
                if failed is None:
                    raise
                page.content = failed(f"cannot be shown: {type(error).__name__}: {error}")
                return
        warned |= bool(warnings.get_counts())
        if once and not warned and len(build.failures) == faults:
            build_cache.put("pages", page.file.src_uri, key, _state(page))

    page.render = render  # type: ignore[method-assign]


@cache
def _makes_all_of_text(extension: object) -> bool:
    """Return whether a Markdown extension (its name, or the one that a plugin has added) needs the text alone."""
    if not isinstance(extension, str):
        return False
    points = entry_points(group="markdown.extensions", name=extension)
    module = next((point.module for point in points), extension.partition(":")[0])
    return module.partition(".")[0] in _KNOWN and module != _READS_FILES


def appended_files(config: MkDocsConfig) -> list[Path]:
    """Return the files that pymdownx.snippets adds to every page."""
    options = config.mdx_configs.get("pymdownx.snippets", {})
    folders = [Path(folder) for folder in options.get("base_path", ["."])]
    files = (folder / name for name in options.get("auto_append", []) for folder in folders)
    return [file for file in files if file.is_file()]


@contextmanager
def _warnings_counted() -> Iterator[CountHandler]:
    """Count the warnings while a page is converted: a page that is not converted again would not repeat them."""
    handler = CountHandler()
    handler.setLevel(logging.WARNING)
    _LOGGER.addHandler(handler)
    try:
        yield handler
    finally:
        _LOGGER.removeHandler(handler)


def _state(page: MkDocsPage) -> dict[str, Any]:
    """Return the attributes that `mkdocs.structure.pages.Page.render` sets, as JSON can hold them."""
    return {
        "content": page.content,
        "toc": [_link(link) for link in page.toc],
        "title": page._title_from_render,
        "anchors": sorted(page.present_anchor_ids or ()),
        "links": {file.src_uri: links for file, links in (page.links_to_anchors or {}).items()},
    }


def _restore(page: MkDocsPage, state: dict[str, Any], files: Files) -> bool:
    """Put back the attributes of `_state`; return whether it could be done."""
    links = {files.get_file_from_path(name): anchors for name, anchors in state["links"].items()}
    if None in links:
        return False
    page.content = state["content"]
    page.toc = TableOfContents([_unlink(link) for link in state["toc"]])
    if page.toc.items:
        page.toc.items[0].active = True  # type: ignore[attr-defined]
    page._title_from_render = state["title"]
    page.present_anchor_ids = set(state["anchors"])
    page.links_to_anchors = links  # type: ignore[assignment]
    return True


def _link(link: AnchorLink) -> list[Any]:
    return [link.title, link.id, link.level, [_link(child) for child in link.children]]


def _unlink(state: list[Any]) -> AnchorLink:
    title, anchor, level, children = state
    link = AnchorLink(title, anchor, level)
    link.children = [_unlink(child) for child in children]
    return link
