"""Values at an edge in models: edges that lead nowhere, functions called twice, tiny slopes, whole numbers, wide loss."""

from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.recommended.shown import visible
from tests.site.recommended.test_edges import says

GENERATION, GRAPHS, MIXED = "train/generation.md", "train/graphs.md", "train/mixed-precision.md"
ATTENTION, REINFORCEMENT = "answers/attention.md", "train/reinforcement.md"
mixed_precision: Any = import_module("mixed_precision")
transformer: Any = import_module("transformer")
KEY = jax.random.key(0)


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("outside", [-1, -4, 4, 9])
def test_an_edge_to_no_node_has_no_weight(outside: int) -> None:
    says(GRAPHS, "So is the weight of an edge to a node that does not exist.")
    softmax = program(GRAPHS, "edge_softmax")["edge_softmax"]
    scores, receivers = jnp.array([1.0, 2, 3, 4, 5]), jnp.array([0, 0, 2, outside, 3])
    for run in softmax, jax.jit(softmax, static_argnums=2):
        found = run(scores, receivers, 4)
        np.testing.assert_allclose(found, [1 / (1 + np.e), np.e / (1 + np.e), 1, 0, 1], rtol=1e-5)
    slope = jax.grad(lambda s: softmax(s, receivers, 4) @ jnp.arange(5.0))(scores)
    assert slope[3] == 0 and jnp.isfinite(slope).all()


def test_products_of_a_function_called_again_are_counted_again() -> None:
    products = program(MIXED, "products")["products"]
    w = jnp.ones((4, 4), jnp.bfloat16)
    layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))
    by_rule = program(MIXED, "matmul16")["matmul16"]

    @jax.custom_jvp
    def twice(x: Any, w: Any) -> Any:
        return x @ w @ w

    twice.defjvps(None, None)
    assert products(lambda w: layer(layer(layer(w, w), w), w), w) == {"bfloat16": 3}
    assert products(lambda w: by_rule(by_rule(w, w), w), w) == {"float32": 2}
    assert products(lambda w: twice(twice(w, w), w), w) == {"bfloat16": 4}
    assert products(lambda w: jax.lax.scan(lambda x, _: (layer(x, w), None), w, None, 5)[0], w) == {"bfloat16": 5}


@pytest.mark.parametrize("size", [1.0, 1e-8, 1e-15, 1e-20, 1e-25, 1e15, 1e25])
def test_slopes_of_any_size_survive_a_product_in_float8(size: float) -> None:
    x, w = normal(2, 8, 8)
    found = jax.grad(lambda x: (size * mixed_precision.matmul8(x, w)).sum())(x) / size
    exact = jax.grad(lambda x: (x @ w).sum())(x)
    assert np.linalg.norm(found - exact) < 0.1 * np.linalg.norm(exact)
    for factor in size, 1e-30, 1e-37:
        low = mixed_precision.quantize(jnp.float32(factor) * x, mixed_precision.E4M3)
        assert jnp.isfinite(low[0].astype(float)).all() and jnp.isfinite(low[1]) and low[1] > 0


def test_a_loss_of_doubles_is_one_of_doubles() -> None:
    with jax.enable_x64(True):
        x, y = np.random.default_rng(0).normal(size=(2, 8, 16))
        params = {"w": x[:, :8].T.repeat(2, 0), "v": x[0, :8]}
        exact = ((np.tanh(x @ params["w"]) @ params["v"] - y[:, 0]) ** 2).mean()
        found = mixed_precision.loss(jax.tree.map(jnp.asarray, params), jnp.asarray(x), y[:, 0], jnp.float64)
        np.testing.assert_allclose(found, exact, rtol=1e-13)
        weights = transformer.init(KEY, 9, 8, 2, 1)
        text = jnp.arange(6)
        scores, _ = transformer.forward(weights, text[:-1])
        exact = optax.softmax_cross_entropy_with_integer_labels(scores, text[1:])
        assert transformer.losses(weights, text).dtype == scores.dtype == jnp.float64
        np.testing.assert_allclose(transformer.losses(weights, text), exact, rtol=1e-13)


def test_scores_of_doubles_that_float32_cannot_tell_apart_are_told_apart() -> None:
    with jax.enable_x64(True):
        scores = jnp.array([1.0, 1 + 1e-12, 0.0])
        assert program(GENERATION, "draw")["draw"](KEY, scores, 0.0) == 1
        assert visible(f"{ATTENTION}#sampling")["sample"](KEY, scores, 0.0) == 1
        draw = program(GENERATION, "draw_of")["draw_of"]
        assert draw(KEY, scores, 1) == 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32"])
def test_whole_values_are_averaged_and_not_cut(dtype: str) -> None:
    q, k = 0.1 * normal(2, 5, 4)
    v = (normal(5, 4) > 0).astype(dtype)
    scores = np.where(np.tri(5) > 0, q @ k.T / 2, -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    found = transformer.attend(jnp.asarray(q), jnp.asarray(k), jnp.asarray(v), np.tri(5) > 0)
    np.testing.assert_allclose(found, weights @ v.astype(float), rtol=1e-4)
    attend = visible(f"{ATTENTION}#weights")["attend"]
    found, _ = attend(*(a[None, :, None] for a in map(jnp.asarray, (q, k, v))), np.tri(5) > 0)
    np.testing.assert_allclose(found[0, :, 0], weights @ v.astype(float), rtol=1e-4)


def test_norms_and_rotations_of_whole_numbers_are_not_cut() -> None:
    x, wide = jnp.array([[1, 2, 3, 4]]), jnp.array([[1.0, 2, 3, 4]])
    for norm in program(GENERATION, "norm")["norm"], lambda x: program("train/weights.md", "norm")["norm"](1.0, x):
        np.testing.assert_allclose(norm(x), wide / np.sqrt(7.5), rtol=1e-5)
        assert norm(x.astype(jnp.bfloat16)).dtype == jnp.bfloat16
    rotations = transformer.rotate, visible(f"{ATTENTION}#rotary")["rotate"]
    for rotate in rotations:
        found = rotate(x[None], jnp.array([1]))
        np.testing.assert_allclose(found, rotate(wide[None], jnp.array([1])), rtol=1e-5)
        assert rotate(x[None].astype(jnp.bfloat16), jnp.array([1])).dtype == jnp.bfloat16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_only_float32_is_rounded_at_random(dtype: str) -> None:
    rounded = program(MIXED, "round_randomly")["round_randomly"]
    with jax.enable_x64(True), pytest.raises(AssertionError):
        rounded(jnp.ones(2, dtype), KEY)
    assert rounded(jnp.ones(2), KEY).tolist() == [1, 1]


def test_an_action_that_is_not_there_has_no_chance() -> None:
    log_chance = program(REINFORCEMENT, "log_chance")["log_chance"]
    scores = jnp.array([[1.0, 2.0]] * 4)
    found = jax.jit(log_chance)(scores, jnp.array([0, 1, -1, 2]))
    np.testing.assert_allclose(found[:2], np.array([1.0, 2]) - np.log(np.exp(1) + np.exp(2)), rtol=1e-5)
    assert jnp.isnan(found[2:]).all()


def test_a_root_in_16_bits_is_not_the_loop_s_as_stated() -> None:
    page = "basics/derivatives.md"
    says(page, "In 16 bits, the loop often never ends, and near 1 you get the slope of the first step.")
    newton = jax.grad(program(page, "newton_sqrt")["newton_sqrt"], has_aux=True)
    a = 1.0673828125
    slope, steps = newton(jnp.float16(a))
    assert steps == 1 and slope == 0.5 > 1.03 * 0.5 / a**0.5
    np.testing.assert_allclose(newton(jnp.float32(a))[0], 0.5 / a**0.5, rtol=1e-3)
    root = np.float16(4)
    for _ in range(60):  # from 7, whose root no half comes close to
        root = (root + np.float16(7) / root) / np.float16(2)
    assert abs(root * root - 7) > 1e-5 * 7


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "uint32", "int32", "float32"])
def test_an_action_of_any_type_moves_left_or_right(dtype: str) -> None:
    names = program("answers/sampling-and-simulation.md#own-environment", "step", "State")
    state = names["State"](jnp.zeros(2), jnp.zeros(2, int))
    for step in names["step"], jax.jit(names["step"]):
        _, (seen, *_) = step(KEY, state, jnp.array([0, 1], dtype))
        np.testing.assert_allclose(seen, [-0.3, 0.3], rtol=1e-6)


@attack(
    "train/attention.md: integers as `q`, `k` and `v`",
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["int8", "int32"]),
)
def test_attention_between_integers_loses_its_weights_as_stated(seed: int, dtype: str) -> None:
    says("train/attention.md", "the weights become integers too, and those below 1 become 0 | `q.astype(jnp.float32)`")
    rng = np.random.default_rng(seed)
    q, k, v = (jnp.asarray(rng.integers(-1, 2, (1, 4, 1, 3)), dtype) for _ in range(3))
    scores = np.asarray(q, float)[0, :, 0] @ np.asarray(k, float)[0, :, 0].T / 3**0.5
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)  # all of them below 1
    found = jax.nn.dot_product_attention(*(a.astype(jnp.float32) for a in (q, k, v)))
    np.testing.assert_allclose(found[0, :, 0], weights @ np.asarray(v, float)[0, :, 0], rtol=1e-3, atol=1e-4)
    assert not jax.nn.dot_product_attention(q, k, v).any()


def test_divisors_of_one_place_may_overflow_in_any_dtype_as_stated() -> None:
    says("basics/updates.md", "This product may wrap around or overflow, most often in a small dtype")
    place = np.array([0, 0])
    for dtype, number, right in (jnp.float32, 1e5, True), (jnp.float32, 1e25, False), (jnp.float16, 1e3, False):
        x, by = np.full(1, 1e4).astype(dtype), np.full(2, number).astype(dtype)
        exact = x.astype(float) / number**2
        assert np.allclose(jnp.asarray(x).at[place].divide(by), exact, rtol=1e-2, atol=0) == right


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_ports_whose_moves_are_of_any_size_are_compared(size: float) -> None:
    x = normal(128)
    given = {"x": x, "y": size * (2 * x - 1), "params": {"w": np.float32(0), "b": np.float32(0)}}
    names = program("scale/pmap.md", "moves_alike", "step", "average_loss", "own_copy", **given)
    for name, right in ("step", False), ("average_loss", True), ("own_copy", True):
        assert names["moves_alike"](names[name]) == right


@pytest.mark.parametrize("size", [1e-20, 1e-6, 1.0, 1e6])
def test_a_join_of_numbers_of_any_size_is_tested(size: float) -> None:
    names = program("speed/parallel-scans.md", "is_associative", "join", "wrong")
    is_associative, join = names["is_associative"], names["join"]
    three = np.random.default_rng(1).normal(size=(3, 2)).astype(np.float32)
    assert is_associative(join, *((a, size * b) for a, b in three))
    assert not is_associative(names["wrong"], *(size * three[:, 0]))
    assert not is_associative(lambda f, s: (s[0] * f[0], f[1] + s[0] * s[1]), *((a, size * b) for a, b in three))
    matrices = (size * np.random.default_rng(2).normal(size=(3, 40, 40)).astype(np.float32),)
    assert is_associative(lambda f, s: (s[0] + f[0],), *((m,) for m in matrices[0]))


def test_a_join_with_infinite_numbers_is_tested() -> None:
    is_associative = program("speed/parallel-scans.md", "is_associative")["is_associative"]
    three = [np.array([-np.inf, number]) for number in (1.0, 2.0, 4.0)]
    assert is_associative(np.maximum, *three)
    assert not is_associative(lambda f, s: np.maximum(f, s - 1), *three)
    assert is_associative(lambda f, s: {"sum": f["sum"] + s["sum"]}, *({"sum": number} for number in (1, 2, 3)))


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float32", "complex64"])
def test_an_error_counts_imaginary_parts(dtype: str) -> None:
    names = program("debug/testing.md", "error", "in_float64")
    x = np.array([3, 1]).astype(jnp.dtype(dtype))
    assert names["error"](x, x) == 0
    np.testing.assert_allclose(names["error"](jnp.asarray(x) + np.complex64(2j), x), 2 / 3, rtol=1e-6)
    exact = names["in_float64"](lambda x: x / 7, x)
    np.testing.assert_allclose(exact, x.astype(complex if dtype == "complex64" else float) / 7, rtol=1e-15)
    turned = np.array([1 + 2j, -3j], np.complex64)
    np.testing.assert_allclose(names["in_float64"](lambda z: z * z, turned), turned.astype(complex) ** 2, rtol=1e-15)


@pytest.mark.parametrize("axis", [0, None, 1])
def test_a_product_in_whole_numbers_refuses_scales_of_rows(axis: int | None) -> None:
    names = program("train/quantization.md", "matmul", "quantize")
    x, w = jnp.asarray(normal(8, 8)), jnp.asarray(normal(8, 8)[::-1])
    stored = names["quantize"](w * jnp.arange(1, 9)[:, None], axis)
    if axis == 1:
        with pytest.raises(AssertionError):
            names["matmul"](x, stored)
    else:
        exact = x @ (w * jnp.arange(1, 9)[:, None])
        assert jnp.linalg.norm(names["matmul"](x, stored) - exact) < 0.05 * jnp.linalg.norm(exact)
