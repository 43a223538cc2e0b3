"""Runs that take longer than one build: shown as far as they are, run once, dropped when the page is another."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from livepages.course import read_course
from livepages.execution import BackgroundRuns, Engine, Run, Runner
from livepages.execution.processes import ForkServer
from livepages.integrations.build import Build
from livepages.rendering.status import STATUS
from livepages.source import Page
from livepages.worker import Runtime
from tests.conftest import HANG, Event, Site


class Builds:
    """Successive builds with one `BackgroundRuns`."""

    def __init__(self, site: Site) -> None:
        self._attempts = BackgroundRuns(site.engine)
        self.started: list[str] = []
        self.done: list[str] = []
        self.whole = threading.Event()
        self.reported: list[str] = []

    def run(self, *pages: Page) -> Run:
        """A build in which these pages are stale; the run of the first."""
        return self._first(pages, self._attempts.run(pages, self._started, self._done))

    def serve(self, *pages: Page, few: int = 10) -> Run:
        """`run`, while the site is served."""
        return self._first(pages, self._attempts.start(pages, self._started, self._done, self._whole, few))

    def wait(self, page: Page) -> Run | None:
        """The run of a page when it ends."""
        return self._attempts.latest(page.path, HANG)

    def _first(self, pages: tuple[Page, ...], runs: dict[Path, Run]) -> Run:
        assert runs.keys() == {page.path for page in pages}
        return runs[pages[0].path] if pages else Run(())

    def _started(self, pages: list[Page]) -> None:
        self.started += (page.name for page in pages)

    def _done(self, page: Page, run: Run) -> None:
        self.done.append(page.name)

    def _whole(self, path: Path) -> None:
        self.reported.append(path.name)
        self.whole.set()


@pytest.fixture
def builds(site: Site) -> Builds:
    return Builds(site)


@pytest.fixture
def event(site: Site) -> Event:
    return Event(site)


def test_without_limit_to_patience_every_page_is_whole(site: Site, builds: Builds) -> None:
    page = site.page("print('a')", "print('b')")
    assert builds.run(page).outcomes[1].stdout == "b\n"
    assert builds.started == builds.done == [page.name] and not builds.whole.is_set()
    assert page.path in site.engine.kept([page])


def test_what_was_just_saved_is_waited_for_however_many_run_in_the_background(
    site: Site, builds: Builds, event: Event
) -> None:
    background = [site.page(event.wait, name=f"background-{number}") for number in range(3)]
    assert builds.serve(*background, few=2).pending  # too many to wait for
    saved = site.page("print('saved')", name="saved")
    builds.serve(saved, *background, few=2)
    run = builds.wait(saved)
    assert run and not run.pending
    event.set()
    site.engine.resume()
    builds.run(*background)


def test_a_page_that_takes_long_is_pending_then_whole_and_runs_once(site: Site, builds: Builds, event: Event) -> None:
    page = site.page("print('a')", event.wait, "print('b')")
    quick = site.page("print('quick')", name="quick")
    assert builds.serve(page).pending
    # Another page's edit in the meantime neither waits for it nor runs it again.
    assert builds.run(quick, page).outcomes[0].stdout == "quick\n"
    assert builds.serve(page).pending and builds.done == [quick.name]
    event.set()
    assert builds.whole.wait(HANG)
    run = builds.serve(page)
    assert [outcome.stdout for outcome in run.outcomes] == ["a\n", "", "b\n"] and not run.pending
    assert builds.started == [page.name, quick.name] and builds.done == [quick.name, page.name]
    assert builds.reported == [page.path.name]  # once, although three builds have shown it in part
    assert page.path in site.engine.kept([page])


def test_a_run_of_an_earlier_text_is_dropped(site: Site, builds: Builds, event: Event) -> None:
    assert builds.serve(site.page(event.wait, "print('old')")).pending
    run = builds.run(site.page("print('new')"))
    assert run.outcomes[0].stdout == "new\n"
    event.set()
    builds.run()
    assert builds.done == ["docs/page.md"] and not builds.whole.is_set()


def test_a_change_of_prose_lets_a_page_go_on_and_its_messages_name_the_new_lines(
    site: Site, builds: Builds, event: Event
) -> None:
    blocks = (event.wait, "import os\nos._exit(3)", "x = 1")
    builds.serve(site.page(*blocks))
    page = site.page(*blocks, head="A word.\n\n")
    builds.serve(page)
    event.set()
    assert builds.whole.wait(HANG)
    run = builds.run(page)
    (failure,) = run.failures
    assert f"the block on line {failure.block} failed" == run.outcomes[2].skipped
    assert builds.started == [page.name]


def test_a_failed_run_is_shown_with_the_blocks_of_the_page_as_it_is_now(site: Site, builds: Builds) -> None:
    include = site.write("snippets/words.md", "A word.\n")
    path = site.write("docs/page.md", '--8<-- "words.md"\n\n```python\n1 / 0\n```\n')
    before = site.read(path)
    assert builds.run(before).results[0].block == before.blocks[0]
    include.write_text("A word.\n\nAnother.\n", encoding="utf-8")
    page = site.read(path)
    assert builds.run(page).results[0].block == page.blocks[0] != before.blocks[0]
    assert builds.started == [page.name]


def _save(site: Site, page: Page) -> None:
    os.utime(page.path)


def _change_module(site: Site, page: Page) -> None:
    site.write("snippets/helper.py", "x = 2\n")


def _change_data(site: Site, page: Page) -> None:
    site.write("data.txt", "new")


@pytest.mark.parametrize(("change", "again"), [(None, 1), (_save, 2), (_change_module, 2), (_change_data, 2)])
def test_a_page_that_failed_runs_again_when_it_is_saved_or_what_it_used_changes(
    site: Site, builds: Builds, change: Callable[[Site, Page], None] | None, again: int
) -> None:
    site.write("snippets/helper.py", "x = 1\n")
    data = site.write("data.txt", "old")
    for file in (site.root / "snippets/helper.py", data):
        os.utime(file, (0, 0))
    page = site.page(f"import helper\nopen({str(data)!r}).read()\n1 / 0")
    other = site.page("print('other')", name="other")
    builds.run(page)
    if change:
        change(site, page)
    run = builds.run(page, other)
    assert run.outcomes[0].raised and builds.started.count(page.name) == builds.done.count(page.name) == again


@pytest.mark.parametrize("name", ["snippets/helper.py", "data.txt", "docs/page.md"])
def test_a_file_from_the_future_restarts_nothing(site: Site, builds: Builds, name: str) -> None:
    data = site.write("data.txt", "x = 1\n")
    site.write("snippets/helper.py", "x = 1\n")
    page = site.page(f"import helper\nopen({str(data)!r}).read()\n1 / 0")
    os.utime(site.root / name, (2**32, 2**32))
    for _ in range(3):
        builds.run(page)
    assert len(builds.started) == 1


def test_what_failed_on_data_runs_again_when_these_are_set_back_with_their_time(site: Site, builds: Builds) -> None:
    data = site.write("data.txt", "broken")
    os.utime(data, (0, 0))
    page = site.page(f"assert open({str(data)!r}).read() == 'whole'")
    assert builds.run(page).failures
    data.write_text("whole")
    os.utime(data, (0, 0))
    assert not builds.run(page).failures


def test_a_change_of_module_or_of_time_limit_restarts_what_is_under_way(site: Site, builds: Builds) -> None:
    endless = "while True: pass"
    builds.serve(site.page(endless))
    page = site.page(f'timeout="20"\n{endless}')
    builds.serve(page)
    assert len(builds.started) == 2
    site.write("snippets/helper.py", "x = 2\n")
    builds.serve(page)
    builds.serve(page)
    assert len(builds.started) == 3
    builds.run()


def test_an_error_of_the_engine_is_reported_and_the_next_build_begins_anew(
    site: Site, builds: Builds, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = site.page(event.wait)
    with monkeypatch.context() as patch:
        patch.setattr("livepages.execution.page_process._collect", lambda *_: 1 / 0)
        builds.serve(page)
        event.set()
        assert builds.whole.wait(HANG)
        with pytest.raises(ZeroDivisionError):
            builds.run(page)
    assert not builds.run(page).pending and len(builds.started) == 2


def test_where_many_are_to_run_a_build_that_does_not_wait_for_them_has_all_processors(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    whole = threading.Event()

    def serve(runtime: Runtime) -> ForkServer:
        order.append("a process that pages are forked from")
        return ForkServer(runtime)

    monkeypatch.setattr("livepages.execution.runner.ForkServer", serve)
    for number in range((os.cpu_count() or 1) + 1):
        site.page("x = 1", name=f"page-{number}")
    runner = Runner()
    build = Build(Engine(site.project, runner))
    build.serve(
        read_course(site.project),
        lambda pages: order.append(f"{len(pages)} to run"),
        lambda page, run: None,
        patience=HANG,
        finished_late=lambda path: whole.set(),
    )
    order.append("over")
    build.engine.resume()
    assert whole.wait(HANG)
    runner.close()
    assert order == [f"{(os.cpu_count() or 1) + 1} to run", "over", "a process that pages are forked from"]


class Shown:
    """Builds of a site that is served, which has more pages than run at once when it begins."""

    def __init__(self, site: Site) -> None:
        self._site, self._runner = site, Runner()
        self.quick = [site.page("x = 1", name=f"quick-{number}").path for number in range((os.cpu_count() or 1) + 1)]
        self.build = Build(Engine(site.project, self._runner))
        self.finished: Queue[Path] = Queue()

    def again(self) -> set[Path]:
        """The files of the pages that one more build shows in part."""
        serve = self.build.serve
        serve(read_course(self._site.project), lambda new: None, lambda page, run: None, HANG, self.finished.put)
        return self.build.pending

    def close(self) -> None:
        self._runner.close()


@pytest.fixture
def shown(site: Site) -> Iterator[Shown]:
    shown = Shown(site)
    yield shown
    shown.close()


def test_while_pages_run_those_that_nobody_waits_for_are_shown_as_they_were(
    site: Site, shown: Shown, event: Event
) -> None:
    slow = site.page(event.wait, name="slow").path
    assert shown.again() == {slow, *shown.quick}
    shown.build.engine.resume()
    for _ in shown.quick:
        shown.finished.get(timeout=HANG)
    saved = site.page("print('saved')", name="saved").path
    assert shown.again() == {slow, saved, *shown.quick}
    assert shown.build.held_back == {*shown.quick} and shown.build.catch_up(saved)
    opened, *others = shown.quick
    shown.build.awaited.add(opened)
    assert shown.again() == {slow, *others}
    event.set()
    assert {shown.finished.get(timeout=HANG) for _ in range(2)} == {saved, slow}
    assert shown.again() == shown.build.held_back == set()


def test_a_page_whose_prose_is_saved_runs_before_those_in_the_background(site: Site, shown: Shown) -> None:
    shown.again()
    assert shown.again() == {*shown.quick}  # none begins before that build is over
    site.page("x = 1", name="quick-0", head="Edited.\n\n")
    assert shown.again() == {*shown.quick} and shown.build.catch_up(shown.quick[0])
    assert shown.build.pending == {*shown.quick[1:]}


def test_outputs_that_arrive_during_a_build_are_taken_with_their_failures(
    site: Site, shown: Shown, event: Event
) -> None:
    for path in shown.quick:
        path.unlink()
    page = site.page(event.wait, "1 / 0")
    status = site.write("docs/status.md", f"# Status\n\n{STATUS}\n")
    assert shown.again() == {page.path} and shown.build.last == [page.path, status]
    assert not shown.build.catch_up(status) and not shown.build.failures
    event.set()
    assert shown.build.catch_up(page.path) and shown.build.catch_up(status)
    assert not shown.build.pending and [failure.page for failure in shown.build.failures] == [page.name]
    assert not shown.build.catch_up(page.path)


def test_what_pages_are_forked_from_starts_while_they_are_read_if_the_one_edited_last_has_to_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    pages = [site.page(f"x = {number}", name=f"page-{number}") for number in range(3)]
    engine = site.engine
    engine.run(pages)
    monkeypatch.setattr(engine, "prepare", lambda: order.append("start"))
    read = engine.read

    def noted(paths: Iterable[Path], *texts: Any, **how: Any) -> object:
        given = list(paths)
        order.append(" ".join(path.stem for path in given))
        return read(given, *texts, **how)

    monkeypatch.setattr(engine, "read", noted)
    for changed in (None, pages[1].path):
        if changed:
            changed.write_text(changed.read_text().replace("x = 1", "x = 4"))
        for at, page in enumerate(pages):
            os.utime(page.path, (at, at) if page.path != changed else (9, 9))
        Build(engine).run(read_course(site.project), lambda pages: None, lambda page, run: None)
    every = "page-0 page-1 page-2"
    assert order == ["page-2", every, "page-1", "start", every]
