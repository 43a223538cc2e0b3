"""Read what `jax.profiler` writes: the spans of a trace, the scopes of a program, the arrays of a memory profile."""

# --8<-- [start:span]
import glob
import os
import re
import warnings
from typing import Any, NamedTuple

from jax.profiler import ProfileData

# A warning of jaxlib's own, on Python 3.13.
warnings.filterwarnings("ignore", "builtin type event_stats")


class Span(NamedTuple):
    name: str
    place: str  # a device or the host, and a thread of it
    start: float  # milliseconds
    end: float
    notes: dict[str, Any]


# --8<-- [end:span]


# --8<-- [start:read]
def read(folder: str) -> list[Span]:
    paths = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
    newest = ProfileData.from_file(max(paths, key=os.path.getmtime))
    spans = []
    for plane in newest.planes:
        for line in plane.lines:
            place = f"{plane.name} {line.name}"
            for e in line.events:
                start, end = e.start_ns / 1e6, e.end_ns / 1e6
                spans.append(Span(e.name, place, start, end, dict(e.stats)))
    return spans


# --8<-- [end:read]


# --8<-- [start:instructions]
# These contain other operations, whose time they include.
CONTAINERS = {"while", "conditional", "call"}
LINE = re.compile(r"\s*(?:ROOT )?%?([\w.-]+) = .*? ([a-z][\w-]*)\(")


def instructions(program: str) -> dict[str, tuple[str, str]]:
    """The kind of each instruction, and the scope it comes from."""
    found = {}
    for line in program.splitlines():
        if match := LINE.match(line):
            kind = "small-call" if "_small_call" in line else match[2]
            note = re.search(r'op_name="(.*?)"', line)
            found[match[1]] = kind, note[1] if note else ""
    return found


# --8<-- [end:instructions]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message of Protocol Buffers: number, and value as a number or as bytes."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            found.append((key >> 3, value))
        else:
            size, at = _varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            found.append((key >> 3, data[at : at + size]))
            at += size
    return found


def numbers(found: list[tuple[int, Any]], field: int) -> list[int]:
    """The numbers of a repeated field, whether they are packed into one value or not."""
    result = []
    for value in (value for number, value in found if number == field):
        if isinstance(value, int):
            result.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = _varint(value, at)
            result.append(one)
    return result


class Allocation(NamedTuple):
    number: int
    bytes: int
    kind: str  # "buffer" or "executable"
    frames: list[tuple[str, str, int]]  # function, file and line, innermost first


def allocations(profile: bytes) -> list[Allocation]:
    """The contents of a memory profile, in the format of pprof once it is unpacked."""
    top = fields(profile)
    text = [value.decode() for field, value in top if field == 6]
    functions, places = {}, {}
    for field, value in top:
        if field == 5:
            one = dict(fields(value))
            functions[one[1]] = text[one.get(2, 0)], text[one.get(4, 0)]
    for field, value in top:
        if field == 4:
            one = dict(fields(value))
            line = dict(fields(one[4]))
            places[one[1]] = (*functions[line[1]], line.get(2, 0))
    result = []
    for sample in (fields(value) for field, value in top if field == 2):
        count, size = numbers(sample, 2)
        labels = [dict(fields(value)) for field, value in sample if field == 3]
        kinds = {text[label[1]]: text[label.get(2, 0)] for label in labels}
        frames = [places[location] for location in numbers(sample, 1)]
        result.append(Allocation(count, size, kinds.get("kind", ""), frames))
    return result
