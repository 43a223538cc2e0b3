"""Layer 1: Optax brings the optimizer and the loss."""

# Laid out as on the page.
# fmt: off
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from training_data import Data, batch
from training_pure import Params, predict

# --8<-- [start:step]
optimizer = optax.adam(0.03)

class State(NamedTuple):
    step: jax.Array
    params: Params
    memory: optax.OptState

def loss(params: Params, examples: Data) -> jax.Array:
    images, labels = examples
    scores = jax.vmap(predict, (None, 0))(params, images)
    losses = optax.softmax_cross_entropy_with_integer_labels
    return losses(scores, labels).mean()

@jax.jit
def step(state: State, data: Data) -> tuple[State, jax.Array]:
    examples = batch(data, state.step)
    value, grads = jax.value_and_grad(loss)(state.params, examples)
    updates, memory = optimizer.update(grads, state.memory, state.params)
    params = optax.apply_updates(state.params, updates)
    return State(state.step + 1, params, memory), value
# --8<-- [end:step]


# --8<-- [start:start]
def start(params: Params) -> State:
    return State(jnp.int32(0), params, optimizer.init(params))
# --8<-- [end:start]
