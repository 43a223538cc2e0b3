"""A program of several processes, two_readers.py ADDRESS COUNT INDEX, in which each reads its own rows."""

# Laid out as on the page.
# fmt: off
# --8<-- [start:all]
import sys

import jax
from fed_rows import Rows, batches


def main(address: str, count: int, index: int) -> None:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(address, count, index)
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    split = jax.NamedSharding(mesh, jax.P("data"))
    shapes = {"row": (8,), "x": (8, 3)}  # of the whole batch

    source = Rows()
    mine = batches(source, jax.process_index(), jax.process_count())
    for step in range(3):
        rows = mine[step]
        batch = jax.make_array_from_process_local_data(split, rows, shapes)
        total = float(jax.jit(jax.numpy.sum)(batch["x"]))
        print(f"step {step}, process {index}: "
              f"read {source.read[-4:]}, sum {total:.2f}")

    every = batches(Rows())[3]  # a mistake: all eight rows, in each process
    right = jax.make_array_from_process_local_data(split, every, shapes)
    wrong = jax.make_array_from_process_local_data(split, every)
    print(f"step 3, process {index}: {len(right['x'])} rows, "
          f"without shapes {len(wrong['x'])}")

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
# --8<-- [end:all]
