"""Attacks on the answers about `vmap`: each against a Python loop over the examples, in NumPy."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, keys

Array = np.ndarray[Any, Any]
PAGE = "answers/vmap.md"
FINITE = partial(arrays, odd=False)


def made(anchor: str, *wanted: str) -> Any:
    """Return what an answer defines under these names: one of them, or a tuple of all."""
    found = program(f"{PAGE}#{anchor}", *wanted)
    return found[wanted[0]] if len(wanted) == 1 else tuple(found[name] for name in wanted)


@cache
def mapped(anchor: str, name: str, in_axes: Any, **bound: Any) -> Any:
    """A function that an answer defines, mapped and compiled."""
    return jax.jit(jax.vmap(partial(made(anchor, name), **bound), in_axes))


@attack(f"{PAGE}#in-axes", w=FINITE((2,)), rows=FINITE((3, 2)))
def test_entries_say_what_is_mapped_and_what_is_shared(w: Array, rows: Array) -> None:
    shows(f"{PAGE}#in-axes", "jax.vmap(predict, in_axes=(None, 0))(w, rows)", "in_axes=(None, 1))(w, rows.T)")
    expected = [float(np.dot(w, row)) for row in rows]
    assert_same(mapped("in-axes", "predict", (None, 0))(w, rows), expected)
    assert_same(mapped("in-axes", "predict", (None, 1))(w, rows.T), expected)
    assert_same(mapped("in-axes", "predict", 0)(rows, rows), (rows**2).sum(axis=1))


@attack(f"{PAGE}#inconsistent-sizes", points=FINITE((3, 2)), home=FINITE((2,)))
def test_a_shared_argument_meets_each_example(points: Array, home: Array) -> None:
    shows(f"{PAGE}#inconsistent-sizes", "jax.vmap(distance, in_axes=(0, None))(points, home)")
    assert_same(
        mapped("inconsistent-sizes", "distance", (0, None))(points, home), np.linalg.norm(points - home, axis=1)
    )
    with pytest.raises(ValueError, match="inconsistent sizes"):
        jax.vmap(made("inconsistent-sizes", "distance"))(points, home)


@attack(f"{PAGE}#keyword-arguments", xs=FINITE((2, 2)), weights=FINITE((2,)), power=st.integers(0, 3))
def test_bound_keywords_are_shared(xs: Array, weights: Array, power: int) -> None:
    weigh = made("keyword-arguments", "weigh")
    shows(f"{PAGE}#keyword-arguments", "jax.vmap(partial(weigh, weights=weights, power=2))(xs)")
    assert_same(jax.vmap(partial(weigh, weights=weights, power=power))(xs), weights * xs**power)
    assert_same(jax.vmap(weigh, in_axes=(0, None))(xs, weights), weights * xs)
    assert_same(jax.vmap(weigh)(xs, weights=weights), weights[:, None] * xs)  # the trap


@cache
def pairs() -> Any:
    """The table of all pairs, compiled."""
    return jax.jit(made("all-pairs", "table"))


@attack(f"{PAGE}#all-pairs", rows=FINITE((2, 2)), columns=FINITE((3, 2)))
def test_a_table_has_a_row_for_each_first_argument(rows: Array, columns: Array) -> None:
    rows, columns = rows / 4, columns / 4
    assert_same(pairs()(rows, columns), [[np.exp(-((a - b) ** 2).sum()) for b in columns] for a in rows])


@attack(f"{PAGE}#list-of-models", weights=FINITE((3, 3)), x=FINITE((2,)))
def test_stacked_models_predict_as_each_of_them(weights: Array, x: Array) -> None:
    models = [{"w": row[:2], "b": row[2]} for row in weights]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)
    together = mapped("list-of-models", "predict", (0, None))(stacked, x)
    assert_same(together, [model["w"] @ x + model["b"] for model in models])
    second = jax.tree.map(lambda leaf: leaf[1], stacked)
    assert_same(second["w"], models[1]["w"])


@slow_attack(f"{PAGE}#random-keys", key=keys(), n=st.sampled_from([2, 5]))
def test_each_example_has_noise_of_its_own(key: jax.Array, n: int) -> None:
    shows(f"{PAGE}#random-keys", "jax.vmap(noisy)(keys, xs)", "`jax.random.fold_in(key, i)`")
    xs = np.zeros(n, np.float32)
    found = mapped("random-keys", "noisy", 0)(jax.random.split(key, n), xs)
    assert len(np.unique(found)) == n
    indexed = mapped("random-keys", "noisy", 0)(jax.vmap(partial(jax.random.fold_in, key))(np.arange(n)), xs)
    longer = mapped("random-keys", "noisy", 0)(jax.vmap(partial(jax.random.fold_in, key))(np.arange(5)), np.zeros(5))
    assert_same(indexed, longer[:n], 1e-6, 1e-6)  # whatever the size of the batch is


@cache
def root() -> tuple[Any, Any]:
    """The root or zero, and its derivative."""
    function = made("if-under-vmap", "root_or_zero")
    return jax.jit(jax.vmap(function)), jax.jit(jax.vmap(jax.grad(function)))


@attack(f"{PAGE}#if-under-vmap", x=arrays((4,)))
def test_a_choice_keeps_nan_and_has_a_derivative(x: Array) -> None:
    value, slope = root()
    with np.errstate(all="ignore"):
        positive = np.where(x > 0, x, 1.0)
        assert_same(value(x), np.where(np.isnan(x), np.nan, np.where(x > 0, np.sqrt(positive), 0)))
        assert_same(slope(x), np.where(np.isnan(x), np.nan, np.where(x > 0, 0.5 / np.sqrt(positive), 0)))


@slow_attack(
    f"{PAGE}#static-under-vmap", batch=arrays((2, 5)), size=st.integers(1, 5), name=st.sampled_from(["max", "sum"])
)
def test_a_size_and_a_function_reach_each_example(batch: Array, size: int, name: str) -> None:
    mapped_pool, fast = made("static-under-vmap", "mapped", "fast")
    parts = batch[:, : 5 // size * size].reshape(2, -1, size).astype(float)
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(parts, axis=2)
    assert_same(fast(batch, size, getattr(jnp, name), "fast"), expected)
    if size == 2:
        assert_same(mapped_pool(batch, size, getattr(jnp, name), "mapped"), expected)


@attack(f"{PAGE}#out-axes", batch=FINITE((4, 3)), scale=st.integers(-4, 4))
def test_the_axis_of_the_examples_goes_where_it_is_sent(batch: Array, scale: int) -> None:
    scaled, sums, shared = made("out-axes", "f")(batch, scale / 2)
    assert_same(scaled, (batch * scale / 2).T)
    assert_same(sums, batch.sum(axis=1))
    assert shared == scale
    shows(f"{PAGE}#out-axes", "`jnp.moveaxis(y, 0, 1)`")
    assert_same(jnp.moveaxis(jnp.asarray(batch), 0, 1), batch.T)


@attack(f"{PAGE}#is-it-a-loop", w=FINITE((3,)), xs=FINITE((4, 3)))
def test_a_map_and_a_product_by_hand_agree(w: Array, xs: Array) -> None:
    by_hand = made("is-it-a-loop", "by_hand")
    expected = np.tanh(xs.astype(float) @ w / 8)
    assert_same(mapped("is-it-a-loop", "score", (None, 0))(w / 8, xs), expected)
    assert_same(by_hand(w / 8, xs), expected)


@cache
def gradients() -> Any:
    """One gradient for each example, compiled."""
    return jax.jit(jax.vmap(jax.grad(made("per-example-gradients", "loss")), in_axes=(None, 0, 0)))


@attack(f"{PAGE}#per-example-gradients", w=FINITE((2,)), xs=FINITE((3, 2)), ys=FINITE((3,)))
def test_one_gradient_for_each_example(w: Array, xs: Array, ys: Array) -> None:
    shows(f"{PAGE}#per-example-gradients", "jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)")
    expected = [2 * (w @ x - y) * x for x, y in zip(xs.astype(float), ys, strict=True)]
    assert_same(gradients()(w, xs, ys), expected, atol=1e-2)


@cache
def normalized() -> Any:
    """Normalization over the batch, compiled."""
    return jax.jit(jax.vmap(made("across-the-batch", "normalize"), axis_name="batch"))


@attack(f"{PAGE}#across-the-batch", xs=FINITE((4, 2)))
def test_a_collective_sees_the_whole_batch(xs: Array) -> None:
    found, index = normalized()(xs)
    wide = xs.astype(float)
    with np.errstate(all="ignore"):
        assert_same(found, (wide - wide.mean(axis=0)) / wide.std(axis=0), rtol=1e-3, atol=1e-3)
    assert index.tolist() == [0, 1, 2, 3]


@cache
def vectorized() -> tuple[Any, Any]:
    """The two functions of the answer, compiled."""
    clip_tail, cross = made("np-vectorize", "clip_tail", "cross")
    return jax.jit(clip_tail), jax.jit(cross)


@slow_attack(f"{PAGE}#np-vectorize", x=arrays((2, 2)), a=FINITE((5, 1, 3)), b=FINITE((4, 3)))
def test_a_vectorized_function_broadcasts_as_numpy_does(x: Array, a: Array, b: Array) -> None:
    clip_tail, cross = vectorized()
    with np.errstate(all="ignore"):
        assert_same(clip_tail(x), np.where(x > 1, 1 + np.log(np.where(x > 1, x, 1)), x))
    assert_same(cross(a, b), np.cross(a, b))
