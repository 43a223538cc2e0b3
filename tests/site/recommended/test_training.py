"""Attacks on the answers about training, data and PyTorch: each step, batch and layer in NumPy, in float64."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from hypothesis import strategies as st
from jax.scipy.ndimage import map_coordinates
from scipy import signal, special, stats

from tests.site.recommended.attack import PROJECT, attack, program, slow_attack
from tests.site.strategies import Transformation, arrays, assert_same, dtypes, keys, transformations

Array = np.ndarray[Any, Any]
TRAINING, DATA, TORCH = "answers/training.md", "answers/data.md", "answers/pytorch.md"
GRADIENTS = st.lists(arrays((2,), odd=False), min_size=1, max_size=4)
SMALL = st.integers(-16, 16).map(lambda n: n / 8)


@cache
def compiled(name: str, wanted: str) -> Any:
    """Return a function of a page, compiled."""
    return jax.jit(program(name, wanted)[wanted])


@cache
def optimizer_of(name: str, wanted: str = "optimizer") -> Any:
    """Return an optimizer of a page, with its update compiled."""
    optimizer = program(name, wanted)[wanted]
    return optimizer, jax.jit(optimizer.update)


def adam(w: Array, gradients: list[Array], rate: float = 0.1) -> Array:
    """The parameters after these steps of Adam."""
    mu = nu = np.zeros_like(w, float)
    for count, gradient in enumerate(gradients, 1):
        mu, nu = 0.9 * mu + 0.1 * gradient, 0.999 * nu + 0.001 * gradient.astype(float) ** 2
        w = w - rate * (mu / (1 - 0.9**count)) / (np.sqrt(nu / (1 - 0.999**count)) + 1e-8)
    return w


@slow_attack(f"{TRAINING}#training-loop", x=arrays((64, 3), odd=False).map(lambda x: x / 9), y=arrays((64,), odd=False))
def test_a_step_is_one_of_adam(x: Array, y: Array) -> None:
    found = program(f"{TRAINING}#training-loop", "step", "optimizer")
    w, state, value = jnp.zeros(3), found["optimizer"].init(jnp.zeros(3)), 0.0
    slope = -2 * y.astype(float) @ x / 64
    w, state, value = found["step"](w, state, x, y)
    assert_same(value, (y.astype(float) ** 2).mean(), rtol=1e-3)
    clear = np.abs(slope) > 1e-2
    assert_same(np.asarray(w)[clear], adam(np.zeros(3), [slope])[clear], atol=1e-3)


@attack(f"{TRAINING}#parameters-unchanged", w=arrays((2,), odd=False), steps=GRADIENTS)
def test_updates_are_added_to_the_parameters(w: Array, steps: list[Array]) -> None:
    optimizer, update = optimizer_of(f"{TRAINING}#parameters-unchanged")
    moved, state, expected = jnp.asarray(w), optimizer.init(w), w.astype(float)
    for gradient in steps:
        updates, state = update(gradient, state)
        moved, expected = optax.apply_updates(moved, updates), expected - 0.1 * gradient
    assert_same(moved, expected)


@attack(f"{TRAINING}#params-missing", w=arrays((2,), odd=False))
def test_decay_needs_the_parameters(w: Array) -> None:
    optimizer, update = optimizer_of(f"{TRAINING}#params-missing")
    params, zero = {"w": jnp.asarray(w)}, {"w": jnp.zeros(2)}
    assert_same(update(zero, optimizer.init(params), params)[0]["w"], -0.1 * 0.5 * w.astype(float))
    with pytest.raises(ValueError, match="requires the current value of parameters"):
        optimizer.update(zero, optimizer.init(params))


@attack(f"{TRAINING}#log-learning-rate", steps=st.integers(1, 7))
def test_the_rate_in_the_state_is_that_of_the_last_update(steps: int) -> None:
    optimizer, update = optimizer_of(f"{TRAINING}#log-learning-rate")
    state, w = optimizer.init(jnp.ones(2)), np.ones(2, np.float32)
    for _ in range(steps):
        updates, state = update(w, state)
    rate = 0.1 * max(1 - (steps - 1) / 4, 0)
    assert_same(state.hyperparams["learning_rate"], np.float64(rate))
    assert_same(updates, -rate * w)


@slow_attack(f"{TRAINING}#change-learning-rate", rates=st.lists(SMALL, min_size=1, max_size=5))
def test_each_step_has_the_rate_that_was_assigned(rates: list[float]) -> None:
    optimizer, step = injected()
    w = jnp.zeros(2)
    state = optimizer.init(w)
    for rate in rates:
        state.hyperparams["learning_rate"] = jnp.float32(rate)
        w, state = step(w, state)
    assert_same(w, np.full(2, -sum(rates)))


@cache
def slope_of_parts() -> Any:
    """Return the gradient of the answer's loss of a part, compiled."""
    return jax.jit(jax.grad(program(f"{TRAINING}#accumulation", "loss")["loss"]))


@cache
def injected() -> tuple[Any, Any]:
    """Return the answer's first optimizer, and its step."""
    optimizer = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)
    assert "optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)" in (PROJECT.docs / TRAINING).read_text("utf-8")
    return optimizer, program(f"{TRAINING}#change-learning-rate", "step", optimizer=optimizer, w=None)["step"]


@slow_attack(f"{TRAINING}#accumulation", x=arrays((8,), odd=False), w=SMALL)
def test_accumulated_parts_are_one_batch(x: Array, w: float) -> None:
    optimizer, update = optimizer_of(f"{TRAINING}#accumulation")
    moved = jnp.float32(w)
    state, slope = optimizer.init(moved), slope_of_parts()
    for i, part in enumerate(x.reshape(4, 2)):
        assert i == 0 or moved == jnp.float32(w)
        updates, state = update(slope(moved, part), state, moved)
        moved = optax.apply_updates(moved, updates)
    assert_same(moved, np.float64(w + 0.1 * 2 * (x.astype(float) - w).mean()), rtol=1e-3)


@slow_attack(seed=st.integers(0, 99), dtype=st.sampled_from(["bfloat16", "float16", "float32"]), half=st.booleans())
def test_the_gradient_of_many_parts_is_that_of_all(seed: int, dtype: str, half: bool) -> None:
    found = loop_at_work()
    data, weights = found["examples"](seed, 2048, 0.5), found["init"](jax.random.key(seed))
    data["real"][::3] = 0
    batch = jax.tree.map(lambda a: a.astype(dtype), data) if half else data  # its counts pass 256 as well
    params = jax.tree.map(lambda a: a.astype(dtype), weights)
    value, grads = found["in_parts"](params, batch, parts=1024)
    w, b, v, x, y, real = (
        np.asarray(tree[name], np.float64)
        for tree, names in ((params, "wbv"), (batch, ("x", "y", "real")))
        for name in names
    )
    hidden = np.tanh(x @ w + b)
    off = real * (hidden @ v - y)
    inner = 2 * off[:, None] * v * (1 - hidden**2) / real.sum()
    assert_same(value, (off * (hidden @ v - y)).sum() / real.sum(), rtol=1e-2)
    expected = {"w": x.T @ inner, "b": inner.sum(axis=0), "v": 2 * hidden.T @ off / real.sum()}
    for name, slope in expected.items():
        gap = np.asarray(grads[name], np.float64) - slope
        assert grads[name].dtype == params[name].dtype
        assert np.linalg.norm(gap) < 0.02 * np.linalg.norm(slope), name


@slow_attack(steps=st.integers(1, 30))
def test_a_row_is_of_the_steps_since_the_last(steps: int) -> None:
    found = loop_at_work()
    data, state, values = found["examples"](1, 64, 0.5), found["begin"](found["init"](jax.random.key(0))), []
    for number in range(steps + 1):
        batch = found["draw"](data, number)
        values.append(float(found["in_parts"](state.params, batch, parts=4)[0]))
        if number < steps:
            state = found["step"](state, batch)
    _, _, log = found["fit"](state, data, data, steps=steps + 1)  # resumed between two reads
    assert_same(log[steps + 1]["train"], np.mean(values), rtol=1e-3)


@cache
def loop_at_work() -> dict[str, Any]:
    """Return the functions of the page about the loop at work."""
    return program("train/training-loop.md", "examples", "draw", "init", "begin", "step", "fit", "in_parts")


@attack(f"{TRAINING}#clipping", a=arrays((1,)), b=arrays((1,)))
def test_clipping_scales_to_the_norm_and_keeps_nan(a: Array, b: Array) -> None:
    optimizer, update = optimizer_of(f"{TRAINING}#clipping")
    params = {"a": jnp.zeros(1), "b": jnp.zeros(1)}
    updates, _ = update({"a": a, "b": b}, optimizer.init(params), params)
    both = np.concatenate([a, b]).astype(float)
    norm = np.sqrt((both**2).sum())
    if np.isfinite(norm):
        assert_same(np.concatenate([updates["a"], updates["b"]]), -both / max(norm, 1))
    elif np.isnan(norm):
        assert jnp.isnan(updates["a"]) and jnp.isnan(updates["b"])


@attack(f"{TRAINING}#freeze", f"{TORCH}#frozen-still-change", steps=GRADIENTS)
def test_each_label_has_its_rule(steps: list[Array]) -> None:
    optimizer, update = optimizer_of(f"{TRAINING}#freeze")
    frozen, update_frozen = optimizer_of(f"{TORCH}#frozen-still-change", "frozen")
    params = {"body": jnp.ones(2), "bias": jnp.ones(2), "head": jnp.ones(2)}
    two = {"backbone": jnp.ones(1), "head": jnp.ones(1)}
    state, second = optimizer.init(params), frozen.init(two)
    for gradient in steps:
        updates, state = update(dict.fromkeys(params, gradient), state, params)
        for name, rate in {"body": 0, "bias": 0.01, "head": 0.1}.items():
            assert_same(updates[name], -rate * gradient)
        updates, second = update_frozen({"backbone": gradient[:1], "head": gradient[:1]}, second, two)
        assert updates["backbone"] == 0
    expected = adam(np.zeros(1), [g[:1] for g in steps]) - adam(np.zeros(1), [g[:1] for g in steps[:-1]])
    assert_same(updates["head"], expected - 0.1 * 0.5 if np.abs(steps[-1][0]) or len(steps) > 1 else [-0.05], atol=1e-3)


@slow_attack(f"{TRAINING}#weight-decay-mask", w=arrays((2, 2), odd=False), b=arrays((2,), odd=False))
def test_only_matrices_decay(w: Array, b: Array) -> None:
    optimizer, update = decaying()
    params = {"w": jnp.asarray(w), "b": jnp.asarray(b)}
    updates, _ = update(jax.tree.map(jnp.zeros_like, params), optimizer.init(params), params)
    assert_same(updates["w"], -0.1 * 0.5 * w.astype(float))
    assert not updates["b"].any()


@cache
def decaying() -> tuple[Any, Any]:
    """Return the answer's optimizer with a mask, with its update compiled."""
    optimizer = program(f"{TRAINING}#weight-decay-mask", "optimizer", params=None)["optimizer"]
    return optimizer, jax.jit(optimizer.update)


@attack(f"{TRAINING}#ema", noise=arrays((6,), odd=False))
def test_the_average_follows_its_recursion(noise: Array) -> None:
    step = program(f"{TRAINING}#ema", "step")["step"]
    _, (path, averages) = scanned(step)(noise)
    w = average = 0.0
    for n, found_w, found in zip(noise.astype(float), path, averages, strict=True):
        w = w - 0.5 * (w - 1 + n)
        average = 0.02 * w + 0.98 * average
        assert_same([found_w, found], np.array([w, average]))


@cache
def scanned(step: Callable[..., Any]) -> Any:
    """Return a scan of a step from zeros, compiled."""
    return jax.jit(lambda xs: jax.lax.scan(step, (0.0, 0.0), xs))


@attack(
    f"{TRAINING}#running-statistics", x=arrays((2,), odd=False).map(lambda x: np.clip(x, -9, 9)), w=SMALL, mean=SMALL
)
def test_statistics_move_and_the_weight_descends(x: Array, w: float, mean: float) -> None:
    new, moved, value = program(f"{TRAINING}#running-statistics", "step")["step"](jnp.float32(w), jnp.float32(mean), x)
    off = x.astype(float) - x.astype(float).mean()
    assert_same(value, ((w * off - 1) ** 2).mean(), rtol=1e-3)
    assert_same(new, w - 0.1 * (2 * off * (w * off - 1)).mean(), rtol=1e-3, atol=1e-3)
    assert_same(moved, 0.9 * mean + 0.1 * x.astype(float).mean())


@attack(f"{TRAINING}#metrics", guesses=arrays((10,), "int32"), labels=arrays((10,), "int32"))
def test_an_accuracy_is_that_of_all_rows(guesses: Array, labels: Array) -> None:
    evaluate, totals = program(f"{TRAINING}#metrics", "evaluate")["evaluate"], jnp.zeros(2, int)
    for rows in (slice(0, 4), slice(4, 8), slice(8, 10)):
        totals = evaluate(totals, guesses[rows] % 3, labels[rows] % 3)
    assert_same(totals, [(guesses % 3 == labels % 3).sum(), 10], 0, 0)


@attack(
    f"{TRAINING}#early-stopping",
    values=st.lists(st.integers(0, 5).map(float) | st.just(np.nan), min_size=1, max_size=9),
)
def test_the_best_parameters_are_kept(values: list[float]) -> None:
    loop = "for n in range(100):"
    page = (PROJECT.docs / TRAINING).read_text(encoding="utf-8")
    body = page.split("w, best, best_w = jnp.float32(0), jnp.inf, None\n")[1].split('print(f"stopped')[0]
    assert loop in body
    names: dict[str, Any] = {"w": 0, "best": np.inf, "best_w": None}
    names |= {"step": lambda w: w + 1, "validate": lambda w: (values + [9.0] * 100)[w - 1]}
    exec(body, names)
    seen = values + [9.0] * 100
    best, waited, stop = None, 0, 0
    for stop, value in enumerate(seen, 1):
        better = best is None and value < np.inf or best is not None and value < seen[best - 1]
        best, waited = (stop, 0) if better else (best, waited + 1)
        if waited == 3:
            break
    assert (names["best_w"], names["n"] + 1) == (best, stop)


@attack(f"{DATA}#which-loader", rows=st.integers(1, 9), size=st.integers(1, 9), seed=st.integers(0, 9))
def test_each_epoch_is_a_shuffle_in_full_batches(rows: int, size: int, seed: int) -> None:
    batches = program(f"{DATA}#which-loader", "batches")["batches"]
    if size > rows:
        with pytest.raises(AssertionError, match="not one full batch"):
            next(batches(np.arange(rows), np.arange(rows), size, seed, 2))
        return
    found = list(batches(np.arange(rows), 10 * np.arange(rows), size, seed, 2))
    assert len(found) == 2 * (rows // size)
    for epoch in (found[: len(found) // 2], found[len(found) // 2 :]):
        x, y = np.concatenate(epoch, axis=1)
        assert len(set(x)) == len(x) == rows // size * size and set(x) <= set(range(rows))
        assert (y == 10 * x).all()


@attack(f"{DATA}#numpy-or-jax", f"{DATA}#torch-dataloader", x=arrays((3, 2), dtypes()), y=arrays((3,), "int32"))
def test_collated_examples_are_rows(x: Array, y: Array) -> None:
    batch = program(f"{DATA}#numpy-or-jax", "collate")["collate"]([{"x": a, "y": b} for a, b in zip(x, y, strict=True)])
    pair = program(f"{DATA}#torch-dataloader", "collate")["collate"](list(zip(x, y, strict=True)))
    for found, expected in ((batch["x"], x), (batch["y"], y), (pair[0], x), (pair[1], y)):
        assert isinstance(found, np.ndarray) and found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@attack(f"{DATA}#prefetch", numbers=st.lists(st.integers(0, 9), max_size=9), threads=st.integers(1, 4))
def test_batches_come_in_their_order(numbers: list[int], threads: int) -> None:
    def load(number: int) -> Array:
        return np.full((2, 2), number, np.float32)

    ahead: Callable[..., Iterator[Any]] = program(f"{DATA}#prefetch", "ahead", load=load)["ahead"]
    assert [int(batch[0, 0]) for batch in ahead(iter(numbers), threads)] == numbers


@attack(
    f"{DATA}#last-batch", data=arrays((4,)), columns=st.sampled_from([(), (1,), (2,), (2, 2)]), kept=st.integers(0, 4)
)
def test_a_padded_batch_counts_its_real_rows(data: Array, columns: tuple[int, ...], kept: int) -> None:
    x = np.broadcast_to(data.reshape(4, *(1 for _ in columns)), (4, *columns))
    value, count = program(f"{DATA}#last-batch", "total")["total"](x, np.arange(4) < kept)
    with np.errstate(all="ignore"):
        assert_same(value, (data[:kept].astype(float) ** 2).sum())
    assert count == kept
    pixels = np.full_like(x, 200, np.uint8)  # whose square is 64 in uint8
    assert program(f"{DATA}#last-batch", "total")["total"](pixels, np.arange(4) < kept)[0] == 40_000 * kept


@attack(
    f"{DATA}#variable-length",
    lengths=st.lists(st.integers(1, 4), min_size=2, max_size=2),
    x=arrays((4,), dtypes("float", "int")),
    size=st.sampled_from([1, 7000]),
)
def test_padding_reaches_no_mean(lengths: list[int], x: Array, size: int) -> None:
    found = program(f"{DATA}#variable-length", "means", "pad")
    with np.errstate(all="ignore"):
        x = x * size if x.dtype == np.float16 else x  # a sum may overflow there, the mean does not
        sequences = [x[:length] for length in lengths]
        expected = [s.astype(float).mean() for s in sequences]
    assert_same(found["means"](*found["pad"](sequences)), expected, atol=1e-3)
    with pytest.raises(ValueError, match="empty"):  # and not StopIteration, which would end a `map` unseen
        found["pad"]([np.ones(65)])


@attack(f"{DATA}#to-device", images=arrays((4, 2, 2), "int32"))
def test_small_integers_are_converted_on_the_device(images: Array) -> None:
    pixels = np.uint8(images * 14 + 127)
    found = program(f"{DATA}#to-device", "brightness")["brightness"](pixels)
    assert_same(found, pixels.mean((1, 2)) / 255)


@attack(f"{DATA}#too-large", seed=st.integers(0, 2**31))
def test_rows_of_a_file_belong_to_their_labels(seed: int) -> None:
    page = (PROJECT.docs / DATA).read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith(("rows = np.sort(", "batch = np.asarray(data[rows"))]
    assert len(lines) == 2
    names: dict[str, Any] = {"np": np, "data": np.arange(1000)}
    exec("\n".join(lines).replace("default_rng(0)", f"default_rng({seed})"), names)
    labels = 10 * np.arange(1000)
    assert (labels[names["rows"]] == 10 * names["batch"]).all() and len(set(names["rows"])) == 64


@slow_attack(f"{DATA}#epoch-on-device", key=keys(), w=arrays((3,), odd=False).map(lambda w: np.clip(w / 8, -2, 2)))
def test_an_epoch_uses_each_row_once(key: jax.Array, w: Array) -> None:
    x = np.sin(np.arange(192.0)).reshape(64, 3).astype(np.float32)
    y = x.sum(1)
    found, values = program(f"{DATA}#epoch-on-device", "epoch")["epoch"](jnp.asarray(w), key, x, y)
    rows = np.asarray(jax.random.permutation(key, 64))
    assert sorted(rows) == list(range(64))
    expected = w.astype(float)
    for some, value in zip(rows.reshape(2, 32), values, strict=True):
        off = x[some].astype(float) @ expected - y[some]
        assert_same(value, (off**2).mean(), atol=1e-3)
        expected = expected - 0.1 * 2 * off @ x[some] / 32
    assert_same(found, expected, atol=1e-3)


@attack(f"{DATA}#augment", key=keys())
def test_a_crop_is_a_window_of_the_image_or_its_mirror(key: jax.Array) -> None:
    image = np.arange(36.0).reshape(6, 6, 1)
    found = np.asarray(compiled(f"{DATA}#augment", "augment")(key, image))
    windows = [
        side[top : top + 4, left : left + 4]
        for side in (image, image[:, ::-1])
        for top in range(3)
        for left in range(3)
    ]
    assert sum((found == window).all() for window in windows) == 1


def test_all_crops_occur() -> None:
    images = np.broadcast_to(np.arange(36.0).reshape(6, 6, 1), (500, 6, 6, 1))
    batch = jax.jit(jax.vmap(program(f"{DATA}#augment", "augment")["augment"]))(
        jax.random.split(jax.random.key(1), 500), images
    )
    assert len({crop.tobytes() for crop in np.asarray(batch)}) == 18


@attack(f"{DATA}#resume-data", rows=st.integers(1, 12), size=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_batches_of_an_epoch_share_no_row(rows: int, size: int, seed: int) -> None:
    batch_rows = program(f"{DATA}#resume-data", "batch_rows")["batch_rows"]
    if size > rows:
        with pytest.raises(ZeroDivisionError):
            batch_rows(0, rows, size, seed)
        return
    per_epoch = rows // size
    for epoch in (0, 1):
        found = [batch_rows(epoch * per_epoch + i, rows, size, seed) for i in range(per_epoch)]
        assert len(set(np.concatenate(found))) == per_epoch * size


@attack(f"{TORCH}#backward", x=arrays((3,), odd=False), y=arrays((3,), odd=False), w=SMALL, b=SMALL)
def test_gradients_are_returned_and_add_up(x: Array, y: Array, w: float, b: float) -> None:
    step_grads = program(f"{TORCH}#backward", "step_grads")["step_grads"]
    params, off = {"w": jnp.float32(w), "b": jnp.float32(b)}, w * x.astype(float) + b - y
    value, grads = step_grads(params, x, y)
    both = jax.tree.map(jnp.add, grads, step_grads(params, x, y)[1])
    assert_same(value, (off**2).mean(), rtol=1e-3)
    assert_same(both["w"], 2 * (2 * off * x).mean(), rtol=1e-3, atol=1.0 if np.abs(x).max() > 99 else 1e-2)
    assert_same(both["b"], 2 * (2 * off).mean(), rtol=1e-3, atol=1e-2)


@attack(f"{TORCH}#tensorflow-names", x=arrays((3, 2), odd=False), y=arrays((3,), odd=False), w=SMALL)
def test_a_variable_comes_in_and_goes_out(x: Array, y: Array, w: float) -> None:
    found = program(f"{TORCH}#tensorflow-names", "loss", "step")
    wide = x.astype(float)
    off = wide @ np.array([w, -w]) - y
    gradient = 2 / 3 * wide.T @ off
    after, value = found["step"](jnp.array([w, -w], jnp.float32), x, y)
    scale = 1 + np.abs(wide).max() * np.abs(off).max()
    assert_same(value, (off**2).mean(), rtol=1e-3, atol=1e-5 * scale)
    assert_same(after, np.array([w, -w]) - 0.1 * gradient, rtol=1e-3, atol=1e-5 * scale)
    with pytest.raises(ValueError, match="Shape mismatch"):  # a column beside a row
        found["loss"](jnp.zeros(2), x, y[:, None])


@attack(x=arrays((3, 2), odd=False))
def test_what_replaces_names_of_tensorflow_computes_what_they_say(x: Array) -> None:
    x = x.astype(np.float32)
    w = jnp.array([0.5, -2.0])
    assert_same(jax.jacrev(lambda w: x @ w)(w), x)
    assert_same(jax.grad(lambda w: (x @ w).sum())(w), x.sum(0, dtype=float), rtol=1e-3, atol=1e-2)
    assert_same(jax.grad(lambda w: (jax.lax.stop_gradient(w) * w).sum())(w), w)
    for rows in (jax.lax.map(lambda row: row * w, x), jax.vmap(lambda row: row * w)(x)):
        assert_same(rows, x * np.array([0.5, -2.0]))


@attack(
    f"{TORCH}#tensors-both-ways",
    x=arrays((4, 3), dtypes()),
    rows=st.sampled_from([slice(None), slice(1, None), slice(0, 0), slice(None, None, 2), slice(None, None, -1)]),
    turned=st.booleans(),
)
def test_a_tensor_is_read_as_it_is_or_refused(x: Array, rows: slice, turned: bool) -> None:
    part = x.T[rows] if turned else x[rows]
    try:
        found = jnp.from_dlpack(part)
    except jax.errors.JaxRuntimeError as error:
        assert "compact" in str(error)
    else:
        assert found.dtype == part.dtype
        back: Any = found
        np.testing.assert_array_equal(np.from_dlpack(back), part)


@cache
def mlp() -> Any:
    """Return the answer's model, and its call on a batch, compiled."""
    model = program(f"{TORCH}#nn-module", "MLP", "model")["model"]
    return model, eqx.filter_jit(lambda model, x: jax.vmap(model)(x))


@slow_attack(f"{TORCH}#nn-module", weight=arrays((8, 2), odd=False), x=arrays((5, 2), odd=False))
def test_a_module_maps_each_row(weight: Array, x: Array) -> None:
    model, call = mlp()
    model = eqx.tree_at(lambda m: m.layers[0].weight, model, jnp.asarray(weight))
    one, two = [(np.asarray(a.weight, float), np.asarray(a.bias, float)) for a in model.layers]
    hidden = np.maximum(x.astype(float) @ one[0].T + one[1], 0)
    assert_same(call(model, x), hidden @ two[0].T + two[1], rtol=1e-3, atol=1e-2)


def convolved(image: Array, kernel: Array, padding: int, stride: int) -> Array:
    """The convolution of PyTorch, by SciPy: image (C, H, W), kernel (O, C, h, w)."""
    padded = np.pad(image.astype(float), ((0, 0), (padding, padding), (padding, padding)))
    found: Array = np.stack([signal.correlate(padded, k.astype(float), "valid")[0] for k in kernel])
    return found[:, ::stride, ::stride]


@attack(f"{TORCH}#load-weights", weight=arrays((4, 3, 3, 3), odd=False), images=arrays((2, 3, 5, 5), odd=False))
def test_weights_of_torch_give_the_same_convolution(weight: Array, images: Array) -> None:
    found = program(
        f"{TORCH}#load-weights", "first", "last", images=jnp.asarray(images), state={"conv.weight": weight}, rng=None
    )
    expected = np.stack([convolved(image, weight, 1, 1) for image in images])
    assert_same(found["first"], expected, rtol=1e-3, atol=1e-1)
    assert_same(found["last"], expected.transpose(0, 2, 3, 1), rtol=1e-3, atol=1e-1)


@attack(f"{TORCH}#same-padding", stride=st.sampled_from([1, 2]), image=arrays((8, 8), odd=False))
def test_written_padding_is_that_of_torch(stride: int, image: Array) -> None:
    names = program(f"{TORCH}#same-padding", "conv", image=jnp.asarray(image[None, None]))
    expected = convolved(image[None], np.ones((1, 1, 3, 3)), 1, stride)[0, 0]
    assert_same(names["conv"]([(1, 1), (1, 1)], stride), expected, rtol=1e-3)


@slow_attack(f"{TORCH}#tensor-methods", x=arrays((2, 3), dtypes("float", "int")))
def test_the_methods_have_numpy_s_meaning(x: Array) -> None:
    y = jnp.asarray(x)
    pairs: dict[str, tuple[Any, Any]] = {
        "x[None]": (y[None], x[None]),
        "x.reshape(3, 2)": (y.reshape(3, 2), x.reshape(3, 2)),
        "x.transpose(1, 0)": (y.transpose(1, 0), x.T),
        "jnp.tile(x, (2, 1))": (jnp.tile(y, (2, 1)), np.concatenate([x, x])),
        "x.max(axis=1)": (y.max(axis=1), np.max(x, axis=1)),
        "x.argmax(axis=1)": (y.argmax(axis=1), np.argmax(x, axis=1)),
        "x.sum(axis=1, keepdims=True)": (y.sum(axis=1, keepdims=True), x.astype(float).sum(axis=1, keepdims=True)),
    }
    page = (PROJECT.docs / TORCH).read_text(encoding="utf-8")
    for text, (found, expected) in pairs.items():
        assert text in page
        assert_same(found, expected, atol=1e-3)


@attack(f"{TORCH}#to-device", w=arrays((2, 2)), step=st.integers(-(10**9), 10**9))
def test_a_half_model_keeps_its_integers(w: Array, step: int) -> None:
    half = program(f"{TORCH}#to-device", "half")["half"]
    found = jax.tree.map(half, {"w": jnp.asarray(w), "step": jnp.array(step)})
    assert found["step"] == step and found["w"].dtype == jnp.bfloat16
    assert_same(found["w"].astype(jnp.float32), w, rtol=2**-8)
    moved = jax.device_put({"w": jnp.asarray(w)}, jax.devices("cpu")[0])
    assert_same(np.asarray(moved["w"]), w, 0, 0)


@attack(f"{TORCH}#train-eval", x=arrays((6,)), key=keys(), rate=st.sampled_from([0.0, 0.25, 0.5, 0.9]))
def test_dropout_keeps_or_drops_and_scales(x: Array, key: jax.Array, rate: float) -> None:
    dropout = program(f"{TORCH}#train-eval", "dropout")["dropout"]
    assert_same(dropout(x, key, train=False, rate=rate), x, 0, 0)
    found = np.asarray(dropout(x, key, train=True, rate=rate), float)
    scaled = x.astype(float) / (1 - rate)
    assert (np.isclose(found, scaled, equal_nan=True) | (found == 0)).all()
    if rate == 0:
        assert_same(found, x)
    assert_same(dropout(x, key, train=True, rate=rate), found)


@attack(f"{TORCH}#train-eval", key=keys())
def test_dropout_drops_at_its_rate(key: jax.Array) -> None:
    dropout = program(f"{TORCH}#train-eval", "dropout")["dropout"]
    dropped = float((dropout(jnp.ones(4000), key, train=True, rate=0.25) == 0).mean())
    assert abs(dropped - 0.25) < 6 * np.sqrt(0.25 * 0.75 / 4000)


@slow_attack(f"{TORCH}#hooks", x=arrays((1, 2), odd=False), a=arrays((2, 2), odd=False), b=arrays((2, 1), odd=False))
def test_a_probe_has_the_gradient_at_its_layer(x: Array, a: Array, b: Array) -> None:
    out, seen, at_layer = hooked()({"a": a, "b": b}, x)
    hidden = np.maximum(x.astype(float) @ a, 0)
    assert_same(seen["hidden"], hidden, rtol=1e-3)
    assert_same(out, (hidden @ b).sum(), rtol=1e-3, atol=1.0 if np.abs(hidden).max() > 1e4 else 1e-2)
    assert_same(at_layer, b.T)


@cache
def hooked() -> Any:
    """Return the answer's forward pass with what it saw, and the gradient at its layer, compiled."""
    forward = program(f"{TORCH}#hooks", "forward")["forward"]
    slope = jax.grad(forward, argnums=2, has_aux=True)
    return jax.jit(lambda params, x: (*forward(params, x), slope(params, x, jnp.zeros((1, 2)))[0]))


@attack(f"{TORCH}#gather-scatter", x=arrays((2, 3)), index=arrays((2, 4), "int32"), value=arrays((2, 4)))
def test_gather_and_scatter_go_row_by_row(x: Array, index: Array, value: Array) -> None:
    index = index % 3
    assert_same(jnp.take_along_axis(jnp.asarray(x), index, axis=1), np.take_along_axis(x, index, axis=1))
    expected = np.zeros((2, 3))
    with np.errstate(all="ignore"):
        for row in range(2):
            for i, v in zip(index[row], value[row], strict=True):
                expected[row, i] += v
    rows = jnp.arange(2)[:, None]
    assert "zeros.at[rows, index].add(1.0)" in (PROJECT.docs / TORCH).read_text(encoding="utf-8")
    assert_same(jnp.zeros((2, 3)).at[rows, index].add(value), expected)
    assert_same(jnp.where(x > 4, -1.0, x), np.where(x > 4, -1, x))


@attack(f"{TORCH}#interpolate", row=arrays((4,), odd=False), m=st.sampled_from([1, 2, 3, 5, 8, 13]))
def test_samples_lie_where_torch_takes_them(row: Array, m: int) -> None:
    at = (np.arange(m) + 0.5) * 4 / m - 0.5  # align_corners=False
    half = np.interp(at, np.arange(4), row)
    assert_same(jax.image.resize(jnp.asarray(row), (m,), "linear", antialias=False), half, atol=1e-3)
    ends = np.asarray(jnp.linspace(0, 3, m))
    aligned = np.interp(np.linspace(0, 3, m), np.arange(4), row)
    assert_same(map_coordinates(jnp.asarray(row), [jnp.asarray(ends)], order=1), aligned, atol=1e-3)


@attack(f"{TORCH}#other-defaults", x=arrays((4,), odd=False), z=SMALL)
def test_torch_s_constants_can_be_asked_for(x: Array, z: float) -> None:
    assert_same(jnp.std(x, ddof=1), x.astype(float).std(ddof=1), rtol=1e-3, atol=1e-3)
    assert_same(jax.nn.gelu(z, approximate=False), np.float64(z * special.ndtr(z)))
    assert inspect.signature(optax.adamw).parameters["weight_decay"].default != 0.01


@attack(
    f"{TORCH}#initial-weights",
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(1, 1, (1, 1)), (4, 2, (3, 2))]),
)
def test_initial_weights_are_those_of_torch(seed: int, shape: tuple[int, int, tuple[int, int]]) -> None:
    like_torch = program(f"{TORCH}#initial-weights", "like_torch")["like_torch"]
    inputs, groups, size = shape
    fan_in, rngs = inputs * size[0] * size[1], nnx.Rngs(seed)
    conv = nnx.Conv(inputs * groups, 600, size, feature_group_count=groups, rngs=rngs, **like_torch(fan_in))
    linear = nnx.Linear(fan_in, 600, rngs=rngs, **like_torch(fan_in))
    drawn = jax.tree.leaves(nnx.state((conv, linear), nnx.Param))
    assert len(drawn) == 4
    for leaf in drawn:
        assert leaf.dtype == jnp.float32
        uniform(leaf, fan_in**-0.5)
    key = jax.random.key(seed)
    channels = eqx.nn.Conv2d(inputs * groups, 600, size, groups=groups, key=key)
    for module in (channels, eqx.nn.Linear(fan_in, 600, key=key)):
        uniform(module.weight, fan_in**-0.5)
        uniform(module.bias, fan_in**-0.5)


def uniform(drawn: Any, limit: float) -> None:
    """Check that numbers come from U(-limit, limit), as `kaiming_uniform_(a=5**0.5)` draws from."""
    numbers = np.sort(np.asarray(drawn, float).ravel())
    assert np.abs(numbers).max() <= limit * (1 + 1e-6)
    assert stats.kstest(numbers, stats.uniform(-limit, 2 * limit).cdf).pvalue > 1e-6
    assert np.isclose(numbers.var(), limit**2 / 3, rtol=0.2)


def test_embeddings_are_normal_as_those_of_torch() -> None:
    embed = program(f"{TORCH}#initial-weights", "embed")["embed"]
    key = jax.random.key(0)
    large = nnx.Embed(500, 8, embedding_init=nnx.initializers.normal(1), rngs=nnx.Rngs(0))
    assert "embedding_init=nnx.initializers.normal(1)" in (PROJECT.docs / TORCH).read_text(encoding="utf-8")
    for drawn in (embed.embedding[...], large.embedding[...], eqx.nn.Embedding(500, 8, key=key).weight):
        assert stats.kstest(np.asarray(drawn).ravel(), stats.norm.cdf).pvalue > 1e-4


def test_initializers_are_torch_s_and_flax_s_own_are_not() -> None:
    key, (fan_in, fan_out) = jax.random.key(0), (64, 500)
    uniform(nnx.initializers.glorot_uniform()(key, (fan_in, fan_out)), np.sqrt(6 / (fan_in + fan_out)))
    drawn = {
        "kaiming": nnx.initializers.variance_scaling(2, "fan_in", "normal")(key, (fan_in, fan_out)),
        "he": nnx.initializers.he_normal()(key, (fan_in, fan_out)),
        "flax": nnx.Linear(fan_in, fan_out, rngs=nnx.Rngs(0)).kernel[...],
    }
    normal = {
        name: stats.kstest(np.asarray(x).ravel(), stats.norm(0, np.sqrt(2 / fan_in)).cdf) for name, x in drawn.items()
    }
    assert normal["kaiming"].pvalue > 1e-3 > normal["he"].pvalue
    assert np.isclose(drawn["flax"].var(), 3 * (1 / fan_in / 3), rtol=0.05)
    own: Any = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    assert not own.bias[...].any()


@slow_attack(
    f"{TRAINING}#label-smoothing",
    logits=arrays((5, 3), dtypes("float"), odd=False),
    labels=st.lists(st.sampled_from([-100, 0, 1, 2]), min_size=5, max_size=5),
    smoothing=st.integers(0, 8).map(lambda n: n / 8),
    call=transformations("eager", "jit"),
)
def test_smoothed_labels_are_torch_s(logits: Array, labels: list[int], smoothing: float, call: Transformation) -> None:
    cross_entropy = program(f"{TRAINING}#label-smoothing", "cross_entropy")["cross_entropy"]
    logs = special.log_softmax(logits.astype(float), axis=1)
    kept = [(row, label) for row, label in zip(logs, labels, strict=True) if label != -100]
    with np.errstate(all="ignore"):
        losses = [-(1 - smoothing) * row[label] - smoothing * row.sum() / 3 for row, label in kept]
        expected = np.float64(sum(losses)) / len(kept) if kept else np.float64(np.nan)
    assert_same(call(cross_entropy)(logits, np.array(labels), smoothing), expected, atol=1e-3)


@attack(f"{TRAINING}#label-smoothing", labels=st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_the_slope_of_smoothed_labels_is_that_of_the_formula(labels: list[int]) -> None:
    cross_entropy = program(f"{TRAINING}#label-smoothing", "cross_entropy")["cross_entropy"]
    logits = np.linspace(-2, 3, 7 * len(labels), dtype=np.float32).reshape(-1, 7)
    targets = 0.9 * np.eye(7)[labels] + 0.1 / 7
    slope = (special.softmax(logits.astype(float), axis=1) - targets) / len(labels)
    assert_same(jax.grad(cross_entropy)(logits, np.array(labels)), slope)


@attack(f"{TORCH}#torch-in-jax", x=arrays((2,)), call=transformations("eager", "jit"))
def test_a_model_on_the_host_has_its_slope(x: Array, call: Transformation) -> None:
    model = program(f"{TORCH}#torch-in-jax", "model", "rule")["model"]
    with np.errstate(all="ignore"):
        assert_same(call(model)(x), np.tanh(x.astype(float)))
        assert_same(hosted()(x), 1 - np.tanh(x.astype(float)) ** 2)


@cache
def hosted() -> Any:
    """Return the gradient of the answer's model on the host, compiled."""
    model = program(f"{TORCH}#torch-in-jax", "model", "rule")["model"]
    return jax.jit(jax.grad(lambda x: model(x).sum()))
