"""Fixes of the error dictionary for Optax and other libraries, against NumPy and SciPy."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from flax import nnx
from hypothesis import strategies as st
from scipy import special

from tests.site.recommended.attack import attack
from tests.site.recommended.entries import fixed, refused
from tests.site.strategies import arrays

Array = np.ndarray[Any, Any]
LIBRARIES = "lookup/errors-libraries.md"
small = partial(arrays, dtype="float32", odd=False)
near = partial(np.testing.assert_allclose, rtol=1e-4, atol=0.006)  # numbers that are printed have two digits


@attack(f"{LIBRARIES}#no-transformation", body=small((2,)), head=small((3,)))
def test_only_what_has_an_optimizer_moves(body: Array, head: Array) -> None:
    weights = {"body": body, "head": head}
    [moved] = fixed(f"{LIBRARIES}#no-transformation", weights=weights)
    np.testing.assert_array_equal(moved["body"], body)
    np.testing.assert_array_equal(moved["head"], 0)  # the gradients are the weights, and the rate is 1
    refused(f"{LIBRARIES}#no-transformation", weights=weights)


@attack(f"{LIBRARIES}#number-of-updates", slope=small((2,)))
def test_the_first_step_of_adam_is_its_rate(slope: Array) -> None:
    [kernel] = fixed(f"{LIBRARIES}#number-of-updates", slopes={"kernel": slope})
    wide = slope.astype(float)
    near(kernel, wide - 0.1 * wide / (np.abs(wide) + 1e-8))
    refused(f"{LIBRARIES}#number-of-updates", slopes={"kernel": slope})


@attack(f"{LIBRARIES}#integer-labels", logits=small((2, 3)), labels=st.lists(st.integers(0, 2), min_size=2, max_size=2))
def test_both_losses_are_the_cross_entropy(logits: Array, labels: list[int]) -> None:
    wide = logits.astype(float)
    expected = special.logsumexp(wide, axis=1) - wide[[0, 1], labels]
    for loss in fixed(f"{LIBRARIES}#integer-labels", logits=logits, integers=np.array(labels)):
        near(loss, expected)
    refused(f"{LIBRARIES}#integer-labels", logits=logits)


@attack(f"{LIBRARIES}#optimizer-init", width=st.integers(1, 3), depth=st.integers(1, 3))
def test_the_moments_are_of_the_arrays_alone(width: int, depth: int) -> None:
    mlp = eqx.nn.MLP(2, 1, width, depth, key=jax.random.key(0))
    [moments] = fixed(
        f"{LIBRARIES}#optimizer-init", {"jax.tree.map(jnp.shape, jax.tree.leaves(moments))": "moments"}, mlp=mlp
    )
    expected = [leaf.shape for leaf in jax.tree.leaves(mlp) if hasattr(leaf, "shape")]
    assert [leaf.shape for leaf in jax.tree.leaves(moments)] == expected
    assert not any(leaf.any() for leaf in jax.tree.leaves(moments))


@attack(f"{LIBRARIES}#chex-assertion", rows=st.integers(0, 4), columns=st.integers(0, 4))
def test_only_the_size_that_may_vary_does(rows: int, columns: int) -> None:
    batch = np.ones((rows, columns))
    if columns == 3:
        fixed(f"{LIBRARIES}#chex-assertion", batch=batch)
    else:
        refused(
            f"{LIBRARIES}#chex-assertion",
            {"chex.assert_shape(batch, (3, 2))": "chex.assert_shape(batch, (None, 3))"},
            batch=batch,
        )


@attack(f"{LIBRARIES}#loss-shapes", predictions=small((4, 1)), targets=small((4,)))
def test_a_squared_error_is_of_pairs(predictions: Array, targets: Array) -> None:
    given: dict[str, Any] = {"predictions": predictions / 8, "targets": targets / 8}
    [loss] = fixed(f"{LIBRARIES}#loss-shapes", **given)
    expected = ((given["predictions"][:, 0].astype(float) - given["targets"]) ** 2).mean()
    near(loss, expected)
    refused(f"{LIBRARIES}#loss-shapes", **given)


@attack(f"{LIBRARIES}#chain-of-a-list", slope=small((2,)))
def test_a_chain_clips_and_steps(slope: Array) -> None:
    [update] = fixed(f"{LIBRARIES}#chain-of-a-list", {"jnp.array([3.0, 4.0])": "slope"}, slope=slope)
    wide = slope.astype(float)
    near(update, -0.1 * wide / max(1.0, float(np.linalg.norm(wide))))


@attack(f"{LIBRARIES}#optax-names", weights=small((2,)), rate=st.sampled_from([0.0, 0.1, 2.0]))
def test_decayed_weights_are_added(weights: Array, rate: float) -> None:
    changes = {"decayed_weights(0.1)": f"decayed_weights({rate})", "jnp.ones(2))[0]": "weights)[0]"}
    update, names = fixed(f"{LIBRARIES}#optax-names", changes, weights=weights)
    near(update, rate * weights.astype(float))
    assert all(names)


@attack(f"{LIBRARIES}#not-callable", slope=small((2,)), rows=st.lists(st.integers(-9, 9), min_size=1, max_size=5))
def test_functions_scale_tune_and_batch(slope: Array, rows: list[int]) -> None:
    changes = {"update(jnp.ones(2)": "update(slope", "[4, 7, 2, 5]": str(rows)}
    first, tuned, batches = fixed(f"{LIBRARIES}#not-callable", changes, slope=slope)
    near(first, -0.1 * slope.astype(float))
    near(tuned, -0.1 * slope.astype(float))
    assert batches == [rows[at : at + 2] for at in range(0, len(rows), 2)]


@attack(f"{LIBRARIES}#operands-of-a-model", seed=st.integers(0, 2**31))
def test_a_model_moves_by_its_slopes(seed: int) -> None:
    mlp = eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(seed))
    changes = {"moved.layers[-1].bias - mlp.layers[-1].bias": "moved, slopes"}
    slopes = jax.tree.map(lambda leaf: 2 * leaf, eqx.filter(mlp, eqx.is_array))
    moved, slopes = fixed(f"{LIBRARIES}#operands-of-a-model", changes, mlp=mlp, slopes=slopes)
    for new, old, slope in zip(
        *(jax.tree.leaves(eqx.filter(tree, eqx.is_array)) for tree in (moved, mlp, slopes)), strict=True
    ):
        np.testing.assert_array_equal(new, old + slope)
    assert moved.activation is mlp.activation


@attack(f"{LIBRARIES}#unpack", batch=st.integers(1, 3), length=st.integers(1, 4))
def test_attention_is_that_of_each_example(batch: int, length: int) -> None:
    words = jax.random.normal(jax.random.key(length), (batch, length, 4))
    found, attention = fixed(f"{LIBRARIES}#unpack", {".shape)": ", attention)"}, words=words)
    near(found, np.stack([attention(one, one, one) for one in words]))


@attack(f"{LIBRARIES}#key-error", rows=st.integers(1, 4), columns=st.integers(1, 4))
def test_a_state_has_the_names_of_attributes(rows: int, columns: int) -> None:
    state = nnx.state(nnx.Linear(rows, columns, rngs=nnx.Rngs(0)))
    assert fixed(f"{LIBRARIES}#key-error", state=state) == [["bias", "kernel"], (rows, columns)]
    refused(f"{LIBRARIES}#key-error", state=state)


@attack(f"{LIBRARIES}#class-arguments", features=st.integers(-3, 9))
def test_an_annotated_field_is_an_argument(features: int) -> None:
    [scaled] = fixed(f"{LIBRARIES}#class-arguments", {"features=4": "features=features"}, features=features)
    near(scaled, [features, features])


@attack(f"{LIBRARIES}#other-state", slope=small((2,)))
def test_the_state_of_adam_steps(slope: Array) -> None:
    [step] = fixed(f"{LIBRARIES}#other-state", {"jnp.ones(2), begun": "slope, begun", ".round(3)": ""}, slope=slope)
    wide = slope.astype(float)
    near(step, -0.1 * wide / (np.abs(wide) + 1e-8))


@attack(f"{LIBRARIES}#optimizer-arguments", slope=small((2,)), weights=small((2,)), step=st.integers(0, 40))
def test_adam_decays_weights_and_its_rate(slope: Array, weights: Array, step: int) -> None:
    changes = {
        "update(jnp.ones(2), named": "update(slope, named",
        "named.init(jnp.ones(2)), jnp.ones(2))[0].round(3)": "named.init(slope), weights)[0]",
        "decaying(10)": f"decaying({step})",
    }
    update, rate = fixed(f"{LIBRARIES}#optimizer-arguments", changes, slope=slope, weights=weights)
    wide = slope.astype(float)
    near(update, -0.1 * (wide / (np.abs(wide) + 1e-8) + 0.01 * weights.astype(float)))
    near(rate, 0.1 * 0.5 ** (step / 10))


@attack(f"{LIBRARIES}#transformation", slope=small((2,)))
def test_descent_is_a_step_against_the_slope(slope: Array) -> None:
    [moved] = fixed(f"{LIBRARIES}#transformation", {"jnp.array([1.0, -2.0])": "slope"}, slope=slope)
    near(moved, 1 - 0.1 * slope.astype(float))


@attack(f"{LIBRARIES}#decay-steps", warm=st.integers(1, 50), more=st.integers(1, 50))
def test_a_schedule_warms_up_and_decays(warm: int, more: int) -> None:
    changes = {
        "warmup_steps=1000": f"warmup_steps={warm}",
        "decay_steps=5000": f"decay_steps={warm + more}",
        "warmed(1000)": f"warmed({warm})",
        "warmed(5000)": f"warmed({warm + more})",
    }
    near(fixed(f"{LIBRARIES}#decay-steps", changes), [0, 0.1, 0])


@attack(f"{LIBRARIES}#trees-differ", head=small((2,)), change=st.sampled_from([0.0, 1e-5, 5e-4, 2e-3, 0.1]))
def test_trees_are_equal_within_the_tolerance(head: Array, change: float) -> None:
    given: dict[str, Any] = {"old": {"head": head}, "new": {"head": (head * (1 + change)).astype(head.dtype)}}
    expected = np.abs(given["old"]["head"] - given["new"]["head"]).max()
    if np.allclose(given["old"]["head"], given["new"]["head"], rtol=1e-3, atol=0):
        [found] = fixed(f"{LIBRARIES}#trees-differ", **given)
        near(found["head"], expected)
    else:
        with pytest.raises(AssertionError, match="differ in leaves 'head'"):
            fixed(f"{LIBRARIES}#trees-differ", **given)


@attack(f"{LIBRARIES}#gradient-of-predictions", kernel=small((2, 1)), inputs=small((3, 2)), targets=small((3, 1)))
def test_gradients_are_of_the_parameters(kernel: Array, inputs: Array, targets: Array) -> None:
    given: dict[str, Any] = {
        "layer": {"kernel": kernel / 8, "bias": np.ones(1, "float32")},
        "inputs": inputs / 8,
        "targets": targets / 8,
    }
    [gradients] = fixed(f"{LIBRARIES}#gradient-of-predictions", **given)
    wide = inputs.astype(float) / 8
    residual = wide @ (kernel.astype(float) / 8) + 1 - targets.astype(float) / 8
    room = 1e-5 * (1 + np.abs(wide).max()) * (1 + np.abs(residual).max())
    np.testing.assert_allclose(gradients["kernel"], 2 / 3 * wide.T @ residual, rtol=1e-3, atol=room)
    np.testing.assert_allclose(gradients["bias"], 2 * residual.mean(0), rtol=1e-3, atol=room)
    refused(f"{LIBRARIES}#gradient-of-predictions", **given)


@attack(f"{LIBRARIES}#hyperparams", slope=small((2,)))
def test_the_rate_of_a_chain_is_set(slope: Array) -> None:
    rate, _, update = fixed(f"{LIBRARIES}#hyperparams", {"jnp.array([0.6, -0.8])": "slope"}, slope=slope)
    near(rate, 0.1)
    wide = slope.astype(float)
    np.testing.assert_allclose(update, -0.01 * wide / max(1.0, float(np.linalg.norm(wide))), rtol=1e-4, atol=1e-7)


@attack(f"{LIBRARIES}#value-fn", x=small((3,)), y=small((3,)))
def test_a_line_search_comes_nearer(x: Array, y: Array) -> None:
    given: dict[str, Any] = {"w": jax.numpy.array(0.0), "x": jax.numpy.asarray(x / 8), "y": jax.numpy.asarray(y / 8)}
    [w] = fixed(f"{LIBRARIES}#value-fn", **given)
    wide_x, wide_y = x.astype(float) / 8, y.astype(float) / 8
    assert ((float(w) * wide_x - wide_y) ** 2).mean() <= (wide_y**2).mean() * (1 + 1e-5)
    assert float(w) * (wide_x * wide_y).mean() >= -1e-5
    refused(f"{LIBRARIES}#value-fn", **given)
