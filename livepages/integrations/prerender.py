"""The conversion of pages on all processors, because MkDocs converts one page after the other."""

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Prerenderer:
    """Processes that convert pages from the last one on, while the build converts them from the first one on.

    Their results are in the `BuildCache`. The build never waits for them: it converts every page itself that they
    have not converted by then.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._under_way: list[int] = []

    def begin(self, tasks: Sequence[T], carry_out: Callable[[T], object]) -> None:
        """Begin to carry out tasks, the last ones first, in copies of this process, whose output is not shown."""
        build = os.getpid()
        for first in range(min(self._processes, len(tasks))):
            with warnings.catch_warnings():
                # That other threads may hold locks: a process that waits for one of them is ended by `end`.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                try:
                    _be_silent()
                    for task in tasks[::-1][first :: self._processes]:
                        if os.getppid() != build:
                            break
                        with contextlib.suppress(Exception):  # the build will come upon it, and report it
                            carry_out(task)
                finally:
                    os._exit(0)
            self._under_way.append(pid)

    def end(self) -> list[int]:
        """Kill them and return their process ids."""
        ended, self._under_way = self._under_way, []
        for pid in ended:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        return ended


def _be_silent() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
