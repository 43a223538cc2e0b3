"""Attacks on the answers about training with Flax NNX: the same steps in NumPy, in float64."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.errors import TraceContextError
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, slopes

pytestmark = pytest.mark.slow  # each compiles a step
Array = np.ndarray[Any, Any]
PAGE = "answers/nnx-training.md"
SGD, ADAM = optax.sgd(0.1), optax.adam(0.1)
SEEDS = st.integers(0, 2**31 - 1)
ROWS = arrays((4, 2), odd=False).map(lambda x: np.clip(x / 8, -2, 2))
KERNELS = arrays((2, 1), odd=False).map(lambda x: np.clip(x / 8, -2, 2))


def made(anchor: str, *wanted: str) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted)


@cache
def first_state(anchor: str, wanted: str) -> Any:
    """A copy of the state that an object of an answer begins with."""
    return jax.tree.map(jnp.copy, nnx.state(program(f"{PAGE}#{anchor}", wanted)[wanted]))


def linear(layer: Any, x: Array) -> Array:
    """Return the output of a linear layer, in float64."""
    kernel, bias = (np.asarray(value[...], np.float64) for value in (layer.kernel, layer.bias))
    found: Array = np.asarray(x, np.float64) @ kernel + bias
    return found


@cache
def line(transformation: optax.GradientTransformation) -> tuple[Any, Any]:
    """A linear layer of two inputs and an output, and its optimizer."""
    model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    return model, nnx.Optimizer(model, transformation, wrt=nnx.Param)


def restart(model: Any, kernel: Array, *others: tuple[Any, Any]) -> None:
    """Give the model this kernel and no bias, and other objects the state that they had."""
    model.kernel[...], model.bias[...] = kernel, 0
    for changed, state in others:
        nnx.update(changed, state)


def error(kernel: Array, bias: Array, x: Array, y: Array) -> tuple[float, Array, Array]:
    """The mean squared error of a line, and its gradients."""
    off = x @ kernel + bias - y
    return float((off**2).mean()), 2 * x.T @ off / off.size, 2 * off.sum(0) / off.size


def adam(gradient: Array, rate: float = 0.1) -> Array:
    """The first update of Adam."""
    return -rate * gradient / (np.abs(gradient) + 1e-8)


@attack(f"{PAGE}#training-step", x=ROWS, kernel=KERNELS, y=arrays((4, 1), odd=False).map(lambda y: np.clip(y, -9, 9)))
def test_a_step_is_gradient_descent(x: Array, kernel: Array, y: Array) -> None:
    model, optimizer = line(SGD)
    restart(model, kernel)
    step = made("training-step", "step")["step"]
    weights, bias = kernel.astype(float), np.zeros(1)
    for _ in range(2):
        expected, slope, shift = error(weights, bias, x, y)
        assert_same(step(model, optimizer, x, y), np.float64(expected), atol=1e-3)
        weights, bias = weights - 0.1 * slope, bias - 0.1 * shift
    assert_same(model.kernel[...], weights, atol=1e-3)
    assert_same(model.bias[...], bias, atol=1e-3)


@cache
def together() -> Any:
    """A model with its optimizer, in the old interface."""
    return nnx.ModelAndOptimizer(nnx.Linear(2, 1, rngs=nnx.Rngs(0)), SGD)


@attack(f"{PAGE}#wrt", kernel=KERNELS, gradient=arrays((2, 1), odd=False))
def test_both_interfaces_of_the_optimizer_take_the_step(kernel: Array, gradient: Array) -> None:
    (model, optimizer), old = line(SGD), together().model
    for changed in (model, old):
        restart(changed, kernel)
    grads = nnx.state(nnx.clone(model), nnx.Param)
    grads["kernel"][...], grads["bias"][...] = gradient, 1
    updates = optimizer.update(model, grads)
    together().update(grads)
    assert_same(updates["kernel"][...], -gradient / 10)
    for changed in (model, old):
        assert_same(changed.kernel[...], kernel - gradient / 10)
        assert_same(changed.bias[...], np.full(1, -0.1))
    with pytest.raises(TypeError, match="Missing required argument `grads`"):
        optimizer.update(grads)


@attack(f"{PAGE}#trace-level", x=arrays((8,), odd=False), calls=st.integers(0, 3))
def test_a_layer_that_is_passed_counts_its_calls(x: Array, calls: int) -> None:
    traced = made("trace-level", "passed", "closed_over", "layer")
    layer = traced["layer"]
    before = int(layer.rngs.count[...])
    for _ in range(calls):
        out = np.asarray(traced["passed"](layer, x))
        assert ((out == 0) | (out == 2 * x)).all()
    with pytest.raises(TraceContextError, match="Cannot mutate RngCount"):
        traced["closed_over"](x)
    assert layer.rngs.count[...] == before + calls


@cache
def forwards() -> tuple[Any, ...]:
    """A layer, and its three calls."""
    found = program(f"{PAGE}#jax-jit", "forward", "forward_and_model", "norm")
    compiled = nnx.jit(found["forward"]), jax.jit(found["forward"]), jax.jit(found["forward_and_model"])
    return found["norm"], *compiled


@attack(f"{PAGE}#jax-jit", x=ROWS, mean=arrays((2,), odd=False))
def test_statistics_are_kept_where_the_page_says(x: Array, mean: Array) -> None:
    norm, kept, lost, returned = forwards()
    expected = mean / 2 + x.mean(0) / 2
    norm.mean[...] = mean
    lost(norm, x)
    assert_same(norm.mean[...], mean)
    assert_same(returned(norm, x)[1].mean[...], expected)
    assert_same(kept(norm, x), (x - x.mean(0)) / np.sqrt(x.astype(float).var(0) + 1e-5), rtol=1e-2, atol=1e-2)
    assert_same(norm.mean[...], expected)


CALL = nnx.jit(lambda model, x: model(x))


@attack(
    f"{PAGE}#modes", x=arrays((2, 3), odd=False), mean=arrays((3,), odd=False), var=st.sampled_from([0.25, 1.0, 9.0])
)
def test_a_view_for_tests_uses_the_statistics_and_drops_nothing(x: Array, mean: Array, var: float) -> None:
    modes = made("modes", "model", "tested")
    model, tested = modes["model"], modes["tested"]
    model.train()
    model.norm.mean[...], model.norm.var[...] = mean, var
    expected = (x.astype(float) - mean) / np.sqrt(var + 1e-5)
    assert_same(CALL(tested, x), expected, atol=1e-3)
    assert not model.drop.deterministic
    model.eval()
    assert_same(CALL(model, x), expected, atol=1e-3)
    assert_same(model.norm.mean[...], mean)


@attack(f"{PAGE}#freeze", gradient=arrays((2, 2), odd=False))
def test_the_body_stays_and_the_head_moves(gradient: Array) -> None:
    frozen = made("freeze", "optimizer", "model")
    model = frozen["model"]
    before = jax.tree.map(np.asarray, nnx.to_pure_dict(nnx.state(model)))
    grads = jax.tree.map(lambda p: np.resize(gradient, p.shape), nnx.state(model, nnx.Param))
    frozen["optimizer"].update(model, grads)
    after = nnx.to_pure_dict(nnx.state(model))
    for name in ("kernel", "bias"):
        assert_same(after["body"][name], before["body"][name], 0, 0)
        moved = before["head"][name] - 0.1 * np.resize(gradient, before["head"][name].shape)
        assert_same(after["head"][name], moved, atol=1e-3)


@attack(f"{PAGE}#train-part", x=ROWS, kernel=KERNELS)
def test_only_the_head_is_differentiated_and_updated(x: Array, kernel: Array) -> None:
    part = made("train-part", "step", "loss_fn", "model", "optimizer")
    model, optimizer = part["model"], part["optimizer"]
    restart(model.head, kernel, (optimizer, first_state("train-part", "optimizer")))
    body, inner = np.asarray(model.body.kernel[...]), np.maximum(linear(model.body, x), 0)
    grads = part["step"](model, optimizer, x)
    _, slope, shift = error(kernel.astype(float), np.zeros(1), inner, np.zeros((4, 1)))
    assert list(grads) == ["head"]
    assert_same(grads["head"]["kernel"][...], slope, atol=1e-3)
    assert_same(grads["head"]["bias"][...], shift, atol=1e-3)
    assert_same(model.body.kernel[...], body, 0, 0)
    clear = np.abs(slope) > 1e-3
    assert_same(np.asarray(model.head.kernel[...])[clear], (kernel + adam(slope))[clear], atol=1e-3)


@attack(
    f"{PAGE}#add-lora", x=arrays((4, 4), odd=False).map(lambda x: np.clip(x / 8, -2, 2)), thin=arrays((2, 8), odd=False)
)
def test_lora_adds_a_thin_product_and_leaves_the_layers_as_they_are(x: Array, thin: Array) -> None:
    part = made("add-lora", "step", "model", "optimizer")
    model, lora = part["model"], part["model"].layers[0]
    fresh = nnx.Optimizer(model, optax.adam(0.05), wrt=nnx.LoRAParam)
    nnx.update(part["optimizer"], nnx.state(fresh))
    lora.lora_b[...] = thin = np.clip(thin / 8, -1, 1)
    flat = nnx.to_flat_state(nnx.state(model, nnx.Param))
    kept: dict[Any, Array] = {path: np.asarray(leaf[...]) for path, leaf in flat if "lora" not in str(path)}
    a = np.asarray(lora.lora_a[...], np.float64)
    inner = np.maximum(linear(lora.base_module, x) + x.astype(float) @ a @ thin, 0)
    off = linear(model.layers[2], inner) - 1
    loss = part["step"](model, part["optimizer"], x)
    assert_same(loss, np.float64((off**2).mean()), rtol=1e-3, atol=1e-3)
    back = (2 * off / off.size) @ np.asarray(model.layers[2].kernel[...], np.float64).T * (inner > 0)
    slope = (x.astype(float) @ a).T @ back
    clear = np.abs(slope) > 1e-3
    moved = thin - 0.05 * np.sign(slope)
    assert_same(np.asarray(lora.lora_b[...])[clear], moved[clear], atol=1e-3)
    for path, leaf in nnx.to_flat_state(nnx.state(model, nnx.Param)):
        if path in kept:
            assert_same(leaf[...], kept[path], 0, 0)
    assert len(kept) == 4


@attack(f"{PAGE}#learning-rate", rate=st.integers(-8, 8))
def test_the_next_update_has_the_rate_that_was_assigned(rate: int) -> None:
    found = made("learning-rate", "step", "rate", "model", "optimizer")
    found["rate"][...] = rate / 8
    assert_same(found["step"](found["model"], found["optimizer"]), np.full((1, 1), -rate / 8))


@attack(f"{PAGE}#lbfgs", kernel=KERNELS)
def test_the_line_search_finds_the_least_squares(kernel: Array) -> None:
    found = made("lbfgs", "step", "x", "y", "model", "optimizer")
    model, optimizer = found["model"], found["optimizer"]
    restart(model, kernel, (optimizer, first_state("lbfgs", "optimizer")))
    wide = np.c_[np.asarray(found["x"], np.float64), np.ones(50)]
    least = np.linalg.lstsq(wide, np.asarray(found["y"], np.float64), rcond=None)[0]
    losses = [float(found["step"](model, optimizer)) for _ in range(8)]
    assert all(after <= before + 1e-6 for before, after in zip(losses, losses[1:], strict=False))
    assert_same(np.r_[np.asarray(model.kernel[...])[:, 0], np.asarray(model.bias[...])], least[:, 0], atol=2e-2)


@cache
def shared_norm() -> tuple[Any, Any]:
    """A layer that shares its statistics over examples, and its call on all of them."""
    forward = program(f"{PAGE}#vmap-batchnorm", "forward")["forward"]
    layer = nnx.BatchNorm(3, momentum=0.5, axis_name="batch", rngs=nnx.Rngs(0))
    return layer, nnx.jit(nnx.vmap(forward, in_axes=(None, 0), axis_name="batch"))


@attack(f"{PAGE}#vmap-batchnorm", x=arrays((5, 4, 3), odd=False).map(lambda x: np.clip(x, -9, 9)))
def test_statistics_are_those_of_all_examples(x: Array) -> None:
    shared, normalize = shared_norm()
    shared.mean[...] = 0
    wide = x.astype(float).reshape(20, 3)
    out = normalize(shared, x)
    expected = (x - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    assert_same(out, expected, rtol=2e-2, atol=2e-2)
    assert_same(shared.mean[...], wide.mean(0) / 2, atol=1e-3)


@cache
def masks_of_each() -> tuple[Any, Any]:
    """A layer, and its call with a mask for each example."""
    found = program(f"{PAGE}#vmap-dropout", "mapped", "layer")
    return found["layer"], nnx.jit(found["mapped"])


@attack(f"{PAGE}#vmap-dropout", seed=SEEDS)
def test_each_example_and_each_call_gets_its_own_mask(seed: int) -> None:
    layer, masked = masks_of_each()
    nnx.reseed(layer, default=seed)
    x = np.arange(1, 97, dtype=np.float32).reshape(3, 32)
    out = [np.asarray(masked(layer, x)) for _ in range(2)]
    masks = np.concatenate(out) != 0
    assert all(((one == 0) | (one == 2 * x)).all() for one in out)
    assert len({mask.tobytes() for mask in masks}) == 6
    nnx.reseed(layer, default=seed)
    assert_same(masked(layer, x), out[0])


@attack(
    f"{PAGE}#ensemble", kernels=arrays((4,), odd=False), x=arrays((8, 1), odd=False).map(lambda x: np.clip(x, -3, 3))
)
def test_each_model_takes_its_own_step(kernels: Array, x: Array) -> None:
    ensemble = made("ensemble", "step", "models", "optimizers")
    models = ensemble["models"]
    models.kernel[...], models.bias[...] = kernels.reshape(4, 1, 1), jnp.ones((4, 1))
    losses = ensemble["step"](models, ensemble["optimizers"], x)
    for i, kernel in enumerate(kernels.astype(float)):
        loss, slope, shift = error(kernel.reshape(1, 1), np.ones(1), x.astype(float), 2 * x.astype(float))
        assert_same(losses[i], np.float64(loss), rtol=1e-3)
        assert_same(models.kernel[i], kernel - 0.3 * slope, rtol=1e-3, atol=1e-2)
        assert_same(models.bias[i], 1 - 0.3 * shift, rtol=1e-3, atol=1e-2)


@cache
def stack() -> Any:
    """Six layers."""
    return program(f"{PAGE}#scan-layers", "Stack")["Stack"](6, 3, nnx.Rngs(0))


@attack(f"{PAGE}#scan-layers", x=arrays((2, 3), odd=False), kernels=arrays((6, 3, 3), odd=False))
def test_layers_are_applied_in_their_order(x: Array, kernels: Array) -> None:
    stack().layers.kernel[...] = kernels / 8
    expected = x.astype(float)
    for kernel in kernels.astype(float) / 8:
        expected = np.tanh(expected @ kernel)
    assert_same(CALL(stack(), x), expected, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#scan-steps", batches=arrays((3, 4, 2), odd=False).map(lambda x: np.clip(x / 8, -2, 2)), kernel=KERNELS)
def test_an_epoch_is_its_steps(batches: Array, kernel: Array) -> None:
    model, optimizer = line(SGD)
    restart(model, kernel)
    losses = made("scan-steps", "epoch")["epoch"](model, optimizer, batches)
    weights, bias = kernel.astype(float), np.zeros(1)
    for batch, loss in zip(batches.astype(float), losses, strict=True):
        expected, slope, shift = error(weights, bias, batch, batch.sum(1, keepdims=True))
        assert_same(loss, np.float64(expected), atol=1e-3)
        weights, bias = weights - 0.1 * slope, bias - 0.1 * shift
    assert_same(model.kernel[...], weights, atol=1e-3)


@attack(f"{PAGE}#two-models", x=ROWS, kernel=arrays((2, 2), odd=False).map(lambda k: np.clip(k / 8, -2, 2)))
def test_each_of_two_models_descends_its_own_gradient(x: Array, kernel: Array) -> None:
    two = made("two-models", "step", "actor", "critic", "tuned", "judged")
    actor, critic = two["actor"], two["critic"]
    for model in (actor, critic):
        restart(model, kernel)

    def loss(a: Array, c: Array) -> float:
        return float(np.mean((np.tanh(x.astype(float) @ a) @ c) ** 2))

    two["step"](actor, critic, two["tuned"], two["judged"], x)
    wide = kernel.astype(float)
    assert_same(actor.kernel[...], wide - 0.1 * slopes(lambda a: loss(a, wide), wide), atol=1e-3)
    assert_same(critic.kernel[...], wide - 0.01 * slopes(lambda c: loss(wide, c), wide), atol=1e-3)


@attack(
    f"{PAGE}#metrics",
    batches=st.lists(
        st.tuples(arrays((3, 2), odd=False), arrays((3,), "int8").map(lambda y: y % 2)), min_size=1, max_size=3
    ),
)
def test_averages_are_those_of_all_examples(batches: list[tuple[Array, Array]]) -> None:
    averaged = made("metrics", "evaluate", "metrics")
    metrics = averaged["metrics"]
    metrics.reset()
    losses, right = [], []
    for logits, labels in batches:
        averaged["evaluate"](metrics, logits, labels.astype(np.int32))
        wide = logits.astype(float)
        losses += list(np.logaddexp(*wide.T) - wide[np.arange(3), labels])
        right += list(wide.argmax(1) == labels)
    found = metrics.compute()
    assert_same(found["loss"], np.mean(losses), rtol=1e-3)
    assert_same(found["accuracy"], np.mean(right))
    shows(f"{PAGE}#metrics", "A label of -1 is no error: its loss is that of the last class")
    metrics.reset()
    averaged["evaluate"](metrics, logits, np.full(3, -1))
    assert_same(metrics.compute()["loss"], np.mean(np.logaddexp(*wide.T) - wide[:, -1]), rtol=1e-3)


@attack(f"{PAGE}#overhead", f"{PAGE}#donate", x=ROWS, kernel=KERNELS)
def test_the_lean_and_the_donated_step_are_one_step_of_adam(x: Array, kernel: Array) -> None:
    start = jax.tree.map(lambda leaf: leaf, made("overhead", "step", "state")["state"])
    start[0]["kernel"][...], start[0]["bias"][...] = kernel, jnp.zeros(1)
    expected, slope, _ = error(kernel.astype(float), np.zeros(1), x.astype(float), np.zeros((4, 1)))
    loss, after = made("overhead", "step", "state")["step"](start, x)
    model, optimizer = line(ADAM)
    restart(model, kernel, (optimizer, jax.tree.map(jnp.zeros_like, nnx.state(optimizer))))
    old = model.kernel[...]
    made("donate", "step")["step"](model, optimizer, x)
    assert old.is_deleted()
    assert_same(loss, np.float64(expected), atol=1e-3)
    clear = np.abs(slope) > 1e-3
    for found in (after[0]["kernel"], model.kernel):
        assert_same(np.asarray(found[...])[clear], (kernel + adam(slope))[clear], atol=1e-3)


@attack(f"{PAGE}#ema", values=st.lists(st.integers(-8, 8), max_size=4))
def test_the_average_follows_its_recursion(values: list[int]) -> None:
    found = made("ema", "step", "model", "ema", "averaged")
    expected = float(found["averaged"].bias[0])
    for value in values:
        found["model"].bias[...] = value
        found["step"](found["model"], found["ema"])
        expected = 0.9 * expected + 0.1 * (value + 1)
    assert_same(found["averaged"].bias[...], np.full(1, expected))
