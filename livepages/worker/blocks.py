"""Run the blocks of a page one after another, and report their outcomes, with late output and threads left running."""

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

from livepages.worker import figures
from livepages.worker.capture import Capture
from livepages.worker.check import check_outcome
from livepages.worker.displays import DisplayHook
from livepages.worker.guard import Guard
from livepages.worker.interpreter import Interpreter
from livepages.worker.marks import skipped
from livepages.worker.protocol import (
    BlockFinished,
    BlockSpec,
    BlockStarted,
    Job,
    LateFailure,
    Message,
    Outcome,
    stopped_after,
)
from livepages.worker.runtime import Runtime
from livepages.worker.text import message_of
from livepages.worker.timer import LoadAdjustedTimer
from livepages.worker.unbound import NotBound

THREAD_GRACE = 1.0  # seconds, of a computer with little else to do, in which threads that a page has begun may end


class Blocks:
    """The blocks of a page, run one after another, with the outcomes so far."""

    def __init__(
        self, job: Job, runtime: Runtime, interpreter: Interpreter, capture: Capture, guard: Guard, work: str
    ) -> None:
        """Begin.

        Args:
            job: the page.
            runtime: has been set up for it.
            interpreter: runs the code of the blocks.
            capture: takes their output; has begun with the first block.
            guard: finds out which of them closes descriptors that it did not open.
            work: the folder that each must leave as the working directory; empty if any may be.
        """
        self._job, self._runtime, self._interpreter = job, runtime, interpreter
        self._capture, self._guard = capture, guard
        self._work, self._process = work, os.getpid()
        self._displays = sys.displayhook = DisplayHook()
        self._known = set(threading.enumerate())
        self._started: dict[threading.Thread, int] = {}  # the threads that blocks began, and which
        self._outcomes: dict[int, Outcome] = {}
        self._stopped: dict[str, Outcome] = {}  # by namespace, of the blocks after one that failed
        self._unbound = {block.namespace: NotBound() for block in job.blocks}

    def run(self, number: int) -> Iterator[Message]:
        """Run a block, unless it is to be skipped; yield the messages of its start and its end as they happen."""
        block = self._job.blocks[number]
        unbound = self._unbound[block.namespace]
        if block.namespace in self._stopped:
            yield BlockFinished(number, self._stopped[block.namespace])
            return
        if number != self._job.only[0]:
            self._capture.begin(number)
        yield BlockStarted(number)
        outcome = _skip_outcome(block, self._runtime) or unbound.check(block)
        if outcome is None:
            outcome = self._execute(number, block)
            missing = outcome.raised.name if outcome.raised else ""
            if missing in unbound.lines and not outcome.process_error and check_outcome(block.expected, outcome):
                outcome = unbound.outcome_without(missing)
            self._outcomes[number] = outcome
        if outcome.skipped:
            unbound.skip(block)
        elif check_outcome(block.expected, outcome) is None:
            unbound.ran(block)
        elif not block.is_inline:
            self._stopped[block.namespace] = stopped_after(number, block.line)
        yield BlockFinished(number, outcome)

    def _execute(self, number: int, block: BlockSpec) -> Outcome:
        """Run a block and return its outcome, whether it is the expected one or not."""
        figures.house_style.begin(block.code)
        before = self._runtime.counts()
        start = time.perf_counter()
        error = self._interpreter.execute(block)
        seconds = time.perf_counter() - start
        if os.getpid() != self._process:  # a child that the block forked came back from it
            os._exit(0)
        counts = {what: after - before[what] for what, after in self._runtime.counts().items()}
        outcome = Outcome(raised=self._interpreter.describe(error) if error else None, seconds=seconds, counts=counts)
        if block.expected.figures is not None:
            outcome = self._draw(outcome)
        streams, process_error = self._capture.take()
        process_error = process_error or self._guard.check()
        new = [thread for thread in threading.enumerate() if thread not in self._known | self._started.keys()]
        self._started |= dict.fromkeys(new, number)
        if self._work and not _restore_cwd(self._work):
            process_error = process_error or "changed the working directory and did not change it back"
        return replace(outcome, streams=streams, process_error=process_error)

    def _draw(self, outcome: Outcome) -> Outcome:
        """Return the outcome with displays and open figures, or with the exception that rendering these raised."""
        try:
            return replace(outcome, displays=self._displays.take(), figures=tuple(figures.take_open()))
        except Exception as error:  # noqa: BLE001  (of the block's own figures and displays)
            return replace(outcome, raised=self._interpreter.describe(error))

    def end(self) -> Iterator[Message]:
        """Yield the output that came after blocks had ended, and the threads that they left running."""
        left = _left_running(self._started)
        # Of threads that were waited for, and of processes that were not.
        for number, streams in self._capture.late().items():
            outcome = self._outcomes.get(number)
            if outcome and not outcome.skipped:
                yield BlockFinished(number, replace(outcome, streams=outcome.streams + streams))
        for thread, number in left:
            yield LateFailure(number, f"left the thread {thread.name} running: join it, or make it a daemon")


def _skip_outcome(block: BlockSpec, runtime: Runtime) -> Outcome | None:
    """The outcome of a block that must not run here; None if it may."""
    try:
        why = skipped(block.marks, block.importorskip) or (block.needs and runtime.lacks(block.needs))
    except BaseException as error:  # noqa: BLE001  (a mark may do anything)
        return Outcome(process_error=f"what is written above it raised {type(error).__name__}: {message_of(error)}")
    return Outcome(skipped=why) if why else None


def _restore_cwd(work: str) -> bool:
    """Return whether the working directory is still this one; if not, go back to it, even if it is gone."""
    try:
        if os.path.realpath(os.getcwd()) == work:
            return True
    except FileNotFoundError:
        os.makedirs(work, exist_ok=True)
    os.chdir(work)
    return False


def _left_running(started: dict[threading.Thread, int]) -> list[tuple[threading.Thread, int]]:
    """The threads that keep a script from ending, after some grace, and the block that began each."""
    clock = LoadAdjustedTimer()
    running = [thread for thread in started if not thread.daemon]
    if any(thread.is_alive() for thread in running):
        gc.collect()  # some end with the iterator that they work for
    while running and clock.seconds() < THREAD_GRACE:
        running[0].join(0.02)
        running = [thread for thread in running if thread.is_alive()]
    return [(thread, started[thread]) for thread in running]
