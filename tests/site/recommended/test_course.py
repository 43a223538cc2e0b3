"""Programs and tables of the course that say what to write, against NumPy, SciPy or the definition."""

import contextlib
import io
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse.linalg
from hypothesis import strategies as st
from jax.experimental import sparse
from scipy import special

from tests.site.recommended.attack import PROJECT, attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import (
    Transformation,
    arrays,
    assert_same,
    dtypes,
    shapes,
    transformations,
    values,
)

Array = np.ndarray[Any, Any]
halves = values(np.dtype("float32"), odd=False)
once = transformations("eager", "jit")
grain = import_module("grain")  # which has no types
sloped = cache(lambda function: jax.jit(jax.grad(function)))
SHAPES, FLOW, TRANSFORMS, EQUATIONS = (
    "speed/shapes.md",
    "speed/control-flow.md",
    "science/transforms.md",
    "science/equations.md",
)
STATE, INSIDE, ESCAPE, STACK = "basics/state.md", "debug/inside.md", "extend/escape-hatches.md", "train/stack.md"
REFS, BUCKETS = "basics/refs.md", "speed/buckets.md"
MEMORY = "speed/memory.md"
_named = cache(program)


def named(page: str, name: str) -> Any:
    """Return the object of this name on a page."""
    return _named(page, name)[name]


# --- In ten minutes, memory, loops -----------------------------------------------------------------------------------

TEN = "start/ten-minutes.md"


@slow_attack(
    w=arrays((2,), odd=False), xs=arrays((5, 2), odd=False), scale=st.sampled_from([1, 100]), signs=arrays((5,), "bool")
)
def test_a_step_goes_down_the_logistic_loss(w: Array, xs: Array, scale: int, signs: Array) -> None:
    xs, ys = xs * scale, np.where(signs, 1, -1).astype(np.float32)
    margin = ys * (xs.astype(np.float64) @ w)
    each = -(ys / (1 + np.exp(np.clip(margin, None, 700))))[:, None] * xs
    assert_same(jax.jit(named(TEN, "gradient"))(w, xs, ys), each)
    stepped, loss = named(TEN, "step")(w, xs, ys)
    assert_same(loss, np.logaddexp(0, -margin).mean())
    assert_same(stepped, w - 0.5 * each.mean(0), atol=1e-3)
    predicted = jax.vmap(named(TEN, "predict"), in_axes=(None, 0))(w, xs)
    assert_same(predicted, np.where(ys * margin > 0, 1, -1))


@attack(points=arrays((5, 3)), targets=arrays((4, 3), odd=False), rows=st.sampled_from([2, 16]))
def test_the_nearest_target_is_found_in_batches(points: Array, targets: Array, rows: int) -> None:
    with np.errstate(all="ignore"):
        squares = ((points[:, None].astype(np.float64) - targets) ** 2).sum(-1)
    found = jax.jit(named(MEMORY, "which"), static_argnums=2)(points, targets, rows)
    np.testing.assert_array_equal(found, squares.argmin(1))  # the first of those with NaN, or as near
    assert_same(jax.jit(named(MEMORY, "nearest"))(points, targets), squares.min(1))


@attack(
    points=arrays((5, 3), "int32", odd=False),
    targets=arrays((4, 3), "int32", odd=False),
    kind=st.sampled_from([(np.uint8, 14), (np.int8, 14), (np.int16, 3000), (np.int32, 9000)]),
)
def test_the_nearest_of_integers_does_not_overflow(points: Array, targets: Array, kind: tuple[type, int]) -> None:
    points, targets = ((abs(a) if kind[0] is np.uint8 else a) * kind[1] for a in (points, targets))
    squares = ((points[:, None].astype(np.float64) - targets) ** 2).sum(-1)
    points, targets = points.astype(kind[0]), targets.astype(kind[0])
    found = np.asarray(jax.jit(named(MEMORY, "which"))(points, targets))
    assert_same(squares[np.arange(5), found], squares.min(1))
    assert_same(jax.jit(named(MEMORY, "nearest"))(points, targets), squares.min(1))


def test_a_gradient_of_many_parts_keeps_its_length_in_half_precision() -> None:
    weights = 0.1 * jax.random.normal(jax.random.key(0), (2, 4, 8))
    x = 1 + 0.1 * jax.random.normal(jax.random.key(1), (1024, 4))
    expected = np.asarray(jax.grad(named(MEMORY, "loss"))(weights, x))
    for kind in ("bfloat16", "float16"):
        in_parts = jax.jit(named(MEMORY, "in_parts"), static_argnums=2)
        found = in_parts(weights.astype(kind), x.astype(kind), 1024)
        assert found.dtype == kind
        off = np.asarray(found, np.float32) - expected
        assert np.linalg.norm(off) < 0.05 * np.linalg.norm(expected), kind


@slow_attack(
    weights=arrays((4, 3, 2), odd=False),
    x=arrays((8, 3), odd=False),
    way=st.sampled_from(["checkpointed", "nested", "in_parts"]),
)
def test_a_gradient_that_keeps_less_is_the_same(weights: Array, x: Array, way: str) -> None:
    weights = weights / 9
    function = named(MEMORY, way)
    found = jax.jit(function)(weights, x) if way == "in_parts" else sloped(function)(weights, x)
    assert_same(found, sloped(named(MEMORY, "loss"))(weights, x), rtol=1e-3, atol=1e-3)


@attack(
    x=arrays(st.sampled_from([(5,), (1,), (0,)]), dtypes("float", "int"), odd=False), unroll=st.sampled_from([1, 8])
)
def test_a_smoothed_series_is_that_of_the_loop(x: Array, unroll: int) -> None:
    level, expected = 0.0, []
    for reading in x.astype(np.float64):
        level = 0.9 * level + 0.1 * reading
        expected.append(level)
    assert_same(named("speed/loops.md", "smooth")(x, unroll=unroll), expected, atol=1e-3)
    low = named("speed/loops.md", "smooth")(jnp.full(200, 100, jnp.bfloat16))  # a level in bfloat16 stops on its way
    assert_same(low[-1], 100, rtol=5e-3)


@attack(
    x=st.sampled_from([jnp.bfloat16, jnp.float16, jnp.int8, jnp.uint8, jnp.int32, jnp.float32]).flatmap(
        lambda dtype: st.lists(st.integers(0, 120), min_size=4, max_size=4).map(lambda x: jnp.asarray(x * 100, dtype))
    )
)
def test_running_moments_are_those_of_all_in_every_dtype(x: jax.Array) -> None:
    mean, variance = named("speed/parallel-scans.md", "running")(x)
    wide = np.asarray(x, np.float64)
    assert_same(mean[-1], wide.mean(), rtol=1e-3)
    assert_same(variance[-1], wide.var(), rtol=1e-3)


@attack(x=arrays((4,), odd=False), scale=st.sampled_from([1, 100]))
def test_a_masked_loop_ends_where_the_other_does(x: Array, scale: int) -> None:
    x = x * scale
    expected = x.astype(np.float64)
    while (expected >= 1).any():
        expected = np.where(expected >= 1, 0.9 * expected, expected)
    until, masked = (named("speed/loops.md", name) for name in ("until", "masked"))
    assert_same(until(x)[1], expected)
    assert_same(jax.jit(masked, static_argnums=1)(x, 80), expected)


@attack(x=arrays((4,)))
def test_a_loop_without_a_result_counts_as_unfinished(x: Array) -> None:
    shows("speed/loops.md#unequal", "np.sum(~(masked(starts, 40) < 1))")
    x = np.where(x == np.inf, 2, x)
    unfinished = np.sum(~(jax.jit(named("speed/loops.md", "masked"), static_argnums=1)(x, 80) < 1))
    assert unfinished == np.isnan(x).sum()


@attack(milliseconds=st.lists(st.integers(1, 99), min_size=4, max_size=4))
def test_a_timer_waits_for_each_run(milliseconds: list[int]) -> None:
    left, now = [1000, *milliseconds], [0.0]

    class Pending:
        def block_until_ready(self) -> None:
            now[0] += left.pop(0)

    timings = program("speed/timing.md", "timings", clock=lambda: now[0])["timings"]
    first, seconds = timings(lambda x: {"result": Pending()}, np.ones(1), repeats=4)
    assert first == 1000 and seconds.tolist() == sorted(milliseconds)


# --- Shapes ----------------------------------------------------------------------------------------------------------


@attack(f"{SHAPES}: a size that takes a few values", x=arrays((5,), odd=False), n=st.sampled_from([2, 5, 1, 9]))
def test_a_static_size_cuts_the_array(x: Array, n: int) -> None:
    assert_same(named(SHAPES, "first")(x, n), x[:n] - x[:n].astype(np.float64).mean())


@attack(
    f"{SHAPES}: a size that follows from other shapes", x=arrays(st.sampled_from([(5,), (1,), (0,), (2, 3), (3, 0)]))
)
def test_sizes_are_computed_in_python(x: Array) -> None:
    with contextlib.redirect_stdout(io.StringIO()):  # which prints when it is traced
        np.testing.assert_array_equal(named(SHAPES, "flatten")(x), x.ravel())
    if x.ndim == 1:
        np.testing.assert_array_equal(named(SHAPES, "every_other")(jnp.asarray(x)), x[::2])
        np.testing.assert_array_equal(named(SHAPES, "first_half")(x), x[: -(-x.size // 2)])


def padded(kept: Array, fill: float) -> Array:
    """The first five of these, filled up."""
    return np.concatenate([kept, np.full(5, fill)])[:5]


@slow_attack(f"{SHAPES}: at most a certain number of results", x=arrays((5,)), size=st.sampled_from([5, 9]), call=once)
def test_a_promised_size_is_filled_up(x: Array, size: int, call: Transformation) -> None:
    where, kinds, kept = named(SHAPES, "summary")(jnp.asarray(x))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(where, padded(np.flatnonzero(x >= 0), 5))
        np.testing.assert_array_equal(kinds, padded(np.unique(x), np.nan))
        np.testing.assert_array_equal(kept, padded(x[x >= 0], np.nan))
        total = partial(named(SHAPES, "total"), size=size, fill_value=x.size)
        assert_same(total(jnp.asarray(x)), x[x >= 0].sum())


@attack(f"{SHAPES}: only some of the elements", x=arrays((5,)), n=st.integers(0, 5))
def test_a_mask_keeps_the_shape(x: Array, n: int) -> None:
    kept = x[x >= 0]
    zeroed, total, mean, most = named(SHAPES, "masked")(x)
    assert_same(zeroed, np.where(x >= 0, x, 0))
    assert_same(total, kept.sum())
    assert_same(mean, kept.mean() if kept.size else np.nan)
    assert_same(most, kept.max(initial=-np.inf))


@cache
def total_of_six() -> Callable[..., Any]:
    """The page's sum of at most six readings, compiled."""
    return jax.jit(partial(named(SHAPES, "total"), size=6, fill_value=6))


@attack(x=arrays((2, 3)))
def test_positions_count_in_a_flat_array(x: Array) -> None:
    with np.errstate(invalid="ignore"):
        expected = x[x >= 0].astype(float).sum()
    assert_same(total_of_six()(x), expected)


@jax.jit
def masked_integers(x: jax.Array, ok: jax.Array) -> tuple[jax.Array, ...]:
    """Results for integers and booleans: a maximum, whether any is true, a softmax, and counts."""
    length = 3
    return (
        jnp.max(x, where=ok, initial=np.iinfo(x.dtype).min),
        jnp.any(x > 0, where=ok),
        jax.nn.softmax(jnp.where(ok, x.astype(float), -jnp.inf)),
        jnp.bincount(jnp.where(x < 0, length, x), length=length),
    )


@attack(x=arrays((5,), "int32"), ok=arrays((5,), "bool"))
def test_integers_and_booleans_are_masked_and_counted(x: Array, ok: Array) -> None:
    text = " ".join((PROJECT.docs / SHAPES).read_text(encoding="utf-8").split())
    for words in ("`jnp.where(x < 0, length, x)`", "`jnp.any(x, where=ok)`", "integers to floats before a softmax"):
        assert words in text, words
    most, positive, chances, counts = map(np.asarray, masked_integers(x, ok))
    assert most == x[ok].max(initial=np.iinfo(np.int32).min)
    assert positive == (x[ok] > 0).any()
    assert counts.tolist() == [int((x == number).sum()) for number in range(3)]
    if ok.any():
        assert_same(chances[ok], special.softmax(x[ok].astype(float)))
        assert not chances[~ok].any()


@attack(x=arrays((5,), st.sampled_from(["float32", "int32", "int8"]).map(np.dtype)), n=st.integers(0, 6))
def test_the_largest_are_kept(x: Array, n: int) -> None:
    if x.dtype == np.int8:
        x = np.abs(x).astype(np.uint8)
    elif x.dtype == np.int32:
        x = np.where(x == -9, -(2**31), x).astype(np.int32)
    found = np.asarray(named(SHAPES, "keep_largest")(x, n))
    largest = np.sort(x)[::-1][:n]  # in which NaN counts as the largest
    np.testing.assert_array_equal(
        np.sort(found), np.sort(np.concatenate([largest, np.zeros(x.size, x.dtype)])[: x.size])
    )
    assert ((found == x) | (found == 0) | np.isnan(found)).all()


@attack(f"{SHAPES}: inputs of many lengths", x=arrays((20,), dtypes("float", "int"), odd=False), n=st.integers(1, 20))
def test_a_bucket_does_not_change_the_mean(x: Array, n: int) -> None:
    size = named(BUCKETS, "bucket")(n)
    assert size >= max(n, 16) and size & (size - 1) == 0
    assert_same(named(BUCKETS, "mean")(np.pad(x[:n], (0, size - n)), n), x[:n].astype(np.float64).mean())
    largest = named(BUCKETS, "largest")(x.astype(np.float32)[None], np.array([n]))
    assert_same(largest, x[:n].max(keepdims=True).astype(np.float32))


@attack(f"{SHAPES}: a window at a computed position", x=arrays((6,)), i=st.integers(0, 3) | st.integers(4, 9))
def test_a_window_moves_or_is_cut_as_the_page_says(x: Array, i: int) -> None:
    moved, cut = named(SHAPES, "window")(jnp.asarray(x), i)
    start = min(i, 3)
    np.testing.assert_array_equal(moved, x[start : start + 3])
    np.testing.assert_array_equal(cut, np.concatenate([x, np.full(9, -1)])[i : i + 3])
    updated, kept = named(SHAPES, "write")(jnp.asarray(x), i)
    np.testing.assert_array_equal(updated, np.where((np.arange(6) >= start) & (np.arange(6) < start + 3), 9, x))
    np.testing.assert_array_equal(kept, updated if i <= 3 else x)


@slow_attack(x=arrays((4,)), y=arrays((3,)), name=st.sampled_from(["union1d", "intersect1d", "setdiff1d"]))
def test_a_set_with_a_promised_size_is_that_of_numpy(x: Array, y: Array, name: str) -> None:
    kept = getattr(np, name)(x, y)
    found = getattr(jnp, name)(x, y, size=8, fill_value=-99)
    np.testing.assert_array_equal(found, np.concatenate([kept, np.full(8, -99)])[:8])


# --- Control flow ----------------------------------------------------------------------------------------------------


@attack(f"{FLOW}: a shape, a flag, a static value", b=halves, years=st.integers(0, 3))
def test_a_static_loop_is_the_power(b: float, years: int) -> None:
    assert_same(jax.jit(named(FLOW, "after"), static_argnums=1)(b, years), b * 1.05**years)


@attack(f"{FLOW}: a traced condition per element", x=arrays((5,)), call=once)
def test_a_choice_per_element_has_a_finite_slope(x: Array, call: Transformation) -> None:
    clipped_log = named(FLOW, "clipped_log")
    with np.errstate(all="ignore"):
        expected = np.where(x > 1, np.log(np.where(x > 1, x, 1).astype(np.float64)), x - 1)
        slope = np.where(x > 1, 1 / x, 1)
    assert_same(call(clipped_log)(x), expected)
    found = np.asarray(sloped(_added(clipped_log))(x))
    assert_same(found[np.isfinite(x)], slope[np.isfinite(x)])


@cache
def _added(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: function(*args).sum()


@attack(f"{FLOW}: one traced boolean or index", plan=st.integers(-4, 7), b=halves, call=transformations("jit"))
def test_a_branch_is_chosen(plan: int, b: float, call: Transformation) -> None:
    rates = (1, 1.02, 1.05)
    assert_same(call(named(FLOW, "pay"))(plan, b * 20), b * 20 * rates[min(max(plan, 0), 2)])
    assert_same(call(named(FLOW, "paid"))(b * 20), 0.05 * b * 20 if b * 20 > 100 else 0)
    assert_same(call(named(FLOW, "pieces"))(b * 20), b * 20 * (1.05 if b * 20 > 100 else 1.02))


@attack(f"{FLOW}: a known number of steps", x=arrays(shapes(1, 1)), call=transformations("jit"))
def test_a_scan_and_a_known_loop_are_the_sum(x: Array, call: Transformation) -> None:
    with np.errstate(all="ignore"):
        expected = np.cumsum(x)
    assert_same(call(_scanned)(jnp.asarray(x)), expected)
    assert_same(call(_looped)(jnp.asarray(x)), expected[-1] if x.size else 0)


def _scanned(x: Any) -> Any:
    return jax.lax.scan(lambda total, value: (total + value,) * 2, 0.0, x)[1]


def _looped(x: Any) -> Any:
    return jax.lax.fori_loop(0, x.size, lambda i, total: total + x[i], 0.0) if x.size else 0.0


def _until(start: Any, steps: Any) -> tuple[Any, Any]:
    doubled = jax.lax.fori_loop(0, steps, lambda i, y: 2 * y, start)
    return doubled, jax.lax.while_loop(lambda y: (y < 100) & (y > 0), lambda y: 2 * y, start)


@attack(
    f"{FLOW}: a traced number of steps, or a condition",
    start=halves,
    steps=st.integers(-2, 5),
    call=transformations("jit"),
)
def test_a_traced_loop_ends_by_itself(start: float, steps: int, call: Transformation) -> None:
    expected = start
    while 0 < expected < 100:
        expected *= 2
    doubled, ended = call(_until)(start, steps)
    assert_same(doubled, start * 2 ** max(steps, 0))
    assert_same(ended, expected)


# --- Science ---------------------------------------------------------------------------------------------------------


@attack(w=arrays((3,), odd=False), v=arrays((3,), odd=False), data=arrays((4, 3), odd=False))
def test_products_with_a_hessian_are_those_of_the_matrix(w: Array, v: Array, data: Array) -> None:
    w = w / 9
    share = 1 / (1 + np.exp(-(data.astype(np.float64) @ w)))
    expected = data.T @ ((share * (1 - share) / 4)[:, None] * data) @ v
    assert_same(_products()(data, w, v), np.stack([expected] * 3), atol=1e-3)


@cache
def _products() -> Any:
    def run(data: Any, w: Any, v: Any) -> Any:
        f = program("science/derivatives.md", "f", big=data)["f"]
        linearized = jax.linearize(jax.grad(f), w)[1]
        return jnp.stack(
            [jax.jvp(jax.grad(f), (w,), (v,))[1], jax.grad(lambda w: jax.grad(f)(w) @ v)(w), linearized(v)]
        )

    return jax.jit(run)


@attack(x=halves, factor=halves)
def test_a_clipped_derivative_is_clipped_backward_only(x: float, factor: float) -> None:
    clipped = named("science/derivatives.md", "Clipped")

    def f(x: Any) -> Any:
        return factor * clipped(jax.typeof(x))(x)

    assert_same(jax.grad(f)(x), np.clip(factor, -1, 1))
    assert_same(jax.jvp(f, (x,), (2.0,)), (factor * x, 2 * factor))


@attack(n=st.sampled_from([6, 7, 1, 2]), heights=arrays((4,), odd=False))
def test_a_spectral_derivative_is_that_of_its_waves(n: int, heights: Array) -> None:
    t = 2 * np.pi * np.arange(n) / n
    waves = [k for k in range(1, 3) if 2 * k < n]  # the highest one of an even number has no first derivative
    u = np.full(n, heights[0]) + sum(heights[k] * np.sin(k * t) + heights[3] * np.cos(k * t) for k in waves)
    slope = sum((k * (heights[k] * np.cos(k * t) - heights[3] * np.sin(k * t)) for k in waves), np.zeros(n))
    bend = sum((-(k**2) * (heights[k] * np.sin(k * t) + heights[3] * np.cos(k * t)) for k in waves), np.zeros(n))
    assert_same(named(TRANSFORMS, "derivative")(np.float32(u)), slope, atol=1e-3)
    assert_same(named(TRANSFORMS, "second")(np.float32(u)), bend, atol=1e-3)


@slow_attack(x=arrays(st.sampled_from([(6,), (5,), (1,), (2,)]), odd=False))
def test_a_sum_of_squares_is_kept_in_fourier_space(x: Array) -> None:
    energy, expected = named(TRANSFORMS, "energy"), (x.astype(np.float64) ** 2).sum()
    value, slope = energy(x, jnp.fft.fft, "ortho")
    assert_same(value, expected, atol=1e-3)
    assert_same(slope, 2 * x, atol=1e-3)
    half = np.abs(np.asarray(jnp.fft.rfft(x, norm="ortho"))) ** 2
    twice = np.full(half.size, 2)
    twice[0] = 1
    twice[-1] = 2 if x.size % 2 and x.size > 1 else 1
    assert_same((twice * half).sum(), expected, atol=1e-3)


def stencil(a: Array, s: float) -> Array:
    """The matrix of one implicit step of diffusion on a periodic grid, element by element."""
    n = len(a)
    matrix = np.eye(n * n)
    for i in range(n):
        for j in range(n):
            for k, m in (((i + 1) % n, j), ((i - 1) % n, j), (i, (j + 1) % n), (i, (j - 1) % n)):
                between = s * (float(a[i, j]) + float(a[k, m])) / 2
                matrix[i * n + j, i * n + j] += between
                matrix[i * n + j, k * n + m] -= between
    return matrix


@cache
def on_small_grid() -> dict[str, Any]:
    """The solvers of the page on a grid of four by four, compiled."""
    found = program(TRANSFORMS, "apply", "solve", "solve_fourier", n=4, s=0.5, _n=4)
    return {name: jax.jit(found[name]) for name in ("apply", "solve", "solve_fourier")}


@slow_attack(
    f"{TRANSFORMS}: a stencil on a grid",
    f"{TRANSFORMS}: a sparse direct solve",
    a=arrays((4, 4), "int8"),
    b=arrays((4, 4), odd=False),
    contrast=st.sampled_from([0, 0.2]),
)
def test_a_stencil_is_its_matrix_and_its_solution_the_inverse(a: Array, b: Array, contrast: float) -> None:
    a = np.exp(contrast * a).astype(np.float32)
    matrix = stencil(a, 0.5)
    assert_same(np.ravel(on_small_grid()["apply"](a, b)), matrix @ b.ravel())
    solved = np.linalg.solve(matrix, b.ravel())
    # A residual of 1e-5 of b, where the smallest eigenvalue is 1.
    assert_same(np.ravel(on_small_grid()["solve"](a, b)), solved, atol=1e-4 + 1e-4 * float(np.linalg.norm(b)))
    splu = scipy.sparse.linalg.splu(scipy.sparse.csc_array(matrix))
    assert_same(splu.solve(b.ravel().astype(np.float64)), solved)
    if not contrast:
        assert_same(np.ravel(on_small_grid()["solve_fourier"](b, 1.0)), solved)


@attack(
    f"{TRANSFORMS}: messages on a graph",
    x=arrays((4,), odd=False),
    edges=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6).map(
        lambda e: [*e, *[(0, 4)] * (6 - len(e))]
    ),
)
def test_messages_are_added_at_their_receivers(x: Array, edges: list[tuple[int, int]]) -> None:
    senders, receivers = np.array(edges).T  # a receiver past the end pads the edges
    expected = np.zeros(5)
    np.add.at(expected, receivers, x[senders])
    assert_same(jax.ops.segment_sum(x[senders], receivers, num_segments=4), expected[:4])
    weights = sparse.BCOO((jnp.ones(6), jnp.stack([receivers, senders], axis=1)), shape=(5, 4))
    assert_same(weights @ x, expected)


@slow_attack(
    f"{TRANSFORMS}: `A @ A`, slices, reordering",
    dense=arrays((3, 4), "int8"),
    kept=arrays((3, 4), "bool"),
    v=arrays((4,), odd=False),
    kind=st.sampled_from(["BCOO", "BCSR"]),
)
def test_a_matrix_of_scipy_stays_itself(dense: Array, kept: Array, v: Array, kind: str) -> None:
    matrix = (dense * kept).astype(np.float32)
    host = scipy.sparse.csr_array(matrix)
    convert = getattr(sparse, kind).from_scipy_sparse
    assert_same(convert(host) @ v, matrix @ v)
    assert_same(convert(scipy.sparse.csr_array(host @ host.T)).todense(), matrix @ matrix.T)
    assert_same(convert(host[[2, 0]]).todense(), matrix[[2, 0]])


@attack(
    f"{TRANSFORMS}: three diagonals",
    diagonals=arrays((3, 4), odd=False),
    b=arrays((4, 2), odd=False),
)
def test_three_diagonals_are_solved(diagonals: Array, b: Array) -> None:
    lower, middle, upper = diagonals
    lower[0] = upper[-1] = 0
    matrix = np.diag(middle) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    found = np.asarray(jax.lax.linalg.tridiagonal_solve(*map(jnp.asarray, (lower, middle, upper, b))))
    if np.linalg.cond(matrix.astype(np.float64)) < 1e4:
        assert_same(found, np.linalg.solve(matrix.astype(np.float64), b), rtol=1e-2, atol=1e-2)


def linear(y: Any, rates: Any) -> Any:
    """Growth and decay, each at its own rate."""
    return rates * y


@cache
def solved(steps: int) -> Callable[..., Any]:
    """The page's Runge-Kutta steps, compiled."""
    solve = named(EQUATIONS, "solve")
    return jax.jit(lambda y, time, rates: solve(linear, y, time, steps, rates))


@attack(
    f"{EQUATIONS}: a smooth ODE that is not stiff, steps known",
    y=arrays((2,), odd=False),
    rates=st.tuples(st.floats(0, 1), st.floats(-2, 0)),
    time=st.floats(-1, 2),
)
def test_growth_and_decay_are_solved(y: Array, rates: tuple[float, float], time: float) -> None:
    assert_same(solved(40)(y, time, jnp.array(rates)), y * np.exp(np.array(rates) * time), atol=1e-3)


@cache
def rod() -> tuple[Callable[..., Any], Array]:
    """Implicit steps of the page's rod, and its start."""
    found = program(EQUATIONS, "implicit", "start", cells=32)
    return jax.jit(found["implicit"], static_argnums=1), np.asarray(found["start"])


@slow_attack(f"{EQUATIONS}: a PDE with diffusion", k=st.floats(0, 50), steps=st.sampled_from([20, 1]))
def test_an_implicit_step_is_the_inverse(k: float, steps: int) -> None:
    implicit, start = rod()
    matrix = 2 * np.eye(32) - np.eye(32, k=1) - np.eye(32, k=-1)
    matrix[[0, -1], [0, -1]] = 3
    whole = np.linalg.matrix_power(np.linalg.inv(np.eye(32) + k * 0.1 / steps * 32**2 * matrix), steps)
    assert_same(implicit(k, steps), (whole @ start.astype(np.float64))[16], atol=1e-3)


@slow_attack(
    f"{EQUATIONS}: unknown or changing time scales", rate=st.floats(-10, 1), width=st.sampled_from([0.001, 0.01])
)
def test_an_adaptive_solution_stays_within_reach_of_its_tolerance(rate: float, width: float) -> None:
    assert abs(float(named(EQUATIONS, "at_two")(rate, 1e-5)) - np.sin(2)) < 2e-3
    assert_same(named(EQUATIONS, "after_pulse")(1e-3, width), np.sqrt(np.pi), rtol=0.3 if width > 0.001 else 1e-2)


# --- State -----------------------------------------------------------------------------------------------------------


@attack(xs=arrays(st.sampled_from([(4,), (1,), (0,)]), odd=False), rate=st.sampled_from([0.0, 0.5, 1.0]))
def test_a_smoother_is_the_loop_in_every_form(xs: Array, rate: float) -> None:
    mean, expected = 0.0, []
    for x in xs.astype(np.float64):
        mean += rate * (x - mean)
        expected.append(mean)
    assert_same(jax.jit(named(STATE, "smooth"))(rate, xs), expected)
    smoother = named(STATE, "PureSmoother")(rate, jnp.float32(0))
    assert_same(jax.lax.scan(type(smoother).update, smoother, xs)[1], expected)
    low = jnp.full(2000, 100, jnp.bfloat16)  # a mean in bfloat16 would stop on its way
    slow = [jax.jit(named(STATE, "smooth"))(0.01, low)[-1]]
    smoother = named(STATE, "PureSmoother")(0.01, jnp.float32(0))
    slow.append(jax.lax.scan(type(smoother).update, smoother, low)[1][-1])
    assert_same(slow, [100, 100], rtol=1e-3)
    wrapped = named(REFS, "RefSmoother")(rate)
    assert_same([wrapped.update(x) for x in xs], expected)


@attack(x=arrays((6,), odd=False), far=st.sampled_from([0, 1000]))
def test_a_running_variance_is_that_of_all(x: Array, far: int) -> None:
    found = program(STATE, "Moments", "observe")
    for dtype in (jnp.bfloat16, jnp.float16):
        low = jnp.asarray(40 + 10 * np.tile(x, 200), dtype)
        last = jax.lax.scan(found["observe"], found["Moments"](), low)[1][-1]
        assert_same(last, np.var(np.asarray(low, np.float64)), rtol=1e-2, atol=1e-2)
    _, at_the_end = found["observe"](found["Moments"](2**25, 0.0, 4.0), jnp.float32(0))
    assert found["observe"](found["Moments"](2**25, 0.0, 4.0), jnp.float32(0))[0].count == 2**25 + 1 and at_the_end <= 4
    _, variance = jax.lax.scan(found["observe"], found["Moments"](), x + np.float32(far))
    assert_same(variance, [np.var(x[: i + 1].astype(np.float64)) for i in range(6)], atol=1e-2)


@jax.jit
def _adds(ref: Any, x: Any) -> Any:
    def step(_: Any, value: Any) -> tuple[Any, None]:
        ref[...] += value
        return None, None

    jax.lax.scan(step, None, x)
    jax.lax.cond(x[0] > 0, lambda: ref.__setitem__(..., 2 * ref[...]), lambda: None)
    return ref[...]


@attack(
    f"{REFS}: return a ref from a compiled function, or carry it through `scan`, or return it from a branch of `cond`",
    f"{REFS}: pass one ref to a compiled function twice, or pass it and also use it as a global",
    f"{REFS}: write another shape, or an integer to a ref of floats",
    x=arrays((3,), odd=False),
)
def test_a_ref_is_read_at_the_end(x: Array) -> None:
    ref = jax.new_ref(jnp.zeros(()))
    total = x.sum() * (2 if x[0] > 0 else 1)
    assert_same(_adds(ref, x), total)
    assert_same(ref[...], total)
    ref[...] = jnp.full_like(ref[...], 1)
    assert ref[...] == 1 and ref[...].dtype == jnp.float32


@attack(
    f"{REFS}: write, under `vmap`, to a ref that the examples share",
    f"{REFS}: write to a ref in a `cond` whose condition is mapped",
    x=arrays((3,)),
)
def test_each_example_has_its_row(x: Array) -> None:
    totals = jax.new_ref(jnp.ones(3))
    with np.errstate(all="ignore"):
        jax.vmap(named(REFS, "add"))(totals, x)
        assert_same(totals[...], 1 + x)

    def keep_positive(total: Any, x: Any) -> None:
        total[...] = jnp.where(x > 0, x, total[...])

    kept = jax.new_ref(jnp.zeros(3))
    jax.vmap(keep_positive)(kept, x)
    assert_same(kept[...], np.where(x > 0, x, 0))


@slow_attack(
    f"{REFS}: under `grad`, write to a ref made outside the function, if the value depends on the argument of `grad`",
    w=arrays((2, 2), odd=False),
)
def test_noting_a_value_does_not_change_the_gradient(w: Array) -> None:
    network = named(REFS, "network")
    weights, x, largest = [w / 9, np.eye(2, dtype=np.float32)], np.ones((3, 2), np.float32), jax.new_ref(jnp.zeros(2))
    found = sloped(network)(weights, x, largest)
    hidden = np.tanh(x @ (w / 9).astype(np.float64))
    assert_same(largest[...], [np.abs(hidden).max(), np.abs(np.tanh(hidden)).max()])
    assert_same(found[0], sloped(_silent)(weights, x)[0])


def _silent(weights: Any, x: Any) -> Any:
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x**2).mean()


@attack(f"{REFS}: use `jax.grad` with respect to a ref", rate=st.sampled_from([0.25, 0.5]), x=halves)
def test_a_threaded_state_has_its_derivative(rate: float, x: float) -> None:
    state, update = named(STATE, "State"), named(STATE, "update")
    slope = jax.grad(lambda state: update(state, x)[1])(state(rate, 2.0))
    assert_same((slope.rate, slope.mean), (x - 2, 1 - rate))


# --- Looking inside --------------------------------------------------------------------------------------------------


@attack(
    f"{INSIDE}: to see a value",
    f"{INSIDE}: to print a value for bad rows only, or save it in a list or a file",
    x=arrays((3,)),
    call=transformations(),
)
def test_what_a_debug_tool_shows_is_the_value(x: Array, call: Transformation) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        call(_shows)(x[0])
        jax.effects_barrier()
    text_of = [float(line) for line in output.getvalue().split()]
    assert_same(text_of, np.full(len(text_of), x[0]))
    assert len(text_of) in (1, 2)
    warned: list[float] = []
    check = program(INSIDE, "check", warn_if_large=lambda w: warned.append(float(w)) if w > 2 else None)["check"]
    jax.vmap(check)(x)
    jax.effects_barrier()
    assert sorted(warned) == sorted(x[x > 2])


def _shows(x: Any) -> Any:
    jax.debug.print("{}", x)
    return x


@attack(
    f"{INSIDE}: to collect a value from each step in an array",
    a=st.floats(0.25, 100).map(np.float32),
    call=transformations(),
)
def test_each_iterate_is_returned(a: np.float32, call: Transformation) -> None:
    root, expected = float(a), []
    for _ in range(10):
        root = (root + float(a) / root) / 2
        expected.append(root)
    assert_same(call(named(INSIDE, "iterates"))(a), expected)
    assert_same(named(INSIDE, "newton_sqrt")(a), float(a) ** 0.5)


@attack(f"{INSIDE}: to see a gradient", w=halves)
def test_the_gradient_shown_is_the_gradient(w: float) -> None:
    loss = program(INSIDE, "show_gradient", "loss", x=np.array([1, 2], np.float32))["loss"]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        slope = jax.grad(loss)(w)
        jax.effects_barrier()
    hidden = np.tanh(w * np.array([1.0, 2]))
    shown = output.getvalue().removeprefix("gradient here: [").rstrip("]\n").split()
    assert_same(np.array(shown, float), 2 * hidden)
    assert_same(slope, (2 * hidden * (1 - hidden**2) * [1, 2]).sum())


# --- Ways out --------------------------------------------------------------------------------------------------------


@attack(
    f"{ESCAPE}: a formula",
    f"{ESCAPE}: Python code, and time to spare for each call",
    f"{ESCAPE}: a derivative that JAX cannot find, or a better one",
    n=st.integers(-9, 9),
    x=arrays((3,), dtypes("float", "int"), odd=False),
    call=transformations(),
)
def test_a_bessel_function_is_that_of_scipy(n: int, x: Array, call: Transformation) -> None:
    expected = special.jn(n, x.astype(np.float64))
    found = program(ESCAPE, "formula", "from_scipy", "bessel")
    order = np.uint8(n) if n >= 0 else n  # an unsigned order has none below 0
    with contextlib.suppress(TypeError):  # an integer has no derivative, and says so
        slope = jax.vmap(jax.grad(partial(found["bessel"], order)))(x)
        assert_same(slope, special.jvp(n, x.astype(np.float64)))
    assert_same(call(partial(found["from_scipy"], n))(x), expected)
    if x.dtype != np.float16:
        assert_same(call(partial(found["formula"], n))(x), expected)


@attack(f"{ESCAPE}: your own backward pass, to clip a gradient, for example", x=halves, factor=halves)
def test_a_backward_pass_clips(x: float, factor: float) -> None:
    section = f"{ESCAPE}#custom_vjp-you-want-a-different-backward-pass"  # an exercise has the same name
    clip_gradient = program(section, "clip_gradient", jax=jax, jnp=jnp)["clip_gradient"]
    value, slope = jax.value_and_grad(lambda x: factor * clip_gradient(x))(x)
    assert_same((value, slope), (factor * x, np.clip(factor, -1, 1)))
    assert_same(jax.value_and_grad(named(ESCAPE, "round_through"))(x), (np.round(x), 1))


@slow_attack(
    f"{ESCAPE}: a faster order of computation than the compiler's", size=st.sampled_from([1024, 1000, 2048, 100])
)
def test_a_kernel_computes_every_block(size: int) -> None:
    values = jnp.linspace(0, 10, size)
    assert_same(named(ESCAPE, "from_pallas")(values, True), special.jn(1, np.asarray(values, np.float64)))


@cache
def served() -> Callable[..., Any]:
    """The exported program, as another process would load it."""
    return jax.jit(jax.export.deserialize(named(ESCAPE, "exported").serialize()).call)


@slow_attack(f"{ESCAPE}: a server or a colleague without your code", x=arrays(shapes(1, 1, False), odd=False))
def test_an_exported_program_takes_any_size(x: Array) -> None:
    assert_same(served()(x), special.jn(1, x.astype(np.float64)))


# --- A stack ---------------------------------------------------------------------------------------------------------


@cache
def forms() -> dict[str, Any]:
    """The three forms of one model, and the ways between them."""
    return program(STACK, "predict", "to_equinox", "from_equinox", "to_nnx", "from_nnx", "init")


@slow_attack(x=arrays((3, 2), odd=False), seed=st.integers(0, 9))
def test_a_converted_model_gives_the_same(x: Array, seed: int) -> None:
    found = forms()
    params = found["init"](jax.random.key(seed))
    params = jax.tree.map(lambda leaf: leaf + 0.1, params)  # no bias is zero
    expected = x.astype(np.float64)
    for layer in params:
        expected = expected @ np.asarray(layer["w"], np.float64) + np.asarray(layer["b"])
        expected = expected if layer is params[-1] else np.tanh(expected)
    moved, net = found["to_nnx"](params), found["to_equinox"](params)
    assert_same(moved(x), expected)
    assert_same(jax.vmap(net)(x), expected)
    for back in (found["from_nnx"](moved), found["from_equinox"](net)):
        assert_same(found["predict"](back, x), expected)


@slow_attack(x=st.integers(1, 4))
def test_a_model_of_another_depth_is_refused(x: int) -> None:
    params = forms()["init"](jax.random.key(0), (2, *[16] * x, 1))
    refused = False
    try:
        forms()["to_nnx"](params)
    except ValueError:
        refused = True
    assert refused == (x != 2)


@slow_attack(
    f"{STACK}: update rules, schedules, clipping",
    x=arrays((3,), odd=False),
    g=arrays((4, 3), odd=False),
    limit=st.sampled_from([0.5, 5.0]),
)
def test_an_update_rule_is_its_formula(x: Array, g: Array, limit: float) -> None:
    rate = optax.linear_schedule(0.1, 0.0, 4)
    optimizer = optax.chain(optax.clip_by_global_norm(limit), optax.adam(rate))
    state, w, first, second, params = optimizer.init(x), x.astype(np.float64), 0.0, 0.0, x
    for step, slope in enumerate(g, start=1):
        updates, state = optimizer.update(slope, state)
        params = optax.apply_updates(params, updates)
        clipped = slope / max(1, np.linalg.norm(slope.astype(np.float64)) / limit)
        first, second = 0.9 * first + 0.1 * clipped, 0.999 * second + 0.001 * clipped**2
        scaled = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        w = w - 0.1 * (1 - (step - 1) / 4) * scaled
    assert_same(params, w, atol=1e-3)


@attack(
    f"{STACK}: shuffling and batching that can resume",
    rows=st.integers(1, 40),
    seed=st.integers(0, 99),
    stop=st.integers(0, 5),
)
def test_each_epoch_has_each_row_once_also_after_a_restart(rows: int, seed: int, stop: int) -> None:
    data = grain.MapDataset.source(np.arange(rows)).seed(seed).shuffle().batch(16)
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    batches = iter(data.repeat(2).to_iter_dataset(options))
    seen, position = [], None
    for number, batch in enumerate(batches):
        seen.append(batch)
        if number == stop:
            position = batches.get_state()
    count = -(-rows // 16)
    for epoch in (seen[:count], seen[count:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(rows))
    if position is not None:
        batches.set_state(position)
        for left, right in zip(batches, seen[stop + 1 :], strict=True):
            np.testing.assert_array_equal(left, right)


# --- Fast and slow ---------------------------------------------------------------------------------------------------

SPEED = "speed/fast-and-slow.md"
images = arrays(
    st.sampled_from([(3, 3), (4, 7), (5, 3)]),
    st.sampled_from([np.dtype(name) for name in ("float32", "int32", "int8", "float16")]),
    odd=False,
)


@slow_attack(image=images, bright=st.booleans())
def test_a_blur_of_any_image_is_the_mean_of_the_neighbors(image: Array, bright: bool) -> None:
    if bright:
        image = np.full(image.shape, 200, np.uint8)
    wide = image.astype(float)
    rows, columns = wide.shape
    expected = np.zeros((rows - 2, columns - 2))
    for i in range(1, rows - 1):
        for j in range(1, columns - 1):
            expected[i - 1, j - 1] = (wide[i - 1, j] + wide[i + 1, j] + wide[i, j - 1] + wide[i, j + 1]) / 4
    for name in ("mapped", "compiled_loop", "slices"):
        found = named(SPEED, name)(jnp.asarray(image))
        assert found.shape == expected.shape
        assert_same(found, expected, rtol=2e-3, atol=2e-3)
    assert_same(named(SPEED, "slices")(image), expected, rtol=2e-3, atol=2e-3)


@slow_attack(readings=arrays((5,), dtypes("float", "int")))
def test_readings_are_smoothed(readings: Array) -> None:
    level, expected = float(readings[0]), []
    with np.errstate(all="ignore"):
        for reading in readings.astype(float):
            level = 0.9 * level + 0.1 * reading
            expected.append(level)
    for name in ("smooth_numpy", "smooth_scan", "smooth_associative"):
        with np.errstate(all="ignore"):
            found = named(SPEED, name)(readings)
        if np.isfinite(readings).all() or name != "smooth_associative":
            assert_same(found, np.array(expected), 1e-5, 1e-5)


@slow_attack(prices=arrays((5,), dtypes("float", "int")), large=st.booleans())
def test_a_drawdown_is_exact(prices: Array, large: bool) -> None:
    if large and prices.dtype == np.int32:
        prices = prices + np.int32(20_000_000)  # beyond the integers that float32 holds
    with np.errstate(all="ignore"):
        expected = np.maximum.accumulate(prices) - prices
    for name in ("by_scan", "by_joining"):
        found = named(SPEED, name)(prices)
        assert found.dtype == prices.dtype
        np.testing.assert_array_equal(found, expected)


@slow_attack(x=arrays((5,), dtypes("float")), scale=st.sampled_from([0.01, 1, 100]))
def test_an_activation_has_its_values_and_slopes(x: Array, scale: float) -> None:
    x = (x * scale).astype(x.dtype)
    selu = named(SPEED, "selu")
    wide = np.clip(x.astype(float), -700, None)
    with np.errstate(all="ignore"):
        expected = 1.0507 * np.where(wide > 0, wide, 1.6733 * np.expm1(np.minimum(wide, 0)))
        slope = 1.0507 * np.where(wide > 0, 1, 1.6733 * np.exp(np.minimum(wide, 0)))
        rtol = 1e-2 if x.dtype == np.float16 else 1e-5
        assert_same(selu(x), expected, rtol, 1e-7)
        assert_same(selu(x, np), expected, rtol, 1e-7)
    found = sloped(summed(selu))(x)
    assert_same(found, np.where(np.isnan(x), np.nan, slope), rtol, 1e-5)


@cache
def summed(function: Any) -> Any:
    """Return the sum of a function's values."""
    return lambda x: function(x).sum()


# --- What the pages say of odd input ---------------------------------------------------------------------------------


def text_of(page: str) -> str:
    """Return the text of a page, on one line."""
    return " ".join((PROJECT.docs / page).read_text("utf-8").split())


def test_a_norm_overflows_and_an_index_past_the_end_takes_the_last() -> None:
    page = "basics/vmap.md"
    unit, large = named(page, "unit"), jnp.array([300, 400], jnp.float16)
    assert (
        not unit(large).any()
        and not unit(jnp.array([3e20, 4e20])).any()
        and "In float16, a norm of 256 is too large." in text_of(page)
    )
    np.testing.assert_allclose(unit(large / abs(large).max()), [0.6, 0.8], atol=1e-3)
    three = jnp.array([[1.0, 0, 0], [2.0, 0, 0], [3.0, 0, 0]])
    assert program(page, "fifth_nearest", refs=three)["fifth_nearest"](jnp.zeros(3)) == 3  # there is no fifth
    assert "with fewer than five refs, [4] takes the last" in text_of(page)


def test_a_root_of_zero_and_of_a_tiny_number() -> None:
    newton = program(INSIDE, "newton_sqrt", history=[])["newton_sqrt"]
    assert newton(0.0) == 0 and np.isnan(named(INSIDE, "iterates")(0.0)).all()
    assert abs(newton(1e-30) / 1e-15 - 1) < 1e-4
    assert abs(newton(1e-37) / 1e-37**0.5 - 1) > 1e-3
    assert "is rounded to 0, so the loop ends too early" in text_of(INSIDE)


def test_texts_without_numbers_in_names_are_equal_for_some_unequal_programs() -> None:
    page = "speed/read-the-compiler.md"
    bare, x = named(page, "bare"), jnp.ones((3, 4))
    if jax.default_backend() == "cpu":
        assert bare(lambda x: jnp.sin(x) - jnp.sin(jnp.sin(x)), x) == bare(
            lambda x: jnp.sin(jnp.sin(x)) - jnp.sin(x), x
        )
    assert "a difference of two sines reads like its opposite" in text_of(page)


def test_days_from_far_away_hide_the_period() -> None:
    days, exact = np.linspace(0, 60, 30), 2 * np.pi / 11
    velocity = named("science/sampling.md", "velocity")
    params = np.array([np.log(11.0), 12.0, -9.0, 4.0, 0.0])
    for start, close in ((-30, True), (2_458_000, False)):
        angle = exact * (days + start)
        found = velocity(params, jnp.asarray(days + start))
        assert np.allclose(found, 12 * np.sin(angle) - 9 * np.cos(angle) + 4, atol=0.01) == close
    assert "Count the days from the middle of the measurements" in text_of("science/sampling.md")
