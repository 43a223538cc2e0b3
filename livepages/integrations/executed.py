"""The programs of pages whose fences markdown-exec lays out: those in their files, and those that plugins add."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from livepages.execution import Engine, Run, pair_results
from livepages.source import Page, PageError, changed_page


class ExecutedPages:
    """The pages of a build as they are converted, each with its run.

    What a page's file holds has run before. Blocks that a plugin or a hook has made run when the page is converted.
    """

    def __init__(self, engine: Engine, known: Callable[[Path], tuple[Page, Run] | None], may_run: bool) -> None:
        """Take `known`, which returns the page of a file, and its run."""
        self._engine, self._known, self._may_run = engine, known, may_run
        self._process = os.getpid()
        self._late: dict[Path, list[tuple[Page, Run]]] = {}
        self.ran: set[str] = set()  # the names of the pages of which something ran here

    def find(self, path: Path, lines: Sequence[str]) -> tuple[Page, Run]:
        """Return the page that has these lines, includes expanded, and its run.

        Raises:
            PageError: the page has not run and may not run now.
        """
        of_file = self._known(path)
        page = changed_page(path, of_file[0] if of_file else None, lines, self._engine.project)
        late = self._late.setdefault(path, [])
        for known in [*([of_file] if of_file else []), *late]:
            if known[0].is_same_program(page):
                return page, known[1].of(page)
        late.append((page, self._run(page)))
        return late[-1]

    @property
    def made(self) -> list[tuple[Page, Run]]:
        """The pages of which plugins and hooks have made other programs, each with its run."""
        return [page for found in self._late.values() for page in found]

    def _run(self, page: Page) -> Run:
        if not page.program:
            return Run(pair_results(page))
        if kept := self._engine.kept([page]):
            return kept[page.path]
        if not self._may_run:
            raise PageError(page.name, page.program[0].line, f"{self._engine.why_stale(page)}; this build runs nothing")
        if os.getpid() != self._process:
            raise RuntimeError("a process that converts pages ahead of the build has no others to run them")
        self.ran.add(page.name)
        self._engine.resume()  # which a build that is served pauses until it is over
        return self._engine.run([page])[page.path]
