"""Eight devices in this process, beside the one that all other tests run on."""

from functools import cache
from typing import Any

import jax
from jaxlib import xla_client


@cache
def eight() -> list[jax.Device]:
    """Eight devices of a CPU, for a mesh; `jax.devices()` still returns one.

    They belong to a second client of XLA, since the first one cannot get more devices once it runs.
    """
    client: Any = xla_client.make_cpu_client(asynchronous=True, num_devices=8)
    return list(client.devices())


@cache
def mesh(*sizes: int, names: tuple[str, ...] = ("data", "model")) -> jax.sharding.Mesh:
    """A mesh of these sizes, on the first of the eight devices."""
    count = 1
    for size in sizes:
        count *= size
    return jax.make_mesh(sizes, names[: len(sizes)], devices=eight()[:count])
