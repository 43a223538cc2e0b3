"""A job that goes on without the hosts that are lost: live_hosts.py ADDRESS COUNT INDEX."""

# Laid out as on the page.
# fmt: off
import os
import sys

import jax
import numpy as np
from jax.experimental import multihost_utils


# --8<-- [start:live]
def main(address: str, count: int, index: int) -> None:
    jax.config.update("jax_platforms", "cpu")  # leave out on accelerators
    jax.config.update("jax_enable_recoverability", True)
    jax.distributed.initialize(address, count, index,
                               heartbeat_timeout_seconds=5)
    total = jax.jit(lambda x: x.sum())
    while True:
        try:
            with multihost_utils.live_devices(jax.devices()) as live:
                mesh = jax.sharding.Mesh(live, "data")
                rows = jax.NamedSharding(mesh, jax.P("data"))
                x = jax.make_array_from_process_local_data(rows, np.ones(1))
                print(f"sum over {float(total(x)):.0f} hosts", flush=True)
                sys.stdin.readline()  # until a host is lost
        except multihost_utils.ProcessFailureError as error:
            lost = {device.process_index for device in error.failed_devices}
            print("lost", *lost, flush=True)
# --8<-- [end:live]


if __name__ == "__main__":
    sys.stdout = os.fdopen(os.dup(1), "w")  # for the lines above alone
    os.dup2(2, 1)  # lines printed by C++ libraries join the errors
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
