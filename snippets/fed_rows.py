"""Rows for a training run, read by Grain: two_readers.py reads them in several processes."""

# Laid out as on the page.
# fmt: off
import grain  # type: ignore[import-untyped]

# --8<-- [start:source]
import numpy as np

Example = dict[str, np.ndarray]

class Rows:
    def __init__(self, total: int = 24) -> None:
        self.total = total
        self.read: list[int] = []

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, row: int) -> Example:
        self.read.append(int(row))  # your source would open a file here
        return {"row": np.array(row), "x": np.full(3, row, np.float32)}
# --8<-- [end:source]


# --8<-- [start:batches]
def jitter(example: Example, rng: np.random.Generator) -> Example:
    noise = rng.normal(size=3).astype(np.float32)
    return example | {"x": example["x"] + noise}

def batches(source: Rows, index: int = 0, count: int = 1) -> grain.MapDataset:
    assert 8 % count == 0, "8 rows do not divide by the processes"
    assert 0 <= index < count, "processes are numbered from 0"
    rows = grain.MapDataset.source(source).seed(7).shuffle().repeat()
    noisy = rows.random_map(jitter)
    mine = noisy[index::count]  # of process `index` of `count`
    return mine.batch(8 // count, drop_remainder=True)
# --8<-- [end:batches]
