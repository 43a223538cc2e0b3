"""A cache of values by key, on disk: safe when several builds share it, bounded in size, deletable at any time."""

import contextlib
import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

LIMIT = 256 * 1024 * 1024  # bytes of one folder


class Cache:
    """JSON values in a folder, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[bytes, Any]] = {}

    def get(self, key: str) -> Any:
        """The value stored under `key`, the same object while it stays; None if there is none that can be read."""
        file = self._file(key)
        try:
            data = file.read_bytes()
            if key not in self._known or self._known[key][0] != data:
                self._known[key] = data, json.loads(data)
            with contextlib.suppress(OSError):  # of somebody else
                os.utime(file)
        except (OSError, ValueError, RecursionError):
            return None
        return self._known[key][1]

    def put(self, key: str, value: Any) -> None:
        """Store `value`, as `replace_text` does."""
        file = self._file(key)
        if file.is_dir():
            shutil.rmtree(file)
        replace_text(file, json.dumps(value))

    def _file(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def replace_text(file: Path, text: str) -> None:
    """Write a file in one step: a reader sees all of the old text or all of the new one, also while others write.

    Raises:
        OSError: it cannot be written; then it is as it was.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        new.write_text(text, encoding="utf-8", newline="\n")
        os.replace(new, file)
    finally:
        new.unlink(missing_ok=True)


def prune(folder: Path, limit: int = LIMIT) -> None:
    """Delete the files not used for longest until at most `limit` bytes are left below `folder`."""
    files = []
    for parent, _, names in os.walk(folder):
        for file in (os.path.join(parent, name) for name in names):
            with contextlib.suppress(OSError):  # another build deleted it
                state = os.stat(file)
                files.append((state.st_mtime, state.st_size, file))
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            os.unlink(file)
        total -= size
