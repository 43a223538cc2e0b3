"""The text of records, as YAML that people can read.

``records/HOST.yml`` describes the host; ``records/HOST/guide/page.yml`` has the outcome of each block of that page.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from livepages.records.entries import FAILED, NOT_RUN, RAISED, RAN, Entry, dump, entry_data
from livepages.records.files import RecordError, load, make, read
from livepages.records.model import Host


def _unflatten(kind: type[Host] | type[Entry], data: Mapping[str, Any], mapping: str, inner: type) -> dict[str, Any]:
    """Return the fields of a host or an entry, of which one is a mapping of all names that are no field.

    Raises:
        RecordError: a value of the mapping is not of the type `inner`, as of an unknown name.
    """
    names = {one.name for one in fields(kind)} - {mapping}
    inside = {name: value for name, value in data.items() if name not in names}
    for name, value in inside.items():
        if not isinstance(name, str) or not isinstance(value, inner):
            raise RecordError(1, f"{name}: {value!r} is not understood")
    return {name: value for name, value in data.items() if name in names} | {mapping: inside}


def host_text(host: Host) -> str:
    """Return the text of the file of a host."""
    found: dict[str, Any] = {}
    for name, value in asdict(host).items():
        found |= value if name == "versions" else {name: value}
    del found["name"]
    return dump(found)


def page_text(device: str, instruction_set: str, files: Mapping[str, str | None], entries: Sequence[Entry]) -> str:
    """Return the text of the file of a page.

    Args:
        device: that its blocks ran on.
        instruction_set: of the computer, if it is not that of the host's file.
        files: the digests of the project's files that it depends on, by name.
        entries: of its blocks.
    """
    own = {"instruction_set": instruction_set} if instruction_set else {}
    blocks = [entry_data(entry) for entry in entries]
    return dump({"device": device, **own, "files": files, "blocks": blocks})


@cache
def read_host(file: Path, _signature: object) -> Host:
    """Return the host that a file describes; the signature shows whether the file has changed.

    Raises:
        RecordError: it cannot be read.
    """
    return make(Host, _unflatten(Host, load(read(file)), "versions", str), name=file.stem)


def _entry(data: object) -> Entry:
    if not isinstance(data, Mapping):
        raise RecordError(1, f"{data!r} is not a mapping")
    return make(Entry, _unflatten(Entry, {"code": "", **data}, "counts", int))


@cache
def read_page(file: Path, _signature: object) -> Mapping[str, Any]:
    """Return the fields of a `PageRecord` and the instruction set from a file, as `read_host`.

    Raises:
        RecordError: it cannot be read.
    """
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
