"""Programs about Flax NNX, against the same sums in NumPy or against the model's own parts."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.strategies import arrays, assert_same

Array = np.ndarray[Any, Any]
PAGE, MORE = "answers/nnx.md", "answers/nnx-transforms.md"
# Slow are those that compile much.
SEEDS = st.integers(0, 2**31 - 1)
ROWS = arrays(st.sampled_from([(0, 2), (3, 2)]), "float32", odd=False)


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def linear(layer: Any, x: Array) -> Array:
    """Return the output of a linear layer, in float64."""
    found: Array = np.asarray(x, np.float64) @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...])
    return found


def pair(seed: int, make: Callable[..., nnx.Module] = nnx.Linear) -> tuple[Any, Any]:
    """Two layers of two inputs and outputs."""
    rngs = nnx.Rngs(seed)
    return make(2, 2, rngs=rngs), make(2, 2, rngs=rngs)


@partial(jax.jit, static_argnums=0)
def merged(structure: Any, state: Any, x: Any) -> Any:
    """Return the output of a model that was split."""
    return nnx.merge(structure, state)(x)


@slow_attack(f"{PAGE}#define", f"{PAGE}#split-merge", x=ROWS, seed=SEEDS)
def test_a_model_computes_what_its_layers_do(x: Array, seed: int) -> None:
    model = program(f"{PAGE}#define", "MLP")["MLP"]((2, 3, 1), rngs=nnx.Rngs(seed))
    expected = linear(model.out, relu(linear(model.hidden, x)))
    assert_same(model(x), expected)
    structure, state = nnx.split(model)
    assert_same(merged(structure, state, x), expected)
    nnx.update(model, jax.tree.map(jnp.zeros_like, state))
    assert_same(model(x), np.zeros((len(x), 1)))


@slow_attack(f"{PAGE}#list-of-layers", f"{PAGE}#surgery", seed=SEEDS, which=st.integers(0, 3))
def test_layers_in_a_list_are_called_in_order(seed: int, which: int) -> None:
    stack = program(f"{PAGE}#list-of-layers", "Stack")["Stack"](nnx.List, nnx.Rngs(seed))
    assert len(nnx.to_flat_state(nnx.state(stack, nnx.Param))) == 8
    stack.layers[which] = nnx.Linear(3, 3, rngs=nnx.Rngs(seed + 1))
    x = expected = np.ones((2, 3), np.float32)
    for layer in stack.layers:
        expected = relu(linear(layer, expected))
    assert_same(stack(x), expected)


@attack(f"{PAGE}#assign-static", first=st.sampled_from([None, 0, "none", 1.5]))
def test_an_attribute_that_is_data_may_become_a_layer(first: Any) -> None:
    class Block(nnx.Module):
        def __init__(self, wrap: Callable[[Any], Any]) -> None:
            self.norm = wrap(first)
            self.norm = nnx.LayerNorm(3, rngs=nnx.Rngs(0))

    assert len(jax.tree.leaves(nnx.state(Block(nnx.data), nnx.Param))) == 2
    with pytest.raises(ValueError, match="Cannot assign data value"):
        Block(lambda value: value)


@attack(f"{PAGE}#value", f"{PAGE}#plain-array", new=arrays(st.sampled_from([(), (1,), (3,), (2, 3)]), "int32"))
def test_assigning_to_a_parameter_keeps_its_shape_and_dtype(new: Array) -> None:
    model = program(f"{PAGE}#plain-array", "Scale")["Scale"]()
    if new.ndim == 2:
        with pytest.raises(ValueError, match="[Ii]ncompatible|broadcast"):
            model.scale[...] = new
        return
    model.scale[...] = new
    assert_same(model.scale[...], np.broadcast_to(new, 3))
    assert model.scale.dtype == np.float32
    x = np.arange(3, dtype=np.float32)
    assert_same(model(x), x * np.broadcast_to(new, 3))
    grads = nnx.grad(lambda model: model(x).sum())(model)
    assert list(grads) == ["scale"]
    assert_same(grads["scale"][...], x)


@attack(f"{PAGE}#filters", f"{PAGE}#count", f"{PAGE}#print", f"{PAGE}#eval-shape", n=st.integers(1, 5))
def test_filters_divide_a_model_into_parts_of_known_sizes(n: int) -> None:
    make = program(f"{PAGE}#filters", "Model", "filters")
    model = nnx.eval_shape(lambda: make["Model"](nnx.Rngs(0)))
    paths = {path: variable for path, variable in nnx.to_flat_state(nnx.state(model))}
    for wanted, expected in (
        (nnx.Param, {path for path in paths if path[-1] in ("kernel", "bias", "scale")}),
        (nnx.PathContains("encoder"), {path for path in paths if path[0] == "encoder"}),
        (nnx.Not(nnx.Param), {("norm", "mean"), ("norm", "var")}),
        (make["filters"]["matrices"], {("encoder", "kernel")}),
        (make["filters"]["other parameters"], {("norm", "bias"), ("norm", "scale")}),
        (nnx.PathContains("enc"), set()),
    ):
        assert {path for path, _ in nnx.to_flat_state(nnx.state(model, wanted))} == expected
    counted = program(f"{PAGE}#count", "Model")["Model"]
    abstract = nnx.eval_shape(lambda: counted(nnx.Rngs(0)))
    assert sum(p.size for p in jax.tree.leaves(nnx.state(abstract, nnx.Param))) == 10 * 20 + 20 + 2 * 20
    layer = nnx.eval_shape(lambda: nnx.Linear(n, 3, rngs=nnx.Rngs(0)))
    assert [leaf.shape for leaf in jax.tree.leaves(nnx.state(layer))] == [(3,), (n, 3)]


@attack(f"{PAGE}#load-by-name", kernel=arrays((2, 3), odd=False), fault=st.sampled_from(["", "name", "more", "shape"]))
def test_weights_are_loaded_whole_or_not_at_all(kernel: Array, fault: str) -> None:
    load = program(f"{PAGE}#load-by-name", "load")["load"]
    model = nnx.Sequential(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
    before = nnx.to_pure_dict(nnx.state(model))
    weights = {("layers", 0, "kernel"): kernel, ("layers", 0, "bias"): np.ones(3)}
    match fault:
        case "":
            load(model, weights)
            assert_same(model(np.eye(2)), kernel + 1)
            return
        case "name":
            weights["layers", 0, "biass"] = weights.pop(("layers", 0, "bias"))
        case "more":
            weights["layers", 1, "bias"] = np.ones(3)
        case "shape":
            weights["layers", 0, "bias"] = np.ones((1, 3))
    with pytest.raises((KeyError, ValueError)):
        load(model, weights)
    assert jax.tree.all(jax.tree.map(np.array_equal, nnx.to_pure_dict(nnx.state(model)), before))


@slow_attack(f"{PAGE}#tie-weights", seed=SEEDS, scale=st.integers(-3, 3))
def test_the_gradient_of_a_shared_layer_is_the_sum_of_its_uses(seed: int, scale: int) -> None:
    model = program(f"{PAGE}#tie-weights", "Model")["Model"](nnx.Rngs(seed))
    x, kernel = np.full((1, 3), scale, np.float64), np.asarray(model.first.kernel[...], np.float64)
    found = nnx.grad(lambda model: model(jnp.asarray(x, jnp.float32)))(model)
    ones = np.ones((1, 3))
    assert_same(found["first"]["kernel"][...], (x @ kernel).T @ ones + x.T @ (ones @ kernel.T))
    for same in (nnx.clone(model), nnx.merge(*nnx.split(model))):
        assert same.first is same.second and same.first is not model.first


@slow_attack(
    f"{PAGE}#input-size",
    shape=st.tuples(st.sampled_from([1, 4, 7]), st.sampled_from([2, 5]), st.sampled_from([1, 3])),
)
def test_the_output_layer_fits_images_of_any_size(shape: tuple[int, ...]) -> None:
    classifier = program(f"{PAGE}#input-size", "Classifier")["Classifier"]
    model = nnx.eval_shape(lambda: classifier(shape, 10, nnx.Rngs(0)))
    images = jax.ShapeDtypeStruct((2, *shape), jnp.float32)
    assert jax.eval_shape(lambda model, x: model(x), model, images).shape == (2, 10)
    assert model.out.in_features == 4 * -(-shape[0] // 2) * -(-shape[1] // 2)


@attack(f"{PAGE}#rngs", seed=SEEDS, others=st.integers(0, 3), calls=st.integers(1, 3))
def test_a_named_stream_does_not_depend_on_other_streams(seed: int, others: int, calls: int) -> None:
    one, other = nnx.Rngs(0, noise=seed), nnx.Rngs(1, noise=seed)
    for _ in range(others):
        other.params()
    keys = [jax.random.key_data(one.noise()).tolist() for _ in range(calls)]
    assert keys == [jax.random.key_data(other.noise()).tolist() for _ in range(calls)]
    assert len(set(map(tuple, keys))) == calls


@attack(f"{PAGE}#no-rngs", f"{PAGE}#copy", seed=SEEDS, rate=st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_dropout_scales_what_it_keeps(seed: int, rate: float) -> None:
    x, rngs = np.arange(1, 9, dtype=np.float32), nnx.Rngs(seed)
    kept, given = nnx.Dropout(rate, rngs=rngs), nnx.Dropout(rate)
    copied = nnx.clone(kept)
    for out in (kept(x), given(x, rngs=rngs)):
        scaled = x / (1 - rate) if rate < 1 else x
        assert all(np.isclose(a, 0) or np.isclose(a, b) for a, b in zip(np.asarray(out), scaled, strict=True))
    assert_same(copied(x), nnx.clone(nnx.Dropout(rate, rngs=nnx.Rngs(seed)))(x))
    assert_same(given(x, deterministic=True), x)


@attack(f"{PAGE}#copy", seed=SEEDS, step=st.sampled_from([0.0, 0.1, 1.0]))
def test_a_soft_update_moves_the_target_by_the_step(seed: int, step: float) -> None:
    online, target = pair(seed)
    before = np.asarray(target.kernel[...])
    new = optax.incremental_update(nnx.state(online), nnx.state(target), step_size=step)
    nnx.update(target, new)
    assert_same(target.kernel[...], step * np.asarray(online.kernel[...]) + (1 - step) * before)


@slow_attack(f"{PAGE}#pytree", x=ROWS.filter(len), seed=SEEDS)
def test_a_step_through_the_tree_is_gradient_descent(x: Array, seed: int) -> None:
    model: Any = nnx.Linear(2, 1, rngs=nnx.Rngs(seed))
    new = program(f"{PAGE}#pytree", "step")["step"](model, x)
    error = 2 * linear(model, x) / len(x)
    assert_same(new.kernel[...], np.asarray(model.kernel[...]) - 0.1 * x.T @ error, rtol=1e-3, atol=1e-3)
    assert_same(new.bias[...], np.asarray(model.bias[...]) - 0.1 * error.sum(0), rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#capture", x=ROWS, seed=SEEDS)
def test_what_is_captured_is_what_the_layers_returned(x: Array, seed: int) -> None:
    model = program(f"{PAGE}#capture", "Model")["Model"](nnx.Rngs(seed))
    captured: Any = nnx.capture(model, nnx.Intermediate, method_outputs=nnx.Intermediate)
    out, seen = captured(x)
    found = nnx.to_pure_dict(seen)
    assert_same(found["hidden"][0], relu(linear(model.a, x)))
    assert_same(found["b"]["__call__"][0], out)
    assert_same(out, linear(model.b, relu(linear(model.a, x))))


LAYERS: list[tuple[Any, Callable[[nnx.Rngs], Any], tuple[int, ...]]] = [
    (linen.Dense(3), lambda rngs: nnx.Linear(4, 3, rngs=rngs), (2, 4)),
    (linen.Conv(3, (2,)), lambda rngs: nnx.Conv(4, 3, (2,), rngs=rngs), (2, 5, 4)),
    (linen.LayerNorm(), lambda rngs: nnx.LayerNorm(4, rngs=rngs), (2, 4)),
    (
        linen.BatchNorm(use_running_average=True),
        lambda rngs: nnx.BatchNorm(4, use_running_average=True, rngs=rngs),
        (2, 4),
    ),
    (linen.Embed(5, 3), lambda rngs: nnx.Embed(5, 3, rngs=rngs), (4,)),
    (
        linen.MultiHeadDotProductAttention(2),
        lambda rngs: nnx.MultiHeadAttention(2, 4, decode=False, rngs=rngs),
        (2, 3, 4),
    ),
]


@slow_attack(f"{PAGE}#linen", which=st.sampled_from(LAYERS), seed=SEEDS)
def test_weights_of_linen_give_the_same_output_in_nnx(which: Any, seed: int) -> None:
    old, make, shape = which
    key, other = jax.random.split(jax.random.key(seed))
    x = jnp.arange(4) if shape == (4,) else jax.random.normal(key, shape)
    variables = old.init(key, x)
    new = make(nnx.Rngs(seed + 1))
    weights = jax.tree.map(lambda a: jax.random.uniform(other, a.shape) + 0.5, variables)
    for collection in weights.values():
        nnx.update(new, collection)
    assert_same(new(x), old.apply(weights, x), rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#haiku", w=arrays((2, 3), odd=False), b=arrays((3,), odd=False))
def test_a_haiku_layer_is_the_same_sum(w: Array, b: Array) -> None:
    layer: Any = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    layer.kernel[...], layer.bias[...] = w, b
    x = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
    assert_same(layer(x), x @ w + b)


@slow_attack(f"{PAGE}#input-derivative", x=arrays((3, 2), odd=False).map(lambda x: np.clip(x / 8, -2, 2)), seed=SEEDS)
def test_the_derivatives_by_the_input_are_the_formulas(x: Array, seed: int) -> None:
    model = program(f"{PAGE}#input-derivative", "Net")["Net"](nnx.Rngs(seed))
    hidden, out = np.tanh(linear(model.hidden, x)), np.asarray(model.out.kernel[...], np.float64)[:, 0]
    weight = np.asarray(model.hidden.kernel[...], np.float64)
    slopes, curves = derivatives(*nnx.split(model), x)
    assert_same(slopes[:, 0], (out * (1 - hidden**2)) @ weight.T, rtol=1e-3, atol=1e-3)
    second = -2 * out * hidden * (1 - hidden**2)
    assert_same(curves, np.einsum("nh,ih,jh->nij", second, weight, weight), rtol=1e-3, atol=1e-3)


@partial(jax.jit, static_argnums=0)
def derivatives(structure: Any, state: Any, x: Any) -> Any:
    """The slopes and the curvatures of a model by its input, as in the answer."""
    model = nnx.merge(structure, state)
    return jax.vmap(jax.jacfwd(model))(x), jax.vmap(jax.hessian(lambda x: model(x)[0]))(x)


@attack(f"{MORE}#own-pytree", mean=arrays((2,), odd=False), x=arrays((2,), odd=False))
def test_a_whole_pytree_is_trained_as_its_arrays_would_be(mean: Array, x: Array) -> None:
    found = program(f"{MORE}#own-pytree", "Normal", "Model")
    model = found["Model"]()
    model.trained.set_value(found["Normal"](jnp.float32(mean), jnp.full(2, 2.0)))
    wide = mean.astype(float), x.astype(float)
    assert_same(model(jnp.float32(x)), (wide[1] - wide[0]) / 2, rtol=1e-3, atol=1e-3)
    optimizer = nnx.Optimizer(model, optax.sgd(0.5), wrt=nnx.Param)
    optimizer.update(model, nnx.grad(lambda model: model(jnp.float32(x)).sum())(model))
    assert_same(model.trained.mean, wide[0] + 0.25, rtol=1e-3, atol=1e-3)
    assert_same(model.trained.scale, 2 + 0.5 * (wide[1] - wide[0]) / 4, rtol=1e-3, atol=1e-3)
    assert not model.fixed.mean.any() and len(jax.tree.leaves(nnx.state(model, nnx.Param))) == 2


def test_what_is_not_wrapped_is_refused_or_not_seen() -> None:
    class Plain:
        def __init__(self) -> None:
            self.w = jnp.ones(2)

    normal = program(f"{MORE}#own-pytree", "Normal")["Normal"]

    class Model(nnx.Module):
        def __init__(self, held: Any) -> None:
            self.held = held

    with pytest.raises(ValueError, match="assigned to static attribute"):
        Model(normal(jnp.ones(2), jnp.ones(2)))
    assert not jax.tree.leaves(nnx.state(Model(Plain())))
    parts = Model(nnx.data(normal(nnx.Param(jnp.ones(2)), jnp.ones(3))))
    assert jax.tree.map(jnp.shape, jax.tree.leaves(nnx.state(parts, nnx.Param))) == [(2,)]
    with pytest.raises(TypeError, match="not subscriptable"):
        nnx.Param(normal(jnp.ones(2), jnp.ones(2)))[...]


@attack(f"{MORE}#to-linen", x=arrays((4, 3), odd=False), seed=SEEDS)
def test_a_wrapped_block_computes_what_its_weights_say(x: Array, seed: int) -> None:
    net = program(f"{MORE}#to-linen", "Net")["Net"]()
    x = np.clip(x, -9, 9)
    variables = net.init(jax.random.key(seed), jnp.float32(x))
    y, new = net.apply(variables, jnp.float32(x), mutable=["batch_stats"])
    weights = jax.tree.map(lambda w: np.asarray(w, np.float64), variables["params"])
    h = x.astype(float) @ weights["Dense_0"]["kernel"] + weights["Dense_0"]["bias"]
    h = h @ weights["block"]["linear"]["kernel"] + weights["block"]["linear"]["bias"]
    mean, var = h.mean(0), h.var(0)
    assert_same(new["batch_stats"]["block"]["norm"]["mean"], mean, rtol=1e-2, atol=1e-2)
    if (var > 0.1).all():
        assert_same(y, (h - mean) / np.sqrt(var + 1e-5), rtol=2e-2, atol=2e-2)
