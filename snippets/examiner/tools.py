"""What checks are made of: each tool asks one question of an answer, and raises `Refused` where the answer is no."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, jaxprs_in_params

Answer = Callable[..., Any]


class Refused(Exception):  # noqa: N818  (it is a verdict, not an error)
    """The answer is not right; the message says what it did."""


class NotWritten(Refused):
    """The answer is still the stub."""

    def __init__(self) -> None:
        super().__init__("not written yet")


def require(condition: Any, message: str) -> None:
    """Refuses with the message unless the condition holds."""
    if not condition:
        raise Refused(message)


# --- values ------------------------------------------------------------------------------------------------------


def same(where: str, got: Any, wanted: Any, tolerance: float = 1e-4) -> None:
    """Refuses a result that differs from the wanted one in structure, shape, dtype or value.

    Args:
        where: for which input, in words.
        got: what the answer gave.
        wanted: arrays of NumPy or JAX; 64 bits stand for what JAX makes of them.
        tolerance: relative to the size of the numbers wanted.
    """
    if got is NotImplemented:
        raise NotWritten
    require(got is not None or wanted is None, f"{where}: gave None; is a return missing?")
    have, want = jax.tree.structure(got), jax.tree.structure(wanted)
    require(have == want, f"{where}: the result is built as {_tree(have)}, expected {_tree(want)}")
    for path, leaf in jax.tree.leaves_with_path(wanted):
        place = jax.tree_util.keystr(path)
        _same_leaf(f"{where}: result{place}" if place else where, _follow(got, path), leaf, tolerance)


def _same_leaf(where: str, got: Any, wanted: Any, tolerance: float) -> None:
    require(isinstance(got, jax.Array | np.ndarray | np.generic | float | int), f"{where}: gave a {type(got).__name__}")
    a, b = np.asarray(got), np.asarray(wanted)
    require(a.shape == b.shape, f"{where}: gave shape {a.shape}, expected {b.shape}")
    kind = jax.dtypes.canonicalize_dtype(b.dtype)
    if isinstance(got, jax.Array | np.ndarray):
        require(a.dtype == kind, f"{where}: gave dtype {a.dtype}, expected {kind}")
    size = float(np.max(np.abs(b.astype(float)), initial=0, where=np.isfinite(b.astype(float))))
    close = np.isclose(a.astype(float), b.astype(float), rtol=tolerance, atol=tolerance * size, equal_nan=True)
    if not close.all() and a.size > 12:
        first = np.unravel_index(np.argmin(close), a.shape)
        a, b, where = a[first], b[first], f"{where}: element {[int(n) for n in first]}"
    require(close.all(), f"{where}: gave {show(a)}, expected {show(b)}")


def finite(where: str, got: Any) -> None:
    """Refuses NaN and infinity."""
    for leaf in jax.tree.leaves(got):
        require(np.isfinite(np.asarray(leaf)).all(), f"{where}: gave {show(leaf)}")


def gradient(answer: Answer, wanted: Answer, *cases: Any) -> None:
    """Refuses an answer whose gradient, by its one argument, is not the one wanted."""
    for x in cases:
        same(f"gradient at {show(x)}", jax.grad(answer)(x), wanted(x), 1e-3)


def unchanged(answer: Answer, *args: np.ndarray) -> Any:
    """What an answer gives for NumPy arrays, which it must leave as they are."""
    given = [arg.copy() for arg in args]
    result = answer(*given)
    for number, (before, after) in enumerate(zip(args, given)):
        require(np.array_equal(before, after), f"it changed its argument {number}, which belongs to the caller")
    return result


# --- programs ----------------------------------------------------------------------------------------------------


def counted(answer: Answer, **options: Any) -> tuple[Answer, list[int]]:
    """The answer under `jax.jit` with these options, and a list that grows with each trace."""
    traces: list[int] = []

    @functools.wraps(answer)
    def watched(*args: Any, **keywords: Any) -> Any:
        traces.append(1)
        return answer(*args, **keywords)

    return jax.jit(watched, **options), traces


def traces_while(act: Callable[[], Any]) -> int:
    """How many functions JAX traces while this runs, by its own monitoring."""
    before = len(_traced)
    jax.block_until_ready(act())
    return len(_traced) - before


_traced: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: _traced.append(event) if event == "/jax/core/compile/jaxpr_trace_duration" else None
)


def equations(answer: Answer, *args: Any) -> list[Any]:
    """All equations of the answer's jaxpr, also of the jaxprs in it."""
    return list(_equations(jax.make_jaxpr(answer)(*args).jaxpr))


def names(answer: Answer, *args: Any) -> set[str]:
    """The names of the operations in the answer's jaxpr."""
    return {equation.primitive.name for equation in equations(answer, *args)}


def one_program(answer: Answer, *args: Any) -> None:
    """Refuses an answer that computes anything outside of one call of a compiled function."""
    outside = [equation.primitive.name for equation in jax.make_jaxpr(answer)(*args).jaxpr.eqns]
    require(outside.count("jit") == 1, "it is not compiled" if "jit" not in outside else "it is several programs")
    rest = sorted(set(outside) - {"jit", "convert_element_type"})
    require(not rest, f"it is not compiled as a whole: {', '.join(rest)} is outside of the program")


def largest(answer: Answer, *args: Any) -> int:
    """The number of elements of the largest array that the answer computes."""
    sizes = [out.aval.size for equation in equations(answer, *args) for out in equation.outvars]
    return max([s for s in sizes if isinstance(s, int)], default=0)


def no_unrolled_loop(short: int, long: int) -> None:
    """Refuses a program that has more equations for more turns; takes the two numbers of equations."""
    require(
        long <= short,
        f"the program grows with the number of turns, from {short} to {long} equations: tracing runs a Python loop "
        "turn by turn",
    )


def collectives(answer: Answer, *args: Any) -> list[str]:
    """The names of the collective operations in the compiled answer, sorted."""
    text = jax.jit(answer).lower(*args).compile().as_text() or ""
    kinds = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")
    return sorted(kind for kind in kinds for _ in range(text.count(f" {kind}(") + text.count(f" {kind}-start(")))


# --- words -------------------------------------------------------------------------------------------------------


def show(value: Any) -> str:
    """A value in a few characters."""
    array = np.asarray(value)
    if array.size > 12:
        return f"{array.dtype}{list(array.shape)}"
    text = np.array2string(array.round(3) + 0, precision=3, separator=", ", suppress_small=True)
    return " ".join(text.split())


def numbers(*shape: int, seed: int = 0) -> jax.Array:
    """Normal numbers."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def _equations(jaxpr: Jaxpr) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs_in_params(equation.params):
            yield from _equations(inner)


def _follow(tree: Any, path: tuple[Any, ...]) -> Any:
    return dict(jax.tree.leaves_with_path(tree))[path]


def _tree(structure: Any) -> str:
    return str(structure).removeprefix("PyTreeDef(").removesuffix(")").replace("*", "an array")
