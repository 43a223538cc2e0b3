"""Layer 4: Orbax keeps checkpoints, so that a run can stop and go on."""

# Laid out as on the page.
# fmt: off
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from training_data import Data

S = TypeVar("S")  # a training state, of any kind

# --8<-- [start:train]
def train_safely(folder: Path,
                 step: Callable[[S, Data], tuple[S, jax.Array]],
                 state: S, data: Data, steps: int) -> tuple[S, jax.Array]:
    options = ocp.CheckpointManagerOptions(save_interval_steps=50,
                                           max_to_keep=2)
    with ocp.CheckpointManager(folder.absolute(), options=options) as saved:
        done = saved.latest_step() or 0
        if done:
            state = saved.restore(done, args=ocp.args.StandardRestore(state))
        losses = []
        for n in range(done, steps):
            state, value = step(state, data)
            losses.append(value)
            saved.save(n + 1, args=ocp.args.StandardSave(state))
    return state, jnp.array(losses)
# --8<-- [end:train]
