"""Attacks on the answers about Equinox and Optax: the same sums in NumPy, in float64."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import arrays, assert_same

pytestmark = pytest.mark.slow  # each compiles a model
Array = np.ndarray[Any, Any]
PAGE = "answers/equinox-and-optax.md"
FOUR = arrays((4, 2), odd=False).map(lambda w: np.clip(w / 8, -2, 2))
ROWS = arrays((2, 2), odd=False).map(lambda x: np.clip(x / 4, -2, 2))


def made(anchor: str, *wanted: str) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted)


@cache
def network() -> eqx.nn.MLP:
    """A network of two inputs, four hidden units and one output."""
    return eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(0))


def with_first(weight: Array) -> Any:
    """The network with this weight in its first layer."""
    return eqx.tree_at(lambda m: m.layers[0].weight, network(), jnp.asarray(weight))


def mlp(model: Any, x: Array) -> tuple[Array, Array]:
    """The hidden units and the outputs of a network for some rows, in float64."""
    first, last = [(np.asarray(a.weight, np.float64), np.asarray(a.bias, np.float64)) for a in model.layers]
    hidden = np.maximum(x.astype(float) @ first[0].T + first[1], 0)
    return hidden, hidden @ last[0].T + last[1]


@attack(f"{PAGE}#not-a-jax-type", weight=FOUR, x=arrays((5, 2), odd=False).map(lambda x: np.clip(x, -9, 9)))
def test_the_gradient_of_the_last_layer(weight: Array, x: Array) -> None:
    model = with_first(weight)
    loss, grads = gradient()(model, x)
    hidden, out = mlp(model, x)
    assert_same(loss, (out**2).mean(), rtol=1e-3, atol=1e-3)
    assert_same(grads.layers[1].weight, 2 * out.T @ hidden / len(x), rtol=1e-3, atol=1e-2)
    assert grads.activation is None


@cache
def gradient() -> Any:
    """The loss of an answer and its gradient, compiled."""
    return eqx.filter_jit(eqx.filter_value_and_grad(made("not-a-jax-type", "loss_fn")["loss_fn"]))


@cache
def fresh_state() -> Any:
    """The state of the optimizer before its first step."""
    return made("optimizer-init", "step", "optimizer")["optimizer"].init(eqx.filter(network(), eqx.is_inexact_array))


@attack(f"{PAGE}#optimizer-init", weight=FOUR, x=ROWS)
def test_a_step_of_adamw_goes_against_the_gradient_and_decays(weight: Array, x: Array) -> None:
    found = made("optimizer-init", "step", "optimizer")
    model, y = with_first(weight), np.ones((2, 1), np.float32)
    new, _, loss = found["step"](model, fresh_state(), x, y)
    hidden, out = mlp(model, x)
    slope = (out - y).T @ hidden
    old = np.asarray(model.layers[1].weight, np.float64)
    clear = np.abs(slope) > 1e-3
    assert_same(loss, ((out - y) ** 2).mean(), atol=1e-3)
    assert_same(np.asarray(new.layers[1].weight)[clear], (old - 0.01 * (np.sign(slope) + 1e-4 * old))[clear], atol=1e-3)


@attack(f"{PAGE}#freeze", weight=FOUR, x=arrays((3, 2), odd=False).map(lambda x: np.clip(x, -9, 9)))
def test_only_the_last_layer_moves(weight: Array, x: Array) -> None:
    found = made("freeze", "step", "spec")
    model = with_first(weight)
    new = eqx.combine(found["step"](*(parts := eqx.partition(model, found["spec"])), x), parts[1])
    hidden, out = mlp(model, x)
    assert_same(new.layers[0].weight, weight, 0, 0)
    moved = np.asarray(model.layers[1].weight) - 0.1 * 2 * out.T @ hidden / len(x)
    assert_same(new.layers[1].weight, moved, rtol=1e-3, atol=1e-2)


@attack(f"{PAGE}#batch", f"{PAGE}#tree-at", x=arrays((5, 2), odd=False), weight=arrays((3, 2), odd=False))
def test_a_layer_with_new_weights_maps_each_row(x: Array, weight: Array) -> None:
    linear: Any = made("batch", "linear")["linear"]
    new = eqx.tree_at(lambda m: m.weight, linear, jnp.asarray(weight))
    assert_same(jax.vmap(new)(x), x @ weight.T + np.asarray(linear.bias))
    assert new.weight is not linear.weight
    model = made("tree-at", "model", "weights")
    drawn = [jnp.full(w.shape, weight[0, 0]) for w in model["weights"](model["model"])]
    changed = eqx.tree_at(model["weights"], model["model"], drawn)
    assert all(layer.weight is w for layer, w in zip(changed.layers, drawn, strict=True))


@attack(
    f"{PAGE}#check-init",
    centers=st.lists(st.integers(-4, 4), min_size=1, max_size=3),
    widths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
)
def test_bumps_of_equal_numbers_add_up_and_others_are_refused(centers: list[int], widths: list[int]) -> None:
    bumps = made("check-init", "Bumps")["Bumps"]
    if len(centers) != len(widths):
        with pytest.raises(ValueError, match="one width for each center"):
            bumps(centers, widths)
        return
    away = (0.5 - np.array(centers)) / np.array(widths)
    assert_same(bumps(centers, widths)(0.5), np.exp(-(away**2)).sum())


@cache
def normalized() -> tuple[Any, Any, Any]:
    """A model with BatchNorm, its first state, and its call on a batch."""
    model, state = eqx.nn.make_with_state(made("batch-norm", "Model")["Model"])(jax.random.key(0))
    return (
        model,
        state,
        eqx.filter_jit(eqx.filter_vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))),
    )


@attack(f"{PAGE}#batch-norm", x=arrays((6, 2), odd=False).map(lambda x: np.clip(x, -9, 9)))
def test_a_batch_is_normalized_by_its_own_statistics(x: Array) -> None:
    model, state, call = normalized()
    y, _ = call(x, state)
    z = x.astype(float) @ np.asarray(model.linear.weight, np.float64).T + np.asarray(model.linear.bias)
    assert_same(y, (z - z.mean(0)) / np.sqrt(z.var(0) + 1e-5), rtol=2e-2, atol=2e-2)


@attack(f"{PAGE}#recompiles", x=arrays((3,), odd=False), rate=st.integers(-8, 8))
def test_an_array_as_rate_is_traced_once(x: Array, rate: int) -> None:
    assert_same(made("recompiles", "strict", "decay")["strict"](x, jnp.asarray(rate / 8)), x * (1 - rate / 8))


@attack(f"{PAGE}#ensemble", f"{PAGE}#scan-layers", x=arrays((5, 2), odd=False), y=arrays((3,), odd=False))
def test_stacked_models_are_those_made_one_by_one(x: Array, y: Array) -> None:
    found = made("ensemble", "evaluate", "models")
    out = found["evaluate"](found["models"], x)
    for i, model in enumerate(singly()[0]):
        assert_same(out[i], mlp(model, x)[1], rtol=1e-3, atol=1e-2)
    scanned = made("scan-layers", "apply", "arrays")
    expected = np.clip(y, -9, 9).astype(float)
    result = scanned["apply"](scanned["arrays"], expected.astype(np.float32))
    for model in singly()[1]:
        expected = expected + mlp(model, expected[None])[1][0]
    assert_same(result, expected, rtol=1e-3, atol=1e-2)


@cache
def singly() -> tuple[list[Any], list[Any]]:
    """The models of both answers, made one by one."""
    key = jax.random.key(0)
    return (
        [eqx.nn.MLP(2, 1, 4, 1, key=k) for k in jax.random.split(key, 3)],
        [eqx.nn.MLP(3, 3, 3, 1, key=k) for k in jax.random.split(key, 6)],
    )


@cache
def tied() -> Any:
    """The value of one output of the model that shares its weights, and its gradient, compiled."""

    def one(model: Any, token: Any, out: Any) -> Any:
        return model(token)[out]

    return eqx.filter_jit(eqx.filter_value_and_grad(one))


@attack(f"{PAGE}#shared", weight=arrays((5, 3), odd=False), token=st.integers(0, 4), out=st.integers(0, 4))
def test_a_shared_weight_gets_the_gradient_of_both_uses(weight: Array, token: int, out: int) -> None:
    model = made("shared", "Model", "model")["model"]
    treedef = jax.tree.structure(model)
    leaves = [jnp.asarray(weight) if eqx.is_array(leaf) else leaf for leaf in jax.tree.leaves(model)]
    value, grads = tied()(jax.tree.unflatten(treedef, leaves), jnp.array(token), jnp.array(out))
    expected = np.zeros((5, 3))
    expected[token] += weight[out]
    expected[out] += weight[token]
    assert_same(value, weight.astype(float)[token] @ weight[out], rtol=1e-3)
    [found] = jax.tree.leaves(eqx.filter(grads, eqx.is_array))
    assert_same(found, expected)


@attack(f"{PAGE}#error-if", x=arrays((2,), odd=False), sign=st.sampled_from([1] * 19 + [-1]))  # raising is slow
def test_a_negative_element_raises(x: Array, sign: int) -> None:
    root, x = made("error-if", "root")["root"], sign * np.abs(x)
    if (x < 0).any():
        with pytest.raises(RuntimeError, match="x must not be negative"):
            root(x)
    else:
        assert_same(root(x), np.sqrt(x.astype(float)))


def _checked_loss(w: Any, x: Any) -> Any:
    value = jnp.mean((w * x) ** 2)
    return eqx.error_if(value, jnp.isnan(value), "the loss is NaN")


def _slope_of_both(w: Any, x: Any) -> Any:
    both: Any = eqx.filter_value_and_grad(_checked_loss)
    return both(w, x)[1]


@pytest.mark.parametrize(
    ("call", "raises"),
    [
        (eqx.filter_jit(eqx.filter_grad(_checked_loss)), False),
        (eqx.filter_jit(_slope_of_both), False),
        (jax.jit(jax.grad(_checked_loss)), False),
        (eqx.filter_jit(eqx.filter_value_and_grad(_checked_loss)), True),
        (jax.jit(jax.value_and_grad(_checked_loss)), True),
        (eqx.filter_jit(_checked_loss), True),
        (eqx.filter_grad(_checked_loss), True),
    ],
    ids=["filtered slope", "slope of both", "slope", "filtered both", "both", "value", "eager slope"],
)
def test_a_check_of_the_loss_needs_the_loss(call: Any, raises: bool) -> None:
    nan = jnp.float32(jnp.nan)
    for _ in range(2):
        if raises:
            with pytest.raises(RuntimeError, match="the loss is NaN"):
                jax.block_until_ready(call(jnp.float32(1), nan))
        else:
            assert jnp.isnan(call(jnp.float32(1), nan))


@attack(f"{PAGE}#warm-up", step=st.integers(0, 200))
def test_both_schedules_are_the_formula(step: int) -> None:
    found = made("warm-up", "whole", "pieces")
    done = min(max(step - 10, 0) / 90, 1)
    expected = step / 10 if step < 10 else (1 + np.cos(np.pi * done)) / 2
    assert_same(found["whole"](step), np.float64(expected))
    assert_same(found["pieces"](step), np.float64(expected))


@attack(f"{PAGE}#cross-entropy", logits=arrays((4, 3), odd=False), labels=arrays((4,), "int32"))
def test_the_loss_is_the_negative_log_probability(logits: Array, labels: Array) -> None:
    wide, labels = logits.astype(float), labels % 3
    expected = np.logaddexp.reduce(wide, axis=1) - wide[np.arange(4), labels]
    assert_same(optax.softmax_cross_entropy_with_integer_labels(logits, labels), expected, atol=1e-3)
    assert_same(optax.softmax_cross_entropy(logits, jax.nn.one_hot(labels, 3)), expected, atol=1e-3)


@cache
def jitted_update() -> Any:
    """The update of an answer's optimizer, compiled."""
    return jax.jit(made("structure", "optimizer", "params", "state", "adam", "rest")["optimizer"].update)


@attack(f"{PAGE}#structure", gradient=arrays((2,), odd=False))
def test_what_is_carried_over_goes_on_as_before(gradient: Array) -> None:
    found = made("structure", "optimizer", "params", "state", "adam", "rest")
    step, body = jitted_update(), jnp.asarray(gradient)
    grads = {"body": body, "head": jnp.ones(3)}
    new, _ = step(grads, (found["adam"], *found["rest"]), found["params"])
    old, _ = step({"body": body}, found["state"], {"body": jnp.ones(2)})
    assert_same(new["body"], old["body"])


@attack(f"{PAGE}#partition", slow=arrays((4, 2), odd=False), fast=arrays((1, 4), odd=False))
def test_each_part_has_the_rate_of_its_label(slow: Array, fast: Array) -> None:
    found = made("partition", "optimizer", "params", "grads")
    grads = eqx.tree_at(
        lambda m: (m.layers[0].weight, m.layers[1].weight), found["grads"], (jnp.asarray(slow), jnp.asarray(fast))
    )
    updates, _ = found["optimizer"].update(grads, found["optimizer"].init(found["params"]))
    assert_same(updates.layers[0].weight, -0.1 * slow.astype(float))
    assert_same(updates.layers[1].weight, -0.5 * fast.astype(float))


@cache
def lbfgs_step() -> Any:
    """One step of the search, compiled."""
    return jax.jit(made("lbfgs", "loss_fn", "step", "optimizer", "params", "x")["step"])


@attack(f"{PAGE}#lbfgs", weight=arrays((8, 1), odd=False).map(lambda w: np.clip(w / 8, -2, 2)))
def test_a_step_of_the_search_makes_the_loss_smaller(weight: Array) -> None:
    found = made("lbfgs", "loss_fn", "step", "optimizer", "params", "x")
    params = eqx.tree_at(lambda m: m.layers[0].weight, found["params"], jnp.asarray(weight))
    first, last = [(np.asarray(a.weight, np.float64), np.asarray(a.bias, np.float64)) for a in params.layers]
    x = np.asarray(found["x"], np.float64)
    out = np.tanh(x @ first[0].T + first[1]) @ last[0].T + last[1]
    loss = ((out - x**2) ** 2).mean()
    assert_same(found["loss_fn"](params), loss, rtol=1e-3, atol=1e-4)
    new, _ = lbfgs_step()(0, (params, found["optimizer"].init(params)))
    assert found["loss_fn"](new) < loss
