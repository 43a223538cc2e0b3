"""Time limits that do not depend on what else the machine is doing."""

import contextlib
import os
import time
from pathlib import Path

_AVERAGES = Path("/proc/loadavg")  # of Linux: among others, how many threads want a processor now, as 3/245


def load() -> float:
    """Return how many threads want each processor now, at least 1; on other systems, the mean of a minute."""
    processors = os.cpu_count() or 1
    try:
        wanting = int(_AVERAGES.read_text(encoding="ascii").split()[3].partition("/")[0]) - 1.0  # this process is one
    except (OSError, ValueError, IndexError):
        wanting = 0.0
        with contextlib.suppress(OSError, AttributeError):
            wanting = os.getloadavg()[0]
    return max(1.0, wanting / processors)


class LoadAdjustedTimer:
    """Seconds since it was made, as they would be on an idle machine.

    While three threads want two processors, each gets two thirds of one, so a second counts as two thirds of a second.
    The load between two readings is taken to be that at the second; read it every tenth of a second or so.
    """

    def __init__(self) -> None:
        self._read = self._began = time.monotonic()
        self._seconds = 0.0

    def seconds(self) -> float:
        """The seconds up to now."""
        now = time.monotonic()
        self._seconds += (now - self._read) / load()
        self._read = now
        return self._seconds

    def __str__(self) -> str:
        wall = self._read - self._began
        shared = wall / self._seconds if self._seconds else 1.0
        return f"{wall:.1f} s" + (f", as the machine had {shared:.1f} times as much to do" if shared > 1.05 else "")
