"""Attacks on the answers about NNX and Equinox models on several devices: the same steps in NumPy, in float64."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import attack, program
from tests.site.strategies import arrays, assert_same, slopes

pytestmark = pytest.mark.slow  # each compiles a model
Array = np.ndarray[Any, Any]
PAGE = "answers/models-on-devices.md"
BATCH = arrays((64, 2), odd=False).map(lambda x: np.clip(x / 8, -2, 2))


@pytest.fixture(autouse=True)
def eight_devices() -> None:
    """Skip where conftest.py could not make them, which it can on a CPU only."""
    if jax.device_count() != 8:
        pytest.skip("needs eight devices")


def made(anchor: str, *wanted: str) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted)


def split(found: dict[str, Any], *parts: Array) -> Any:
    """Split some arrays over the devices of an answer."""
    return jax.device_put(parts, NamedSharding(found["mesh"], P("data")))


@cache
def fresh() -> Any:
    """The model and the optimizer of an answer as they are made, on all devices."""
    found = made("nnx-several-gpus", "both", "mesh")
    state = jax.device_put(nnx.state(found["both"]), NamedSharding(found["mesh"], P()))
    return jax.tree.map(jnp.copy, state)


@attack(f"{PAGE}#nnx-several-gpus", x=BATCH, kernel=arrays((2, 1), odd=False).map(lambda k: np.clip(k / 8, -2, 2)))
def test_a_step_of_all_devices_is_a_step_of_adam(x: Array, kernel: Array) -> None:
    found = made("nnx-several-gpus", "step", "both", "mesh")
    model, optimizer = found["both"]
    nnx.update(found["both"], fresh())
    model.kernel[...] = jax.device_put(kernel, NamedSharding(found["mesh"], P()))
    y = x[:, :1] + 3
    loss = found["step"](model, optimizer, *split(found, x, y))
    off = x.astype(float) @ kernel - y
    slope = 2 * x.astype(float).T @ off / 64
    clear = np.abs(slope) > 1e-3
    assert len(model.kernel[...].devices()) == 8
    assert_same(loss, np.float64((off**2).mean()), rtol=1e-3, atol=1e-3)
    assert_same(np.asarray(model.kernel[...])[clear], (kernel - 0.1 * np.sign(slope))[clear], atol=1e-3)


@attack(f"{PAGE}#filter-shard", x=arrays((64, 2), odd=False).map(lambda x: np.clip(x / 8, -2, 2)))
def test_a_step_of_a_sharded_model_is_that_of_one_device(x: Array) -> None:
    found = made("filter-shard", "step", "model", "adam", "mesh")
    model = eqx.filter_shard(found["model"], NamedSharding(found["mesh"], P()))
    state = found["adam"].init(eqx.filter(model, eqx.is_inexact_array))
    state = eqx.filter_shard(state, NamedSharding(found["mesh"], P()))
    new, _ = found["step"](model, state, *split(found, x, np.ones((64, 1), np.float32)))
    weights = [[np.asarray(a, np.float64) for a in (layer.weight, layer.bias)] for layer in model.layers]
    hidden = np.maximum(x.astype(float) @ weights[0][0].T + weights[0][1], 0)
    off = hidden @ weights[1][0].T + weights[1][1] - 1
    slope = 2 * off.T @ hidden / 64
    clear = np.abs(slope) > 1e-3
    assert len(new.layers[1].weight.devices()) == 8
    expected = weights[1][0] - 0.01 * np.sign(slope)
    assert_same(np.asarray(new.layers[1].weight)[clear], expected[clear], atol=1e-3)


@attack(f"{PAGE}#nnx-jit-arguments", x=arrays((8, 2), odd=False), times=st.integers(0, 2))
def test_a_sharded_call_is_the_call_of_its_static_argument(x: Array, times: int) -> None:
    found = made("nnx-jit-arguments", "call", "model", "named")
    kernel, expected = np.asarray(found["model"].kernel[...], np.float64), x.astype(float)
    for _ in range(times):
        expected = np.tanh(expected)
    out = found["call"](found["model"], x, times)
    assert len(out.devices()) == 8
    assert_same(out, expected @ kernel, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="different lengths of tuple"):
        found["named"](found["model"], x, times=times)


@cache
def remembered() -> Any:
    """The value of four blocks and its gradient by the input, with `nnx.remat`."""
    found = made("remat", "forward", "blocks", "Block")
    call = nnx.remat(found["Block"].__call__)
    return jax.jit(jax.value_and_grad(lambda x, blocks: found["forward"](call, blocks, x), argnums=(0, 1)))


@attack(f"{PAGE}#remat", x=arrays((1, 8), odd=False).map(lambda x: np.clip(x, -4, 4)))
def test_blocks_that_are_computed_again_have_their_gradient(x: Array) -> None:
    blocks = made("remat", "forward", "blocks", "Block")["blocks"]

    def wide(x: Array) -> float:
        for block in blocks:
            up, down = (np.asarray(layer.kernel[...], np.float64) for layer in (block.up, block.down))
            x = x + np.sin(x @ up) @ down
        return float(x.sum())

    value, (grads, _) = remembered()(x, blocks)
    assert_same(value, np.float64(wide(x.astype(float))), rtol=1e-3, atol=1e-2)
    assert_same(grads, slopes(wide, x.astype(float)), rtol=1e-2, atol=1e-2)


@attack(f"{PAGE}#decode", x=arrays((1, 5, 8), odd=False).map(lambda x: np.clip(x, -4, 4)))
def test_one_token_at_a_time_attends_to_all_before_it(x: Array) -> None:
    found = made("decode", "layer", "one")
    layer = found["layer"]
    layer.init_cache((1, 5, 8))
    out = [found["one"](layer, x[:, i : i + 1]) for i in range(5)]
    heads = {}
    for name in ("query", "key", "value"):
        kernel = np.asarray(getattr(layer, name).kernel[...], np.float64)
        heads[name] = np.einsum("td,dhk->htk", x[0].astype(float), kernel)
    logits = np.einsum("htk,hsk->hts", heads["query"], heads["key"]) / 2
    logits = np.where(np.tri(5) > 0, logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = np.einsum("hts,hsk->thk", weights, heads["value"])
    expected = np.einsum("thk,hkd->td", mixed, np.asarray(layer.out.kernel[...], np.float64))
    assert_same(jnp.concatenate(out, axis=1)[0], expected, rtol=1e-2, atol=1e-2)


@attack(f"{PAGE}#equinox-shard-map", x=BATCH)
def test_the_gradient_of_a_sharded_loss_is_that_of_the_whole_batch(x: Array) -> None:
    found = made("equinox-shard-map", "parallel", "model")
    model = found["model"]
    value, grads = eqx.filter_jit(eqx.filter_value_and_grad(found["parallel"]))(model, jnp.asarray(x))
    weights = [[np.asarray(a, np.float64) for a in (layer.weight, layer.bias)] for layer in model.layers]
    hidden = np.maximum(x.astype(float) @ weights[0][0].T + weights[0][1], 0)
    out = hidden @ weights[1][0].T + weights[1][1]
    assert_same(value, np.float64((out**2).mean()), rtol=1e-3, atol=1e-3)
    assert_same(grads.layers[1].weight, 2 * out.T @ hidden / 64, rtol=1e-3, atol=1e-3)
    assert_same(grads.layers[1].bias, 2 * out.mean(0), rtol=1e-3, atol=1e-3)
