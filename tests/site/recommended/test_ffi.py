"""The normalization in C++ of extend/ffi.md, called without JAX, against NumPy in float64."""

import ctypes
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import PROJECT, attack
from tests.site.strategies import arrays, assert_same

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler named c++")
WRAPPER = """
extern "C" void call(const float* x, const float* w, float* y, float* factor, int64_t rows, int64_t n, float eps) {
  rms_norm(x, w, y, factor, rows, n, eps);
}
"""


@cache
def compiled() -> Any:
    """The function of the page's header, compiled as the page compiles it."""
    shown = (PROJECT.root / "snippets" / "rms_norm.py").read_text(encoding="utf-8")
    header = re.search(r'"rms_norm\.h"\)\.write_text\("""(.*?)"""', shown, re.DOTALL)
    assert header
    with TemporaryDirectory() as folder:
        source, library = Path(folder, "norm.cc"), Path(folder, "norm.so")
        source.write_text(header[1] + WRAPPER, encoding="utf-8")
        options = ["-w", "-std=c++17", "-shared", "-fPIC"]
        subprocess.run(["c++", *options, "-o", str(library), str(source)], check=True)  # noqa: S607
        return ctypes.CDLL(str(library)).call


def normalized(x: Array, w: Array, eps: float = 1e-6) -> Array:
    """Each row of x as the C++ code normalizes it."""
    x, w = np.ascontiguousarray(x, np.float32), np.ascontiguousarray(w, np.float32)
    y, factor = np.empty_like(x), np.empty(len(x), np.float32)
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (x, w, y, factor))
    compiled()(*pointers, ctypes.c_int64(len(x)), ctypes.c_int64(w.size), ctypes.c_float(eps))
    return y


def exact(x: Array, w: Array) -> Array:
    """The same in float64."""
    wide = x.astype(float)
    found: Array = w * wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    return found


@attack(x=arrays((4, 3), odd=False), w=arrays((3,), odd=False), size=st.sampled_from([1, 1e-20, 1e20, 1e34]))
def test_rows_of_any_size_are_normalized(x: Array, w: Array, size: float) -> None:
    x = x * np.float32(size)
    assert_same(normalized(x, w), exact(x, w), atol=1e-6)


@pytest.mark.parametrize("n", [1, 1000, 10**6])
def test_a_long_row_loses_no_digits(n: int) -> None:
    x = np.random.default_rng(0).normal(size=(1, n)).astype(np.float32)
    w = np.ones(n, np.float32)
    assert_same(normalized(x, w), exact(x, w), rtol=1e-5, atol=1e-7)


def test_a_row_of_more_than_2_to_the_24_ones_stays_ones() -> None:
    ones = np.ones((1, 2**25), np.float32)
    assert abs(normalized(ones, ones[0])[0, -1] - 1) < 1e-5
