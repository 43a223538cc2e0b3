"""The door for Markdown: shows each page's blocks with what running them gave.

It finds the page by its text, so it works in MkDocs, Zensical, or any other program that converts whole pages. MkDocs
brings the pages up to date beforehand, all at once (`livepages.mkdocs_plugin`); elsewhere this happens at the first page.
"""

import re
from pathlib import Path

from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor

from livepages import render
from livepages.build import Build, versions
from livepages.engine import Engine
from livepages.outcome import Failure
from livepages.page import Page
from livepages.project import find_project


class ShownError(Exception):
    """Blocks that failed, or that would not be shown; the message names them, one to a line."""

    def __init__(self, failures: list[Failure]) -> None:
        super().__init__("\n" + "\n".join(map(str, failures)))
        self.failures = failures


_build: Build | None = None


def use(build: Build | None) -> None:
    """Show pages from this build, which is up to date and tells of its failures itself."""
    global _build
    _build = build


def _own_build() -> Build:
    build = Build(Engine(find_project(Path.cwd())))
    try:
        build.begin(lambda pages: None, lambda page, run: None)
    finally:
        build.engine.close()
    if build.failures:
        raise ShownError(build.failures)
    return build


class LivePagesExtension(Extension):
    """Registers the two processors; has no options."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  (the name is Python-Markdown's)
        show = _Show(md)
        # After includes are expanded (32), before anything else reads the text.
        md.preprocessors.register(show, "livepages", 31)
        # After stashed HTML is back in place (30).
        md.postprocessors.register(_Check(show), "livepages", 0)


class _Show(Preprocessor):
    """Replaces the fences of a page by their source and results."""

    page: Page | None = None

    def run(self, lines: list[str]) -> list[str]:
        self.page = None
        if hasattr(self.md, "_original_md"):  # markdown-exec and others render parts of pages this way
            return lines
        build = _build or _own_build()
        text = "\n".join(lines)
        found = build.find(text)
        if found is None:
            return self._other(build, lines)
        self.page, run, rest = found
        shown = render.page_lines(self.page, run, self.md.htmlStash.store)
        stamp = self.md.htmlStash.store(render.stamp(run, versions())) if run.outcomes else ""
        return [*shown, "", stamp, "", *rest.split("\n")]

    def _other(self, build: Build, lines: list[str]) -> list[str]:
        """Text that is no page: one that cannot be read shows why; no block may go unnoticed."""
        python = next((n for n, line in enumerate(lines) if re.match(r"[> \t]*(`{3,}|~{3,})(python|py)\b", line)), None)
        if python is None:
            return lines
        if build.unread:
            return [self.md.htmlStash.store(render.failures_shown(build.unread)), "", *lines]
        message = "this text holds Python blocks, but is the text of no page: something changed it before it was shown"
        raise ShownError([Failure("\n".join(lines)[:60], python + 1, python + 1, message)])


class _Check(Postprocessor):
    """Sees to it that every block of the page is in what is shown."""

    def __init__(self, show: _Show) -> None:
        super().__init__(show.md)
        self._show = show

    def run(self, text: str) -> str:
        if self._show.page and (missing := render.missing(self._show.page, text)):
            raise ShownError(missing)
        return text
