"""Processes for pages, forked from one that has imported the runtime."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from livepages.worker import CRASH, Exited, Forked, Job, Runtime, decode, encode

_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",  # sets print in the same order every time
    "PYTHON_COLORS": "0",
    "COLUMNS": "80",
    "MPLBACKEND": "svg",
}


class WorkerError(Exception):
    """The engine's own process failed, through no fault of a page."""


def _environment(runtime: Runtime) -> Mapping[str, str]:
    """The environment of every page. Assertions are checks, so nobody may turn them off."""
    found = {**_ENVIRONMENT, **runtime.process_environment, **os.environ, "PYTHONHASHSEED": "0", "COLUMNS": "80"}
    found.pop("PYTHONOPTIMIZE", None)
    return found


class Process:
    """The process of one page, which the server forks."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.status: int | None = None
        self.ended = threading.Event()
        self._begun = threading.Event()

    def begin(self, pid: int) -> None:
        """Take note that the process has been forked."""
        self.pid = pid
        self._begun.set()

    def end(self, status: int) -> None:
        """Take note that the process has ended."""
        self.status = status
        self._begun.set()
        self.ended.set()

    def wait(self, seconds: float) -> int | None:
        """The exit status (minus the signal) if the process ends within `seconds`."""
        return self.status if self.ended.wait(seconds) else None

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


class Server:
    """The process that has imported the runtime and touched no device, which forks the pages' processes."""

    def __init__(self, runtime: Runtime) -> None:
        if not hasattr(os, "fork"):
            raise WorkerError(_NO_FORK)
        command = [sys.executable, "-P", "-m", "livepages.worker", runtime.name]
        environment = _environment(runtime)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._processes: dict[str, Process] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._listen, name="livepages-server", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether it can fork."""
        return self._process.poll() is None

    def start(self, job: Job) -> Process:
        """Fork a process for a job."""
        process = Process()
        with self._lock:
            self._processes[job.folder] = process
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(encode(job))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(_NO_SERVER) from None
        return process

    def close(self) -> None:
        """End it, once and for all."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match decode(line):
                case Forked(folder, pid):
                    with self._lock:
                        self._processes[folder].begin(pid)
                case Exited(folder, status):
                    with self._lock:
                        self._processes.pop(folder).end(status)
        with self._lock:
            for folder, process in self._processes.items():
                process.end_group()
                Path(folder, CRASH).write_text(_NO_SERVER, encoding="utf-8")
                process.end(70)


_NO_FORK = (
    "pages run in processes that are forked, which this system cannot do: use Linux or macOS, "
    "or on Windows the subsystem for Linux (WSL)"
)
_NO_SERVER = "the process that pages are forked from has ended; its message stands above"
