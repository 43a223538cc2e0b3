"""A job that stalls, because the data of its processes differ in length: stalled.py ADDRESS COUNT INDEX."""

# Laid out as on the page.
# fmt: off
import faulthandler
import os
import signal
import sys

import jax
import numpy as np


# --8<-- [start:train]
def train(shares: np.ndarray, split: jax.NamedSharding) -> None:
    step = jax.jit(lambda x: x.mean())
    for number, mine in enumerate(shares):
        print("begin", number, flush=True)
        x = jax.make_array_from_process_local_data(split, mine)
        jax.block_until_ready(step(x))
        print("end", number, flush=True)

def main(address: str, count: int, index: int) -> None:
    stacks = open(f"stacks-{index}.txt", "w")  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1, stacks)
    jax.config.update("jax_platforms", "cpu")
    jax.distributed.initialize(address, count, index)
    mesh = jax.make_mesh((count,), ("data",))
    data = np.arange(13, dtype=np.float32)[index::count]  # 7 and 6 rows
    train(data.reshape(-1, 1), jax.NamedSharding(mesh, jax.P("data")))
# --8<-- [end:train]


if __name__ == "__main__":
    sys.stdout = os.fdopen(os.dup(1), "w")  # for the lines above alone
    os.dup2(2, 1)  # lines printed by C++ libraries join the errors
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
