"""The diffusion model, checked against cases in which the right guess of the noise is known."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("optax")
diffusion = import_module("diffusion")

Guess = Callable[[Any, jax.Array, jax.Array], jax.Array]
CPU = jax.default_backend() == "cpu"


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Guess], None]:
    """Put a function in the place of the network."""
    return lambda guess: monkeypatch.setattr(diffusion, "guess", guess)


def draw(params: Any, keys: jax.Array) -> jax.Array:
    """A sample for each key; a function of its own, since a network may have been put in since the last trace."""
    samples: jax.Array = jax.jit(jax.vmap(lambda key: diffusion.sample(params, key)))(keys)
    return samples


def always_at(place: jax.Array) -> Guess:
    """The right guess where all data are one point."""

    def guess(_: Any, x: jax.Array, t: jax.Array) -> jax.Array:
        kept = diffusion.kept[t]
        return (x - jnp.sqrt(kept) * place) / jnp.sqrt(1 - kept)

    return guess


def spread_by(size: float) -> Guess:
    """The right guess where the data are normal around 0."""

    def guess(_: Any, x: jax.Array, t: jax.Array) -> jax.Array:
        kept = diffusion.kept[t]
        return jnp.sqrt(1 - kept) * x / (kept * size**2 + 1 - kept)

    return guess


def test_distance_is_to_the_nearer_arc() -> None:
    points = jnp.array([[-0.5, 0.8], [-0.5, 1.3], [0.5, -0.8], [0.5, -0.9]])
    np.testing.assert_allclose(diffusion.distance(points), [0, 0.5, 0, 0.1], atol=1e-2)


def test_moons_lie_on_both_arcs() -> None:
    points = diffusion.moons(jax.random.key(0), 500)
    assert points.shape == (500, 2)
    assert diffusion.distance(points).max() < 0.3
    assert 0.4 < (points[:, 1] > points[:, 0] * 0.3).mean() < 0.6


def test_noisy_jumps_to_where_the_steps_lead() -> None:
    key, jump_key = jax.random.split(jax.random.key(1))
    steps = jax.random.normal(key, (10, 20_000))
    x = jnp.full(20_000, 2.0)
    for t in range(10):
        x = jnp.sqrt(1 - diffusion.added[t]) * x + jnp.sqrt(diffusion.added[t]) * steps[t]
    jumped = diffusion.noisy(jnp.float32(2), 9, jax.random.normal(jump_key, (20_000,)))
    np.testing.assert_allclose(jumped.mean(), x.mean(), atol=0.02)
    np.testing.assert_allclose(jumped.std(), x.std(), atol=0.02)
    assert diffusion.kept[-1] < 0.05


def test_the_loss_of_the_right_guess_is_zero(use: Callable[[Guess], None]) -> None:
    place = jnp.array([0.3, -1.0])
    use(always_at(place))
    loss = diffusion.loss([], jax.random.key(2), jnp.tile(place, (64, 1)))
    assert loss < (1e-5 if CPU else 1e-2)


def test_the_loss_of_no_guess_is_the_variance_of_the_noise(use: Callable[[Guess], None]) -> None:
    use(lambda _, x, t: jnp.zeros_like(x))
    loss = diffusion.loss([], jax.random.key(3), jnp.zeros((4000, 2)))
    np.testing.assert_allclose(loss, 1, atol=0.08)


def test_the_sampler_finds_a_single_point(use: Callable[[Guess], None]) -> None:
    place = jnp.array([0.3, -1.0])
    use(always_at(place))
    drawn = draw([], jax.random.split(jax.random.key(4), 5))
    np.testing.assert_allclose(drawn, jnp.tile(place, (5, 1)), atol=1e-3)


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_the_sampler_keeps_the_spread_of_the_data(use: Callable[[Guess], None], size: float) -> None:
    use(spread_by(size))
    drawn = draw([], jax.random.split(jax.random.key(5), 4000))
    np.testing.assert_allclose(drawn.std(0), size, rtol=0.1)
    np.testing.assert_allclose(drawn.mean(0), 0, atol=0.1)


def test_the_network_depends_on_point_and_time() -> None:
    params = diffusion.init(jax.random.key(6))
    assert [layer["w"].shape for layer in params] == [(8, 64), (64, 64), (64, 64), (64, 2)]
    x = jnp.array([0.1, 0.2])
    guesses = [diffusion.guess(params, x, 3), diffusion.guess(params, x, 30), diffusion.guess(params, -x, 3)]
    assert len({tuple(guess.tolist()) for guess in guesses}) == 3


@pytest.mark.slow
def test_no_key_is_used_twice() -> None:
    with jax.debug_key_reuse(True):
        data_key, init_key, train_key, loss_key, sample_key = jax.random.split(jax.random.key(8), 5)
        points = diffusion.moons(data_key, 20)
        params = diffusion.init(init_key)
        jax.jit(diffusion.loss)(params, loss_key, points)
        jax.jit(diffusion.sample)(params, sample_key)
        diffusion.train(params, train_key, points, 2)


@pytest.mark.slow
def test_training_brings_the_samples_to_the_data() -> None:
    data_key, init_key, train_key, sample_key = jax.random.split(jax.random.key(7), 4)
    points = diffusion.moons(data_key, 1000)
    params, losses = diffusion.train(diffusion.init(init_key), train_key, points, 1500)
    assert losses.shape == (1500,)
    assert losses[0] > 0.8
    assert losses[-100:].mean() < 0.5

    keys = jax.random.split(sample_key, 300)
    drawn = draw(params, keys)
    assert (diffusion.distance(drawn) < 0.2).mean() > 0.75
    assert 0.3 < (drawn[:, 0] > 0).mean() < 0.7
    np.testing.assert_allclose(draw(params, keys[7:8])[0], drawn[7], atol=1e-3 if CPU else 0.1)
