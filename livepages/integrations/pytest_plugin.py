"""The integration with pytest: pages are files, blocks are items, and a failure points at the Markdown line.

A page runs once, in a process of its own, up to the last block that is selected, unless the cache holds its run. Pages
run side by side, as many as there are cores, from the moment the first item starts; those that measure time come last.
Use ``--dist loadfile`` with pytest-xdist: a page whose blocks go to several of its processes runs once in each. With
``--shard 2/8``, one of eight computers runs its part of the pages.
"""

import ast
import contextlib
import math
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_codeblocks.plugin import MarkdownFile, TestBlock

from livepages.course import read_course
from livepages.execution import Engine, Failure, Run, count, start_order
from livepages.integrations.listing import renewal
from livepages.integrations.shards import START, Shard, seconds, shard
from livepages.records import Records, check_block
from livepages.source import (
    MARKDOWN,
    Block,
    NoProjectError,
    Page,
    PageError,
    Project,
    ProjectError,
    find_project,
    parse_mark,
    read_page,
)

# Properties of reports, which reach the terminal from xdist, too.
_DIFFERS = "differs from a record of another kind"
_OUTDATED = "has no record that is up to date"
_RUNS = pytest.StashKey[dict[Path, "_Runs"]]()
_PUBLISHED = pytest.StashKey[dict[Path, frozenset[Path]]]()


class BlockError(Exception):
    """Raised for a block that did not do what its page expects."""


@dataclass(frozen=True)
class _FailureText:
    """A failure as pytest shows one: whole, and its first line in the summary."""

    text: str

    @property
    def reprcrash(self) -> SimpleNamespace:
        return SimpleNamespace(message=self.text)

    def toterminal(self, writer: Any) -> None:
        writer.line(self.text)

    def __str__(self) -> str:
        return self.text


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect pages here alone: pytest-codeblocks treats their blocks one by one."""
    collected = yield
    project = _project_of(file_path) if file_path.suffix in MARKDOWN else None
    if project is None:
        return collected
    # A page that the site leaves out is tested if it is named.
    if project.own(file_path) in _published(project, parent.session) or parent.session.isinitpath(file_path):
        return [PageFile.from_parent(parent, path=file_path)]
    return []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--shard``."""
    parser.getgroup("livepages").addoption(
        "--shard",
        type=shard,
        metavar="INDEX/COUNT",
        help="run only this part of the pages, as 2/8, and all other tests",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the pages of the shard, in the order in which they run, so that the progress can be seen."""
    if wanted := config.getoption("shard"):
        _keep_part(wanted, config, items)
    items.sort(key=lambda item: start_order(item.page) if isinstance(item, BlockItem) else (False, -math.inf))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the pages whose records are out of date, and the blocks whose output differs from the nearest record, where
    none is of the kind they ran on.
    """
    given = [pair for report in terminalreporter.getreports("passed") for pair in report.user_properties]
    differing = sorted(tuple(value) for name, value in given if name == _DIFFERS)
    outdated = sorted({tuple(value) for name, value in given if name == _OUTDATED})
    for host, pairs in groupby(outdated, key=itemgetter(0)):
        terminalreporter.write_line(renewal(host, (page for _, page in pairs)))
    if not differing:
        return
    terminalreporter.section("outputs that differ from the records of another kind of host")
    for (here, record), found in groupby(differing, key=itemgetter(0, 1)):
        places = [f"{page}:{line}: {difference}" for *_, page, line, difference in found]
        terminalreporter.line(f"On {here}, {count(len(places), 'block')} without a record, compared with {record}:")
        for place in places:
            terminalreporter.line(f"  {place}")
    terminalreporter.line("If these outputs are right, record this kind of host: livepages record --host NAME")


def _keep_part(wanted: Shard, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the items of pages that are not in a shard."""
    pages = {item.path: item for item in items if isinstance(item.parent, PageFile)}
    try:
        part = wanted.of(
            {
                path: seconds(item.page, Records(item.project)) if isinstance(item, BlockItem) else START
                for path, item in pages.items()
            }
        )
    except ProjectError as error:
        raise pytest.UsageError(str(error)) from None
    others = pages.keys() - part
    config.hook.pytest_deselected(items=[item for item in items if item.path in others])
    items[:] = [item for item in items if item.path not in others]


def _project_of(file: Path) -> Project | None:
    """The project whose page a file may be; settings that cannot be used end the tests."""
    try:
        project = find_project(file)
    except NoProjectError:
        return None
    except ProjectError as error:
        pytest.exit(str(error), pytest.ExitCode.USAGE_ERROR)
    return project if project.own(file).is_relative_to(project.docs) else None


def _published(project: Project, session: pytest.Session) -> frozenset[Path]:
    """The files of the pages that the site shows; a configuration that cannot be read ends the tests."""
    known = session.stash.setdefault(_PUBLISHED, {})
    if project.root not in known:
        try:
            known[project.root] = frozenset(read_course(project).pages)
        except ProjectError as error:
            pytest.exit(str(error), pytest.ExitCode.USAGE_ERROR)
    return known[project.root]


class PageFile(MarkdownFile):
    """One page."""

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each block that runs; for a page that cannot be read, one for each fault."""
        project = _project_of(self.path)
        assert project is not None
        try:
            page = read_page(project.own(self.path), project)
            on_line: Counter[str] = Counter()  # an include may hold several blocks
            for block in page.cases:
                on_line[block.where] += 1
                yield BlockItem.of(self, project, page, block, on_line[block.where])
        except PageError as error:
            for fault in error.faults:
                yield UnreadableItem.of(self, fault)


class UnreadableItem(pytest.Item):
    """A page that cannot be read; an error of collection would keep the other pages from being tested."""

    error: PageError

    @classmethod
    def of(cls, parent: PageFile, error: PageError) -> "UnreadableItem":
        """Return the item for a fault of a page."""
        item: UnreadableItem = cls.from_parent(parent, name=f"line {error.line}")
        item.error = error
        return item

    def runtest(self) -> None:
        """Fail."""
        raise self.error

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """Return the failure with page and line."""
        return _FailureText(str(excinfo.value))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the fault is; pytest counts lines from 0."""
        return self.path, self.error.line - 1, f"{self.error.page}:{self.error.line}"


class BlockItem(TestBlock):
    """One block; named as pytest-codeblocks names it."""

    project: Project
    page: Page
    block: Block
    mark_error: str | None

    @classmethod
    def of(cls, parent: PageFile, project: Project, page: Page, block: Block, on_line: int) -> "BlockItem":
        """The item of a block of the program, block `on_line` of those on its line, with the marks above it."""
        which = f", block {on_line}" if on_line > 1 else ""
        item: BlockItem = cls.from_parent(parent, name=f"line {block.where}{which}", obj=block)
        item.project, item.page, item.block = project, page, block
        item.mark_error = None
        for mark in block.marks:
            try:
                add(item, mark)
            except pytest.fail.Exception as error:  # it is not known, and pytest is strict
                item.mark_error = f"mark {mark}: {error}"
        return item

    def runtest(self) -> None:
        """Compare the block's outcome with what its page expects."""
        all_runs = self.session.stash.setdefault(_RUNS, {})
        runs = all_runs.get(self.project.root) or all_runs.setdefault(
            self.project.root, _Runs(self.session, self.project)
        )
        block = self.block
        if self.mark_error:
            raise BlockError(str(Failure(block.page, block.line, block.line, self.mark_error)))
        run = runs.of(self.page)
        result = run.results[block.index]
        if result.stopped_by and not self._is_selected(result.stopped_by.block):
            # Nothing else would report the failure.
            failed = result.stopped_by.failure
            raise BlockError(
                str(Failure(block.page, block.line, block.fence_line, block.describe(f"not run: {failed}")))
            )
        if skipped := result.outcome.skipped:
            pytest.skip(f"not run: {skipped}" if result.stopped_by else skipped)
        if runs.is_outdated(block, self.page):
            self.user_properties.append((_OUTDATED, (self.project.reference, block.page)))
        seen, runtime = runs.records.seen(self.page)(block), self.project.runtime
        found = check_block(result, run, seen, runtime)
        if isinstance(found, Failure):
            raise BlockError(str(found))
        if unread := runs.records.problems([self.page]):
            raise BlockError("\n".join(map(str, unread)))
        if found:
            here = ", ".join(filter(None, [run.device, runtime.release, run.computer]))
            difference = f"{found.difference.cause}{found.difference.size}"
            found_here = (here, f"{found.host.name} ({found.host.label})", block.page, block.line, difference)
            self.user_properties.append((_DIFFERS, found_here))

    def _is_selected(self, block: Block) -> bool:
        """Return whether another block of the page is tested as well."""
        items = (item for item in self.session.items if isinstance(item, BlockItem))
        return any((item.page.path, item.block.index) == (self.page.path, block.index) for item in items)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """The failure as page, line and filtered traceback."""
        if isinstance(excinfo.value, BlockError):
            return _FailureText(str(excinfo.value))
        return pytest.Item.repr_failure(self, excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the block is; pytest counts lines from 0."""
        return self.path, self.block.line - 1, f"{self.page.name}:{self.block.where}"


def add(item: pytest.Item, text: str) -> None:
    """Add a mark to an item, so that marks can select items, unless its arguments need the page's own code.

    Marks that skip a block are evaluated where it runs.
    """
    name, call = parse_mark(text)
    if not name.isidentifier() or name in ("skip", "skipif"):
        return
    with contextlib.suppress(ValueError):
        arguments = [ast.literal_eval(argument) for argument in call.args]
        named = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
        item.add_marker(getattr(pytest.mark, name)(*arguments, **named))


class _Runs:
    """The runs of all selected pages of a project: those that the cache holds, and the others, begun together in the
    background, or, in one of several processes of pytest-xdist, each when it is asked for, as no process knows which
    pages the others get."""

    def __init__(self, session: pytest.Session, project: Project) -> None:
        self._engine = Engine(project)
        self.records = Records(project)
        self._reference = project.reference
        self._outdated: dict[Path, list[Block]] = {}
        session.config.add_cleanup(self._engine.close)
        self._pages: dict[Path, Page] = {}
        self._last: dict[Path, int] = {}  # the index of the last selected block
        for item in session.items:
            if isinstance(item, BlockItem) and item.project == project:
                self._pages[item.page.path] = item.page
                self._last[item.page.path] = max(self._last.get(item.page.path, 0), item.block.index)
        self._runs = self._engine.kept(self._pages.values())
        stale = [path for path in self._pages if path not in self._runs]
        exclusive = sum(self._pages[path].settings.exclusive for path in stale)
        _write_line(
            session.config,
            f"{count(len(self._pages), 'page')}: {len(stale)} to run, {exclusive} of them alone at the end; "
            f"{len(self._runs)} unchanged",
        )
        self._ready = {path: threading.Event() for path in stale}
        self._error: BaseException | None = None
        self._one_by_one = hasattr(session.config, "workerinput")
        if stale and not self._one_by_one:
            threading.Thread(target=self._run, args=[stale], name="livepages-pytest", daemon=True).start()

    def is_outdated(self, block: Block, page: Page) -> bool:
        """Return whether the host whose records must be up to date has none of a block."""
        if page.path not in self._outdated:
            self._outdated[page.path] = self.records.outdated([page]).get(self._reference, [])
        return block in self._outdated[page.path]

    def of(self, page: Page) -> Run:
        """The run of a page, waited for."""
        if page.path not in self._runs:
            if self._one_by_one:
                self._run([page.path])
            self._ready[page.path].wait()
            if page.path not in self._runs and self._error:
                raise self._error
        return self._runs[page.path]

    def _run(self, paths: Iterable[Path]) -> None:
        try:
            self._engine.run([self._pages[path] for path in paths], self._done, self._last)
        except BaseException as error:  # noqa: BLE001  (raised again where it is waited for)
            self._error = error
            for ready in self._ready.values():
                ready.set()

    def _done(self, page: Page, run: Run) -> None:
        self._runs[page.path] = run
        self._ready[page.path].set()


def _write_line(config: pytest.Config, message: str) -> None:
    """Write a line between the dots of the tests, if there is a terminal reporter, without its being captured."""
    plugins = config.pluginmanager
    reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")
    if reporter:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            reporter.ensure_newline()
            reporter.write_line(message)
