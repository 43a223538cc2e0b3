"""The records of hosts: a readable file for each page and host, and which of its outcomes still belong to the code.

``records/HOST.yml`` describes the host; ``records/HOST/guide/page.yml`` has the outcome of each block of that page.
A block is known by its key, which covers the code of its page up to it; the files of the project that the page used
are named with their content. Where either differs from what is there now, the record says nothing about the block.
"""

import datetime
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any

import yaml

from livepages.course import history
from livepages.execution import ERR, OUT, BlockResult, Failure, Run, distributions
from livepages.records.differences import differ
from livepages.records.files import RecordError, load, make, read, write
from livepages.source import MARKDOWN, Block, Page, Project, ProjectError
from livepages.worker import Runtime, content, signature, stripped

RAN, RAISED, FAILED, NOT_RUN = "ran", "raised", "failed", "not run"
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
    versions: Mapping[str, str]  # of the runtime's distributions; in the file each stands for itself
    distributions: Mapping[str, str]  # versions of what the pages imported
    environment: Mapping[str, str]  # what the runtime read of it
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
class Entry:
    """The record of one block."""

    key: str
    code: str  # its first line, for people who read the file
    outcome: str  # RAN, RAISED (as it must), FAILED or NOT_RUN
    seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)  # in the file each stands for itself
    figures: int = 0
    shown: str = ""  # what its last expression shows, as text
    stdout: str = ""
    stderr: str = ""
    error: str = ""  # the class and the message of what it raised; or why it failed or did not run

    @property
    def text(self) -> str:
        """Everything that the block printed."""
        return "\n".join(part for part in (self.stdout, self.stderr, self.shown, self.error) if part)

    @property
    def good(self) -> bool:
        """Return whether the block ran, and did what its page expects."""
        return self.outcome in (RAN, RAISED)


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


Seen = Callable[[Block], Sequence[RecordedOutcome]]  # what hosts saw of a block


def newest(seen: Sequence[RecordedOutcome]) -> RecordedOutcome | None:
    """Return the newest of these that is good; None if none is."""
    return max((other for other in seen if other.entry.good), key=lambda other: other.host.day, default=None)


class Records:
    """All records of a project, each page's read on first access."""

    def __init__(self, project: Project) -> None:
        """Read which hosts there are."""
        self._project, self.runtime = project, project.runtime
        self._unread: list[Failure] = []  # of hosts
        files = sorted(project.records.glob("*.yml"))
        hosts = [host for file in files if (host := self._host(file, self._unread))]
        # The reference first, then the newest.
        hosts.sort(key=lambda host: (host.day, host.name), reverse=True)
        self.hosts = sorted(hosts, key=lambda host: host.name != project.reference)

    def problems(self, pages: Iterable[Page]) -> list[Failure]:
        """A failure for each file that cannot be read: of a host, or of one of these pages on a host.

        Elsewhere such a file counts as if it were not there.
        """
        found = [*self._unread]
        for page in pages:
            for host in self.hosts:
                self._page(host, page, found)
        return found

    def host(self, name: str) -> Host:
        """The host of a name.

        Raises:
            ProjectError: there is none, or its file cannot be read.
        """
        for host in self.hosts:
            if host.name == name:
                return host
        for failure in self._unread:
            if Path(failure.page).stem == name:
                raise ProjectError(str(failure))
        names = ", ".join(host.name for host in self.hosts)
        others = f"there are those of {names}" if names else "`livepages record --host NAME` makes one"
        raise ProjectError(f"{self._project.records}: holds no record of {name!r}; {others}")

    def of(self, page: Page) -> list[PageRecord]:
        """Return what the hosts saw of a page, as it was then."""
        return [record for host in self.hosts if (record := self._page(host, page, []))]

    def valid_for(self, page: Page) -> list[PageRecord]:
        """`of`, without those of other content of the project's files, and without the entries of other code."""
        keys = {_short(block.key) for block in page.cases}
        return [
            replace(record, entries={key: entry for key, entry in record.entries.items() if key in keys})
            for record in self.of(page)
            if all(_content(self._project.root / name) == was for name, was in record.files.items())
        ]

    def seen(self, page: Page) -> Seen:
        """Return a function from a block of a page to what hosts recorded of it, as far as it is up to date."""
        records = self.valid_for(page)

        def seen(block: Block) -> list[RecordedOutcome]:
            known = ((record, record.entries.get(_short(block.key))) for record in records)
            return [RecordedOutcome(record.host, record.device, entry) for record, entry in known if entry]

        return seen

    def stale(self, pages: Iterable[Page]) -> dict[str, list[Block]]:
        """For each host, the blocks of these pages that it has no valid record of, or one of a failure."""
        found: dict[str, list[Block]] = {host.name: [] for host in self.hosts}
        for page in pages:
            seen = self.seen(page)
            for block in page.cases:
                hosts = {one.host.name for one in seen(block) if one.entry.outcome != FAILED}
                for name in found:
                    found[name] += [] if name in hosts else [block]
        return found

    def unrecorded(self, pages: Iterable[Page]) -> list[Block]:
        """The blocks that need a device, and of which no host has a valid record."""
        found = []
        for page in pages:
            seen = self.seen(page)
            needing = (block for block in page.cases if block.options.needs or page.settings.needs)
            found += [block for block in needing if not any(one.entry.good for one in seen(block))]
        return found

    def orphans(self, pages: Iterable[Page]) -> list[Path]:
        """The records of no page: its file is gone, or it has no blocks any more.

        Args:
            pages: those that could be read. A page whose file is there, and which is none of them, keeps its records.
        """
        empty = {page.path for page in pages if not page.program}
        files = sorted(self._project.records.glob("*/**/*.yml"))
        return [file for file in files if all(path in empty for path in _pages_of(self._project, file))]

    def _host(self, file: Path, unread: list[Failure]) -> Host | None:
        try:
            return _read_host(file, signature(file))
        except RecordError as error:
            unread.append(self._failure(file, file.stem, error))
            return None

    def _page(self, host: Host, page: Page, unread: list[Failure]) -> PageRecord | None:
        file = _file(self._project, host.name, page)
        if not file.is_file():
            return None
        try:
            about = {**_read_page(file, signature(file))}
            instruction_set = about.pop("instruction_set") or host.instruction_set
            return PageRecord(replace(host, instruction_set=instruction_set), **about)
        except RecordError as error:
            unread.append(self._failure(file, host.name, error))
            return None

    def _failure(self, file: Path, host: str, error: RecordError) -> Failure:
        what = f"the record cannot be read: {error}; write it anew with `livepages record --host {host}`"
        return Failure(self._project.name(file), error.line, 0, what)


def left_behind(project: Project, page: Page) -> list[Path]:
    """The records, of any host, under a name that a page had (``redirect_from``) and no page has now."""
    found = [file for name in page.redirect_from for file in records_named(project, project.docs / name)]
    return [file for file in found if not _pages_of(project, file)]


def records_named(project: Project, path: Path) -> list[Path]:
    """The records, of any host, under the name of a page that need not be there."""
    path = Path(os.path.normpath(path))
    if path.suffix not in MARKDOWN or not path.is_relative_to(project.docs):
        return []
    name = path.relative_to(project.docs).with_suffix(".yml").as_posix()
    return [file for file in sorted(project.records.glob(f"*/{escape(name)}")) if file.is_file()]


def _pages_of(project: Project, file: Path) -> list[Path]:
    """The files of pages that a record may be of; none if all are gone."""
    _, *name = file.relative_to(project.records).with_suffix("").parts
    page = str(project.docs.joinpath(*name))
    return [Path(page + ending) for ending in MARKDOWN if os.path.lexists(page + ending)]


def entry(result: BlockResult) -> Entry:
    """Return what is recorded of a block."""
    block, outcome, failure = result.block, result.shown, result.failure
    kind = NOT_RUN if outcome.skipped else FAILED if failure else RAISED if outcome.raised else RAN
    error = outcome.skipped or (failure.message if failure else "")
    if kind == RAISED and outcome.raised:
        error = f"{outcome.raised.type}: {outcome.raised.message}"
    streams = {stream: "".join(text for which, text in outcome.output if which == stream) for stream in (OUT, ERR)}
    return Entry(
        key=_short(block.key),
        code=next((line.strip() for line in block.code.splitlines() if line.strip()), ""),
        outcome=kind,
        seconds=float(f"{outcome.seconds:.2g}"),
        counts=outcome.counts,
        figures=len(outcome.figures),
        shown=stripped("\n".join(bundle["text/plain"] for bundle in outcome.displays)),
        stdout=stripped(streams[OUT]),
        stderr=stripped(streams[ERR]),
        error=stripped(error),
    )


def used_files(project: Project, run: Run) -> dict[str, str | None]:
    """Return the digests of the project's files that a run depends on, by name, for its record."""
    return {
        name: _content(project.root / name)
        for name in sorted(run.files)
        # A page may show what other hosts saw, and what lies outside differs from host to host.
        if not Path(name).is_absolute() and not (project.root / name).is_relative_to(project.records)
    }


def short_key(block: Block) -> str:
    """The key of a block, as records name it."""
    return _short(block.key)


def check_host_name(name: str) -> None:
    """Check that a name can be that of a host.

    Raises:
        ProjectError: it cannot.
    """
    if not re.fullmatch(r"[\w.-]+", name):
        raise ProjectError(f"{name!r} cannot be the name of a host, which has only letters, digits, dots and dashes")


def record(project: Project, name: str, ran: Iterable[tuple[Page, Run]], partial: bool = False) -> list[Path]:
    """Write what this host saw of the project's pages. What equals the record that is there stays as it is.

    The records of a page that was renamed, those of other hosts too, get its new name.

    Args:
        project: the project.
        name: of this host.
        ran: every page that could be read, and its run here.
        partial: whether `ran` holds only some of the pages; records of others are left as they are. Their computer may
            have another instruction set than that of these pages.

    Returns:
        the files that changed.

    Raises:
        ProjectError: the name is that of a host of another kind, or with a newer release, or, for some of the pages,
            with another release; or a file cannot be written.
    """
    check_host_name(name)
    ran = list(ran)
    host = _this_host(project, name, [module for _, run in ran for module in run.modules])
    known = Records(project)
    before = next((other for other in known.hosts if other.name == name), None)
    if before and (
        _is_another_kind(before, host, project.runtime, partial) or _number(before.release) > _number(host.release)
    ):
        raise ProjectError(f"{name} is {before.label}, and this is {host.label}: record it under another name")
    if partial and before and before.release != host.release:
        raise ProjectError(f"{name} is {before.label}, and this is {host.label}: record all pages, not only some")
    changed, replaced = [], []
    for page, run in ran:
        if not page.program:
            continue
        for file in left_behind(project, page):
            of = file.relative_to(project.records).parts[0]
            if not (new := _file(project, of, page)).exists():
                changed += _move(file, new)
            elif of == name:
                replaced.append(file)  # by the one that is written below
        old = {record.host.name: record for record in known.of(page)}.get(name, PageRecord(host, ""))
        # Of a block that did not run because another one failed, nothing is known.
        kept = [_entry_to_keep(old, result, project.runtime) for result in run.program if not result.stopped_by]
        other = host.instruction_set if partial and before and before.instruction_set != host.instruction_set else ""
        text = _dump(
            {
                "device": run.device,
                **({"instruction_set": other} if other else {}),
                "files": used_files(project, run),
                "blocks": [_drop_defaults(entry) for entry in kept],
            }
        )
        changed += _written(_file(project, name, page), text)
    if partial and before:
        about = replace(before, distributions={**before.distributions, **host.distributions})
    else:
        about = replace(host, commit=host.commit or (before.commit if before else ""))
    changed += _written(project.records / f"{name}.yml", _dump(_flatten(about, "versions", "name")))
    orphans = [] if partial else known.orphans(page for page, _ in ran)
    for file in dict.fromkeys([*replaced, *orphans]):
        if file.is_relative_to(project.records / name):
            file.unlink()
            changed.append(file)
    return list(dict.fromkeys(changed))


def _is_another_kind(before: Host, here: Host, runtime: Runtime, partial: bool) -> bool:
    """Return whether a record was made on another kind of device, or for a processor, on another kind of computer.

    Some of the pages may be recorded with another instruction set, which their files then name.
    """
    if before.device != here.device or not runtime.is_processor(here.device):
        return before.device != here.device
    if before.system != here.system:
        return True
    return not partial and before.instruction_set not in ("", here.instruction_set)


def _entry_to_keep(record: PageRecord, result: BlockResult, runtime: Runtime) -> Entry:
    """Return the old entry if the new one equals it but for times and `volatile` outputs, which always differ."""
    new, options = entry(result), result.block.options
    old = record.entries.get(new.key)
    if old is None or differ(old, new, options.tolerance, options.volatile, runtime.noise_patterns):
        return new
    return replace(old, code=new.code, counts=new.counts)


def _this_host(project: Project, name: str, modules: Iterable[str]) -> Host:
    runtime = project.runtime
    here = {
        **runtime.host(),
        "versions": runtime.versions(),
        "environment": runtime.variables(),
    }
    versions = {package: number for package, number in distributions.versions(modules).items() if number}
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Host(name=name, distributions=versions, commit=history.commit(project), day=day, **here)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _short(key: str) -> str:
    return key[:DIGITS]


def _content(file: Path) -> str | None:
    full = content(file)
    return full and _short(full)


# --- files -------------------------------------------------------------------------------------------------------


def _file(project: Project, host: str, page: Page) -> Path:
    return project.records / host / page.path.relative_to(project.docs).with_suffix(".yml")


def _move(file: Path, new: Path) -> list[Path]:
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        file.rename(new)
    except OSError as error:
        raise ProjectError(f"{file}: cannot be renamed to {new}: {error.strerror}") from None
    return [file, new]


def _written(file: Path, text: str) -> list[Path]:
    """The file if writing this text into it changes it."""
    return [file] if write(file, text) else []


class _Dumper(yaml.CSafeDumper):
    """A dumper that writes text of several lines as such."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _dump(data: Mapping[str, Any]) -> str:
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)


def _flatten(data: Host | Entry, mapping: str, but: str = "") -> dict[str, Any]:
    """The fields of a host or an entry, without one of them, with what one holds in its place."""
    found: dict[str, Any] = {}
    for name, value in asdict(data).items():
        if name != but:
            found |= value if name == mapping else {name: value}
    return found


def _unflatten(kind: type[Host] | type[Entry], data: Mapping[str, Any], mapping: str, inner: type) -> dict[str, Any]:
    """Undo `_flatten`: what is no field goes into the mapping.

    Raises:
        RecordError: the mapping would hold something else than `inner`, which may be a name that is not known.
    """
    names = {one.name for one in fields(kind)} - {mapping}
    inside = {name: value for name, value in data.items() if name not in names}
    for name, value in inside.items():
        if not isinstance(name, str) or not isinstance(value, inner):
            raise RecordError(1, f"{name}: {value!r} is not understood")
    return {name: value for name, value in data.items() if name in names} | {mapping: inside}


def _drop_defaults(entry: Entry) -> dict[str, Any]:
    """An entry without what is empty."""
    return {
        name: value for name, value in _flatten(entry, "counts").items() if value not in ("", 0) or name == "seconds"
    }


@cache
def _read_host(file: Path, _signature: object) -> Host:
    return make(Host, _unflatten(Host, load(read(file)), "versions", str), name=file.stem)


def _entry(data: object) -> Entry:
    if not isinstance(data, Mapping):
        raise RecordError(1, f"{data!r} is not a mapping")
    return make(Entry, _unflatten(Entry, {"code": "", **data}, "counts", int))


@cache
def _read_page(file: Path, _signature: object) -> Mapping[str, Any]:
    text = read(file)
    data = load(text)
    blocks = data.pop("blocks", None)
    if not isinstance(blocks, list):
        raise RecordError(1, "blocks: is not a list")
    entries = [_entry(block) for block in blocks]
    if odd := next((entry for entry in entries if entry.outcome not in (RAN, RAISED, FAILED, NOT_RUN)), None):
        raise RecordError(1, f"outcome: {odd.outcome!r} is none of {', '.join((RAN, RAISED, FAILED, NOT_RUN))}")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {**asdict(make(_About, data)), "entries": {entry.key: entry for entry in entries}, "digest": digest}


@dataclass(frozen=True)
class _About:
    """The part of a page's file that is not about its blocks."""

    device: str
    files: Mapping[str, str | None]
    instruction_set: str = ""  # where it is not the host's
