"""The integration with Markdown: shows each page's blocks with what running them gave.

It finds the page by its text, so it works in MkDocs, Zensical, or any other program that converts whole pages. MkDocs
brings the pages up to date beforehand, all at once (`mkdocs_plugin`); elsewhere this happens at the first.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from livepages import render
from livepages.execute import Engine, Failure
from livepages.integrations.build import Build, in_use
from livepages.render import Hints, NameLinks, status
from livepages.source import Block, Inventory, Page, find_project
from livepages.worker import jaxhost


class ShownError(Exception):
    """Blocks that failed, or that would not be shown; the message names them, one to a line."""

    def __init__(self, failures: list[Failure]) -> None:
        super().__init__("\n" + "\n".join(map(str, failures)))


def _own_build() -> Build:
    """A build for programs that know nothing of it: a failure ends the conversion."""
    project = find_project(Path.cwd())
    files = [*project.page_paths(), *sorted(project.snippets.rglob("*")), *sorted(project.inventories.glob("*.txt"))]
    files += sorted(project.records.rglob("*.yml"))
    files += [file for name in ("pyproject.toml", "mkdocs.yml") if (file := project.root / name).exists()]
    with _one_at_a_time:
        return _built(project.root, tuple((file, file.stat().st_mtime_ns) for file in files))


_one_at_a_time = Lock()


@lru_cache(maxsize=1)
def _built(root: Path, files: tuple[tuple[Path, int], ...]) -> Build:
    """The build of these files, which serves all pages until one changes."""
    build = Build(Engine(find_project(root)))
    try:
        build.begin(lambda pages: None, lambda page, run: None)
    finally:
        build.engine.close()
    if build.failures:
        raise ShownError(build.failures)
    return build


class LivePagesExtension(Extension):
    """Shows and checks; has no options."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  (the name is Python-Markdown's)
        """Register what shows pages and what checks them."""
        show = _Show(md)
        # After includes are expanded (32) and white space is normal (30), before fences are read (25).
        md.preprocessors.register(show, "livepages", 28)
        # After the table of contents (5) has converted the headings, each like a page of its own.
        md.treeprocessors.register(_Whole(show), "livepages", -10)
        # And before MkDocs resolves links (0).
        md.treeprocessors.register(Hints(md), "livepages-hints", 3)
        md.treeprocessors.register(NameLinks(md, lambda: (show.page, show.inventory)), "livepages-names", -20)
        # After stashed HTML is back in place (30).
        md.postprocessors.register(_Check(show), "livepages", 0)


def _anchor(build: Build) -> Callable[[Page, Block], str]:
    """What says what a link to a block of the build's pages ends with."""
    anchors = cache(lambda path: render.anchors(pages[path], build.run_of(pages[path])))
    pages = {page.path: page for page in build.ordered}
    return lambda page, block: anchors(page.path)[block.index]


class _Show(Preprocessor):
    """Replaces the fences of a page by their source and results."""

    page: Page | None = None
    whole = False
    inventory = Inventory()

    def run(self, lines: list[str]) -> list[str]:
        self.page, self.whole = None, False
        if hasattr(self.md, "_original_md"):  # markdown-exec and others render parts of pages this way
            return lines
        build = in_use() or _own_build()
        self.inventory = build.inventory
        text = "\n".join(lines)
        found = build.find(text)
        if found is None:
            return self._other(build, lines)
        self.page, run, rest = found
        stash = self.md.htmlStash.store
        shown = render.page_lines(self.page, run, jaxhost.versions(), build.seen(self.page), stash)
        shown = build.guide.lines(self.page, shown, build.updated(self.page, run), stash)
        if status.STATUS in shown:
            shown = status.lines(self.page, shown, build.ordered, build.records, build.origin, _anchor(build))
        stamp = stash(render.stamp(run, jaxhost.versions())) if run.outcomes else ""
        return [*shown, "", stamp, "", *rest.split("\n")]

    def _other(self, build: Build, lines: list[str]) -> list[str]:
        """Text that is no page: one that cannot be read shows why; no block may go unnoticed."""
        python = next((line for line in lines if re.match(r"[> \t]*(`{3,}|~{3,})(python|py)\b", line)), None)
        if python is None:
            return lines
        unread = build.unread
        if not unread:
            title = next((line for line in lines if line.strip()), "")
            message = f"the text that begins {title!r} is that of no page: something changed it before it was shown"
            unread = [Failure(build.engine.project.name(build.engine.project.docs), 1, 0, message)]
            self.report(unread)
        return [self.md.htmlStash.store(render.failures_shown(unread)), "", *lines]

    def report(self, failures: list[Failure]) -> None:
        """Tell of failures found while showing."""
        if (build := in_use()) is None:
            raise ShownError(failures)
        build.failures += failures


class _Whole(Treeprocessor):
    """Notices that the text to come is that of the whole page."""

    def __init__(self, show: _Show) -> None:
        super().__init__(show.md)
        self._show = show

    def run(self, root: Element) -> None:
        self._show.whole = True


class _Check(Postprocessor):
    """Sees to it that every block of the page is in what is shown, and that little else is."""

    def __init__(self, show: _Show) -> None:
        super().__init__(show.md)
        self._show = show

    def run(self, text: str) -> str:
        if self._show.page and self._show.whole and (missing := render.missing(self._show.page, text)):
            self._show.report(missing)
        return render.told_once(render.light(text))
