"""The integration with Markdown: shows each page's blocks with their results.

MkDocs brings the pages up to date beforehand, all at once, and says which page is converted (`mkdocs_plugin`); so can
any program that passes a `Conversion`. Elsewhere the pages are brought up to date when the first is converted. Zensical
says which page it is. If a program does not, the page is found by its text, so two pages with the same text are
refused.
"""

import inspect
import os
import posixpath
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from livepages import rendering
from livepages.course import Guide
from livepages.execution import Failure, Run, as_failures
from livepages.integrations.assets import inline_style
from livepages.integrations.build import Build
from livepages.integrations.conversion import Conversion, PageFailuresError, own_build
from livepages.integrations.markdown_exec import ExecutedBlocks, register, show
from livepages.integrations.page_text import excerpt, find_page, normal, not_of_page
from livepages.integrations.report import REPORT, Report
from livepages.integrations.site_markdown import fence_support, without_tabs
from livepages.records import Seen
from livepages.rendering import NameLinks, fill_inline, inline_html, status, unfilled_inline
from livepages.source import (
    Block,
    Inventory,
    Page,
    PageError,
    with_bare_fences,
)

_report = os.environ.pop(REPORT, "")  # so that no page reads it and depends on it


class LivePagesExtension(Extension):
    """The Markdown extension. Sites set no options; programs that can do so pass a `Conversion`."""

    def __init__(self, conversion: Conversion | None = None) -> None:
        super().__init__()
        self._conversion = conversion

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  (the name is Python-Markdown's)
        """Register the processors that show pages and check them."""
        show = _Show(md, self._conversion)
        # After includes are expanded (32) and white space is normal (30), before fences are read (25).
        md.preprocessors.register(show, "livepages", 28)
        # After the table of contents (5) has converted the headings, each like a page of its own.
        md.treeprocessors.register(_TreeStep(md, show.mark_whole), "livepages", -10)
        # And before MkDocs resolves links (0).
        md.treeprocessors.register(_TreeStep(md, show.guide_tree), "livepages-guided", 3)
        md.treeprocessors.register(NameLinks(md, lambda: (show.page, show.inventory)), "livepages-names", -20)
        # After stashed HTML is back in place (30).
        md.postprocessors.register(_Check(show), "livepages", 0)


def _anchor(build: Build) -> Callable[[Page, Block], str]:
    """Return a function from a block of the build's pages to the fragment of a link to it."""
    anchors = cache(lambda path: rendering.anchors(pages[path], build.run_of(pages[path])))
    pages = {page.path: page for page in build.ordered}
    return lambda page, block: anchors(page.path)[block.index]


class _Show(Preprocessor):
    """A preprocessor that replaces the fences of a page by their source and results."""

    def __init__(self, md: Markdown, conversion: Conversion | None) -> None:
        super().__init__(md)
        self._conversion = conversion
        self.page: Page | None = None
        self.whole = False
        self.guide: Guide | None = None
        self.inventory = Inventory()
        self.blocks: ExecutedBlocks | None = None  # of a page whose fences markdown-exec lays out
        self.executed: Page | None = None  # that page, if it has inline expressions
        self.wrong: list[Any] = []  # the formulas of the page that cannot be set

    def run(self, lines: list[str]) -> list[str]:
        self.page, self.whole, self.blocks, self.executed = None, False, None, None
        build = self._conversion.build if self._conversion else own_build()
        self.guide = build.guide
        if _inside():
            return lines
        if build.engine.project.fences == "exec":
            return self._execute(build, lines)
        self.inventory = build.inventory
        text = normal("\n".join(lines))
        page = build.pages.get(path) if (path := self._path(build, text)) else None

        def rendered(page: Page, run: Run, seen: Seen) -> list[str]:
            runtime, stash = build.engine.project.runtime, self.md.htmlStash.store
            return rendering.page_lines(page, run, runtime, seen, stash, fence_support(self.md))

        if path is None and (part := excerpt(build, text)):
            self.page = part[0]
            return self._expanded(rendered(*part))
        if page is None or not text.startswith(normal(page.body)):
            return self._other(build, path, lines)
        if "livepages.mathml" in self.md.postprocessors:
            formulas: Any = self.md.postprocessors["livepages.mathml"]
            formulas.errors = self.wrong = []
        self.page, run, rest = page, build.run_of(page), text[len(normal(page.body)) :]
        self.report(without_tabs(self.md, page))
        stash = self.md.htmlStash.store
        try:
            lines = rendered(page, run, build.records.seen(page))
        except rendering.RenderError as error:
            self.page = None
            self.report([error.failure])
            return [stash(rendering.failures_html([error.failure]))]
        lines = build.guide.lines(page, lines, build.updated(page, run), stash)
        if status.STATUS in lines:
            lines = status.lines(page, lines, build.ordered, build.records, build.origin, _anchor(build))
        stamp = stash(self._stamp(build, page, run)) if page.program else ""
        return self._expanded([*lines, "", stamp, "", *rest.split("\n")])

    def _expanded(self, lines: list[str]) -> list[str]:
        """Return lines of a page with tabs expanded, as Markdown has expanded them in its own lines."""
        return [line.expandtabs(self.md.tab_length) for line in lines]

    @property
    def is_unaided(self) -> bool:
        """Return whether Zensical runs by itself, so that nothing adds the style sheet, the script and downloads."""
        return not (self._conversion or _report) and "rendering_context" in self.md.preprocessors

    def _stamp(self, build: Build, page: Page, run: Run) -> str:
        place = build.guide.course.place(page.path)
        more = "" if self.is_unaided else rendering.footer_html(place, build.guide.more_downloads(page))
        notebook = quote(posixpath.basename(place.notebook))
        return rendering.stamp(run, build.engine.project.runtime.version_label, notebook, more)

    def _execute(self, build: Build, lines: list[str]) -> list[str]:
        """Prepare what markdown-exec is to show for the fences in these lines."""
        path = self._path(build, "\n".join(lines))
        if path is None:
            return lines
        register()
        try:
            page, run = build.executed.find(path, lines)
        except PageError as error:
            failed = as_failures(error.page, error.faults)
            self.report(failed)
            return [self.md.htmlStash.store(rendering.failures_html(failed))]
        self.report([*as_failures(page.name, page.faults), *run.failures])
        self.blocks = ExecutedBlocks(page.name, run)
        show(self.md, self.blocks)
        self.executed = page if page.inline_expressions else None
        stash = self.md.htmlStash.store
        lines = fill_inline(lines, run, inline_html(build.records.seen(page), stash))
        return "\n".join(rendering.with_faults(page, lines, stash)).split("\n")

    def _path(self, build: Build, text: str) -> Path | None:
        """The file that this text is the page of; None for any other text."""
        if self._conversion:
            return self._conversion.path
        if "rendering_context" in self.md.preprocessors:  # Zensical's
            context: Any = self.md.preprocessors["rendering_context"]
            return build.engine.project.docs / str(context.page.path)
        return find_page(build, text)

    def _other(self, build: Build, path: Path | None, lines: list[str]) -> list[str]:
        """Return the lines of a text that is no page, with failures: of reading its page, or of blocks in it."""
        name = build.engine.project.name(path or build.engine.project.docs)
        unread = [failure for failure in build.unread if failure.page == name or not path]
        ours = any(re.match(r"[> \t]*(`{3,}|~{3,})(python|py)\b|<!-- live: ", line) for line in lines)
        if not ours and not (path and unread):
            return lines
        failed = unread
        if not failed:
            failed = [not_of_page(build, path, lines, self.md)]
            self.report(failed)
        lines = with_bare_fences(lines)
        at = rendering.below_title(lines)
        return [*lines[:at], "", self.md.htmlStash.store(rendering.failures_html(failed)), "", *lines[at:]]

    def mark_whole(self, _: Element) -> None:
        """Note that the next text is that of the whole page."""
        self.whole = True

    def guide_tree(self, root: Element) -> None:
        """Make the changes that the site's guide makes to a page."""
        if self.guide:
            self.guide.tree(root)

    def report(self, failures: list[Failure]) -> None:
        """Report failures found while pages are converted."""
        if self._conversion:
            self._conversion.build.fail(failures)
        elif not failures:
            return
        elif _report:
            Report(Path(_report)).add(failures)
        else:
            raise PageFailuresError(failures)


def _inside() -> bool:
    """Return whether the text is a part of another that is being converted, as a docstring that mkdocstrings shows."""
    frame, depth = inspect.currentframe(), 0
    while frame:
        depth += frame.f_code is Markdown.convert.__code__
        frame = frame.f_back
    return depth > 1


def _line(page: Page, tex: str) -> int:
    """The line of a page that has a formula; the first if it comes from elsewhere."""
    first = tex.partition("\n")[0]
    return next((number for number, line in enumerate(page.source.split("\n"), 1) if first in line), 1)


class _TreeStep(Treeprocessor):
    """A step in the conversion of a page, while it is an element tree."""

    def __init__(self, md: Markdown, take: Callable[[Element], None]) -> None:
        super().__init__(md)
        self._take = take

    def run(self, root: Element) -> None:
        self._take(root)


class _Check(Postprocessor):
    """Report the blocks and formulas of a page that its HTML lacks, then remove what only this check needs."""

    def __init__(self, show: _Show) -> None:
        super().__init__(show.md)
        self._show = show

    def run(self, text: str) -> str:
        if (page := self._show.page) and self._show.whole:
            wrong = [Failure(page.name, _line(page, error.tex), 0, str(error)) for error in self._show.wrong]
            if failed := [*dict.fromkeys(wrong), *rendering.missing(page, text)]:
                self._show.report(failed)
                text = rendering.failures_html(failed) + text
        if self._show.blocks and self._show.whole:
            self._show.report(self._show.blocks.end())
            if executed := self._show.executed:
                self._show.report(unfilled_inline(executed, text))
        if self._show.is_unaided and self._show.whole and (page.blocks if page else self._show.blocks):
            text = inline_style() + text
        text = rendering.unmarked(text)
        return self._show.guide.html(text) if self._show.guide else text
