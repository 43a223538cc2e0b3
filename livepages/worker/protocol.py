"""The messages between the parent and the processes of pages: one definition of each, for both sides.

A message travels as one line of JSON. The parent sends a `Job` to the server, which answers with `Forked` and `Exited`.
The process of a page writes `Ready`, or `SettingsRejected`, then `BlockStarted` and `BlockFinished` for each block, now
and then `LateFailure` and `DependenciesReported`, and at last `Finished`, to a file (`MESSAGES`) in the folder of its
run, at once, so that nothing is lost when it dies.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

OUT, ERR = "out", "err"  # the streams that a block writes to
# In the folder of a run: the messages of its process, the output of each block in a file, and the traceback of a crash.
MESSAGES, OUTPUTS, CRASH = "messages", "outputs", "crash"
EXIT_CANNOT_REPORT = 71  # the exit status of a process that could not report what broke it


@dataclass(frozen=True)
class Raised:
    """An exception that left a block."""

    type: str  # the class, as users write it
    bases: tuple[str, ...]  # names of the class and its bases, bare and qualified
    message: str
    traceback: str  # the page's and the project's own frames, and the message
    line: int | None  # of the page's script, innermost
    name: str = ""  # the name that a NameError is about


@dataclass(frozen=True)
class Outcome:
    """The outcome of one block: everything that a reader would see of its run, and its costs."""

    streams: tuple[tuple[str, str], ...] = ()  # (OUT or ERR, text), in the order written
    displays: tuple[Mapping[str, str], ...] = ()  # what its last expression shows, by MIME type
    figures: tuple[str, ...] = ()  # SVG
    raised: Raised | None = None
    process_error: str = ""  # what the block did to its process
    skipped: str = ""  # why it did not run
    stopped_by: int | None = None  # the index in the program of the failed block because of which it did not run
    line: int = 0  # of the page's front matter, if the error is there and not in the block
    pending: bool = False  # nothing is known of it yet
    seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)  # what the runtime counts, by its name in the plural

    @property
    def stdout(self) -> str:
        """The text that was written to standard output."""
        return "".join(text for stream, text in self.streams if stream == OUT)


# --- from the parent to the server -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """The outcome that a page expects of a block."""

    raises: str = ""  # an exception class
    match: str = ""  # a regular expression for its message
    figures: bool | None = False  # whether it leaves any open; None where they are none of its output
    output: str | None = None  # on standard output
    ignore_whitespace: bool = False


@dataclass(frozen=True)
class BlockSpec:
    """A block to run."""

    code: str
    start: int  # its first line in the page's script, from 1
    line: int = 0  # of its fence in the page
    expected: Expected = field(default_factory=Expected)
    needs: str = ""  # a device
    marks: tuple[str, ...] = ()  # as written above it
    importorskip: str = ""  # a module
    isolated: bool = False  # whether no other block shares its namespace, nor the settings that it makes
    namespace: str = ""  # the name of the one that it runs in
    module: str = "__main__"  # the name of the module that is this namespace
    file: str = ""  # the name that tracebacks have for it alone; without it, they have the script's
    workdir: str = ""  # the folder that it runs in, as seen from the page's
    width: int = 0  # of the terminal that it finds, in columns
    is_inline: bool = (
        False  # whether it is an inline expression: its value is printed, and no later block depends on it
    )


@dataclass(frozen=True)
class Job:
    """A page to run."""

    folder: str  # of the run; there are its script, its output and its messages
    name: str  # of the script
    blocks: tuple[BlockSpec, ...]
    only: tuple[int, ...]  # which of them run, by their indexes
    uses: tuple[str, ...]  # libraries to have ready before the fork
    imports: tuple[tuple[str, str], ...]  # what it imports first: modules, each with a name in it or none
    preload: tuple[str, ...]  # those chosen by the project, which may start threads
    settings: Mapping[str, Any]  # the page's, of the runtime
    options: Mapping[str, Any]  # the project's, of the runtime
    path: tuple[str, ...]  # folders to import from, before all others
    root: str  # of the project
    work: str  # the folder that it runs in; empty for one of its own
    cache: str  # a folder for files that the runtime may use again
    nice: int  # how much it comes after other processes that want a processor, as in `os.nice`
    requested: float  # when, in seconds of the monotonic clock


def stopped_after(number: int, line: int) -> Outcome:
    """Return the outcome of the blocks after one that failed, which depend on it."""
    return Outcome(skipped=f"the block on line {line} failed", stopped_by=number)


# --- from the server to the parent -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forked:
    """The process of a job has begun, and leads a group."""

    folder: str
    pid: int


@dataclass(frozen=True)
class Exited:
    """The process of a job has ended, and its group."""

    folder: str
    status: int  # minus the signal


# --- from the process of a page to the parent --------------------------------------------------------------------


@dataclass(frozen=True)
class Ready:
    """The process is set up."""

    seconds: float  # since it was requested


@dataclass(frozen=True)
class SettingsRejected:
    """The runtime did not take the page's settings."""

    why: str


@dataclass(frozen=True)
class BlockStarted:
    """A block begins."""

    block: int  # its index in the program


@dataclass(frozen=True)
class BlockFinished:
    """A block has ended."""

    block: int
    outcome: Outcome


@dataclass(frozen=True)
class LateFailure:
    """An error of the process that showed after the block had ended."""

    block: int
    process_error: str


@dataclass(frozen=True)
class DependenciesReported:
    """A process that the page forked has looked something up in its surroundings."""

    files: tuple[str, ...]
    probes: tuple[str, ...]
    contents: Mapping[str, str | None]


@dataclass(frozen=True)
class Finished:
    """The page has run to its end."""

    device: str
    files: tuple[str, ...]  # and folders, whose content it depends on
    probes: tuple[str, ...]  # everything else that it looked up
    contents: Mapping[str, str | None]  # of the files that it read: their probes, and the answers then
    written: tuple[str, ...]  # files of the project that it has written itself
    modules: tuple[str, ...]  # top-level names of those that it imported from distributions
    seconds: float


Message = (
    Job
    | Forked
    | Exited
    | Ready
    | SettingsRejected
    | BlockStarted
    | BlockFinished
    | LateFailure
    | DependenciesReported
    | Finished
)
_KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Message)}
T = TypeVar("T")
_type_hints = cache(get_type_hints)


def encode(message: Message) -> bytes:
    """A message as a line; it begins one too, whatever else has been written before it."""
    return b"\n" + json.dumps({"": type(message).__name__, **asdict(message)}, default=str).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message that `encode` made into a line."""
    data = json.loads(line)
    message: Message = from_json(_KINDS[data.pop("")], data)
    return message


def from_json(kind: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass that `dataclasses.asdict` made into this, by way of JSON."""
    types = _type_hints(kind)  # type: ignore[arg-type]
    return kind(**{name: _value(types[name], value) for name, value in data.items()})


def _value(kind: Any, data: Any) -> Any:
    """Plain data as a value of a field's type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if data is None else _value(arguments[0], data)
    if origin is tuple:
        return tuple(_value(arguments[0], item) for item in data) if arguments[-1] is ... else tuple(data)
    return from_json(kind, data) if is_dataclass(kind) and isinstance(kind, type) else data
