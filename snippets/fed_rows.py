"""Rows for a training run, read by Grain: fed_rows.py ADDRESS COUNT INDEX reads the share of one process."""

# Laid out as on the page.
# fmt: off
import os
import sys

import grain  # type: ignore[import-untyped]

# --8<-- [start:source]
import jax
import numpy as np

Example = dict[str, np.ndarray]

class Rows:
    def __init__(self, count: int = 24) -> None:
        self.count, self.read = count, list[int]()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> Example:  # open, seek, decode
        self.read.append(int(row))
        return {"row": np.array(row), "x": np.full(3, row, np.float32)}
# --8<-- [end:source]


# --8<-- [start:batches]
def jitter(example: Example, rng: np.random.Generator) -> Example:
    noise = rng.normal(size=3).astype(np.float32)
    return example | {"x": example["x"] + noise}

def batches(source: Rows, index: int = 0, count: int = 1) -> grain.MapDataset:
    assert 8 % count == 0, "8 rows do not divide by the processes"
    rows = grain.MapDataset.source(source).seed(7).shuffle().repeat()
    mine = rows.random_map(jitter)[index::count]
    return mine.batch(8 // count, drop_remainder=True)
# --8<-- [end:batches]


# --8<-- [start:main]
def main(address: str, count: int, index: int) -> None:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(address, count, index)
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    split = jax.NamedSharding(mesh, jax.P("data"))

    source = Rows()
    mine = batches(source, jax.process_index(), jax.process_count())
    for step in range(3):
        local = mine[step]
        batch = jax.make_array_from_process_local_data(split, local)
        print("step", step, batch["x"].shape, "rows", *local["row"],
              f"sum {float(jax.jit(jax.numpy.sum)(batch['x'])):.2f}")
    print("read", len(source.read), "of", len(source), "rows")
    whole = batches(source)[3]  # all rows of step 3, in each process
    batch = jax.make_array_from_process_local_data(split, whole)
    print("unsplit", batch["x"].shape)
# --8<-- [end:main]


def same_rows() -> None:
    mesh = jax.make_mesh((1, jax.device_count()), ("data", "model"))
    whole = batches(Rows())[3]
    for name, spec in (("replicated", jax.P()), ("rows on one axis", jax.P("data"))):
        split = jax.NamedSharding(mesh, spec)
        batch = jax.make_array_from_process_local_data(split, whole)
        assert batch["x"].shape == (8, 3), name


if __name__ == "__main__":
    sys.stdout = os.fdopen(os.dup(1), "w")  # for the lines above alone
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # C++ libraries print lines, too, and can break these
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    same_rows()
