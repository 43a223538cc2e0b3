"""Layer 0: a classifier and its training with nothing but JAX."""

# Laid out as on the page.
# fmt: off
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from training_data import Data, batch

S = TypeVar("S")  # a training state, of any kind

# --8<-- [start:model]
Params = list[dict[str, jax.Array]]

@jax.jit
def init(key: jax.Array) -> Params:
    shapes = [(64, 64), (64, 10)]
    keys = jax.random.split(key, len(shapes))
    return [{"w": jax.random.normal(k, s) / 8, "b": jnp.zeros(s[1])}
            for k, s in zip(keys, shapes)]

def predict(params: Params, image: jax.Array) -> jax.Array:
    hidden, out = params
    x = jax.nn.relu(image.ravel() @ hidden["w"] + hidden["b"])
    return x @ out["w"] + out["b"]

def loss(params: Params, examples: Data) -> jax.Array:
    images, labels = examples
    scores = jax.vmap(predict, (None, 0))(params, images)
    logs = jax.nn.log_softmax(scores)
    return -jnp.take_along_axis(logs, labels[:, None], axis=1).mean()
# --8<-- [end:model]


# --8<-- [start:step]
class State(NamedTuple):
    step: jax.Array
    params: Params
    mean: Params    # running mean of the gradients
    square: Params  # running mean of their squares

@jax.jit
def step(state: State, data: Data) -> tuple[State, jax.Array]:
    examples = batch(data, state.step)
    value, grads = jax.value_and_grad(loss)(state.params, examples)
    n = state.step + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, grads)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2,
                          state.square, grads)
    params = jax.tree.map(
        lambda p, m, s: p - 0.03 * (m / (1 - 0.9**n)) / (
            jnp.sqrt(s / (1 - 0.999**n)) + 1e-8),
        state.params, mean, square)
    return State(n, params, mean, square), value
# --8<-- [end:step]


# --8<-- [start:train]
def start(params: Params) -> State:
    zeros = jax.tree.map(jnp.zeros_like, params)
    return State(jnp.int32(0), params, zeros, zeros)

def train(step: Callable[[S, Data], tuple[S, jax.Array]], state: S,
          data: Data, steps: int) -> tuple[S, np.ndarray]:
    losses = []
    for _ in range(steps):
        state, value = step(state, data)
        losses.append(value)  # an array; float(value) would wait for it
    return state, np.array(jax.device_get(losses))
# --8<-- [end:train]


# --8<-- [start:accuracy]
def accuracy(params: Params, data: Data) -> jax.Array:
    images, labels = data
    scores = jax.vmap(predict, (None, 0))(params, images)
    return (scores.argmax(axis=1) == labels).mean()
# --8<-- [end:accuracy]
