"""Runs that outlive a build: a page that takes long goes on running, and is shown as far as it has run."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from livepages.execution.engine import Engine, modified_since
from livepages.execution.results import Run
from livepages.execution.runner import Running, finished
from livepages.source import Page


@dataclass
class _Attempt:
    """The run of a page, valid for as long as nothing that it rests on changes."""

    running: Running
    keep: Callable[[Page, Run], None]
    began: float
    seen: float  # when the page was read last
    reported: bool = False
    finished_late: Callable[[Path], None] | None = None  # to be called when it has finished

    @property
    def run(self) -> Run | None:
        """The page's run, None if it has not finished."""
        return self.running.future.result() if self.running.future.done() else None

    def has_finished(self) -> None:
        """Tell so, unless nobody wants to know any more."""
        if self.finished_late and not self.running.stopped.is_set():
            self.finished_late(self.running.task.page.path)

    def is_current(self, page: Page, root: Path, modules: Iterable[Path]) -> bool:
        """Return whether the run still holds; one that failed does not when the page has been saved since."""
        if _program(self.running.task.page) != _program(page) or modified_since(modules, self.began):
            return False
        if self.run is None:
            return True
        return not (
            modified_since((root / name for name in self.run.files), self.began)
            or modified_since([page.path], self.seen)
        )


class BackgroundRuns:
    """The runs of a site's pages from one build to the next."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._attempts: dict[Path, _Attempt] = {}

    def run(
        self,
        pages: Iterable[Page],
        started: Callable[[list[Page]], None],
        done: Callable[[Page, Run], None],
        timeout: float | None = None,
        finished_late: Callable[[Path], None] = lambda path: None,
        few: int = 0,
    ) -> dict[Path, Run]:
        """Return the runs of pages; end each earlier run that is of another text of its page.

        Args:
            pages: the pages whose runs are not kept.
            started: called once, with those of them whose run begins now.
            done: called in this thread for each that has run to its end, once.
            timeout: how many seconds to wait for those that begin now; until all have finished if None.
            finished_late: called, in any thread, with the file of a page that was pending in what is given here, when
                it has finished.
            few: if no more than so many begin now, somebody waits for them, and they come first. Otherwise, unless
                `timeout` is None, this waits for none, and none begins until the engine is told to `release` them.

        Raises:
            WorkerError: the process that pages are forked from could not be started.
        """
        now, wanted = time.time(), {page.path: page for page in pages}
        try:
            self._drop(wanted, now)
            new = [page for page in wanted.values() if page.path not in self._attempts]
            started(new)
            urgent = len(new) <= few
            if timeout and not urgent:
                timeout = 0.0
                self._engine.hold()
            running, keep = self._engine.start(new, urgent)
            self._attempts |= {one.task.page.path: _Attempt(one, keep, now, now) for one in running}
            for one in finished(running, timeout):
                self._finish(self._attempts[one.task.page.path], done)
            return {path: self._so_far(attempt, done, finished_late) for path, attempt in self._attempts.items()}
        except BaseException:
            self._drop({}, now)
            raise

    def _drop(self, wanted: dict[Path, Page], now: float) -> None:
        """End the runs of other texts than these; the others go on, for the page as it is now."""
        project = self._engine.project
        modules = list(project.snippets.rglob("*.py"))
        for path, attempt in list(self._attempts.items()):
            if path not in wanted or not attempt.is_current(wanted[path], project.root, modules):
                attempt.running.stop()
                del self._attempts[path]
            else:
                attempt.seen = now if attempt.run is None else attempt.seen
                attempt.running.task = replace(attempt.running.task, page=wanted[path])

    def _so_far(
        self, attempt: _Attempt, done: Callable[[Page, Run], None], finished_late: Callable[[Path], None]
    ) -> Run:
        running = attempt.running
        if running.future.done():
            return self._finish(attempt, done)
        run = running.so_far()
        followed, attempt.finished_late = attempt.finished_late, finished_late
        if not followed:
            running.future.add_done_callback(lambda _: attempt.has_finished())
        return run

    @staticmethod
    def _finish(attempt: _Attempt, done: Callable[[Page, Run], None]) -> Run:
        run = attempt.running.future.result().of(attempt.running.task.page)
        if not attempt.reported:
            attempt.reported = True
            attempt.keep(attempt.running.task.page, run)
            done(attempt.running.task.page, run)
        return run


def _program(page: Page) -> object:
    """The things that decide what running a page gives, besides the files that it uses."""
    return page.key, page.settings, [(block.options.timeout, block.marks, block.importorskip) for block in page.program]
