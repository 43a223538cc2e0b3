"""Attacks on the answers about printing and debugging: what looks shows every value, and changes none."""

import contextlib
import io
import math
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.experimental import checkify
from tqdm import tqdm

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows, visible
from tests.site.strategies import arrays, assert_same

Array = np.ndarray[Any, Any]
PAGE = "answers/printing-and-debugging.md"
SMALL = st.integers(-16, 16).map(lambda n: n / 8)
ODD = SMALL | st.sampled_from([np.nan, np.inf, -np.inf, -0.0])


def seen(function: Callable[..., Any], *args: Any) -> tuple[Any, list[str]]:
    """Return what a function returns, and the lines that it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        result = function(*args)
        jax.effects_barrier()
    return result, out.getvalue().splitlines()


def numbers(text: str) -> Array:
    """The numbers in a line."""
    return np.array(re.findall(r"-?\d[\d.]*(?:e[+-]\d+)?|nan|-?inf", text), float)


@cache
def compiled(anchor: str, name: str) -> dict[str, Any]:
    """A function of an answer that returns a number, as it is and compiled with other transformations around it."""
    function = program(f"{PAGE}#{anchor}", name)[name]
    return {"plain": function, "vmap": jax.jit(jax.vmap(function)), "grad": jax.jit(jax.grad(function))}


@attack(f"{PAGE}#print-tracer", rows=arrays((2, 3)))
def test_every_call_prints_its_squares_and_changes_nothing(rows: Array) -> None:
    f = compiled("print-tracer", "f")
    with np.errstate(all="ignore"):
        squares, sums = rows**2, (rows.astype(float) ** 2).sum(1)
    for call, given, shown, expected in (
        ("plain", rows[0], squares[:1], sums[0]),
        ("vmap", rows, squares, sums),
        ("grad", rows[1], squares[1:], 2 * rows[1]),
    ):
        found, lines = seen(f[call], given)
        assert_same(found, expected)
        printed = [numbers(line) for line in lines if line.startswith("debug.print: ")]
        assert len(printed) == len(shown)  # a line for each row
        assert_same(sorted(map(tuple, printed), key=str), sorted((tuple(map(float, r)) for r in shown), key=str), 1e-6)


KINDS: dict[str, Any] = {
    "floats": np.array([1, 2, 3], np.float32),
    "ints": np.array([1, 2, 3], np.int32),
    "number": 1.5,
    "scalar": np.float32(1.5),
}


@attack(f"{PAGE}#print-once", names=st.permutations([*KINDS]))
def test_a_print_shows_each_kind_of_argument_once(names: list[str]) -> None:
    f = visible(f"{PAGE}#print-once")["f"]
    f.clear_cache()
    met: list[str] = []
    for name in [*names, *reversed(names)]:
        found, lines = seen(f, KINDS[name])
        assert_same(found, 2 * np.asarray(KINDS[name]))
        assert len(lines) == (name not in met)
        met.append(name)


@attack(f"{PAGE}#debug-print-format", w=arrays((2, 2)), b=arrays((2, 2)))
def test_formatted_numbers_are_the_numbers(w: Array, b: Array) -> None:
    step = program(f"{PAGE}#debug-print-format", "step")["step"]
    with jnp.printoptions(precision=3, suppress=True), np.errstate(all="ignore"):
        one, mapped = seen(step, w[0], {"b": b[0]}), seen(jax.vmap(step), w, {"b": b})
        for (found, lines), rows, grads in ((one, w[:1], b[:1]), (mapped, w, b)):
            assert_same(found, w[0] if len(rows) == 1 else w, 0, 0)
            expected = [
                f"loss {row.sum():.2f}, grads {{'b': Array({np.array2string(grad, separator=', ')}, dtype=float32)}}"
                for row, grad in zip(rows, grads, strict=True)
            ]
            assert sorted(lines) == sorted(expected)


@attack(f"{PAGE}#print-order", x=ODD, y=ODD)
def test_ordered_prints_keep_their_order(x: float, y: float) -> None:
    f = visible(f"{PAGE}#print-order")["f"]
    found, lines = seen(f, x)
    assert_same(found, np.float64(8 * x))
    assert_same([numbers(line) for line in lines], [[i, x * 2**i] for i in range(3)])
    found, lines = seen(mapped_once(f), np.array([x, y], np.float32))
    assert_same(found, 8 * np.array([x, y]))
    assert [int(numbers(line)[0]) for line in lines] == [0, 0, 1, 1, 2, 2]
    shown = [float(numbers(line)[1]) for line in lines]
    assert_same(sorted(shown, key=str), sorted([2.0**i * v for i in range(3) for v in (x, y)], key=str))


@attack(f"{PAGE}#progress-bar", x=SMALL, y=SMALL)
def test_progress_is_shown_every_hundred_steps(x: float, y: float) -> None:
    run = compiled("progress-bar", "run")
    for call, given in (("plain", [x]), ("vmap", [x, y]), ("grad", [x])):
        found, lines = seen(run[call], np.array(given if call == "vmap" else x, np.float32))
        last = 0.99**500 * np.array([1.0] if call == "grad" else given)
        assert_same(found, last if call == "vmap" else last[0], rtol=1e-3)
        expected = [[i, 500, 0.99**i * v] for i in range(0, 500, 100) for v in given]
        assert_same(sorted(tuple(numbers(line)) for line in lines), sorted(map(tuple, expected)), rtol=1e-3, atol=1e-3)


@cache
def with_a_bar() -> tuple[dict[str, Any], Any]:
    """Return what holds the function that the answer's loop calls, and the loop."""
    shown: dict[str, Any] = {}
    return shown, program(f"{PAGE}#progress-bar", "run", show=lambda i, x: shown["step"](i))["run"]


@attack(f"{PAGE}#progress-bar", calls=st.integers(1, 2), total=st.sampled_from([450, 500, 1000]))
def test_a_bar_shows_the_steps_that_are_done(calls: int, total: int) -> None:
    shows(f"{PAGE}#progress-bar", "`bar.update(int(i) - bar.n)`")
    shown, run = with_a_bar()
    for _ in range(calls):
        bar = tqdm(total=total, file=io.StringIO())
        states: list[tuple[int, int]] = []

        def show(i: Any, bar: Any = bar, states: list[tuple[int, int]] = states) -> None:
            bar.update(int(i) - bar.n)
            states.append((int(i), bar.n))

        shown["step"] = show
        run(1.0)
        jax.effects_barrier()
        assert states == [(i, i) for i in range(0, 500, 100)]


@attack(f"{PAGE}#loss-history", rows=arrays((3, 2), odd=False))
def test_a_history_holds_the_losses_of_a_plain_loop(rows: Array) -> None:
    train = program(f"{PAGE}#loss-history", "train")["train"]
    for run, given in ((train, rows[0]), (mapped_once(train), rows)):
        found, history = run(given)
        w, losses, norms = given.astype(float), [], []
        for _ in range(50):
            losses.append(((w - 3) ** 2).sum(-1))
            norms.append(np.linalg.norm(2 * (w - 3), axis=-1))
            w = w - 0.2 * (w - 3)
        scale = 1e-6 * max(1, float(np.abs(rows).max()))
        assert_same(found, w, atol=scale)
        assert_same(np.moveaxis(np.asarray(history["loss"]), -1, 0), np.array(losses), rtol=1e-3, atol=scale**2 + 1e-9)
        assert_same(np.moveaxis(np.asarray(history["norm"]), -1, 0), np.array(norms), rtol=1e-3, atol=scale)


@cache
def mapped_once(function: Callable[..., Any]) -> Any:
    """Return a function for several examples, compiled."""
    return jax.jit(jax.vmap(function))


@attack(
    f"{PAGE}#call-python",
    given_pairs=st.lists(st.tuples(ODD, ODD), min_size=3, max_size=3),
    looped=st.booleans(),
)
def test_callbacks_read_and_return_what_python_does(given_pairs: list[tuple[float, float]], looped: bool) -> None:
    names, loop = called()
    xs, readings = np.array([x for x, _ in given_pairs], np.float32), [r for _, r in given_pairs]
    names["sensor"] = iter(readings)
    names["frames"].clear()
    found = loop(xs) if looped else [names["step"](x) for x in xs]
    jax.effects_barrier()
    assert_same(np.array(found), np.array([math.hypot(x, r) for x, r in given_pairs]))
    assert_same(sorted(names["frames"], key=str), sorted(readings, key=str))
    assert next(names["sensor"], None) is None


@cache
def called() -> tuple[dict[str, Any], Any]:
    """Return the names of the answer's program, and its step in a compiled loop."""
    names = program(f"{PAGE}#call-python", "step", "frames", "sensor")
    return names, jax.jit(partial(jax.lax.map, names["step"]))


@attack(f"{PAGE}#breakpoint", x=arrays((4,), st.sampled_from([np.dtype(np.float32), np.dtype(np.int32)])))
def test_without_jit_the_loop_shows_and_returns_the_same(x: Array) -> None:
    total = visible(f"{PAGE}#breakpoint")["total"]
    compiled_result, _ = seen(total, x)
    with jax.disable_jit(), np.errstate(all="ignore"):
        found, lines = seen(total, jnp.asarray(x))
        expected = np.cumsum(x.astype(float))
        assert_same(found, compiled_result)
        assert found.dtype == compiled_result.dtype
        assert_same(found, expected[-1], rtol=1e-3, atol=1e-3)
        shown = [np.array(re.findall(r"carry (\S+) v (\S+)", line)[0], float) for line in lines]
        assert_same(shown, np.stack([[0, *expected[:-1]], x.astype(float)], 1), rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#raise-in-jit", rows=arrays((3, 2)))
def test_a_check_finds_what_is_not_positive(rows: Array) -> None:
    log_mean = program(f"{PAGE}#raise-in-jit", "log_mean")["log_mean"]
    good: Array = np.all(rows > 0, axis=1)
    with np.errstate(all="ignore"):
        expected = np.log(rows.astype(float)).mean(1)
    for row, fine, mean in zip(rows, good, expected, strict=True):
        error, value = log_mean(row)
        assert_same(value, mean)
        assert (error.get() is None) == fine
        if fine:
            error.throw()
        else:
            with pytest.raises(checkify.JaxRuntimeError, match="must be positive, got") as raised:
                error.throw()
            assert_same(numbers(str(raised.value).partition("got")[2])[0], np.min(row))
    error, values = mapped_once(log_mean)(rows)
    assert_same(values, expected)
    assert (error.get() is None) == good.all()


@attack(f"{PAGE}#show-shapes", sizes=st.lists(st.integers(0, 3), min_size=3, max_size=4), wrong=st.booleans())
def test_shapes_without_a_run_are_those_of_a_run(sizes: list[int], wrong: bool) -> None:
    batch, *layers = sizes
    params = [np.ones(pair, np.float32) for pair in zip(layers, layers[1:], strict=False)]
    if wrong:
        params.append(np.ones((layers[-1] + 1, 2), np.float32))
    x = np.ones((batch, layers[0]), np.float32)
    page = visible(f"{PAGE}#show-shapes")["model"]
    traced = FunctionType(page.__code__, page.__globals__)  # anew: a second trace prints nothing
    described = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (params, x))
    if wrong:
        with pytest.raises(TypeError, match="dot_general"):
            seen(jax.eval_shape, traced, *described)
        return
    found, lines = seen(jax.eval_shape, traced, *described)
    expected = []
    for i, w in enumerate(params):
        x = x @ w
        expected.append(f"layer {i} {x.shape} float32")
    assert lines == expected
    assert (found.shape, found.dtype) == (x.shape[1:], x.dtype)
    assert jax.tree.map(jnp.shape, params) == [w.shape for w in params]


@attack(
    f"{PAGE}#print-all",
    seed=st.integers(0, 99),
    shape=st.sampled_from([(0,), (1001,), (1500,), (40, 30), (3, 2, 200)]),
    dtype=st.sampled_from(["float32", "int32", "bfloat16", "bool"]),
    odd=st.sampled_from([np.nan, np.inf, -0.0, 1e-30]),
)
def test_a_whole_array_is_printed(seed: int, shape: tuple[int, ...], dtype: str, odd: float) -> None:
    shows(f"{PAGE}#print-all", "with np.printoptions(threshold=sys.maxsize): text = str(np.asarray(x))")
    made = np.random.default_rng(seed).normal(0, 100, shape).astype(np.float32)
    if dtype in ("float32", "bfloat16"):
        made.flat[: made.size // 9] = odd
    x = jnp.asarray(made).astype(dtype)
    with np.printoptions(threshold=sys.maxsize):
        text = str(np.asarray(x))
    assert "..." not in text
    found = numbers(text.replace("True", "1").replace("False", "0"))
    assert_same(found, np.asarray(x).astype(float).ravel(), rtol=1e-2 if dtype == "bfloat16" else 1e-6, atol=1e-6)


LEAKS: dict[str, Callable[[Any, Any], None]] = {
    "dict": lambda kept, x: kept.__setitem__("hidden", x),
    "list": lambda kept, x: kept.append(x),
    "attribute": lambda kept, x: setattr(kept, "hidden", x),
}
TRACED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "jit": jax.jit,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
}


class Keeper:
    """An object of a reader."""


@slow_attack(
    f"{PAGE}#leaked-tracer",
    way=st.sampled_from([*LEAKS, None]),
    transformed=st.sampled_from([*TRACED]),
)
def test_a_leak_is_found_and_named(way: str | None, transformed: str) -> None:
    shows(f"{PAGE}#leaked-tracer", "with jax.checking_leaks():")
    x = np.array([0.5, -1], np.float32)
    kept: Any = {"dict": {}, "list": [], "attribute": Keeper()}.get(way or "")

    def model(x: Any) -> Any:
        hidden = jnp.tanh(x)
        if way:
            LEAKS[way](kept, hidden)
        return hidden.sum()

    run = TRACED[transformed](model)
    if way:
        with jax.checking_leaks(), pytest.raises(Exception, match="Leaked") as raised:
            run(jnp.asarray(x))
        assert re.search(r"is referred to by", str(raised.value))
    else:
        with jax.checking_leaks():
            found = run(jnp.asarray(x))
        wide = np.tanh(x.astype(float))
        assert_same(found, 1 - wide**2 if "grad" in transformed else wide.sum())
