"""Layer 4: Orbax keeps checkpoints, so that a run can stop and resume."""

# Laid out as on the page.
# fmt: off
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import jax
import numpy as np
from orbax.checkpoint import v1 as ocp
from training_data import Data

S = TypeVar("S")  # a training state, of any kind

# --8<-- [start:train]
def train_safely(folder: Path,
                 step: Callable[[S, Data], tuple[S, jax.Array]],
                 state: S, data: Data, steps: int) -> tuple[S, np.ndarray]:
    training = ocp.training
    every_50 = training.save_decision_policies.FixedIntervalPolicy(50)
    newest_2 = training.preservation_policies.LatestN(2)
    with training.Checkpointer(folder.absolute(),
                               save_decision_policy=every_50,
                               preservation_policy=newest_2) as saved:
        done = saved.latest.step if saved.latest else 0
        if done:
            state = saved.load(abstract_state=state)  # the latest
        if done > steps:
            raise ValueError(f"{folder} already holds step {done}")
        losses = []
        for n in range(done, steps):
            state, value = step(state, data)
            losses.append(value)
            saved.save_async(n + 1, state)  # if the policy says so
    return state, np.array(jax.device_get(losses))
# --8<-- [end:train]
