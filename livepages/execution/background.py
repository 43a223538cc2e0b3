"""Runs that continue after a build: a page that takes long is shown as far as it has run."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from livepages.execution.engine import CacheEntry, Engine, Keep
from livepages.execution.keys import run_key
from livepages.execution.results import Run
from livepages.execution.running import Running, finished, limits
from livepages.source import Page
from livepages.worker import signature


@dataclass
class _Attempt:
    """The run of a page, valid until something that it depends on changes."""

    running: Running
    keep: Keep
    modules: Mapping[Path, object]  # the signatures of all there were when it began
    saved: object  # the signature of the page's file when the page was read last
    reported: bool = False
    finished_late: Callable[[Path], None] | None = None  # to be called when it has finished
    _entry: CacheEntry | None = None

    @property
    def entry(self) -> CacheEntry | None:
        """The entry of the cache for the run; None if it still runs."""
        if self._entry is None and self.running.future.done():
            page = self.running.task.page
            self._entry = self.keep(page, self.running.future.result().of(page))
        return self._entry

    def notify(self) -> None:
        """Call `finished_late`, unless the run has been cancelled."""
        if self.finished_late and not self.running.stopped.is_set():
            self.finished_late(self.running.task.page.path)

    def is_current(self, page: Page, engine: Engine, modules: Mapping[Path, object]) -> bool:
        """Return whether to run the page again would be the same; one that failed also runs again when it is saved."""
        began = self.running.task.page
        if run_key(began) != run_key(page) or limits(began, engine.project) != limits(page, engine.project):
            return False
        if self.entry is None:
            return modules == self.modules
        return engine.holds(self.entry) and self.saved == signature(page.path)


class BackgroundRuns:
    """The runs of a site's pages from one build to the next."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._attempts: dict[Path, _Attempt] = {}
        self._done: Callable[[Page, Run], None] = lambda page, run: None

    def run(
        self, pages: Iterable[Page], started: Callable[[list[Page]], None], done: Callable[[Page, Run], None]
    ) -> dict[Path, Run]:
        """Return the runs of pages; end each earlier run that is of another text of its page.

        Args:
            pages: the pages whose runs are not kept.
            started: called once, with those of them whose run begins now, which this waits for.
            done: called in this thread for each that has run to its end, once.

        Raises:
            WorkerError: the process that pages are forked from could not be started.
        """
        with self._ending_on_error():
            for one in finished(self._begin(pages, started, done)):
                self._finish(self._attempts[one.task.page.path])
            return self._so_far(lambda path: None)

    def start(
        self,
        pages: Iterable[Page],
        started: Callable[[list[Page]], None],
        done: Callable[[Page, Run], None],
        finished_late: Callable[[Path], None],
        few: int,
    ) -> dict[Path, Run]:
        """Begin the runs of pages as `run` does, and return them as far as they are.

        `finished_late` is called, in any thread, with the file of a page that is pending in what is returned, when it
        has finished. Up to so `few` pages that begin now come before all others; if there are more, none begins until
        the engine's `resume` is called.
        """
        with self._ending_on_error():
            self._begin(pages, started, done, few)
            return self._so_far(finished_late)

    @contextlib.contextmanager
    def _ending_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._drop({}, {})
            raise

    def _begin(
        self,
        pages: Iterable[Page],
        started: Callable[[list[Page]], None],
        done: Callable[[Page, Run], None],
        few: int | None = None,
    ) -> list[Running]:
        wanted = {page.path: page for page in pages}
        modules = {file: signature(file) for file in self._engine.project.snippets.rglob("*.py")}
        self._drop(wanted, modules)
        new = [page for page in wanted.values() if page.path not in self._attempts]
        started(new)
        self._done = done
        if few is not None and len(new) > few:
            self._engine.pause()
        running, keep = self._engine.start(new, urgent=few is not None and len(new) <= few)
        for one in running:
            path = one.task.page.path
            self._attempts[path] = _Attempt(one, keep, modules, signature(path))
        return running

    def latest(self, path: Path, timeout: float) -> Run | None:
        """Return the run of a file's page up to now, after a wait of `timeout` seconds for it to end.

        None if it is not one that `start` has left pending, or if the engine has failed, which `run` reports.
        """
        attempt = self._attempts.get(path)
        if attempt is None or attempt.finished_late is None:
            return None
        for one in finished([attempt.running], timeout):
            if one.future.cancelled() or one.future.exception():
                return None
        return self._latest(attempt, attempt.finished_late)

    def _drop(self, wanted: dict[Path, Page], modules: Mapping[Path, object]) -> None:
        """End the runs of texts that have changed; the others go on, for the page as it is now."""
        for path, attempt in list(self._attempts.items()):
            if path not in wanted or not attempt.is_current(wanted[path], self._engine, modules):
                attempt.running.stop()
                del self._attempts[path]
            else:
                attempt.saved = signature(path) if attempt.entry is None else attempt.saved
                attempt.running.task = replace(attempt.running.task, page=wanted[path])

    def _so_far(self, finished_late: Callable[[Path], None]) -> dict[Path, Run]:
        return {path: self._latest(attempt, finished_late) for path, attempt in self._attempts.items()}

    def _latest(self, attempt: _Attempt, finished_late: Callable[[Path], None]) -> Run:
        running = attempt.running
        if running.future.done():
            return self._finish(attempt)
        run = running.so_far()
        followed, attempt.finished_late = attempt.finished_late, finished_late
        if not followed:
            running.future.add_done_callback(lambda _: attempt.notify())
        return run

    def _finish(self, attempt: _Attempt) -> Run:
        page = attempt.running.task.page
        run = attempt.running.future.result().of(page)
        if not attempt.reported and attempt.entry:
            attempt.reported = True
            self._done(page, run)
        return run
