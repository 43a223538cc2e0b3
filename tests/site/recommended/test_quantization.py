"""Whole numbers for made-up arrays: how far they are off, what hides, and products, against float64."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import examples, program, search
from tests.site.strategies import arrays

PAGE = "train/quantization.md"
ROWS, INNER, COLUMNS = 2, 5, 3
Array = np.ndarray[Any, Any]


@cache
def names(bits: int) -> dict[str, Any]:
    """The page's functions for weights of so many bits, compiled."""
    found = program(PAGE, "quantize", "matmul", "rounded", "straight_through", "quantize_range")
    quantize, matmul, through = found["quantize"], found["matmul"], found["straight_through"]
    return {
        "quantize": jax.jit(lambda x: quantize(x, 0, bits)),
        "matmul": jax.jit(lambda x, w: matmul(x, quantize(w, 0, bits))),
        "through": jax.jit(jax.value_and_grad(lambda w, by: (through(w, bits) * by).sum())),
        "rounded": jax.jit(lambda w: found["rounded"](w, bits)),
        "range": jax.jit(lambda x: found["quantize_range"](x, 0)),
    }


bits = st.sampled_from([8, 3, 2])
moderate = arrays((INNER, COLUMNS), "float32", odd=False).map(lambda a: np.clip(a, -1e6, 1e6))
any_at_all = arrays((INNER, COLUMNS), "float32", odd=True)


@examples
def test_a_number_is_off_by_half_a_scale_at_most_and_nan_stays(count: int) -> None:
    def holds(x: Array, bits: int) -> None:
        q, scale = names(bits)["quantize"](x)
        largest = 2 ** (bits - 1) - 1
        assert q.dtype == jnp.int8 and np.abs(np.asarray(q, int)).max() <= largest
        with np.errstate(invalid="ignore"):
            again = np.asarray(q, float) * np.asarray(scale, float)
        for column in range(COLUMNS):
            own = x[:, column].astype(float)
            if not np.isfinite(own).all():
                assert np.isnan(again[:, column]).any() or not np.isfinite(np.asarray(scale)[0, column])
                continue
            # Magnitudes below the smallest normal number are 0 to the processor.
            room = np.abs(own).max() / largest / 2 * (1 + 1e-5) + 1e-36
            assert np.abs(again[:, column] - own).max() <= room, (own, again[:, column])
            if np.abs(own).max() > 1e-30:
                np.testing.assert_allclose(np.abs(again[:, column]).max(), np.abs(own).max(), rtol=1e-5)

    search(count, holds, x=any_at_all, bits=bits)


@examples
def test_the_offset_uses_all_steps_between_the_smallest_and_the_largest(count: int) -> None:
    def holds(x: Array) -> None:
        q, scale, low = (np.asarray(each, float) for each in names(8)["range"](x))
        width = x.astype(float).max(0) - x.astype(float).min(0)
        room = width / 255 / 2 * 1.01 + 4e-7 * np.abs(x).max(0) + 1e-36
        assert (np.abs((q + 128) * scale + low - x) <= room).all()

    search(count, holds, x=moderate)


@examples
def test_a_product_is_off_by_what_its_factors_are_off(count: int) -> None:
    def holds(x: Array, w: Array, bits: int) -> None:
        got = np.asarray(names(bits)["matmul"](x, w), float)
        x, w = x.astype(float), w.astype(float)
        off_x = np.abs(x).max(1, keepdims=True) / 127 / 2
        off_w = np.abs(w).max(0, keepdims=True) / (2 ** (bits - 1) - 1) / 2
        room = INNER * (off_x * np.abs(w).max(0) + np.abs(x).max(1, keepdims=True) * off_w + off_x * off_w)
        assert (np.abs(got - x @ w) <= room * 1.001 + 1e-30).all()

    x = arrays((ROWS, INNER), "float32", odd=False).map(lambda a: np.clip(a, -1e6, 1e6))
    search(count, holds, x=x, w=moderate, bits=bits)


@examples
def test_the_straight_through_estimator_rounds_and_passes_the_gradient_by(count: int) -> None:
    def holds(w: Array, by: Array, bits: int) -> None:
        value, slope = names(bits)["through"](w, by)
        rounded = np.asarray(names(bits)["rounded"](w), float)
        expected = (rounded * by.astype(float)).sum()
        np.testing.assert_allclose(
            value, expected, rtol=1e-4, atol=1e-5 * (np.abs(w) * np.abs(by)).astype(float).sum() + 1e-30
        )
        np.testing.assert_array_equal(slope, by)

    search(count, holds, w=moderate, by=moderate, bits=bits)
