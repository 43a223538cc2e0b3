"""A small regression trained with several pairs of dtypes, with loss scaling and with float8 products."""

# mypy: disable-error-code="no-any-return, no-untyped-call, type-arg"
# Laid out as on the page.
# fmt: off
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

# --8<-- [start:loss]
Params = dict[str, jax.Array]

def cast(tree: Params, dtype: jax.typing.DTypeLike) -> Params:
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)

def loss(params: Params, x: jax.Array, y: jax.Array,
         compute: jax.typing.DTypeLike) -> jax.Array:
    low, x = cast(params, compute), x.astype(compute)
    hidden = jnp.tanh(x @ low["w"])
    wide = jnp.promote_types(compute, jnp.float32)
    guess = (hidden @ low["v"]).astype(wide)
    return optax.squared_error(guess, y).mean()
# --8<-- [end:loss]


# --8<-- [start:task]
def task(examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Points, and the heights of a smooth surface above them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(examples, 16)).astype(np.float32)
    return x, np.tanh(x @ rng.normal(size=(16, 4)) / 4).sum(axis=1)

def init(key: jax.Array, width: int = 64) -> Params:
    w_key, v_key = jax.random.split(key)
    return {"w": jax.random.normal(w_key, (16, width)) / 4,
            "v": jax.random.normal(v_key, (width,)) / width}
# --8<-- [end:task]


# --8<-- [start:step]
optimizer = optax.adam(optax.cosine_decay_schedule(0.01, 300))

@partial(jax.jit, static_argnames="compute")
def step(params: Params, state: optax.OptState, x: jax.Array,
         y: jax.Array, compute: jax.typing.DTypeLike) -> tuple:
    value, grads = jax.value_and_grad(loss)(params, x, y, compute)
    updates, state = optimizer.update(grads, state, params)
    new = optax.apply_updates(params, updates)
    moved = sum((new[name] != params[name]).sum() for name in params)
    return new, state, (value, moved)
# --8<-- [end:step]


# --8<-- [start:scale]
class Scale(NamedTuple):
    factor: jax.Array  # float32: 2.0**17 is infinite in float16
    good: jax.Array    # steps since the factor changed

def adjust(scale: Scale, finite: jax.Array, every: int) -> Scale:
    """Halve after an overflow, double after `every` good steps."""
    good = jnp.where(finite, scale.good + 1, 0)
    grow = good == every
    by = jnp.where(finite, jnp.where(grow, 2.0, 1.0), 0.5)
    return Scale(scale.factor * by, jnp.where(grow, 0, good))
# --8<-- [end:scale]


# --8<-- [start:scaled]
PARTS = 2048  # the whole batch has 2,048 parts; x and y are one of them

@jax.jit
def scaled_step(params: Params, state: optax.OptState, scale: Scale,
                x: jax.Array, y: jax.Array) -> tuple:
    def scaled(params: Params) -> jax.Array:
        return scale.factor * loss(params, x, y, jnp.float16) / PARTS

    value, grads = jax.value_and_grad(scaled)(params)
    value, grads = jax.tree.map(  # all of them are float32 here
        lambda leaf: leaf / scale.factor * PARTS, (value, grads))
    leaves = jax.tree.leaves(grads)
    finite = jnp.array([jnp.isfinite(g).all() for g in leaves]).all()
    updates, new_state = optimizer.update(grads, state, params)
    new = optax.apply_updates(params, updates), new_state
    params, state = jax.tree.map(
        lambda new, old: jnp.where(finite, new, old), new, (params, state))
    return params, state, adjust(scale, finite, 40), (value, finite)
# --8<-- [end:scaled]


# --8<-- [start:float8]
Dtype = jax.typing.DTypeLike
E4M3, E5M2 = jnp.float8_e4m3fn, jnp.float8_e5m2

def quantize(x: jax.Array, dtype: Dtype) -> tuple[jax.Array, jax.Array]:
    largest = jnp.maximum(jnp.abs(x.astype(jnp.float32)).max(), 1e-30)
    scale = jnp.float32(jnp.finfo(dtype).max) / largest
    return (x * scale).astype(dtype), scale

def product(a: tuple, b: tuple) -> jax.Array:
    total = jnp.matmul(a[0], b[0], preferred_element_type=jnp.float32)
    return total / a[1] / b[1]
# --8<-- [end:float8]


# --8<-- [start:float8-rule]
@jax.custom_vjp
def matmul8(x: jax.Array, w: jax.Array) -> jax.Array:
    return product(quantize(x, E4M3), quantize(w, E4M3))

def forward(x: jax.Array, w: jax.Array) -> tuple:
    saved = quantize(x, E4M3), quantize(w, E4M3)  # one byte per element
    return product(*saved), saved

def backward(saved: tuple, slope: jax.Array) -> tuple:
    (x, x_scale), (w, w_scale) = saved
    s = quantize(slope, E5M2)
    return product(s, (w.mT, w_scale)), product((x.mT, x_scale), s)

matmul8.defvjp(forward, backward)
# --8<-- [end:float8-rule]
