"""The room that assertions about numbers leave: pages say that a number is small, and how nearly it is not so matters.

`watched` has the assertions of a block say what they compare, into the file that the variable `FILE` names; the page
does nothing else for it. `Seen` is one of them on one computer.
"""

import ast
import json
import math
import operator
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from livepages.source import Block

FILE = "ELSEWHERE_ROOM"
CLOSE = ("allclose", "isclose", "assert_allclose")
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


@dataclass(frozen=True)
class Seen:
    """Two numbers that an assertion compared; of arrays, those that came nearest to breaking it."""

    left: float
    right: float
    rounding: float  # of their type, relative to themselves
    tolerance: float = 0.0  # how far they may be apart; 0 where one has to be smaller

    def __str__(self) -> str:
        compared = f"{self.left:.6g} against {self.right:.6g}"
        return f"{compared}, within {self.tolerance:.2g}" if self.tolerance else compared

    @property
    def margin(self) -> float:
        """By how much one of them would have to change for the comparison to come out otherwise."""
        return abs(abs(self.left - self.right) - self.tolerance)

    @property
    def is_far(self) -> bool:
        """Return whether one number is more than twice the other, or the difference less than half of what is tolerated."""
        small, large = sorted([abs(self.left), abs(self.right)])
        if self.tolerance:
            small, large = sorted([abs(self.left - self.right), self.tolerance])
        return 2 * small < large

    @staticmethod
    def room(several: Sequence["Seen"]) -> float:
        """The smallest margin of one assertion on several computers, in units of how far they differ there.

        It is infinite where a factor of two is left everywhere, and where the numbers are equal, as counts are.
        """
        margins = [one.margin for one in several]
        if not any(margins) or all(one.is_far for one in several):
            return math.inf
        rounding = max(one.rounding * max(abs(one.left), abs(one.right)) for one in several)
        return min(margins) / (max(margins) - min(margins) + rounding)

    @staticmethod
    def read(file: Path) -> dict[str, "Seen"]:
        """The tightest comparison of each assertion in a file, by where it is."""
        found: dict[str, Seen] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
            where, *numbers = json.loads(line)
            one = Seen(*numbers)
            if where not in found or one.margin < found[where].margin:
                found[where] = one
        return found


def ordered(where: str, order: str, left: Any, right: Any) -> Any:
    """``left < right`` or another order, noted if it is about fractions."""
    with suppress(Exception):  # of tracers, text, sets: whatever has an order
        a, b = np.broadcast_arrays(np.asarray(left), np.asarray(right))
        if {a.dtype.kind, b.dtype.kind} in ({"f"}, {"f", "i"}, {"f", "u"}):
            rounding = _rounding(left, right)
            a, b = a.astype(float).ravel(), b.astype(float).ravel()
            at = int(np.argmin(np.abs(a - b)))
            if np.isfinite([a[at], b[at]]).all():
                _note(where, a[at], b[at], rounding)
    return ORDERS[order](left, right)


def close(where: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of `allclose` or the like, noted."""
    with suppress(Exception):
        relative = options.get("rtol", options.get("rel_tol", 1e-7 if function.__name__ == "assert_allclose" else 1e-5))
        absolute = options.get("atol", options.get("abs_tol", 0.0 if function.__name__ == "assert_allclose" else 1e-8))
        given = [np.asarray(one).astype(float, casting="same_kind") for one in arguments[:2]]
        relative, absolute, *_ = [*arguments[2:4], *[relative, absolute][len(arguments[2:4]) :]]
        a, b = (one.ravel() for one in np.broadcast_arrays(*given))
        allowed = absolute + relative * np.abs(b)
        at = int(np.nanargmin(allowed - np.abs(a - b)))
        if np.isfinite([a[at], b[at]]).all() and allowed[at]:
            _note(where, a[at], b[at], _rounding(*arguments[:2]), allowed[at])
    return function(*arguments, **options)


def _rounding(*values: Any) -> float:
    """The relative rounding error of the coarsest type of some values; that of float32 for Python's own numbers."""
    kinds = [value.dtype for value in values if hasattr(value, "dtype")]
    return float(max((np.finfo(kind).eps for kind in kinds if kind.kind == "f"), default=1.2e-7))


def _note(where: str, *numbers: float) -> None:
    with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([where, *map(float, numbers)]) + "\n")


def _compares(node: ast.expr) -> bool:
    """Return whether this calls `allclose` or the like."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOSE


class _Watch(ast.NodeTransformer):
    """Have comparisons go through the functions above."""

    def __init__(self, where: str) -> None:
        self._where, self._count = where, 0

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        order = type(node.ops[0]).__name__
        if len(node.ops) > 1 or order not in ORDERS:
            return node
        return self._call("ordered", ast.Constant(order), node.left, node.comparators[0])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return self._call("close", node.func, *node.args, keywords=node.keywords) if _compares(node) else node

    def _call(self, name: str, *arguments: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
        self._count += 1
        module = ast.parse("__import__('tests.room', fromlist=['room'])", mode="eval").body
        where = ast.Constant(f"{self._where}, {self._count}")
        return ast.Call(ast.Attribute(module, name), [where, *arguments], list(keywords))


def watched(block: Block) -> Block:
    """The block, whose assertions note what they compare; it has as many lines as before."""
    if not block.runs or block.options.raises:
        return block
    try:
        tree = ast.parse(block.code)
    except (SyntaxError, ValueError):
        return block
    lines = block.code.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert) and not (isinstance(node, ast.Expr) and _compares(node.value)):
            continue
        before = ast.unparse(node)
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        text = "\n".join(lines[first:last])
        alone = text.strip() and not lines[first][: node.col_offset].strip() and len(text.rstrip()) == _end(node, lines)
        if not alone:  # beside another statement of its line
            continue
        page_line = block.lines[first] if first < len(block.lines) else block.line
        now = ast.unparse(ast.fix_missing_locations(_Watch(f"{block.page}:{page_line}").visit(node)))
        if now != before:
            lines[first:last] = [lines[first][: node.col_offset] + now, *[""] * (last - first - 1)]
    return replace(block, code="\n".join(lines))


def _end(node: ast.stmt, lines: Sequence[str]) -> int:
    """Return the offset at which a statement ends, from the beginning of its first line."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    return sum(len(line) + 1 for line in lines[first:last]) + (node.end_col_offset or 0)
