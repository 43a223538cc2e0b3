"""Fixes of the error dictionary for Flax, against NumPy."""

from functools import cache, partial
from typing import Any

import jax
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx
from flax.core import freeze, unfreeze
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.recommended.entries import fixed, refused
from tests.site.strategies import arrays

Array = np.ndarray[Any, Any]
FLAX = "lookup/errors-flax.md"
NNX = "lookup/errors-nnx.md"
EQUINOX = "lookup/errors-equinox.md"
small = partial(arrays, dtype="float32", odd=False)
near = partial(np.testing.assert_allclose, rtol=1e-4, atol=0.006)  # numbers that are printed have two digits


@cache
def dense() -> tuple[Array, Array]:
    """The kernel and the bias of the page's layer."""
    made = nn.Dense(3).init(jax.random.key(0), np.ones((2, 4), "float32"))["params"]
    return np.asarray(made["kernel"]), np.asarray(made["bias"])


@attack(f"{FLAX}#unbound-module", f"{FLAX}#extra-params", x=small(st.sampled_from([(2, 4), (1, 4), (0, 4)])))
def test_a_layer_is_applied_with_its_weights(x: Array) -> None:
    kernel, bias = dense()
    for entry in ("unbound-module", "extra-params"):
        [y] = fixed(f"{FLAX}#{entry}", {"jnp.ones((2, 4))).shape": "x)"}, x=x)
        near(y, x @ kernel + bias)
        refused(f"{FLAX}#{entry}", {"jnp.ones((2, 4))": "x"}, x=x)


@attack(f"{FLAX}#collection-not-found", x=small((2, 3)))
def test_both_collections_normalize(x: Array) -> None:
    [row] = fixed(f"{FLAX}#collection-not-found", {"jnp.full((2, 3), 5.0)": "x"}, x=x)
    near(row, x[0] / np.sqrt(1 + 1e-5))


@attack(f"{FLAX}#immutable-collection", x=small(st.sampled_from([(2, 3), (1, 3)])))
def test_the_averages_are_those_after_a_step(x: Array) -> None:
    [mean] = fixed(f"{FLAX}#immutable-collection", {"jnp.full((2, 3), 4.0)": "x"}, x=x)
    near(mean, x.mean(0) / 2)
    refused(f"{FLAX}#immutable-collection", {"jnp.full((2, 3), 4.0)": "x"}, x=x)


@attack(f"{FLAX}#needs-rng", f"{EQUINOX}#dropout-key", x=small((6,)))
def test_half_is_dropped_and_the_rest_doubled_or_nothing_is(x: Array) -> None:
    for entry in (f"{FLAX}#needs-rng", f"{EQUINOX}#dropout-key"):
        trained, evaluated = fixed(entry, {"jnp.ones(6)": "x"}, x=x)
        assert ((trained == 0) | (trained == 2 * x)).all()
        np.testing.assert_array_equal(evaluated, x)
        refused(entry, {"jnp.ones(6)": "x"}, x=x)


@attack(f"{FLAX}#not-passed", x=small((6,)))
def test_a_model_drops_in_training_alone(x: Array) -> None:
    evaluated, trained = fixed(f"{FLAX}#not-passed", {"jnp.ones(6)": "x"}, x=x)
    np.testing.assert_array_equal(evaluated, x)
    assert ((trained == 0) | (trained == 2 * x)).all()
    refused(f"{FLAX}#not-passed", {"jnp.ones(6)": "x"}, x=x)


@attack(f"{FLAX}#assign-submodule", x=small((3,)))
def test_a_compact_method_makes_two_layers(x: Array) -> None:
    twice = program(f"{FLAX}#assign-submodule", "Twice", nn=nn)["Twice"]()
    y, variables = twice.init_with_output(jax.random.key(0), x)
    first, second = (variables["params"][f"Dense_{i}"] for i in (1, 0))  # the inner call makes its layer last
    near(y, (x @ first["kernel"] + first["bias"]) @ second["kernel"] + second["bias"])


@attack(f"{FLAX}#name-in-use", x=small((3,)))
def test_a_layer_that_is_called_twice_has_one_kernel(x: Array) -> None:
    stacked = program(f"{FLAX}#name-in-use", "Stacked", nn=nn)["Stacked"]()
    y, variables = stacked.init_with_output(jax.random.key(0), x)
    layer, last = (variables["params"][name] for name in ("layer", "last"))
    near(y, x.astype(float) @ layer["kernel"] @ layer["kernel"] @ last["kernel"], atol=0.006 * (1 + np.abs(x).max()))


@attack(f"{FLAX}#outside-apply", x=small((3,)))
def test_an_encoder_runs_in_apply_or_when_it_is_bound(x: Array) -> None:
    changes = {"jnp.ones(3), method": "x, method", ".encoder(jnp.ones(3))": ".encoder(x)", "encoded.shape": "encoded"}
    encoded, equal = fixed(f"{FLAX}#outside-apply", changes, x=x)
    assert equal
    kernel = nn.Dense(2).init(jax.random.key(0), x)["params"]["kernel"]
    assert encoded.shape == (2,) == (x @ kernel).shape
    np.testing.assert_array_equal(fixed(f"{FLAX}#outside-apply", changes, x=0 * x)[0], [0, 0])
    refused(f"{FLAX}#outside-apply", {"coder.encoder(jnp.ones(3))": "coder.encoder(x)"}, x=x)


@attack(f"{FLAX}#frozen-module", x=small(st.sampled_from([(2,), (5,), (0,)])))
def test_what_is_sown_is_the_hidden_layer(x: Array) -> None:
    total, hidden = fixed(f"{FLAX}#frozen-module", {"jnp.array([1.0, -2.0])": "x"}, x=x)
    near(hidden, np.maximum(x, 0))
    near(total, np.maximum(x, 0).sum())


@attack(f"{FLAX}#frozen-dict", x=small((2,)))
def test_a_plain_dict_has_the_change_alone(x: Array) -> None:
    old = freeze({"kernel": x, "bias": -x})
    plain, frozen = fixed(f"{FLAX}#frozen-dict", {"jnp.ones(2)": "2 * x"}, x=x, frozen=old, unfreeze=unfreeze)
    np.testing.assert_array_equal(plain, 2 * x)
    np.testing.assert_array_equal(frozen, -x)


@attack(f"{NNX}#number-of-leaves", f"{NNX}#non-exhaustive", x=small((2, 3)))
def test_a_model_is_merged_from_all_its_states(x: Array) -> None:
    of_type = {"type(nnx.merge(graph, params, rest)).__name__": "nnx.merge(graph, params, rest)"}
    [model] = fixed(f"{NNX}#number-of-leaves", of_type)
    near(model(x, use_running_average=True), x / np.sqrt(1 + 1e-5))
    [model] = fixed(f"{NNX}#non-exhaustive", {"sorted(params), sorted(rest)": "nnx.merge(graph, params, rest)"})
    near(model(x, use_running_average=True), x / np.sqrt(1 + 1e-5))


@attack(f"{NNX}#trace-level", x=small(st.sampled_from([(1, 2), (3, 2)])))
def test_a_layer_that_is_passed_is_changed(x: Array) -> None:
    layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    before = np.asarray(layer(jax.numpy.asarray(x)))
    shrink = program(f"{NNX}#trace-level", "shrink", nnx=nnx)["shrink"]
    for times in (1, 2):  # it is compiled once
        near(shrink(layer, x), before / 2**times)


@attack(f"{FLAX}#init-without-key", seed=st.integers(0, 2**31))
def test_a_key_makes_the_weights(seed: int) -> None:
    change = {"jax.random.key(0)": "jax.random.key(seed)", '["kernel"].shape': '["kernel"]'}
    [kernel] = fixed(f"{FLAX}#init-without-key", change, seed=seed)
    expected = nn.Dense(3).init(jax.random.key(seed), np.ones((2, 4), "float32"))["params"]["kernel"]
    np.testing.assert_array_equal(kernel, expected)


@attack(f"{FLAX}#train-state", mean=small((3,)))
def test_a_step_keeps_the_statistics(mean: Array) -> None:
    changes = {"jnp.ones(3)": "mean", "state.step, state": "state.step, state.params, state"}
    step, params, statistics = fixed(f"{FLAX}#train-state", changes, mean=mean, statistics={"mean": -mean})
    kernel, bias = dense()
    assert step == 1
    near(params["kernel"], kernel - 0.1)
    near(params["bias"], bias - 0.1)
    np.testing.assert_array_equal(statistics, mean)


@attack(f"{FLAX}#post-init", features=st.integers(1, 5), width=st.integers(1, 5))
def test_a_field_sets_the_width(features: int, width: int) -> None:
    changes = {"Wide(3).init_with": "Wide(features).init_with", "jnp.ones(4)": "jnp.ones(width)"}
    [shape] = fixed(f"{FLAX}#post-init", changes, features=features, width=width)
    assert shape == (2 * features,)


@attack(f"{FLAX}#traced-module", x=small((2, 4)))
def test_a_static_module_is_applied(x: Array) -> None:
    kernel, bias = dense()
    [y] = fixed(f"{FLAX}#traced-module", {"jnp.ones((2, 4))).shape": "x)"}, x=x)
    near(y, x @ kernel + bias)


@attack(f"{NNX}#annotated-mesh", x=small((2, 2)))
def test_a_divided_layer_is_a_layer(x: Array) -> None:
    changes = {"divided(jnp.ones((1, 2))).shape": "divided(jnp.asarray(x)), divided"}
    spec, y, layer = fixed(f"{NNX}#annotated-mesh", changes, x=x)
    assert tuple(spec) == (None, "model")
    near(y, x @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...]))


@attack(f"{NNX}#raw-key", seed=st.integers(0, 2**31))
def test_a_number_and_its_key_make_the_same_weights(seed: int) -> None:
    changes = {
        "nnx.Rngs(0)": "nnx.Rngs(seed)",
        "jax.random.key(0)": "jax.random.key(seed)",
        ".kernel.shape": ".kernel[...]",
    }
    of_number, of_key = fixed(f"{NNX}#raw-key", changes, seed=seed)
    np.testing.assert_array_equal(of_number, of_key)


@attack(f"{NNX}#linen-names", x=small((2, 4)))
def test_a_linear_layer_is_called(x: Array) -> None:
    y, layer = fixed(f"{NNX}#linen-names", {"jnp.ones((2, 4))).shape": "jnp.asarray(x)), linear"}, x=x)
    near(y, x.astype(float) @ np.asarray(layer.kernel[...], float), atol=0.006 * (1 + np.abs(x).max()))


@attack(f"{NNX}#embed-integers", tokens=st.lists(st.integers(0, 4), max_size=4))
def test_rows_are_those_of_the_table(tokens: list[int]) -> None:
    given = np.array(tokens, "float32")
    rows, table = fixed(f"{NNX}#embed-integers", {".shape": ", embed.embedding[...]"}, tokens=jax.numpy.array(given))
    np.testing.assert_array_equal(rows, np.asarray(table)[np.array(tokens, int)])


@attack(f"{NNX}#heads", heads=st.integers(1, 6), features=st.integers(1, 12))
def test_heads_must_divide_the_features(heads: int, features: int) -> None:
    changes = {"num_heads=3": f"num_heads={heads}", "qkv_features=6": f"qkv_features={features}"}
    if features % heads:
        with pytest.raises(ValueError, match="must be divisible"):
            fixed(f"{NNX}#heads", changes)
    else:
        assert fixed(f"{NNX}#heads", changes) == [(1, 4, 8)]


@attack(f"{NNX}#metric-keyword", logits=small((4, 3)), labels=st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_metrics_take_their_keywords(logits: Array, labels: list[int]) -> None:
    given: dict[str, Any] = {"logits": jax.numpy.array(logits), "labels": np.array(labels)}
    loss = np.abs(logits).max() / 8
    [values] = fixed(f"{NNX}#metric-keyword", {"jnp.array(0.5)": "loss"}, loss=loss, **given)
    near(values["accuracy"], (logits.argmax(1) == np.array(labels)).mean())
    near(values["loss"], loss)
    refused(f"{NNX}#metric-keyword", **given)


@attack(f"{NNX}#aliasing", x=small((4, 4)))
def test_a_model_that_is_passed_once_is_applied_twice(x: Array) -> None:
    y, square = fixed(f"{NNX}#aliasing", {"jnp.ones((4, 4))).shape": "jnp.asarray(x)), square"}, x=x)
    kernel = np.asarray(square.kernel[...], float)
    near(y, x @ kernel @ kernel, atol=0.006 * (1 + np.abs(x).max()))


@attack(f"{FLAX}#class-itself", x=small((3,)))
def test_an_instance_is_initialized(x: Array) -> None:
    [y] = fixed(f"{FLAX}#class-itself", {"jnp.ones(3))[0].shape": "x)[0]"}, x=x)
    twice = program(f"{FLAX}#assign-submodule", "Twice", nn=nn)["Twice"]()
    near(y, twice.init_with_output(jax.random.key(0), x)[0])


@attack(f"{FLAX}#call-arguments", x=small((6,)), batch=st.integers(1, 3), features=st.integers(1, 4))
def test_a_cell_takes_its_carry_first(x: Array, batch: int, features: int) -> None:
    changes = {"jnp.ones(6)": "x", "(2, 3)": "(batch, features)"}
    variables, shape = fixed(f"{FLAX}#call-arguments", changes, x=x, batch=batch, features=features)
    assert variables == {}
    assert shape == (batch, 4)
    refused(f"{FLAX}#call-arguments", {"jnp.ones(6)": "x"}, x=x)


@attack(f"{FLAX}#layer-arguments", features=st.integers(1, 4), strides=st.integers(1, 3))
def test_layers_take_these_names(features: int, strides: int) -> None:
    changes = {"features=3": f"features={features}", "strides=2": f"strides={strides}"}
    assert fixed(f"{FLAX}#layer-arguments", changes) == [(2, features), (2, -(-6 // strides), -(-6 // strides), 8)]


@attack(f"{FLAX}#torch-names", x=small((2,)))
def test_activations_are_functions(x: Array) -> None:
    names, y = fixed(f"{FLAX}#torch-names", {"jnp.array([-1.0, 2.0])": "x"}, x=x)
    assert names == ["bias", "kernel"]
    np.testing.assert_array_equal(y, np.maximum(x, 0))


@attack(f"{FLAX}#initializer", x=small((3,)))
def test_a_scale_begins_at_one(x: Array) -> None:
    [y] = fixed(f"{FLAX}#initializer", {"jnp.array([1.0, 2.0, 3.0])": "x"}, x=x)
    np.testing.assert_array_equal(y, x)
    refused(f"{FLAX}#initializer", {"jnp.ones(3)": "x"}, x=x)


@attack(f"{FLAX}#jax-transform", x=small(st.sampled_from([(1, 3), (2, 3), (0, 3)])))
def test_a_layer_that_is_computed_again_is_the_same(x: Array) -> None:
    saving = program(f"{FLAX}#jax-transform", "Saving", nn=nn)["Saving"]()
    y, variables = saving.init_with_output(jax.random.key(0), x)
    [layer] = variables["params"].values()
    near(y, x.astype(float) @ layer["kernel"], atol=0.006 * (1 + np.abs(x).max(initial=0)))


@attack(f"{NNX}#state-keys", kernel=small((2, 3)))
def test_a_kernel_is_replaced_by_its_name(kernel: Array) -> None:
    changes = {'{"kernel": jnp.ones((2, 3))}': '{"kernel": kernel}', "[...].sum()": "[...]"}
    names, found = fixed(f"{NNX}#state-keys", changes, kernel=kernel)
    assert names == ["bias", "kernel"]
    np.testing.assert_array_equal(found, kernel)


@attack(f"{NNX}#nnx-transform", x=small((4,)))
def test_a_carry_is_a_running_sum(x: Array) -> None:
    shape, total, before = fixed(f"{NNX}#nnx-transform", {"jnp.arange(4.0)": "jnp.asarray(x / 8)"}, x=x)
    sums = np.cumsum(x.astype(float) / 8)
    assert shape == (2, 3)
    room = 0.006 * (1 + np.abs(x).max())
    near(total, sums[-1], atol=room)
    near(before, [0, *sums[:-1]], atol=room)


@attack(f"{NNX}#split-twice", x=small((6,)))
def test_layers_that_are_split_once_drop_apart(x: Array) -> None:
    y, layers = fixed(f"{NNX}#split-twice", {"jnp.ones(4), layers)": "x, layers), layers"}, x=jax.numpy.asarray(x / 8))
    assert ((y == 0) | (y == x)).all()  # three times kept, and three times doubled
    keys = jax.random.key_data(layers.dropout.rngs.key[...])
    assert len({tuple(key) for key in keys.tolist()}) == 3
    refused(f"{NNX}#split-twice", {"jnp.ones(4)": "x"}, x=jax.numpy.asarray(x))


@attack(f"{NNX}#channels", images=small((2, 3, 4, 5)))
def test_channels_that_are_last_are_normalized(images: Array) -> None:
    given = jax.numpy.asarray(images / 8)
    [found] = fixed(f"{NNX}#channels", {", 1, -1)).shape": ", 1, -1))"}, images=given)
    wide = np.moveaxis(images.astype(float) / 8, 1, -1)
    mean, variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
    np.testing.assert_allclose(found, (wide - mean) / np.sqrt(variance + 1e-5), rtol=1e-3, atol=0.02)
    refused(f"{NNX}#channels", images=given)


@attack(f"{FLAX}#layer-in-loop", x=small((3, 2)))
def test_a_layer_refines_three_times(x: Array) -> None:
    refine = program(f"{FLAX}#layer-in-loop", "Refine", nn=nn, jax=jax)["Refine"]()
    variables = refine.init(jax.random.key(0), x)
    [layer] = variables["params"].values()
    expected = x.astype(float)
    for _ in range(3):
        expected = expected + expected @ np.asarray(layer["kernel"], float) + np.asarray(layer["bias"], float)
    room = 1e-5 * (1 + np.abs(expected).max())
    for apply in (refine.apply, jax.jit(refine.apply)):
        np.testing.assert_allclose(apply(variables, x), expected, rtol=1e-4, atol=room)


@attack(f"{FLAX}#frozen-mask", kernel=small((2, 2)), bias=small((2,)))
def test_only_what_the_mask_names_decays(kernel: Array, bias: Array) -> None:
    weights = freeze({"kernel": kernel, "bias": bias})
    [updates] = fixed(f"{FLAX}#frozen-mask", weights=weights, unfreeze=unfreeze)
    near(updates["kernel"], -0.1 * 0.5 * kernel.astype(float))
    np.testing.assert_array_equal(updates["bias"], 0)
    refused(f"{FLAX}#frozen-mask", weights=weights)


@attack(f"{NNX}#grad-arguments", x=small(st.sampled_from([(4, 2), (1, 2)])))
def test_the_gradient_for_a_bias_counts_the_rows(x: Array) -> None:
    [bias] = fixed(f"{NNX}#grad-arguments", x=x)
    near(bias, [len(x)])
    [kernel] = fixed(f"{NNX}#grad-arguments", {'["bias"]': '["kernel"]'}, x=np.clip(x, -9, 9))
    near(kernel[:, 0], np.clip(x, -9, 9).astype(float).sum(0))
    refused(f"{NNX}#grad-arguments", x=x)
