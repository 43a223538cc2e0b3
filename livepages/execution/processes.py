"""Processes for pages, forked from one that has imported the runtime; and the folders of their runs."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from livepages.execution.environment import page_environment
from livepages.worker import Exited, Forked, Job, Runtime, decode, encode


class WorkerError(Exception):
    """The engine's own process failed, through no fault of a page."""


class ServerLostError(WorkerError):
    """The process that pages are forked from has ended before its time."""

    def __init__(self) -> None:
        super().__init__("the process that pages are forked from has ended; its message stands above")


class Process:
    """The process of one page, which the server forks."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.status: int | None = None
        self.lost = False  # with the server
        self.ended = threading.Event()
        self._begun = threading.Event()

    def begin(self, pid: int) -> None:
        """Note that the process has been forked."""
        self.pid = pid
        self._begun.set()

    def end(self, status: int | None) -> None:
        """Note that the process has ended; None if that is unknown because the server has ended."""
        self.status, self.lost = status, status is None
        self._begun.set()
        self.ended.set()

    def wait(self, seconds: float) -> int | None:
        """The exit status (minus the signal) if the process ends within `seconds`.

        Raises:
            ServerLostError: it ended with the server.
        """
        self.ended.wait(seconds)
        if self.lost:
            raise ServerLostError
        return self.status

    def come_first(self) -> None:
        """Restore the priority of the process, as far as the system lets a user do so."""
        with contextlib.suppress(OSError):  # among the processes of other sessions: sched(7), The autogroup feature
            Path(f"/proc/{self.pid}/autogroup").write_text("0", encoding="ascii")
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self.pid or 0, os.getpriority(os.PRIO_PROCESS, 0))

    def kill(self) -> None:
        """End the process and all that it began."""
        self._begun.wait()
        if not self.ended.is_set() and self.pid:
            self.end_group()
            self.ended.wait()

    def end_group(self) -> None:
        """End at once what the process began in its group, and itself if it has not ended."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


class ForkServer:
    """The process that has imported the runtime and touched no device, which forks the pages' processes.

    However the process that made it ends, it ends too, and with it all pages and what they began, and the folders of
    their runs are deleted.
    """

    def __init__(self, runtime: Runtime) -> None:
        if not hasattr(os, "fork"):
            raise WorkerError(_NO_FORK)
        self._folder = _make_folder("")
        command = [sys.executable, "-P", "-m", "livepages.worker", runtime.name, str(self._folder)]
        environment = page_environment(runtime)
        # In a session of its own: what is sent to the group of the build must not keep it from tidying up.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        self._processes: dict[str, Process] = {}
        self._lock = threading.Lock()
        self._ended = False
        self.has_forked = False
        self._listener = threading.Thread(target=self._listen, name="livepages-server", daemon=True)
        self._listener.start()

    @property
    def alive(self) -> bool:
        """Return whether it can fork."""
        return not self._ended and self._process.poll() is None

    def new_folder(self) -> Path:
        """An empty folder for a run.

        Raises:
            WorkerError: there cannot be one.
        """
        return _make_folder(str(self._folder))

    def start(self, job: Job) -> Process:
        """Fork a process for a job.

        Raises:
            ServerLostError: there is no server any more.
        """
        process = Process()
        with self._lock:
            if self._ended:
                raise ServerLostError
            self._processes[job.folder] = process
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(encode(job))
                self._process.stdin.flush()
            except OSError:
                raise ServerLostError from None
        return process

    def close(self) -> None:
        """End it, once and for all."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self._listener.join(5)  # it closes the pipe, unless something that a page began still holds the other end
        shutil.rmtree(self._folder, ignore_errors=True)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout:
            for line in self._process.stdout:
                with contextlib.suppress(Exception):  # whatever a line is made of: a page may write here, if it tries
                    match decode(line):
                        case Forked(folder, pid):
                            self.has_forked = True
                            with self._lock:
                                self._processes[folder].begin(pid)
                        case Exited(folder, status):
                            with self._lock:
                                self._processes.pop(folder).end(status)
        with self._lock:
            self._ended = True
            for process in self._processes.values():
                process.end_group()
                process.end(None)


def _make_folder(parent: str) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="livepages-", dir=parent or None))
    except OSError as error:
        where = error.filename or parent or "the folder for temporary files"
        why = f"{where}: no folder can be made there: {error.strerror}"
        raise WorkerError(f"{why}; make room, or name another folder in the variable TMPDIR") from None


_NO_FORK = (
    "pages run in processes that are forked, which this system cannot do: use Linux or macOS, "
    "or on Windows the subsystem for Linux (WSL)"
)
