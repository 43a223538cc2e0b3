"""Values at an edge in the answers: columns, stacks, vectors, small integers, other times, and events that do not occur."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.ode import odeint
from scipy import optimize, special

from tests.site.recommended.attack import program
from tests.site.recommended.shown import shows, visible

ARRAYS, SCIENCE, SHAPES = "answers/arrays.md", "answers/science.md", "answers/shapes-and-indexing.md"
SAMPLING, SOLVERS, TRAINING = "answers/sampling-and-simulation.md", "answers/solvers.md", "answers/training.md"
KEY = jax.random.key(0)


@pytest.mark.parametrize("shape", [(7,), (7, 2), (7, 2, 3)])
def test_windows_move_along_the_first_axis(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    windows = program(f"{SHAPES}#sliding-window", "windows", x=jnp.asarray(x))["windows"]
    exact = np.lib.stride_tricks.sliding_window_view(x, 3, axis=0)
    np.testing.assert_array_equal(windows, np.moveaxis(exact, -1, 1))


def test_a_column_of_labels_gives_a_matrix_as_stated() -> None:
    shows(f"{SHAPES}#one-per-row", "with labels of shape `(n, 1)`, `logits[jnp.arange(2), labels]` is a matrix.")
    logits, labels = jnp.arange(6.0).reshape(2, 3), jnp.array([0, 2])
    assert logits[jnp.arange(2), labels].tolist() == [0, 5]
    assert logits[jnp.arange(2), labels[:, None]].shape == (2, 2)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_diagonal_of_a_stack_is_in_the_last_two_axes_as_stated(count: int) -> None:
    shows(f"{ARRAYS}#diagonal", "use `x.at[..., i, i]` with `i = np.arange(n)`")
    x, i = jnp.zeros((count, 3, 3)), np.arange(3)
    np.testing.assert_array_equal(x.at[..., i, i].add(4.0), x + 4 * np.eye(3))
    assert not np.array_equal(x.at[np.diag_indices(3)].add(4.0), x + 4 * np.eye(3))


def test_a_python_number_wraps_before_it_is_compared_as_stated() -> None:
    shows(f"{ARRAYS}#compare-equal", "`x == -100` is true for 156 in uint8, and `x > -1` is false for every uint8.")
    numbers = np.arange(256, dtype=np.uint8)
    assert (numbers > -1).all() and not (numbers == -100).any()
    assert not (jnp.asarray(numbers) > -1).any()
    assert jnp.flatnonzero(jnp.asarray(numbers) == -100).tolist() == [156]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_only_the_ignored_label_is_ignored(dtype: str) -> None:
    cross_entropy = visible(f"{TRAINING}#label-smoothing")["cross_entropy"]
    logits = np.asarray(jax.random.normal(KEY, (3, 200)))
    labels = np.array([0, 156, 199])
    log_p = special.log_softmax(logits.astype(float), axis=-1)
    exact = -(0.9 * log_p[np.arange(3), labels] + 0.1 * log_p.mean(axis=-1)).mean()
    np.testing.assert_allclose(cross_entropy(logits, labels.astype(dtype)), exact, rtol=1e-5)
    with pytest.raises(AssertionError):
        cross_entropy(logits, labels[:, None])


def test_times_that_fall_give_wrong_numbers_as_stated() -> None:
    shows(
        f"{SCIENCE}#ode", "Times have to be floats that increase", "A 16-bit state or parameter can give wrong numbers"
    )
    times = np.array([0, 5, 1], np.float32)
    found = odeint(lambda y, t: -y, jnp.float32(1), jnp.asarray(times))
    np.testing.assert_allclose(found[:2], np.exp(-times[:2]), atol=1e-4)
    assert not abs(found[2] - np.exp(-1)) < 0.01
    for dtype, right in (jnp.float32, True), (jnp.bfloat16, False):
        end = odeint(lambda y, t, a: -a * y, 1.0, jnp.arange(2.0), dtype(1), mxstep=1000)[-1]
        assert (abs(end - np.exp(-1)) < 0.01) == right


@pytest.mark.parametrize("start", [-1.0, 0.0, 2.0])
def test_an_implicit_method_starts_at_any_time(start: float) -> None:
    times = jnp.linspace(start, start + 1, 21)
    step = program(f"{SCIENCE}#stiff", "implicit_euler", times=times)["implicit_euler"]
    found = jax.lax.scan(step, 0.0, times[:-1])[1]
    np.testing.assert_allclose(found[1:], np.cos(times[2:]), atol=1e-2)


@pytest.mark.parametrize("high", [3.0, 1e6, 1e12])
def test_a_root_is_found_in_a_wide_bracket(high: float) -> None:
    root = program(f"{SCIENCE}#root-finding", "root")["root"]
    exact = optimize.brentq(lambda x: x**3 - 2, 0, high)
    found, slope = jax.value_and_grad(lambda a: root(lambda x, a: x**3 - a, 0.0, high, a))(2.0)
    np.testing.assert_allclose([found, slope], [exact, 1 / (3 * exact**2)], rtol=1e-5)


def test_a_pole_is_found_like_a_root_as_stated() -> None:
    shows(f"{SCIENCE}#root-finding", "The method needs a continuous `f`, a change of sign")
    root = program(f"{SCIENCE}#root-finding", "root")["root"]
    assert abs(root(lambda x: 1 / (x - 1.1), 0.0, 3.0) - 1.1) < 1e-4


@pytest.mark.parametrize("shape", [(), (1,), (3,), (20,), (2, 20)])
def test_an_integral_of_an_array_is_that_of_each_element(shape: tuple[int, ...]) -> None:
    integrate = program(f"{SCIENCE}#integrate", "integrate")["integrate"]
    powers = np.arange(1.0, 1 + np.prod(shape)).reshape(shape) % 7
    found = integrate(lambda x: x**powers, 0.0, 2.0)
    assert found.shape == shape
    np.testing.assert_allclose(found, 2 ** (powers + 1) / (powers + 1), rtol=1e-5)


def test_each_element_of_a_chain_moves_by_its_own_number() -> None:
    def log_density(x: Any) -> Any:
        return -0.5 * ((x - jnp.array([3.0, -1.0])) ** 2).sum()

    all_chains = program(f"{SCIENCE}#mcmc-chains", "all_chains", log_density=log_density)["all_chains"]
    keys = jax.random.split(KEY, (2000, 8))
    _, chains = jax.lax.scan(all_chains, jnp.zeros((8, 2)), keys)
    draws = np.asarray(chains[500:]).reshape(-1, 2)
    np.testing.assert_allclose(draws.mean(axis=0), [3, -1], atol=0.15)
    np.testing.assert_allclose(np.cov(draws.T), np.eye(2), atol=0.2)


def test_a_rate_above_a_quarter_grows_without_bound_as_stated() -> None:
    shows(f"{SCIENCE}#stencil", "With a `rate` above 0.25, the numbers can grow without bound.")
    heat = program(f"{SCIENCE}#stencil", "heat")["heat"]
    hot = jnp.zeros((9, 9)).at[4, 4].set(100.0)
    for rate, bounded in (0.25, True), (0.3, False):
        assert (abs(heat(hot, "edge", 400, rate)).max() <= 100) == bounded


@pytest.mark.parametrize("height", [1.0, 20.0, 1000.0, -5.0])
def test_a_ball_that_does_not_land_has_no_time(height: float) -> None:
    shows(f"{SOLVERS}#event", "If no event occurs, `ts` ends with `t1`")
    time = jax.jit(program(f"{SOLVERS}#event", "landing")["landing"])(height)
    exact = np.sqrt(2 * height / 9.81) if height > 0 else np.nan
    np.testing.assert_allclose(time, exact if exact < 10 else np.nan, rtol=1e-3)


def test_too_few_iterations_are_wrong_as_stated() -> None:
    shows(f"{SAMPLING}#solver-gradient", "at a force of `1e5`, 20 iterations are too few")
    fixed = program(f"{SAMPLING}#solver-gradient", "fixed")["fixed"]
    for force, right in (2.0, True), (1e3, True), (1e5, False):
        exact = optimize.brentq(lambda x: x + x**3 - force, 0, force)  # noqa: B023
        found = jax.value_and_grad(fixed)(force)
        assert np.allclose(found, [exact, 1 / (1 + 3 * exact**2)], rtol=1e-2) == right


def test_environments_that_end_together_start_apart() -> None:
    step = program(f"{SAMPLING}#final-observation", "step")["step"]
    seen = step(KEY, jnp.full(4, 2.5), jnp.zeros(4, int), 1.0)[0]
    assert len({*seen.tolist()}) == 4
    apart = jax.vmap(lambda key: step(key, 2.5, 0, 1.0)[0])(jax.random.split(KEY, 4))
    assert len({*apart.tolist()}) == 4


def test_the_average_of_all_draws_is_named_as_what_it_is() -> None:
    shows(f"{SAMPLING}#thinning", "squares, some = sample(", '"mean square near 1:"')


def test_one_bad_gradient_makes_a_step_bad() -> None:
    gradient = program("answers/mixed-precision.md#loss-scaling", "gradient", loss=lambda w: (w * w).sum())["gradient"]
    for w, good in ([1.0, 2.0], True), ([1.0, jnp.inf], False):
        assert bool(gradient(jnp.array(w), 2.0)[1]) == good


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
def test_a_strength_of_any_dtype_reverses(dtype: str) -> None:
    reverse = program("answers/custom-derivatives.md#change-backward", "reverse")["reverse"]
    strength = jnp.array([1, 2], dtype)
    assert jax.grad(lambda x: reverse(x, strength).sum())(jnp.ones(2)).tolist() == [-1, -2]
