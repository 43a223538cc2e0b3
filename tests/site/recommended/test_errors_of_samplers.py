"""Fixes of the error dictionary for samplers, against SciPy."""

from functools import partial
from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st
from scipy import stats

from tests.site.recommended.attack import attack
from tests.site.recommended.entries import fixed, refused
from tests.site.strategies import arrays

Array = np.ndarray[Any, Any]
SAMPLERS = "lookup/errors-samplers.md"
small = partial(arrays, dtype="float32", odd=False)
near = partial(np.testing.assert_allclose, rtol=1e-3, atol=0.011)  # numbers that are printed have two digits


@attack(f"{SAMPLERS}#predictive", slopes=st.lists(st.integers(-9, 9), min_size=1, max_size=4))
def test_predictions_are_near_the_lines(slopes: list[int]) -> None:
    given = {"slope": jax.numpy.array(slopes, "float32")}
    drawn, prior = fixed(f"{SAMPLERS}#predictive", {"predicted.shape": "predicted"}, slopes=given)
    assert np.abs(drawn - np.outer(slopes, np.arange(3.0))).max() < 1
    assert prior == (5, 3)


@attack(f"{SAMPLERS}#run-first", slope=st.sampled_from([-2.0, 0.0, 2.0]))
def test_samples_are_near_the_slope(slope: float) -> None:
    changes = {
        "2 * jnp.arange(3.0)": f"{slope} * jnp.arange(3.0)",
        '["slope"].shape': '["slope"]',
    }
    [found] = fixed(f"{SAMPLERS}#run-first", changes)
    assert found.shape == (20,)
    assert abs(np.median(found) - slope) < 0.5  # ten steps warm it up


@attack(f"{SAMPLERS}#mass-matrix", start=small(st.sampled_from([(1,), (2,), (5,)])))
def test_a_step_has_the_shape_of_its_start(start: Array) -> None:
    [shape] = fixed(f"{SAMPLERS}#mass-matrix", start=np.clip(start, -3, 3))
    assert shape == start.shape


@attack(
    f"{SAMPLERS}#invalid-parameter",
    y=st.integers(-8, 8).map(lambda n: n / 4),
    scale=st.integers(1, 40).map(lambda n: n / 8),
)
def test_a_density_is_that_of_both_distributions(y: float, scale: float) -> None:
    [density] = fixed(f"{SAMPLERS}#invalid-parameter", {"(0.5,)": f"({y},)", "jnp.array(2.0)": f"jnp.array({scale})"})
    near(density, stats.halfnorm.logpdf(scale) + stats.norm.logpdf(y, 0, scale))


@attack(f"{SAMPLERS}#model-arguments", slope=st.sampled_from([-1.0, 0.5, 2.0]))
def test_the_posterior_is_that_of_the_named_data(slope: float) -> None:
    [mean] = fixed(f"{SAMPLERS}#model-arguments", {"y=2 * jnp.arange(3.0)": f"y={slope} * jnp.arange(3.0)"})
    near(mean, slope * 500 / 501, atol=0.2)  # a normal prior, and a deviation of 0.1; the error is that of 20 draws


@attack(f"{SAMPLERS}#probs-or-logits", logits=small((3,)))
def test_logits_are_those_of_the_softmax(logits: Array) -> None:
    [probabilities] = fixed(
        f"{SAMPLERS}#probs-or-logits",
        {
            "jnp.allclose(dist.Categorical(logits=logits).probs, jax.nn.softmax(logits))": "dist.Categorical(logits=logits).probs"
        },
        logits=jax.numpy.array(logits),
    )
    wide = np.exp(logits.astype(float) - logits.max())
    near(probabilities, wide / wide.sum())


@attack(f"{SAMPLERS}#svi-loss", slope=st.sampled_from([-2.0, 1.0, 2.0]))
def test_the_guide_finds_the_slope(slope: float) -> None:
    changes = {" 2 * jnp.arange(3.0)": f" {slope} * jnp.arange(3.0)", ".round(0)": ""}
    [location] = fixed(f"{SAMPLERS}#svi-loss", changes)
    near(location, slope * 500 / 501, atol=0.2)  # noise of the gradients remains


@attack(f"{SAMPLERS}#state-and-key", seed=st.integers(0, 3))
def test_a_step_takes_the_key_first(seed: int) -> None:
    changes = {"step(jax.random.key(0)": f"step(jax.random.key({seed})", "after.position.shape": "after"}
    state, rate = fixed(f"{SAMPLERS}#state-and-key", changes)
    near(state.logdensity, -0.5 * (np.asarray(state.position, float) ** 2).sum())
    assert rate == ()


@attack(f"{SAMPLERS}#adaptation-steps", seed=st.integers(0, 1))
def test_a_warm_up_tunes_both(seed: int) -> None:
    changes = {"warmup.run(jax.random.key(0)": f"warmup.run(jax.random.key({seed})", "sorted(tuned)": "tuned"}
    [tuned] = fixed(f"{SAMPLERS}#adaptation-steps", changes)
    assert {"step_size", "inverse_mass_matrix"} <= set(tuned)
    assert 0 < tuned["step_size"] < 10
    assert (np.asarray(tuned["inverse_mass_matrix"]) > 0).all()


@attack(f"{SAMPLERS}#sample-arguments", size=st.integers(0, 5), seed=st.integers(0, 99))
def test_samples_have_the_shape_that_is_asked_for(size: int, seed: int) -> None:
    changes = {"(3,)": f"({size},)", "), 0)()": f"), {seed})()"}
    assert fixed(f"{SAMPLERS}#sample-arguments", changes) == [(size,), (size,)]


@attack(f"{SAMPLERS}#distribution-arguments", rate=st.sampled_from([0.5, 1.0, 4.0]), rows=st.integers(1, 5))
def test_a_gamma_has_a_concentration_and_a_rate(rate: float, rows: int) -> None:
    changes = {"rate=4.0": f"rate={rate}", "[4, 3]": f"[{rows}, 3]"}
    batch, event, mean = fixed(f"{SAMPLERS}#distribution-arguments", changes)
    assert (batch, event) == ((rows, 3), (3,))
    near(mean, stats.gamma.mean(2, scale=1 / rate))


@attack(f"{SAMPLERS}#plate-arguments", y=st.lists(st.integers(-3, 3), min_size=1, max_size=4))
def test_a_density_is_that_of_each_row(y: list[int]) -> None:
    [density] = fixed(f"{SAMPLERS}#plate-arguments", {"jnp.zeros(3)": f"jnp.array({y}, float)"})
    near(density, stats.norm.logpdf(y).sum())


@attack(f"{SAMPLERS}#mcmc-arguments", slope=st.sampled_from([-2.0, 0.0, 2.0]))
def test_samples_of_named_data_are_near_the_slope(slope: float) -> None:
    changes = {"y=2 * jnp.arange(3.0)": f"y={slope} * jnp.arange(3.0)", '["slope"].shape': '["slope"]'}
    [found] = fixed(f"{SAMPLERS}#mcmc-arguments", changes)
    assert found.shape == (20,)
    assert abs(np.median(found) - slope) < 0.5  # ten steps warm it up


@attack(f"{SAMPLERS}#algorithm-arguments", start=small((2,)), steps=st.integers(1, 3))
def test_a_step_of_the_sampler_moves_a_point(start: Array, steps: int) -> None:
    changes = {"leapfrog.init(jnp.ones(2))": "leapfrog.init(start)", "steps=5": f"steps={steps}", ".position.shape": ""}
    [state] = fixed(f"{SAMPLERS}#algorithm-arguments", changes, start=np.clip(start, -3, 3))
    near(state.logdensity, -0.5 * (np.asarray(state.position, float) ** 2).sum())


@attack(f"{SAMPLERS}#group-index", group=st.lists(st.integers(0, 2), min_size=5, max_size=5), y=small((5,)))
def test_a_row_has_the_effect_of_its_group(group: list[int], y: Array) -> None:
    rows = np.clip(y, -9, 9)
    [density] = fixed(f"{SAMPLERS}#group-index", {"jnp.zeros(5)": "y"}, group=jax.numpy.array(group), y=rows)
    effects = np.arange(3.0)
    expected = stats.norm.logpdf(effects).sum() + stats.norm.logpdf(rows.astype(float), effects[group]).sum()
    near(density, expected)


@attack(f"{SAMPLERS}#algorithm-called", seed=st.integers(0, 3))
def test_a_chain_takes_every_step(seed: int) -> None:
    changes = {"jax.random.key(0), 10": f"jax.random.key({seed}), 10", "last.position.shape": "last"}
    last, rates = fixed(f"{SAMPLERS}#algorithm-called", changes)
    near(last.logdensity, -0.5 * (np.asarray(last.position, float) ** 2).sum())
    assert rates == (10,)


@attack(f"{SAMPLERS}#bare-assertion", mean=st.integers(-99, 99), deviation=st.integers(1, 20), n=st.integers(0, 4))
def test_a_seeded_model_draws_the_same_number_twice(mean: int, deviation: int, n: int) -> None:
    changes = {
        "dist.Normal(170, 10)": f"dist.Normal({mean}, {deviation})",
        "(3,)).shape": f"({n},)).shape",
        'trace["height"]["value"] ==': 'trace["height"]["value"],',
    }
    shape, traced, called = fixed(f"{SAMPLERS}#bare-assertion", changes)
    assert shape == (n,)
    assert traced == called and abs(traced - mean) < 5 * deviation
    refused(f"{SAMPLERS}#bare-assertion", {"dist.Normal(0, 1).sample(0)": f"dist.Normal({mean}, 1).sample({n})"})
