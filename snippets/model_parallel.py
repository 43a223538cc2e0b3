"""Three programs inside `shard_map`: a pipeline, a mixture of experts, and attention over a split sequence."""

# mypy: disable-error-code="no-any-return"
# Laid out as on the page.
# fmt: off
from typing import Any

import jax
import jax.numpy as jnp


# --8<-- [start:pipeline]
def pipeline(stage: Any, params: Any, parts: jax.Array) -> jax.Array:
    """Return what all stages make of the parts (number, rows, width)."""
    here, count = jax.lax.axis_index("pipe"), jax.lax.axis_size("pipe")
    forward = [(i, i + 1) for i in range(count - 1)]
    params = jax.tree.map(lambda a: a.squeeze(0), params)  # one stage
    last = len(parts) - 1

    def tick(received: jax.Array, t: jax.Array) -> Any:
        new = parts[jnp.minimum(t, last)]
        done = stage(params, jnp.where(here == 0, new, received))
        return jax.lax.ppermute(done, "pipe", forward), done

    start = jax.lax.pcast(jnp.zeros_like(parts[0]), "pipe", to="varying")
    ticks = jnp.arange(len(parts) + count - 1)
    _, done = jax.lax.scan(tick, start, ticks)
    results = jnp.where(here == count - 1, done[count - 1:], 0)
    return jax.lax.psum(results, "pipe")
# --8<-- [end:pipeline]


# --8<-- [start:choose]
def choose(router: jax.Array, x: jax.Array) -> Any:
    """For each row its expert, its place in the box, and its weight."""
    chances = jax.nn.softmax(x @ router)
    expert = chances.argmax(axis=1)
    taken = jax.nn.one_hot(expert, router.shape[1], dtype=jnp.int32)
    place = (jnp.cumsum(taken, axis=0) * taken).sum(axis=1) - 1
    return expert, place, chances.max(axis=1)
# --8<-- [end:choose]


# --8<-- [start:experts]
def experts(params: Any, x: jax.Array, room: int) -> jax.Array:
    """Each row through its expert; one expert per device."""
    count = params["router"].shape[1]  # all_to_all refuses another number
    expert, place, weight = choose(params["router"], x)
    boxes = jnp.zeros((count, room, x.shape[1]), x.dtype)
    boxes = boxes.at[expert, place].set(x, mode="drop")

    sent = jax.lax.all_to_all(boxes, "expert", 0, 0)
    hidden = jax.nn.gelu(sent @ params["up"].squeeze(0))
    done = hidden @ params["down"].squeeze(0)
    back = jax.lax.all_to_all(done, "expert", 0, 0)

    found = back.at[expert, place].get(mode="fill", fill_value=0)
    return weight[:, None] * found
# --8<-- [end:experts]


# --8<-- [start:softmax]
def add_block(state: Any, q: jax.Array, k: jax.Array, v: jax.Array,
              mask: jax.Array) -> Any:
    """Add some keys and values to an unfinished softmax."""
    top, total, result = state
    scores = jnp.matmul(q, k.T, preferred_element_type=jnp.float32)
    scores = jnp.where(mask, scores / q.shape[1] ** 0.5, -jnp.inf)
    new_top = jnp.maximum(top, scores.max(axis=1))
    weight = jnp.exp(scores - new_top[:, None])
    shrink = jnp.exp(top - new_top)
    return (new_top, total * shrink + weight.sum(axis=1),
            result * shrink[:, None] + weight @ v)
# --8<-- [end:softmax]


# --8<-- [start:ring]
def ring_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal attention; each device has its part of (time, dim)."""
    here, count = jax.lax.axis_index("time"), jax.lax.axis_size("time")
    around = [(i, (i + 1) % count) for i in range(count)]
    row = jnp.arange(len(q))

    def hop(carry: Any, i: jax.Array) -> tuple[Any, None]:
        state, k, v = carry
        owner = (here - i) % count  # of the keys that are here now
        mask = (here * len(q) + row)[:, None] >= owner * len(q) + row
        state = add_block(state, q, k, v, mask)
        k, v = jax.lax.ppermute((k, v), "time", around)
        return (state, k, v), None

    zero = jnp.zeros_like(q, jnp.float32)
    start = (zero[:, 0] - jnp.inf, zero[:, 0], zero), k, v
    (state, _, _), _ = jax.lax.scan(
        jax.checkpoint(hop), start, jnp.arange(count))
    return (state[2] / state[1][:, None]).astype(q.dtype)
# --8<-- [end:ring]
