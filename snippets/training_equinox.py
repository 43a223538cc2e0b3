"""Layer 2: Equinox makes the model a class that is a pytree."""

# Laid out as on the page.
# fmt: off
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from training_data import Data, batch
from training_optax import optimizer
from training_pure import Params


# --8<-- [start:model]
class MLP(eqx.Module):
    hidden: eqx.nn.Linear
    out: eqx.nn.Linear
    activation: Callable[[jax.Array], jax.Array]

    def __init__(self, key: jax.Array) -> None:
        hidden_key, out_key = jax.random.split(key)
        self.hidden = eqx.nn.Linear(64, 64, key=hidden_key)
        self.out = eqx.nn.Linear(64, 10, key=out_key)
        self.activation = jax.nn.relu

    def __call__(self, image: jax.Array) -> jax.Array:
        return self.out(self.activation(self.hidden(image.ravel())))
# --8<-- [end:model]


# --8<-- [start:step]
def loss(model: MLP, examples: Data) -> jax.Array:
    images, labels = examples
    losses = optax.softmax_cross_entropy_with_integer_labels
    return losses(jax.vmap(model)(images), labels).mean()

class State(NamedTuple):
    step: jax.Array
    model: MLP
    memory: optax.OptState

@eqx.filter_jit
def step(state: State, data: Data) -> tuple[State, jax.Array]:
    examples = batch(data, state.step)
    value, grads = eqx.filter_value_and_grad(loss)(state.model, examples)
    updates, memory = optimizer.update(grads, state.memory)
    model = eqx.apply_updates(state.model, updates)
    return State(state.step + 1, model, memory), value
# --8<-- [end:step]


# --8<-- [start:start]
def start(model: MLP) -> State:
    arrays = eqx.filter(model, eqx.is_array)
    return State(jnp.int32(0), model, optimizer.init(arrays))
# --8<-- [end:start]


# --8<-- [start:load]
def load(model: MLP, params: Params) -> MLP:
    new = [a for p in params for a in (p["w"].T, p["b"])]
    return eqx.tree_at(lambda m: [m.hidden.weight, m.hidden.bias,
                                  m.out.weight, m.out.bias], model, new)
# --8<-- [end:load]
