"""The pages about samplers: draws against quadrature and exact normals, its checks against SciPy and against bad chains."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from hypothesis import strategies as st
from numpyro import handlers
from numpyro.infer import init_to_value
from numpyro.infer.util import initialize_model
from scipy.signal import lfilter
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from tests.site.recommended.attack import PROJECT, examples, program, search, slow_examples

PAGE, MISSED = "science/samplers.md", "science/divergences.md"
Array = np.ndarray[Any, Any]
seeds = st.integers(0, 9999)


@cache
def names() -> dict[str, Any]:
    found = program(PAGE, "check", "diagnose", "with_error", "usable", "log_density")
    missed = program(MISSED, "diagnose", "centered")
    return {**found, "centered": missed["centered"], "rank_r_hat": lambda x: missed["diagnose"](x)[0]}


@cache
def warded() -> Any:
    """The page's draws for any wards, which it reads as globals: compiled once."""

    @jax.jit
    def run(treated: Any, recovered: Any, seed: Any) -> Any:
        page = program(PAGE, "sample", "log_density", "readable", treated=treated, recovered=recovered)
        start_key, key = jax.random.split(jax.random.key(seed))
        starts = jax.random.normal(start_key, (4, 10))
        z, diverged = page["sample"](page["log_density"], starts, key, target=0.99)
        return page["readable"](z), diverged

    return run


def by_quadrature(treated: Array, recovered: Array) -> Array:
    """The exact posterior means of the mean, of the spread and of the eight rates."""
    offsets = np.linspace(-6, 6, 301)
    weights = np.exp(-0.5 * offsets**2)
    mean, log_spread = np.meshgrid(np.linspace(-7, 7, 121), np.linspace(-11, 2, 79), indexing="ij")
    p = expit(mean[..., None] + np.exp(log_spread)[..., None] * offsets)
    log_p, log_rest = np.log(np.maximum(p, 1e-300)), np.log1p(-np.minimum(p, 1 - 1e-16))
    log_mass = -0.5 * (mean / 1.5) ** 2 - 0.5 * np.exp(2 * log_spread) + log_spread
    rates = []
    for n, k in zip(treated, recovered, strict=True):
        likely = weights * np.exp(k * log_p + (n - k) * log_rest)
        log_mass = log_mass + np.log(likely.sum(-1))
        rates.append((likely * p).sum(-1) / likely.sum(-1))
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    return np.array([(mass * what).sum() for what in (mean, np.exp(log_spread), *rates)])


ward = st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@slow_examples  # most of its time is compiling
def test_draws_that_pass_agree_with_quadrature_within_their_errors(count: int) -> None:
    passed = []

    def holds(wards: list[tuple[int, int]], seed: int) -> None:
        treated, recovered = np.array(wards).T
        x, diverged = jax.device_get(warded()(treated, recovered, seed))
        if not all(names()["check"](x, diverged).values()):
            return
        mean, error = names()["with_error"](x)
        passed.append(True)
        off = abs(mean - by_quadrature(treated, recovered)) / error
        assert (off < 6).all(), off

    search(min(count, 40), holds, wards=st.lists(ward, min_size=8, max_size=8), seed=seeds)
    assert len(passed) > 0.5 * min(count, 40)  # most do


@examples
def test_both_forms_of_the_density_are_one_posterior(count: int) -> None:
    """The difference is the logarithm of the volume, eight times that of the spread."""

    def holds(z: list[float]) -> None:
        position = np.array(z)
        moved = position.copy()
        moved[2:] = position[0] + np.exp(position[1]) * position[2:]
        with jax.enable_x64(True):
            own = float(names()["log_density"](jnp.array(position)))
            other = float(names()["centered"](jnp.array(moved)))
        np.testing.assert_allclose(own, other + 8 * position[1], rtol=1e-9, atol=1e-9)

    search(count, holds, z=st.lists(st.floats(-3, 3), min_size=10, max_size=10))


@cache
def gaussian() -> Any:
    @jax.jit
    def run(center: Any, precision: Any, seed: Any) -> Any:
        def density(z: Any) -> Any:
            return -0.5 * (z - center) @ precision @ (z - center)

        start_key, key = jax.random.split(jax.random.key(seed))
        starts = center + 3 * jax.random.normal(start_key, (4, 3))
        return program(PAGE, "sample")["sample"](density, starts, key)

    return run


@slow_examples  # most of its time is compiling
def test_a_normal_posterior_has_its_mean_and_covariance(count: int) -> None:
    """The posterior of a linear model with normal noise and prior is normal, with these."""

    def holds(seed: int, data: int) -> None:
        rng = np.random.default_rng(seed)
        inputs, noisy = rng.normal(size=(data, 3)), rng.normal(size=data)
        precision = np.eye(3) + inputs.T @ inputs
        center, covariance = np.linalg.solve(precision, inputs.T @ noisy), np.linalg.inv(precision)
        z, diverged = jax.device_get(gaussian()(jnp.float32(center), jnp.float32(precision), seed))
        assert diverged.mean() < 0.01
        mean, error = names()["with_error"](z)
        assert (abs(mean - center) < 6 * error).all()
        assert (error < 0.1 * np.sqrt(np.diag(covariance))).all()
        squares = (z - center) ** 2
        variance, error = names()["with_error"](squares)
        assert (abs(variance - np.diag(covariance)) < 6 * error).all()

    search(min(count, 40), holds, seed=seeds, data=st.integers(0, 20))


def r_hat(x: Array) -> Array:
    """R-hat of ranks, of the draws and of their distances to the median, the larger one (Vehtari and others, 2021)."""
    half = x.shape[1] // 2
    halves = np.concatenate([x[:, :half], x[:, half : 2 * half]]).astype(float)

    def plain(values: Array) -> Any:
        shaped = rankdata(values).reshape(values.shape)
        normal = ndtri((shaped - 0.375) / (values.size + 0.25))
        within, between = normal.var(1, ddof=1).mean(), normal.mean(1).var(ddof=1)
        return np.sqrt((half - 1) / half + between / within)

    return np.array([max(plain(one), plain(abs(one - np.median(one)))) for one in np.moveaxis(halves, -1, 0)])


@slow_examples  # most of its time is compiling
def test_r_hat_is_that_of_ranks(count: int) -> None:
    def holds(seed: int, apart: float, wide: float, memory: float) -> None:
        rng = np.random.default_rng(seed)
        noise = lfilter([1], [1, -memory], rng.standard_t(3, size=(4, 200, 3)), axis=1)
        widths = np.array([1.0, 1.0, 1.0, wide])[:, None, None]
        x = (noise * widths + apart * np.arange(4)[:, None, None]).astype(np.float32)
        np.testing.assert_allclose(names()["diagnose"](x)[0], r_hat(x), rtol=2e-3)
        np.testing.assert_allclose(names()["rank_r_hat"](x), r_hat(x), rtol=2e-3)

    search(
        count,
        holds,
        seed=seeds,
        apart=st.sampled_from([0.0, 0.3, 10.0]),
        wide=st.sampled_from([1.0, 5.0]),
        memory=st.sampled_from([0.0, 0.9]),
    )


def chains(seed: int, memory: float) -> Array:
    """Four chains that remember this share of the step before, whose draws are standard normal."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(4, 1000, 10)) * np.sqrt(1 - memory**2)
    noise[:, 0] /= np.sqrt(1 - memory**2)
    found: Array = lfilter([1], [1, -memory], noise, axis=1).astype(np.float32)
    return found


@examples
def test_the_error_of_a_mean_is_that_of_chains_with_memory(count: int) -> None:
    """The variance of the mean of such a chain is known: (1 + memory) / (1 - memory) times that of independent draws."""

    def holds(seed: int, memory: float) -> None:
        mean, error = names()["with_error"](chains(seed, memory))
        exact = np.sqrt((1 + memory) / (1 - memory) / 4000)
        np.testing.assert_allclose(error.mean(), exact, rtol=0.2)
        assert (abs(mean) < 6 * exact).all()

    search(count, holds, seed=seeds, memory=st.sampled_from([-0.5, 0.0, 0.5, 0.9]))


@examples
def test_each_fault_fails_a_check(count: int) -> None:
    def holds(seed: int, chain: int, quantity: int) -> None:
        check, good, calm = names()["check"], chains(seed, 0.0), np.zeros((4, 1000), bool)
        own = good[chain, :, quantity]
        faults = {
            "a NaN": np.where(np.arange(1000) == 7, np.nan, own),
            "does not move": np.zeros(1000),
            "elsewhere": own + 2,
            "too wide": 4 * own,
            "drifts": own + np.linspace(0, 3, 1000),
        }
        for name, faulty in faults.items():
            bad = good.copy()
            bad[chain, :, quantity] = faulty
            found = check(bad, calm)
            assert not found["R-hat below 1.01"] or not found["bulk above 400"], name
        still = np.broadcast_to(good[:1, :1], good.shape)
        assert not any(list(check(still, calm).values())[:3])
        once = calm.copy()
        once[chain, 9] = True
        assert not check(good, once)["no divergence"]
        slow = check(chains(seed, 0.99), calm)
        assert not slow["bulk above 400"]

    search(count, holds, seed=seeds, chain=st.integers(0, 3), quantity=st.integers(0, 9))


@slow_examples  # most of its time is compiling
def test_checks_notice_two_modes_only_if_chains_start_in_both(count: int) -> None:
    def holds(seed: int, split: int) -> None:
        walk, check = program(MISSED, "walk")["walk"], names()["check"]
        starts = np.array([-2, -1, 1, 2], np.float32)
        x = np.asarray(walk(starts + 12 * (np.arange(4) < split), jax.random.key(seed)))[..., None]
        found = check(x, np.zeros((4, 1000), bool))
        assert all(found.values()) == (split in (0, 4))
        assert abs(x.mean() - 3 * split) < 0.2

    search(count, holds, seed=seeds, split=st.integers(0, 4))


@examples
def test_a_start_is_usable_where_density_and_slope_are_finite(count: int) -> None:
    def holds(log_spread: float, offset: float) -> None:
        z = np.full((1, 10), offset, np.float32)
        z[0, 1] = log_spread
        usable = names()["usable"](names()["log_density"], z)[0]
        value, slope = jax.value_and_grad(names()["log_density"])(z[0])
        assert usable == (np.isfinite(value) and np.isfinite(slope).all())
        if not np.isfinite(log_spread) or log_spread > 89:
            assert not usable
        elif abs(log_spread) < 9:
            assert usable

    search(
        count,
        holds,
        log_spread=st.sampled_from([-np.inf, np.inf, np.nan, -8.0, 0.0, 8.0, 100.0]),
        offset=st.sampled_from([-3.0, 0.0, 2.0]),
    )


def test_numpyro_refuses_a_start_without_density_and_ignores_a_misspelled_one() -> None:
    key = jax.random.key(0)

    def model() -> None:
        numpyro.sample("spread", dist.HalfNormal(1.0))

    def start(**values: float) -> float:
        proposed = handlers.substitute(handlers.seed(model, key), substitute_fn=init_to_value(values=values))
        return float(handlers.trace(proposed).get_trace()["spread"]["value"])

    with (
        pytest.warns(UserWarning, match="Out-of-support"),
        pytest.raises(RuntimeError, match="Cannot find valid initial"),
    ):
        initialize_model(key, model, init_strategy=init_to_value(values={"spread": 0.0}))
    assert np.isclose(start(spread=0.5), 0.5)
    assert not np.isclose(start(spraed=0.5), 0.5)


def test_draws_far_from_zero_are_worth_another_number_and_huge_ones_the_same() -> None:
    x, diagnose = chains(0, 0.5), names()["diagnose"]
    page = " ".join((PROJECT.docs / PAGE).read_text("utf-8").split())
    worth = diagnose(x)[3]
    for same in (x / 8 + 4, x * np.float32(1e18), x * np.float32(1e-20), x.astype(float) - 1e7):
        np.testing.assert_allclose(diagnose(same)[3], worth, rtol=0.01)
    assert not np.isclose(diagnose(x - np.float32(5e7))[3], worth, rtol=0.5).any()
    assert "draw such a quantity minus a constant" in page


def test_a_density_keeps_the_data_of_its_first_call() -> None:
    usable, data = names()["usable"], [1.0]
    starts = np.ones((2, 3), np.float32)

    def density(z: Any) -> Any:
        return data[0] * z.sum()

    assert usable(density, starts).all()

    def again(z: Any) -> Any:
        return density(z)

    data[0] = np.nan
    assert usable(density, starts).all()  # what the page says: those of then
    assert not usable(again, starts).any()
    assert "pass `lambda z: log_density(z)`" in " ".join((PROJECT.docs / PAGE).read_text("utf-8").split())
