"""The parts of checks: each asks one question of an answer, and raises `Refused` where the answer is no."""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Var, jaxpr_as_fun

Answer = Callable[..., Any]


class Refused(Exception):  # noqa: N818  (it is a verdict, not an error)
    """The answer is not right; the message says what it did."""


class NotWritten(Refused):
    """The answer is still the stub."""

    def __init__(self) -> None:
        super().__init__("not written yet")


def require(condition: Any, message: str) -> None:
    """Refuse with the message unless the condition holds."""
    if not condition:
        raise Refused(message)


# --- values ------------------------------------------------------------------------------------------------------


def same(where: str, got: Any, wanted: Any, tolerance: float = 1e-4) -> None:
    """Refuse a result that differs from the wanted one in structure, shape, dtype or value.

    Args:
        where: the input, in words.
        got: the answer's output.
        wanted: arrays of NumPy or JAX; JAX's own dtype is expected where NumPy has 64 bits.
        tolerance: relative to the largest number wanted.
    """
    if got is NotImplemented:
        raise NotWritten
    require(got is not None or wanted is None, f"{where}: returned None; is a return missing?")
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
    require(close.all(), f"{where}: {unlike(a, b)}")


def finite(where: str, got: Any) -> None:
    """Refuse NaN and infinity."""
    for leaf in jax.tree.leaves(got):
        require(np.isfinite(np.asarray(leaf)).all(), f"{where}: gave {show(leaf)}")


def gradient(answer: Answer, wanted: Answer, *cases: Any) -> None:
    """Refuse an answer whose gradient, by its one argument, is not the one wanted."""
    for x in cases:
        same(f"gradient at {show(x)}", jax.grad(answer)(x), wanted(x), 1e-3)


def unchanged(answer: Answer, *args: np.ndarray) -> Any:
    """An answer's output for NumPy arrays, which it must leave as they are."""
    given = [arg.copy() for arg in args]
    result = answer(*given)
    for number, (before, after) in enumerate(zip(args, given)):
        intact = np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
        require(intact, f"it changed its argument {number}, which belongs to the caller")
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
    """Return how many functions JAX traces while this runs, by its own monitoring."""
    before = len(_traced)
    jax.block_until_ready(act())
    return len(_traced) - before


_traced: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: _traced.append(event) if event == "/jax/core/compile/jaxpr_trace_duration" else None
)


def equations(answer: Answer, *args: Any) -> list[Any]:
    """All equations of the answer's jaxpr, also of the jaxprs in it."""
    return list(equations_of(jax.make_jaxpr(answer)(*args).jaxpr))


def equations_of(jaxpr: Jaxpr) -> Iterator[Any]:
    """All equations of a jaxpr, also of the jaxprs in it."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in _jaxprs(list(equation.params.values())):
            yield from equations_of(inner)


def names(answer: Answer, *args: Any) -> set[str]:
    """The names of the operations in the answer's jaxpr."""
    return {equation.primitive.name for equation in equations(answer, *args)}


def one_program(answer: Answer, *args: Any) -> None:
    """Refuse an answer that computes anything outside of one call of a compiled function."""
    try:
        outside = [equation.primitive.name for equation in jax.make_jaxpr(answer)(*args).jaxpr.eqns]
    except TypeError as error:  # jit(f).lower(...).compile() is a program that cannot be traced again
        if "lowered and compiled" in str(error):
            return
        raise
    require(outside.count("jit") == 1, "it is not compiled" if "jit" not in outside else "it is several programs")
    rest = sorted(set(outside) - {"jit", "convert_element_type"})
    require(not rest, f"it is not compiled as a whole: {', '.join(rest)} is outside of the program")


def largest(answer: Answer, *args: Any) -> int:
    """The number of elements of the largest array that the answer computes."""
    sizes = [out.aval.size for equation in equations(answer, *args) for out in equation.outvars]
    return max([s for s in sizes if isinstance(s, int)], default=0)


def does_not_grow(of: str, program: Callable[[int], tuple[Any, ...]], size: int = 96) -> None:
    """Refuse an answer whose program gets longer when its input does.

    Args:
        of: what there is more of, in words.
        program: for a size, the function to compile and its arguments.
        size: the smaller size. The larger one is twice as large, so that a loop over batches has a rest to compute for
            the smaller size if it has one for the larger. A small difference may still be a longer rest, such as that
            of a scan with unroll=7; then the sizes become multiples of 7 and of most other numbers that people choose.
    """

    def lines(size: int) -> int:
        function, *args = program(size)
        return jax.jit(function).lower(*args).as_text().count("\n")

    short, long = lines(size), lines(2 * size)
    if short < long < short + size:
        size = 1680
        short, long = lines(size), lines(2 * size)
    require(
        long <= short,
        f"the program grows with {of}: {short} lines for {size}, {long} for {2 * size}. The loops of jax.lax do not "
        "grow; a Python loop does, because tracing records each of its iterations",
    )


_COLLECTIVE = r"= (.*?) (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(-start)?\("


def collectives(programs: list[Any]) -> list[tuple[str, int]]:
    """The collective operations of compiled programs, each with the number of elements that a device gets."""
    found = []
    for program in programs:
        for shapes, kind, start in re.findall(_COLLECTIVE, program.as_text() or ""):
            sizes = [math.prod(map(int, filter(None, size.split(",")))) for size in re.findall(r"\[([\d,]*)\]", shapes)]
            found.append((kind, sizes[1] if start and kind != "all-reduce" else sum(sizes)))  # (operand, result, ...)
    return found


def listed(kinds: list[str]) -> str:
    """The names in words: "2 all-reduce and 1 all-gather"."""
    return " and ".join(f"{count} {kind}" for kind, count in sorted(Counter(kinds).items())) or "none"


def compiled(answer: Answer, *args: Any) -> list[Any]:
    """The compiled programs that a call of the answer runs: one if it is compiled as a whole, else one an operation."""
    closed = jax.make_jaxpr(answer)(*args)
    values = dict(zip(closed.jaxpr.constvars, closed.consts))
    values.update(zip(closed.jaxpr.invars, jax.tree.leaves(args)))
    programs = []
    for equation in closed.jaxpr.eqns:
        names = list(dict.fromkeys(v for v in equation.invars if isinstance(v, Var)))
        alone = closed.jaxpr.replace(constvars=[], invars=names, outvars=equation.outvars, eqns=[equation])
        run = jaxpr_as_fun(ClosedJaxpr(alone, []))
        inputs = [values[name] for name in names]
        if equation.primitive.name != "device_put":
            programs.append(jax.jit(run).lower(*inputs).compile())
        values.update(zip(equation.outvars, run(*inputs)))
    return programs


def flops(programs: list[Any]) -> float:
    """Return how many floating-point operations each device runs, as the compiler counts them."""
    return float(sum((program.cost_analysis() or {}).get("flops", 0) for program in programs))


# --- words -------------------------------------------------------------------------------------------------------


def show(value: Any, digits: int = 4) -> str:
    """A value in a few characters, each number with so many digits."""
    array = np.asarray(value)
    if array.size > 12:
        return f"{array.dtype}{list(array.shape)}"
    if array.dtype.kind not in "fV":  # V: bfloat16
        return " ".join(np.array2string(array, separator=", ").split())
    text = np.array2string(
        array.astype(float) + 0, separator=", ", formatter={"float_kind": lambda number: f"{number:.{digits}g}"}
    )
    return " ".join(text.split())


def unlike(got: Any, wanted: Any) -> str:
    """Both values, with as many digits as it takes to tell them apart."""
    pairs = [(show(got, digits), show(wanted, digits)) for digits in (4, 6, 9)]
    one, other = next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])
    return f"gave {one}, expected {other}"


def numbers(*shape: int, seed: int = 0) -> jax.Array:
    """Normal numbers."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def _jaxprs(value: Any) -> Iterator[Any]:
    if isinstance(value, ClosedJaxpr | Jaxpr):
        yield getattr(value, "jaxpr", value)
    elif isinstance(value, tuple | list):
        for element in value:
            yield from _jaxprs(element)


def _follow(tree: Any, path: tuple[Any, ...]) -> Any:
    return dict(jax.tree.leaves_with_path(tree))[path]


def _tree(structure: Any) -> str:
    return str(structure).removeprefix("PyTreeDef(").removesuffix(")").replace("*", "an array")
