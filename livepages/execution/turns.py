"""Turns: pages of a project run side by side, in whatever process; exclusive ones run alone."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from concurrent.futures import CancelledError

from livepages.execution.running import Running
from livepages.source import Project


@contextlib.contextmanager
def turn(project: Project, running: Running) -> Iterator[None]:
    """Wait until the page may run: an exclusive one alone, any other beside its like, in whatever process.

    While an exclusive page waits, none begins that comes after it: with always another under way, it would be last.

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
