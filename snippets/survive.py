"""A training job that is killed, stopped and resumed: survive.py ADDRESS COUNT INDEX FOLDER STEPS FAILURE."""

# Laid out as on the page.
# fmt: off
import os

# --8<-- [start:imports]
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import multihost_utils
from orbax.checkpoint import v1 as ocp

training = ocp.training
policies = {
    "save_decision_policy":
        training.save_decision_policies.FixedIntervalPolicy(10),
    "preservation_policy": training.preservation_policies.LatestN(2),
    "cleanup_tmp_directories": True}
# --8<-- [end:imports]


# --8<-- [start:state]
class State(NamedTuple):
    step: jax.Array  # steps done
    batch: jax.Array  # the number of the next batch
    key: jax.Array  # for the next dropout
    params: dict[str, jax.Array]
    memory: optax.OptState  # Adam's averages

adam = optax.adam(0.02)

def start() -> State:
    draw = np.random.default_rng(0).normal
    params = {"first": jnp.float32(draw(0, 0.4, (8, 32))),
              "second": jnp.float32(draw(0, 0.2, (32, 1)))}
    return State(jnp.int32(0), jnp.int32(0), jax.random.key(1), params,
                 adam.init(params))
# --8<-- [end:state]


# --8<-- [start:update]
def load_batch(number: int) -> np.ndarray:
    rng = np.random.default_rng([7, number])
    return rng.normal(size=(32, 8)).astype(np.float32)

@jax.jit
def update(state: State, x: jax.Array) -> tuple[State, jax.Array]:
    key, now = jax.random.split(state.key)

    def loss(params: dict[str, jax.Array]) -> jax.Array:
        hidden = jnp.tanh(x @ params["first"])
        kept = jax.random.bernoulli(now, 0.9, hidden.shape) / 0.9
        guess = (hidden * kept) @ params["second"]
        return jnp.mean((guess[:, 0] - jnp.sin(x[:, 0] + x[:, 1])) ** 2)

    value, grads = jax.value_and_grad(loss)(state.params)
    change, memory = adam.update(grads, state.memory)
    params = optax.apply_updates(state.params, change)
    return State(state.step + 1, state.batch + 1, key, params, memory), value
# --8<-- [end:update]


# --8<-- [start:train]
def train(folder: Path, steps: int, failure: int) -> bool:
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    whole, split = (jax.NamedSharding(mesh, p) for p in (jax.P(), jax.P("data")))
    state = jax.jit(start, out_shardings=whole)()
    with training.Checkpointer(folder.absolute(), **policies) as saved:
        if saved.latest:
            state = saved.load(saved.latest, state)
        for done in range(int(state.step) + 1, steps + 1):
            x = jax.device_put(load_batch(int(state.batch)), split)
            state, loss = update(state, x)
            notice = multihost_utils.reached_preemption_sync_point(done)
            saved.save(done, state, force=notice or done == steps)
            print("step", done, float(loss), flush=True)
            if notice:
                return False
            if done == failure:
                sys.stdin.readline()  # so that the page can end it here
    return True
# --8<-- [end:train]


# --8<-- [start:main]
def main(address: str, count: str, index: str, folder: str, steps: str,
         failure: str) -> None:
    jax.config.update("jax_platforms", "cpu")  # leave out on accelerators
    jax.distributed.initialize(address, int(count), int(index),
                               heartbeat_timeout_seconds=5)
    finished = train(Path(folder), int(steps), int(failure))
    jax.distributed.shutdown()  # waits for the other processes
    sys.exit(0 if finished else 75)
# --8<-- [end:main]


if __name__ == "__main__":
    sys.stdout = os.fdopen(os.dup(1), "w")  # for the lines above alone
    os.dup2(2, 1)  # lines printed by C++ libraries join the errors
    main(*sys.argv[1:])
