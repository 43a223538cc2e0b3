"""A training loop at work: accumulation, clipping, a schedule, averages, metrics, evaluation and early stopping."""

# mypy: disable-error-code="call-arg, no-any-return, type-arg"
# Laid out as on the page.
# fmt: off
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

# --8<-- [start:data]
Batch = dict[str, Any]  # "x" (n, 8), "y" (n,), "real" (n,): 0 for padding
Params = dict[str, jax.Array]

def examples(seed: int, n: int, noise: float) -> Batch:
    rng, surface = np.random.default_rng(seed), np.random.default_rng(0)
    x = rng.normal(size=(n, 8)).astype(np.float32)
    y = np.tanh(x @ surface.normal(size=(8, 3))).sum(axis=1)
    y = (y + noise * rng.normal(size=n)).astype(np.float32)
    return {"x": x, "y": y, "real": np.ones(n, np.float32)}

def draw(data: Batch, number: int, size: int = 64) -> Batch:
    """Batch `number`, some of it padding: the same one each time."""
    rng = np.random.default_rng((7, number))
    rows = rng.integers(len(data["y"]), size=size)
    batch = {name: array[rows] for name, array in data.items()}
    batch["real"][rng.integers(size // 2, size):] = 0
    return batch
# --8<-- [end:data]


# --8<-- [start:init]
def init(key: jax.Array) -> Params:
    w_key, v_key = jax.random.split(key)
    return {"w": jax.random.normal(w_key, (8, 64)) / 3,
            "b": jnp.zeros(64), "v": jax.random.normal(v_key, (64,)) / 8}
# --8<-- [end:init]


# --8<-- [start:loss]
def summed_loss(params: Params, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """The sum over the real examples, and how many there are."""
    guess = jnp.tanh(batch["x"] @ params["w"] + params["b"]) @ params["v"]
    errors = batch["real"] * optax.squared_error(guess, batch["y"])
    assert errors.shape == guess.shape  # a column of `real` would broadcast
    return errors.sum(dtype=float), batch["real"].sum(dtype=float)
# --8<-- [end:loss]


# --8<-- [start:accumulate]
def gradient(params: Params, batch: Batch, parts: int) -> tuple:
    """The mean loss of the whole batch, and its gradient."""
    def zero(a: jax.typing.ArrayLike) -> jax.Array:  # at least float32
        return jnp.zeros_like(a, jnp.promote_types(
            jnp.result_type(a), jnp.float32))

    def add(totals: tuple, part: Batch) -> tuple:
        of_sum = jax.value_and_grad(summed_loss, has_aux=True)
        return jax.tree.map(jnp.add, totals, of_sum(params, part)), None

    split = jax.tree.map(  # every device keeps its rows
        lambda a: a.reshape(-1, parts, *a.shape[1:]).swapaxes(0, 1), batch)
    zeros = jax.tree.map(zero, ((0.0, 0.0), params))
    ((total, count), grads), _ = jax.lax.scan(add, zeros, split)
    return total / count, jax.tree.map(
        lambda g, p: (g / count).astype(p.dtype), grads, params)
# --8<-- [end:accumulate]


# --8<-- [start:optimizer]
schedule = optax.warmup_cosine_decay_schedule(
    init_value=0.0, peak_value=0.03, warmup_steps=20, decay_steps=600,
    end_value=0.003)
adamw = optax.inject_hyperparams(
    optax.adamw, static_args=("mask", "b1", "b2", "eps"))
optimizer = optax.named_chain(
    ("clip", optax.clip_by_global_norm(1.0)),
    ("adamw", adamw(schedule, weight_decay=1e-3,
                    mask={"w": True, "b": False, "v": True})),
    ("factor", optax.inject_hyperparams(optax.scale)(step_size=1.0)))
# --8<-- [end:optimizer]


# --8<-- [start:state]
class State(NamedTuple):
    step: jax.Array
    params: Params
    average: Params             # of the parameters, for evaluation
    memory: optax.OptState
    seen: dict[str, jax.Array]  # metrics since they were last read

def begin(params: Params) -> State:
    copies = [jax.tree.map(jnp.copy, params) for _ in range(2)]
    return State(jnp.int32(0), *copies, optimizer.init(params),
                 {k: jnp.zeros(()) for k in ("loss", "norm", "real")})
# --8<-- [end:state]


# --8<-- [start:step]
@partial(jax.jit, static_argnames="parts", donate_argnames="state")
def step(state: State, batch: Batch, parts: int = 4) -> State:
    value, grads = gradient(state.params, batch, parts)
    updates, memory = optimizer.update(grads, state.memory, state.params)
    params = optax.apply_updates(state.params, updates)
    n = state.step + 1
    keep = jnp.minimum(0.98, n / (n + 10))  # less in the first steps
    average = optax.incremental_update(params, state.average, 1 - keep)
    norm = jnp.maximum(state.seen["norm"], optax.tree.norm(grads))
    real = batch["real"].sum(dtype=float)
    seen = {"loss": state.seen["loss"] + value * real, "norm": norm,
            "real": state.seen["real"] + real}
    return State(n, params, average, memory, seen)
# --8<-- [end:step]


# --8<-- [start:evaluate]
@jax.jit
def add_batch(totals: tuple, params: Params, batch: Batch) -> tuple:
    return jax.tree.map(jnp.add, totals, summed_loss(params, batch))

def evaluate(params: Params, data: Batch, size: int = 128) -> jax.Array:
    totals = jnp.zeros(()), jnp.zeros(())
    for first in range(0, len(data["y"]), size):
        batch = {k: a[first:first + size] for k, a in data.items()}
        fill = size - len(batch["y"])  # zeros, so `real` is 0 there
        batch = {k: np.pad(a, [(0, fill), (0, 0)][:a.ndim])
                 for k, a in batch.items()}
        totals = add_batch(totals, params, batch)
    return totals[0] / totals[1]
# --8<-- [end:evaluate]


# --8<-- [start:measure]
def measure(state: State, valid: Batch) -> dict[str, Any]:
    seen = state.seen
    row = {"train": seen["loss"] / seen["real"], "norm": seen["norm"],
           "valid": evaluate(state.params, valid),
           "averaged": evaluate(state.average, valid),
           "rate": state.memory["adamw"].hyperparams["learning_rate"],
           "factor": state.memory["factor"].hyperparams["step_size"]}
    return jax.device_get(row)  # the only place that waits
# --8<-- [end:measure]


# --8<-- [start:fit]
def fit(state: State, data: Batch, valid: Batch, steps: int = 600,
        every: int = 20, patience: int = 8) -> tuple:
    best, lowest = jax.tree.map(jnp.copy, state.average), np.inf
    waited, log = 0, {}
    for first in range(int(state.step), steps, every):
        last = min(first + every, steps)
        for number in range(first, last):
            state = step(state, draw(data, number))
        log[last] = row = measure(state, valid)
        state = state._replace(seen=jax.tree.map(jnp.zeros_like, state.seen))
        if row["averaged"] < 0.999 * lowest:
            lowest, waited = row["averaged"], 0
            best = jax.tree.map(jnp.copy, state.average)
        else:
            waited += 1
            if waited == patience:
                break
            if waited % 3 == 0:  # try smaller steps first
                held = state.memory["factor"].hyperparams
                held["step_size"] = held["step_size"] / 2
    return state, best, log
# --8<-- [end:fit]
