"""A loader for worker processes. It imports no JAX, so that a worker starts fast and takes no device."""

import os
import sys

# --8<-- [start:load]
import time

import numpy as np


def load(number: int) -> np.ndarray:
    time.sleep(0.04)  # a slow disk, or a network
    rng = np.random.default_rng(number)
    return rng.normal(size=(256, 256)).astype(np.float32)


# --8<-- [end:load]


def worker(_: object = None) -> tuple[int, bool]:
    """The process this runs in, and whether it has imported JAX."""
    return os.getpid(), "jax" in sys.modules
