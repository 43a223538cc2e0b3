"""Inside a page's own process: execute its blocks and capture everything a reader would see.

``python -m livepages.worker RUNTIME FOLDER`` imports the runtime of this name once, then forks a process for each job
that it reads from standard input; the folders of their runs are in this one. The messages between them are defined
in `protocol`.
"""

import __future__

import ast
import contextlib
import gc
import linecache
import os
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from livepages.worker import figures
from livepages.worker.capture import Capture
from livepages.worker.check import check_outcome
from livepages.worker.dependencies import Dependencies
from livepages.worker.displays import DisplayHook, compile_block
from livepages.worker.fork_server import supervise
from livepages.worker.marks import skipped
from livepages.worker.names import bound_names, function_needs, needed_names
from livepages.worker.probes import is_local
from livepages.worker.protocol import (
    MESSAGES,
    OUTPUTS,
    BlockFinished,
    BlockSpec,
    BlockStarted,
    DependenciesReported,
    Finished,
    Job,
    LateFailure,
    Message,
    Outcome,
    Raised,
    Ready,
    SettingsRejected,
    encode,
    stopped_after,
)
from livepages.worker.runtime import Runtime, find_runtime
from livepages.worker.scrub import rename_known, scrub_paths
from livepages.worker.templates import set_up
from livepages.worker.text import mask_addresses, message_of
from livepages.worker.timer import LoadAdjustedTimer
from livepages.worker.tracebacks import hide_frames

_FUTURES = 0
for _feature in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _feature).compiler_flag


# --- one block ---------------------------------------------------------------------------------------------------


@dataclass
class Namespace:
    """A module that blocks run in, one after another."""

    module: types.ModuleType
    flags: int = 0  # of the features of the future that they have imported
    completed: list[BlockSpec] = field(default_factory=list)  # the blocks that have run to their end


class Program:
    """A page's namespaces, each of which is ``__main__`` while in use, and the script of the blocks run so far."""

    def __init__(self, job: Job, runtime: Runtime, renamed: Callable[[str], str]) -> None:
        """Begin.

        Args:
            job: the page.
            runtime: has been imported.
            renamed: what becomes of the message of an exception.
        """
        name, blocks, file = job.name, job.blocks, Path(job.folder, "script", job.name)
        self._name, self._root, self._runtime, self._renamed = name, job.root, runtime, renamed
        script = "\n".join(block.code for block in blocks if not block.is_value)
        alone = {block.file: block for block in blocks if block.file}
        # What each file of a traceback holds, and how many lines of the script come before that.
        for file_name, text in {name: script, **{key: block.code for key, block in alone.items()}}.items():
            # Lines as Python counts them: other characters end lines for `str.splitlines` too.
            linecache.cache[file_name] = (len(text), None, [f"{line}\n" for line in text.split("\n")], file_name)
        self._before = {name: 0, **{key: block.start - 1 for key, block in alone.items()}}
        sys.argv = [str(file)]
        file.parent.mkdir()
        self._file = file
        self._namespaces = {"": self._new_namespace("__main__")}
        self._wanted = {block.namespace for block in blocks if block.is_value}  # the namespaces that values see
        self._use(self._namespaces[""])

    def _new_namespace(self, name: str) -> Namespace:
        module = types.ModuleType(name)
        # A real file, so that multiprocessing can start children from it, as from a script.
        module.__file__ = str(self._file)
        module.__dict__["__builtins__"] = __builtins__
        module.__annotations__ = {}
        return Namespace(module)

    def _use(self, namespace: Namespace, *under_way: BlockSpec) -> None:
        """Have a namespace be the program, and its script that of the blocks run so far, and of one under way."""
        sys.modules["__main__"] = sys.modules[namespace.module.__name__] = namespace.module
        text = ""
        for block in (*namespace.completed, *under_way):
            text += "\n" * (block.start - 1 - text.count("\n")) + block.code
        # A file that is cut and written again goes to the disk at once under ext4 (auto_da_alloc); a new one does not.
        self._file.unlink(missing_ok=True)
        self._file.write_text(_futures_first(text), encoding="utf-8")

    def execute(self, block: BlockSpec) -> BaseException | None:
        """Run a block in its namespace; the exception it ended with, if any."""
        if not block.isolated:
            return self._execute(block, self._namespaces.setdefault(block.namespace, self._new_namespace(block.module)))
        try:
            if block.is_value:
                return self._execute(block, self._namespaces[block.namespace])
            namespace = self._new_namespace(block.module)
            if block.namespace in self._wanted:
                self._namespaces[block.namespace] = namespace
            with self._runtime.settings_restored():
                return self._execute(block, namespace)
        finally:
            self._use(self._namespaces[""])

    def _execute(self, block: BlockSpec, namespace: Namespace) -> BaseException | None:
        if block.is_value:
            self._use(namespace)
            return self._print_value(block.code, namespace)
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

    def _print_value(self, expression: str, namespace: Namespace) -> BaseException | None:
        """Print what an expression gives; the exception that it raised, if any."""
        try:
            code = compile(expression, "<value>", "eval", flags=namespace.flags, dont_inherit=True)
            print(eval(code, namespace.module.__dict__))
            self._runtime.flush()
        except BaseException as error:  # noqa: BLE001  (as for a block)
            return error
        return None

    def describe(self, error: BaseException) -> Raised:
        """An exception as its page shows it: the page's and the project's own frames, then the message."""
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
            bases=tuple(name for c in kind.__mro__ for name in (c.__name__, f"{c.__module__}.{c.__qualname__}")),
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
        if earlier is not None and id(earlier) not in seen and any(self._shown(f) for f in earlier.stack):
            before = self._format(earlier, seen)
            if before[-1] != "".join(error.format_exception_only()):
                lines += [*before, joint]
        frames = [frame for frame in error.stack if self._shown(frame)]
        if frames:
            lines.append("Traceback (most recent call last):\n")
        for frame in frames:
            file = frame.filename.removeprefix(self._root + os.sep)
            lines.append(f'  File "{file}", line {frame.lineno}, in {frame.name}\n')
            lines.append(f"    {frame.line}\n" if frame.line else "")
        error.__notes__ = self._runtime.user_notes(error.__notes__ or []) or None
        lines.append("".join(error.format_exception_only()))
        for number, member in enumerate(error.exceptions or (), 1):
            lines.append(f"  +---------------- {number} ----------------\n")
            formatted = "".join(self._format(member, seen)).rstrip("\n")
            lines += [f"  | {line}\n" for line in formatted.split("\n")]
        return lines

    def _shown(self, frame: traceback.FrameSummary) -> bool:
        return frame.filename in self._before or is_local(frame.filename, self._root)


@contextlib.contextmanager
def _width(columns: int) -> Iterator[None]:
    """Have programs find a terminal of so many columns, if there is a number of them."""
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


def _futures_first(code: str) -> str:
    """Code in which imports from `__future__` come first, as they must, although a later block holds them."""
    if "__future__" not in code:
        return code
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return code
    found = [node for node in body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    cut = {line for node in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = ["" if number in cut else line for number, line in enumerate(code.split("\n"), 1)]
    names = sorted({alias.name for node in found for alias in node.names})
    return "\n".join([f"from __future__ import {', '.join(names)}" if names else "", *lines])


# --- one page ----------------------------------------------------------------------------------------------------


def run_job(job: Job, runtime: Runtime, dependencies: Dependencies | None) -> None:
    """Run a page in this process, which must be its own, and write down the outcomes.

    Args:
        job: the page.
        runtime: has been imported.
        dependencies: notes what this process looks up, if it was set up for the page; else it is set up now.
    """
    folder = Path(job.folder)

    def report(message: Message) -> None:
        # No descriptor is kept, which the page might close, or come by another file under the number of.
        messages = os.open(folder / MESSAGES, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(messages, encode(message))
        finally:
            os.close(messages)

    _prefer_oom_kill()
    renamed = rename_known(job.root, job.folder)
    capture = Capture(folder / OUTPUTS, scrub_paths(renamed))
    capture.begin(job.only[0])
    guard = Guard(folder)
    work = os.path.realpath(job.work or folder / "work")
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    gc.unfreeze()
    hide_frames(Program._execute.__code__)
    try:
        dependencies = dependencies or set_up(job, runtime, folder.parent)
    except Exception as refusal:  # noqa: BLE001  (what the runtime has against a name or a value)
        report(SettingsRejected(f"{type(refusal).__name__}: {refusal}"))
        return
    program = Program(job, runtime, renamed)
    dependencies.go_on(lambda files, probes, seen: report(DependenciesReported(files, probes, seen)))
    displays = sys.displayhook = DisplayHook()
    known = set(threading.enumerate())
    started: dict[threading.Thread, int] = {}
    process = os.getpid()
    began = time.perf_counter()
    given: dict[int, Outcome] = {}
    stopped: dict[str, Outcome] = {}  # by namespace, of the blocks after one that failed
    unbound: dict[str, NotBound] = {block.namespace: NotBound() for block in job.blocks}
    report(Ready(time.monotonic() - job.requested))
    for number, block in enumerate(job.blocks):
        if number not in job.only:
            continue
        absent = unbound[block.namespace]
        if block.namespace in stopped:
            report(BlockFinished(number, stopped[block.namespace]))
            continue
        if number != job.only[0]:
            capture.begin(number)
        report(BlockStarted(number))
        if kept := _skip_outcome(block, runtime) or absent.check(block):
            if kept.skipped:
                absent.skip(block)
            report(BlockFinished(number, kept))
            if kept.process_error:
                stopped[block.namespace] = stopped_after(number, block.line)
            continue
        figures.house_style.begin(block.code)
        before = runtime.counts()
        start = time.perf_counter()
        error = program.execute(block)
        seconds = time.perf_counter() - start
        if os.getpid() != process:  # a child that the block forked came back from it
            os._exit(0)
        counts = {what: after - before[what] for what, after in runtime.counts().items()}
        raised = program.describe(error) if error else None
        outcome = Outcome(raised=raised, seconds=seconds, counts=counts)
        if block.expected.figures is not None:
            outcome = _draw(program, displays, outcome)
        output, process_error = capture.take()
        process_error = process_error or guard.check()
        started |= {thread: number for thread in threading.enumerate() if thread not in known | started.keys()}
        if not job.work and not _restore_cwd(work):
            process_error = process_error or "changed the working directory and did not change it back"
        outcome = replace(outcome, output=output, process_error=process_error)
        if check_outcome(block.expected, outcome):
            if raised and not process_error and raised.name in absent.lines:
                outcome = absent.skip(block, raised.name)
            elif not block.is_value:
                stopped[block.namespace] = stopped_after(number, block.line)
        else:
            absent.ran(block)
        given[number] = outcome
        report(BlockFinished(number, outcome))
    left = _left_running(started)
    # Of threads that were waited for, and of processes that were not.
    for number, output in capture.late().items():
        if number in given and not given[number].skipped:
            report(BlockFinished(number, replace(given[number], output=given[number].output + output)))
    for thread, number in left:
        report(LateFailure(number, f"left the thread {thread.name} running: join it, or make it a daemon"))
    device = runtime.device()
    seconds = time.perf_counter() - began
    files = dependencies.files()  # first, as it notes the modules
    looked_up = dependencies.probes(), dependencies.contents(), dependencies.written(), dependencies.modules()
    report(Finished(device, files, *looked_up, seconds))


class NotBound:
    """The names that blocks which did not run would have bound: reading one would give an older value, or none."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}  # of the blocks, by name
        self._ran: list[BlockSpec] = []

    def skip(self, block: BlockSpec, name: str = "") -> Outcome:
        """Note that a block did not run, and return its outcome if the reason is this name."""
        reason = f"needs {name} from the block on line {self.lines[name]}, which did not run" if name else ""
        self.lines |= dict.fromkeys(bound_names(block.code) - self.lines.keys(), block.line)
        return Outcome(skipped=reason)

    def ran(self, block: BlockSpec) -> None:
        """Note that a block ran, and bound what it binds."""
        self._ran.append(block)
        for name in self.lines and bound_names(block.code):
            self.lines.pop(name, None)

    def check(self, block: BlockSpec) -> Outcome | None:
        """Return the outcome of a block that must not run since it, or a function it uses, reads one of the names."""
        if not self.lines:
            return None
        functions: dict[str, set[str]] = {}
        for earlier in self._ran:
            functions |= function_needs(earlier.code)
        needed, new = set[str](), needed_names(block.code)
        while new:
            needed |= new
            new = set().union(*(functions.get(name, ()) for name in new)) - needed
        missing = min(needed & self.lines.keys(), default="")
        return self.skip(block, missing) if missing else None


class Guard:
    """A descriptor that a page has no business with: to find out whether it closes what it did not open."""

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


def _skip_outcome(block: BlockSpec, runtime: Runtime) -> Outcome | None:
    """The outcome of a block that must not run here; None if it may."""
    try:
        why = skipped(block.marks, block.importorskip) or (block.needs and runtime.lacks(block.needs))
    except BaseException as error:  # noqa: BLE001  (a mark may do anything)
        return Outcome(process_error=f"what is written above it raised {type(error).__name__}: {message_of(error)}")
    return Outcome(skipped=why) if why else None


def _restore_cwd(work: str) -> bool:
    """Return whether the working directory is still this one; if not, go back to it, even if it is gone."""
    try:
        if os.path.realpath(os.getcwd()) == work:
            return True
    except FileNotFoundError:
        os.makedirs(work, exist_ok=True)
    os.chdir(work)
    return False


def _draw(program: Program, displays: DisplayHook, outcome: Outcome) -> Outcome:
    """The outcome of a block with what its last expression shows and its open figures, or with what they raised."""
    try:
        return replace(outcome, displays=displays.take(), figures=tuple(figures.take_open()))
    except Exception as error:  # noqa: BLE001  (whatever a figure holds is the block's doing)
        return replace(outcome, raised=program.describe(error))


def _left_running(started: dict[threading.Thread, int]) -> list[tuple[threading.Thread, int]]:
    """The threads that keep a script from ending, after a second's grace, and the block that began each."""
    clock = LoadAdjustedTimer()
    running = [thread for thread in started if not thread.daemon]
    if any(thread.is_alive() for thread in running):
        gc.collect()  # some end with the iterator that they work for
    while running and clock.seconds() < 1.0:
        running[0].join(0.02)
        running = [thread for thread in running if thread.is_alive()]
    return [(thread, started[thread]) for thread in running]


def _prefer_oom_kill() -> None:
    """Let the system end this process before any other when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


# --- the command line --------------------------------------------------------------------------------------------

if __name__ == "__main__":
    sys.exit(supervise(find_runtime(sys.argv[1]), Path(sys.argv[2]), run_job))
