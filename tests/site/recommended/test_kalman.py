"""Kalman filters of made-up models with missing measurements, against the joint normal distribution in float64."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import examples, program, search
from tests.site.recommended.shown import shows

PAGE = "science/kalman.md"
Array = np.ndarray[Any, Any]


@cache
def names() -> dict[str, Any]:
    """The page's functions, compiled where they are not yet."""
    found = program(PAGE, "Model", "kalman", "parallel", "plain", "smooth")
    slopes = jax.jit(jax.grad(lambda *given: found["kalman"](*given)[2], (0, 1)))
    return {**found, "smooth": jax.jit(found["smooth"]), "slopes": slopes}


def made(seed: int, wide: int, seen: int, steps: int, precise: float, chance: float) -> tuple[Any, Array]:
    """A model whose state has this many numbers, of which so many are measured; and measurements, some of them NaN."""
    rng = np.random.default_rng(seed)

    def covariance(size: int) -> Array:
        root = rng.normal(size=(size, size))
        return root @ root.T + 0.1 * np.eye(size)

    moves, sees = rng.normal(size=(wide, wide)) / np.sqrt(wide), rng.normal(size=(seen, wide))
    first = rng.normal(size=wide), 10 * covariance(wide)
    all_of_it = moves, covariance(wide), sees, precise * covariance(seen), *first
    parts = (jnp.asarray(part, jnp.float32) for part in all_of_it)
    measured = 3 * rng.normal(size=(steps, seen))
    measured[rng.random(measured.shape) < chance] = np.nan
    return names()["Model"](*parts), measured.astype(np.float32)


models = {
    "seed": st.integers(0, 2**32 - 1),
    "sizes": st.sampled_from([(1, 1, 1), (3, 2, 5)]),
    "precise": st.sampled_from([1e-2, 1.0, 100.0]),
    "chance": st.sampled_from([0.0, 0.3, 1.0]),
}


def near(got: Any, wanted: Any) -> None:
    """Hold that numbers agree as far as float32 lets solves with these covariances, whose condition is up to 1e4."""
    scale = max(1.0, float(np.abs(np.asarray(wanted)).max()))
    np.testing.assert_allclose(got, wanted, atol=2e-3 * scale)


@examples
def test_each_way_gives_what_conditioning_gives(count: int) -> None:
    def holds(seed: int, sizes: tuple[int, int, int], precise: float, chance: float) -> None:
        model, measured = made(seed, *sizes, precise, chance)
        means, covariances, likelihood = names()["kalman"](model, measured)
        expected = names()["plain"](model, measured)
        for got, wanted in zip((means, covariances), expected, strict=False):
            near(got, wanted)
        if not np.isnan(measured[-1]).all():
            near(likelihood, expected[2])
        assert (np.linalg.eigvalsh(covariances) > 0).all()
        for got, wanted in zip(names()["parallel"](model, measured), expected, strict=False):
            near(got, wanted)

    search(count, holds, **models)


@examples
def test_gradients_are_finite_and_missing_measurements_have_none(count: int) -> None:
    def holds(seed: int, sizes: tuple[int, int, int], precise: float, chance: float) -> None:
        model, measured = made(seed, *sizes, precise, chance)
        by_model, by_measured = names()["slopes"](model, measured)
        assert all(np.isfinite(part).all() for part in by_model)
        assert (np.asarray(by_measured)[np.isnan(measured)] == 0).all()

    search(count, holds, **models)


@examples
def test_a_smoother_ends_where_all_measurements_lead(count: int) -> None:
    """The first state given all measurements: condition the joint distribution with the first state kept as it is."""

    def holds(seed: int, precise: float) -> None:
        model, measured = made(seed, 3, 2, 5, precise, 0.3)
        means, covariances, _ = names()["kalman"](model, measured)
        smoothed, _ = names()["smooth"](model, means, covariances)
        # The state with the first one beside it, which never moves, has the smoothed first state as its filtered one.
        still = np.diag([0, 0, 0, 1, 1, 1])
        both = names()["Model"](
            A=np.pad(model.A, (0, 3)) + still,
            Q=np.pad(model.Q, (0, 3)),
            H=np.pad(model.H, ((0, 0), (0, 3))),
            R=model.R,
            m=np.tile(model.m, 2),
            P=np.tile(model.P, (2, 2)),
        )
        near(smoothed[0], names()["plain"](both, measured)[0][-1][3:])

    search(count, holds, seed=models["seed"], precise=models["precise"])


def test_smoothed_variances_of_precise_measurements_are_positive() -> None:
    model = program(PAGE, "moving")["moving"](1e-4, 0.01)._replace(P=jnp.diag(jnp.array([1e4, 1e2])))
    noise = np.random.default_rng(0).normal(size=(100, 1))
    measured = (3 + 0.2 * np.arange(100)[:, None] + 0.01 * noise).astype(np.float32)
    means, covariances, _ = names()["kalman"](model, measured)
    smoothed = np.asarray(names()["smooth"](model, means, covariances)[1])
    assert (np.diagonal(smoothed, axis1=1, axis2=2) > 0).all()
    assert (smoothed[:, 0, 0] <= 1.01 * np.asarray(covariances)[:, 0, 0]).all()  # it knows more


def test_a_singular_covariance_is_drawn_by_its_singular_values() -> None:
    shows("science/kalman.md#missing", "positive definite `Q`, `R` and `P`", '`method="svd"` draws the right numbers')
    thin = np.array([[0.25, 0.5], [0.5, 1.0]], np.float32)
    key = jax.random.key(0)
    assert np.isnan(jax.random.multivariate_normal(key, np.zeros(2, np.float32), thin, (10,))).all()
    drawn = jax.random.multivariate_normal(key, np.zeros(2, np.float32), thin, (20_000,), method="svd")
    np.testing.assert_allclose(np.cov(np.asarray(drawn).T), thin, atol=0.05)
