"""The process of a page: start it, watch its time and its output, and note how it ended."""

import re
import shutil
import signal
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

from livepages.execution.jobs import job
from livepages.execution.processes import ForkServer, Process, ServerLostError, WorkerError
from livepages.execution.running import Running, limits, outcomes_of
from livepages.source import Project
from livepages.worker import (
    CRASH,
    EXIT_CANNOT_REPORT,
    MESSAGES,
    OUT,
    OUTPUT_LIMIT,
    OUTPUTS,
    BlockFinished,
    Finished,
    LoadAdjustedTimer,
    Outcome,
    SettingsRejected,
    stopped_after,
)

START_LIMIT = 120.0  # seconds until a page's process must have begun its first block


def run_in_child(
    server: ForkServer, project: Project, running: Running, only: tuple[int, ...], nice: int
) -> int | None:
    """Run some blocks of a page in a process that this server forks.

    Returns:
        the place of the block that ended the process before its end; None if none did.

    Raises:
        CancelledError: the run was cancelled.
        ServerLostError: the server has ended.
    """
    folder = server.new_folder()
    running.messages.begin(folder / MESSAGES)
    try:
        process = server.start(job(running.task, folder, project, only, nice))
        try:
            status, process_error = _watch(process, folder, limits(running.task.page, project), running)
        except ServerLostError:
            running.messages.read(len(running.task.page.cases))
            raise
        finally:
            process.kill()
        return _collect(running, folder, status, process_error)
    finally:
        running.messages.end()
        shutil.rmtree(folder, ignore_errors=True)


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
                mark_ended(
                    running, 0, Outcome(process_error=process_error, line=task.page.settings.line), all_after=True
                )
                return None
            case Finished():
                return None
    number = max(number, 0)
    known = outcomes_of(task, messages.latest)[number]
    outcome = replace(
        known or Outcome(streams=((OUT, _rest(folder / OUTPUTS / str(number))),)),
        process_error=process_error or _ending(status),
    )
    mark_ended(running, number, outcome, all_after=False)
    return number


def mark_ended(running: Running, number: int, outcome: Outcome, all_after: bool) -> None:
    """Say of a block that it ended the process, and of those after it that they do not run.

    Args:
        running: the page.
        number: the place of the block.
        outcome: its outcome.
        all_after: whether also those do not run that do not depend on it.
    """
    blocks = running.task.blocks
    stopped = stopped_after(number, blocks[number].line)
    running.messages.all.append(BlockFinished(number, outcome))
    for at in range(number + 1, len(blocks)):
        if all_after or blocks[at].namespace == blocks[number].namespace:
            running.messages.all.append(BlockFinished(at, stopped))


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
