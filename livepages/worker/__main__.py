"""The process of a page: run its blocks one after another and report all that a reader would see.

``python -m livepages.worker RUNTIME FOLDER`` imports the runtime of this name once, then forks a process for each job
that it reads from standard input; the folders of their runs are in this one. The messages between them are defined
in `protocol`.
"""

import contextlib
import gc
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from livepages.worker import figures
from livepages.worker.capture import Capture
from livepages.worker.check import check_outcome
from livepages.worker.dependencies import Dependencies
from livepages.worker.displays import DisplayHook
from livepages.worker.fork_server import supervise
from livepages.worker.guard import Guard
from livepages.worker.marks import skipped
from livepages.worker.program import Program
from livepages.worker.protocol import (
    MESSAGES,
    OUTPUTS,
    BlockFinished,
    BlockSpec,
    BlockStarted,
    DependenciesReported,
    Finished,
    Job,
    LateFailure,
    Message,
    Outcome,
    Ready,
    SettingsRejected,
    encode,
    stopped_after,
)
from livepages.worker.runtime import Runtime, find_runtime
from livepages.worker.scrub import rename_known, scrub_paths
from livepages.worker.templates import set_up
from livepages.worker.text import message_of
from livepages.worker.timer import LoadAdjustedTimer
from livepages.worker.unbound import NotBound


def run_job(job: Job, runtime: Runtime, dependencies: Dependencies | None) -> None:
    """Run a page in this process, which must be its own, and write down the outcomes.

    Args:
        job: the page.
        runtime: has been imported.
        dependencies: notes what this process looks up, if it was set up for the page; else it is set up now.
    """
    folder = Path(job.folder)

    def report(message: Message) -> None:
        # No descriptor is kept, which the page might close, or come by another file under the number of.
        messages = os.open(folder / MESSAGES, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(messages, encode(message))
        finally:
            os.close(messages)

    _prefer_oom_kill()
    renamed = rename_known(job.root, job.folder)
    capture = Capture(folder / OUTPUTS, scrub_paths(renamed))
    capture.begin(job.only[0])
    guard = Guard(folder)
    work = os.path.realpath(job.work or folder / "work")
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    gc.unfreeze()
    try:
        dependencies = dependencies or set_up(job, runtime, folder.parent)
    except Exception as refusal:  # noqa: BLE001  (what the runtime has against a name or a value)
        report(SettingsRejected(f"{type(refusal).__name__}: {refusal}"))
        return
    program = Program(job, runtime, renamed)
    dependencies.go_on(lambda files, probes, seen: report(DependenciesReported(files, probes, seen)))
    displays = sys.displayhook = DisplayHook()
    known = set(threading.enumerate())
    started: dict[threading.Thread, int] = {}
    process = os.getpid()
    began = time.perf_counter()
    given: dict[int, Outcome] = {}
    stopped: dict[str, Outcome] = {}  # by namespace, of the blocks after one that failed
    unbound: dict[str, NotBound] = {block.namespace: NotBound() for block in job.blocks}
    report(Ready(time.monotonic() - job.requested))
    for number, block in enumerate(job.blocks):
        if number not in job.only:
            continue
        absent = unbound[block.namespace]
        if block.namespace in stopped:
            report(BlockFinished(number, stopped[block.namespace]))
            continue
        if number != job.only[0]:
            capture.begin(number)
        report(BlockStarted(number))
        if kept := _skip_outcome(block, runtime) or absent.check(block):
            if kept.skipped:
                absent.skip(block)
            report(BlockFinished(number, kept))
            if kept.process_error:
                stopped[block.namespace] = stopped_after(number, block.line)
            continue
        figures.house_style.begin(block.code)
        before = runtime.counts()
        start = time.perf_counter()
        error = program.execute(block)
        seconds = time.perf_counter() - start
        if os.getpid() != process:  # a child that the block forked came back from it
            os._exit(0)
        counts = {what: after - before[what] for what, after in runtime.counts().items()}
        raised = program.describe(error) if error else None
        outcome = Outcome(raised=raised, seconds=seconds, counts=counts)
        if block.expected.figures is not None:
            outcome = _draw(program, displays, outcome)
        output, process_error = capture.take()
        process_error = process_error or guard.check()
        started |= {thread: number for thread in threading.enumerate() if thread not in known | started.keys()}
        if not job.work and not _restore_cwd(work):
            process_error = process_error or "changed the working directory and did not change it back"
        outcome = replace(outcome, output=output, process_error=process_error)
        if check_outcome(block.expected, outcome):
            if raised and not process_error and raised.name in absent.lines:
                outcome = absent.skip(block, raised.name)
            elif not block.is_value:
                stopped[block.namespace] = stopped_after(number, block.line)
        else:
            absent.ran(block)
        given[number] = outcome
        report(BlockFinished(number, outcome))
    left = _left_running(started)
    # Of threads that were waited for, and of processes that were not.
    for number, output in capture.late().items():
        if number in given and not given[number].skipped:
            report(BlockFinished(number, replace(given[number], output=given[number].output + output)))
    for thread, number in left:
        report(LateFailure(number, f"left the thread {thread.name} running: join it, or make it a daemon"))
    device = runtime.device()
    seconds = time.perf_counter() - began
    files = dependencies.files()  # first, as it notes the modules
    looked_up = dependencies.probes(), dependencies.contents(), dependencies.written(), dependencies.modules()
    report(Finished(device, files, *looked_up, seconds))


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


def _draw(program: Program, displays: DisplayHook, outcome: Outcome) -> Outcome:
    """The outcome of a block with what its last expression shows and its open figures, or with what they raised."""
    try:
        return replace(outcome, displays=displays.take(), figures=tuple(figures.take_open()))
    except Exception as error:  # noqa: BLE001  (whatever a figure holds is the block's doing)
        return replace(outcome, raised=program.describe(error))


def _left_running(started: dict[threading.Thread, int]) -> list[tuple[threading.Thread, int]]:
    """The threads that keep a script from ending, after a second's grace, and the block that began each."""
    clock = LoadAdjustedTimer()
    running = [thread for thread in started if not thread.daemon]
    if any(thread.is_alive() for thread in running):
        gc.collect()  # some end with the iterator that they work for
    while running and clock.seconds() < 1.0:
        running[0].join(0.02)
        running = [thread for thread in running if thread.is_alive()]
    return [(thread, started[thread]) for thread in running]


def _prefer_oom_kill() -> None:
    """Let the system end this process before any other when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


if __name__ == "__main__":
    sys.exit(supervise(find_runtime(sys.argv[1]), Path(sys.argv[2]), run_job))
