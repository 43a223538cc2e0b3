"""Shapes that would broadcast without an error, which programs must refuse."""

import equinox as eqx
import jax.numpy as jnp
import pytest
from flax import nnx

from tests.site.recommended.attack import program

COLUMN = jnp.ones((4, 1))  # beside rows of shape (4,)
REFUSED = "(?i)shape"


def test_a_column_of_targets_is_refused() -> None:
    found = program("answers/training.md#training-loop", "step", "optimizer")
    w = jnp.zeros(3)
    with pytest.raises(ValueError, match=REFUSED):
        found["step"](w, found["optimizer"].init(w), jnp.ones((4, 3)), COLUMN)
    numbers = {"w": jnp.zeros(()), "b": jnp.zeros(())}
    with pytest.raises(ValueError, match=REFUSED):
        program("answers/pytorch.md#backward", "loss")["loss"](numbers, jnp.ones(4), COLUMN)
    with pytest.raises(ValueError, match=REFUSED):
        program("answers/optax.md#line-search", "loss_fn")["loss_fn"](jnp.zeros(3), jnp.ones((4, 3)), COLUMN)


def test_a_row_of_targets_is_refused_beside_a_column_of_outputs() -> None:
    x, y = jnp.ones((4, 2)), jnp.ones(4)
    found = program("answers/equinox-and-optax.md#optimizer-init", "step", "model", "optimizer")
    state = found["optimizer"].init(eqx.filter(found["model"], eqx.is_inexact_array))
    with pytest.raises(ValueError, match=REFUSED):
        found["step"](found["model"], state, x, y)
    found = program("answers/nnx-training.md#training-step", "step", "model", "optimizer")
    with pytest.raises(ValueError, match=REFUSED):
        found["step"](found["model"], found["optimizer"], x, y)
    model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    found = program("answers/nnx-training.md#lbfgs", "loss_fn", x=x, y=y)
    with pytest.raises(ValueError, match=REFUSED):
        found["loss_fn"](model)


def test_a_column_of_guesses_is_not_compared_with_a_row_of_labels() -> None:
    evaluate = program("answers/training.md#metrics", "evaluate")["evaluate"]
    with pytest.raises(AssertionError):
        evaluate(jnp.zeros(2, int), jnp.ones((4, 1), int), jnp.ones(4, int))
