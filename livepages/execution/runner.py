"""The runner of pages: a fresh process for each, several at a time, none of which can harm the build."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import IO

from livepages.execution.processes import Process, Server, ServerLostError, WorkerError
from livepages.execution.results import Run, pair_results
from livepages.source import Block, Page, Project
from livepages.worker import (
    CRASH,
    EXIT_CANNOT_REPORT,
    MESSAGES,
    OUT,
    OUTPUT_LIMIT,
    OUTPUTS,
    BlockFinished,
    BlockSpec,
    BlockStarted,
    DependenciesReported,
    Finished,
    Job,
    LateFailure,
    LoadAdjustedTimer,
    Message,
    Outcome,
    Ready,
    SettingsRejected,
    decode,
    stopped_after,
)

START_LIMIT = 120.0  # seconds until a page's process must have begun its first block


@dataclass(frozen=True)
class Task:
    """A page to run."""

    page: Page
    last: int | None = None  # the index of the last block that runs; None for all

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks to run."""
        return tuple(block for block in self.page.cases if self.last is None or block.index <= self.last)


def start_order(page: Page) -> tuple[bool, int]:
    """Return the key by which pages are sorted that begin at once: the smallest comes first.

    One with many blocks takes long, so it had better not be last; one that runs alone has to be.
    """
    return page.settings.exclusive, -len(page.cases)


class _Messages:
    """The messages of a page's process, read as they come."""

    def __init__(self) -> None:
        self.all: list[Message] = []
        self.first = 0  # of the current process
        self._file: IO[bytes] | None = None
        self._unread = b""

    def begin(self, file: Path) -> None:
        """Another process is about to speak, in a file of its own, which is held open here: the page may delete it."""
        self.end()
        self.first, self._file, self._unread = len(self.all), file.open("x+b"), b""

    def end(self) -> None:
        """Note that no more messages will come."""
        if self._file:
            self._file.close()
        self._file = None

    @property
    def latest(self) -> list[Message]:
        """The messages of the process that spoke last."""
        return self.all[self.first :]

    def read(self, blocks: int) -> None:
        """Take the lines that are new in the file, of a page of so many blocks."""
        if self._file:
            *lines, self._unread = (self._unread + self._file.read()).split(b"\n")
            for line in filter(None, lines):
                self.all.append(self._message(line, blocks))

    def _message(self, line: bytes, blocks: int) -> Message:
        """The message of a line. Only the page's process should write any, but the page might as well."""
        with contextlib.suppress(Exception):  # whatever is wrong with a line
            message = decode(line)
            if getattr(message, "block", 0) in range(blocks):
                return message
        return LateFailure(max(self.under_way, 0), "wrote into a file of the engine, by which its process reports")

    @property
    def under_way(self) -> int:
        """The block that began last, -1 if none has."""
        begun = [message for message in self.latest if isinstance(message, BlockStarted)]
        return begun[-1].block if begun else -1


class Running:
    """A page that is being run, or waits for its turn."""

    def __init__(self, task: Task, urgent: bool = False) -> None:
        self.task = task
        self.messages = _Messages()
        self.stopped = threading.Event()
        self.future: Future[Run] = Future()
        self.urgent = urgent  # whether somebody waits for it
        self._taken = threading.Lock()

    def take(self) -> bool:
        """Return whether the caller is the first that wants to run it."""
        return self._taken.acquire(blocking=False)

    def so_far(self) -> Run:
        """Return the run up to now; blocks without an outcome yet are pending."""
        outcomes = _outcomes(self.task, self.messages.all)
        return Run(pair_results(self.task.page, (outcome or Outcome(pending=True) for outcome in outcomes)))

    def stop(self) -> None:
        """Let it end soon, its process too; its future is cancelled unless it has finished by then."""
        self.stopped.set()
        self.future.cancel()


def finished(running: Iterable[Running], timeout: float | None = None) -> Iterator[Running]:
    """Yield the pages under way that finish within so many seconds, as soon as they do; all of them if None."""
    found = {one.future: one for one in running}
    with contextlib.suppress(TimeoutError):
        for future in as_completed(found, timeout):
            yield found[future]


class Runner:
    """A runner of pages. It keeps the process that fresh ones are forked from between calls; `close` ends it.

    Args:
        workers: how many pages run at a time; as many as there are processors if None.
        nice: by how much the processes of pages in the background come after others when all want a processor, as
            in `os.nice`.
    """

    def __init__(self, workers: int | None = None, nice: int = 0) -> None:
        self._workers, self._nice = workers or os.cpu_count() or 1, nice
        self._servers: dict[str, Server] = {}  # by the name of the runtime
        self._lock = threading.Lock()
        self._running: set[Running] = set()
        self._may_begin = threading.Event()
        self._may_begin.set()

    def run(
        self, project: Project, tasks: Iterable[Task], done: Callable[[Page, Run], None] = lambda page, run: None
    ) -> dict[Path, Run]:
        """Run each task's page in a process of its own.

        Args:
            project: the site the pages belong to.
            tasks: the pages; those with the most blocks are begun first, those that run alone last.
            done: called in this thread as soon as a page is finished.

        Raises:
            WorkerError: the process that pages are forked from could not be started.
        """
        runs = {}
        started = self.start(project, tasks)
        try:
            for running in finished(started):
                page = running.task.page
                runs[page.path] = running.future.result()
                done(page, runs[page.path])
        except BaseException:
            for running in started:
                running.stop()
            raise
        return runs

    def start(self, project: Project, tasks: Iterable[Task], urgent: bool = False) -> list[Running]:
        """Begin to run each task's page, as `run` does, and return at once.

        The pages share the cores with one another, not with those that an earlier call began: a page that never ends
        keeps no later one from running. Pages that measure time come after the others, one by one, and wait until no
        page of the project runs in any process. Those that are `urgent` are begun as `prioritize` begins one.
        """
        started = [Running(task, urgent) for task in sorted(tasks, key=lambda task: start_order(task.page))]
        self._running.update(started)
        together = [running for running in started if not running.task.page.settings.exclusive]
        alone = [running for running in started if running.task.page.settings.exclusive]
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="livepages")
        for running in together:
            pool.submit(self._run, project, running)
        if alone:
            pool.submit(self._run_alone, project, alone, together)
        pool.shutdown(wait=False)
        return started

    def prioritize(self, project: Project, path: Path) -> None:
        """Run the page of a file at once, beside those that run already, and before all pages in the background.

        It does not wait for a page that measures time, whose times are then those of a busy machine.
        """
        for running in list(self._running):
            if running.task.page.path == path:
                running.urgent = True
                threading.Thread(target=self._run, args=(project, running), daemon=True).start()

    def pause(self) -> None:
        """Let no page in the background begin until `resume`: something else needs the processors first."""
        self._may_begin.clear()

    def resume(self) -> None:
        """Let pages begin again."""
        self._may_begin.set()

    def prepare(self, project: Project) -> None:
        """Start the process that fresh ones are forked from: its imports are most of what the first page waits for."""
        with self._lock:
            self._ready(project)

    def close(self) -> None:
        """End what is under way, and the processes that fresh ones are forked from."""
        under_way = list(self._running)
        for running in under_way:
            running.stop()
        self.resume()
        wait([running.future for running in under_way])
        with self._lock:
            while self._servers:
                self._servers.popitem()[1].close()

    def _run_alone(self, project: Project, alone: list[Running], together: list[Running]) -> None:
        wait([running.future for running in together])
        for running in alone:
            self._run(project, running)

    def _run(self, project: Project, running: Running) -> None:
        if not running.urgent:
            self._may_begin.wait()
        if not running.take():
            return
        if running.future.set_running_or_notify_cancel():
            try:
                running.future.set_result(self._outcome(project, running))
            except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
                running.future.set_exception(error)
        self._running.discard(running)

    def _outcome(self, project: Project, running: Running) -> Run:
        """Run the blocks of a page, then those that vary with each of their other values."""
        blocks = running.task.blocks
        # One in a namespace of its own rests on nothing, so it runs with the page.
        again = [at for at, block in enumerate(blocks) if block.variant_of is not None and not block.options.isolated]
        self._run_program(project, running, [at for at in range(len(blocks)) if at not in again])
        for at in again:
            self._run_variant(project, running, at)
        return _run_of(running, project.runtime.computer)

    def _run_variant(self, project: Project, running: Running, at: int) -> None:
        """Run a block with other values, after all that comes before it, in a process of its own.

        In the process of the page it would find what the first values left behind: objects that they changed, functions
        that they compiled. Nor can that be copied: a runtime that has computed has threads, which no fork takes along.
        """
        blocks, messages = running.task.blocks, running.messages
        first = next(number for number, block in enumerate(blocks) if block.index == blocks[at].variant_of)
        known = _outcomes(running.task, messages.all)[first] or Outcome()
        if known.line:  # the settings of the page cannot be used
            return
        if known.skipped:
            messages.all.append(BlockFinished(at, known))
            return
        before = [
            number
            for number in range(first)
            if blocks[number].namespace == blocks[at].namespace and not blocks[number].is_value
        ]
        begin = len(messages.all)
        self._process(project, running, (*before, at))
        outcome = _outcomes(running.task, messages.all[begin:])[at] or Outcome()
        # What came before has been reported by the page's own process.
        messages.all[begin:] = [message for message in messages.all[begin:] if getattr(message, "block", at) == at]
        if outcome.stopped_by is not None:
            where = f"the block on line {blocks[outcome.stopped_by].line}"
            process_error = f"{where}, which comes before it, failed when it ran again for these values"
            messages.all.append(BlockFinished(at, Outcome(process_error=process_error)))

    def _run_program(self, project: Project, running: Running, only: list[int]) -> None:
        """Run some blocks of a page; where one ends the process, those that do not rest on it in another."""
        blocks = running.task.blocks
        while only:
            ended = self._process(project, running, tuple(only))
            if ended is None:
                break
            # Blocks of its namespace rest on the one that ended the process; others need what came before them again.
            rest = [at for at in only if at > ended and blocks[at].namespace != blocks[ended].namespace]
            shared = {blocks[at].namespace for at in rest if not blocks[at].options.isolated}
            only = [at for at in range(ended) if blocks[at].namespace in shared] + rest

    def _process(self, project: Project, running: Running, only: tuple[int, ...]) -> int | None:
        """Run some blocks of a page in a process of its own; the one that ended it before its end, if any."""
        messages, nice = running.messages, 0 if running.urgent else self._nice
        with _turn(project, running):
            try:
                with self._lock:
                    server = self._ready(project)
                return _run_in_child(server, project, running, only, nice)
            except ServerLostError:
                if not server.has_forked:
                    raise
                # It may be another page that has ended it. With a server of its own none can.
                del messages.all[messages.first :]
                server = Server(project.runtime)
                try:
                    return _run_in_child(server, project, running, only, nice)
                except ServerLostError:
                    if not server.has_forked:
                        raise
                    _end(running, max(messages.under_way, 0), Outcome(process_error=_KILLED_SERVER), all_after=True)
                    return None
                finally:
                    server.close()

    def _ready(self, project: Project) -> Server:
        name = project.runtime.name
        if name in self._servers and not self._servers[name].alive:
            self._servers.pop(name).close()
        if name not in self._servers:
            self._servers[name] = Server(project.runtime)
        return self._servers[name]


_KILLED_SERVER = "ended the process that pages are forked from, its parent"


def _run_in_child(server: Server, project: Project, running: Running, only: tuple[int, ...], nice: int) -> int | None:
    """Run some blocks of a page in a process that this server forks, as `Runner._process`."""
    folder = server.new_folder()
    running.messages.begin(folder / MESSAGES)
    try:
        process = server.start(_job(running.task, folder, project, only, nice))
        try:
            status, process_error = _watch(process, folder, _limits(project, running.task.page), running)
        except ServerLostError:
            running.messages.read(len(running.task.page.cases))
            raise
        finally:
            process.kill()
        return _collect(running, folder, status, process_error)
    finally:
        running.messages.end()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _turn(project: Project, running: Running) -> Iterator[None]:
    """Wait until the page may run: one that measures time alone, any other beside its like, in whatever process.

    While a page waits to run alone, none begins that comes after it: with always another under way, it would be last.

    Raises:
        CancelledError: the run was cancelled.
    """
    kind = fcntl.LOCK_EX if running.task.page.settings.exclusive else fcntl.LOCK_SH
    first, lock = _lock(project, "waiting.lock", "pyproject.toml"), _lock(project, "running.lock", "")
    try:
        try:
            _acquire(first, fcntl.LOCK_EX, running)
            _acquire(lock, kind, running)
        finally:
            os.close(first)
        yield
    finally:
        os.close(lock)


def _acquire(lock: int, kind: int, running: Running) -> None:
    while True:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if running.urgent and not running.task.page.settings.exclusive:
                return
            if running.stopped.wait(0.05):
                raise CancelledError from None


def _lock(project: Project, name: str, instead: str) -> int:
    """Open the file that the builds of a project lock: one of the cache, or where there can be none, another."""
    try:
        project.cache.mkdir(parents=True, exist_ok=True)
        return os.open(project.cache / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return os.open(project.root / instead, os.O_RDONLY | os.O_CLOEXEC)


def _limits(project: Project, page: Page) -> list[float]:
    """Seconds each block of the page may take."""
    default = page.settings.timeout or project.timeout
    return [block.options.timeout or default for block in page.cases]


def _job(task: Task, folder: Path, project: Project, only: tuple[int, ...], nice: int) -> Job:
    page = task.page
    names = _names(task.blocks) if project.fences == "exec" else {}
    return Job(
        folder=str(folder),
        name=page.script_name,
        blocks=tuple(
            BlockSpec(
                block.code,
                block.start,
                block.line,
                block.expected,
                block.options.needs or page.settings.needs,
                block.marks,
                block.importorskip,
                block.options.isolated,
                block.namespace,
                *names.get(block.index, ("__main__", "")),
                block.options.workdir,
                block.options.width,
                block.is_value,
            )
            for block in task.blocks
        ),
        only=only,
        uses=() if project.fences == "exec" else tuple(word for word in ("matplotlib",) if word in page.script),
        imports=_imports(task, project, only),
        preload=project.preload,
        settings=page.settings.runtime,
        options=project.options,
        path=(str(project.snippets),),
        root=str(project.root),
        # As markdown-exec has it for the blocks that it executes.
        work=str(project.root) if project.fences == "exec" else "",
        cache=str(project.cache / "compiled"),
        nice=nice,
        requested=time.monotonic(),
    )


def _names(blocks: Iterable[Block]) -> dict[int, tuple[str, str]]:
    """Return what markdown-exec would call the module that each block runs in, and its code in tracebacks, by index."""
    found: dict[int, tuple[str, str]] = {}
    counts: Counter[str] = Counter()
    for block in blocks:
        session, number, first = block.options.session, block.index + 1, block.index + 1
        if session:
            counts[session] += not block.is_value
            number, first = counts[session], 1
        name = f"<code block: {f'session {session}; ' if session else ''}n{{}}>"
        module = re.sub(r"[^a-zA-Z\d]+", "_", name.format(first))
        found[block.index] = module, "" if block.is_value else name.format(number)
    return found


def _imports(task: Task, project: Project, only: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    """Return what the page may find imported: what it imports first, down to the first module that is its project's."""

    def is_installed(pair: tuple[str, str]) -> bool:
        top = pair[0].partition(".")[0]
        return not ((project.snippets / top).exists() or (project.snippets / f"{top}.py").exists())

    first = takewhile(is_installed, task.page.first_imports) if only[:1] == (0,) else ()
    return (*first, *((module, "") for module in project.preload))


def _watch(process: Process, folder: Path, limits: Sequence[float], running: Running) -> tuple[int | None, str]:
    """Wait for the page's process. Its status; or, if a block took too long or wrote too much, None and which.

    Raises:
        CancelledError: the run was cancelled.
    """
    behind = not running.urgent
    begun, clock, outputs = -1, LoadAdjustedTimer(), folder / OUTPUTS
    blocks = len(running.task.page.cases)
    while True:
        status = process.wait(0.05)
        if running.stopped.is_set():
            raise CancelledError
        running.messages.read(blocks)
        if status is not None:
            return status, ""
        if behind and running.urgent and running.messages.under_way >= 0:
            behind = False
            process.come_first()
        if running.messages.under_way != begun:
            begun, clock = running.messages.under_way, LoadAdjustedTimer()
        limit = limits[begun] if begun >= 0 else START_LIMIT
        if clock.seconds() > limit:
            return None, f"ran longer than {limit:g} s: stopped after {clock}"
        if any(_size(file) > 2 * OUTPUT_LIMIT for file in outputs.glob("*")):
            return None, f"wrote more than {OUTPUT_LIMIT:,} bytes of output"


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _collect(running: Running, folder: Path, status: int | None, process_error: str) -> int | None:
    """Read the messages of the page's process. If it ended early, return the index of the block that ran."""
    task, messages = running.task, running.messages
    messages.read(len(task.page.cases))
    crash = (folder / CRASH).read_text(encoding="utf-8") if (folder / CRASH).exists() else ""
    number = messages.under_way
    if crash and number < 0:
        raise WorkerError(f"{task.page.name}: the engine failed\n{crash}")
    if crash:
        process_error = f"broke the process that it ran in: {crash.strip().splitlines()[-1]}"
    for message in messages.latest:
        match message:
            case SettingsRejected(why):
                process_error = f"the settings of the page cannot be used: {why}"
                _end(running, 0, Outcome(process_error=process_error, line=task.page.settings.line), all_after=True)
                return None
            case Finished():
                return None
    number = max(number, 0)
    known = _outcomes(task, messages.latest)[number]
    outcome = replace(
        known or Outcome(output=((OUT, _rest(folder / OUTPUTS / str(number))),)),
        process_error=process_error or _ending(status),
    )
    _end(running, number, outcome, all_after=False)
    return number


def _end(running: Running, number: int, outcome: Outcome, all_after: bool) -> None:
    """Say of a block that it ended the process, and of those after it that they do not run.

    Args:
        running: the page.
        number: the place of the block.
        outcome: its outcome.
        all_after: whether those do not run either that do not rest on it.
    """
    blocks = running.task.blocks
    stopped = stopped_after(number, blocks[number].line)
    running.messages.all.append(BlockFinished(number, outcome))
    for at in range(number + 1, len(blocks)):
        if all_after or blocks[at].namespace == blocks[number].namespace:
            running.messages.all.append(BlockFinished(at, stopped))


def _run_of(running: Running, computer: str) -> Run:
    """Return the run that the processes of a page have reported, on this kind of computer."""
    messages = running.messages.all
    finished = [message for message in messages if isinstance(message, Finished)]
    reports = [message for message in messages if isinstance(message, DependenciesReported | Finished)]
    return Run(
        results=pair_results(
            running.task.page, (outcome or Outcome() for outcome in _outcomes(running.task, messages))
        ),
        device=next((one.device for one in finished), ""),
        computer=computer,
        files=_sorted(*(one.files for one in reports)),
        probes=_sorted(*(one.probes for one in reports)),
        contents={probe: answer for one in reversed(reports) for probe, answer in one.contents.items()},
        written=_sorted(*(one.written for one in finished)),
        modules=_sorted(*(one.modules for one in finished)),
        seconds=sum(one.seconds for one in finished),
        ready=next((message.seconds for message in messages if isinstance(message, Ready)), 0.0),
    )


def _sorted(*several: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*several)))


def _outcomes(task: Task, messages: Iterable[Message]) -> list[Outcome | None]:
    """The outcomes that are known, None for other blocks."""
    outcomes: list[Outcome | None] = [None] * len(task.blocks)
    process_errors: dict[int, str] = {}
    for message in list(messages):
        match message:
            case BlockFinished(block, outcome):
                outcomes[block] = outcome
            case LateFailure(block, process_error):
                process_errors[block] = process_error
    for block, process_error in process_errors.items():
        if block < len(outcomes):
            outcome = outcomes[block] or Outcome()
            outcomes[block] = replace(
                outcome, process_error=outcome.process_error or process_error, skipped="", stopped_by=None
            )
    return outcomes


def _rest(output: Path) -> str:
    """The end of the output of a process that ended early, without the marks around standard error."""
    try:
        with output.open("rb") as file:
            file.seek(max(0, _size(output) - 4000))
            data = file.read()
    except FileNotFoundError:
        return ""
    return re.sub(rb"\x1e[+-].{8}", b"", data, flags=re.DOTALL).decode("utf-8", errors="replace")


def _ending(status: int | None) -> str:
    if status == EXIT_CANNOT_REPORT:
        return "ended the process, which could not write down why: its disk is full, or the folder of its run is gone"
    if status is None or status >= 0:
        return f"ended the process (exit status {status})"
    name = signal.Signals(-status).name
    return f"the process was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
