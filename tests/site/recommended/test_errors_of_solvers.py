"""Fixes of the error dictionary for solvers and samplers, against NumPy and loops of its own."""

from functools import partial
from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, long_attack
from tests.site.recommended.entries import fixed, refused
from tests.site.strategies import arrays

Array = np.ndarray[Any, Any]
SOLVERS = "lookup/errors-solvers.md"
small = partial(arrays, dtype="float32", odd=False)
near = partial(np.testing.assert_allclose, rtol=1e-3, atol=0.011)  # numbers that are printed have two digits


@long_attack(f"{SOLVERS}#control-term", rough=st.lists(st.sampled_from([0.0, 0.5, -1.0]), min_size=2, max_size=2))
def test_each_value_has_noise_of_its_own(rough: list[float]) -> None:
    changes = {"[0.1, 0.2]": str(rough), "path.ys.shape": "path.ys[0], noise"}
    end, noise = fixed(f"{SOLVERS}#control-term", changes)
    near(end, euler(rough, noise, 10, 0.1))


@long_attack(f"{SOLVERS}#brownian-range", end=st.sampled_from([0.5, 1.0, 2.0, 3.0]))
def test_noise_lasts_as_long_as_the_solve(end: float) -> None:
    changes = {"until.ys.shape": "until.ys[0], longer"}
    last, noise = fixed(f"{SOLVERS}#brownian-range", changes, end=end)
    near(last, euler([0.1, 0.2], noise, round(end / 0.1), end / round(end / 0.1)))


def euler(rough: list[float], noise: Any, steps: int, step: float) -> Array:
    """Return the end of a decay from ones, each driven by its own part of the noise."""
    y = np.ones(2)
    for i in range(steps):
        y = y - step * y + np.array(rough) * np.asarray(noise.evaluate(i * step, min((i + 1) * step, noise.t1)))
    return y


@attack(f"{SOLVERS}#dense", time=st.integers(0, 20).map(lambda n: n / 20))
def test_an_interpolation_is_the_decay(time: float) -> None:
    [y] = fixed(f"{SOLVERS}#dense", {"evaluate(0.5)": f"evaluate({time})"})
    near(y, np.exp(-time))


@attack(f"{SOLVERS}#raw-array", half=small((2, 2)), b=small((2,)))
def test_a_wrapped_matrix_is_solved(half: Array, b: Array) -> None:
    square = half @ half.T + np.eye(2, dtype="float32") * (1 + np.abs(half).max() ** 2)
    square, b = square / np.abs(square).max(), b / max(1, np.abs(b).max())
    [x] = fixed(f"{SOLVERS}#raw-array", {"jnp.array([3.0, 4.0])": "b"}, square=jax.numpy.array(square), b=b)
    near(x, np.linalg.solve(square.astype(float), b))
    refused(f"{SOLVERS}#raw-array", square=jax.numpy.array(square))


@attack(f"{SOLVERS}#non-square", size=st.sampled_from([(3, 2), (4, 1), (2, 3), (1, 4)]), seed=st.integers(0, 99))
def test_least_squares_are_those_of_numpy(size: tuple[int, int], seed: int) -> None:
    draws = np.random.default_rng(seed)
    tall, b = draws.uniform(-1, 1, size).astype("float32"), draws.uniform(-1, 1, size[0]).astype("float32")
    singular = np.linalg.svd(tall.astype(float), compute_uv=False)
    if singular[-1] < 0.1:
        return
    changes = {"jnp.array([1.0, 3.0, 5.0])": "b"}
    [x] = fixed(f"{SOLVERS}#non-square", changes, tall=jax.numpy.array(tall), b=b)
    near(x, np.linalg.lstsq(tall.astype(float), b, rcond=None)[0])
    refused(f"{SOLVERS}#non-square", changes, tall=jax.numpy.array(tall), b=b)


@attack(f"{SOLVERS}#fixed-point", start=small((2,)))
def test_the_fixed_point_of_the_cosine(start: Array) -> None:
    [y] = fixed(f"{SOLVERS}#fixed-point", {"jnp.ones(2)": "start"}, start=np.clip(start, -9, 9))
    near(y, [0.739085, 0.739085])


@attack(f"{SOLVERS}#predictive", slopes=st.lists(st.integers(-9, 9), min_size=1, max_size=4))
def test_predictions_are_near_the_lines(slopes: list[int]) -> None:
    given = {"slope": jax.numpy.array(slopes, "float32")}
    drawn, prior = fixed(f"{SOLVERS}#predictive", {"predicted.shape": "predicted"}, slopes=given)
    assert np.abs(drawn - np.outer(slopes, np.arange(3.0))).max() < 1
    assert prior == (5, 3)


@attack(f"{SOLVERS}#run-first", slope=st.sampled_from([-2.0, 0.0, 2.0]))
def test_samples_are_near_the_slope(slope: float) -> None:
    changes = {
        "2 * jnp.arange(3.0)": f"{slope} * jnp.arange(3.0)",
        '["slope"].shape': '["slope"]',
    }
    [found] = fixed(f"{SOLVERS}#run-first", changes)
    assert found.shape == (20,)
    assert abs(np.median(found) - slope) < 0.5  # ten steps warm it up


@attack(f"{SOLVERS}#mass-matrix", start=small(st.sampled_from([(1,), (2,), (5,)])))
def test_a_step_has_the_shape_of_its_start(start: Array) -> None:
    [shape] = fixed(f"{SOLVERS}#mass-matrix", start=np.clip(start, -3, 3))
    assert shape == start.shape


@attack(f"{SOLVERS}#symbolic-axis", y=small((3,)), x=small((2,)))
def test_steps_have_one_size_less(y: Array, x: Array) -> None:
    [steps] = fixed(f"{SOLVERS}#symbolic-axis", {"jnp.ones(3), jnp.ones(2)": "jnp.array(y), jnp.array(x)"}, y=y, x=x)
    near(steps, y[1:] - x)
