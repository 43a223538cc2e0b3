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
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from livepages import rendering
from livepages.course import Guide, read_course
from livepages.execution import Engine, Failure, Run, faults_of
from livepages.integrations.assets import inline_style
from livepages.integrations.build import REPORT, Build, Conversion, Report
from livepages.integrations.markdown_exec import ExecutedBlocks, register, show
from livepages.records import RecordedOutcome
from livepages.rendering import FenceSupport, NameLinks, status, value_html, values_left, with_values
from livepages.source import (
    Block,
    Inventory,
    Page,
    PageError,
    Project,
    find_project,
    with_bare_fences,
)
from livepages.worker import signature

_report = os.environ.pop(REPORT, "")  # so that no page reads it and depends on it


class PageFailuresError(Exception):
    """Blocks that failed, or that would not be shown; the message names them, one to a line."""

    def __init__(self, failures: list[Failure]) -> None:
        super().__init__("\n" + "\n".join(map(str, failures)))


def _own_build() -> Build:
    """A build for programs that do not handle failures: the first one ends the conversion."""
    project = find_project(Path.cwd())
    files = [
        *read_course(project).pages,
        *sorted(project.snippets.rglob("*")),
        *sorted(project.inventories.glob("*.txt")),
    ]
    files += sorted(project.records.rglob("*.yml"))
    files += [project.root / "pyproject.toml", project.mkdocs]
    with _one_at_a_time:
        return _built(project.root, tuple((file, signature(file)) for file in files if file.exists()))


_one_at_a_time = Lock()


@lru_cache(maxsize=1)
def _built(root: Path, files: tuple[tuple[Path, int], ...]) -> Build:
    """The build of these files, which serves all pages until one changes."""
    project = find_project(root)
    build = Build(Engine(project))
    try:
        build.run(read_course(project), lambda pages: None, lambda page, run: None)
    finally:
        build.engine.close()
    if build.failures:
        raise PageFailuresError(build.failures)
    return build


class LivePagesExtension(Extension):
    """The Markdown extension. Sites set no options; programs pass what is converted, where they can."""

    def __init__(self, conversion: Conversion | None = None) -> None:
        super().__init__()
        self._conversion = conversion

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  (the name is Python-Markdown's)
        """Register what shows pages and what checks them."""
        show = _Show(md, self._conversion)
        # After includes are expanded (32) and white space is normal (30), before fences are read (25).
        md.preprocessors.register(show, "livepages", 28)
        # After the table of contents (5) has converted the headings, each like a page of its own.
        md.treeprocessors.register(_FullPageMarker(show), "livepages", -10)
        # And before MkDocs resolves links (0).
        md.treeprocessors.register(_Guided(show), "livepages-guided", 3)
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
        self.executed: Page | None = None  # that page, if it has values
        self.wrong: list[Any] = []  # the formulas of the page that cannot be set

    def run(self, lines: list[str]) -> list[str]:
        self.page, self.whole, self.blocks, self.executed = None, False, None, None
        build = self._conversion.build if self._conversion else _own_build()
        self.guide = build.guide
        if _inside():
            return lines
        if build.engine.project.fences == "exec":
            return self._execute(build, lines)
        self.inventory = build.inventory
        text = _normal("\n".join(lines))
        page = build.pages.get(path) if (path := self._path(build, text)) else None
        if path is None and (part := _excerpt(build, text)):
            self.page, run, seen = part
            stash, fences = self.md.htmlStash.store, self._fence_support()
            shown = rendering.page_lines(self.page, run, build.engine.project.runtime, seen, stash, fences)
            return [line.expandtabs(self.md.tab_length) for line in shown]
        if page is None or not text.startswith(_normal(page.body)):
            return self._other(build, path, lines)
        if "livepages.mathml" in self.md.postprocessors:
            formulas: Any = self.md.postprocessors["livepages.mathml"]
            formulas.errors = self.wrong = []
        self.page, run, rest = page, build.run_of(page), text[len(_normal(page.body)) :]
        self.report(self._without_tabs(page))
        stash, fences, seen = self.md.htmlStash.store, self._fence_support(), build.seen(self.page)
        try:
            shown = rendering.page_lines(self.page, run, build.engine.project.runtime, seen, stash, fences)
        except rendering.RenderError as error:
            self.page = None
            self.report([error.failure])
            return [stash(rendering.failures_shown([error.failure]))]
        shown = build.guide.lines(self.page, shown, build.updated(self.page, run), stash)
        if status.STATUS in shown:
            shown = status.lines(self.page, shown, build.ordered, build.records, build.origin, _anchor(build))
        stamp = stash(self._stamp(build, page, run)) if page.program else ""
        # The page's own lines have the tabs that Markdown has expanded by now.
        return [line.expandtabs(self.md.tab_length) for line in (*shown, "", stamp, "", *rest.split("\n"))]

    @property
    def alone(self) -> bool:
        """Return whether Zensical runs by itself, so that nothing adds the style sheet, the script and downloads."""
        return not (self._conversion or _report) and "rendering_context" in self.md.preprocessors

    def _stamp(self, build: Build, page: Page, run: Run) -> str:
        place = build.guide.course.place(page.path)
        more = "" if self.alone else rendering.at_end(place, build.guide.more_downloads(page))
        notebook = quote(posixpath.basename(place.notebook))
        return rendering.stamp(run, build.engine.project.runtime.version_label, notebook, more)

    def _without_tabs(self, page: Page) -> list[Failure]:
        """Return a failure for each block that asks for tabs where the site's Markdown makes none."""
        if "tabbed" in self.md.parser.blockprocessors:
            return []
        message = "option source: the site's Markdown makes no tabs; add pymdownx.tabbed to markdown_extensions"
        blocks = (block for block in page.blocks if block.options.source.startswith("tabbed"))
        return [Failure(page.name, block.line, block.line, message) for block in blocks]

    def _fence_support(self) -> FenceSupport:
        """Return which fences the site's Markdown shows as code."""
        if "fenced_code_block" not in self.md.preprocessors:
            return "none"
        reader: Any = self.md.preprocessors["fenced_code_block"]
        if not hasattr(reader, "get_hl_settings"):  # it is not pymdownx.superfences
            return "outer"
        reader.get_hl_settings()
        return "all" if reader.use_pygments else "bare"

    def _execute(self, build: Build, lines: list[str]) -> list[str]:
        """Prepare what markdown-exec is to show for the fences in these lines."""
        path = self._path(build, "\n".join(lines))
        if path is None:
            return lines
        register()
        try:
            page, run = build.executed.find(path, lines)
        except PageError as error:
            failed = [Failure(fault.page, fault.line, 0, fault.message) for fault in error.faults]
            self.report(failed)
            return [self.md.htmlStash.store(rendering.failures_shown(failed))]
        self.report([*faults_of(page), *run.failures])
        self.blocks = ExecutedBlocks(page.name, run)
        show(self.md, self.blocks)
        self.executed = page if page.values else None
        stash = self.md.htmlStash.store
        shown = rendering.with_faults(page, with_values(lines, run, value_html(build.seen(page), stash)), stash)
        return "\n".join(shown).split("\n")

    def _path(self, build: Build, text: str) -> Path | None:
        """The file that this text is the page of; None for any other text."""
        if self._conversion:
            return self._conversion.path
        if "rendering_context" in self.md.preprocessors:  # Zensical's
            context: Any = self.md.preprocessors["rendering_context"]
            return build.engine.project.docs / str(context.page.path)
        bodies = [(_normal(page.body), path) for path, page in build.pages.items()]
        longest = max((body for body, _ in bodies if text.startswith(body)), key=len, default="")
        found = [path for body, path in bodies if body == longest] if longest else []
        if len(found) > 1:
            names = " and ".join(build.pages[path].name for path in found)
            raise PageFailuresError(
                [Failure(names, 1, 0, "have the same text, so it is unknown which of them is shown")]
            )
        return found[0] if found else None

    def _other(self, build: Build, path: Path | None, lines: list[str]) -> list[str]:
        """Text that is no page: one that cannot be read shows why; no block may go unnoticed."""
        name = build.engine.project.name(path or build.engine.project.docs)
        unread = [failure for failure in build.unread if failure.page == name or not path]
        ours = any(re.match(r"[> \t]*(`{3,}|~{3,})(python|py)\b|<!-- live: ", line) for line in lines)
        if not ours and not (path and unread):
            return lines
        failed = unread
        if not failed:
            failed = [self._changed(build, path, name, lines)]
            self.report(failed)
        lines = with_bare_fences(lines)
        at = rendering.below_title(lines)
        return [*lines[:at], "", self.md.htmlStash.store(rendering.failures_shown(failed)), "", *lines[at:]]

    def _lacking(self, project: Project, include: str, wanted: str, found: str) -> str:
        """Return what the site's Markdown does not do with an include, and how it will; empty if it does all."""
        folder = project.name(project.snippets)
        if "8<-" in found:
            return f"read {include}; add pymdownx.snippets to markdown_extensions, with base_path: [{folder}]"
        if "snippet" in self.md.preprocessors:
            reader: Any = self.md.preprocessors["snippet"]
            if project.snippets.resolve() not in [Path(base).resolve() for base in reader.base_path]:
                return f"find {include}; add {folder} to base_path of pymdownx.snippets"
            if found.strip() == wanted.strip():
                return f"take the indentation off {include}; add dedent_subsections: true to pymdownx.snippets"
        return ""

    def _changed(self, build: Build, path: Path | None, name: str, lines: list[str]) -> Failure:
        """Return the failure of text that has blocks and is not the page's."""
        page = build.pages.get(path) if path else None
        if page is None:
            title = next(line for line in lines if line.strip())
            message = f"the text that begins {title!r} has blocks that have not run, as it is not that of a page's file"
            return Failure(name, 1, 0, message)
        before, after = (_normal(text).split("\n") for text in (page.body, "\n".join(lines)))
        at = next(n for n, line in enumerate(before) if line != "".join(after[n : n + 1]))
        above = next(n for n, line in enumerate(page.text) if line.strip())  # front matter, and blank lines
        line = page.origin[min(at + above, len(page.origin) - 1)]
        found, include = after[at] if at < len(after) else "", page.source.split("\n")[line - 1].strip()
        if "8<-" in include and (lacking := self._lacking(build.engine.project, include, before[at], found)):
            return Failure(name, line, 0, f"the site's Markdown does not {lacking}")
        became = repr(after[at]) if at < len(after) else "nothing"
        message = f"a plugin or hook of the site changed {before[at]!r} to {became} after the blocks had run"
        return Failure(name, line, 0, f"{message}; change the file instead, or add only to the end of the page's text")

    def report(self, failures: list[Failure]) -> None:
        """Tell of failures found while showing."""
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


def _excerpt(build: Build, text: str) -> tuple[Page, Run, Callable[[Block], Sequence[RecordedOutcome]]] | None:
    """Return the page that begins with this text, as far as it goes: a blog shows the beginning of posts."""
    for page in build.pages.values() if text else ():
        if page.blocks and f"{_normal(page.body)}\n".startswith(f"{text}\n"):
            run = build.run_of(page)
            end = next(number for number, line in enumerate(page.text) if line.strip()) + text.count("\n") + 1
            results = tuple(result for result in run.results if result.block.fence.end <= end)
            shown = replace(run, results=results)
            blocks, values = (tuple(result.block for result in some) for some in (shown.on_page, shown.values))
            return replace(page, text=page.text[:end], blocks=blocks, values=values), shown, build.seen(page)
    return None


def _normal(text: str) -> str:
    """Text as Python-Markdown has normalized it when extensions get to see it."""
    return re.sub(r"(?m)^ +$", "", text.replace("\r\n", "\n").expandtabs(4)).strip("\n")


def _line(page: Page, tex: str) -> int:
    """The line of a page on which a formula stands; the first if it comes from elsewhere."""
    first = tex.partition("\n")[0]
    return next((number for number, line in enumerate(page.source.split("\n"), 1) if first in line), 1)


class _FullPageMarker(Treeprocessor):
    """A note that the text to come is that of the whole page."""

    def __init__(self, show: _Show) -> None:
        super().__init__(show.md)
        self._show = show

    def run(self, root: Element) -> None:
        self._show.whole = True


class _Guided(Treeprocessor):
    """The changes that the site's guide makes to a page."""

    def __init__(self, show: _Show) -> None:
        super().__init__(show.md)
        self._show = show

    def run(self, root: Element) -> None:
        if self._show.guide:
            self._show.guide.tree(root)


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
                text = rendering.failures_shown(failed) + text
        if self._show.blocks and self._show.whole:
            self._show.report(self._show.blocks.end())
            if executed := self._show.executed:
                self._show.report(values_left(executed, text))
        if self._show.alone and self._show.whole and (page.blocks if page else self._show.blocks):
            text = inline_style() + text
        text = rendering.unmarked(text)
        return self._show.guide.html(text) if self._show.guide else text
