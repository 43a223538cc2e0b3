"""Fixes of the error dictionary for Equinox, Grain and jaxtyping, against NumPy and what was saved."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import attack
from tests.site.recommended.entries import fixed, refused
from tests.site.strategies import arrays

Array = np.ndarray[Any, Any]
EQUINOX = "lookup/errors-equinox.md"
small = partial(arrays, dtype="float32", odd=False)
near = partial(np.testing.assert_allclose, rtol=1e-3, atol=0.011)  # numbers that are printed have two digits


@attack(f"{EQUINOX}#changed-shape", seed=st.integers(0, 2**31))
def test_a_model_is_read_as_it_was_saved(seed: int) -> None:
    model = eqx.nn.Linear(2, 3, key=jax.random.key(seed))
    folder = Path(tempfile.mkdtemp())
    eqx.tree_serialise_leaves(folder / "small.eqx", model)
    [weight] = fixed(f"{EQUINOX}#changed-shape", {".weight.shape": ".weight"}, folder=folder)
    np.testing.assert_array_equal(weight, model.weight)


@attack(
    f"{EQUINOX}#batch-structure",
    sentences=st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=2, max_size=2),
)
def test_padded_sentences_keep_their_tokens(sentences: list[list[int]]) -> None:
    tokens, lengths = fixed(f"{EQUINOX}#batch-structure", sentences=sentences)
    assert [list(row[:length]) for row, length in zip(tokens, lengths, strict=True)] == sentences
    assert not any(row[length:].any() for row, length in zip(tokens, lengths, strict=True))


@attack(f"{EQUINOX}#leaf-wrapper", weight=small((3, 2)))
def test_a_weight_is_replaced_by_twice_itself(weight: Array) -> None:
    wide = eqx.tree_at(lambda layer: layer.weight, eqx.nn.Linear(2, 3, key=jax.random.key(0)), jax.numpy.array(weight))
    [doubled] = fixed(
        f"{EQUINOX}#leaf-wrapper", {"jnp.array_equal(doubled.weight, 2 * wide.weight)": "doubled"}, wide=wide
    )
    np.testing.assert_array_equal(doubled.weight, 2 * weight)
    np.testing.assert_array_equal(doubled.bias, wide.bias)


@attack(f"{EQUINOX}#equinox-fields", scale=small(st.sampled_from([(2,), (0,), (1, 3)])))
def test_a_module_has_both_fields(scale: Array) -> None:
    [made] = fixed(f"{EQUINOX}#equinox-fields", {"jnp.ones(2)).bias": "scale)"}, scale=scale)
    np.testing.assert_array_equal(made.scale, scale)
    np.testing.assert_array_equal(made.bias, 0 * scale)


@attack(f"{EQUINOX}#plain-function", rows=st.lists(st.integers(-9, 9), min_size=3, max_size=3))
def test_an_operation_adds_one_to_each_row(rows: list[int]) -> None:
    [added] = fixed(f"{EQUINOX}#plain-function", rows=np.array(rows))
    assert added == [row + 1 for row in rows]
    refused(f"{EQUINOX}#plain-function", rows=np.array(rows))


@attack(f"{EQUINOX}#generator", rows=st.integers(0, 6))
def test_a_list_has_all_rows(rows: int) -> None:
    [listed] = fixed(f"{EQUINOX}#generator", {"range(4)": f"range({rows})"})
    assert listed == [number**2 for number in range(rows)]


@attack(f"{EQUINOX}#stop-iteration", rows=st.integers(1, 9))
def test_rows_are_repeated_without_end(rows: int) -> None:
    [batches] = fixed(f"{EQUINOX}#stop-iteration", {"range(4)": f"range({rows})"})
    assert batches == [[2 * step % rows, (2 * step + 1) % rows] for step in range(3)]
    refused(f"{EQUINOX}#stop-iteration", {"range(4)": f"range({min(rows, 4)})"})


@attack(f"{EQUINOX}#symbolic-axis", y=small((3,)), x=small((2,)))
def test_steps_have_one_size_less(y: Array, x: Array) -> None:
    [steps] = fixed(f"{EQUINOX}#symbolic-axis", {"jnp.ones(3), jnp.ones(2)": "jnp.array(y), jnp.array(x)"}, y=y, x=x)
    near(steps, y[1:] - x)


@attack(f"{EQUINOX}#torch-habits", x=small((2,)))
def test_a_call_is_that_of_the_layer(x: Array) -> None:
    layer = eqx.nn.Linear(2, 3, key=jax.random.key(7))
    y, count = fixed(f"{EQUINOX}#torch-habits", {"net(jnp.ones(2)).shape": "net(x)"}, layer=layer, x=x)
    near(y, np.asarray(layer.weight) @ x + np.asarray(layer.bias), rtol=1e-2)
    assert count == 9


@attack(f"{EQUINOX}#layer-arguments", x=small((2,)))
def test_layers_follow_each_other(x: Array) -> None:
    y, layers = fixed(f"{EQUINOX}#layer-arguments", {"(jnp.ones(2)).shape": "(x), layers"}, x=x)
    hidden = np.maximum(np.asarray(layers[0].weight) @ x, 0)
    near(y, np.asarray(layers[2].weight) @ hidden + np.asarray(layers[2].bias), rtol=1e-2)
    assert layers[0].bias is None


@attack(f"{EQUINOX}#filtered-arguments", x=small((3,)), factor=st.sampled_from([0.0, -2.0, 0.5]))
def test_one_axis_or_both_are_mapped(x: Array, factor: float) -> None:
    changes = {"(jnp.ones(3), jnp.arange(3.0))": "(x, x)", "(jnp.arange(3.0), 2.0)": f"(x, {factor})"}
    both, one = fixed(f"{EQUINOX}#filtered-arguments", changes, x=x)
    np.testing.assert_array_equal(both, x * x)
    np.testing.assert_array_equal(one, x * np.float32(factor))


@attack(f"{EQUINOX}#seed", rows=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_a_shuffled_epoch_has_each_row_once(rows: int, seed: int) -> None:
    changes = {"range(5)": f"range({rows})", "seed(0)": f"seed({seed})"}
    assert fixed(f"{EQUINOX}#seed", changes) == [list(range(rows))]


@attack(f"{EQUINOX}#shards", rows=st.integers(2, 9))
def test_two_shards_are_all_rows_of_an_even_number(rows: int) -> None:
    first, second = fixed(f"{EQUINOX}#shards", {"IndexSampler(6": f"IndexSampler({rows}", "range(6)": f"range({rows})"})
    assert len(first) == len(second) == rows // 2
    assert len({*first, *second}) == rows // 2 * 2


@attack(f"{EQUINOX}#grain-names", rows=st.lists(st.integers(-9, 9), max_size=5))
def test_each_row_is_doubled(rows: list[int]) -> None:
    [doubled] = fixed(f"{EQUINOX}#grain-names", {"np.arange(3)": str(rows)})
    assert doubled == [2 * row for row in rows]


@attack(f"{EQUINOX}#type-check", pair=small((2, 3)))
def test_arrays_of_one_size_are_multiplied(pair: Array) -> None:
    a, b = np.clip(pair, -99, 99)
    [y] = fixed(f"{EQUINOX}#type-check", {"jnp.ones(3), jnp.arange(3.0)": "jnp.array(a), jnp.array(b)"}, a=a, b=b)
    near(y, np.dot(a.astype(float), b), rtol=1e-2)


@attack(f"{EQUINOX}#annotation", rows=st.integers(0, 4))
def test_a_row_has_three_numbers(rows: int) -> None:
    total, is_one = fixed(f"{EQUINOX}#annotation", {"jnp.ones((2, 3))": f"jnp.ones(({rows}, 3))"})
    assert total == 3 * rows
    assert is_one


@attack(f"{EQUINOX}#abstract-class", x=small((3,)), weight=st.integers(-9, 9))
def test_a_complete_subclass_computes_its_loss(x: Array, weight: int) -> None:
    x = np.clip(x, -9, 9)
    changes = {"weight: float = 2.0": f"weight: float = {weight}", "jnp.array([1.0, 2.0])": "x"}
    [loss] = fixed(f"{EQUINOX}#abstract-class", changes, x=x)
    np.testing.assert_allclose(loss, weight * (x.astype(float) ** 2).sum(), rtol=1e-4)
    refused(f"{EQUINOX}#abstract-class")
