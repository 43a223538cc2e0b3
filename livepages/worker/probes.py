"""Probes: questions about a page's environment, which are asked again to find out whether its run still holds.

A probe is a line of text: its kind, a space, and its subject. Paths below the root of the project are relative to
it, so that the answers are the same wherever the project lies.

    root                the folder in which the project lies
    content PATH        the content of a file, or the names in a folder
    folder PATH         whether there is a folder
    variable NAME       an environment variable
    module NAME         whether a module is installed
    distribution NAME   the version of an installed distribution; of all of them if no name is given
"""

import contextlib
import hashlib
import os
import stat
import sys
import sysconfig
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from livepages.worker.runtime import installed

ENGINE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
# Here and only once, because sysconfig imports a module for it, which an audit hook must not do.
_PYTHON = frozenset(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PACKAGES = tuple(f"{name}{os.sep}" for name in ("site-packages", "dist-packages", ".egg-info", ".dist-info"))


def is_local(file: str, root: str) -> bool:
    """Return whether a file is the project's: below its root, and of neither Python, its packages, nor this engine."""
    return file.startswith(root + os.sep) and not is_installed(file, root)


def is_installed(file: str, root: str) -> bool:
    """Return whether a file belongs to Python, a package or this engine: their versions decide its content."""
    return file.startswith(_installed(root)) or any(part in file for part in _PACKAGES)


@cache
def _installed(root: str) -> tuple[str, ...]:
    folders = {ENGINE, *_PYTHON}
    # The project may lie below the folder that Python is installed in, as in /usr or in its own environment.
    prefixes = {path for path in (sys.prefix, sys.base_prefix) if not root.startswith(os.path.realpath(path) + os.sep)}
    return tuple({os.path.realpath(path) + os.sep for path in folders | prefixes})


def content(file: Path) -> str | None:
    """Return a hash of a file's content, or of the names in a folder; None if there is neither."""
    try:
        mode = file.stat().st_mode
        if stat.S_ISREG(mode):
            with file.open("rb", buffering=0) as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        held = "\0".join(sorted(os.listdir(file))) if stat.S_ISDIR(mode) else str(stat.S_IFMT(mode))
        return hashlib.sha256(held.encode(errors="surrogateescape")).hexdigest()
    except (OSError, ValueError):
        return None


def signature(file: Path) -> tuple[int, ...] | None:
    """Return numbers that change when a file is replaced or written to; None if there is no file.

    Any program can set a file's modification time, but not its change time.
    """
    try:
        found = file.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    except OSError:
        return None


def _distributions() -> list[str]:
    """The names and versions of all installed distributions, as folders have them: to read each takes long."""
    found: set[str] = set()
    for entry in sys.path:
        with contextlib.suppress(OSError):
            found.update(name for name in os.listdir(entry or ".") if name.endswith((".dist-info", ".egg-info")))
    return sorted(found)


def run_probe(probe: str, root: str) -> str | None:
    """Return the answer to a probe, for the project in the folder `root`."""
    kind, _, subject = probe.partition(" ")
    match kind:
        case "root":
            return root
        case "content":
            return content(Path(root, subject))
        case "folder":
            return "there" if Path(root, subject).is_dir() else None
        case "variable":  # it may hold a secret
            value = os.environ.get(subject)
            return None if value is None else hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()
        case "module":
            path = [entry for entry in sys.path if entry and not is_local(os.path.realpath(entry) + os.sep, root)]
            return "there" if PathFinder.find_spec(subject, path) else None
        case "distribution" if subject:
            return installed(subject) or None
        case "distribution":
            return hashlib.sha256("\n".join(_distributions()).encode()).hexdigest()
    raise ValueError(f"{probe!r} is not a probe")
