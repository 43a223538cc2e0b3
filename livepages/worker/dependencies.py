"""The dependencies of a page besides its own text: everything that it looks up in its surroundings while it runs.

Files and folders that it opens or looks through are noted by name, as are the source files of its modules; below the
root of the project by their name there, so that it does not matter where the project lies. Everything else
is noted as a probe: whether a file or folder exists, an environment variable, a module, a version. The page notices
nothing of it.

What is read by a program that the page starts, or by a library that opens files without Python, cannot be observed. The
files that their arguments name are noted here, those that the code names outside of this process
(`execution.named_files`), and the front matter of the page lists the rest (``depends_on``).
"""

import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import FrameType
from typing import Any
from urllib.parse import unquote

from livepages.worker.probes import ENGINE, is_installed, is_local, run_probe

_PREFIXES = (sys.prefix, sys.base_prefix)
_SYSTEM = tuple(f"{os.sep}{name}{os.sep}" for name in ("proc", "sys", "dev", "run"))  # where nothing stays as it is


class _Thread(threading.local):
    is_paused = False


class Dependencies:
    """Note what this process looks up from now on."""

    def __init__(self, root: str, aside: Sequence[str], own: Sequence[str]) -> None:
        """Begin.

        Args:
            root: of the project.
            aside: folders that are the page's own.
            own: the names of the runtime's packages.
        """
        self._root, self._own = root, own
        self._aside = tuple(folder + os.sep for folder in aside)
        self._temporary = os.path.realpath(tempfile.gettempdir()) + os.sep
        # These folders exist wherever the page runs, and so do all folders around them.
        given = (root, ENGINE, *aside, *_PREFIXES, *map(os.path.realpath, _PREFIXES))
        self._given = tuple({os.path.join(path, "") for path in given})
        self._files: set[str] = set()
        self._probes: set[str] = set()
        self._contents: dict[str, str | None] = {}
        self._written: set[str] = set()
        self._seen: set[tuple[str, str]] = set()
        self._modules: set[str] = set()
        self._thread = _Thread()
        self.go_on(lambda files, probes, seen: None)
        self._watch_folders()
        sys.addaudithook(self._audit)
        sys.meta_path.insert(0, self)
        os.environ.__class__ = _variables(self._variable)

    def go_on(self, report: Callable[[tuple[str, ...], tuple[str, ...], dict[str, str | None]], None]) -> None:
        """Watch this process from now on, which may be a fork of the one that was watched before.

        Args:
            report: tells the parent of the files and probes that a forked process has looked up, and of the
                answers.
        """
        self._process, self._began, self._report = os.getpid(), time.time(), report

    # --- hooks ---------------------------------------------------------------------------------------------------

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        match event:
            case "open":
                self._opened(arguments[0], arguments[2] if isinstance(arguments[2], int) else 0)
            case "os.scandir":
                self._note("files", arguments[0])
            case "sqlite3.connect":
                self._opened(_database(arguments[0]), os.O_RDWR | os.O_CREAT)
            case "subprocess.Popen" | "os.posix_spawn" | "os.exec":
                self._started(arguments[1])
            case "os.system":
                self._started([arguments[0]])

    def _watch_folders(self) -> None:
        """Watch `os.stat` and similar functions; imports find files in another way, and `find_spec` watches them."""
        for name in ("stat", "lstat", "access"):
            setattr(os, name, self._noting(getattr(os, name), "probes"))
        os.listdir = self._noting(os.listdir, "files")

    def _noting(self, function: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def noted(*arguments: Any, **named: Any) -> Any:
            path = arguments[0] if arguments else named.get("path", ".")
            if named.get("dir_fd") is None and _module(sys._getframe(1)) != "importlib":
                self._note(kind, "." if path is None else path)
            return function(*arguments, **named)

        noted.__name__, noted.__doc__ = function.__name__, function.__doc__
        for group in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if function in group:
                group.add(noted)
        return noted

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Note where a module is looked for, as a finder on ``sys.meta_path``; find nothing."""
        if self._thread.is_paused:
            return None
        package, _, stem = name.rpartition(".")
        if not package:
            self._modules.add(name)
        for folder in path or sys.path:
            if folder and not is_installed(os.path.join(folder, ""), self._root):
                inside = os.path.join(folder, stem)
                is_package = self._untracked(os.path.isdir, inside)
                self._note("probes", f"{inside}.py")
                self._note("probes", os.path.join(inside, "__init__.py") if is_package else inside)
        return None

    def find_distributions(self, context: Any) -> Iterable[Any]:
        """Note which version is looked for, as a finder on ``sys.meta_path``; find nothing."""
        if self._thread.is_paused:
            return ()
        frame: FrameType | None = sys._getframe(1)
        while frame and _module(frame) == "importlib":
            frame = frame.f_back
        # A runtime that looks for its plugins would make every page depend on every installed distribution.
        if context.name or not frame or _module(frame) not in self._own:
            self._add("probes", f"distribution {context.name or ''}")
        return ()

    def _variable(self, name: str) -> None:
        self._add("probes", f"variable {name}")

    def _opened(self, path: Any, flags: int) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        file = os.path.abspath(os.fsdecode(path))
        own = flags & (os.O_TRUNC | os.O_EXCL) or flags & (os.O_WRONLY | os.O_RDWR) == os.O_WRONLY
        if own or (flags & os.O_CREAT and not self._untracked(os.path.exists, file)):
            self._written.add(file)
        # `importlib.metadata` tries whether each folder of modules is an archive.
        elif not file.endswith(".pyc") and file not in sys.path and not self._untracked(os.path.isdir, file):
            self._note("files", file)

    def _started(self, arguments: Any) -> None:
        """Note the files and folders that the arguments of a program name."""
        for argument in [arguments] if isinstance(arguments, str | bytes) else arguments or ():
            text = os.fsdecode(argument)
            names = [text, *re.findall(re.escape(self._root) + r"[^\s'\"]*", text)]
            for name in names:
                if "\0" not in name and self._untracked(os.path.exists, name):
                    self._note("files", name)

    # --- notes ---------------------------------------------------------------------------------------------------

    def _untracked(self, function: Callable[[str], bool], path: str) -> bool:
        """Call a function of a path without noting the dependency."""
        with self._paused(), suppress(ValueError):
            return function(path)
        return False

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Note nothing that this thread looks up."""
        was, self._thread.is_paused = self._thread.is_paused, True
        try:
            yield
        finally:
            self._thread.is_paused = was

    def _note(self, kind: str, path: Any) -> None:
        """Note a file or folder that is looked at; of ``files``, its content, else only that it exists."""
        if self._thread.is_paused or not isinstance(path, str | bytes | os.PathLike):
            return
        file = os.path.abspath(os.fsdecode(path))
        if (kind, file) in self._seen:
            return
        self._seen.add((kind, file))
        if not self._untracked(self._is_tracked, file):
            return
        name = "." if file == self._root else file.removeprefix(self._root + os.sep)
        if kind == "files":
            self._add("files", name)
        elif not self._untracked(os.path.isdir, file):
            self._add("probes", f"content {name}")
        elif not any(path.startswith(os.path.join(file, "")) for path in self._given):
            self._add("probes", f"folder {name}")

    def _is_tracked(self, file: str) -> bool:
        """Return whether the content of a file may differ the next time, and was not written by this page."""
        if file in self._written or "\0" in file:
            return False
        if self._is_apart(file) or self._is_apart(os.path.realpath(file)):
            return False
        return is_local(file, self._root) or not self._is_new(file)

    def _is_apart(self, file: str) -> bool:
        return is_installed(file, self._root) or (file + os.sep).startswith((*self._aside, *_SYSTEM))

    def _is_new(self, file: str) -> bool:
        """Return whether a file outside of the project was created after the page began, or is a temporary one."""
        try:
            return os.stat(file).st_ctime >= self._began
        except OSError:
            return file.startswith(self._temporary)

    def _add(self, kind: str, what: str) -> None:
        probe = f"content {what}" if kind == "files" else what
        # Now, before the page does anything with it: later the file may hold something else.
        seen = {probe: self.answer(probe)} if probe.startswith("content ") else {}
        if os.getpid() != self._process:
            self._report((what,) if kind == "files" else (), (what,) if kind == "probes" else (), seen)
        else:
            (self._files if kind == "files" else self._probes).add(what)
            self._contents = seen | self._contents

    def answer(self, probe: str) -> str | None:
        """Return the answer to a probe, without noting the lookups for it."""
        with self._paused():
            return run_probe(probe, self._root)

    # --- results -------------------------------------------------------------------------------------------------

    def files(self) -> tuple[str, ...]:
        """Files opened or not found, folders listed, and the source files of modules."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and not is_installed(file, self._root):
                self._note("files", file)
        return tuple(sorted(self._files))

    def contents(self) -> dict[str, str | None]:
        """The digests of the files when they were first noted, by the name of their probe."""
        return self._contents

    def written(self) -> tuple[str, ...]:
        """The files of the project that this process has written."""
        beginning = self._root + os.sep
        return tuple(sorted(file.removeprefix(beginning) for file in self._written if file.startswith(beginning)))

    def probes(self) -> tuple[str, ...]:
        """Everything else that was looked up."""
        absent = {f"module {name}" for name in self._modules - sys.modules.keys()}
        return tuple(sorted(self._probes | absent))

    @staticmethod
    def modules() -> tuple[str, ...]:
        """Top-level names of the modules imported from files outside the standard library."""
        found = {name for name, module in list(sys.modules.items()) if "." not in name and _origin(module)}
        return tuple(sorted(name for name in found - sys.stdlib_module_names if not name.startswith("_")))


def _module(frame: FrameType) -> str:
    """The top-level name of the module whose code runs in a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _origin(module: Any) -> object:
    return getattr(module, "__file__", None) or getattr(module, "__path__", None)


def _database(name: Any) -> Any:
    """The file of a database as SQLite names it; None for one in memory."""
    text = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
    if text.startswith("file:"):
        text = unquote(text.removeprefix("file:").partition("?")[0])
    return None if text in ("", ":memory:") else text


def _variables(ask: Callable[[str], None]) -> Any:
    """A class for ``os.environ`` that notes which variables are read, except those that the process has set itself.

    Code that iterates over all of them is assumed to pass them to another process, or to look for names that the
    runtime and Python read, which are known anyway (`Runtime.fingerprint`).
    """
    own: set[str] = set()
    handed_on: set[str] = set()

    class Variables(type(os.environ)):  # type: ignore[misc]
        def __getitem__(self, name: str) -> str:
            if name in handed_on:
                handed_on.discard(name)
            elif name not in own and isinstance(name, str):
                ask(name)
            value: str = super().__getitem__(name)
            return value

        def __setitem__(self, name: str, value: str) -> None:
            super().__setitem__(name, value)
            own.add(name)

        def __delitem__(self, name: str) -> None:
            super().__delitem__(name)
            own.add(name)

        def __iter__(self) -> Iterator[str]:
            names = list(super().__iter__())
            handed_on.update(names)
            return iter(names)

    Variables.__name__ = Variables.__qualname__ = "_Environ"
    return Variables
