"""A check for pages that close descriptors which they did not open."""

import os
from pathlib import Path


class Guard:
    """A descriptor that the page did not open, watched in case the page closes it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "guard"
        self._file.touch()
        self._open()

    def _open(self) -> None:
        self._descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        self._is = os.fstat(self._descriptor)

    def check(self) -> str:
        """Return what is wrong with the descriptor, if anything, and replace it in that case."""
        try:
            if os.path.samestat(os.fstat(self._descriptor), self._is):
                return ""
        except OSError:
            pass
        self._open()
        return "closed descriptors that it had not opened"
