"""A console in one of several processes, which runs the lines it is sent: consoles.py ADDRESS COUNT INDEX."""

# Laid out as on the page.
# fmt: off
import os

# --8<-- [start:console]
import sys

import jax
import numpy as np
from jax.experimental import multihost_utils


def main(address: str, count: int, index: int) -> None:
    jax.config.update("jax_platforms", "cpu")  # leave out on accelerators
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(address, count, index)
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    split = jax.NamedSharding(mesh, jax.P("data"))
    mine = np.arange(10 * index, 10 * index + 2, dtype=np.float32)
    x = jax.make_array_from_process_local_data(split, mine)
    run(globals() | {"x": x, "total": jax.jit(lambda x: x.sum())})
# --8<-- [end:console]


# --8<-- [start:run]
def run(names: dict[str, object]) -> None:
    sys.stdout = os.fdopen(os.dup(1), "w")  # for the replies alone
    os.dup2(2, 1)  # lines printed by C++ libraries join the errors
    line = "float(total(x)); multihost_utils.assert_equal(0)"  # connects
    while line:
        try:
            exec(line, names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        print("ready", flush=True)
        line = sys.stdin.readline()
# --8<-- [end:run]


# --8<-- [start:stop]
def steps_until_stop(total: jax.stages.Wrapped, x: jax.Array) -> int:
    step = 0
    while not multihost_utils.reached_preemption_sync_point(step):
        float(total(x))  # a training step
        step += 1
    return step  # save here: every process is at this step
# --8<-- [end:stop]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
