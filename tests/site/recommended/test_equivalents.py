"""Every row of "NumPy, PyTorch, JAX": the JAX code returns what the NumPy code does, for any arrays and any numbers in it."""

import ast
import contextlib
import re
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import ATTACKED, examples, search
from tests.site.strategies import arrays, assert_same, dtypes

rosetta = import_module("rosetta")
READ = rosetta.read_rows(rosetta.ROWS.read_text(encoding="utf-8"))


def numbers(*codes: str) -> set[int | float]:
    """The numbers that all of these programs contain, for which the row stands as well."""
    constants = [[node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)] for code in codes]
    found = [{v for v in values if isinstance(v, int | float) and not isinstance(v, bool)} for values in constants]
    return set.intersection(*found)


def varies(row: Any) -> bool:
    """Return whether something in a row can be made up; random numbers differ by nature, and have attacks of their own."""
    codes = [row.code[library] for library in ("numpy", "jax") if library in row.code]
    said = row.kind == "differs" or row.group in ("Begin", "Random numbers")
    return len(codes) == 2 and not said and bool(numbers(*codes) or re.search(r"\b[xm]\b", codes[1]))


ROWS = [row for row in READ if varies(row)]
ATTACKED.update({f"rosetta: {row.title}": "test_a_row_holds_for_any_arrays" for row in ROWS})
# What a row itself says is different for some inputs, and these inputs.
SAID: dict[str, tuple[str, Callable[[Any, dict[int | float, int | float]], bool]]] = {
    "Convert": ("NaN", lambda x, changed: not bool((np.abs(x) < 2**31).all())),
    "One-hot": (
        "no such class",
        lambda x, changed: not 0 <= min(changed.values(), default=0) <= max(changed.values(), default=0) < 3,
    ),
    "Divide integers, round down": ("by zero", lambda x, changed: 0 in changed.values()),
}
# What other rows say of all functions, by the error of NumPy: an index is moved inside, and no matrix is refused.
ELSEWHERE = {"IndexError": "Read out of bounds", "LinAlgError": "Solve a singular system"}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The x and m of the first row, of any length, dtype and values; m has as many columns as x has elements."""
    dtype, n, rows = (
        draw(dtypes("float") | st.just(np.dtype("int32"))),
        draw(st.sampled_from([3, 0, 1, 2, 5])),
        draw(st.integers(1, 3)),
    )
    return draw(arrays((n,), st.just(dtype))), draw(arrays((rows, n), st.just(dtype)))


class _Replace(ast.NodeTransformer):
    def __init__(self, numbers: dict[int | float, int | float]) -> None:
        self.numbers = numbers

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:  # noqa: N802
        value = node.value
        number = self.numbers.get(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        return node if number is None else ast.copy_location(ast.Constant(number), node)


def result(code: str, changed: dict[int | float, int | float], **names: Any) -> tuple[Any, str]:
    """The value of the last line, and the class of the error instead of it."""
    tree = _Replace(changed).visit(ast.parse(code))
    last = tree.body.pop()
    if not isinstance(last, ast.Expr):
        tree.body.append(last)
        last = ast.Expr(ast.Constant(None))
    everything = {"np": np, "jax": jax, "jnp": jnp, "optax": optax, "error": rosetta.error, **names}
    with warnings.catch_warnings(action="ignore"):
        try:
            exec(compile(ast.fix_missing_locations(tree), "row", "exec"), everything)
            return eval(compile(ast.Expression(ast.fix_missing_locations(last.value)), "row", "eval"), everything), ""
        except Exception as error:  # noqa: BLE001  (an error is a result as well)
            return None, type(error).__name__


@examples
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.anchor)
def test_a_row_holds_for_any_arrays(row: Any, count: int, tmp_path: Path) -> None:
    common = sorted(numbers(row.code["numpy"], row.code["jax"]))
    small = st.fixed_dictionaries(
        {
            number: st.integers(-1, 4) if isinstance(number, int) else st.sampled_from([0.5, -1.5, 2.0])
            for number in common
        }
    )

    def holds(data: tuple[Any, Any], changed: dict[int | float, int | float]) -> None:
        x, m = data
        if row.title in SAID and SAID[row.title][1](x, changed):
            return
        expected, refused = result(row.code["numpy"], changed, x=x.copy(), m=m.copy())
        found, error = result(row.code["jax"], changed, x=jnp.asarray(x), m=jnp.asarray(m))
        if error or refused == "TypeError" and x.dtype == np.float16:
            return  # an error is not silent, and NumPy's linear algebra has no half precision
        if refused:
            parts = [np.asarray(part, dtype=float) for part in jax.tree.leaves(found)]
            silent = [part for part in parts if np.isfinite(part).any()]
            assert refused in ELSEWHERE or not silent, f"NumPy raises {refused}, JAX returns {found}"
            return
        same(found, expected)

    with contextlib.chdir(tmp_path):  # some rows write files
        search(count, holds, data=pairs(), changed=st.just({}) | small)


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, np.ndarray | np.generic | int | float):
        found, expected = np.asarray(found), np.asarray(expected)
        if (
            found.shape == expected.shape and expected.dtype.kind == "f"
        ):  # neither an infinity nor NaN is a wrong number
            lost = np.isnan(found) & np.isinf(expected) | np.isinf(found) & np.isnan(expected)
            found, expected = np.where(lost, np.nan, found), np.where(lost, np.nan, expected)
        assert_same(found, expected)
    else:
        assert found == expected


@pytest.mark.parametrize("title", SAID)
def test_a_row_says_for_which_inputs_it_does_not_hold(title: str) -> None:
    [row] = [row for row in ROWS if row.title == title]
    assert SAID[title][0] in row.why


def test_what_all_functions_do_is_said_by_a_row_that_warns() -> None:
    assert {row.title for row in READ if row.kind == "differs"} >= set(ELSEWHERE.values())
