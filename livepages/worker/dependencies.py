"""What a page rests on besides its own text: the project's files it opens or imports, and distributions."""

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

_ENGINE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_NOT_LOCAL = tuple({os.path.realpath(path) + os.sep for path in (sys.prefix, sys.base_prefix, _ENGINE)})


def is_local(file: str, root: str) -> bool:
    """Whether a file is the project's: below its root, and of neither Python, its packages, nor this engine."""
    return file.startswith(root + os.sep) and not file.startswith(_NOT_LOCAL)


def content(file: Path) -> str | None:
    """A hash of what a file holds, or of the names in a folder; None if it is not there."""
    try:
        held = "\0".join(sorted(os.listdir(file))).encode() if file.is_dir() else file.read_bytes()
        return hashlib.sha256(held).hexdigest()
    except OSError:
        return None


class Dependencies:
    """The project's own files that a page opens or imports, folders it looks through, and distributions it imports."""

    def __init__(self, root: str, aside: list[str]) -> None:
        self._root = root
        self._aside = tuple(folder + os.sep for folder in aside)
        self._read: set[str] = set()
        self._written: set[str] = set()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        # Not os.listdir: imports list every folder of the path.
        if event not in ("open", "os.scandir") or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        file = os.path.realpath(os.fsdecode(arguments[0]))
        if not is_local(file, self._root) or file.startswith(self._aside):
            return
        if event == "os.scandir":
            self._read.add(file)
            return
        if os.path.isdir(file):
            return
        flags = arguments[2] if isinstance(arguments[2], int) else 0
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            self._written.add(file)
        elif file not in self._written and not file.endswith(".pyc"):
            self._read.add(file)

    def files(self) -> tuple[str, ...]:
        """Local files read, or looked for in vain, folders looked through, and the source files of local modules."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and is_local(file, self._root) and not file.startswith(self._aside):
                self._read.add(file)
        return tuple(sorted(self._read))

    @staticmethod
    def modules() -> tuple[str, ...]:
        """Top-level names of the modules imported from files outside the standard library."""
        found = {name for name, module in list(sys.modules.items()) if "." not in name and _origin(module)}
        return tuple(sorted(name for name in found - sys.stdlib_module_names if not name.startswith("_")))


def _origin(module: Any) -> object:
    return getattr(module, "__file__", None) or getattr(module, "__path__", None)
