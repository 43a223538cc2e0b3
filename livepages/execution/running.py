"""A page that is being run: the blocks to run, the messages of its process, and the outcomes so far."""

import contextlib
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from livepages.execution.results import Run, pair_results
from livepages.source import Block, Page, Project
from livepages.worker import BlockFinished, BlockStarted, LateFailure, Message, Outcome, decode


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

    One with many blocks takes long, so it had better not be last; an exclusive one has to be.
    """
    return page.settings.exclusive, -len(page.cases)


def limits(page: Page, project: Project) -> list[float]:
    """Return how many seconds each block of a page may take."""
    default = page.settings.timeout or project.timeout
    return [block.options.timeout or default for block in page.cases]


class Messages:
    """The messages of a page's process, read as they come."""

    def __init__(self) -> None:
        self.all: list[Message] = []
        self.first = 0  # of the current process
        self._file: IO[bytes] | None = None
        self._partial = b""

    def begin(self, file: Path) -> None:
        """Begin with the messages of another process, in a file that stays open here, as the page may delete it."""
        self.end()
        self.first, self._file, self._partial = len(self.all), file.open("x+b"), b""

    def end(self) -> None:
        """Note that no more messages will come."""
        if self._file:
            self._file.close()
        self._file = None

    @property
    def latest(self) -> list[Message]:
        """The messages of the last process."""
        return self.all[self.first :]

    def read(self, blocks: int) -> None:
        """Take the lines that are new in the file, of a page of so many blocks."""
        if self._file:
            *lines, self._partial = (self._partial + self._file.read()).split(b"\n")
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
        self.messages = Messages()
        self.stopped = threading.Event()
        self.future: Future[Run] = Future()
        self.urgent = urgent  # whether somebody waits for it
        self._taken = threading.Lock()

    def take(self) -> bool:
        """Return whether the caller is the first that wants to run it."""
        return self._taken.acquire(blocking=False)

    def so_far(self) -> Run:
        """Return the run up to now; blocks without an outcome yet are pending."""
        outcomes = outcomes_of(self.task, self.messages.all)
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


def outcomes_of(task: Task, messages: Iterable[Message]) -> list[Outcome | None]:
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
