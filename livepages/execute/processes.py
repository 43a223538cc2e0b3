"""Processes for pages: forked from one that has imported JAX, or, where there is no fork, started afresh."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Protocol

CAN_FORK = hasattr(os, "fork")
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",  # sets print in the same order every time
    "PYTHON_COLORS": "0",
    "COLUMNS": "80",
    "MPLBACKEND": "svg",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # pages run side by side on one accelerator
}


class WorkerError(Exception):
    """The engine's own process failed, through no fault of a page."""


class Process(Protocol):
    """The process of one page."""

    def wait(self, seconds: float) -> int | None:
        """The exit status (minus the signal) if the process ends within `seconds`."""
        ...

    def kill(self) -> None:
        """End the process and all that it began."""
        ...


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "livepages.worker", *arguments]


def _environment() -> dict[str, str]:
    return {**_ENVIRONMENT, **os.environ, "PYTHONHASHSEED": "0", "COLUMNS": "80"}


class Forked:
    """A process that the server forked."""

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
        """As `Process.wait`."""
        return self.status if self.ended.wait(seconds) else None

    def kill(self) -> None:
        """As `Process.kill`."""
        self._begun.wait()
        if not self.ended.is_set() and self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.ended.wait()


class Server:
    """The process that has imported JAX and touched no backend, which forks the pages' processes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            _command("serve"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()
        )
        self._forked: dict[str, Forked] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._listen, name="livepages-server", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether it can fork."""
        return self._process.poll() is None

    def start(self, job: dict[str, Any]) -> Forked:
        """Fork a process for a job."""
        forked = Forked()
        with self._lock:
            self._forked[job["folder"]] = forked
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(_NO_SERVER) from None
        return forked

    def close(self) -> None:
        """End it, once and for all."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            with self._lock:
                forked = self._forked[event["folder"]]
            if "pid" in event:
                forked.begin(event["pid"])
            else:
                forked.end(event["status"])
                with self._lock:
                    del self._forked[event["folder"]]
        with self._lock:
            for folder, forked in self._forked.items():
                Path(folder, "crash").write_text(_NO_SERVER, encoding="utf-8")
                forked.end(70)


_NO_SERVER = "the process that pages are forked from has ended; its message stands above"


class Spawned:
    """A process of its own, where there is no fork."""

    def __init__(self, job: dict[str, Any]) -> None:
        file = Path(job["folder"], "job.json")
        file.write_text(json.dumps(job), encoding="utf-8")
        self._process = subprocess.Popen(
            _command("job", str(file)), stdin=subprocess.DEVNULL, env=_environment(), start_new_session=True
        )

    def wait(self, seconds: float) -> int | None:
        """As `Process.wait`."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """As `Process.kill`."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
