"""Rows and lines that NumPy has no code for, such as derivatives and steps of training, against their formulas."""

import ast
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import special

from tests.site.recommended.attack import ATTACKED, examples, search
from tests.site.recommended.test_equivalents import READ, result
from tests.site.strategies import arrays, assert_same

Array = np.ndarray[Any, Any]


def adam(w: Array) -> Array:
    """Three steps down the sum of squares."""
    first, second = np.zeros(3), np.zeros(3)
    for step in (1, 2, 3):
        first, second = 0.9 * first + 0.1 * 2 * w, 0.999 * second + 0.001 * (2 * w) ** 2
        w = w - 0.1 * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return w


def batches(n: int, size: int) -> list[Array]:
    """Parts of a range, of which the last may be smaller."""
    return [np.arange(start, min(start + size, n)) for start in range(0, n, size)]


def decayed(x: Array) -> Array:
    """One step of Adam, whose first step has the size of the rate, and of decay."""
    return np.asarray(x - 0.1 * (2 * x / (np.abs(2 * x) + 1e-8) + 0.1 * x))


# For a row: its result, for an x of three elements, an m of three columns, and a number in the place of some in its code.
ROWS: dict[str, tuple[Callable[[Array, Array, Any], Any], tuple[Any, ...]]] = {
    "To NumPy": (lambda x, m, c: x, ()),
    "A derivative": (lambda x, m, c: 2 * c, (3.0,)),
    "Value and gradient": (lambda x, m, c: ((x**2).sum(), 2 * x), ()),
    "A gradient of two things": (lambda x, m, c: (4.0, c), (3.0,)),
    "A part counts as constant": (lambda x, m, c: c, (3.0,)),
    "No gradient wanted": (lambda x, m, c: 2 * x, ()),
    "Vector-Jacobian product": (lambda x, m, c: 2 * x, ()),
    "Jacobian-vector product": (lambda x, m, c: 2 * x, ()),
    "Jacobian": (lambda x, m, c: np.diag(2 * x), ()),
    "Hessian": (lambda x, m, c: np.diag(6 * x), ()),
    "A gradient of your own": (lambda x, m, c: np.full(3, 2), ()),
    "Count the parameters": (lambda x, m, c: m.size + 2, ()),
    "Change all parameters": (lambda x, m, c: np.full(2, 2), ()),
    "GELU, exact": (lambda x, m, c: (x - 2) * (1 + special.erf((x - 2) / 2**0.5)) / 2, ()),
    "One step of gradient descent": (lambda x, m, c: 0.8 * x, ()),
    "Three steps of Adam": (lambda x, m, c: adam(x), ()),
    "Weight decay": (lambda x, m, c: decayed(x), ()),
    "Clip gradients by their norm": (lambda x, m, c: 2 * x / max(1, np.linalg.norm(2 * x)), ()),
    "Dropout at evaluation": (lambda x, m, c: x, ()),
    "Batch normalization in training": (lambda x, m, c: (m - m.mean(0)) / np.sqrt(m.var(0) + 1e-5), ()),
    "Batch normalization in evaluation": (lambda x, m, c: m / np.sqrt(1 + 1e-5), ()),
    "The running averages after a batch": (lambda x, m, c: (0.1 * m.mean(0), 0.9 + 0.1 * m.var(0, ddof=1)), ()),
    "A gradient per example": (lambda x, m, c: 2 * (m @ x)[:, None] * m, ()),
    "Compile": (lambda x, m, c: (x**2).sum(), ()),
    "Fill a model with saved parameters": (lambda x, m, c: m @ x + 1, ()),
}
CODES = {row.title: row.code["jax"] for row in READ if "jax" in row.code}
# For a line of the cheat sheet: its result, for numbers in the place of its floats, or of its integers if it has none.
LINES: dict[str, Callable[..., Any]] = {
    "jnp.arange(3) + 1": lambda n, k: np.arange(n) + k,
    "jnp.linspace(0, 1, 3)": np.linspace,
    "jax.lax.switch(1, [lambda: 10, lambda: 20])": lambda i, p, q: (p, q)[min(i, 1)],
    "jax.lax.fori_loop(0, 5, lambda i, c: c + i, 0)": lambda a, b, c: c + sum(range(a, b)),
    "jax.grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0)": lambda a, b: (b, a),
    "jax.grad(jax.grad(lambda x: x**3))(2.0)": lambda x: 6 * x,
    "jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0)": lambda x: x,
    'jax.grad(lambda p: p["a"] ** 2)({"a": 3.0})["a"]': lambda x: 2 * x,
    "jax.checkpoint(jnp.sin)(0.0)": np.sin,
    "jax.nn.one_hot(1, 3)": lambda i, n: np.arange(n) == i,
}
ATTACKED.update({f"rosetta: {title}": "test_a_row_is_its_formula" for title in [*ROWS, "Batches"]})
ATTACKED.update({f"cheat sheet: {line}": "test_a_line_is_its_formula" for line in LINES})
halves = st.integers(-18, 18).map(lambda n: n / 2)


def check(found: Any, expected: Any) -> None:
    """Compare a result with the formula's, part by part."""
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check(one, other)
    else:
        assert_same(np.asarray(found, float), np.asarray(expected, float), atol=1e-3)


@examples
@pytest.mark.parametrize("title", ROWS)
def test_a_row_is_its_formula(title: str, count: int) -> None:
    formula, numbers = ROWS[title]

    def holds(x: Array, m: Array, c: float) -> None:
        found, error = result(CODES[title], dict.fromkeys(numbers, c), x=jnp.asarray(x), m=jnp.asarray(m))
        assert not error
        check(found, formula(x.astype(np.float64), m.astype(np.float64), c))

    search(count, holds, x=arrays((3,), odd=False), m=arrays((2, 3), odd=False), c=halves)


@examples
def test_a_row_makes_batches_of_any_size(count: int) -> None:
    def holds(n: int, size: int) -> None:
        found, error = result(CODES["Batches"], {5: n, 2: size})
        assert not error
        check(found, batches(n, size))

    search(count, holds, n=st.integers(0, 9), size=st.integers(1, 5))


@examples
@pytest.mark.parametrize("line", LINES)
def test_a_line_is_its_formula(line: str, count: int) -> None:
    constants = [node for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Constant)]
    kind = float if any(isinstance(node.value, float) for node in constants) else int
    places = sorted((node.col_offset, str(node.value)) for node in constants if type(node.value) is kind)

    def holds(numbers: list[Any]) -> None:
        code, moved = line, 0
        for (place, old), new in zip(places, numbers, strict=True):
            code = code[: place + moved] + str(new) + code[place + moved + len(old) :]
            moved += len(str(new)) - len(old)
        check(eval(code, {"jax": jax, "jnp": jnp}), LINES[line](*numbers))

    one = halves if kind is float else st.integers(0, 4)
    search(count, holds, numbers=st.lists(one, min_size=len(places), max_size=len(places)))
