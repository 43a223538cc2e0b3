"""The eight devices of a CPU that the tests of this site have, as its pages do."""

import math

import jax


def eight() -> list[jax.Device]:
    """All of them."""
    return jax.devices("cpu")


def mesh(*sizes: int, names: tuple[str, ...] = ("data", "model")) -> jax.sharding.Mesh:
    """A mesh of these sizes, on the first of them."""
    return jax.make_mesh(sizes, names[: len(sizes)], devices=eight()[: math.prod(sizes)])
