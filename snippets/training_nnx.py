"""Layer 3: Flax NNX makes the model an object that a step changes in place."""

# Laid out as on the page.
# fmt: off
import jax
import numpy as np
import optax
from flax import nnx
from training_data import Data, batch
from training_pure import Params


# --8<-- [start:model]
class MLP(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(64, 64, rngs=rngs)
        self.out = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        x = images.reshape(len(images), -1)
        return self.out(nnx.relu(self.hidden(x)))

def loss(model: MLP, examples: Data) -> jax.Array:
    images, labels = examples
    losses = optax.softmax_cross_entropy_with_integer_labels
    return losses(model(images), labels).mean()

def step(model: MLP, optimizer: nnx.Optimizer, data: Data) -> jax.Array:
    examples = batch(data, optimizer.step[...])
    value, grads = nnx.value_and_grad(loss)(model, examples)
    optimizer.update(model, grads)  # writes into both
    return value
# --8<-- [end:model]


# --8<-- [start:load]
def load(params: Params) -> tuple[MLP, nnx.Optimizer]:
    model = MLP(nnx.Rngs(0))
    for layer, p in zip([model.hidden, model.out], params, strict=True):
        layer.kernel[...], layer.bias[...] = p["w"], p["b"]
    return model, nnx.Optimizer(model, optax.adam(0.03), wrt=nnx.Param)
# --8<-- [end:load]


def train(model: MLP, optimizer: nnx.Optimizer, data: Data,
          steps: int) -> np.ndarray:
    """Losses of some steps, which change the model and the optimizer."""
    fast_step = nnx.jit(step)
    losses = [fast_step(model, optimizer, data) for _ in range(steps)]
    return np.array(jax.device_get(losses))
