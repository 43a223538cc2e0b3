"""Pages to outcomes: a fresh process for each page, several at a time, none of which can harm the build."""

import json
import os
import queue
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from livepages.capture import OUTPUT_LIMIT
from livepages.outcome import Outcome, Run, judge
from livepages.page import Page
from livepages.processes import CAN_FORK, Process, Server, Spawned, WorkerError
from livepages.project import Project


@dataclass(frozen=True)
class Task:
    """A page to run: its first `count` blocks, all of them if None, without those that `skipped` gives a reason for."""

    page: Page
    skipped: tuple[str, ...] = ()
    count: int | None = None


class Runner:
    """Runs pages. Holds, between calls, the process that fresh ones are forked from; `close` ends it."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or os.cpu_count() or 1
        self._server: Server | None = None
        self._lock = threading.Lock()

    def run(
        self, project: Project, tasks: Iterable[Task], done: Callable[[Page, Run], None] = lambda page, run: None
    ) -> dict[Path, Run]:
        """Run each task's page in a process of its own.

        Args:
            project: the site the pages belong to.
            tasks: the pages; those with the most blocks are begun first.
            done: called in this thread as soon as a page is finished.

        Raises:
            WorkerError: Python with jax could not be started.
        """
        ordered = sorted(tasks, key=lambda task: -len(task.page.program))
        finished: queue.SimpleQueue[tuple[Page, Run | BaseException]] = queue.SimpleQueue()

        def work(task: Task) -> None:
            try:
                finished.put((task.page, self._run(project, task)))
            except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
                finished.put((task.page, error))

        runs = {}
        with ThreadPoolExecutor(self._workers, thread_name_prefix="livepages") as pool:
            for task in ordered:
                pool.submit(work, task)
            for _ in ordered:
                page, run = finished.get()
                if isinstance(run, BaseException):
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise run
                runs[page.path] = run
                done(page, run)
        return runs

    def close(self) -> None:
        """End the process that fresh ones are forked from, if there is one."""
        with self._lock:
            if self._server:
                self._server.close()
                self._server = None

    def _run(self, project: Project, task: Task) -> Run:
        folder = Path(tempfile.mkdtemp(prefix="livepages-"))
        try:
            process = self._start(_job(task, folder, project))
            try:
                status, fault = _watch(process, folder, _limits(project, task.page))
            finally:
                process.kill()
            return _collect(task, folder, status, fault)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _start(self, job: dict[str, Any]) -> Process:
        if not CAN_FORK:
            return Spawned(job)
        with self._lock:
            if self._server is None or not self._server.alive:
                self._server = Server()
            return self._server.start(job)


def _limits(project: Project, page: Page) -> list[float]:
    """Seconds each block of the page may take."""
    default = page.settings.timeout or project.timeout
    return [block.options.timeout or default for block in page.program]


def _job(task: Task, folder: Path, project: Project) -> dict[str, Any]:
    page = task.page
    settings = page.settings
    blocks = page.program[: task.count]
    skipped = task.skipped or ("",) * len(blocks)
    return {
        "folder": str(folder),
        "name": page.script_name,
        "blocks": [
            {
                "code": block.code,
                "start": block.start,
                "needs": block.options.needs or settings.needs,
                "skipped": reason,
            }
            for block, reason in zip(blocks, skipped, strict=False)
        ],
        "uses": [word for word in ("matplotlib",) if word in page.script],
        "settings": {
            "devices": settings.devices,
            "x64": settings.x64,
            "jax": {**project.jax, **settings.jax},
        },
        "path": [str(project.snippets)],
        "root": str(project.root),
        "cache": str(project.cache / "compiled"),
        "asked": time.monotonic(),
    }


def _watch(process: Process, folder: Path, limits: Sequence[float]) -> tuple[int | None, str]:
    """Wait for the page's process. Its status; or, if a block took too long or wrote too much, None and which."""
    begun, since, offset = -1, time.monotonic(), 0
    while True:
        status = process.wait(0.05)
        if status is not None:
            return status, ""
        block, at = _under_way(folder)
        if block != begun:
            begun, since, offset = block, time.monotonic(), at
        limit = limits[begun] if 0 <= begun < len(limits) else max(limits, default=60.0)
        if time.monotonic() - since > limit:
            return None, f"ran longer than {limit:g} s"
        if _size(folder / "output") - offset > 2 * OUTPUT_LIMIT:
            return None, f"wrote more than {OUTPUT_LIMIT:,} bytes of output"


def _entries(folder: Path) -> list[dict[str, Any]]:
    try:
        lines = (folder / "outcomes").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def _under_way(folder: Path) -> tuple[int, int]:
    """The block that began last, -1 if none has, and where its output begins."""
    entries = [entry for entry in _entries(folder) if "begun" in entry]
    return (entries[-1]["begun"], entries[-1]["at"]) if entries else (-1, 0)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _collect(task: Task, folder: Path, status: int | None, fault: str) -> Run:
    """What the page's process wrote down, and for each block that it did not get to, why."""
    crash = (folder / "crash").read_text(encoding="utf-8") if (folder / "crash").exists() else ""
    if crash and _under_way(folder)[0] < 0:
        raise WorkerError(f"{task.page.name}: the engine failed\n{crash}")
    if crash:
        fault = f"broke the process that it ran in: {crash.strip().splitlines()[-1]}"
    blocks = task.page.program[: task.count]
    outcomes: list[Outcome | None] = [None] * len(blocks)
    last: dict[str, Any] = {}
    ready = 0.0
    for entry in _entries(folder):
        if "outcome" in entry:
            outcomes[entry["block"]] = Outcome.from_json({**_EMPTY, **entry["outcome"]})
        elif "fault" in entry:
            outcomes[entry["block"]] = replace(outcomes[entry["block"]] or Outcome(), fault=entry["fault"])
        elif "refused" in entry:
            fault = f"the settings of the page cannot be used: {entry['refused']}"
        elif "ready" in entry:
            ready = entry["ready"]
        elif "device" in entry:
            last = entry
    if not last:
        number, at = _under_way(folder)
        outcomes = _ended(task, outcomes, max(number, 0), _rest(folder, at), fault or _ending(status))
    return Run(
        outcomes=_without_consequences(task.page, [outcome or Outcome() for outcome in outcomes]),
        device=last.get("device", ""),
        files=dict.fromkeys(last.get("files", ())),
        modules=tuple(last.get("modules", ())),
        seconds=last.get("seconds", 0.0),
        ready=ready,
    )


_EMPTY: dict[str, Any] = {
    "output": (),
    "figures": (),
    "raised": None,
    "fault": "",
    "skipped": "",
    "seconds": 0.0,
    "traces": 0,
    "compiles": 0,
}


def _ended(task: Task, outcomes: list[Outcome | None], at: int, output: str, fault: str) -> list[Outcome | None]:
    """The outcomes of a page whose process ended early, in block number `at`."""
    ended = list(outcomes)
    ended[at] = replace(ended[at] or Outcome(output=(("out", output),)), fault=fault)
    line = task.page.program[at].line
    for number in range(at + 1, len(ended)):
        ended[number] = Outcome(skipped=f"the block of line {line} ended the process")
    return ended


def _rest(folder: Path, at: int) -> str:
    """The end of the output of a process that ended early, without the marks around standard error."""
    try:
        with (folder / "output").open("rb") as file:
            file.seek(max(at, _size(folder / "output") - 4000))
            data = file.read()
    except FileNotFoundError:
        return ""
    return re.sub(rb"\x1e[+-].{8}", b"", data, flags=re.DOTALL).decode("utf-8", errors="replace")


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended the process (exit status {status})"
    name = signal.Signals(-status).name
    return f"the process was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


def _without_consequences(page: Page, outcomes: list[Outcome]) -> tuple[Outcome, ...]:
    """A name that a failed or skipped block did not get to bind is no failure of the block that misses it."""
    missing: dict[str, int] = {}
    kept = []
    for block, outcome in zip(page.program, outcomes, strict=False):
        name = outcome.raised.name if outcome.raised else ""
        if name in missing:
            why = f"needs {name}, which the block of line {missing[name]} did not get to make"
            kept.append(Outcome(skipped=why))
        else:
            kept.append(outcome)
        if name in missing or outcome.skipped or judge(block, outcome):
            missing |= {bound: block.line for bound in block.binds if bound not in missing}
    return tuple(kept)
