"""A loader for worker processes. It imports no JAX, so that a worker starts fast and takes no device."""

import os
import sys

# --8<-- [start:load]
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future

import numpy as np


def load(number: int) -> np.ndarray:
    time.sleep(0.03)  # a slow disk, or a network
    rng = np.random.default_rng(number)
    return rng.normal(size=(256, 256)).astype(np.float32)


# --8<-- [end:load]


# --8<-- [start:ahead]
def load_ahead(
    pool: Executor,
    load: Callable,
    numbers: Iterable[int],
    depth: int = 5,
) -> Iterator:
    waiting: deque[Future] = deque()
    for number in numbers:
        waiting.append(pool.submit(load, number))
        if len(waiting) == depth:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


# --8<-- [end:ahead]


def worker(_: object = None) -> tuple[int, bool]:
    """The process this runs in, and whether it has imported JAX."""
    return os.getpid(), "jax" in sys.modules
