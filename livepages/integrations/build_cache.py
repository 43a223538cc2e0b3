"""The cache of the products of builds, also while serving: HTML, search entries, other forms of pages.

Each is kept under its kind and its page, with a digest of everything that it was made from, and made again when the
digest changes. The digest covers the library's own source and the versions of all that is installed.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from livepages.execution import engine_digest, replace_text

_KEPT = "_digest"  # the name under which a dataclass holds its own digest


class BuildCache:
    """Values that builds have made, in memory and as JSON in a folder; damaged or unwritable files only cost time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memory: dict[tuple[str, str], tuple[str, Any]] = {}
        self.settings = ""  # a digest of the site's settings

    def key(self, given: object) -> str:
        """A digest of what something is made from under the site's settings."""
        return digest([self.settings, given])

    def get(self, kind: str, name: str, key: str) -> Any:
        """Return the value of this kind for this page if it was kept under this key, else None."""
        known = self._memory.get((kind, name))
        if known is None or known[0] != key:  # another process may have made it since
            known = self._memory[kind, name] = self._read(self._file(kind, name))
        return known[1] if known[0] == key else None

    def put(self, kind: str, name: str, key: str, value: Any) -> None:
        """Keep a value that JSON can hold, in the place of the one before."""
        self._memory[kind, name] = key, value
        with suppress(OSError):
            replace_text(self._file(kind, name), json.dumps([key, value]))

    def drop_unfinished(self, pid: int) -> None:
        """Delete the file that a killed process was writing."""
        for file in self._folder.glob(f"*/.*.{pid}-*"):
            with suppress(OSError):
                file.unlink()

    def get_or_make(self, kind: str, name: str, given: object, make: Callable[[], Any]) -> Any:
        """Return the kept value that was made from equal things; if there is none, call `make` and keep its value."""
        key = self.key(given)
        value = self.get(kind, name, key)
        if value is None:
            value = make()
            self.put(kind, name, key, value)
        return value

    def _file(self, kind: str, name: str) -> Path:
        return self._folder / kind / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"

    @staticmethod
    def _read(file: Path) -> tuple[str, Any]:
        try:
            key, value = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            return "", None
        return str(key), value


def digest(value: object) -> str:
    """A digest of plain values, containers and dataclasses, and of the programs that make pages from them."""
    parts: list[str] = []
    _take_apart(value, parts.append)
    return hashlib.sha256(_makers() + "\0".join(parts).encode("utf-8", errors="surrogatepass")).hexdigest()


@cache
def _makers() -> bytes:
    installed = {file.name for folder in sys.path if Path(folder).is_dir() for file in Path(folder).glob("*.dist-info")}
    return json.dumps([engine_digest(), sorted(installed)]).encode()


def _take_apart(value: object, add: Callable[[str], object]) -> None:
    """Add the texts that make up a value, each container's after its kind and its length."""
    if isinstance(value, str):
        add(f"str {len(value)}")
        add(value)
    elif isinstance(value, list | tuple | set | frozenset):
        is_set = isinstance(value, set | frozenset)
        add(f"{'set' if is_set else 'list'} {len(value)}")
        for item in sorted(value, key=repr) if is_set else value:
            _take_apart(item, add)
    elif isinstance(value, Mapping):
        add(f"mapping {len(value)}")
        for key in sorted(value, key=repr):
            _take_apart(key, add)
            _take_apart(value[key], add)
    elif is_dataclass(value) and not isinstance(value, type):
        add(_of_dataclass(value))
    elif isinstance(value, bytes | bool | int | float | Path | None):
        add(repr(value))
    else:  # a runtime, for one, is described by its name
        add(f"{type(value).__module__}.{type(value).__qualname__}")
        _take_apart(getattr(value, "__dict__", {}), add)


def _of_dataclass(value: Any) -> str:
    """A digest of a dataclass, which is kept with it if it is frozen: while serving, most pages and runs stay."""
    known: str | None = vars(value).get(_KEPT)
    if known is None:
        parts = [type(value).__qualname__]
        for field in fields(value):
            _take_apart(getattr(value, field.name), parts.append)
        known = hashlib.sha256("\0".join(parts).encode("utf-8", errors="surrogatepass")).hexdigest()
        if value.__dataclass_params__.frozen:
            vars(value)[_KEPT] = known
    return known
