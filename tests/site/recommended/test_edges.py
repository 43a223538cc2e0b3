"""Shapes that would broadcast without an error, and values at an edge: what programs must refuse, or show as NaN."""

from importlib import import_module
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.site.recommended.attack import program

COLUMN = jnp.ones((4, 1))  # beside rows of shape (4,)
REFUSED = "(?i)shape"
chains: Any = import_module("chains")
mixed_precision: Any = import_module("mixed_precision")
training_loop: Any = import_module("training_loop")
transformer: Any = import_module("transformer")


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
    params = {"w": jnp.ones((8, 64)), "b": jnp.zeros(64), "v": jnp.ones(64)}
    with pytest.raises(ValueError, match=REFUSED):
        program("train/schedules.md", "loss")["loss"](params, jnp.ones((4, 8)), COLUMN)


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


def test_vectors_at_a_right_angle_keep_their_length() -> None:
    align = program("answers/linear-algebra.md#vector-signs", "align", a=np.eye(2))["align"]
    turned = np.eye(2)[:, ::-1]  # both are eigenvectors of the identity
    np.testing.assert_array_equal(align(turned, np.eye(2)), turned)
    np.testing.assert_array_equal(align(turned + 0j, np.eye(2)), turned)


def draws() -> Any:
    """Four chains of 500 independent draws of two parameters."""
    return np.random.default_rng(0).normal(size=(4, 500, 2))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [0.3, 0.5, 1e-3])
def test_chains_that_never_move_are_worth_nothing_known(value: float) -> None:
    x = draws()
    x[..., 1] = value  # the mean of which is not exactly the value
    assert np.isnan([chains.r_hat(x)[1], chains.effective_size(x)[1]]).all()
    assert np.isfinite([chains.r_hat(x)[0], chains.effective_size(x)[0]]).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0, 1), (2, 7, 1), (3, 499, 1)])
def test_a_draw_that_is_no_number_is_not_worth_many(value: float, place: tuple[int, int, int]) -> None:
    x = draws()
    x[place] = value
    assert np.isnan([chains.r_hat(x)[1], chains.effective_size(x)[1]]).all()
    assert np.isfinite([chains.r_hat(x)[0], chains.effective_size(x)[0]]).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_chain_has_no_spread_between_chains() -> None:
    assert np.isnan(chains.effective_size(draws()[:1])).all()


@pytest.mark.parametrize("start", [0.0, 5.0])
def test_levels_of_whole_numbers_are_joined_as_those_of_floats(start: float) -> None:
    found = program("speed/parallel-scans.md", "smooth", "smooth_joined")
    readings = jnp.array([1, 2, 3, 4])
    expected = found["smooth"](readings.astype(float), start)
    np.testing.assert_allclose(found["smooth_joined"](readings, start), expected, rtol=1e-5)


def test_what_is_not_there_after_a_peak_of_whole_numbers_is_nan() -> None:
    found = program("speed/lax.md", "after_peak")["after_peak"](jnp.array([1, 2, 5]))
    np.testing.assert_array_equal(found, [5, np.nan, np.nan])


def test_a_column_of_targets_is_refused_by_the_larger_programs() -> None:
    with pytest.raises(ValueError, match=REFUSED):
        mixed_precision.loss(mixed_precision.init(jax.random.key(0)), jnp.ones((4, 16)), COLUMN, jnp.float32)
    batch = {"x": jnp.ones((4, 8)), "y": COLUMN, "real": jnp.ones(4)}
    with pytest.raises(ValueError, match=REFUSED):
        training_loop.summed_loss(training_loop.init(jax.random.key(0)), batch)


@pytest.mark.parametrize("columns", [1, 3, 5])
def test_an_odd_number_of_columns_has_no_pairs_to_rotate(columns: int) -> None:
    x = jnp.ones((4, 2, columns))
    with pytest.raises(ValueError, match="split"):
        transformer.rotate(x, jnp.arange(4))
    given = {"jnp": jnp, "jax": jax}
    with pytest.raises(ValueError, match="split"):
        program("train/weights.md", "rotate", **given)["rotate"](x)
