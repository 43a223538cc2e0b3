"""Attacks on the answers about NNX with JAX's own functions: the same values and derivatives in NumPy, in float64."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import arrays, assert_same

pytestmark = pytest.mark.slow  # each compiles a model
Array = np.ndarray[Any, Any]
PAGE = "answers/nnx-transforms.md"


def small(*shape: int, most: float = 2.0) -> st.SearchStrategy[Array]:
    """Arrays of a shape, of moderate numbers."""
    return arrays(shape, odd=False).map(lambda x: np.clip(x / 8, -most, most))


def made(anchor: str, *wanted: str) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted)


@cache
def scanned() -> tuple[Any, Any]:
    """The model of an answer, and its values in chunks beside its Jacobians, compiled."""
    model = made("scan-inside", "model")["model"]

    def both(model: Any, x: Any) -> Any:
        call = lambda x: model(x, graph_updates=False)  # noqa: E731
        return jax.lax.map(call, x, batch_size=2), jax.vmap(jax.jacfwd(call))(x)

    return model, jax.jit(both)


@attack(f"{PAGE}#scan-inside", x=small(5, 2))
def test_a_scan_that_writes_nothing_back_is_a_loop_over_layers(x: Array) -> None:
    model, both = scanned()
    kernels = np.asarray(model.layers.kernel[...], np.float64)
    values, jacobians = both(model, x)
    for i in range(len(x)):
        row, slope = x[i].astype(float), np.eye(2)
        for kernel in kernels:
            row = np.tanh(row @ kernel)
            slope = (1 - row**2)[:, None] * (kernel.T @ slope)
        assert_same(values[i], row, rtol=1e-3, atol=1e-3)
        assert_same(jacobians[i], slope, rtol=1e-2, atol=1e-3)


@cache
def remembered() -> tuple[Any, Any]:
    """The block of an answer, and the gradient by its input, with both ways of `nnx.remat`."""
    found = made("remat-inside", "block", "bare", "total")
    bare = jax.jit(jax.grad(lambda x: found["bare"](found["block"], x).sum()))
    return found["block"], (bare, lambda x: nnx.grad(found["total"], argnums=1)(found["block"], x))


@attack(f"{PAGE}#remat-inside", x=small(2))
def test_both_ways_of_remat_have_the_gradient_of_the_block(x: Array) -> None:
    block, ways = remembered()
    kernel = np.asarray(block.up.kernel[...], np.float64)
    expected = kernel @ np.cos(x.astype(float) @ kernel)
    for way in ways:
        assert_same(way(x), expected, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#chunks", x=st.sampled_from([1, 3, 64, 65]).flatmap(lambda size: small(size, 8)))
def test_chunks_of_any_size_are_the_whole(x: Array) -> None:
    found = made("chunks", "predict", "model")
    first, last = found["model"].layers[0], found["model"].layers[3]
    w, b, v, c = (np.asarray(a[...], np.float64) for a in (first.kernel, first.bias, last.kernel, last.bias))
    assert_same(found["predict"](found["model"], x), np.tanh(x.astype(float) @ w + b) @ v + c, rtol=1e-2, atol=1e-2)


@cache
def ruled() -> tuple[Any, Any]:
    """The quantized model of an answer, and its gradient, compiled."""
    found = made("custom-vjp", "Quantized")
    loss = lambda model, x: (model(x) ** 2).sum()  # noqa: E731
    return found["Quantized"](nnx.Rngs(0)), nnx.jit(nnx.value_and_grad(loss))


@attack(f"{PAGE}#custom-vjp", x=small(4, 2), kernel=small(2, 1))
def test_the_rule_passes_the_gradient_through_rounding(x: Array, kernel: Array) -> None:
    model, grad = ruled()
    model.kernel[...] = jnp.asarray(kernel)
    value, grads = grad(model, x)
    out = x.astype(float) @ (np.round(8 * kernel.astype(float)) / 8)
    assert_same(value, np.float64((out**2).sum()), rtol=1e-3, atol=1e-3)
    assert_same(grads["kernel"][...], 2 * x.T.astype(float) @ out, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#custom-vjp", x=small(4, 2), scale=st.floats(-3, 3))
def test_the_rule_of_a_module_clips_what_comes_back(x: Array, scale: float) -> None:
    found = made("custom-vjp", "clipped", "model")
    loss = lambda model, x: scale * found["clipped"](model, x).sum()  # noqa: E731
    grads, back = nnx.grad(loss, argnums=(0, 1))(found["model"], jnp.asarray(x))
    kernel = np.asarray(found["model"].kernel[...], np.float64)
    limited = np.full((4, 1), np.clip(scale, -1, 1))
    assert_same(grads["kernel"][...], x.T.astype(float) @ limited, rtol=1e-3, atol=1e-3)
    assert_same(back, limited @ kernel.T, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#compiles-again", rate=st.sampled_from([0.01, 0.1, 0.5]))
def test_one_optimizer_of_any_rate_is_compiled_once(rate: float) -> None:
    found = made("compiles-again", "traces", "optax")
    adam = found["optax"].adam(rate)
    assert found["traces"](lambda: adam) == 1
    assert found["traces"](lambda: found["optax"].adam(rate)) == 3


@attack(f"{PAGE}#flops", rows=st.integers(1, 3), size=st.integers(1, 3), outputs=st.integers(1, 3))
def test_a_product_counts_two_operations_for_each_multiplication(rows: int, size: int, outputs: int) -> None:
    rows, size, outputs = 8 * rows, 8 * size, 8 * outputs
    layer = nnx.Linear(size, outputs, use_bias=False, rngs=nnx.Rngs(0))
    assert round(made("flops", "flops")["flops"](layer, rows, size)) == 2 * rows * size * outputs


@attack(f"{PAGE}#cond", x=st.floats(-2, 2) | st.sampled_from([np.nan, np.inf]))
def test_only_a_finite_loss_changes_the_model(x: float) -> None:
    found = made("cond", "step", "model", "optimizer")
    model, before = found["model"], int(found["optimizer"].step[...])
    model.kernel[...], model.bias[...] = jnp.ones((1, 1)), jnp.zeros(1)
    found["step"](model, found["optimizer"], jnp.full((4, 1), x, jnp.float32))
    finite = np.isfinite(x)
    assert int(found["optimizer"].step[...]) == before + finite
    assert_same(model.kernel[0, 0], np.float64(1 - 0.1 * 2 * x * x if finite else 1), rtol=1e-3, atol=1e-3)
    assert_same(model.bias[0], np.float64(-0.1 * 2 * x if finite else 0), rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#one-vector", vector=small(3))
def test_the_loss_of_a_vector_is_that_of_its_weights(vector: Array) -> None:
    found = made("one-vector", "loss", "x", "y", "params", "rebuild")
    state = found["rebuild"](jnp.asarray(vector))
    bias, kernel = (np.asarray(state[name][...], np.float64) for name in ("bias", "kernel"))
    x, y = (np.asarray(found[name], np.float64) for name in "xy")
    off = x @ kernel + bias - y
    assert sorted([*bias, *kernel.ravel()]) == sorted(vector)
    value, slope = jax.value_and_grad(found["loss"])(jnp.asarray(vector))
    assert_same(value, np.float64((off**2).mean()), rtol=1e-3, atol=1e-3)
    slopes = found["rebuild"](slope)
    assert_same(slopes["kernel"][...], 2 * x.T @ off / len(x), rtol=1e-3, atol=1e-3)
    assert_same(slopes["bias"][...], 2 * off.mean(0), rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#per-example", x=small(8, 3))
def test_each_example_has_the_gradient_of_a_loop(x: Array) -> None:
    found = made("per-example", "each", "model")
    grads = found["each"](found["model"], x, x[:, :1])
    kernel, bias = (np.asarray(a[...], np.float64) for a in (found["model"].kernel, found["model"].bias))
    off = x.astype(float) @ kernel + bias - x[:, :1]
    assert_same(grads["kernel"][...], 2 * x[:, :, None] * off[:, None], rtol=1e-3, atol=1e-3)
    assert_same(grads["bias"][...], 2 * off, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#metrics-split", x=small(4, 2), labels=st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_metrics_in_a_state_are_means_over_all_steps(x: Array, labels: list[int]) -> None:
    found = made("metrics-split", "step", "metrics", "model")
    both = found["model"], found["metrics"]
    found["metrics"].reset()
    state = nnx.state(both)
    for scale in (1, 3):
        state = found["step"](state, scale * x, np.array(labels, np.int32))
    nnx.update(both, state)
    measured = found["metrics"].compute()
    logits = x.astype(float) @ np.asarray(found["model"].kernel[...], np.float64)
    best = np.sort(logits, axis=1)
    if (best[:, -1] - best[:, -2] > 1e-3).all():
        assert_same(measured["accuracy"], np.float64((logits.argmax(1) == labels).mean()))
    assert_same(measured["size"], np.float64(2 * x.astype(float).mean()), rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#export", x=st.sampled_from([1, 2, 5]).flatmap(lambda size: small(size, 3)))
def test_the_file_computes_what_the_model_computes_in_evaluation(x: Array) -> None:
    found = made("export", "loaded", "model")
    linear = found["model"].layers[0]
    w, b = (np.asarray(a[...], np.float64) for a in (linear.kernel, linear.bias))
    expected = (x.astype(float) @ w + b) / np.sqrt(1 + 1e-5)  # no batch has changed the statistics
    assert_same(found["loaded"](x), expected, rtol=1e-3, atol=1e-3)


def test_what_a_module_under_a_rule_changes_is_lost() -> None:
    clipped, x = made("custom-vjp", "clipped")["clipped"], jnp.arange(1.0, 17.0).reshape(2, 8)
    wrt = nnx.DiffState(0, nnx.Param)
    for call, kept in ((lambda model, x: model(x), False), (clipped, True)):
        rngs = nnx.Rngs(0)
        model = nnx.Sequential(nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.5, rngs=rngs))
        before = jax.tree.leaves(nnx.state(model, (nnx.BatchStat, nnx.RngCount)))
        nnx.grad(lambda model, call=call: call(model, x).sum(), argnums=wrt)(model)
        after = jax.tree.leaves(nnx.state(model, (nnx.BatchStat, nnx.RngCount)))
        assert all((a == b).all() for a, b in zip(before, after, strict=True)) == kept


def test_a_skipped_update_leaves_nan_in_the_statistics_unless_the_batch_decides() -> None:
    step = made("cond", "step", "update", "skip")["step"]

    def by_batch(model: Any, optimizer: Any, x: Any) -> None:
        def update(model: Any, optimizer: Any, x: Any) -> None:
            optimizer.update(model, nnx.grad(lambda model: jnp.mean(model(x) ** 2))(model))

        nnx.cond(jnp.isfinite(x).all(), update, lambda *_: None, model, optimizer, x)

    for run, whole in ((step, False), (nnx.jit(by_batch), True)):
        model = nnx.BatchNorm(1, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        for scale in (1.0, np.nan, 2.0):
            run(model, optimizer, scale * jnp.arange(4.0)[:, None])
        assert optimizer.step[...] == 2
        assert bool(jnp.isfinite(model.mean[...]).all()) == whole


@pytest.mark.parametrize("size", [20.0, 1e3])
def test_gradients_of_half_precision_are_clipped_to_the_norm(size: float) -> None:
    half = nnx.Linear(3, 1, rngs=nnx.Rngs(0), dtype=jnp.float16, param_dtype=jnp.float16)
    x = (jnp.arange(1.0, 25.0).reshape(8, 3) * size / 24).astype(jnp.float16)
    found = program(
        f"{PAGE}#per-example", "clipped", "limit", "norms",
        each=lambda *_: jax.tree.map(lambda p: jnp.broadcast_to(x[:, :1, None] if p.ndim == 2 else x[:, :1],
                                                                (8, *p.shape)), nnx.state(half, nnx.Param)),
    )  # fmt: skip
    assert_same(found["norms"], 2 * np.asarray(x[:, 0], float), rtol=1e-3)
    assert_same(found["limit"] * found["norms"], np.minimum(1, 2 * np.asarray(x[:, 0], float)), rtol=1e-3)
    assert optax.global_norm({"w": jnp.full(2, 300, jnp.float16)}) == np.inf  # so it needs float32


def test_the_count_of_an_average_ends_with_int32() -> None:
    average = nnx.metrics.Average()
    for count, right in ((0, True), (2**31 - 8, True), (2**31 - 2, False)):
        average.count[...], average.total[...] = jnp.int32(count), jnp.float32(count)
        average.update(values=jnp.ones(4))
        assert (average.compute() > 0) == right


def test_casts_of_a_cpu_count_too() -> None:
    layer = nnx.Linear(64, 128, use_bias=False, rngs=nnx.Rngs(0), dtype=jnp.bfloat16, param_dtype=jnp.bfloat16)
    if jax.default_backend() == "cpu":
        assert made("flops", "flops")["flops"](layer, 1, 64) >= 2 * 64 * 128


@attack(f"{PAGE}#vmap-keywords", x=small(5, 3))
def test_a_mapped_norm_is_that_of_numpy(x: Array) -> None:
    found = made("vmap-keywords", "apply", "norm")
    exact = x.astype(float) - x.mean(-1, keepdims=True, dtype=float)
    exact /= np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(found["apply"](found["norm"], jnp.float32(x)), exact, rtol=2e-2, atol=2e-2)


@cache
def tagged() -> tuple[Any, Any]:
    model = made("rnn", "Tagger")["Tagger"](nnx.Rngs(3))
    return model, nnx.jit(lambda model, x, lengths: model(x, lengths))


@attack(f"{PAGE}#rnn", x=small(2, 4, 3), lengths=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_a_padded_sequence_ends_as_the_short_one_does(x: Array, lengths: tuple[int, int]) -> None:
    model, run = tagged()
    scores, outputs = run(model, jnp.float32(x), jnp.array(lengths))
    kernel, bias = np.asarray(model.out.kernel, float), np.asarray(model.out.bias, float)
    for row, length in enumerate(lengths):
        carry = model.rnn.cell.initialize_carry((3,), nnx.Rngs(0))
        for t in range(length):
            carry, y = model.rnn.cell(carry, jnp.float32(x[row, t]))
            np.testing.assert_allclose(outputs[row, t], y, atol=1e-4)
        np.testing.assert_allclose(scores[row], np.asarray(carry[1], float) @ kernel + bias, atol=1e-4)


@attack(f"{PAGE}#hugging-face", w=small(2, 3), b=small(2), scale=small(2), x=small(3))
def test_loaded_layers_compute_what_torch_would(w: Array, b: Array, scale: Array, x: Array) -> None:
    found = made("hugging-face", "Model", "load")
    model = found["Model"](nnx.Rngs(0))
    weights = {"fc.weight": w, "fc.bias": b, "norm.weight": scale, "norm.bias": b, "extra": b}
    assert found["load"](model, dict(weights)) == ["extra"]
    hidden = w.astype(float) @ x + b
    np.testing.assert_allclose(model.fc(jnp.float32(x)), hidden, rtol=1e-3, atol=1e-3)
    centered = hidden - hidden.mean()
    exact = centered / np.sqrt((centered**2).mean() + 1e-5) * scale + b
    if abs(centered).max() > 0.1:
        np.testing.assert_allclose(model.norm(jnp.float32(hidden)), exact, rtol=1e-2, atol=1e-2)
    with pytest.raises(KeyError):
        found["load"](model, {"fc.weight": w})
