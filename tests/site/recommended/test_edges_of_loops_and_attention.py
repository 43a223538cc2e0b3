"""Values at an edge on the pages about loops, attention, NumPy, quantization and speed: masks, stacks and small types."""

from functools import partial
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import P

from tests.site.recommended.attack import program
from tests.site.recommended.devices import mesh
from tests.site.recommended.entries import fixed
from tests.site.recommended.shown import shows, visible
from tests.site.recommended.test_edges import says

transformer: Any = import_module("transformer")
ATTENTION, LOOPS, NUMPY = "answers/attention.md", "answers/loops.md", "answers/numpy.md"
WHERE, QUANTIZATION = "speed/where-did-it-go.md", "train/quantization.md"
RNG = np.random.default_rng(0)
Q, K, V = RNG.normal(size=(3, 2, 5, 5, 8)).astype(np.float32)  # as many heads as positions
CAUSAL = np.tril(np.ones((5, 5), bool))


def exact(mask: Any, bias: Any = 0.0) -> Any:
    """Attention of heads that lie before the positions, in float64."""
    scores = np.where(mask, Q.astype(float) @ np.swapaxes(K, -1, -2) / 8**0.5 + bias, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ V


def test_attention_from_pytorch_takes_three_axes_as_it_does_there() -> None:
    attend = visible(f"{ATTENTION}#from-pytorch")["scaled_dot_product_attention"]
    for mask in CAUSAL, CAUSAL[None], np.where(CAUSAL, 0, -np.inf):
        np.testing.assert_allclose(attend(Q, K, V, jnp.asarray(mask)), exact(CAUSAL), atol=1e-5)
        np.testing.assert_allclose(attend(Q[0], K[0], V[0], jnp.asarray(mask)), exact(CAUSAL)[0], atol=1e-5)
    bias = RNG.normal(size=(5, 5)).astype(jnp.bfloat16)
    np.testing.assert_allclose(attend(Q, K, V, bias), exact(True, bias.astype(float)), atol=1e-2)


def test_a_mask_of_integers_is_not_added_to_the_scores() -> None:
    attend = visible(f"{ATTENTION}#from-pytorch")["scaled_dot_product_attention"]
    with pytest.raises(ValueError, match="bool"):
        attend(Q, K, V, jnp.asarray(CAUSAL, int))


def test_a_query_that_sees_nothing_gets_an_average_as_stated() -> None:
    shows(f"{ATTENTION}#from-pytorch", "but [an average](#sees-nothing) in JAX")
    attend = visible(f"{ATTENTION}#from-pytorch")["scaled_dot_product_attention"]
    found = attend(Q, K, V, jnp.zeros((5, 5), bool))
    np.testing.assert_allclose(found, np.broadcast_to(V.mean(-2, keepdims=True), V.shape), atol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32"])
def test_padding_of_pytorch_is_turned_around(dtype: str) -> None:
    shows(f"{ATTENTION}#mask", "pass `key_padding_mask == 0`")
    padded = jnp.array([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]], dtype)
    attend = visible(f"{ATTENTION}#mask")["attend_to_tokens"]
    found = attend(*(np.swapaxes(a, 1, 2) for a in (Q, K, V)), padded == 0)
    sees = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)[:, None, None]
    np.testing.assert_allclose(np.swapaxes(found, 1, 2), exact(sees), atol=1e-5)


def test_a_mask_to_add_is_refused_or_said() -> None:
    shows(f"{ATTENTION}#weights", "The `mask` is `True` where a query may look")
    q, k, v = Q[0, 0], K[0, 0], V[0, 0]
    np.testing.assert_allclose(transformer.attend(q, k, v, CAUSAL), exact(CAUSAL)[0, 0], atol=1e-5)
    for mask in np.where(CAUSAL, 0, -1e9), CAUSAL.astype(int):
        with pytest.raises(TypeError, match="True is where to look"):
            transformer.attend(q, k, v, mask)


def test_nothing_is_sampled_after_an_empty_prompt() -> None:
    params = jax.eval_shape(partial(transformer.init, vocab=5, width=8, heads=2, layers=1), jax.random.key(0))
    for length in 0, 1:
        sample = partial(jax.eval_shape, partial(transformer.sample, new=3), params, np.zeros(length, int))
        if length:
            assert sample(jax.random.key(0))[0].shape == (3,)
        else:
            with pytest.raises(ValueError, match="empty prompt"):
                sample(jax.random.key(0))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "float16", "bfloat16", "float32"])
def test_a_layer_in_int8_takes_pixels_and_flags(dtype: str) -> None:
    names = visible(f"{ATTENTION}#int8-weights")
    w = RNG.normal(size=(64, 4)).astype(np.float32)
    x = jnp.asarray(RNG.integers(0, 2 if dtype == "bool" else 120, (3, 64)), dtype)
    found = names["layer"](names["quantize"](w), jnp.zeros(4), x)
    wide = np.asarray(x, np.float64)
    assert (abs(found - wide @ w) <= wide.sum(1, keepdims=True) * abs(w).max(0) / 200 + 1).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-6])
def test_small_weights_in_16_bits_are_quantized(dtype: str, size: float) -> None:
    w = jnp.asarray(size * RNG.normal(size=(64, 4)), dtype)
    numbers, scale = visible(f"{ATTENTION}#int8-weights")["quantize"](w)
    wide = np.asarray(w, np.float64)
    assert (abs(np.float64(numbers) * np.float64(scale) - wide) <= abs(wide).max(0) / 253).all()


def test_a_negative_position_of_a_cache_counts_from_the_end_as_stated() -> None:
    shows(f"{ATTENTION}#kv-cache", "A negative position counts from the end.")
    append = visible(f"{ATTENTION}#kv-cache")["append"]
    cache, new = ({"k": jnp.full((1, n, 1, 1), i)} for i, n in enumerate((4, 1)))
    assert append(cache, new, -1)["k"].ravel().tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("at", [0, 2])
def test_a_score_that_is_nan_is_drawn_as_stated(at: int) -> None:
    shows(f"{ATTENTION}#sampling", "If a score is NaN, `sample` draws its token.")
    sample = visible(f"{ATTENTION}#sampling")["sample"]
    draw: Any = jax.vmap(lambda key: sample(key, jnp.arange(4.0).at[at].set(jnp.nan)))
    assert (draw(jax.random.split(jax.random.key(0), 50)) == at).all()


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_loop_over_an_array_ends_with_it(size: int) -> None:
    printed = fixed(f"{LOOPS}#which-loop", xs=jnp.arange(1.0, size + 1))
    assert printed[1] == size * (size + 1) / 2


def test_powers_of_an_integer_do_not_wrap_around() -> None:
    names = visible(f"{LOOPS}#traced-range")
    for power in names["traced"], names["static"]:
        for x in 3, jnp.int32(3), jnp.uint8(3), 3.0:
            np.testing.assert_allclose(power(x, 21), 3.0**21, rtol=1e-5)
        np.testing.assert_allclose(power(2j, 3), -8j)


def test_a_total_in_16_bits_stops_as_stated() -> None:
    shows(f"{LOOPS}#carry-types", "a total in bfloat16 stops growing")
    start: Any = 0
    assert jax.lax.scan(lambda c, x: (c + x, None), start, jnp.ones(300, jnp.bfloat16))[0] == 256


def test_operators_on_numbers_work_on_bits_as_stated() -> None:
    shows(f"{LOOPS}#and-or-not", "because they work on the bits of an integer", "For numbers, write `x != 0`.")
    x, y = jnp.array([1, 2, 0]), jnp.array([2, 1, 3])
    assert (x & y).tolist() == [0, 0, 0] and ((x != 0) & (y != 0)).tolist() == [True, True, False]


def test_factors_for_rows_need_the_shape_of_the_rows_as_stated() -> None:
    shows(f"{LOOPS}#parallel-scan", "and give `a` the shape of `b`")
    combine = visible(f"{LOOPS}#parallel-scan")["combine"]
    a, b = RNG.random(7).astype(np.float32), RNG.random((7, 3)).astype(np.float32)
    level, levels = np.zeros(3), []
    for factor, row in zip(a, b, strict=True):
        level = factor * level + row
        levels.append(level)
    found, wrong = (
        jax.lax.associative_scan(combine, (factors, jnp.asarray(b)))[1]
        for factors in (jnp.broadcast_to(a[:, None], b.shape), jnp.asarray(a))
    )
    np.testing.assert_allclose(found, levels, rtol=1e-5)
    assert wrong.shape == found.shape and not np.allclose(wrong, found)


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.float16, jnp.bfloat16, jnp.float32])
def test_close_points_have_a_distance(dtype: Any) -> None:
    distance = visible(f"{LOOPS}#nested-loops")["distance"]
    p = jnp.array([0, 0.0001 if jnp.issubdtype(dtype, jnp.floating) else 200], dtype)
    for q in p * 0, jnp.asarray([0, 1], dtype):
        expected = np.linalg.norm(np.asarray(p, float) - np.asarray(q, float))
        np.testing.assert_allclose([distance(p, q), distance(q, p)], expected, rtol=1e-5)


def test_a_mask_of_another_shape_broadcasts_as_stated() -> None:
    shows(
        f"{NUMPY}#masked-arrays",
        "in the shape of `x`",
        "In `sum` and `max`, a column and a row broadcast without an error.",
    )
    x = jnp.array([[2.0], [-999.0], [4.0]])
    valid = x > -100
    assert jnp.sum(x, where=valid) == 6 and jnp.sum(x, where=valid[:, 0]) != 6
    assert jnp.min(x, where=valid, initial=jnp.inf) == 2 != jnp.min(x, where=valid[:, 0], initial=jnp.inf)


def test_the_first_elements_of_a_column_are_refused() -> None:
    first_sum = visible("answers/shapes-and-indexing.md#traced-size")["first_sum"]
    assert first_sum(jnp.arange(5.0), 3) == 3
    with pytest.raises(AssertionError):
        first_sum(jnp.arange(5.0)[:, None], 3)


def test_sums_of_python_keep_the_dtype_as_stated() -> None:
    shows(f"{NUMPY}#python-builtins", "A sum of int8 or int16 wraps around, and a sum of 16-bit floats stops growing.")
    pixels, ones = jnp.array([200, 100], jnp.uint8), jnp.ones(300, jnp.bfloat16)
    assert [int(total(pixels)) for total in (sum, jnp.sum)] == [44, 300]
    assert [int(total(ones)) for total in (sum, jnp.sum)] == [256, 300]


def test_seconds_since_1970_are_rounded_as_stated() -> None:
    shows(f"{NUMPY}#pandas", "float32 rounds today's seconds since 1970 to multiples of")
    assert np.spacing(np.float32(1.8e9)) == 128 and np.float32(1.8e9 + 60) == np.float32(1.8e9)


def test_parts_of_small_integers_keep_their_dtype_as_stated() -> None:
    shows(
        f"{NUMPY}#ufunc-methods",
        "`jnp.add.reduceat` keeps the dtype of `x`",
        "so convert booleans and small integers first",
    )
    x, start = jnp.array([200, 100], jnp.uint8), jnp.array([0])
    assert jnp.add.reduceat(x, start).tolist() == [44]
    assert jnp.add.reduceat(x.astype(int), start).tolist() == [300]


@pytest.mark.parametrize("shape", [(8, 5), (2, 8, 5), (3, 3, 8, 5)])
def test_a_stack_of_matrices_has_a_scale_for_each_column(shape: tuple[int, ...]) -> None:
    rounded, quantize = (program(QUANTIZATION, "rounded", "quantize")[name] for name in ("rounded", "quantize"))
    w = RNG.normal(size=shape).astype(np.float32)
    one_by_one = [np.multiply(*map(np.asarray, quantize(each, 0, 3))) for each in w.reshape(-1, 8, 5)]
    np.testing.assert_allclose(rounded(w, 3), np.reshape(one_by_one, shape), rtol=1e-6)


def test_matrices_that_do_not_fit_are_refused_after_the_padding() -> None:
    names = program("extend/pallas-gpu.md", "triton_product", "any_shape")
    product = names["any_shape"](partial(names["triton_product"], interpret=True))
    a, b = jnp.ones((3, 30), jnp.float16), jnp.ones((40, 7), jnp.float16)
    assert (product(a, b[:30]) == 30).all()
    with pytest.raises(ValueError, match="float16"):
        product(a, b)


@pytest.mark.parametrize("count", [1, 120])
def test_steps_leave_out_all_parameters(count: int) -> None:
    steps = program(WHERE, "steps")["steps"]
    assert "parameter" not in steps(lambda *arrays: sum(arrays), *[jnp.ones(3)] * count)


def test_a_function_that_is_called_counts_once_in_stablehlo_as_stated() -> None:
    says(WHERE, "such as `jax.nn.relu`, is counted once in StableHLO, however many calls there are.")
    census = program(WHERE, "census")["census"]
    jaxpr, stablehlo, optimized = census(lambda x: jax.nn.relu(jax.nn.relu(x) - 1), jnp.ones(3))
    assert (jaxpr["max"], stablehlo["maximum"]) == (2, 1) and optimized["maximum"] >= 1


def test_keys_on_two_axes_need_both_numbers_as_stated() -> None:
    says("answers/devices.md", 'on a mesh of two axes, that is `axis_index(("data", "model"))`')

    def draw(key: jax.Array, axes: Any) -> jax.Array:
        return jax.random.normal(jax.random.fold_in(key, jax.lax.axis_index(axes)), (1, 1))

    both: Any = "data", "model"
    with jax.set_mesh(mesh(4, 2)):
        for axes, count in ("data", 4), (both, 8):
            drawn = jax.jit(jax.shard_map(partial(draw, axes=axes), in_specs=P(), out_specs=P(*both)))
            assert len(np.unique(np.asarray(drawn(jax.random.key(0))))) == count


def test_an_activation_is_that_of_its_name() -> None:
    x = jnp.linspace(-5, 5, 101)
    for page in "answers/speed.md#slower-than-numpy", "speed/fast-and-slow.md", "speed/read-the-compiler.md":
        names = {"xp": jnp} if "fast" in page else {}
        selu = program(page, "selu", jnp=jnp, **names)["selu"]
        np.testing.assert_allclose(selu(x), jax.nn.selu(x), rtol=1e-4, atol=1e-6)


def test_integers_that_jit_has_cut_are_not_mended_as_stated() -> None:
    says("speed/fast-and-slow.md", "The conversion comes too late for large int64 numbers from NumPy")
    smooth = program("speed/fast-and-slow.md", "smooth_scan", jnp=jnp)["smooth_scan"]
    large = np.array([3_000_000_000])
    assert large.dtype == np.int64 and smooth(large)[0] < 0


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
def test_a_variance_of_integers_is_not_cut(dtype: str) -> None:
    x = np.array([100, 101, 103, 104]).astype(dtype)
    np.testing.assert_allclose(program("debug/float64.md", "precise_var")["precise_var"](jnp.asarray(x)), 2.5)
