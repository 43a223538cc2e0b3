"""An array type of one's own, whose gradient has another dtype than its values, against NumPy in float64."""

from functools import cache
from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import assert_same

PAGE = "science/derivatives.md"


@cache
def names() -> dict[str, Any]:
    """The page's classes, registered as it does, and its loss with the gradients, compiled."""
    found = program(PAGE, "hijax", "Packed", "PackedType", "Unpack", "packed_loss")
    found["hijax"].register_hitype(found["Packed"], lambda packed: found["PackedType"](packed.codes.shape))

    def summed(weights: Any, x: Any) -> Any:
        return jax.lax.scan(lambda total, row: (total + found["packed_loss"](weights, row), None), 0.0, x)[0]

    slopes = jax.jit(jax.grad(found["packed_loss"], (0, 1)))
    return {
        **found,
        "slopes": slopes,
        "many": jax.jit(jax.value_and_grad(summed)),
        "jitted": jax.jit(found["packed_loss"]),
    }


@attack(
    seed=st.integers(0, 2**31 - 1),
    shape=st.sampled_from([(), (0,), (1,), (3,), (2, 3)]),
    scale=st.sampled_from([0.0, -0.5, 1e-3, 7.0]),
)
def test_a_packed_array_is_its_codes_times_its_scale(seed: int, shape: tuple[int, ...], scale: float) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-128, 128, shape).astype(np.int8)
    x = rng.normal(size=(2, *shape)).astype(np.float32)
    weights = names()["Packed"](jax.numpy.asarray(codes), jax.numpy.float32(scale))
    wide = codes.astype(np.float64) * np.float32(scale)
    room = {"rtol": 1e-4, "atol": 1e-5 * (1 + 128 * 6 * abs(scale))}
    for way in "packed_loss", "jitted":
        assert_same(names()[way](weights, x[0]), (wide * x[0]).sum(), **room)
    by_weights, by_x = names()["slopes"](weights, x[0])
    assert by_weights.dtype == np.float32
    assert_same(by_weights, x[0], **room)
    assert_same(by_x, wide, **room)
    total, slope = names()["many"](weights, x)
    assert_same(total, (wide * x).sum(), **room)
    assert_same(slope, x.sum(0), **room)
