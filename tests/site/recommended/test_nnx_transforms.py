"""Attacks on the answers about NNX with JAX's own functions: the same values and derivatives in NumPy, in float64."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import arrays, assert_same

pytestmark = pytest.mark.slow  # each compiles a model
Array = np.ndarray[Any, Any]
PAGE = "answers/nnx-transforms.md"


def small(*shape: int, most: float = 2.0) -> st.SearchStrategy[Array]:
    """Arrays of a shape, of moderate numbers."""
    return arrays(shape, odd=False).map(lambda x: np.clip(x / 8, -most, most))


def made(anchor: str, *wanted: str) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted)


@cache
def scanned() -> tuple[Any, Any]:
    """The model of an answer, and its values in chunks beside its Jacobians, compiled."""
    model = made("scan-inside", "model")["model"]

    def both(model: Any, x: Any) -> Any:
        call = lambda x: model(x, graph_updates=False)  # noqa: E731
        return jax.lax.map(call, x, batch_size=2), jax.vmap(jax.jacfwd(call))(x)

    return model, jax.jit(both)


@attack(f"{PAGE}#scan-inside", x=small(5, 2))
def test_a_scan_that_writes_nothing_back_is_a_loop_over_layers(x: Array) -> None:
    model, both = scanned()
    kernels = np.asarray(model.layers.kernel[...], np.float64)
    values, jacobians = both(model, x)
    for i in range(len(x)):
        row, slope = x[i].astype(float), np.eye(2)
        for kernel in kernels:
            row = np.tanh(row @ kernel)
            slope = (1 - row**2)[:, None] * (kernel.T @ slope)
        assert_same(values[i], row, rtol=1e-3, atol=1e-3)
        assert_same(jacobians[i], slope, rtol=1e-2, atol=1e-3)


@cache
def remembered() -> tuple[Any, Any]:
    """The block of an answer, and the gradient by its input, with both ways of `nnx.remat`."""
    found = made("remat-inside", "block", "bare", "total")
    bare = jax.jit(jax.grad(lambda x: found["bare"](found["block"], x).sum()))
    return found["block"], (bare, lambda x: nnx.grad(found["total"], argnums=1)(found["block"], x))


@attack(f"{PAGE}#remat-inside", x=small(2))
def test_both_ways_of_remat_have_the_gradient_of_the_block(x: Array) -> None:
    block, ways = remembered()
    kernel = np.asarray(block.up.kernel[...], np.float64)
    expected = kernel @ np.cos(x.astype(float) @ kernel)
    for way in ways:
        assert_same(way(x), expected, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#chunks", x=st.sampled_from([1, 3, 64, 65]).flatmap(lambda size: small(size, 8)))
def test_chunks_of_any_size_are_the_whole(x: Array) -> None:
    found = made("chunks", "predict", "model")
    first, last = found["model"].layers[0], found["model"].layers[3]
    w, b, v, c = (np.asarray(a[...], np.float64) for a in (first.kernel, first.bias, last.kernel, last.bias))
    assert_same(found["predict"](found["model"], x), np.tanh(x.astype(float) @ w + b) @ v + c, rtol=1e-2, atol=1e-2)


@cache
def ruled() -> tuple[Any, Any]:
    """The quantized model of an answer, and its gradient, compiled."""
    found = made("custom-vjp", "Quantized")
    loss = lambda model, x: (model(x) ** 2).sum()  # noqa: E731
    return found["Quantized"](nnx.Rngs(0)), nnx.jit(nnx.value_and_grad(loss))


@attack(f"{PAGE}#custom-vjp", x=small(4, 2), kernel=small(2, 1))
def test_the_rule_passes_the_gradient_through_rounding(x: Array, kernel: Array) -> None:
    model, grad = ruled()
    model.kernel[...] = jnp.asarray(kernel)
    value, grads = grad(model, x)
    out = x.astype(float) @ (np.round(8 * kernel.astype(float)) / 8)
    assert_same(value, np.float64((out**2).sum()), rtol=1e-3, atol=1e-3)
    assert_same(grads["kernel"][...], 2 * x.T.astype(float) @ out, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#custom-vjp", x=small(4, 2), scale=st.floats(-3, 3))
def test_the_rule_of_a_module_clips_what_comes_back(x: Array, scale: float) -> None:
    found = made("custom-vjp", "clipped", "model")
    loss = lambda model, x: scale * found["clipped"](model, x).sum()  # noqa: E731
    grads, back = nnx.grad(loss, argnums=(0, 1))(found["model"], jnp.asarray(x))
    kernel = np.asarray(found["model"].kernel[...], np.float64)
    limited = np.full((4, 1), np.clip(scale, -1, 1))
    assert_same(grads["kernel"][...], x.T.astype(float) @ limited, rtol=1e-3, atol=1e-3)
    assert_same(back, limited @ kernel.T, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#compiles-again", rate=st.integers(1, 99).map(lambda n: n / 100))
def test_one_optimizer_of_any_rate_is_compiled_once(rate: float) -> None:
    found = made("compiles-again", "traces", "optax")
    adam = found["optax"].adam(rate)
    assert found["traces"](lambda: adam) == 1
    assert found["traces"](lambda: found["optax"].adam(rate)) == 3
