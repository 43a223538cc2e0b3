"""Count what a compiled program runs: its operations, with those of a loop counted once for each iteration."""

# --8<-- [start:operations]
import re
from collections.abc import Callable
from typing import Any

import jax

FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
PART = re.compile(r"\n(?:ENTRY )?%?([\w.-]+) [^\n]*\{\n(.*?)\n\}", re.DOTALL)
LINE = re.compile(r"(?m)^.* = .*? ([a-z][\w-]*)\((.*)$")


def operations(function: Callable[..., Any], *args: Any) -> int:
    """Return how many operations the program runs; a fusion is one."""
    program = jax.jit(function).lower(*args).compile().as_text() or ""
    parts = dict(PART.findall(program))
    entry = re.findall(r"\nENTRY %?([\w.-]+)", program)
    return _count(parts, entry[0])


# --8<-- [end:operations]


# --8<-- [start:count]
def _count(parts: dict[str, str], name: str) -> int:
    total = 0
    for kind, rest in LINE.findall(parts[name]):
        inside = re.findall(r"(?:condition|body)=%?([\w.-]+)", rest)
        if kind == "call":
            inside = re.findall(r"to_apply=%?([\w.-]+)", rest)
        times = re.findall(r'"known_trip_count":\{"n":"(\d+)"', rest)
        if inside:
            one = sum(_count(parts, part) for part in inside)
            total += one if kind == "call" else int(times[0]) * one
        elif kind not in FREE:
            total += 1
    return total


# --8<-- [end:count]
