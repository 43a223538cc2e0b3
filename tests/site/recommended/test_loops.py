"""Attacks on the answers about loops and conditions: each against a Python loop, or a choice, of float64."""

import math
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from scipy import spatial, special

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import Transformation, arrays, assert_same, floats, transformations

Array = np.ndarray[Any, Any]
PAGE = "answers/loops.md"
NUMBERS = st.integers(-18, 18).map(lambda n: n / 2) | st.sampled_from([np.inf, -np.inf, np.nan])


def made(anchor: str, *wanted: str) -> Any:
    """Return what an answer defines under these names: one of them, or a tuple of all."""
    found = program(f"{PAGE}#{anchor}", *wanted)
    return found[wanted[0]] if len(wanted) == 1 else tuple(found[name] for name in wanted)


@cache
def compiled(anchor: str, name: str) -> Any:
    """A function that an answer defines, compiled once."""
    return jax.jit(made(anchor, name))


@attack(f"{PAGE}#unrolled-loop", x=NUMBERS)
def test_both_loops_apply_the_sine_a_hundred_times(x: float) -> None:
    expected = x
    with np.errstate(all="ignore"):
        for _ in range(100):
            expected = float(np.sin(expected))
    assert_same(compiled("unrolled-loop", "looped")(x), expected)
    assert_same(compiled("unrolled-loop", "unrolled")(x), expected)


@attack(f"{PAGE}#traced-if", x=floats(empty=False), scale=st.sampled_from([1.0, 1e30]), call=transformations())
def test_a_choice_for_each_element_and_one_for_the_array(x: Array, scale: float, call: Transformation) -> None:
    leaky, limited = made("traced-if", "leaky", "limited")
    assert_same(call(leaky)(x), np.where(x > 0, x, 0.1 * x))
    x = x * np.float32(scale)
    with np.errstate(all="ignore"):
        largest = np.abs(x).max()
        assert_same(call(limited)(x), x / largest if largest > 1 else x)


@cache
def limited_and_slope() -> tuple[Any, Any]:
    """The choice for the whole array, and the gradient of its sum."""
    limited = made("traced-if", "limited")
    return limited, jax.jit(jax.grad(lambda x: limited(x).sum()))


@slow_attack(f"{PAGE}#traced-if", x=floats(odd=False, empty=False), dtype=st.sampled_from(["float32", "float16"]))
def test_a_limited_array_is_never_zero_and_has_a_gradient(x: Array, dtype: str) -> None:
    limited, slope = limited_and_slope()
    assert_same(np.abs(limited(jnp.asarray(100 * x, dtype))).max(), np.float64(x.any()), rtol=1e-2)
    assert np.isfinite(slope(jnp.asarray(x, dtype))).all()


@attack(f"{PAGE}#early-exit", digits=st.integers(100, 999), power=st.integers(-37, 35))
def test_a_root_is_right_unless_the_limit_is_reached(digits: int, power: int) -> None:
    a = float(np.float32(digits * 10.0**power))
    count, found = made("early-exit", "square_root")(a)
    assert count <= 50
    if count < 50:
        assert_same(found / math.sqrt(a), 1, rtol=1e-4)


@jax.jit
def loops(xs: jax.Array) -> tuple[Any, ...]:
    """The loops of the answer about which one to take."""
    return (
        *jax.lax.scan(lambda total, x: (total + x, total), jnp.float32(0.0), xs),
        jax.lax.fori_loop(0, 5, lambda i, total: total + xs[i], 0.0),
        jax.lax.map(lambda x: x**2, xs),
    )


@attack(f"{PAGE}#which-loop", xs=arrays((5,)))
def test_each_loop_is_what_it_is_for(xs: Array) -> None:
    shows(f"{PAGE}#which-loop", "jax.lax.scan(lambda total, x: (total + x, total), 0.0, xs)")
    shows(f"{PAGE}#which-loop", "lambda i, total: total + xs[i], 0.0)", "jax.lax.map(lambda x: x ** 2, xs)")
    with np.errstate(invalid="ignore"):
        sums = np.cumsum(np.append(0, xs.astype(np.float64)))
    for found, expected in zip(loops(xs), (sums[-1], sums[:-1], sums[-1], xs.astype(float) ** 2), strict=True):
        assert_same(found, expected)


@attack(f"{PAGE}#for-to-scan", rows=arrays(st.sampled_from([(0, 2), (1, 2), (5, 2)])), start=NUMBERS)
def test_a_scan_is_the_loop_that_it_replaces(rows: Array, start: float) -> None:
    step = made("for-to-scan", "step")
    average, history = start, []
    with np.errstate(all="ignore"):
        for price, volume in rows.astype(np.float64):
            average = 0.5 * average + 0.5 * price * volume
            history.append(average)
    last, averages = jax.lax.scan(step, start, (rows[:, 0], rows[:, 1]))
    assert_same(last, average, atol=1e-2)
    assert_same(averages, np.reshape(history, (len(rows),)), atol=1e-2)


@attack(f"{PAGE}#carry-types", xs=arrays(st.sampled_from([(0,), (1,), (5,)]), st.sampled_from(["float32", "int32"])
        .map(np.dtype)))  # fmt: skip
def test_a_state_of_the_right_type_is_the_sum(xs: Array) -> None:
    shows(f"{PAGE}#carry-types", "jnp.zeros((), xs.dtype), xs)", "Convert narrow `xs` first")
    step = made("carry-types", "step")
    with np.errstate(invalid="ignore"):
        expected = xs.astype(np.float64).sum()
    starts: list[Any] = [jnp.zeros((), xs.dtype), 0]
    for start in starts:
        found = jax.lax.scan(step, start, xs)[0]
        assert_same(found, expected)
        assert found.dtype == xs.dtype


@attack(f"{PAGE}#collect-results", n=st.integers(1, 60))
def test_the_values_of_a_loop_are_collected_until_the_array_is_full(n: int) -> None:
    expected, value = [], n
    while value != 1:
        expected.append(value)
        value = value // 2 if value % 2 == 0 else 3 * value + 1
    count, seen = made("collect-results", "collatz")(n)
    assert count == len(expected)  # also where the array is too small
    assert seen[:count].tolist() == expected[:20]


@attack(f"{PAGE}#traced-range", x=st.integers(-8, 8), n=st.integers(-2, 6))
def test_a_traced_and_a_static_bound_repeat_equally(x: int, n: int) -> None:
    traced, static = made("traced-range", "traced", "static")
    expected = (x / 2) ** max(n, 0)
    assert_same(traced(x / 2, n), expected)
    assert_same(static(x / 2, n), expected)


@attack(f"{PAGE}#both-branches", x=NUMBERS)
def test_one_branch_runs_without_vmap(x: float) -> None:
    f, ran = made("both-branches", "f", "ran")
    ran.clear()
    assert_same(f(x), abs(x))
    jax.effects_barrier()
    assert ran == ["if" if x > 0 else "else"]


@attack(
    f"{PAGE}#branches-differ",
    positive=st.booleans(),
    x=floats(),
)
def test_a_branch_returns_half_or_zeros(positive: bool, x: Array) -> None:
    assert_same(compiled("branches-differ", "half")(positive, x), x / 2 if positive else 0 * np.zeros_like(x), 0, 0)


@attack(f"{PAGE}#elif", income=arrays((4,), st.sampled_from(["float32", "int32"]).map(np.dtype)).map(lambda x: 8 * x))
def test_both_forms_of_elif_take_the_first_case_that_holds(income: Array) -> None:
    tax, tax_for_one = made("elif", "tax", "tax_for_one")
    wide = income.astype(np.float64)
    with np.errstate(invalid="ignore"):
        expected = np.where(wide < 10, 0.0 * wide, np.where(wide < 50, 0.2 * (wide - 10), 8 + 0.4 * (wide - 50)))
    assert_same(tax(income), expected, atol=1e-3)
    assert_same([tax_for_one(float(one)) for one in income], expected, atol=1e-3)


@attack(f"{PAGE}#and-or-not", x=arrays((5,)), call=transformations())
def test_conditions_are_combined_element_by_element(x: Array, call: Transformation) -> None:
    inside, outside = made("and-or-not", "inside", "outside")
    expected = np.array([0 < value < 1 for value in x.tolist()], bool)
    assert_same(call(inside)(x / 2), [0 < value < 1 for value in (x / 2).tolist()])
    assert_same(call(inside)(x), expected)
    assert_same(call(outside)(x), ~expected)
    shows(f"{PAGE}#and-or-not", "jnp.logical_and(x > 0, x < 1)")
    assert_same(jnp.logical_and(x > 0, x < 1), expected)


@attack(f"{PAGE}#index-list", i=st.integers(-3, 4), x=st.integers(-8, 8))
def test_a_traced_index_picks_what_python_does_inside_both_lists(i: int, x: int) -> None:
    row, value = made("index-list", "pick")(i, x / 2)
    functions: list[Any] = [math.sin, math.cos, lambda x: x**2]
    if -2 <= i < 2:
        assert_same(row, [[1, 2], [10, 20]][i])
    else:
        assert_same(row, [1, 2] if i < 0 else [10, 20])  # as the page says, with no error
    assert_same(value, functions[min(max(i, 0), 2)](x / 2))  # a negative one is the first


@attack(f"{PAGE}#scan-layers", w=arrays((8, 3, 3), odd=False), b=arrays((8, 3), odd=False), x=arrays((3,), odd=False))
def test_a_scan_over_layers_is_the_loop_over_them(w: Array, b: Array, x: Array) -> None:
    network, layer = compiled("scan-layers", "network"), made("scan-layers", "layer")
    layers = [{"w": one / 8, "b": other / 8} for one, other in zip(w, b, strict=True)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    expected = x.astype(np.float64)
    for p in layers:
        expected = np.tanh(p["w"].astype(np.float64) @ expected + p["b"])
    assert_same(network(stacked, x), expected, atol=1e-3)
    assert_same(layer(x, layers[0]), np.tanh(layers[0]["w"] @ x + layers[0]["b"]))


@attack(f"{PAGE}#scan-recompiles", calls=st.integers(1, 3))
def test_a_loop_under_jit_is_traced_once_and_adds(calls: int) -> None:
    total, traces = made("scan-recompiles", "total", "traces")
    traces.clear()
    fresh = jax.jit(partial(total))  # a new function, which nothing has compiled
    for call in range(calls):
        assert fresh(call + np.arange(3.0, dtype=np.float32)) == 3 * call + 3
    assert len(traces) == 1
    assert fresh(jnp.ones(1000, jnp.bfloat16)) == 1000  # a total in bfloat16 stops at 256


@cache
def grown() -> tuple[Any, ...]:
    """The loop with a limit, and its derivative in both modes."""
    grow = made("grad-while", "grow")
    return jax.jit(grow), jax.jit(jax.grad(grow)), jax.jit(jax.jacfwd(grow))


@attack(f"{PAGE}#grad-while", x=st.integers(1, 60))
def test_a_loop_with_a_limit_has_the_gradient_of_its_steps(x: int) -> None:
    grow, backward, forward = grown()
    value, doubled = x / 2, 0
    while value < 100:
        value, doubled = 2 * value, doubled + 1
    for function, expected in ((grow, value), (backward, 2**doubled), (forward, 2**doubled)):
        assert_same(function(x / 2), expected)


@cache
def in_parallel() -> Any:
    """The scan of the answer that runs in parallel, compiled."""
    combine = made("parallel-scan", "combine")
    return jax.jit(lambda a, b: jax.lax.associative_scan(combine, (a, b))[1])


@attack(f"{PAGE}#parallel-scan", pairs=arrays(st.sampled_from([(0, 2), (1, 2), (2, 2), (7, 2)]), odd=False))
def test_a_recurrence_in_parallel_is_the_loop(pairs: Array) -> None:
    a, b = pairs.T / 4
    h, expected = 0.0, []
    for one, other in zip(a.astype(np.float64), b.astype(np.float64), strict=True):
        h = one * h + other
        expected.append(h)
    assert_same(in_parallel()(a, b), np.reshape(expected, (len(a),)), atol=1e-3)


@cache
def table_and_pascal() -> tuple[Any, Any]:
    """The table of all pairs, and Pascal's triangle for as many rows as int32 holds."""
    rows, pascal = made("nested-loops", "rows", "pascal")
    return jax.jit(jax.vmap(rows, in_axes=(0, None))), np.asarray(pascal(17))


@attack(f"{PAGE}#nested-loops", p=arrays((4, 2), odd=False), q=arrays((3, 2), odd=False), i=st.integers(0, 16))
def test_two_loops_become_a_table_of_all_pairs(p: Array, q: Array, i: int) -> None:
    shows(f"{PAGE}#nested-loops", "jax.vmap(rows, in_axes=(0, None))(points, points)")
    table, pascal = table_and_pascal()
    assert_same(table(p, q), spatial.distance.cdist(p.astype(float), q.astype(float)))
    assert_same(pascal[i], special.comb(i + np.arange(17), i), rtol=0)
    pixels = np.array([[0, 0], [200, 0], [0, 30]], np.uint8)  # whose squares wrap around in uint8
    assert_same(table(pixels, pixels), spatial.distance.cdist(pixels.astype(float), pixels.astype(float)))


def test_a_limit_by_the_norm_would_be_found() -> None:
    def clipped(x: Any) -> Any:
        norm = jnp.linalg.norm(x)
        return jax.lax.cond(norm > 1, lambda: x / norm, lambda: x)

    assert not clipped(jnp.full(3, 300.0, jnp.float16)).any()
    assert np.isnan(jax.jacrev(clipped)(jnp.zeros(2))).all()
