"""Inputs that authors do not think of, for what readers copy: every shape, dtype and value that a program may meet.

Shapes are few, so that JAX compiles little; values are many. `FEW` examples of each attack run by default, `MANY` in the
slow tests, or as many as the variable ATTACKS says: `ATTACKS=2000 pytest tests/site/recommended -m slow`.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

FEW = 5
MANY = int(os.environ.get("ATTACKS", "200"))

_SHAPES: dict[int, list[tuple[int, ...]]] = {
    0: [()],
    1: [(1,), (0,), (2,), (5,)],
    2: [(1, 1), (0, 2), (1, 3), (3, 1), (4, 3)],
    3: [(1, 2, 1), (2, 1, 3), (3, 2, 2)],
}
_ODD = [np.nan, np.inf, -np.inf, -0.0]


def shapes(low: int = 0, high: int = 3, empty: bool = True) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of these ranks, with axes of length 0 (if empty) and 1."""
    found = [shape for rank in range(low, high + 1) for shape in _SHAPES[rank]]
    return st.sampled_from([shape for shape in found if empty or 0 not in shape])


def dtypes(*kinds: str) -> st.SearchStrategy[np.dtype[Any]]:
    """Dtypes of JAX's defaults, of these kinds: "float", "int", "bool"."""
    names = {"float": ["float32", "float16"], "int": ["int32", "int8"], "bool": ["bool"]}
    return st.sampled_from([np.dtype(name) for kind in kinds or names for name in names[kind]])


def values(dtype: np.dtype[Any], odd: bool = True) -> st.SearchStrategy[Any]:
    """Numbers that every dtype holds exactly, and that meet often; among floats, NaN and infinity too (if odd)."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind != "f":
        return st.integers(-9, 9)
    halves = st.integers(-18, 18).map(lambda n: n / 2)
    return halves | st.sampled_from(_ODD) if odd else halves


@st.composite
def arrays(
    draw: st.DrawFn,
    shape: st.SearchStrategy[tuple[int, ...]] | tuple[int, ...] = (),
    dtype: st.SearchStrategy[np.dtype[Any]] | str = "float32",
    odd: bool = True,
) -> np.ndarray[Any, Any]:
    """An array of NumPy, whose floats may all be far from zero (if odd), where differences lose digits."""
    kind = np.dtype(dtype) if isinstance(dtype, str) else draw(dtype)
    near: np.ndarray[Any, Any] = draw(hnp.arrays(kind, shape, elements=values(kind, odd), fill=st.nothing()))
    if not odd or kind.kind != "f":
        return near
    return np.asarray(near + kind.type(draw(st.sampled_from([0, 0, 0, 1000]))))


def floats(rank: int = 1, odd: bool = True, empty: bool = True) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """A float32 array of this rank."""
    return arrays(shapes(rank, rank, empty), "float32", odd)


@st.composite
def masked(draw: st.DrawFn, rank: int = 1, some: bool = True) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A float32 array of finite numbers and a mask of the same shape, which keeps at least one of them (if some)."""
    x = draw(floats(rank, odd=False, empty=False))
    mask = draw(arrays(x.shape, "bool"))
    if some and not mask.any():
        mask.flat[draw(st.integers(0, mask.size - 1))] = True
    return x, mask


@st.composite
def weighted(draw: st.DrawFn, rows: int, parts: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Some rows in equal parts, and which of them are valid: at least one in each part, and seldom equally many."""
    x = draw(arrays((rows,), "float32", odd=False))
    valid = draw(arrays((parts, rows // parts), "bool"))
    valid[np.arange(parts), draw(arrays((parts,), st.just(np.dtype("int8")))) % (rows // parts)] = True
    return x, valid.ravel()


def keys() -> st.SearchStrategy[jax.Array]:
    """A key."""
    return st.integers(0, 2**31 - 1).map(jax.random.key)


Transformation = Callable[[Callable[..., Any]], Callable[..., Any]]


def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def once(*args: Any) -> Any:
        twice = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * 2), args)
        return jax.tree.map(lambda leaf: leaf[1], jax.vmap(function)(*twice))

    return once


TRANSFORMATIONS: dict[str, Transformation] = {"eager": lambda f: f, "jit": jax.jit, "vmap": _mapped}


def transformations(*names: str) -> st.SearchStrategy[Transformation]:
    """Ways to call a function of arrays, none of which may change what it returns: "eager", "jit", "vmap"."""
    return st.sampled_from(names or [*TRANSFORMATIONS]).map(TRANSFORMATIONS.__getitem__)


def slopes(function: Callable[[Any], Any], x: Any, step: float = 1e-6) -> np.ndarray[Any, Any]:
    """The gradient of a function of NumPy that returns a number, by differences in float64."""
    x = np.asarray(x, np.float64)
    found: np.ndarray[Any, Any] = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        there, back = x.copy(), x.copy()
        there[place] += step
        back[place] -= step
        found[place] = (function(there) - function(back)) / (2 * step)
    return found


def assert_same(found: Any, expected: Any, rtol: float = 1e-4, atol: float = 1e-4) -> None:
    """Check the shape and, up to rounding, the values; NaN equals NaN.

    Raises:
        AssertionError: they differ.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    if "float16" in (found.dtype.name, expected.dtype.name):
        rtol, atol = max(rtol, 1e-2), max(atol, 1e-2)
    if found.dtype == bool or found.dtype.kind in "US":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol)
