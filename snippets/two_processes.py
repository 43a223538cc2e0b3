"""One of several processes that fit one model to one data set: two_processes.py ADDRESS COUNT INDEX."""

import sys

# --8<-- [start:share]
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import NamedSharding, PartitionSpec


def split_rows() -> NamedSharding:
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    return NamedSharding(mesh, PartitionSpec("data"))


def read_file(number: int) -> np.ndarray:  # 4 rows: three inputs, a target
    x = np.random.default_rng(number).normal(size=(4, 3))
    return np.column_stack([x, x @ [1, -2, 3]]).astype(np.float32)


def read_share() -> jax.Array:
    files = range(8)[jax.process_index() :: jax.process_count()]
    mine = np.concatenate([read_file(number) for number in files])
    return jax.make_array_from_process_local_data(split_rows(), mine)


# --8<-- [end:share]


# --8<-- [start:fit]
@jax.jit
def descend(w: jax.Array, rows: jax.Array) -> jax.Array:
    def loss(w: jax.Array) -> jax.Array:
        guess = jnp.sum(rows[:, :3] * w, axis=1)
        return jnp.mean((guess - rows[:, 3]) ** 2)

    gradient: jax.Array = jax.grad(loss)(w)
    return w - 0.1 * gradient


def fit(rows: jax.Array) -> str:
    w = jnp.zeros(3)
    for _ in range(30):
        w = descend(w, rows).block_until_ready()
    return " ".join(f"{number:.3f}" for number in w)


# --8<-- [end:fit]


# --8<-- [start:look]
def look(rows: jax.Array) -> None:
    local, total = jax.local_device_count(), jax.device_count()
    here = sum(len(shard.data) for shard in rows.addressable_shards)
    print(f"{local} of {total} devices, {here} of {len(rows)} rows")
    try:
        print(np.asarray(rows).shape)
    except RuntimeError as error:
        print(str(error)[:70], "...")


# --8<-- [end:look]


# --8<-- [start:save]
def save(rows: jax.Array, path: str) -> None:
    if jax.process_count() > 1 and rows.is_fully_addressable:
        raise ValueError("each process made these rows, not all together")
    everything = process_allgather(rows, tiled=True)  # every process
    if jax.process_index() == 0:
        np.save(path, everything)  # process 0 alone


# --8<-- [end:save]


# --8<-- [start:main]
def main(address: str, count: int, index: int) -> None:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(address, count, index)

    rows = read_share()
    look(rows)
    print("w:", fit(rows))
    if index == 0:
        print("calling save", flush=True)
    number = 0 if index == 0 else float(input())  # process 1 waits here
    mine = np.full(jax.local_device_count(), number, np.float32)
    save(jax.make_array_from_process_local_data(split_rows(), mine), "all.npy")
    if index == 0:
        print("saved:", np.load("all.npy"))


# --8<-- [end:main]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
