"""Shapes that would broadcast without an error, and values at an edge: what programs must refuse, or show as NaN."""

from importlib import import_module
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx  # type: ignore[import-untyped]
import numpy as np
import pytest
from flax import nnx
from jax.experimental import checkify

from tests.site.recommended.attack import PROJECT, program
from tests.site.recommended.shown import shows, visible

COLUMN = jnp.ones((4, 1))  # beside rows of shape (4,)
REFUSED = "(?i)shape"
untyped: Any = jnp
chains: Any = import_module("chains")
mixed_precision: Any = import_module("mixed_precision")
step_memory: Any = import_module("step_memory")
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
    found = program("answers/nnx-transforms.md#one-vector", "loss", "vector", x=x, y=y)
    with pytest.raises(ValueError, match=REFUSED):
        found["loss"](found["vector"])
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


READINGS = {
    "speed/parallel-scans.md": ["smooth", "smooth_joined", "smooth_chunked"],
    "speed/loops.md": ["smooth"],
    "speed/fast-and-slow.md": ["smooth_numpy", "smooth_scan", "smooth_associative"],
}


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.int8, jnp.uint8])
@pytest.mark.parametrize("page", READINGS)
def test_levels_of_small_types_reach_the_readings(page: str, dtype: Any) -> None:
    readings = jnp.full(800, 100, dtype).at[0].set(0)
    for name, smooth in program(page, *READINGS[page]).items():
        if name in READINGS[page]:
            np.testing.assert_allclose(np.float64(smooth(readings)[-1]), 100, rtol=1e-5, err_msg=name)


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
    x = jnp.ones((4, 8, 64))
    with pytest.raises(ValueError, match=REFUSED):
        step_memory.loss(step_memory.init(jax.random.key(0), 1), x, x[..., :1], step_memory.block)


@pytest.mark.parametrize("columns", [1, 3, 5])
def test_an_odd_number_of_columns_has_no_pairs_to_rotate(columns: int) -> None:
    x = jnp.ones((4, 2, columns))
    with pytest.raises(ValueError, match="split"):
        transformer.rotate(x, jnp.arange(4))
    given = {"jnp": jnp, "jax": jax}
    with pytest.raises(ValueError, match="split"):
        program("train/weights.md", "rotate", **given)["rotate"](x)


def says(page: str, text: str) -> None:
    """Check that a page contains this text, however it is broken into lines."""
    assert text in " ".join((PROJECT.docs / page).read_text(encoding="utf-8").split()), f"{page} does not say {text!r}"


PIXELS = np.array([[0, 0], [200, 0], [0, 30]], np.uint8)  # whose differences and squares wrap around in uint8
GAPS = np.linalg.norm(PIXELS[:, None] - PIXELS.astype(float), axis=-1)


def test_distances_between_pixels_do_not_wrap_around() -> None:
    pixels = jnp.asarray(PIXELS)
    memory = "answers/memory.md"
    others = GAPS + np.diag([1e9] * 3)
    near = jnp.uint8([[0, 0], [200, 0], [190, 0], [16, 0]])  # 16 squared is 0 in uint8
    assert program(f"{memory}#ask-first", "distances")["distances"](near).tolist() == [0, 1, 2, 3]
    found = program(f"{memory}#vmap-in-chunks", "nearest")["nearest"]
    assert int(found(near[0], near[jnp.array([2, 3])])) == 1
    assert int(found(near[1], near[jnp.array([3, 2])])) == 1
    assert int(found(near[0], near[jnp.array([3, 0])])) == 1
    np.testing.assert_allclose(
        program(f"{memory}#which-array", "nearest")["nearest"](pixels[:1], pixels[1:]), [others[0].min()], rtol=1e-6
    )
    distance = program("answers/vmap.md#inconsistent-sizes", "distance")["distance"]
    table = jax.vmap(jax.vmap(distance, (None, 0)), (0, None))
    np.testing.assert_allclose(table(pixels, pixels), GAPS, rtol=1e-6)
    says("basics/vmap.md", "of floats: in uint8, a - b and its square wrap around")
    similarity = program("answers/vmap.md#all-pairs", "similarity")["similarity"]
    assert similarity(jnp.uint8([16, 0]), jnp.uint8([0, 0])) < 1e-30  # 256 is 0 in uint8
    between = program("answers/mjx-and-brax.md#mjx-compile", "distance")["distance"]
    np.testing.assert_allclose(between(pixels[:1], pixels[1:]), others[0].min(), rtol=1e-6)


def test_a_row_beside_a_column_is_refused_on_devices() -> None:
    page = "answers/models-on-devices.md"
    x, y = jnp.ones((8, 2)), jnp.ones(8)
    found = program(f"{page}#nnx-several-gpus", "step", "both")
    with pytest.raises(ValueError, match=REFUSED):
        found["step"](*found["both"], x, y)
    found = program(f"{page}#filter-shard", "step", "model", "adam")
    state = found["adam"].init(eqx.filter(found["model"], eqx.is_inexact_array))
    with pytest.raises(ValueError, match=REFUSED):
        found["step"](found["model"], state, x, y)


def test_where_a_column_of_targets_would_broadcast_the_shape_is_stated() -> None:
    shows("answers/data.md#epoch-on-device", "The targets must have the shape of `x @ w`: a column would broadcast")
    shows("answers/devices.md#one-device-used", "`y` needs the shape of `x @ w`: a column would broadcast")
    shows("answers/mixed-precision.md#train-bfloat16", "The targets need the shape of the predictions")
    says("scale/pmap.md", "Give `y` the shape of `x`.")
    says("index.md", "so `x` and `y` have the same shape")
    shows("answers/solvers.md#least-squares", "`t` and `y` need one shape: a column would broadcast")
    shows("answers/many-solves.md#many-starts", "The arrays in `data` need one shape")
    with pytest.raises(ValueError, match="unpack"):
        program("science/transforms.md", "derivative", jax=jax, jnp=jnp)["derivative"](COLUMN)
    shows(
        "answers/sampling-and-simulation.md#final-observation", "values of shape `(n, 1)` would broadcast to all pairs"
    )


def test_rows_of_large_numbers_in_float16_are_squared_in_float32() -> None:
    assert jnp.isinf(jnp.float16(256) ** 2)
    x = jnp.full((2, 4), 300, jnp.float16)
    np.testing.assert_allclose(transformer.norm(jnp.ones(4, x.dtype), x), 1, rtol=1e-3)
    norm = program("train/weights.md", "norm", jnp=jnp, jax=jax)["norm"]
    np.testing.assert_allclose(norm(jnp.ones(4, x.dtype), x), 1, rtol=1e-3)
    says("train/generation.md", "with these weights and this cache in float32")


def test_levels_of_small_types_do_not_stop_on_their_way() -> None:
    saved = program("speed/scan.md", "saved", jnp=jnp, jax=jax)["saved"](jnp.ones(100, jnp.bfloat16))
    assert abs(saved / (100 * 1.05**100 + (1.05**100 - 1) / 0.05) - 1) < 1e-4
    total = visible("answers/printing-and-debugging.md#breakpoint")["total"]
    assert total(jnp.ones(1000, jnp.bfloat16)) == 1000
    says("speed/read-the-compiler.md", "at rates in float32")


def test_a_softmax_takes_floats_as_stated() -> None:
    says("speed/read-the-compiler.md", "a softmax of floats")
    says("lookup/claims-compiled.md", "on many floats")
    shows("answers/numpy.md#array-api", "takes floats (small integers wrap around)")


def test_the_first_number_whose_way_leaves_int32_is_the_one_shown() -> None:
    def highest(n: int) -> int:
        top = n
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            top = max(top, n)
        return top

    largest = np.iinfo(np.int32).max
    assert highest(113_383) > largest
    assert max(map(highest, range(113_001, 113_383))) <= largest
    says("speed/scan.md", "From `n = 113_383` on, `3 * n + 1` may wrap around")
    shows("answers/loops.md#collect-results", "From `n = 113_383` on, `3 * n + 1` may wrap around")


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8, jnp.int32, jnp.float16, jnp.bfloat16, jnp.float32])
def test_a_mask_clears_what_is_negative_and_nothing_else(dtype: Any) -> None:
    given = {"jnp": jnp, "jax": jax}
    clear = jax.jit(program("basics/updates.md", "clear_negative", **given)["clear_negative"])
    info = untyped.iinfo(dtype) if jnp.issubdtype(dtype, jnp.integer) else untyped.finfo(dtype)
    x = jnp.array([info.min, 0, 1, info.max], dtype)
    assert clear(x).dtype == dtype
    assert (clear(x) == jnp.array([0, 0, 1, info.max], dtype)).all()
    if not jnp.issubdtype(dtype, jnp.integer):
        odd = clear(jnp.array([jnp.nan, jnp.inf, -jnp.inf], dtype))
        np.testing.assert_array_equal(odd.astype(float), [np.nan, np.inf, 0])


def test_a_filled_mask_keeps_the_rest_and_wraps_around_only_as_stated() -> None:
    name = "answers/pytorch.md#gather-scatter"
    shows(name, "jnp.where(x > 4, -1, x)", "A value that doesn't fit the dtype, such as `-1` in uint8, wraps around")
    for x in ([np.nan, np.inf, 4, -np.inf], [2**24 + 1, 4, -9, 5]):
        found = np.asarray(jnp.where(jnp.array(x) > 4, -1, jnp.array(x)))
        np.testing.assert_array_equal(found, [-1 if value > 4 else value for value in x])
    assert jnp.where(jnp.uint8([9]) > 4, -1, jnp.uint8([9])).tolist() == [255]


@pytest.mark.parametrize("size", [1, 4, 200])
def test_an_index_outside_is_skipped_or_clipped_as_stated(size: int) -> None:
    x = jnp.arange(float(size))
    for i in (-2 * size, -size - 1, -size, -1, 0, size - 1, size, 2**31 - 1):
        inside = -size <= i < size
        nearest = i % size if inside else 0 if i < 0 else size - 1
        changes = {None: inside, "drop": inside, "clip": True}
        for mode, changed in changes.items():
            expected = np.arange(float(size))
            expected[nearest] += 10 * changed
            found = jax.jit(lambda x, i, mode=mode: x.at[i].add(10.0, mode=mode))(x, jnp.array([i]))
            np.testing.assert_array_equal(found, expected)
        assert x.at[jnp.array([i])].get()[0] == nearest
        assert x.at[jnp.array([i])].get(mode="fill", fill_value=-1.0)[0] == (nearest if inside else -1)


def test_integers_are_rounded_by_floats_and_by_an_image_as_stated() -> None:
    scores = jnp.array([2**24 + 1, 5])
    best = jnp.full(1, untyped.iinfo(scores.dtype).min).at[jnp.array([0, 0])].max(scores)
    assert best.tolist() == [2**24 + 1]
    says("basics/updates.md", "start at `jnp.iinfo(scores.dtype).min`")
    shows("answers/pytorch.md#interpolate", "Pass floats, because from integers it makes integers.")
    shows("answers/science.md#interpolate", "It rounds its results if the array holds integers.")


def test_a_column_of_labels_is_refused_by_the_loss() -> None:
    found = program("basics/kinks.md", "cross_entropy", "accuracy", jnp=jnp, jax=jax, labels=jnp.array([[0], [1]]))
    logits = jnp.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    with pytest.raises(ValueError, match="dimensions"):
        found["cross_entropy"](logits)
    assert found["accuracy"](logits) == 0.25  # two rows and two labels, all pairs
    says("basics/kinks.md", "With a column, `accuracy` compares all pairs.")


@pytest.mark.parametrize("labels", [[0, 3], [2, 1], [0, -1]])
def test_a_label_outside_the_classes_is_nan_or_counted_from_the_end(labels: list[int]) -> None:
    logits = np.array([[2, 1, 0], [0, 1, 3]], np.float32)
    loss = program("basics/kinks.md", "cross_entropy", jnp=jnp, jax=jax, labels=jnp.array(labels))["cross_entropy"]
    logs = logits - np.log(np.exp(logits.astype(float)).sum(1, keepdims=True))
    expected = np.nan if 3 in labels else -logs[np.arange(2), labels].mean()
    np.testing.assert_allclose(loss(jnp.asarray(logits)), expected, rtol=1e-5)


def test_an_error_is_measured_in_float64_and_of_equal_shapes() -> None:
    error = program("debug/testing.md", "error", np=np, jnp=jnp)["error"]
    assert error(untyped.int8([0]), untyped.int8([-128])) == 1  # whose absolute value is no int8
    assert error(jnp.bfloat16([1]), jnp.bfloat16([2])) == 0.5
    with pytest.raises(AssertionError):
        error(jnp.ones((3, 1)), np.ones(3))
    assert np.isnan(error(np.array([np.nan, 1]), np.ones(2)))


def test_bounds_are_those_of_floats_between_two_ends_in_any_order() -> None:
    bounds = program("extend/transformations.md", "bounds", "interpret", "bound")["bounds"]
    for ends in [(untyped.int8(0), untyped.int8(20)), (0, 20), (20.0, 0.0), (jnp.uint8(0), 20.0)]:
        assert [float(end) for end in bounds(lambda x: x * x)(*ends)] == [0, 400]
    assert [float(end) for end in bounds(lambda x: x**2)(2.0, -1.0)] == [0, 4]
    with pytest.raises(ValueError, match="unpack"):
        bounds(lambda x: (x, 2 * x))(0.0, 1.0)


def test_before_the_first_measurement_the_first_holds() -> None:
    level = program("answers/solvers.md#measured-data", "level")["level"]
    pump = jnp.array([7.0, 0, 1, 1, 0, 5])
    at = [level(jnp.float32(t), 0.0, pump) for t in (-0.5, 0.0, 0.5, 1.0, 4.9, 5.0, 9.0)]
    assert [float(value) for value in at] == [7, 7, 7, 0, 0, 5, 5]


def test_an_absolute_tolerance_ends_small_problems_early_as_stated() -> None:
    shows("answers/solvers.md#matrix-free", "`atol` is absolute: make it small compared with `b`")
    found = program("answers/solvers.md#matrix-free", "operator", "multiply")
    b = 1e-5 * jnp.sin(jnp.arange(1000.0))
    for atol, off in (1e-5, True), (1e-11, False):
        x = lx.linear_solve(found["operator"], b, lx.CG(rtol=1e-5, atol=atol)).value
        assert (abs(found["multiply"](x) - b).max() > 0.1 * abs(b).max()) == off
    shows("answers/solvers.md#least-squares", "data of a size of 1e-3 end the fit early")
    fit = program("answers/solvers.md#least-squares", "fit")["fit"]
    t = jnp.linspace(0.0, 4.0, 20)
    for size, off in (1e-3, True), (1.0, False):
        assert (abs(fit(t, size * jnp.exp(-0.7 * t))["rate"] - 0.7) > 0.3) == off
    assert fit(t, jnp.exp(-0.7 * t)[:, None])["rate"] < 0.01  # a column
    shows("answers/solvers.md#optimistix-steps", "much smaller than `atol` is off by about `atol`, with success")
    root, good = program("answers/solvers.md#optimistix-steps", "solve")["solve"](1e-12)
    assert good and 1e-6 < abs(root - 1e-6) < 1e-5


def test_an_average_of_parameters_in_bfloat16_stops_as_stated() -> None:
    shows("answers/nnx-training.md#ema", "Of parameters in bfloat16, it stops on the way to them")
    for dtype, low, high in (jnp.float32, 94, 96), (jnp.bfloat16, 0, 80):
        model: Any = nnx.Linear(1, 1, rngs=nnx.Rngs(0), param_dtype=dtype)
        ema = nnx.EMA(model, decay=0.99, only=nnx.Param)
        averaged: Any = ema.apply_to(model)
        model.bias[...] = jnp.full(1, 100, dtype)
        update = nnx.jit(lambda model, ema: ema.update(model))
        for _ in range(300):
            update(model, ema)
        assert low < averaged.bias[0] < high


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_losses_of_logits_in_bfloat16_are_averaged_in_float32(dtype: Any) -> None:
    found = program("answers/nnx-training.md#metrics", "evaluate", "metrics")
    found["metrics"].reset()
    logits = jnp.tile(jnp.array([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], dtype), (1000, 1))
    found["evaluate"](found["metrics"], logits, jnp.tile(jnp.array([0, 1, 1]), 1000))
    np.testing.assert_allclose(found["metrics"].compute()["loss"], np.log1p(np.exp(-2.0)) + 2 / 3, rtol=1e-5)
    found["metrics"].reset()


def test_a_power_of_integers_and_a_fill_value_are_cut_as_stated() -> None:
    says("basics/updates.md", "a negative exponent gives wrong integers; NumPy raises an error.")
    says("basics/updates.md", "without a warning, as in `full_like`")
    assert jnp.array([2, 3]).at[:].power(-1).tolist()[0] == 0  # and what 3 becomes is large
    assert jnp.full_like(jnp.uint8([0]), 300).tolist() == [44]


def test_indices_that_checkify_does_not_report_are_named() -> None:
    says(
        "debug/checkify.md",
        "`index_checks` does not cover the indices of `jnp.put`, `lax.switch`, `jax.nn.one_hot` or a [mutable",
    )
    says("debug/checkify.md", "nor, on jax 0.12, of `jnp.insert`.")

    def reported(function: Any) -> bool:
        checked = checkify.checkify(function, errors=checkify.index_checks)
        return jax.jit(checked)(jnp.arange(4.0), jnp.int32(9))[0].get() is not None

    for function in (
        lambda x, i: x[i],
        lambda x, i: x.at[i].set(1.0),
        jnp.take,
        lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,)),
        lambda x, i: jax.ops.segment_sum(x, jnp.full(4, i), 4),
    ):
        assert reported(function)
    for function in (
        lambda x, i: jnp.put(x, i, 1.0, inplace=False),
        lambda x, i: jax.lax.switch(i, [lambda: x, lambda: 2 * x]),
        lambda x, i: jax.nn.one_hot(i, 4),
        lambda x, i: jax.new_ref(x)[i],
    ):
        assert not reported(function)
    assert reported(lambda x, i: jnp.insert(x, i, 1.0)) == (jax.__version_info__ < (0, 12))


def test_one_value_per_channel_makes_the_running_variance_nan() -> None:
    says(
        "start/pytorch.md",
        "With a single value per channel, the running variance becomes NaN; PyTorch raises an error.",
    )
    norm = program("start/pytorch.md", "batch_norm")["batch_norm"]
    params, stats = {"scale": jnp.ones(2), "bias": jnp.zeros(2)}, {"mean": jnp.zeros(2), "var": jnp.ones(2)}
    for count, finite in (1, False), (2, True):
        x = jnp.arange(2.0 * count).reshape(count, 1, 1, 2)
        assert np.isfinite(norm(params, stats, x, True)[1]["var"]).all() == finite
