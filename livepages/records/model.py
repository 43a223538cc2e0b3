"""The contents of records: a host, its pages, and the entry of each of their blocks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from livepages.execution import ERR, OUT, BlockResult
from livepages.records.entries import FAILED, NOT_RUN, RAISED, RAN, Entry, make_entry
from livepages.source import Block
from livepages.worker import content

DIGITS = 16  # of a hash: enough to tell a site's blocks apart, and lines stay short


@dataclass(frozen=True)
class Host:
    """The computer on which pages ran, and when."""

    name: str
    device: str  # the kind
    count: int
    processor: str
    driver: str
    system: str  # and the architecture
    # The newest one used; empty if the system names none. A page that was recorded again later may have another.
    instruction_set: str = field(default="", kw_only=True, compare=False)
    python: str
    versions: Mapping[str, str]  # of the runtime's distributions; in the file, each is a value of its own
    distributions: Mapping[str, str]  # versions of what the pages imported
    environment: Mapping[str, str]  # the variables that the runtime read
    commit: str  # the last one that changed what ran
    day: str

    @property
    def release(self) -> str:
        """The name that `Runtime.release` had there."""
        return next((f"{name} {number}" for name, number in self.versions.items()), f"Python {self.python}")

    @property
    def computer(self) -> str:
        """The kind of computer, as `Runtime.computer`.

        In a record that was made before instruction sets were recorded, it is a kind of its own: one whose system names
        no instruction set.
        """
        return f"{self.system} {self.instruction_set}".rstrip()

    @property
    def label(self) -> str:
        """Return a few words that distinguish hosts."""
        kind = self.device if self.count == 1 else f"{self.count} × {self.device}"
        return f"{kind}, {self.release}, {self.computer}"


@dataclass(frozen=True)
class PageRecord:
    """The record of one page on one host."""

    host: Host
    device: str  # that its blocks ran on, which may be a virtual one
    files: Mapping[str, str | None] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)  # by key
    digest: str = ""  # of the file


@dataclass(frozen=True)
class RecordedOutcome:
    """The outcome of a block on a host, of a record that still holds."""

    host: Host
    device: str
    entry: Entry


Seen = Callable[[Block], Sequence[RecordedOutcome]]  # of a block, the outcomes that hosts recorded


def newest(seen: Sequence[RecordedOutcome]) -> RecordedOutcome | None:
    """Return the newest of these that is good; None if none is."""
    return max((other for other in seen if other.entry.good), key=lambda other: other.host.day, default=None)


def entry(result: BlockResult) -> Entry:
    """Return the entry of a block for its record."""
    block, outcome, failure = result.block, result.truncated, result.failure
    kind = NOT_RUN if outcome.skipped else FAILED if failure else RAISED if outcome.raised else RAN
    error = outcome.skipped or (failure.message if failure else "")
    if kind == RAISED and outcome.raised:
        error = f"{outcome.raised.type}: {outcome.raised.message}"
    streams = {stream: "".join(text for which, text in outcome.streams if which == stream) for stream in (OUT, ERR)}
    return make_entry(
        key=short_key(block),
        code=block.code,
        outcome=kind,
        seconds=outcome.seconds,
        counts=outcome.counts,
        figures=len(outcome.figures),
        shown="\n".join(bundle["text/plain"] for bundle in outcome.displays),
        stdout=streams[OUT],
        stderr=streams[ERR],
        error=error,
    )


def short_key(block: Block) -> str:
    """Return the key of a block, as records name it."""
    return block.key[:DIGITS]


def short_content(file: Path) -> str | None:
    """Return the digest of a file or a folder, as records name it; None if there is none."""
    full = content(file)
    return full and full[:DIGITS]
