"""A stack of transformer blocks with named values, its training step, and what each choice of names keeps."""

# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, type-arg"
# Laid out as on the page.
# fmt: off
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name

# --8<-- [start:block]
Params = dict[str, jax.Array]

def block(x: jax.Array, w: Params) -> tuple[jax.Array, None]:
    examples, time, width = x.shape
    exact = x.astype(jnp.float32)  # the square of 256 is no float16
    size = jax.lax.rsqrt(jnp.mean(exact**2, axis=-1, keepdims=True) + 1e-6)
    qkv = checkpoint_name((exact * size).astype(x.dtype) @ w["qkv"], "qkv")
    q, k, v = jnp.split(qkv.reshape(examples, time, 4, -1), 3, axis=-1)

    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) / width**0.5
    scores = checkpoint_name(scores, "scores")
    mixed = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores), v)
    mixed = checkpoint_name(mixed.reshape(x.shape), "mixed")

    x = x + mixed @ w["out"]
    up = checkpoint_name(x @ w["up"], "up")
    return x + jax.nn.gelu(up) @ w["down"], None
# --8<-- [end:block]


# --8<-- [start:step]
Body = Callable[[jax.Array, Params], tuple[jax.Array, None]]
optimizer = optax.adamw(1e-3)

def loss(params: Params, x: jax.Array, y: jax.Array, body: Body) -> jax.Array:
    x, _ = jax.lax.scan(body, x, params)
    return jnp.mean(optax.squared_error(x, y))  # of one shape

def make_step(body: Body) -> Callable:
    def step(params: Params, memory: optax.OptState, x: jax.Array,
             y: jax.Array) -> tuple:
        grads = jax.grad(loss)(params, x, y, body)
        updates, memory = optimizer.update(grads, memory, params)
        return optax.apply_updates(params, updates), memory
    return jax.jit(step, donate_argnums=(0, 1))
# --8<-- [end:step]


# --8<-- [start:init]
def init_block(key: jax.Array, width: int = 64) -> Params:
    shapes = {"qkv": (width, 3 * width), "out": (width, width),
              "up": (width, 4 * width), "down": (4 * width, width)}
    keys = jax.random.split(key, len(shapes))
    return {name: jax.random.normal(k, shape) * shape[0] ** -0.5
            for k, (name, shape) in zip(keys, shapes.items())}

def init(key: jax.Array, layers: int) -> Params:
    return jax.vmap(init_block)(jax.random.split(key, layers))
# --8<-- [end:init]


# --8<-- [start:work]
def work(program: Any, times: int = 1) -> int:
    """Multiplications in the matrix products of a jaxpr."""
    total = 0
    for eqn in program.eqns:
        if eqn.primitive.name == "dot_general":
            (summed, _), _ = eqn.params["dimension_numbers"]
            lengths = [eqn.invars[0].aval.shape[axis] for axis in summed]
            total += times * eqn.outvars[0].aval.size * math.prod(lengths)
        inner = times * eqn.params.get("length", 1)  # of a scan
        for value in jax.tree.leaves(list(eqn.params.values())):
            part = getattr(value, "jaxpr", value)
            if hasattr(part, "eqns"):
                total += work(part, inner)
    return total
# --8<-- [end:work]
