"""Fixes of the error dictionary for Optax, Orbax and other libraries, against NumPy, SciPy and what was saved."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import orbax.checkpoint as ocp
from hypothesis import strategies as st
from scipy import special

from tests.site.recommended.attack import attack
from tests.site.recommended.entries import fixed, refused
from tests.site.strategies import arrays

Array = np.ndarray[Any, Any]
LIBRARIES = "lookup/errors-libraries.md"
small = partial(arrays, dtype="float32", odd=False)
near = partial(np.testing.assert_allclose, rtol=1e-4, atol=0.006)  # numbers that are printed have two digits


def saved(loss: float) -> Path:
    """A folder with the checkpoint that the page has made before."""
    folder = Path(tempfile.mkdtemp())
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "latest", {"loss": np.float32(loss)})
    return folder


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


@attack(f"{LIBRARIES}#destination-exists", f"{LIBRARIES}#restore-structure", x=st.sampled_from([0.0, -1.5, 3e9]))
def test_a_checkpoint_is_overwritten_and_read(x: float) -> None:
    folder = saved(7.0)
    [loss] = fixed(f"{LIBRARIES}#destination-exists", {"jnp.array(2.0)": "jnp.array(x)"}, x=x, folder=folder)
    assert loss == np.float32(x)
    names, again = fixed(f"{LIBRARIES}#restore-structure", folder=folder, x=x)
    assert names == ["loss"]
    assert again == np.float32(x)
    refused(f"{LIBRARIES}#restore-structure", folder=folder)


@attack(f"{LIBRARIES}#manager-args", x=st.sampled_from([0.0, -1.5, 3e9]))
def test_a_manager_restores_what_it_was_given(x: float) -> None:
    [loss] = fixed(
        f"{LIBRARIES}#manager-args", {"jnp.array(3.0)": "jnp.array(x)"}, x=x, folder=Path(tempfile.mkdtemp())
    )
    assert loss == np.float32(x)


@attack(f"{LIBRARIES}#unsupported-type", x=st.sampled_from([0.25, -3.0, 7, 1e-30]))
def test_a_number_comes_back_as_it_was_saved(x: float) -> None:
    [rate] = fixed(f"{LIBRARIES}#unsupported-type", {"0.1": "x"}, x=x, folder=Path(tempfile.mkdtemp()))
    assert rate == x


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


@attack(f"{LIBRARIES}#item-not-found", f"{LIBRARIES}#metadata-file", w=st.sampled_from([0.0, -1.5, 3e9]))
def test_an_item_comes_back_from_its_step(w: float) -> None:
    folder = Path(tempfile.mkdtemp())
    with ocp.CheckpointManager(folder / "parts") as manager:
        manager.save(0, args=ocp.args.Composite(params=ocp.args.StandardSave({"w": np.full(2, w, "float32")})))
        manager.wait_until_finished()
        [restored] = fixed(f"{LIBRARIES}#item-not-found", folder=folder, parts=manager)
        names, again = fixed(f"{LIBRARIES}#metadata-file", folder=folder)
    assert names == ["params"] or set(names) > {"params"}
    for found in (restored, again):
        np.testing.assert_array_equal(found, np.full(2, w, "float32"))


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


@attack(f"{LIBRARIES}#class-arguments", features=st.integers(-3, 9))
def test_an_annotated_field_is_an_argument(features: int) -> None:
    [scaled] = fixed(f"{LIBRARIES}#class-arguments", {"features=4": "features=features"}, features=features)
    near(scaled, [features, features])


@attack(f"{LIBRARIES}#other-state", slope=small((2,)))
def test_the_state_of_adam_steps(slope: Array) -> None:
    [step] = fixed(f"{LIBRARIES}#other-state", {"jnp.ones(2), begun": "slope, begun", ".round(3)": ""}, slope=slope)
    wide = slope.astype(float)
    near(step, -0.1 * wide / (np.abs(wide) + 1e-8))
