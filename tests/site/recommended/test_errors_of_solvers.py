"""Fixes of the error dictionary for solvers, against NumPy, SciPy and loops of its own."""

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


@attack(f"{SOLVERS}#save-times", times=st.lists(st.integers(1, 40), min_size=2, max_size=2, unique=True))
def test_a_solve_ends_with_the_last_of_the_times(times: list[int]) -> None:
    given = np.array(sorted(times), "float32") / 10
    [ys] = fixed(f"{SOLVERS}#save-times", times=given)
    near(ys, np.exp(-given))


@attack(f"{SOLVERS}#one-scalar", x=st.lists(st.integers(-9, 9), min_size=2, max_size=2))
def test_the_sum_of_the_squares_is_least_at_the_point(x: list[int]) -> None:
    [best] = fixed(f"{SOLVERS}#one-scalar", squares=lambda y, args: (y - np.array(x, "float32")) ** 2)
    near(best, x)


@attack(f"{SOLVERS}#solver-class", start=st.sampled_from([0.0, -5.0, 0.25, 4.0, 1e-3]))
def test_a_decay_is_solved_from_any_start(start: float) -> None:
    [ys] = fixed(f"{SOLVERS}#solver-class", {"0.1, 1.0": "0.1, start"}, start=start)
    near(ys, [start * np.exp(-1)])
    refused(f"{SOLVERS}#solver-class", {"0.1, 1.0": "0.1, start"}, start=start)


@attack(f"{SOLVERS}#no-sign-change", square=st.sampled_from([4.5, 5.5, 6.25, 8.75]))
def test_bisection_finds_the_root_between_its_ends(square: float) -> None:
    def beyond(y: Any, _: Any) -> Any:
        return y**2 - square

    values, root = fixed(f"{SOLVERS}#no-sign-change", beyond=beyond)
    near(values, np.arange(4.0) ** 2 - square)
    near(root, np.sqrt(square))
    refused(f"{SOLVERS}#no-sign-change", beyond=beyond)


@attack(
    f"{SOLVERS}#singular",
    u=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    v=st.tuples(st.integers(1, 4), st.integers(-4, -1)),
)
def test_the_smallest_of_the_solutions_is_returned(u: tuple[int, int], v: tuple[int, int]) -> None:
    table = np.outer(u, v).astype("float32")
    [x] = fixed(f"{SOLVERS}#singular", table=table)
    near(x, np.linalg.pinv(table.astype(float), rcond=1e-6) @ [1.0, 2.0], atol=0.02)
    refused(f"{SOLVERS}#singular", {"table = jnp.array([[1.0, 2.0], [2.0, 4.0]])": ""}, table=jax.numpy.array(table))


@attack(f"{SOLVERS}#cholesky-tag", half=small((2, 2)))
def test_a_tagged_matrix_is_solved(half: Array) -> None:
    table = (half @ half.T + np.eye(2) * (1 + np.abs(half).max() ** 2)).astype("float32")
    [x] = fixed(f"{SOLVERS}#cholesky-tag", table=table)
    near(x, np.linalg.solve(table.astype(float), np.ones(2)))
    refused(f"{SOLVERS}#cholesky-tag", table=jax.numpy.array(table))


@attack(f"{SOLVERS}#vector-field", angle=st.integers(-8, 8))
def test_an_oscillator_turns(angle: int) -> None:
    start = np.array([np.cos(angle), np.sin(angle)], "float32")
    [ys] = fixed(f"{SOLVERS}#vector-field", begin=jax.numpy.array(start))
    near(ys[0], [np.cos(angle - 1), np.sin(angle - 1)])


@attack(f"{SOLVERS}#terms", start=st.sampled_from([0.0, -5.0, 0.25, 4.0]))
def test_a_wrapped_function_is_a_term(start: float) -> None:
    [ys] = fixed(f"{SOLVERS}#terms", {"0.1, 1.0).ys": "0.1, start).ys"}, start=start)
    near(ys, [start * np.exp(-1)])


@attack(f"{SOLVERS}#vector-structure", sides=small((3, 2)))
def test_each_column_is_solved(sides: Array) -> None:
    [x] = fixed(f"{SOLVERS}#vector-structure", {".shape": ""}, sides=jax.numpy.array(sides))
    near(x, sides / np.array([[1], [2], [4]]))
    refused(f"{SOLVERS}#vector-structure", sides=jax.numpy.array(sides))


@attack(f"{SOLVERS}#implicit-tolerances", start=st.sampled_from([0.0, -5.0, 0.25, 40.0]))
def test_an_implicit_solver_takes_adaptive_steps(start: float) -> None:
    [ys] = fixed(f"{SOLVERS}#implicit-tolerances", {"0.1, 1.0, stepsize": "0.1, start, stepsize"}, start=start)
    near(ys, [start * np.exp(-1)])


@attack(f"{SOLVERS}#tolerances", least=st.sampled_from([-2, 0, 3, 7]))
def test_a_bowl_is_least_at_its_middle(least: int) -> None:
    [y] = fixed(f"{SOLVERS}#tolerances", {"y - 3": f"y - ({least})"})
    near(y, [least, least])


@attack(f"{SOLVERS}#function-arguments", rate=st.sampled_from([-1.0, 0.0, 0.5, 2.0]))
def test_growth_has_the_rate_of_its_arguments(rate: float) -> None:
    [ys] = fixed(f"{SOLVERS}#function-arguments", {'"rate": 2.0': f'"rate": {rate}'})
    near(ys, np.full((1, 2), np.exp(rate)), atol=0.06)


@attack(f"{SOLVERS}#event-function", low=st.sampled_from([0.3, 0.5, 0.9]))
def test_a_decay_stops_after_the_step_in_which_it_is_low(low: float) -> None:
    [ts] = fixed(f"{SOLVERS}#event-function", {"y.min() - 0.5": f"y.min() - {low}"})
    near(ts, np.ceil(-np.log(low) * 10) / 10, atol=0.06)


@attack(f"{SOLVERS}#adjoint-limits", y=st.sampled_from([0.0, 1.0, -3.0]))
def test_a_decay_has_the_same_slope_everywhere(y: float) -> None:
    [slope] = fixed(f"{SOLVERS}#adjoint-limits", {"(1.0, 100)": f"({y}, 100)"})
    near(slope, np.exp(-1))


@attack(f"{SOLVERS}#solver-names", y=st.sampled_from([0.0, 1.0, -3.0]))
def test_a_solution_has_times_and_values(y: float) -> None:
    ts, ys = fixed(f"{SOLVERS}#solver-names", {"Dopri5(), 0.0, 1.0, 0.1, 1.0": f"Dopri5(), 0.0, 1.0, 0.1, {y}"})
    near(ts, [1.0])
    near(ys, [y * np.exp(-1)])
