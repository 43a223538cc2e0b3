"""Kernels for both GPU backends, interpreted and simulated, against NumPy in float64."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams  # public since 0.11.1

from tests.site.recommended.attack import attack, program
from tests.site.strategies import assert_same

PAGE, ANSWERS = "extend/pallas-gpu.md", "answers/pallas.md"
WANTED = "triton_product", "mosaic_product", "any_shape", "scale_rows"
SIMULATED = InterpretGPUParams()
SHAPES = (0, 3, 2), (3, 0, 2), (1, 1, 1), (130, 70, 5)
seeds = st.integers(0, 2**31 - 1)


@cache
def names() -> dict[str, Any]:
    return program(PAGE, *WANTED, InterpretGPUParams=InterpretGPUParams)


@cache
def product(name: str, padded: bool = True) -> Any:
    """One of the two products, compiled, for any shape or as it is."""
    interpret = True if name == "triton_product" else SIMULATED
    found = partial(names()[name], interpret=interpret)
    return jax.jit(names()["any_shape"](found) if padded else found)


@cache
def scaling() -> Any:
    return jax.jit(partial(names()["scale_rows"], interpret=SIMULATED))


def drawn(seed: int, *shape: int, size: float = 1.0) -> Any:
    """Numbers, among them zeros and large ones."""
    rng = np.random.default_rng(seed)
    return size * rng.normal(size=shape) * rng.choice([0, 1, 30], shape)


@attack(
    name=st.sampled_from(["triton_product", "mosaic_product"]),
    dtype=st.sampled_from(["float16", "bfloat16"]),
    shape=st.sampled_from(SHAPES),
    seed=seeds,
)
def test_a_product_of_any_shape_is_that_of_numpy(name: str, dtype: str, shape: tuple[int, int, int], seed: int) -> None:
    m, k, n = shape
    a, b = (jnp.asarray(drawn(seed + i, *size), dtype) for i, size in enumerate([(m, k), (k, n)]))
    wide, tall = np.asarray(a, np.float64), np.asarray(b, np.float64)
    got = product(name)(a, b)
    assert got.shape == (m, n) and got.dtype == np.float32
    np.testing.assert_allclose(got, wide @ tall, atol=1e-5 * float((abs(wide) @ abs(tall)).max(initial=1)))


@attack(name=st.sampled_from(["triton_product", "mosaic_product"]), at=st.integers(0, 129), seed=seeds)
def test_what_is_not_finite_stays_in_its_row_and_column(name: str, at: int, seed: int) -> None:
    a, b = (drawn(seed + i, *size).astype(np.float16) for i, size in enumerate([(130, 70), (70, 5)]))
    a[at, seed % 70], b[at % 70, at % 5] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        assert_same(product(name)(a, b), a.astype(np.float64) @ b, rtol=1e-3, atol=1e-1)


@attack(rows=st.sampled_from([1, 3]), n=st.sampled_from([1, 128, 200]), seed=seeds)
def test_scaled_rows_are_those_of_numpy(rows: int, n: int, seed: int) -> None:
    x = drawn(seed, rows, n).astype(np.float32)
    expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(scaling()(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["triton_product", "mosaic_product"])
@pytest.mark.parametrize("shapes", [((128, 100), (100, 128)), ((100, 128), (128, 128)), ((128, 128), (64, 128))])
def test_blocks_that_do_not_divide_are_refused(name: str, shapes: tuple[tuple[int, int], ...]) -> None:
    a, b = (jnp.ones(shape, jnp.float16) for shape in shapes)
    with pytest.raises(ValueError, match=r"do not divide|float16\("):
        product(name, padded=False)(a, b)
    with pytest.raises((ValueError, TypeError)):
        product(name, padded=False)(jnp.ones((128, 128), jnp.float16), jnp.ones((128, 128), jnp.bfloat16))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_numbers_for_which_the_layout_is_wrong_are_refused(dtype: str) -> None:
    with pytest.raises(ValueError, match="16-bit"):
        product("mosaic_product")(jnp.ones((4, 4), dtype), jnp.ones((4, 4), dtype))


@cache
def answer(anchor: str, wanted: str, **options: Any) -> Any:
    """The function of an answer, compiled."""
    return jax.jit(partial(program(f"{ANSWERS}#{anchor}", wanted)[wanted], **options))


@attack(f"{ANSWERS}#only-interpret", shape=st.sampled_from([(), (1,), (3, 5)]), seed=seeds)
def test_an_interpreted_square_is_that_of_numpy(shape: tuple[int, ...], seed: int) -> None:
    x = drawn(seed, *shape).astype(np.float32)
    assert_same(answer("only-interpret", "square")(x), x.astype(np.float64) ** 2)


@attack(f"{ANSWERS}#triton-deprecated", blocks=st.sampled_from([1, 3]), seed=seeds)
def test_blocks_by_the_name_of_an_axis_cover_the_array(blocks: int, seed: int) -> None:
    x = drawn(seed, 128 * blocks).astype(np.float32)
    assert_same(answer("triton-deprecated", "double", interpret=SIMULATED)(x), 2 * x.astype(np.float64))
    with pytest.raises(ValueError, match="not one axis of blocks"):
        answer("triton-deprecated", "double", interpret=SIMULATED)(x[:-1])


@attack(f"{ANSWERS}#mosaic-without-gpu", size=st.sampled_from([128, 384]), seed=seeds)
def test_a_simulated_kernel_is_numpy(size: int, seed: int) -> None:
    x = drawn(seed, size).astype(np.float32)
    expected = x / (1 + abs(x.astype(np.float64)))
    assert_same(answer("mosaic-without-gpu", "softsign", interpret=SIMULATED)(x), expected)


@attack(f"{ANSWERS}#rows-left-out", size=st.sampled_from([1, 16, 17, 40]), seed=seeds)
def test_padded_blocks_leave_nothing_out(size: int, seed: int) -> None:
    x = drawn(seed, size).astype(np.float32)
    assert_same(answer("rows-left-out", "double_any")(x), 2 * x.astype(np.float64))


@attack(f"{ANSWERS}#no-gradient", shape=st.sampled_from([(), (3,), (2, 5)]), seed=seeds)
def test_a_rule_of_a_kernel_is_the_slope(shape: tuple[int, ...], seed: int) -> None:
    x = drawn(seed, *shape).astype(np.float32)
    y, slope = np.tanh(x.astype(np.float64)), jax.grad(lambda x: answer("no-gradient", "tanh")(x).sum())
    assert_same(answer("no-gradient", "tanh")(x), y)
    assert_same(jax.jit(slope)(x), 1 - y**2)
