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


@attack(f"{FLAX}#number-of-leaves", f"{FLAX}#non-exhaustive", x=small((2, 3)))
def test_a_model_is_merged_from_all_its_states(x: Array) -> None:
    of_type = {"type(nnx.merge(graph, params, rest)).__name__": "nnx.merge(graph, params, rest)"}
    [model] = fixed(f"{FLAX}#number-of-leaves", of_type)
    near(model(x, use_running_average=True), x / np.sqrt(1 + 1e-5))
    [model] = fixed(f"{FLAX}#non-exhaustive", {"sorted(params), sorted(rest)": "nnx.merge(graph, params, rest)"})
    near(model(x, use_running_average=True), x / np.sqrt(1 + 1e-5))


@attack(f"{FLAX}#trace-level", x=small(st.sampled_from([(1, 2), (3, 2)])))
def test_a_layer_that_is_passed_is_changed(x: Array) -> None:
    layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    before = np.asarray(layer(jax.numpy.asarray(x)))
    shrink = program(f"{FLAX}#trace-level", "shrink", nnx=nnx)["shrink"]
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


@attack(f"{FLAX}#raw-key", seed=st.integers(0, 2**31))
def test_a_number_and_its_key_make_the_same_weights(seed: int) -> None:
    changes = {
        "nnx.Rngs(0)": "nnx.Rngs(seed)",
        "jax.random.key(0)": "jax.random.key(seed)",
        ".kernel.shape": ".kernel[...]",
    }
    of_number, of_key = fixed(f"{FLAX}#raw-key", changes, seed=seed)
    np.testing.assert_array_equal(of_number, of_key)


@attack(f"{FLAX}#linen-names", x=small((2, 4)))
def test_a_linear_layer_is_called(x: Array) -> None:
    y, layer = fixed(f"{FLAX}#linen-names", {"jnp.ones((2, 4))).shape": "jnp.asarray(x)), linear"}, x=x)
    near(y, x.astype(float) @ np.asarray(layer.kernel[...], float), atol=0.006 * (1 + np.abs(x).max()))


@attack(f"{FLAX}#embed-integers", tokens=st.lists(st.integers(0, 4), max_size=4))
def test_rows_are_those_of_the_table(tokens: list[int]) -> None:
    given = np.array(tokens, "float32")
    rows, table = fixed(f"{FLAX}#embed-integers", {".shape": ", embed.embedding[...]"}, tokens=jax.numpy.array(given))
    np.testing.assert_array_equal(rows, np.asarray(table)[np.array(tokens, int)])


@attack(f"{FLAX}#heads", heads=st.integers(1, 6), features=st.integers(1, 12))
def test_heads_must_divide_the_features(heads: int, features: int) -> None:
    changes = {"num_heads=3": f"num_heads={heads}", "qkv_features=6": f"qkv_features={features}"}
    if features % heads:
        with pytest.raises(ValueError, match="must be divisible"):
            fixed(f"{FLAX}#heads", changes)
    else:
        assert fixed(f"{FLAX}#heads", changes) == [(1, 4, 8)]


@attack(f"{FLAX}#metric-keyword", logits=small((4, 3)), labels=st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_metrics_take_their_keywords(logits: Array, labels: list[int]) -> None:
    given: dict[str, Any] = {"logits": jax.numpy.array(logits), "labels": np.array(labels)}
    loss = np.abs(logits).max() / 8
    [values] = fixed(f"{FLAX}#metric-keyword", {"jnp.array(0.5)": "loss"}, loss=loss, **given)
    near(values["accuracy"], (logits.argmax(1) == np.array(labels)).mean())
    near(values["loss"], loss)
    refused(f"{FLAX}#metric-keyword", **given)


@attack(f"{FLAX}#aliasing", x=small((4, 4)))
def test_a_model_that_is_passed_once_is_applied_twice(x: Array) -> None:
    y, square = fixed(f"{FLAX}#aliasing", {"jnp.ones((4, 4))).shape": "jnp.asarray(x)), square"}, x=x)
    kernel = np.asarray(square.kernel[...], float)
    near(y, x @ kernel @ kernel, atol=0.006 * (1 + np.abs(x).max()))
