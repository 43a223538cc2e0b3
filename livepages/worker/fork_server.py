"""The process that pages are forked from: it has imported the runtime, and touched no device.

The first imports of a page are made in a copy of that process (`templates`), from which all pages with the same first
imports are forked.
"""

import contextlib
import ctypes
import fcntl
import gc
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from livepages.worker import figures
from livepages.worker.capture import streams, write_all
from livepages.worker.dependencies import Dependencies
from livepages.worker.probes import run_probe
from livepages.worker.protocol import CRASH, EXIT_CANNOT_REPORT, Exited, Forked, Job, Message, decode, encode
from livepages.worker.runtime import Runtime
from livepages.worker.templates import READY, import_modules, not_loaded

TEMPLATES = 4  # kept at a time; each holds its imports in memory
IMPORT_LIMIT = 60.0  # seconds that one may take; then pages import for themselves
RunJob = Callable[[Job, Runtime, Dependencies | None], None]


def supervise(runtime: Runtime, folder: Path, run_job: RunJob) -> int:
    """Serve in a child process; when it has ended, in whatever way, end its processes and delete the folder.

    Neither ends by a signal to the group that they share with the build: both end when the build does, or closes them.
    """
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _OF_GROUPS}
    _prctl(_ADOPT, 1)
    lock = _locked(folder)
    server = os.fork()
    if server == 0:
        status = 1
        try:
            # Loggers that are set up at import keep the stream they see then.
            sys.stderr = streams()[1]
            gc.disable()  # looking for garbage while modules are imported takes a fifth of the time
            runtime.preload()
            gc.enable()
            Forker(runtime, folder, before, lock, run_job).serve()
            shutil.rmtree(folder, ignore_errors=True)
            status = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(status)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    _delete_abandoned(folder.parent)
    status = 0
    ended = 0
    while ended != server:
        ended, status = os.wait()
    _end_orphans(())
    while os.read(0, 1 << 16):  # until the build, which may still read there, has no use for the folder
        pass
    shutil.rmtree(folder, ignore_errors=True)
    return abs(os.waitstatus_to_exitcode(status))


_OF_GROUPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOCK = "lock"


def _locked(folder: Path) -> int:
    """A lock in a folder, held for as long as this process lives, or one that it forks."""
    with contextlib.suppress(OSError):
        lock = os.open(folder / f"{_LOCK}-new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(folder / f"{_LOCK}-new", folder / _LOCK)
        return lock
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _delete_abandoned(parent: Path) -> None:
    """Delete the folders that others like this process have left because they were killed."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent):
            if not entry.name.startswith("livepages-") or not entry.is_dir(follow_symlinks=False):
                continue
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    lock = os.open(Path(entry.path, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(entry.path, ignore_errors=True)
                    finally:
                        os.close(lock)


@dataclass
class _Template:
    """A copy of the server, which imports modules and then serves the jobs that begin with them."""

    pid: int
    job_writer: int  # the descriptor that its jobs are written to
    progress_reader: int  # the descriptor that its progress is read from (`import_modules`)
    root: str  # of the project
    began: float = field(default_factory=time.monotonic)
    progress: bytes = b""
    waiting: list[Job] | None = field(default_factory=list)  # until it is ready
    answers: Mapping[str, str | None] = field(default_factory=dict)  # what its imports have looked up

    @property
    def is_current(self) -> bool:
        """Return whether its imports would find everything as they did."""
        return all(run_probe(probe, self.root) == answer for probe, answer in self.answers.items())


class Forker:
    """Fork a process for each job that is read, and report on standard output which began and which ended.

    Args:
        runtime: has been imported.
        folder: holds the folders of all runs.
        before: the handlers of a page's process for the signals that this one ignores.
        lock: a descriptor that is not for pages.
        run_job: called in a page's process.
    """

    def __init__(
        self, runtime: Runtime, folder: Path, before: Mapping[signal.Signals, Any], lock: int, run_job: RunJob
    ) -> None:
        self._runtime, self._folder, self._before, self._run_job = runtime, folder, before, run_job
        self._status_fd, self._lock = os.dup(1), lock
        self._dependencies: Dependencies | None = None  # of a template
        self._unsafe: set[str] = set()  # modules that must not be imported before the fork
        self._begin(0)

    def _begin(self, jobs: int) -> None:
        """Serve the jobs of a descriptor, with no children yet."""
        self._jobs = jobs
        self._running: dict[int, str] = {}  # the folders of runs, by process
        self._templates: dict[str, _Template] = {}  # by their imports; the one that was used last comes last
        self._draining: set[int] = set()  # templates that end when their pages have ended
        self._drains = False  # whether this is such a one
        # When a child ends, the handler only writes to a pipe; the loop reaps it, so no code is interrupted.
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        _prctl(_ADOPT, 1)

    def serve(self) -> None:
        """Serve until no more jobs can come; then end all pages."""
        gc.collect()
        gc.freeze()
        partial = b""
        while not self._drains or self._running:
            starting = {one.progress_reader: key for key, one in self._templates.items() if one.waiting is not None}
            jobs = [] if self._drains else [self._jobs]
            readable, _, _ = select.select([self._woken, *jobs, *starting], [], [], 1 if starting else None)
            if self._woken in readable:
                os.read(self._woken, 4096)
                self._reap()
            for descriptor in starting.keys() & {*readable}:
                self._read_progress(starting[descriptor])
            self._give_up_on_slow()
            if self._jobs not in readable:
                continue
            data = os.read(self._jobs, 1 << 16)
            if not data:
                break
            *lines, partial = (partial + data).split(b"\n")
            for line in filter(None, lines):
                if line == _DRAIN:
                    self._drains = True
                elif job := _job(line):
                    self._take(job)
        for pid in self._children():
            os.kill(pid, signal.SIGKILL)  # it may not lead its group yet
            _end_group(pid)
        _end_orphans(())

    def _report(self, message: Message) -> None:
        os.write(self._status_fd, encode(message))

    def _reap(self) -> None:
        ready = {one.pid for one in self._templates.values() if one.waiting is None}
        for pid in (*self._running, *self._draining, *ready):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            if pid in self._running:
                _end_group(pid)
                folder = self._running.pop(pid)
                _end_orphans(self._children())
                self._report(Exited(folder, os.waitstatus_to_exitcode(status)))
            elif pid in ready:  # ended by a page, as the server itself might be
                os._exit(1)
            self._draining.discard(pid)

    def _children(self) -> set[int]:
        return {*self._running, *self._draining, *(one.pid for one in self._templates.values())}

    # --- pages ---------------------------------------------------------------------------------------------------

    def _take(self, job: Job) -> None:
        """Fork a page, here or from a template that has made its first imports."""
        if self._dependencies:
            self._fork(job)
            return
        if "matplotlib" in job.uses:
            figures.preload()
        modules = not_loaded(job.imports, self._unsafe)
        if not modules:
            self._fork(job)
            return
        key = json.dumps([modules, job.uses, job.settings], sort_keys=True)
        template = self._templates.pop(key, None)
        if template and template.waiting is None and not template.is_current:
            self._drain(template)
            template = None
        template = self._templates[key] = template or self._new_template(job, modules)
        if template.waiting is None:
            write_all(template.job_writer, encode(job))
        else:
            template.waiting.append(job)

    def _fork(self, job: Job) -> None:
        pid = os.fork()
        if pid == 0:
            self._become_page(job)
        self._running[pid] = job.folder

    def _become_page(self, job: Job) -> NoReturn:
        os.setsid()
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        _prctl(_ADOPT, 1)
        # Only now can it be killed with all that it begins, so it reports itself that it has begun.
        self._report(Forked(job.folder, os.getpid()))
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._close()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _lower_priority(job.nice)
        _reseed()
        status = EXIT_CANNOT_REPORT
        try:
            self._run_job(job, self._runtime, self._dependencies)
            status = 0
        except BaseException:  # noqa: BLE001
            Path(job.folder, CRASH).write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
            status = 70
        finally:
            os._exit(status)  # a page must not run its host's exit handlers

    def _close(self) -> None:
        """Close the server's own descriptors, in a process that it has forked."""
        own = {self._status_fd, self._lock, self._woken, self._wake, self._jobs} - {0}
        for template in self._templates.values():
            own |= (
                {template.job_writer} if template.waiting is None else {template.job_writer, template.progress_reader}
            )
        for descriptor in own:
            os.close(descriptor)

    # --- templates -----------------------------------------------------------------------------------------------

    def _new_template(self, job: Job, modules: list[tuple[str, str]]) -> _Template:
        ready = [key for key, one in self._templates.items() if one.waiting is None]
        if len(self._templates) >= TEMPLATES and ready:
            self._drain(self._templates.pop(ready[0]))
        (jobs, job_writer), (progress_reader, progress_fd) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(job_writer)
                os.close(progress_reader)
                self._become_template(job, modules, jobs, progress_fd)
                status = 0
            finally:
                os._exit(status)
        os.close(jobs)
        os.close(progress_fd)
        return _Template(pid, job_writer, progress_reader, job.root)

    def _become_template(self, job: Job, modules: list[tuple[str, str]], jobs: int, progress_fd: int) -> None:
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        status_fd = os.dup(self._status_fd)
        lock = os.dup(self._lock)
        self._close()
        self._status_fd, self._lock = status_fd, lock
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self._begin(jobs)
        gc.disable()
        self._dependencies = import_modules(modules, job, self._runtime, self._folder, progress_fd)
        gc.enable()
        os.close(progress_fd)
        if self._dependencies:
            self.serve()

    def _read_progress(self, key: str) -> None:
        """Read the progress of a template that is being made; when it is ready or has failed, do what waits for it."""
        template = self._templates[key]
        data = os.read(template.progress_reader, 1 << 16)
        template.progress += data
        if data:
            return
        os.close(template.progress_reader)
        *earlier, last = template.progress.decode().splitlines() or [""]
        waiting, template.waiting = template.waiting or [], None
        if last.startswith(READY):
            template.answers = json.loads(last.removeprefix(READY))
        else:
            del self._templates[key]
            os.close(template.job_writer)
            os.kill(template.pid, signal.SIGKILL)
            os.waitpid(template.pid, 0)
            if not last:  # the settings are refused, as they will be in each page's own process
                for job in waiting:
                    self._fork(job)
                return
            self._unsafe.add(last)
        for job in waiting:
            self._take(job)

    def _give_up_on_slow(self) -> None:
        for template in self._templates.values():
            if template.waiting is not None and time.monotonic() - template.began > IMPORT_LIMIT:
                os.kill(template.pid, signal.SIGKILL)  # which closes the descriptor of its progress

    def _drain(self, template: _Template) -> None:
        """Let a template end when its pages have ended."""
        write_all(template.job_writer, b"\n" + _DRAIN + b"\n")
        os.close(template.job_writer)
        self._draining.add(template.pid)


_DRAIN = b"drain"


def _job(line: bytes) -> Job | None:
    """Return the job in a line; None for any other line, which the build does not write."""
    with contextlib.suppress(Exception):  # whatever a line is made of
        message = decode(line)
        if isinstance(message, Job):
            return message
    return None


def _reseed() -> None:
    """Give this process random numbers of its own, where NumPy was imported before the fork; Python does so itself."""
    if random := sys.modules.get("numpy.random"):
        random.seed()


def _lower_priority(nice: int) -> None:
    """Let other processes have the processor first, as `os.nice` does. That alone counts within a session, and a page
    has one of its own (sched(7), The autogroup feature)."""
    os.nice(nice)
    if nice:
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(nice), encoding="ascii")


# Of Linux: the signal that comes when the parent dies; whether orphans of its own become its children.
_DIE_WITH_PARENT, _ADOPT = 1, 36


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end_orphans(running: Iterable[int]) -> None:
    """End a page's processes in sessions of their own: when the page has ended, they are this process's children."""
    with contextlib.suppress(OSError):
        me = os.getpid()
        while left := {*map(int, Path(f"/proc/{me}/task/{me}/children").read_text("ascii").split())} - {*running}:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
