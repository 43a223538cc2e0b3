"""Programs that once returned a wrong number for inputs that their authors had not thought of."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.recommended.shown import shows
from tests.site.strategies import (
    Transformation,
    arrays,
    assert_same,
    floats,
    keys,
    masked,
    shapes,
    slopes,
    transformations,
)

LAX = partial(program, "speed/lax.md", "around_peak")
INTERVALS = partial(program, "extend/transformations.md", "bounds", "interpret", "bound")
moving = jax.jit(lambda x, i: x[jax.ds(i, 2)])
distance_and_slope = jax.jit(jax.value_and_grad(lambda p, target: jnp.sum((p - target) ** 2)))


@attack(x=floats(odd=False, empty=False), call=transformations())
def test_a_window_around_the_peak_contains_it(x: np.ndarray[Any, Any], call: Transformation) -> None:
    if x.size < 3:
        return  # which raises
    found = np.asarray(call(LAX()["around_peak"])(x))
    start = min(max(int(x.argmax()) - 1, 0), x.size - 3)
    assert_same(found, x[start : start + 3])
    assert x.max() in found


@attack(
    "answers/shapes-and-indexing.md#dynamic-slice",
    x=arrays((5,), odd=False),
    start=st.integers(0, 3),
)
def test_a_moving_window_inside_the_array_is_a_slice(x: np.ndarray[Any, Any], start: int) -> None:
    assert_same(moving(x, start), x[start : start + 2])


@attack("answers/shapes-and-indexing.md#dynamic-slice", start=st.integers(-9, 9))
def test_a_filled_window_has_nothing_from_the_other_end(start: int) -> None:
    window = program("answers/shapes-and-indexing.md#dynamic-slice", "window")["window"]
    found = window(jnp.arange(6), start)[1]
    assert found.tolist() == [i if 0 <= i < 6 else -1 for i in range(start, start + 3)]


@attack("answers/numpy.md#masked-arrays", given_pair=masked())
def test_masked_reductions_are_those_of_the_valid_values(given_pair: tuple[Any, Any]) -> None:
    x, valid = given_pair
    kept = x[valid].astype(np.float64)
    marked = jnp.where(valid, x, jnp.nan)
    assert_same(jnp.mean(x, where=valid), kept.mean())
    assert_same(jnp.std(x, where=valid), kept.std(), atol=1e-3)
    assert_same(jnp.max(x, where=valid, initial=-jnp.inf), kept.max())
    assert_same(jnp.nanmedian(marked), np.median(kept))
    assert x[int(jnp.nanargmax(marked))] == kept.max() and valid[int(jnp.nanargmax(marked))]
    assert_same(jnp.nancumsum(marked), np.cumsum(np.where(valid, x, 0)))


@cache
def slopes_of_spread() -> Callable[..., Any]:
    """The gradients of the answer's variance and standard deviation, with the invalid values replaced."""
    functions = [lambda x, valid, f=f: f(jnp.where(valid, x, 0), where=valid) for f in (jnp.var, jnp.std)]
    return jax.jit(lambda x, valid: [jax.grad(function)(x, valid) for function in functions])


@attack("answers/numpy.md#masked-arrays", given_pair=masked(), bad=st.sampled_from([np.nan, np.inf, -np.inf, -999.0]))
def test_invalid_values_do_not_reach_a_gradient(given_pair: tuple[Any, Any], bad: float) -> None:
    shows("answers/numpy.md#masked-arrays", "Replace invalid values *before* `sqrt`, `log`, `std` or `var`")
    x, valid = given_pair
    spread = x[valid].std(dtype=np.float64)
    of_variance, of_deviation = slopes_of_spread()(np.where(valid, x, np.float32(bad)), valid)
    expected = np.where(valid, 2 * (x - x[valid].mean(dtype=np.float64)) / valid.sum(), 0)
    assert_same(of_variance, expected)
    if spread > 0.1:  # of equal values it is NaN, with and without a mask
        assert_same(of_deviation, expected / (2 * spread), atol=1e-3)


@attack("answers/numpy.md#masked-arrays", given_pair=masked(), offset=st.sampled_from([0, 2**24, -(2**24), 2**30]))
def test_masked_integers_and_booleans_are_exact(given_pair: tuple[Any, Any], offset: int) -> None:
    texts = (
        "`jnp.iinfo(x.dtype).min` for integers",
        "For booleans, call `any`",
        "put in `iinfo.min` for `argmax`, 0 for `cumsum`",
    )
    shows("answers/numpy.md#masked-arrays", *texts)
    numbers, valid = given_pair
    x = (numbers.astype(np.int32) + offset).astype(np.int32)
    least = np.iinfo(np.int32).min
    assert int(jnp.max(x, where=valid, initial=np.iinfo(x.dtype).min)) == x[valid].max()
    filled = jnp.where(valid, x, least)
    place = int(jnp.argmax(filled))
    assert valid[place] and x[place] == x[valid].max()
    if abs(offset) <= 2**24:
        assert jnp.cumsum(jnp.where(valid, x, 0)).tolist() == np.cumsum(np.where(valid, x, 0)).tolist()
    assert bool(jnp.any(numbers > 0, where=valid)) == (numbers > 0)[valid].any()


@attack("answers/numpy.md#missing-function", x=arrays(shapes(1)))
def test_a_renamed_function_is_that_of_numpy(x: np.ndarray[Any, Any]) -> None:
    assert_same(jnp.sort(x, axis=0), np.sort(x, axis=0))
    assert_same(jnp.all(jnp.asarray(x)), np.all(x))
    assert_same(jnp.isin(x, x[:1]), np.isin(x, x[:1]))
    with np.errstate(all="ignore"):
        if x.size and x.dtype != bool and np.isfinite(x).all():  # an empty one raises, and NaN stays NaN
            assert_same(jnp.trapezoid(x), np.trapezoid(x))


@attack(
    "answers/numpy.md#ufunc-methods", x=arrays(shapes(1, 2)), at=st.lists(st.integers(0, 4), min_size=1, max_size=5)
)
def test_methods_of_ufuncs_are_those_of_numpy(x: np.ndarray[Any, Any], at: list[int]) -> None:
    with np.errstate(all="ignore"):
        if len(x):
            assert_same(jnp.maximum.accumulate(x), np.maximum.accumulate(x))
            assert_same(jax.lax.cummax(jnp.asarray(x)), np.maximum.accumulate(x))
        assert_same(jnp.subtract.outer(x, x[:2]), np.subtract.outer(x, x[:2]))
        rows = np.array([i for i in at if i < len(x)], int)
        expected = x.copy()
        np.add.at(expected, rows, 1)
        assert_same(jnp.asarray(x).at[rows].add(1), expected)
        assert_same(jnp.add.at(jnp.asarray(x), rows, 1, inplace=False), expected)


@attack("answers/numpy.md#ufunc-methods", x=arrays(shapes(1, 2), st.just(np.dtype("int8"))), mask=arrays((4,), "bool"))
def test_small_integers_do_not_wrap_around_in_running_sums(x: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> None:
    texts = (
        "`jnp.cumsum(x, axis=0)` and `jnp.cumprod(x, axis=0)`",
        "a wider `dtype=`",
        "so convert booleans and small integers first",
    )
    shows("answers/numpy.md#ufunc-methods", *texts)
    x = 13 * x
    wide = x.astype(np.int32)
    assert_same(jnp.cumsum(x, axis=0, dtype=jnp.int32), np.cumsum(wide, axis=0))
    assert_same(jnp.cumprod(x[:3], axis=0, dtype=jnp.int32), np.cumprod(wide[:3], axis=0))
    if len(x):
        assert_same(jnp.add.accumulate(x, dtype=jnp.int32), np.add.accumulate(wide))
    starts = np.array([0, 2])
    found = jnp.add.reduceat(jnp.asarray(mask).astype(int), starts)
    assert found.tolist() == np.add.reduceat(mask.astype(int), starts).tolist()


@attack("answers/numpy.md#numpy-table", table=arrays((3,)), i=st.integers(-3, 2), call=transformations())
def test_a_table_is_looked_up_as_numpy_does(table: np.ndarray[Any, Any], i: int, call: Transformation) -> None:
    lookup = program("answers/numpy.md#numpy-table", "lookup", table=table)["lookup"]
    assert_same(call(lookup)(i), table[i])


@attack("answers/numpy.md#array-api", x=floats(odd=False, empty=False), call=transformations())
def test_a_softmax_for_both_libraries_is_one(x: np.ndarray[Any, Any], call: Transformation) -> None:
    softmax = program("answers/numpy.md#array-api", "softmax")["softmax"]
    assert_same(call(softmax)(x), softmax(x.astype(np.float64)))
    assert_same(softmax(x.astype(np.float64)).sum(), 1)
    slope = jax.grad(lambda x: softmax(x)[0])(jnp.asarray(x))
    assert_same(slope, slopes(lambda x: softmax(x)[0], x), atol=1e-3)


@attack("answers/numpy.md#other-libraries", target=arrays((2,), odd=False))
def test_scipy_finds_the_minimum_with_the_gradient(target: np.ndarray[Any, Any]) -> None:
    from scipy import optimize

    found = optimize.minimize(distance_and_slope, np.zeros(2), args=(target,), jac=True)
    assert_same(found.x, target, atol=1e-2)


@attack("answers/derivatives.md#no-grad", w=st.integers(-4, 4), x=st.integers(-4, 4))
def test_a_stopped_target_counts_as_a_constant(w: int, x: int) -> None:
    loss = program("answers/derivatives.md#no-grad", "loss")["loss"]
    target = w * x + 1.0
    assert_same(jax.grad(loss)(float(w), float(x)), slopes(lambda w: (w * x - target) ** 2, w), atol=1e-3)


@cache
def of_a_field() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the answer's diagonal of its field's derivative, and all of that."""
    found = program("answers/derivatives.md#jacobian-diagonal", "diagonal", "field")
    return partial(found["diagonal"], found["field"]), jax.jit(jax.jacfwd(found["field"]))


@attack("answers/derivatives.md#jacobian-diagonal", x=floats(odd=False), call=transformations())
def test_a_diagonal_is_that_of_the_matrix(x: np.ndarray[Any, Any], call: Transformation) -> None:
    if x.size:
        diagonal, matrix = of_a_field()
        assert_same(call(diagonal)(x), np.diag(matrix(x)))


@attack(
    "answers/memory.md#which-array",
    n=st.integers(1, 5),
    inside=st.sampled_from(["plain", "jit", "scan", "cond", "vmap"]),
)
def test_the_largest_array_is_found_wherever_it_is_made(n: int, inside: str) -> None:
    def table(x: jax.Array) -> jax.Array:
        return (x[:, None] - x).sum()

    wrapped: dict[str, Callable[[jax.Array], Any]] = {
        "plain": table,
        "jit": jax.jit(table),
        "scan": lambda x: jax.lax.map(lambda _: table(x), jnp.arange(2)),
        "cond": lambda x: jax.lax.cond(x[0] > 0, table, lambda x: x[0], x),
        "vmap": lambda x: jax.vmap(jax.jit(table))(x[None]),
    }
    values = program("answers/memory.md#which-array", "values")["values"]
    x = jax.ShapeDtypeStruct((100 * n,), jnp.float32)
    assert_same(max(values(jax.make_jaxpr(wrapped[inside])(x)))[0], 4 * (100 * n) ** 2 / 1e9)


@attack("answers/memory.md#large-jacobian", x=floats(odd=False, empty=False))
def test_a_jacobian_by_columns_is_the_whole_one(x: np.ndarray[Any, Any]) -> None:
    names = program("answers/memory.md#large-jacobian", "full", "by_column")
    assert_same(names["by_column"](x), names["full"](x))


@attack(low=st.integers(-8, 8), width=st.integers(0, 8), where=st.integers(0, 8))
def test_bounds_hold_at_every_point(low: int, width: int, where: int) -> None:
    left, right = low / 4, (low + width) / 4
    point = left + (right - left) * where / 8
    functions: list[Callable[[Any], Any]] = [
        lambda x: x * jnp.tanh(2 * x) - 0.3 * x**2,
        lambda x: x**3 - x**2,
        lambda x: 1.0 - x * x,
    ]
    for function in functions:
        least, most = INTERVALS()["bounds"](function)(left, right)
        assert least - 1e-4 <= function(point) <= most + 1e-4


PATTERNS = st.sampled_from([0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800000, 0x80000000, 0x3F800001, 1])


@attack(patterns=st.lists(PATTERNS | st.integers(0, 2**32 - 1), min_size=5, max_size=5), key=keys())
def test_a_number_rounded_at_random_is_one_of_its_neighbors(patterns: list[int], key: jax.Array) -> None:
    x = np.array(patterns, np.uint32).view(np.float32)
    rounded = program("train/mixed-precision.md", "round_randomly")["round_randomly"](jnp.asarray(x), key)
    below = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    above = ((x.view(np.uint32) | np.uint32(0xFFFF)) + np.uint32(1)).view(np.float32)
    found = np.asarray(rounded, np.float32)
    nan = np.isnan(x)
    assert np.isnan(found[nan]).all()  # that of a GPU has only ones
    assert ((found == below) | (found == above))[~nan].all()


def test_products_in_calls_and_scans_are_counted_each_time() -> None:
    products = program("train/mixed-precision.md", "products")["products"]
    layer, w = jax.jit(lambda w, x: jnp.tanh(x @ w)), jnp.ones((4, 4))
    assert products(lambda w: layer(w, layer(w, layer(w, w))), w) == {"float32": 3}
    assert products(jax.grad(lambda w: layer(w, layer(w, layer(w, w))).sum()), w) == {"float32": 9}
    assert products(lambda w: jax.lax.scan(lambda c, _: (c @ w, None), w, None, 5)[0], w) == {"float32": 5}
