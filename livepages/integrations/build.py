"""One build of a site: its pages, their runs, and everything that went wrong."""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from livepages.course import Course, Guide, clashes, find_guide, history, sources
from livepages.execution import (
    BackgroundRuns,
    Engine,
    Failure,
    Run,
    pair_results,
)
from livepages.integrations.build_cache import digest
from livepages.integrations.executed import ExecutedPages
from livepages.integrations.listing import hint, summary
from livepages.records import Records, check_blocks, check_page, records_named
from livepages.rendering import Failing, anchors, anchors_of_run, status
from livepages.source import Inventory, Page, read_inventories

# The environment variable under which a build runs nothing, and fails if the run of a page is not kept.
NO_EXECUTE = "LIVEPAGES_NO_EXECUTE"
FEW = 10  # pages that may have become stale by saving one file, for all of which its author waits
_BRING = "this build runs nothing: run `livepages run`, or bring .cache/livepages/runs from where the page has run"


class Build:
    """One build of a site, which all integrations that show pages share: `run` or `serve` brings `pages` up to date."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.failures: list[Failure] = []
        self.unread: list[Failure] = []  # for pages that cannot be read, or may not be run
        self.inventory = Inventory()
        self.records = Records(engine.project)
        self.guide = Guide(Course(engine.project.docs), {}, self.inventory)
        self._attempts = BackgroundRuns(engine)
        self._begun: list[Page] = []  # the pages whose run has begun in this build
        self._new: set[str] = set()  # the names of the pages that began or finished to run
        self.awaited: set[Path] = set()  # files of pages that were saved or opened before they had run
        self.held_back: set[Path] = set()  # files of pages that have run, but are shown in part as before
        self._deadline = 0.0  # until when an awaited page may run before it is shown in part
        self._caught_up = False
        self.pages: dict[Path, Page] = {}
        self._changed: dict[Path, str] = {}
        self._runs: dict[str, Run] = {}
        self._failed: dict[str, dict[int, Failure]] = {}  # by page, and the index of the block
        self._names = ""
        self.executed = ExecutedPages(engine, self._of_file, False)

    def run(self, course: Course, started: Callable[[list[Page]], None], done: Callable[[Page, Run], None]) -> None:
        """Read every page, and run to their ends those that the cache does not hold; under `NO_EXECUTE`, they fail.

        Args:
            course: which pages there are, and in what order.
            started: called once, with the pages that begin to run.
            done: called for each of them when it has run, by this build or a later one.

        Raises:
            ProjectError: an inventory cannot be read, or the guide of the site cannot be imported.
            WorkerError: the process that pages are forked from could not be started.
        """
        if not os.environ.get(NO_EXECUTE):
            self._prepare(page for page in course.pages if page not in course.texts)
        self._update(course, self._attempts.run, started, done)
        # Where the blocks of a page are known only when it is converted, failures end the build before that.
        if self.engine.project.fences == "exec" and self.failures:
            self.fail(failure for page, run in self.ran for failure in check_page(page, run, self.records))

    def serve(
        self,
        course: Course,
        started: Callable[[list[Page]], None],
        done: Callable[[Page, Run], None],
        patience: float,
        finished_late: Callable[[Path], None],
    ) -> None:
        """Build as `run` does, without waiting for pages: the site shows them as far as they are, and its faults.

        A few pages run at once, and may take `patience` seconds before `catch_up` takes them as far as they are. More
        pages begin when `Engine.resume` is called after the build, so that it has all processors.
        `finished_late` is called, in any thread, with the file of a page that this build shows in part, when it has
        run to its end.
        """
        # What is stale now was saved since the last build, unless there was none.
        few = FEW if self.pages else os.cpu_count() or 1

        def start(
            stale: list[Page], begins: Callable[[list[Page]], None], ends: Callable[[Page, Run], None]
        ) -> dict[Path, Run]:
            runs = self._attempts.start(stale, begins, ends, finished_late, few)
            self._deadline, self._caught_up = time.monotonic() + patience, False
            self._prioritize([page for page in stale if page in self._begun or self._is_saved(page)], few)
            return runs

        self._update(course, start, started, done, with_faults=True)

    def _update(
        self,
        course: Course,
        runs_of: Callable[..., dict[Path, Run]],
        started: Callable[[list[Page]], None],
        done: Callable[[Page, Run], None],
        with_faults: bool = False,
    ) -> None:
        """Bring everything up to date; `runs_of` makes or begins the runs of stale pages."""
        may_run = not os.environ.get(NO_EXECUTE)
        held_back, self.held_back = self.held_back, set()
        inventory = read_inventories(self.engine.project)
        guide = find_guide(self.engine.project)
        read, unread = self.engine.read(course.pages, course.texts, with_faults)
        # A page that a plugin has made is a page of ours if it has blocks: others are of no concern.
        read = [page for page in read if page.blocks or page.path not in course.texts]
        programs = [page for page in read if page.program]
        runs = self.engine.kept(programs, failed=not may_run)
        stale = [page for page in programs if page.path not in runs]
        if not may_run:
            unread += [Failure(page.name, 1, 0, f"{self.engine.why_stale(page)}; {_BRING}") for page in stale]
            read, programs = ([page for page in pages if page not in stale] for pages in (read, programs))
            stale = []

        self._begun = []
        new = {page.name for page in programs if page.path in held_back}

        def begin(pages: list[Page]) -> None:
            self._begun += pages
            new.update(page.name for page in pages)
            started(pages)

        def finished(page: Page, run: Run) -> None:
            new.add(page.name)
            done(page, run)

        runs |= runs_of(stale, begin, finished)
        before = self._as_before(programs) if any(run.pending for run in runs.values()) else {}
        self.held_back = {path for path in before if not runs[path].pending}
        runs |= before
        # From here on nothing can fail, so a build is never half old and half new.
        self.inventory, self.unread, self._names = inventory, unread, digest([inventory, sources(guide)])
        self.records = Records(self.engine.project)
        self._changed = history.days(self.engine.project)
        self.pages = {page.path: page for page in read}
        self.guide = guide(course, self.pages, inventory)
        self._runs = {page.name: runs[page.path] for page in programs}
        self._new, self._failed = new, {}
        self.executed = ExecutedPages(self.engine, self._of_file, may_run)
        self.failures = [*unread, *clashes(course, self.engine.project)]
        if self.engine.project.fences == "all":  # otherwise blocks are known when a page is converted
            self.failures += [*self.guide.problems(), *self.records.problems(read)]
            for page in programs:
                self._failed[page.name] = check_blocks(page, self._runs[page.name], self.records)
                self.failures += self._failed[page.name].values()

    def _is_saved(self, page: Page) -> bool:
        """Return whether a page's file has another text than in the last build."""
        return page.path in self.pages and self.pages[page.path].source != page.source

    def _prioritize(self, pages: list[Page], few: int) -> None:
        """Note that these pages are awaited, and run them before all others, unless they are more than `few`."""
        for page in pages if len(pages) <= few else ():
            self.awaited.add(page.path)
            self.engine.prioritize(page.path)

    def _as_before(self, pages: Iterable[Page]) -> dict[Path, Run]:
        """Return the runs that the last build showed of pages that it showed in part and that are not awaited.

        Showing the progress of each would take longer than all the rest of a build.
        """
        before: dict[Path, Run] = {}
        for page in pages:
            known = self.pages.get(page.path)
            if known and page.path not in self.awaited and page not in self._begun and known.is_same_program(page):
                run = self.run_of(known)
                before |= {page.path: run.of(page)} if run.pending else {}
        return before

    @property
    def last(self) -> list[Path]:
        """The files of the pages that are best shown last, in this order, because `catch_up` may have more of them."""
        awaited = sorted(self.awaited & self.pending)
        return [*awaited, *(path for path, page in self.pages.items() if awaited and status.STATUS in page.text)]

    def catch_up(self, path: Path) -> bool:
        """Take the results of an awaited page since the build began.

        Returns:
            whether the page of this file is to be shown anew.
        """
        page = self.pages.get(path)
        if page is None or path not in self.awaited or not (before := self.run_of(page)).pending:
            return self._caught_up and page is not None and status.STATUS in page.text
        run = self._attempts.latest(path, max(0.0, self._deadline - time.monotonic()))
        if run is None or run == before:
            return False
        self._runs[page.name], self._caught_up = run, True
        if self.engine.project.fences == "all":
            self._failed[page.name] = check_blocks(page, run, self.records)
            self.fail(self._failed[page.name].values())
        return True

    def _prepare(self, files: Iterable[Path]) -> None:
        """Start the process that pages are forked from, if the page that was edited last has to run."""
        times = {}
        for file in files:
            with suppress(OSError):
                times[file.stat().st_mtime] = file
        if times:
            pages, _ = self.engine.read([times[max(times)]])
            programs = [page for page in pages if page.program]
            if programs and not self.engine.kept(programs):
                self.engine.prepare()

    @property
    def ran(self) -> list[tuple[Page, Run]]:
        """The pages that could be read, and the run of each."""
        return [(page, self.run_of(page)) for page in self.pages.values()]

    @property
    def ordered(self) -> list[Page]:
        """The pages of the course, in order."""
        paths = [path for part in self.guide.course.parts for path in part.pages]
        return [self.guide.pages[path] for path in paths if path in self.guide.pages]

    def run_of(self, page: Page) -> Run:
        """Return the run of a page; one without outcomes, if it has none."""
        return self._runs.get(page.name) or Run(pair_results(page))

    def _of_file(self, path: Path) -> tuple[Page, Run] | None:
        page = self.pages.get(path)
        return (page, self.run_of(page)) if page else None

    def anchors_of_run(self, path: Path) -> set[str] | None:
        """The anchors that a page has by its run, as `rendering.anchors_of_run`; None also if it cannot be read."""
        page = self.pages.get(path)
        if page is None:
            return None if any(failure.page == self.engine.project.name(path) for failure in self.unread) else set()
        return anchors_of_run(page, self.run_of(page))

    def failing(self, path: Path) -> list[Failing]:
        """The places at which a page fails; none if it cannot be read, because then it shows nothing but that."""
        page = self.pages.get(path)
        if page is None:
            return []
        differing = self._failed.get(page.name, {})
        found = [(one, one.failure or differing.get(one.block.index)) for one in self.run_of(page).results]
        failed = [(result, failure) for result, failure in found if failure]
        ids = anchors(page, self.run_of(page)) if failed else {}
        places = []
        for result, failure in failed:
            block = result.block
            anchor = ids.get(block.index if block.above is None else block.above, "")
            why = "" if result.failure else "the output differs from the record"
            places.append(Failing(failure.line, "inline expression" if block.is_inline else "block", anchor, why))
        reported = {failure for _, failure in failed}
        others = {failure.line for failure in self.failures if failure.page == page.name and failure not in reported}
        return places + [Failing(line, "line") for line in others]

    def was_page(self, name: str) -> bool:
        """Return whether there was a page of this name, below the folder of pages: as Git or a record has it."""
        path = self.engine.project.docs / name
        return not os.path.lexists(path) and (path in self._changed or bool(records_named(self.engine.project, path)))

    def fail(self, failures: Iterable[Failure]) -> None:
        """Note failures, each of them once."""
        self.failures += [failure for failure in dict.fromkeys(failures) if failure not in self.failures]

    @property
    def included(self) -> set[Path]:
        """The files that the pages include, where markdown-exec lays them out: all others are in one folder."""
        found: set[Path] = set()
        for page in self.pages.values() if self.engine.project.fences == "exec" else ():
            self.engine.project.include(page.path, page.source.split("\n"), found)
        return found

    def source(self, path: Path) -> str | None:
        """Return the text of a page's file when it was read, undecodable bytes replaced; None if it is no page's."""
        if path in self.pages:
            return self.pages[path].source
        if path not in self.guide.course.pages or path in self.guide.course.texts:
            return None
        try:
            return path.read_bytes().decode(errors="replace")
        except OSError:
            return ""

    @property
    def origin(self) -> str:
        """The commit and the versions that the site is built from, in Markdown."""
        commit = history.commit(self.engine.project)
        return f"Built{f' from commit `{commit}`' if commit else ''} with {self.engine.project.runtime.version_label}."

    def updated(self, page: Page, run: Run) -> str:
        """The day of the page's last change, in ISO form; empty if the history does not have it."""
        return history.last_change(page, run, self.engine.project, self._changed)

    def cache_key(self, path: Path, text: str) -> object:
        """Return a value that is equal for two builds that show this text of a file in the same way."""
        if self.engine.project.fences == "exec":
            lines = [line for line, _ in self.engine.project.include(path, text.split("\n"))]
            executed, run = self.executed.find(path, lines)
            self.fail(check_page(executed, run, self.records))
            return lines, executed, run
        page = self.pages.get(path)
        if page is None:
            return text, self._names, tuple(self.failures)
        run = self.run_of(page)
        others = self.ran if status.STATUS in page.text else ()
        known = [
            (other.title, [block.key for block in other.program], anchors(other, run), self._known(other))
            for other, run in others
        ]
        made_from = text, self._names, page, run, self.updated(page, run), self.guide.cache_key(page)
        return *made_from, self.engine.project.runtime.version_label, self._known(page), known

    def _known(self, page: Page) -> object:
        """Return what `Records.seen` depends on besides the program: it is compared faster than the records."""
        return [(record.host, record.digest) for record in self.records.valid_for(page)]

    @property
    def hint(self) -> str:
        """Return a hint for the author once all pages are shown; empty if there is none."""
        return hint(self.engine.project, [*self.pages.values(), *(page for page, _ in self.executed.made)])

    @property
    def pending(self) -> set[Path]:
        """The files of the pages that this build shows in part, because they still ran."""
        return {page.path for page in self.pages.values() if self.run_of(page).pending}

    @property
    def summary(self) -> str:
        """A line that sums up the build: the state of each block and inline expression, counted once."""
        # A page of which plugins and hooks have made another program is shown as that.
        every = {page.path: (page, run) for page, run in (*self.ran, *self.executed.made)}
        unchecked = [(page, run) for page, run in every.values() if page.name not in self._failed]
        failed = self._failed | {page.name: check_blocks(page, run, self.records) for page, run in unchecked}
        return summary(len(self.pages), every.values(), failed, self._new | self.executed.ran)
