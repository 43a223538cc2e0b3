"""The loader for worker processes: the same batch wherever it is loaded, and no JAX."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

SNIPPETS = Path(__file__).parents[2] / "snippets"
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
