"""The interpreter of blocks: their namespaces, the script of those run so far, and its tracebacks."""

import __future__

import contextlib
import linecache
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from livepages.worker.displays import compile_block
from livepages.worker.imports import split_futures
from livepages.worker.probes import is_local
from livepages.worker.protocol import BlockSpec, Job, Raised
from livepages.worker.runtime import Runtime
from livepages.worker.text import class_names, mask_addresses, message_of
from livepages.worker.tracebacks import hide_frames

_FUTURES = 0
for _feature in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _feature).compiler_flag


@dataclass
class Namespace:
    """A module that blocks run in, one after another."""

    module: types.ModuleType
    flags: int = 0  # of the features of the future that they have imported
    completed: list[BlockSpec] = field(default_factory=list)  # the blocks that have run to their end


class Interpreter:
    """A page's namespaces, each of which is ``__main__`` while in use, and the script of the blocks run so far."""

    def __init__(self, job: Job, runtime: Runtime, renamed: Callable[[str], str]) -> None:
        """Begin.

        Args:
            job: the page.
            runtime: has been imported.
            renamed: replaces folders in the message of an exception, as `rename_known` makes it.
        """
        name, blocks, file = job.name, job.blocks, Path(job.folder, "script", job.name)
        self._name, self._root, self._runtime, self._renamed = name, job.root, runtime, renamed
        script = "\n".join(block.code for block in blocks if not block.is_inline)
        named = {block.file: block for block in blocks if block.file}
        # The text of each file of a traceback, and the number of lines of the script before it.
        for file_name, text in {name: script, **{key: block.code for key, block in named.items()}}.items():
            # Lines as Python counts them: other characters end lines for `str.splitlines` too.
            linecache.cache[file_name] = (len(text), None, [f"{line}\n" for line in text.split("\n")], file_name)
        self._before = {name: 0, **{key: block.start - 1 for key, block in named.items()}}
        sys.argv = [str(file)]
        file.parent.mkdir()
        self._file = file
        self._namespaces = {"": self._new_namespace("__main__")}
        self._wanted = {
            block.namespace for block in blocks if block.is_inline
        }  # the namespaces that inline expressions see
        self._use(self._namespaces[""])
        hide_frames(Interpreter._execute.__code__)

    def _new_namespace(self, name: str) -> Namespace:
        module = types.ModuleType(name)
        # A real file, so that multiprocessing can start children from it, as from a script.
        module.__file__ = str(self._file)
        module.__dict__["__builtins__"] = __builtins__
        module.__annotations__ = {}
        return Namespace(module)

    def _use(self, namespace: Namespace, *under_way: BlockSpec) -> None:
        """Make a namespace `__main__`, and write the script of the blocks run so far, and of one under way."""
        sys.modules["__main__"] = sys.modules[namespace.module.__name__] = namespace.module
        text = ""
        for block in (*namespace.completed, *under_way):
            text += "\n" * (block.start - 1 - text.count("\n")) + block.code
        # Under ext4 a truncated file is written to the disk at once (auto_da_alloc), a new one is not.
        self._file.unlink(missing_ok=True)
        futures, text = split_futures(text)
        if futures:  # they must come first, although a later block may have them
            text = f"from __future__ import {', '.join(futures)}\n{text}"
        self._file.write_text(text, encoding="utf-8")

    def execute(self, block: BlockSpec) -> BaseException | None:
        """Run a block in its namespace; return the exception that ended it, if any."""
        if not block.isolated:
            return self._execute(block, self._namespaces.setdefault(block.namespace, self._new_namespace(block.module)))
        try:
            if block.is_inline:
                return self._execute(block, self._namespaces[block.namespace])
            namespace = self._new_namespace(block.module)
            if block.namespace in self._wanted:
                self._namespaces[block.namespace] = namespace
            with self._runtime.settings_restored():
                return self._execute(block, namespace)
        finally:
            self._use(self._namespaces[""])

    def _execute(self, block: BlockSpec, namespace: Namespace) -> BaseException | None:
        if block.is_inline:
            self._use(namespace)
            return self._print_inline(block.code, namespace)
        self._use(namespace, block)
        try:
            source = block.code if block.file else "\n" * (block.start - 1) + block.code
            with contextlib.chdir(block.workdir) if block.workdir else contextlib.nullcontext(), _width(block.width):
                for code in compile_block(source, block.file or self._name, namespace.flags, _FUTURES):
                    namespace.flags |= code.co_flags & _FUTURES
                    exec(code, namespace.module.__dict__)
                self._runtime.flush()
        except BaseException as error:  # noqa: BLE001  (SystemExit and KeyboardInterrupt are outcomes here)
            self._use(namespace)
            return error
        namespace.completed.append(block)
        return None

    def _print_inline(self, expression: str, namespace: Namespace) -> BaseException | None:
        """Print the value of an expression; return the exception that it raised, if any."""
        try:
            code = compile(expression, "<inline>", "eval", flags=namespace.flags, dont_inherit=True)
            print(eval(code, namespace.module.__dict__))
            self._runtime.flush()
        except BaseException as error:  # noqa: BLE001  (as for a block)
            return error
        return None

    def describe(self, error: BaseException) -> Raised:
        """Return an exception for its page: the page's and the project's own frames, then the message."""
        own = traceback.TracebackException.from_exception(error)
        seen: set[int] = set()
        text = "".join(self._format(own, seen)).rstrip("\n")
        places = [(frame.filename, frame.lineno) for frame in own.stack]
        if isinstance(error, SyntaxError):
            places.append((error.filename or "", error.lineno))
        lines = [self._before[file] + (line or 1) for file, line in places if file in self._before]
        kind = type(error)
        return Raised(
            type=self._runtime.public_name(kind.__module__, kind.__qualname__),
            bases=class_names(kind),
            message=self._renamed(mask_addresses(message_of(error))),
            traceback=self._renamed(mask_addresses(text)),
            line=lines[-1] if lines else None,
            name=getattr(error, "name", None) or "" if isinstance(error, NameError) else "",
        )

    def _format(self, error: traceback.TracebackException, seen: set[int]) -> list[str]:
        """The lines of a traceback without carets, which differ from one Python to the next."""
        seen.add(id(error))
        lines: list[str] = []
        earlier, joint = error.__cause__, "\nThe above exception was the direct cause of the following exception:\n\n"
        if earlier is None and not error.__suppress_context__:
            earlier, joint = error.__context__, "\nDuring handling of the above exception, another one occurred:\n\n"
        if earlier is not None and id(earlier) not in seen and any(self._is_own(f) for f in earlier.stack):
            before = self._format(earlier, seen)
            if before[-1] != "".join(error.format_exception_only()):
                lines += [*before, joint]
        frames = [
            (frame.filename.removeprefix(self._root + os.sep), frame.lineno or 0, frame.name, frame.line or "")
            for frame in error.stack
            if self._is_own(frame)
        ]
        if frames:
            lines += ["Traceback (most recent call last):\n", *traceback.StackSummary.from_list(frames).format()]
        error.__notes__ = self._runtime.user_notes(error.__notes__ or []) or None
        lines.append("".join(error.format_exception_only()))
        for number, member in enumerate(error.exceptions or (), 1):
            lines.append(f"  +---------------- {number} ----------------\n")
            formatted = "".join(self._format(member, seen)).rstrip("\n")
            lines += [f"  | {line}\n" for line in formatted.split("\n")]
        return lines

    def _is_own(self, frame: traceback.FrameSummary) -> bool:
        """Return whether a frame is the page's or the project's own; stacks that a page prints are for `tracebacks`."""
        return frame.filename in self._before or is_local(frame.filename, self._root)


@contextlib.contextmanager
def _width(columns: int) -> Iterator[None]:
    """Set the width of the terminal that programs find; 0 leaves it as it is."""
    if not columns:
        yield
        return
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS", None)
        if before is not None:
            os.environ["COLUMNS"] = before
