"""Attacks on the answers about Equinox modules with state, in scans and in files: loops of NumPy, in float64."""

import io
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import arrays, assert_same

pytestmark = pytest.mark.slow  # each compiles a model
Array = np.ndarray[Any, Any]
PAGE = "answers/equinox-state.md"


def made(anchor: str, *wanted: str) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted)


def batches(shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    """Made-up arrays of a shape between -9 and 9."""
    return arrays(shape, odd=False).map(lambda x: np.clip(x, -9, 9))


@cache
def scanned() -> Any:
    """The training loop of an answer over three batches, compiled."""
    found = made("scan-carry", "step", "adam", "arrays")
    return jax.jit(lambda arrays, x: jax.lax.scan(found["step"], (arrays, found["adam"].init(arrays)), x))


def weights(model: Any) -> list[Array]:
    """The weights and biases of a network of two layers, in float64."""
    return [np.asarray(a, np.float64) for layer in model.layers for a in (layer.weight, layer.bias)]


@attack(f"{PAGE}#scan-carry", x=batches((3, 4, 2)))
def test_a_scan_of_steps_is_a_loop_of_adam(x: Array) -> None:
    start = made("scan-carry", "model")["model"]
    (_, state), losses = scanned()(eqx.filter(start, eqx.is_array), x)
    assert state[0].count == 3
    p = weights(start)
    m, v = [np.zeros_like(a) for a in p], [np.zeros_like(a) for a in p]
    for t, batch in enumerate(x.astype(float), 1):
        hidden = np.maximum(batch @ p[0].T + p[1], 0)
        out = hidden @ p[2].T + p[3]
        assert_same(losses[t - 1], np.float64(((out - 1) ** 2).mean()), rtol=2e-2, atol=2e-2)
        slope = 2 * (out - 1) / out.size
        back = slope @ p[2] * (hidden > 0)
        grads = [back.T @ batch, back.sum(0), slope.T @ hidden, slope.sum(0)]
        m = [0.9 * a + 0.1 * g for a, g in zip(m, grads, strict=True)]
        v = [0.999 * a + 0.001 * g * g for a, g in zip(v, grads, strict=True)]
        p = [
            w - 0.01 * (a / (1 - 0.9**t)) / (np.sqrt(b / (1 - 0.999**t)) + 1e-8)
            for w, a, b in zip(p, m, v, strict=True)
        ]


@attack(f"{PAGE}#own-state", x=arrays((5, 2), odd=False))
def test_the_layer_remembers_the_mean_of_all_that_it_saw(x: Array) -> None:
    layer, state = eqx.nn.make_with_state(made("own-state", "RunningMean")["RunningMean"])(2)
    for n, row in enumerate(x, 1):
        old = state
        y, state = layer(row, state)
        mean = x[:n].astype(float).mean(0)
        assert_same(y, row - mean, atol=1e-3)
        assert_same(state.get(layer.index)[1], mean, atol=1e-3)
        with pytest.raises(ValueError, match="Attempted to use old state"):
            layer(row, old)


def test_a_state_that_was_an_argument_of_a_transformation_can_be_used_again() -> None:
    layer, state = eqx.nn.make_with_state(made("own-state", "RunningMean")["RunningMean"])(2)
    x = jnp.ones(2)
    for call in (eqx.filter_jit(layer), jax.jit(layer.__call__)):
        first, second = call(x, state), call(x, state)
        assert eqx.tree_equal(first, second)
    mapped = jax.vmap(layer, in_axes=(0, None))
    assert eqx.tree_equal(mapped(jnp.ones((3, 2)), state), mapped(jnp.ones((3, 2)), state))
    _, last = jax.lax.scan(lambda s, x: layer(x, s)[::-1], state, jnp.ones((3, 2)))
    assert last.shape == (3, 2)
    with pytest.raises(ValueError, match="different structures/shapes/dtypes"):
        state.set(layer.index, (jnp.array(0), jnp.zeros(3)))


@cache
def trained() -> tuple[Any, Any, Any]:
    """Return the model of an answer, its state, and its loss with the slopes, compiled."""
    found = made("train-state", "loss_fn", "make")
    slopes: Any = eqx.filter_value_and_grad(found["loss_fn"], has_aux=True)
    return *eqx.nn.make_with_state(found["make"])(jax.random.key(0)), eqx.filter_jit(slopes)


@attack(f"{PAGE}#train-state", x=batches((2, 2)))
def test_the_loss_returns_the_next_state(x: Array) -> None:
    net, state, slopes = trained()
    (loss, state), grads = slopes(net, state, x)
    wide = x.astype(float)
    z = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    out = z @ np.asarray(net[1].weight, np.float64).T + np.asarray(net[1].bias, np.float64)
    if (np.ptp(wide, axis=0) > 0.1).all():
        assert_same(loss, np.float64(((out - 1) ** 2).mean()), rtol=2e-2, atol=2e-2)
        assert_same(grads[1].bias, (2 * (out - 1)).mean(0), rtol=2e-2, atol=2e-2)
    y, _ = eqx.nn.inference_mode(net)[0](wide.mean(0).astype(np.float32), state)
    assert_same(y, np.zeros(2), atol=2e-2)
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, (net, state))
    file.seek(0)
    assert eqx.tree_equal(eqx.tree_deserialise_leaves(file, (net, state)), (net, state))


def test_a_step_of_training_moves_the_weights_and_keeps_the_statistics() -> None:
    found = made("train-state", "step", "make", "adam")
    net, state = eqx.nn.make_with_state(found["make"])(jax.random.key(0))
    memory = found["adam"].init(eqx.filter(net, eqx.is_inexact_array))
    x = jnp.array([[3.0, 1.0], [5.0, 1.0]])
    losses = []
    for _ in range(100):
        (loss, _), _ = trained()[2](net, state, x)
        losses.append(float(loss))
        net, state, memory = found["step"](net, state, memory, x)
    assert losses[-1] < 0.5 * losses[0]
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(state))


@cache
def deep() -> tuple[Any, Any, Any]:
    """Return the layers of an answer, their state, and their call with one state for each example, compiled."""
    found = made("stacked-state", "deep", "make", "Counting")
    layers, state = found["make"](jax.random.split(jax.random.key(0), 4))
    return layers, state, jax.jit(jax.vmap(lambda x, s: found["deep"](layers, x, s)))


@attack(f"{PAGE}#stacked-state", x=arrays((3, 3), odd=False), calls=st.integers(1, 3))
def test_each_layer_has_its_own_state_and_each_example_too(x: Array, calls: int) -> None:
    layers, state, call = deep()
    states = jax.tree.map(lambda a: jnp.stack([a] * 3), state)
    for _ in range(calls):
        y, states = call(x, states)
    expected = x.astype(float)
    for weight, bias in zip(layers.linear.weight, layers.linear.bias, strict=True):
        expected = np.tanh(expected @ np.asarray(weight, np.float64).T + np.asarray(bias))
    assert_same(y, expected, rtol=1e-2, atol=1e-2)
    assert np.array_equal(states.get(layers.calls), np.full((3, 4), calls))


def test_a_batch_shares_the_state_of_stacked_batch_norms() -> None:
    class Block(eqx.Module):
        norm: eqx.nn.BatchNorm

        def __init__(self, key: Any) -> None:
            del key
            self.norm = eqx.nn.BatchNorm(3, "batch", mode="batch")

    class Both(eqx.Module):
        layers: Block

        def __init__(self) -> None:
            self.layers = eqx.filter_vmap(Block)(jax.random.split(jax.random.key(0), 2))

        def __call__(self, x: Any, state: Any) -> Any:
            arrays, rest = eqx.partition(self.layers, eqx.is_array)

            def one(x: Any, part: Any) -> Any:
                x, new = eqx.combine(part[0], rest).norm(x, part[1])
                return 2 * x + 1, new

            x, new = jax.lax.scan(one, x, (arrays, state.substate(self.layers)))
            return x, state.update(new)

    model, state = eqx.nn.make_with_state(Both)()
    x = jax.random.normal(jax.random.key(1), (64, 3))
    call = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    y, state = call(x, state)
    assert_same(y.mean(0), np.ones(3), atol=1e-2)
    [means] = [a for a in jax.tree.leaves(state) if a.shape == (2, 3) and (a < 0.05).all()]
    assert_same(means[1] / 0.01, np.ones(3), rtol=2e-2)


@cache
def twice() -> Any:
    """The call of an answer with both names, compiled."""
    found = made("two-axes", "over", "make")
    norm, state = found["make"](3, axis_name=("outer", "inner"), mode="batch")
    return eqx.filter_jit(lambda x: found["over"](found["over"](norm, "inner"), "outer")(x, state)), norm


@attack(f"{PAGE}#two-axes", x=batches((2, 5, 3)))
def test_two_names_take_the_statistics_of_all(x: Array) -> None:
    call, _ = twice()
    y, state = call(x)
    wide = x.astype(float)
    expected = (wide - wide.mean((0, 1))) / np.sqrt(wide.var((0, 1)) + 1e-5)
    assert_same(y, expected, rtol=3e-2, atol=3e-2)
    assert all(a.shape in ((), (3,)) for a in jax.tree.leaves(state))


def test_one_name_keeps_a_state_for_each_outer_element() -> None:
    found = made("two-axes", "over", "make")
    norm, state = found["make"](3, axis_name="inner", mode="batch")
    inner = found["over"](norm, "inner")
    x = jax.random.normal(jax.random.key(0), (4, 8, 3)) + jnp.arange(4.0)[:, None, None]
    y, states = jax.vmap(inner, in_axes=(0, None))(x, state)
    assert_same(y.mean(1), np.zeros((4, 3)), atol=1e-3)
    _, states = jax.vmap(inner)(x, states)
    assert {a.shape for a in jax.tree.leaves(states)} == {(4,), (4, 3)}
    plain = found["over"](found["over"](eqx.nn.inference_mode(norm), None), None)
    assert plain(x, state)[0].shape == x.shape


@cache
def waves() -> tuple[Any, Any]:
    """The sum of a wave of the answer and its slopes, compiled."""
    wave: Any = made("static-array", "Wave")["Wave"]

    def total(wave: Any, x: Any) -> Any:
        return wave(x).sum()

    slopes: Any = eqx.filter_value_and_grad(total)
    return wave, eqx.filter_jit(slopes)


@attack(f"{PAGE}#static-array", size=batches((2,)), pitch=batches((2,)))
def test_a_stopped_field_takes_part_and_gets_no_gradient(size: Array, pitch: Array) -> None:
    wave, both = waves()
    total, slopes = both(wave(jnp.asarray(size), jnp.asarray(pitch)), jnp.float32(0.5))
    sines = np.sin(pitch.astype(float) * 0.5)
    assert_same(total, np.float64((size * sines).sum()), atol=1e-3)
    assert_same(slopes.size, sines, atol=1e-3)
    assert_same(slopes.pitch, np.zeros(2), 0, 0)


@pytest.mark.filterwarnings("ignore:A JAX array is being set as static")
def test_a_static_array_is_passed_by() -> None:
    class Static(eqx.Module):
        w: Any
        c: Any = eqx.field(static=True)

    made_static = Static(jnp.ones(2), jnp.array([5.0, 6.0]))
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, made_static)
    file.seek(0)
    assert (eqx.tree_deserialise_leaves(file, Static(jnp.zeros(2), jnp.zeros(2))).c == 0).all()
    assert (jax.tree.map(lambda a: 2 * a, made_static).c == made_static.c).all()
    traces = []

    @eqx.filter_jit
    def times(s: Any) -> Any:
        traces.append(s)
        return s.w * s.c

    for c in (1.0, 2.0, 1.0):
        assert_same(times(Static(jnp.ones(2), jnp.array([c]))), np.full(2, c))
    assert len(traces) == 2
    leaked = eqx.filter_jit(lambda a: Static(a, 2 * a))(jnp.ones(2))
    with pytest.raises(jax.errors.UnexpectedTracerError):
        leaked.c + 1
    with pytest.raises(ValueError, match="comparable"):
        for c in (1.0, 2.0):
            times(Static(jnp.ones(2), jnp.array([c, c])))


@attack(f"{PAGE}#changed-model", weight=arrays((8, 2), odd=False))
def test_the_layers_of_the_file_arrive_in_the_new_model(weight: Array) -> None:
    found = made("changed-model", "make", "like")
    first = eqx.tree_at(lambda m: m.layers[0].weight, found["make"](3, 1), jnp.asarray(weight))
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, first)
    file.seek(0)
    old = eqx.tree_deserialise_leaves(file, found["like"])
    new = eqx.tree_at(lambda m: m.layers[0], found["make"](5, 2), old.layers[0])
    hidden = np.maximum(weight.astype(float) @ np.ones(2) + np.asarray(first.layers[0].bias), 0)
    assert_same(jax.nn.relu(new.layers[0](jnp.ones(2))), hidden, atol=1e-3)


def test_a_new_leaf_can_be_skipped_and_one_of_the_file_gives_its_array_to_the_next() -> None:
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, (jnp.full(2, 1.0), jnp.full(2, 2.0)))
    read: Any = eqx.default_deserialise_filter_spec

    def load(like: Any, spec: Any) -> list[float]:
        file.seek(0)
        return [float(a[0]) for a in eqx.tree_deserialise_leaves(file, like, spec)]

    zeros = jnp.zeros(2)
    assert load((zeros, zeros, zeros), (read, read, lambda f, leaf: leaf)) == [1, 2, 0]
    with pytest.raises(RuntimeError):
        load((zeros, zeros, zeros), read)
    assert load((zeros, zeros, zeros), (read, lambda f, leaf: leaf, read)) == [1, 0, 2]
    assert load((zeros, jnp.zeros(2)), (lambda f, leaf: leaf, read)) == [0, 1]  # the neighbor's
    with pytest.raises(RuntimeError, match="changed shape"):
        load((zeros, jnp.zeros(3)), read)


@attack(f"{PAGE}#grad-arguments", x=batches((4, 3)), y=batches((4, 2)), shift=batches((2,)))
def test_both_parts_of_a_tuple_get_the_exact_gradient(x: Array, y: Array, shift: Array) -> None:
    found = made("grad-arguments", "loss", "model")
    model = found["model"]
    filtered: Any = eqx.filter_grad
    for_model, for_shift = filtered(found["loss"])((model, jnp.float32(shift)), *map(jnp.float32, (x, y)))
    w, b = np.float64(model.weight), np.float64(model.bias)
    error = 2 * (x.astype(float) @ w.T + b + shift - y) / y.size
    exact = [error.T @ x, error.sum(0), error.sum(0)]
    for got, want in zip([for_model.weight, for_model.bias, for_shift], exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#abstract", w=batches((2,)), x=batches((2,)))
def test_only_the_complete_class_can_be_made(w: Array, x: Array) -> None:
    found = made("abstract", "Scale", "AbstractLayer")
    layer = found["Scale"](jnp.float32(w), size=2)
    np.testing.assert_allclose(eqx.filter_jit(layer)(jnp.float32(x)), np.float32(w) * np.float32(x), rtol=1e-6)

    base = found["AbstractLayer"]
    half = type(base)("Half", (base,), {"__annotations__": {"size": int}, "size": 2})  # no __call__
    for incomplete in (base, half):
        with pytest.raises(TypeError, match="abstract"):
            incomplete()


@attack(f"{PAGE}#derived", a=st.integers(1, 9), b=st.integers(-9, 9))
def test_only_a_computed_value_follows_its_fields(a: int, b: int) -> None:
    found = made("derived", "Computed", "Stored")
    for name, follows in (("Computed", True), ("Stored", False)):
        module = found[name](jnp.float32(a), jnp.float32(b))
        assert_same(module.length, np.hypot(a, b), rtol=1e-5)
        differentiate: Any = eqx.filter_grad
        slope = differentiate(lambda m: m.length)(module)
        exact = np.array([a, b]) / np.hypot(a, b) if follows else np.zeros(2)
        assert_same(np.array([slope.a, slope.b]), exact, rtol=1e-4, atol=1e-5)
        moved = eqx.tree_at(lambda m: m.a, module, jnp.float32(0))
        assert_same(moved.length, np.float64(abs(b) if follows else np.hypot(a, b)), rtol=1e-5)


@attack(f"{PAGE}#some-fields", value=arrays((3, 3), odd=False), time=arrays((3,), odd=False))
def test_a_field_without_an_axis_is_shared(value: Array, time: Array) -> None:
    found = made("some-fields", "Series", "weighted", "axes")
    series = found["Series"](jnp.float32(value), jnp.float32(time), "x")
    shared = eqx.filter_vmap(found["weighted"], in_axes=(found["axes"],))(series)
    assert_same(shared, value.astype(float) @ time, rtol=1e-3, atol=1e-2)
    assert_same(eqx.filter_vmap(found["weighted"])(series), value.sum(1, dtype=float) * time, rtol=1e-3, atol=1e-2)
    with pytest.raises(ValueError, match="pytree structure error"):
        eqx.filter_vmap(found["weighted"], in_axes=found["axes"])(series)


@attack(f"{PAGE}#subclass", size=st.integers(0, 5), seed=st.integers(0, 2**31 - 1))
def test_a_subclass_sets_the_fields_of_its_parent_and_its_own(size: int, seed: int) -> None:
    found = made("subclass", "Scale", "Affine", "Forgotten")
    key = jax.random.key(seed)
    parent, child = found["Scale"](size, key=key), found["Affine"](size, key=key)
    assert [leaf.shape for leaf in jax.tree.leaves(child)] == [(size,), (size,)]
    assert_same(child.weight, np.asarray(parent.weight, np.float64))
    assert_same(child.bias, np.zeros(size))
    with pytest.raises(TypeError, match="Field 'bias' was not initialized"):
        found["Forgotten"](size, key=key)


def test_without_an_init_the_arguments_are_the_fields_of_both_classes() -> None:
    class Parent(eqx.Module):
        a: int
        b: int = 2

    class Child(Parent):
        c: int = 3

    child = Child(1, 5, 6)
    assert (child.a, child.b, child.c) == (1, 5, 6)
    with pytest.raises(TypeError, match="non-default argument 'c' follows default argument"):

        class Refused(Parent):
            c: int  # type: ignore[misc]
