"""The loader for worker processes: the same batch wherever it is loaded, and no JAX."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

SNIPPETS = Path(__file__).parents[3] / "snippets"
sys.path.insert(0, str(SNIPPETS))
slow_files = import_module("slow_files")


def test_a_number_is_a_batch() -> None:
    first, again, other = slow_files.load(3), slow_files.load(3), slow_files.load(4)
    assert first.shape == (256, 256)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_it_does_not_import_jax() -> None:
    code = "import slow_files; print(slow_files.worker()[1])"
    printed = subprocess.run([sys.executable, "-c", code], cwd=SNIPPETS, capture_output=True, text=True, check=True)
    assert printed.stdout == "False\n"


class Pool:
    """Run what it gets at once, and count it."""

    submitted = 0

    def submit(self, function: Callable[[int], int], number: int) -> Future[int]:
        self.submitted += 1
        future: Future[int] = Future()
        try:
            future.set_result(function(number))
        except OSError as error:
            future.set_exception(error)
        return future


def test_batches_come_in_order_and_a_few_ahead() -> None:
    pool = Pool()
    batches = slow_files.load_ahead(pool, lambda number: number, range(6), depth=3)
    assert next(batches) == 0
    assert pool.submitted == 3
    assert next(batches) == 1
    assert pool.submitted == 4
    assert list(batches) == [2, 3, 4, 5]


def test_a_load_that_fails_raises_when_its_batch_is_due() -> None:
    def load(number: int) -> int:
        if number == 1:
            raise OSError("cannot read")
        return number

    batches = slow_files.load_ahead(Pool(), load, range(3), depth=3)
    assert next(batches) == 0
    with pytest.raises(OSError, match="cannot read"):
        next(batches)
