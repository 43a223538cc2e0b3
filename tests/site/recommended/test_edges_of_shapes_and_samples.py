"""Values at an edge on the pages about updates, state, filters and random numbers: small dtypes, columns, far tails."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from tests.site.recommended.attack import PROJECT, program
from tests.site.recommended.shown import shows, visible
from tests.site.recommended.test_edges import says

UPDATES, STATE, RANDOM = "basics/updates.md", "basics/state.md", "answers/random.md"
KALMAN, GENERATION = "science/kalman.md", "train/generation.md"
KEY = jax.random.key(3)


def test_a_divisor_gets_the_dtype_of_the_array_as_stated() -> None:
    says(UPDATES, "Convert integers and 16-bit floats to `float32` before you divide.")
    twice = jnp.array([0, 0])
    for start, divisor in (200, 20), (200, 300), (100, 7):
        numbers = np.array([start, 1], np.uint8)
        expected = [start / divisor**2, 1.0]
        narrow = jnp.asarray(numbers).at[twice].divide(divisor)
        assert narrow.dtype == jnp.float32 and (divisor == 7 or not np.allclose(narrow, expected))
        np.testing.assert_allclose(jnp.asarray(numbers, jnp.float32).at[twice].divide(divisor), expected, rtol=1e-5)


def test_an_addition_may_grow_the_array_as_stated() -> None:
    says(UPDATES, "`jnp.add(x, v)` and `x += v` may return another shape")
    column, row = jnp.ones((3, 1)), jnp.ones(3)
    grown = column
    grown += row
    assert grown.shape == jnp.add(column, row).shape == (3, 3)
    with pytest.raises(ValueError, match="(?i)broadcast"):
        np.add(np.ones((3, 1)), np.ones(3), out=np.ones((3, 1)))
    with pytest.raises(ValueError, match="(?i)broadcast"):
        column.at[...].add(row)
    with pytest.raises(ValueError, match="NaN"):
        np.arange(3).fill(np.nan)
    assert not jnp.full_like(jnp.arange(3), np.nan).any()


def test_what_a_kept_function_reads_is_read_once_as_stated() -> None:
    page = "speed/recompiles.md"
    says(page, "uses the old values without an error")
    says(page, "So pass what changes as an argument.")

    class Trainer:
        weight = 1.0

        def loss(self, params: jax.Array) -> jax.Array:
            return self.weight * jnp.sum(params**2)

    def losses(kept: bool) -> list[float]:
        trainer, found = Trainer(), []
        step = jax.jit(trainer.loss) if kept else None
        for weight in 1.0, 2.0:
            trainer.weight = weight
            found.append(float((step or jax.jit(trainer.loss))(jnp.ones(3))))
        return found

    assert losses(kept=True) == [3, 3] and losses(kept=False) == [3, 6]


def test_a_log_is_not_changed_in_place_between_calls() -> None:
    text = (PROJECT.docs / "speed/recompiles.md").read_text(encoding="utf-8")
    assert 'log["loss"] = log["loss"].at[step].set(1.0 / (step + 1))' in text
    assert 'log["loss"][step]' not in text


def test_a_mean_of_pixels_starts_in_float32() -> None:
    found = program(STATE, "Smoothing", "State", "update")
    for start, x in (10, 8), (200, 250):
        pixel, exact = jnp.uint8(x), (start + x) / 2
        assert found["update"](found["State"](0.5, jnp.float32(start)), pixel)[1] == exact
        assert found["Smoothing"](0.5).update(jnp.float32(start), pixel) == exact
    assert found["update"](found["State"](0.5, jnp.uint8(10)), jnp.uint8(8))[1] == 137
    says(STATE, "If you started at a first image of `uint8` pixels, `x - mean` would wrap around.")
    says(STATE, "print(settings.update(jnp.float32(0), 8.0))")  # as the page advises


def test_a_variance_of_large_numbers_is_that_of_differences() -> None:
    says(STATE, "so subtract the first value from numbers such as times in seconds")
    found = program(STATE, "Moments", "observe")
    times = np.int32(1_700_000_000) + np.arange(50, dtype=np.int32)
    for data, right in (times, False), (times - times[0], True):
        _, variance = jax.lax.scan(found["observe"], found["Moments"](), data)
        assert np.isclose(variance[-1], times.var(), rtol=1e-3) == right


@pytest.mark.parametrize("part", ["Q", "R", "m"])
def test_a_filter_refuses_variances_in_place_of_covariances(part: str) -> None:
    found = program(KALMAN, "Model", "kalman", "parallel", "moving")
    model = found["moving"](0.3, 2.0)._replace(H=jnp.eye(2), R=jnp.diag(jnp.array([4.0, 1.0])))
    measured = jnp.ones((4, 2))
    assert jnp.isfinite(found["kalman"](model, measured)[2])
    wrong: dict[str, list[Any]] = {
        "Q": [0.01, jnp.array([0.01, 0.02])],
        "R": [4.0, jnp.array([4.0, 1.0])],
        "m": [jnp.zeros((2, 1))],
    }
    for value in wrong[part]:
        for run in found["kalman"], found["parallel"]:
            with pytest.raises(ValueError, match="whole covariances"):
                run(model._replace(**{part: jnp.asarray(value)}), measured)


def test_a_known_start_is_drawn_as_nan_as_stated() -> None:
    shows(f"{KALMAN}#missing", "and so is `P` for a known start. JAX may then draw only NaN")
    found = program(KALMAN, "simulate", "kalman", "moving")
    model = found["moving"](0.3, 2.0)
    known = model._replace(P=jnp.zeros((2, 2)))
    measured = found["simulate"](known, KEY, 4)[1]
    assert jnp.isnan(measured).all() and not found["kalman"](model, measured)[0].any()


def test_measured_columns_are_refused_by_the_density_and_the_fit() -> None:
    page, science = "science/sampling.md", "answers/science.md#error-bars"
    names = program(page, "days", "measured", "truth", "log_density")
    assert jnp.isfinite(names["log_density"](names["truth"]))
    column = {"days": names["days"], "measured": names["measured"][:, None]}
    with pytest.raises(ValueError, match="velocities"):
        program(page, "log_density", **column)["log_density"](names["truth"])
    with pytest.raises(ValueError, match="values of y"):
        program(science, "negative_log_likelihood", y=jnp.ones((50, 1)))["negative_log_likelihood"](jnp.zeros(2))
    says("science/diffrax.md", "In `fit`, `r.size` must not count them either")


def test_chains_come_first_as_stated() -> None:
    shows("science/sampling.md#diagnostics", "swap the first two axes of what a `scan` around a `vmap` returns")
    size = program("science/sampling.md", "effective_size")["effective_size"]
    draws = np.random.default_rng(0).normal(size=(4, 500, 1)).cumsum(axis=1)
    assert size(draws)[0] < 100 < size(draws.swapaxes(0, 1))[0]


def test_a_temperature_of_zero_chooses_the_first_of_the_likeliest() -> None:
    keys = jax.random.split(KEY, 40)
    draw = program(GENERATION, "draw")["draw"]
    sample = visible("answers/attention.md#sampling")["sample"]
    near = np.array([0, 5, 5, 1, np.nextafter(np.float32(5), np.float32(0))], np.float32)
    for logits in near, near.astype(jnp.bfloat16):
        for choose in draw, sample:
            each: Any = jax.vmap(lambda key: choose(key, jnp.asarray(logits), temperature=0.0))  # noqa: B023
            assert (jax.jit(each)(keys) == 1).all()
            warm: Any = jax.vmap(lambda key: choose(key, jnp.asarray(logits), temperature=1.0, top_p=1.0))  # noqa: B023
            assert len(set(warm(keys).tolist())) > 2


def test_one_length_for_two_prompts_is_refused() -> None:
    found = program(GENERATION, "generate", "generate_until", "params")
    prompts, keys = jnp.array([[7, 3, 9], [8, 0, 0]]), jax.random.split(KEY, 2)
    for run in found["generate"], found["generate_until"]:
        with pytest.raises(ValueError, match="positions"):
            run(found["params"], prompts, jnp.array([3]), keys, 2)
    says(GENERATION, "or its length is too large, the text continues after its padding")


@pytest.mark.parametrize("low", [3.0, 3.5, 4.5, 5.0, 5.5, 8.0])
def test_beyond_three_and_a_half_a_tail_is_drawn_by_its_own_program(low: float) -> None:
    shows(f"{RANDOM}#mean-and-std", "beyond 3.5, `truncated_normal` draws wrong numbers")
    tail = visible(f"{RANDOM}#mean-and-std")["tail"]
    exact = stats.truncnorm(low, low + 4)
    found = [np.asarray(draw, float) for draw in (
        tail(KEY, low, low + 4, (100_000,)), jax.random.truncated_normal(KEY, low, low + 4, (100_000,)))]  # fmt: skip
    off = [abs(draws.std() / exact.std() - 1) for draws in found]
    assert off[0] < 0.02 and (off[1] < 0.1) == (low <= 3.5)


def test_means_of_an_array_share_a_draw_without_a_shape_as_stated() -> None:
    shows(f"{RANDOM}#mean-and-std", "Without the shape, all elements of an array of means would share one draw.")
    noise = [2.0 * jax.random.normal(KEY, shape) + jnp.zeros(3) for shape in ((), (3,))]
    assert [len(set(each.tolist())) for each in noise] == [1, 3]


def test_weights_of_16_bits_leave_most_items_out_as_stated() -> None:
    shows(f"{RANDOM}#choice", "of 1000 equal weights in bfloat16, most are never drawn")
    for dtype, most in (jnp.bfloat16, False), (jnp.float32, True):
        drawn = jax.random.choice(KEY, 1000, (100_000,), p=jnp.ones(1000, dtype))
        assert (len(np.unique(drawn)) > 500) == most


def test_a_negative_probability_is_always_drawn_as_stated() -> None:
    shows(f"{RANDOM}#categorical", "becomes NaN, and a class with NaN is always drawn")
    logits = jnp.log(jnp.array([0.3, -1e-9, 0.7]))
    assert (jax.random.categorical(KEY, logits, shape=(100,)) == 1).all()


def test_labels_that_are_too_few_are_filled_up_as_stated() -> None:
    shows(f"{RANDOM}#shuffle", "if `y` is too short, JAX fills up the result with the last element of `y`.")
    order = jax.random.permutation(KEY, 5)
    assert sorted(jnp.arange(3)[order].tolist()) == [0, 1, 2, 2, 2]


def test_a_norm_over_many_arrays_of_16_bits_is_imprecise_as_stated() -> None:
    shows("answers/pytrees.md#tree-arithmetic", "a bfloat16 sum over hundreds of arrays is imprecise")
    says("answers/training.md", "In bfloat16, the norm of hundreds of arrays is imprecise.")
    for dtype, close in (jnp.bfloat16, False), (jnp.float32, True):
        norm = optax.tree.norm([jnp.ones(1, dtype)] * 600)
        assert np.isclose(float(norm), 600**0.5, rtol=0.1) == close


def test_a_read_past_the_end_is_the_last_one_as_stated() -> None:
    says("speed/shapes.md", "a plain `x[where]` would read the last element again")
    says("basics/pytrees.md", "An index past the end, such as `p[5]`, returns the last model again")
    total = program("speed/shapes.md", "total")["total"]
    readings = jnp.array([3.0, -1.0, 0.0, 2.0])
    where = jnp.flatnonzero(readings >= 0, size=4, fill_value=readings.size)
    assert total(readings, 4, fill_value=readings.size) == 5 and readings[where].sum() == 7
    ensemble = {"w": jnp.arange(5.0)[:, None]}
    assert jax.tree.map(lambda p: p[5], ensemble)["w"] == 4
