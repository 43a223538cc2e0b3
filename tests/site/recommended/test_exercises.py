"""The solutions of the exercises, against NumPy in float64, on inputs that no examiner's check has.

The examiner asks whether an answer is right on chosen inputs; these are made up. Solutions for several devices run as
many blocks of one array, in `vmap`, whose collectives have the same names as those of `shard_map`.
"""

import contextlib
import io
import math
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.recommended.shown import shows
from tests.site.strategies import (
    Transformation,
    arrays,
    assert_same,
    dtypes,
    floats,
    keys,
    shapes,
    slopes,
    transformations,
    values,
)

Array = np.ndarray[Any, Any]
halves = values(np.dtype("float32"), odd=False)
once = transformations("eager", "jit")
jitted = cache(jax.jit)  # once for each function
sloped = cache(lambda function: jax.jit(jax.grad(function)))
mapped = cache(jax.vmap)
pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # of NumPy, where NaN and infinity meet


@cache
def solution(name: str) -> Any:
    """The solution of an exercise, such as "practice/basics.md#cap"; what its page imports is above the section."""
    return program(name, "solution", jax=jax, jnp=jnp, np=np)["solution"]


@cache
def with_first(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A solution whose first argument is this function."""
    return partial(solution(name), function)


# --- The basics ------------------------------------------------------------------------------------------------------


@attack(
    "practice/basics.md#standardize",
    x=arrays(st.sampled_from([(6, 3), (1, 2)]), dtypes("float")),
    equal=st.booleans(),
)
def test_columns_are_standardized(x: Array, equal: bool) -> None:
    if equal:
        x[:, 0] = x[0, 0]
    wide = x.astype(np.float64)
    constant = wide.max(0) == wide.min(0)
    # Far from zero, the mean of float16 has a few digits less than the spread.
    assume(x.dtype != np.float16 or not (np.abs(wide) > 100).any())
    with np.errstate(all="ignore"):
        expected = np.where(constant, 0, (wide - wide.mean(0)) / np.where(constant, 1, wide.std(0)))
    found = jitted(solution("practice/basics.md#standardize"))(x)
    assert found.dtype == x.dtype
    assert_same(found, expected, atol=2e-3)


@attack(
    "practice/basics.md#swap_rows",
    x=arrays(st.sampled_from([(1, 2), (4, 3)])),
    i=st.integers(-3, 2),
    j=st.integers(-3, 2),
    call=once,
)
def test_two_rows_are_swapped(x: Array, i: int, j: int, call: Transformation) -> None:
    i, j = (n % len(x) - len(x) * (n < 0) for n in (i, j))
    expected = x.copy()
    expected[i], expected[j] = x[j], x[i]
    np.testing.assert_array_equal(call(solution("practice/basics.md#swap_rows"))(jnp.asarray(x), i, j), expected)


@attack("practice/basics.md#cap", x=arrays((5,), dtypes("float", "int")), limit=st.integers(-9, 9), call=once)
def test_nothing_is_above_the_limit(x: Array, limit: int, call: Transformation) -> None:
    found = call(solution("practice/basics.md#cap"))(x, limit)
    np.testing.assert_array_equal(found, np.where(x > limit, limit, x))
    assert found.dtype == x.dtype


@attack(
    "practice/basics.md#delay",
    x=arrays(st.sampled_from([(5,), (1,), (0,)]), dtypes("float", "int")),
    steps=st.integers(-6, 6) | st.sampled_from([2**31 - 1, -(2**31)]),
    call=once,
)
def test_a_delayed_signal_has_zeros_before_it(x: Array, steps: int, call: Transformation) -> None:
    expected = [x[i - steps] if 0 <= i - steps < x.size else 0 for i in range(x.size)]
    found = call(solution("practice/basics.md#delay"))(jnp.asarray(x), steps)
    np.testing.assert_array_equal(found, np.asarray(expected, x.dtype))
    assert found.dtype == x.dtype


@attack("practice/basics.md#blend", pair=st.lists(st.tuples(*[st.integers(0, 255)] * 2), min_size=3, max_size=3))
def test_a_blend_is_the_mean(pair: list[tuple[int, int]]) -> None:
    a, b = np.array(pair, np.uint8).T
    assert solution("practice/basics.md#blend")(jnp.asarray(a), jnp.asarray(b)).tolist() == [
        (x + y) // 2 for x, y in pair
    ]


@attack("practice/basics.md#shuffle_together", key=keys(), rows=st.sampled_from([5, 0, 1]))
def test_rows_stay_together(key: jax.Array, rows: int) -> None:
    x, y = solution("practice/basics.md#shuffle_together")(
        key, jnp.arange(2.0 * rows).reshape(rows, 2), jnp.arange(rows)
    )
    assert sorted(y.tolist()) == list(range(rows))
    np.testing.assert_array_equal(x, np.stack([2 * np.asarray(y), 2 * np.asarray(y) + 1], axis=1))


@attack("practice/basics.md#init", key=keys(), sizes=st.sampled_from([[40, 50], [3], [1, 0, 1]]))
def test_parameters_have_the_shapes_and_the_spread(key: jax.Array, sizes: list[int]) -> None:
    found = solution("practice/basics.md#init")(key, sizes)
    assert [(layer["w"].shape, layer["b"].shape) for layer in found] == [
        ((m, n), (n,)) for m, n in zip(sizes, sizes[1:], strict=False)
    ]
    for m, layer in zip(sizes, found, strict=False):
        assert not np.any(layer["b"])
        if m == 40:  # 2000 numbers, whose deviation is within 10 %
            assert abs(np.std(layer["w"]) * m**0.5 - 1) < 0.1 and abs(np.mean(layer["w"])) * m**0.5 < 0.15
    drawn = np.concatenate([np.ravel(layer["w"]) for layer in found] or [np.zeros(0)])
    assert len(np.unique(drawn)) >= 0.99 * drawn.size


def square_root(a: float) -> Callable[[Any], Any]:
    """A function that is zero at the root."""
    return lambda x: x * x - a


@attack("practice/basics.md#root", a=st.integers(0, 99), start=st.integers(1, 9))
def test_ten_steps_of_newton_are_taken(a: int, start: int) -> None:
    expected = float(start)
    for _ in range(10):
        expected -= (expected**2 - a) / (2 * expected)
    assert_same(solution("practice/basics.md#root")(square_root(a), start), expected)


def wave(x: Any) -> Any:
    """A function of a vector whose Jacobian has two numbers in a row."""
    return jnp.sin(x) * jnp.roll(x, 1)


@attack("practice/basics.md#directional", x=arrays((5,), odd=False), v=arrays((5,), odd=False), call=once)
def test_a_directional_derivative_is_the_product(x: Array, v: Array, call: Transformation) -> None:
    a, b = x.astype(np.float64), v.astype(np.float64)
    expected = np.cos(a) * b * np.roll(a, 1) + np.sin(a) * np.roll(b, 1)
    assert_same(call(with_first("practice/basics.md#directional", wave))(x, v), expected)


def squared_error(w: Any, x: Any, y: Any) -> Any:
    """The loss of one example."""
    return (jnp.dot(x, w) - y) ** 2


@attack(
    "practice/basics.md#gradient_norms",
    w=arrays((3,), odd=False),
    xs=arrays(st.sampled_from([(4, 3), (1, 3)])),
    call=once,
)
def test_each_example_has_its_own_norm(w: Array, xs: Array, call: Transformation) -> None:
    ys = xs[:, 0] + 1
    wide = xs.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = 2 * np.abs(wide @ w - ys) * np.linalg.norm(wide, axis=1)
    found = call(with_first("practice/basics.md#gradient_norms", squared_error))(w, xs, ys)
    finite = np.isfinite(expected)
    assert_same(np.asarray(found)[finite], expected[finite], rtol=1e-3)
    assert not np.isfinite(np.asarray(found)[~finite]).any()


def predict(model: dict[str, Any], x: Any) -> Any:
    """A linear model."""
    return model["w"] @ x + model["b"]


@attack(
    "practice/basics.md#ensemble",
    w=arrays(st.sampled_from([(4, 2, 3), (1, 2, 3)]), odd=False),
    far=st.sampled_from([0, 1000]),
    call=once,
)
def test_an_ensemble_has_a_mean_and_a_spread(w: Array, far: int, call: Transformation) -> None:
    models, x = {"w": w, "b": w[:, :, 0] + far}, np.array([1, -2, 0.5], np.float32)
    outputs = w.astype(np.float64) @ x + models["b"]
    mean, spread = call(with_first("practice/basics.md#ensemble", predict))(models, x)
    assert_same(mean, outputs.mean(0))
    assert_same(spread, outputs.std(0), atol=1e-3)


@attack(
    "practice/basics.md#clip_tree",
    x=arrays((4,)),
    scale=st.sampled_from([1e-6, 1, 1e15]),
    limit=st.sampled_from([0.5, 1, 50.0]),
)
def test_a_clipped_tree_has_the_norm(x: Array, scale: float, limit: float) -> None:
    x = x * np.float32(scale)
    tree = {"w": x[:3].reshape(3, 1), "b": [x[3], np.zeros(0, np.float32)]}
    norm = float(np.linalg.norm(x.astype(np.float64)))
    assume(np.isfinite(norm))
    expected = x.astype(np.float64) * min(1.0, limit / max(norm, 1e-30))
    found = jitted(solution("practice/basics.md#clip_tree"))(tree, limit)
    assert str(jax.tree.structure(found)) == str(jax.tree.structure(tree))
    assert_same(np.append(np.ravel(found["w"]), found["b"][0]), expected, atol=1e-9)


@attack("practice/basics.md#Ball", x=arrays((2,)), names=st.tuples(st.text(max_size=2), st.text(max_size=2)))
def test_a_ball_keeps_its_name(x: Array, names: tuple[str, str]) -> None:
    one, two = (solution("practice/basics.md#Ball")(jnp.asarray(x), jnp.asarray(x + 1), name) for name in names)
    moved = jax.tree.map(lambda leaf: 2 * leaf, one)
    assert moved.name == names[0]
    np.testing.assert_array_equal(moved.position, 2 * x)
    np.testing.assert_array_equal(moved.velocity, 2 * (x + 1))
    structures = {str(jax.tree.structure(ball)) for ball in (one, two)}
    assert (len(structures) == 1) == (names[0] == names[1])


# --- Speed -----------------------------------------------------------------------------------------------------------


@attack(
    "practice/speed.md#tax",
    income=arrays((1,)).map(lambda x: x[0]) | st.sampled_from([10, 50, 11, 49, 60.5, 2e9]).map(np.float32),
    call=transformations(),
)
def test_a_tax_has_three_rates(income: np.float32, call: Transformation) -> None:
    x = float(income)
    expected = math.nan if math.isnan(x) else 0 if x <= 10 else 0.2 * (x - 10) if x <= 50 else 8 + 0.4 * (x - 50)
    assert_same(call(solution("practice/speed.md#tax"))(income), expected)
    if x not in (10, 50) and math.isfinite(x):
        assert_same(jax.grad(solution("practice/speed.md#tax"))(jnp.asarray(income)), 0.2 * ((x > 10) + (x > 50)))


@attack(
    "practice/speed.md#regression_loss",
    x=arrays(st.sampled_from([(5,), (2, 3), ()]), dtypes("float")),
    kind=st.sampled_from(["l1", "l2"]),
)
def test_a_loss_is_of_its_kind(x: Array, kind: str) -> None:
    assume(x.dtype != np.float16 or not (np.abs(x) > 100).any())  # whose squares float16 does not have
    target = x[::-1] if x.ndim else x * 0 + 2
    with np.errstate(all="ignore"):
        errors = x.astype(np.float64) - target
        expected = np.abs(errors).mean() if kind == "l1" else (errors**2).mean()
    assert_same(solution("practice/speed.md#regression_loss")(x, target, kind), expected)


@attack("practice/speed.md#gcd", a=st.integers(0, 2**31 - 1), b=st.integers(0, 2**31 - 1), call=transformations())
def test_a_divisor_is_the_greatest(a: int, b: int, call: Transformation) -> None:
    assert int(call(solution("practice/speed.md#gcd"))(jnp.int32(a), jnp.int32(b))) == math.gcd(a, b)


@attack(
    "practice/speed.md#dominant",
    a=arrays((3, 3), "int8"),
    x=arrays((3,), "int8"),
    steps=st.integers(0, 9) | st.just(-1),
    scale=st.sampled_from([1, 1e25, 1e-25]),  # the squares are infinite or zero
    call=once,
)
def test_a_power_iteration_takes_its_steps(a: Array, x: Array, steps: int, scale: float, call: Transformation) -> None:
    a, x = np.abs(a).astype(np.float32) + np.eye(3, dtype=np.float32), np.abs(x).astype(np.float32) + 1
    a *= np.float32(scale)
    expected = x.astype(np.float64)
    for _ in range(steps):
        expected = a.astype(np.float64) @ expected
        expected /= np.linalg.norm(expected)
    assert_same(call(solution("practice/speed.md#dominant"))(a, x, steps), expected)


def last_of_orbit(rate: Any, x: Any, length: int) -> Any:
    """The last number of an orbit."""
    return solution("practice/speed.md#orbit")(rate, x, length)[-1]


@attack(
    "practice/speed.md#orbit",
    rate=st.integers(0, 16),
    x=st.integers(0, 8),
    length=st.sampled_from([6, 0]),
)
def test_an_orbit_is_the_loop(rate: int, x: int, length: int) -> None:
    def plain(rate: Any) -> Array:
        found, here = [], x / 8
        for _ in range(length):
            found.append(here)
            here = float(rate) * here * (1 - here)
        return np.array(found)

    orbit, last = solution("practice/speed.md#orbit"), jax.grad(last_of_orbit)
    assert_same(
        jax.jit(orbit, static_argnums=2)(rate / 4, x / 8, length), plain(rate / 4), atol=1e-3
    )  # which rounding grows to, at rate 4
    if length:
        assert_same(last(rate / 4, x / 8, length), slopes(lambda rate: plain(rate)[-1], rate / 4), atol=1e-2, rtol=1e-3)


@attack(
    "practice/speed.md#horner",
    coefficients=arrays(st.sampled_from([(4,), (1,), (0,)]), dtypes("float", "int"), odd=False),
    x=arrays((3,)),
    call=once,
)
def test_a_polynomial_is_that_of_numpy(coefficients: Array, x: Array, call: Transformation) -> None:
    with np.errstate(all="ignore"):
        expected = np.polyval(coefficients.astype(np.float64), x.astype(np.float64))
    assert_same(call(solution("practice/speed.md#horner"))(coefficients, x), expected)


@attack("practice/speed.md#first_above", x=arrays(shapes(1, 1, False), dtypes("float", "int")), limit=halves, call=once)
def test_the_first_one_above_is_found(x: Array, limit: float, call: Transformation) -> None:
    limit = limit if x.dtype.kind == "f" else int(limit)
    above = np.flatnonzero(x > limit)
    assert call(solution("practice/speed.md#first_above"))(x, limit) == (above[0] if above.size else -1)


@attack(
    "practice/speed.md#window",
    x=arrays(shapes(1, 1), dtypes("float", "int")),
    start=st.integers(0, 9) | st.just(2**31 - 1),
    width=st.sampled_from([3, 1]),
)
def test_a_window_ends_in_zeros(x: Array, start: int, width: int) -> None:
    found = jax.jit(solution("practice/speed.md#window"), static_argnums=2)(x, start, width)
    kept = x[start : start + width]
    np.testing.assert_array_equal(found, np.concatenate([kept, np.zeros(width - kept.size, x.dtype)]))
    assert found.dtype == x.dtype


@attack("practice/speed.md#Scaler", x=arrays((3,)), factors=st.tuples(halves, halves))
def test_a_scaler_has_its_own_factor(x: Array, factors: tuple[float, float]) -> None:
    one, two = map(solution("practice/speed.md#Scaler"), factors)
    with np.errstate(all="ignore"):
        for factor in (factors[0], factors[1] + 1):
            one.factor = factor
            assert_same(one(x), np.float32(factor) * x)
            assert_same(two(x), np.float32(factors[1]) * x)


@attack(
    "practice/speed.md#push", x=arrays((4,), dtypes("float", "int")), i=st.integers(-4, 3), value=st.integers(-9, 9)
)
def test_a_pushed_value_is_at_its_place(x: Array, i: int, value: int) -> None:
    expected = x.copy()
    expected[i] = value
    np.testing.assert_array_equal(solution("practice/speed.md#push")(jnp.array(x), i, value), expected)


@attack(
    "practice/speed.md#energy",
    xs=arrays(st.sampled_from([(5,), (1,), (0,)]), dtypes("float") | st.just(np.dtype("int32"))),
    ys=arrays(st.sampled_from([(3,), (0,)]), odd=False),
    many=st.booleans(),
)
def test_an_energy_is_that_of_all_pairs(xs: Array, ys: Array, many: bool) -> None:
    ys = ys.astype(xs.dtype)
    xs = np.tile(xs, 800) if many else xs  # more than float16 can count
    with np.errstate(all="ignore"):
        expected = np.exp(-np.abs(xs.astype(np.float64)[:, None] - ys)).sum()
    found = np.asarray(jitted(solution("practice/speed.md#energy"))(xs, ys), np.float64)
    assert_same(found, expected, rtol=1e-2 if xs.dtype == np.float16 else 1e-4)


class Machine:
    """A clock, and a function that takes these times: to compile, to return, and to compute."""

    def __init__(self, compiling: int, returning: int, computing: int) -> None:
        self.times = compiling, returning, returning + computing
        self.now = self.done = self.calls = 0

    def clock(self) -> float:
        return float(self.now)

    def __call__(self, x: Any) -> "Machine":
        self.now += self.times[0] * (not self.calls)
        self.calls += 1
        self.done = max(self.done, self.now) + self.times[2]
        self.now += self.times[1]
        return self

    def block_until_ready(self) -> "Machine":
        self.now = max(self.now, self.done)
        return self


@attack("practice/speed.md#stopwatch", times=st.tuples(*[st.integers(0, 99)] * 3))
def test_a_stopwatch_takes_the_time_of_one_call(times: tuple[int, int, int]) -> None:
    machine = Machine(*times)
    assert solution("practice/speed.md#stopwatch")(machine, 1.0, machine.clock) == times[1] + times[2]


# --- Debugging -------------------------------------------------------------------------------------------------------


@attack("practice/debug.md#announce", x=arrays(st.sampled_from([(3,), (), (2, 1)]), dtypes("float", "int")), call=once)
def test_the_largest_element_is_announced(x: Array, call: Transformation) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        found = call(solution("practice/debug.md#announce"))(x)
        jax.effects_barrier()
    np.testing.assert_array_equal(found, x)
    assert_same(float(output.getvalue().removeprefix("largest: ")), np.max(x).astype(np.float64))


STAGES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "root": (jnp.sqrt, np.sqrt),
    "log": (jnp.log, np.log),
    "less": (lambda x: x - 2, lambda x: x - 2),
    "no NaN": (jnp.nan_to_num, np.nan_to_num),
    "all": (lambda x: x - x.max(), lambda x: x - x.max()),
    "count": (lambda x: (x > 0).astype(jnp.int32), lambda x: (x > 0).astype(np.int32)),
}


@attack("practice/debug.md#culprit", x=arrays((3,)), names=st.lists(st.sampled_from([*STAGES]), max_size=4))
def test_the_culprit_is_the_first_stage_with_nan(x: Array, names: list[str]) -> None:
    expected, now = -1, x
    with np.errstate(all="ignore"):
        for number, name in enumerate(names):
            now = STAGES[name][1](now)
            if np.isnan(now).any():
                expected = number
                break
    assert solution("practice/debug.md#culprit")([STAGES[name][0] for name in names], jnp.asarray(x)) == expected


@attack(
    "practice/debug.md#log_mean_exp",
    x=arrays(st.sampled_from([(5,), (1,)]), odd=False),
    scale=st.sampled_from([1, 100, 1e37]),
)
def test_a_log_mean_exp_is_right_for_any_size(x: Array, scale: float) -> None:
    x = x * np.float32(scale)
    wide = x.astype(np.float64)
    parts = np.exp(wide - wide.max())
    answer = solution("practice/debug.md#log_mean_exp")
    assert_same(jitted(answer)(x), wide.max() + np.log(parts.mean()))
    assert_same(sloped(answer)(x), parts / parts.sum())


@cache
def added(function: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of what a function returns."""
    return lambda *args: function(*args).sum()


@attack(
    "practice/debug.md#distances",
    points=arrays(st.sampled_from([(4, 3), (1, 1)]), odd=False),
    scale=st.sampled_from([1, 1e-4, 1e-15, 1e15]),
    far=st.sampled_from([0, 10000]),
)
def test_a_distance_is_right_near_and_far(points: Array, scale: float, far: float) -> None:
    points = ((points + far) * scale).astype(np.float32)
    gaps = points.astype(np.float64)[:, None] - points
    expected = np.sqrt((gaps**2).sum(-1))
    answer = solution("practice/debug.md#distances")
    assert_same(jitted(answer)(points), expected, atol=0)
    slope = sloped(added(answer))(points)
    assert_same(slope, 2 * (gaps / np.where(expected, expected, 1)[..., None]).sum(1), atol=1e-3)


@attack("practice/debug.md#checked_sqrt", x=arrays(st.sampled_from([(3,), (1,)])))
def test_a_checked_root_raises_for_what_has_none(x: Array) -> None:
    error, roots = jitted(solution("practice/debug.md#checked_sqrt"))(jnp.asarray(x))
    if (x >= 0).all():
        error.throw()
        assert_same(roots, np.sqrt(x.astype(np.float64)))
    else:
        with pytest.raises(Exception, match="lowest"):
            error.throw()


def test_what_the_roots_of_exercises_miss_is_shown() -> None:
    shows("practice/debug.md#checked_sqrt", "Neither finds a negative number closer to zero", "jnp.array([-1e-40])")
    shows("practice/train.md#babylonian", "too few for a very large or a very small number", "(1e36, 1e-36, -1.0)")
    root = solution("practice/train.md#babylonian")
    for a in (1e36, 1e-36, -1.0):
        found, expected = float(root(jnp.float32(a))), float(np.sqrt(a, where=a > 0, out=np.array(np.nan)))
        assert not abs(found / expected - 1) < 0.1


@attack(
    "practice/debug.md#weighted_variance",
    x=arrays((5,), dtypes("float") | st.just(np.dtype("int32")), odd=False),
    weights=arrays((5,), "int8"),
    far=st.sampled_from([0, 1000]),
    call=once,
)
def test_a_variance_has_its_weights(x: Array, weights: Array, far: int, call: Transformation) -> None:
    weights = np.abs(weights) + np.int8(1)
    x = x if x.dtype == np.float16 else x + x.dtype.type(far)
    wide = x.astype(np.float64)
    expected = np.average((wide - np.average(wide, weights=weights)) ** 2, weights=weights)
    found = call(solution("practice/debug.md#weighted_variance"))(x, weights.astype(np.float32))
    assert_same(found, expected, rtol=1e-3, atol=1e-2)


@attack(
    "practice/debug.md#quadratic_roots",
    a=st.sampled_from([1.0, -2.0, 0.5]),
    small=st.integers(-18, 18),
    gap=st.integers(1, 18) | st.sampled_from([1000, 4000]),
    call=once,
)
def test_both_roots_have_their_digits(a: float, small: int, gap: int, call: Transformation) -> None:
    low, high = small / 2, (small + gap) / 2  # whose sum and product float32 has
    found = call(solution("practice/debug.md#quadratic_roots"))(
        *map(jnp.float32, (a, -a * (low + high), a * low * high))
    )
    np.testing.assert_allclose(found, [low, high], rtol=2e-4, atol=1e-30)


@attack(
    "practice/debug.md#agrees",
    x=floats(odd=False, empty=False),
    at=st.integers(0, 4),
    wrong=st.sampled_from([0.1, -0.1]),
)
def test_a_wrong_slope_is_told_from_a_right_one(x: Array, at: int, wrong: float) -> None:
    x = np.clip(x, -9, 9)
    right = np.cos(x.astype(np.float64)) + 2 * x

    def f(x: Array) -> float:
        x = x.astype(np.float32)
        return float((np.sin(x) + x * x).sum(dtype=np.float32))

    agrees = solution("practice/debug.md#agrees")
    assert agrees(f, lambda x: right, x)
    off = right.copy()
    off[at % x.size] += 1.01 * wrong * max(1, abs(right[at % x.size]) / (1 - abs(wrong)))
    assert not agrees(f, lambda x: off, x)
    off[at % x.size] = np.nan
    assert not agrees(f, lambda x: off, x)


# --- Several devices -------------------------------------------------------------------------------------------------


def in_blocks(function: Any, *, mesh: Any, in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """`shard_map` of a mesh of one axis, "d", by `vmap` over as many blocks, for specs that split one axis."""
    specs = (in_specs,) if isinstance(in_specs, jax.P) else in_specs
    places = [[*spec].index("d") if "d" in spec else None for spec in specs]

    def run(*args: Any) -> Any:
        blocks = [
            arg if place is None else jnp.stack(jnp.split(arg, mesh.size, place))
            for arg, place in zip(args, places, strict=True)
        ]
        axes = [None if place is None else 0 for place in places]
        found = jax.vmap(function, in_axes=axes, axis_name="d", axis_size=mesh.size)(*blocks)
        if "d" in out_specs:
            return found.reshape(-1, *found.shape[2:])
        return jnp.where((found == found[:1]).all(), found[0], jnp.nan)  # P() says that all are equal

    return run


@cache
def on_devices(name: str, count: int) -> Callable[..., Any]:
    """The solution on so many devices."""
    fake = SimpleNamespace(shard_map=in_blocks, lax=jax.lax, nn=jax.nn)
    names = program(f"practice/scale.md#{name}", "solution", jax=fake, jnp=jnp, P=jax.P)
    return jax.jit(partial(names["solution"], SimpleNamespace(size=count)))


devices = st.sampled_from([4, 1, 2])


@attack("practice/scale.md#global_mean", x=arrays((8,), dtypes("float", "int"), odd=False), size=devices)
def test_a_mean_is_that_of_all_devices(x: Array, size: int) -> None:
    assert_same(on_devices("global_mean", size)(x), x.astype(np.float64).mean())


@attack("practice/scale.md#global_softmax", x=arrays((8,), odd=False), scale=st.sampled_from([1, 1e30]), size=devices)
def test_a_softmax_is_that_of_all_devices(x: Array, scale: float, size: int) -> None:
    x = x * np.float32(scale)
    parts = np.exp(x.astype(np.float64) - x.max())
    assert_same(on_devices("global_softmax", size)(x), parts / parts.sum())


@attack(
    "practice/scale.md#two_layers",
    x=arrays((2, 3), odd=False),
    w1=arrays((3, 4), odd=False),
    w2=arrays((4, 3), odd=False),
    size=devices,
)
def test_two_layers_are_those_of_one_device(x: Array, w1: Array, w2: Array, size: int) -> None:
    assert_same(on_devices("two_layers", size)(x, w1, w2), np.maximum(x @ w1, 0) @ w2)


@attack("practice/scale.md#second_difference", x=arrays(st.sampled_from([(8,), (4,)])), size=devices)
def test_a_second_difference_goes_around_the_ring(x: Array, size: int) -> None:
    with np.errstate(all="ignore"):
        expected = np.roll(x, 1) - 2 * x + np.roll(x, -1)
    assert_same(on_devices("second_difference", size)(x), expected)


# --- Training --------------------------------------------------------------------------------------------------------


@attack(
    "practice/train.md#cross_entropy",
    logits=arrays(st.sampled_from([(4, 3), (1, 1)]), odd=False),
    scale=st.sampled_from([1, 1000]),
    labels=arrays((4,), "int8"),
)
def test_a_cross_entropy_is_right_for_any_logits(logits: Array, scale: int, labels: Array) -> None:
    logits, labels = logits * scale, labels[: len(logits)] % logits.shape[1]
    wide = logits.astype(np.float64)
    logs = wide - wide.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    answer, rows = solution("practice/train.md#cross_entropy"), np.arange(len(labels))
    assert_same(jitted(answer)(logits, labels), -logs[rows, labels].mean())
    expected = (np.exp(logs) - np.eye(logits.shape[1])[labels]) / len(labels)
    assert_same(sloped(answer)(logits, labels), expected, atol=1e-3)


@attack(
    "practice/train.md#momentum_step",
    x=arrays((3, 4), odd=False),
    rate=st.sampled_from([0.0, 0.5, 2.0]),
    decay=st.sampled_from([0.0, 0.5]),
    call=once,
)
def test_momentum_is_added_in_every_leaf(x: Array, rate: float, decay: float, call: Transformation) -> None:
    trees = [{"w": [row[:3].reshape(1, 3)], "b": (row[3], None)} for row in x]
    params, velocity = call(solution("practice/train.md#momentum_step"))(*trees, rate, decay)
    new = decay * x[1] + x[2]
    for found, expected in ((params, x[0] - rate * new), (velocity, new)):
        assert str(jax.tree.structure(found)) == str(jax.tree.structure(trees[0]))
        assert_same(np.append(np.ravel(found["w"][0]), found["b"][0]), expected)


@attack("practice/train.md#epoch", key=keys(), pair=st.sampled_from([(7, 2), (1, 1), (6, 3), (5, 5)]))
def test_an_epoch_has_no_example_twice(key: jax.Array, pair: tuple[int, int]) -> None:
    count, size = pair
    found = np.asarray(solution("practice/train.md#epoch")(key, count, size))
    assert found.shape == (count // size, size)
    assert len(set(found.ravel().tolist())) == found.size and set(found.ravel().tolist()) <= set(range(count))


@attack(
    "practice/train.md#fit",
    x=arrays(st.sampled_from([(5, 2), (1, 1)]), odd=False),
    steps=st.sampled_from([4, 0, 1]),
    rate=st.sampled_from([0.0, 0.01]),
)
def test_a_fit_descends_as_written(x: Array, steps: int, rate: float) -> None:
    y = x[:, 0] * 2 - 1
    w, losses = np.zeros(x.shape[1]), []
    for _ in range(steps):
        losses.append(((x @ w - y) ** 2).mean())
        w = w - rate * 2 * x.T @ (x @ w - y) / len(y)
    found, before = jax.jit(solution("practice/train.md#fit"), static_argnums=2)(x, y, steps, rate)
    assert_same(found, w, rtol=1e-3)
    assert_same(before, losses, rtol=1e-3)


def pulled_back(x: Any, g: Any, limit: Any) -> Any:
    """The value that passes forward, and the gradient that passes back."""
    passed, pull = jax.vjp(lambda x: solution("practice/train.md#clip_gradient")(x, limit), x)
    return passed, pull(g)[0]


@attack(
    "practice/train.md#clip_gradient", x=arrays((3,)), g=arrays((3,)), limit=st.sampled_from([0.0, 1.0, 2.5]), call=once
)
def test_a_gradient_is_clipped_on_its_way_back(x: Array, g: Array, limit: float, call: Transformation) -> None:
    passed, found = call(pulled_back)(x, g, limit)
    np.testing.assert_array_equal(passed, x)
    assert_same(found, np.clip(g, -limit, limit))


def centered(x: Array) -> Array:
    """A function of NumPy that needs all of x, and gives float64."""
    return np.asarray(np.sort(x, axis=None).reshape(x.shape) - x.astype(np.float64).mean())


@attack(
    "practice/train.md#on_host",
    x=arrays(shapes(0, 2, False), dtypes("float", "int"), odd=False),
)
def test_a_function_of_the_host_sees_one_array(x: Array) -> None:
    answer, expected = with_first("practice/train.md#on_host", centered), centered(x).astype(np.float32)
    assert_same(jitted(answer)(x), expected)
    assert_same(jitted(mapped(answer))(np.stack([x, x])), np.stack([expected] * 2))


@attack(
    "practice/train.md#babylonian",
    a=st.floats(1e-12, 1e12).map(np.float32),
    call=transformations(),
)
def test_a_root_and_its_slope_are_found(a: np.float32, call: Transformation) -> None:
    answer = solution("practice/train.md#babylonian")
    assert_same(call(answer)(a), float(a) ** 0.5, atol=0)
    assert_same(sloped(answer)(a), 0.5 / float(a) ** 0.5, atol=0)


def inside(x: Any) -> Any:
    """A density that is zero where a coordinate is negative."""
    return jnp.where((x >= 0).all(), 0.0, -jnp.inf)


@attack("practice/train.md#metropolis", key=keys(), far=st.sampled_from([0, 1, 50]))
def test_a_walk_never_goes_where_the_density_is_zero(key: jax.Array, far: int) -> None:
    start = jnp.full(2, float(far))
    walk = np.asarray(jax.jit(solution("practice/train.md#metropolis"), static_argnums=(1, 3))(key, inside, start, 50))
    assert walk.shape == (50, 2) and (walk >= 0).all()
    steps = np.diff(np.concatenate([start[None], walk]), axis=0)
    assert np.abs(steps).max() < 7
    if far == 50:  # where the density is the same all around, every proposal is taken
        assert (steps != 0).all()
