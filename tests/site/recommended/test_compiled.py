"""Attacks on the answers about `jit`, recompilation, memory, speed, export and tests: what is compiled computes the same."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax import export

from tests.site.recommended.attack import PROJECT, attack, program, slow_attack
from tests.site.strategies import Transformation, arrays, assert_same, dtypes, keys, masked, slopes, transformations

Array = np.ndarray[Any, Any]
JIT, AGAIN, MEMORY, SPEED, EXPORT, TESTING = (
    f"answers/{page}.md" for page in ("jit", "recompilation", "memory", "speed", "export", "testing")
)
SMALL = st.integers(-16, 16).map(lambda n: n / 8)


@attack(
    f"{JIT}#jit-method", old=arrays((2,), odd=False), new=arrays((2,), odd=False), decays=st.lists(SMALL, max_size=3)
)
def test_a_method_sees_the_attribute_of_each_call(old: Array, new: Array, decays: list[float]) -> None:
    smoother = program(f"{JIT}#jit-method", "Filter")["Filter"](0.5)
    for decay in decays:
        smoother.decay = decay
        assert_same(smoother.smooth(old, new), decay * old + (1 - decay) * new)


@attack(f"{JIT}#numpy-inside", x=arrays((2,)))
def test_an_interpolation_inside_jit(x: Array) -> None:
    found = program(f"{JIT}#numpy-inside", "scale")["scale"](x)
    assert_same(found, np.interp(x, np.arange(3), [1.0, 10.0, 100.0]) / 2)


@attack(f"{JIT}#value-of-a-tracer", f"{JIT}#leaked-tracer", x=arrays((2,), odd=False))
def test_values_come_out_as_results(x: Array) -> None:
    size = np.linalg.norm(x.astype(float))
    clean = program(f"{JIT}#leaked-tracer", "clean")["clean"]
    assert_same(clean(x[0]), np.array([x[0] + 1, np.sin(float(x[0]))]), atol=1e-3)
    unit, norm = program(f"{JIT}#value-of-a-tracer", "step")["step"](x)
    assert_same(norm, size)
    if size:
        assert_same(unit, x / size)


@attack(f"{JIT}#stale-global", x=SMALL, rates=st.lists(SMALL, max_size=4))
def test_an_argument_is_read_at_each_call(x: float, rates: list[float]) -> None:
    current = program(f"{JIT}#stale-global", "current")["current"]
    for rate in rates:
        assert_same(current(x, rate), np.float64(rate * x))


@attack(f"{JIT}#frozen-random", key=keys(), x=SMALL)
def test_each_key_draws_anew(key: jax.Array, x: float) -> None:
    fresh = program(f"{JIT}#frozen-random", "fresh")["fresh"]
    draws = [float(fresh(k, x)) - x for k in jax.random.split(key, 3)]
    assert all(-1e-6 <= draw <= 1 for draw in draws) and len(set(draws)) == 3


@attack(f"{JIT}#state-between-calls", xs=arrays((5,), odd=False))
def test_a_running_mean_is_the_mean(xs: Array) -> None:
    update = program(f"{JIT}#state-between-calls", "update")["update"]
    state = (jnp.zeros((), int), jnp.zeros(()))
    for n, x in enumerate(xs, 1):
        before = np.float64(state[1])
        state, centered = update(state, x)
        assert_same(state[1], xs[:n].astype(float).mean(), atol=1e-3)
        assert_same(centered, x - (before + (x - before) / n), atol=1e-3)
    assert state[0] == 5


@attack(f"{JIT}#transform-order", xs=arrays((4, 3), odd=False).map(lambda x: np.clip(x, -99, 99)))
def test_nested_transformations_agree(xs: Array) -> None:
    found = program(f"{JIT}#transform-order", "outside", "inside")
    wide = np.sin(xs.astype(float)) * xs.astype(float).sum(1, keepdims=True)
    for mapped in (found["outside"], found["inside"]):
        assert_same(mapped(xs), np.round(wide, 2), atol=0.011)  # a digit at the edge may round the other way


@attack(f"{JIT}#in-and-out", x=arrays((4,), odd=False), scale=st.none() | SMALL)
def test_numbers_come_out_as_arrays(x: Array, scale: float | None) -> None:
    found = program(f"{JIT}#in-and-out", "summary")["summary"]({"x": x}, scale)
    assert_same(found["mean"], x.astype(float).mean() * (1 if scale is None else scale), atol=1e-3)
    assert (int(found["size"]), [int(n) for n in found["shape"]]) == (4, [4])


@attack(f"{JIT}#decorator-options", x=arrays((5,)), n=st.integers(0, 6), named=st.booleans())
def test_static_sizes_slice_as_in_numpy(x: Array, n: int, named: bool) -> None:
    found = program(f"{JIT}#decorator-options", "first", "every")
    assert_same(found["first"](x, n=n) if named else found["first"](x, n), x[:n])
    if n:
        assert_same(found["every"](x, n=n) if named else found["every"](x, n), x[::n])
    else:
        with pytest.raises(ValueError, match="zero"):
            found["every"](x, n)


@attack(f"{JIT}#is-traced", x=SMALL)
def test_a_check_of_values_runs_outside_only(x: float) -> None:
    root = program(f"{JIT}#is-traced", "root")["root"]
    assert_same(jax.jit(root)(x), np.sqrt(x) if x >= 0 else np.nan)
    if x >= 0:
        assert_same(root(x), np.sqrt(x))
    else:
        with pytest.raises(ValueError, match="negative"):
            root(x)


@attack(f"{JIT}#recursion", x=st.sampled_from([1, 2, 3, 7]).flatmap(lambda n: arrays((n,), odd=False)))
def test_a_recursive_sum_of_any_length(x: Array) -> None:
    assert_same(program(f"{JIT}#recursion", "pairwise_sum")["pairwise_sum"](x), x.astype(float).sum())


@attack(f"{AGAIN}#static-argument", x=arrays((5,), odd=False), size=st.integers(0, 7), centered=st.booleans())
def test_a_window_averages_or_is_refused(x: Array, size: int, centered: bool) -> None:
    window = program(f"{AGAIN}#static-argument", "window")["window"]
    if not 0 < size <= 5:
        with pytest.raises(ValueError, match="no window of"):
            window(x, size, centered)
        return
    expected = np.array([x[i : i + size].astype(float).mean() for i in range(6 - size)])
    assert_same(window(x, size, centered=centered), expected - expected.mean() * centered, atol=1e-3)


@attack(f"{AGAIN}#unhashable", x=arrays((3, 3), odd=False), axes=st.sampled_from([0, 1, (0, 1), (1,), ()]))
def test_a_spread_over_static_axes(x: Array, axes: Any) -> None:
    spread = program(f"{AGAIN}#unhashable", "spread")["spread"]
    assert_same(spread(x, axes), x.max(axes) - x.min(axes))
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        spread(x, [0, 1])


@attack(
    f"{AGAIN}#string-or-function", x=arrays((2,), odd=False), name=st.sampled_from(["tanh", "sin"]), train=st.booleans()
)
def test_a_static_function_is_the_one_that_is_passed(x: Array, name: str, train: bool) -> None:
    layer = program(f"{AGAIN}#string-or-function", "layer")["layer"]
    found = layer(x, getattr(jnp, name), mode="train" if train else "test")
    expected = getattr(np, name)(x.astype(float))
    assert_same(found, expected if train else np.round(expected, 1), atol=1e-3 if train else 0.101)


@attack(f"{AGAIN}#config-object", x=SMALL, layers=st.lists(st.integers(0, 4), max_size=3))
def test_each_configuration_has_its_own_program(x: float, layers: list[int]) -> None:
    network = program(f"{AGAIN}#config-object", "network")["network"]
    for n in layers:
        expected = x
        for _ in range(n):
            expected = np.tanh(expected)
        assert_same(network(x, config()(n)), np.float64(expected))


@cache
def config() -> Any:
    """Return the answer's class of configurations, which a hidden block redefines."""
    source = "@dataclass(frozen=True)\nclass Config:\n    layers: int = 2\n"
    assert source in (PROJECT.docs / AGAIN).read_text(encoding="utf-8")
    names: dict[str, Any] = {"dataclass": dataclass}
    exec(source, names)
    return names["Config"]


@attack(f"{AGAIN}#argnums-or-names", x=SMALL, n=st.integers(1, 4))
def test_a_power_by_name_and_by_number(x: float, n: int) -> None:
    found = program(f"{AGAIN}#argnums-or-names", "by_name", "by_number")
    for power in found["by_name"], found["by_number"]:
        assert_same(power(x, n), np.float64(x**n))
        assert_same(power(x, n=n), np.float64(x**n))


@attack(
    f"{AGAIN}#new-shapes",
    n=st.integers(1, 40),
    kind=dtypes("float", "int"),
    value=st.sampled_from([1, 3, 40, np.nan]),
    size=st.sampled_from([1, 1000]),
)
def test_a_padded_mean_is_the_mean(n: int, kind: np.dtype[Any], value: float, size: int) -> None:
    floating = kind.kind == "f"
    x = np.resize(np.array([1, -2, value if floating or not np.isnan(value) else 5]), n)
    x = (x * size if floating else x).astype(kind)
    with np.errstate(all="ignore"):
        expected = x.astype(float).mean()
    assert_same(program(f"{AGAIN}#new-shapes", "mean")["mean"](x), expected, rtol=1e-3, atol=1e-3 * size)


@attack(f"{AGAIN}#compiles-twice", f"{AGAIN}#number-argument", xs=arrays((3,), odd=False), start=SMALL)
def test_a_total_does_not_depend_on_the_kind_of_number(xs: Array, start: float) -> None:
    add = program(f"{AGAIN}#compiles-twice", "add")["add"]
    scale = program(f"{AGAIN}#number-argument", "scale")["scale"]
    for first in (start, jnp.float32(start), np.float32(start)):
        total: Any = first
        for x in xs:
            total = add(total, x)
        assert_same(total, start + xs.astype(float).sum(), atol=1e-3)
        assert_same(scale(xs, first), start * xs)


@attack(f"{AGAIN}#jit-in-loop", f"{AGAIN}#bound-method", factors=st.lists(SMALL, max_size=4), x=SMALL)
def test_what_changes_is_an_argument_of_one_program(factors: list[float], x: float) -> None:
    once = program(f"{AGAIN}#jit-in-loop", "once")["once"]
    for factor in factors:
        assert_same(once(x, factor=factor), np.float64(factor * x))
    assert_same(trainer().fast_step(x), np.float64(x / 2))


@cache
def trainer() -> Any:
    """Return a trainer of the answer."""
    return program(f"{AGAIN}#bound-method", "Trainer")["Trainer"]()


@attack(f"{AGAIN}#forbid", x=arrays((8,), odd=False), n=st.sampled_from([8, 8, 8, 7]), kind=dtypes())
def test_a_program_of_one_type_refuses_all_others(x: Array, n: int, kind: np.dtype[Any]) -> None:
    ahead = program(f"{AGAIN}#forbid", "program")["program"]
    given = x[:n].astype(kind)
    if (n, kind) == (8, np.dtype("float32")):
        assert_same(ahead(given), np.tanh(x.astype(float)).sum(), atol=1e-3)
    else:
        with pytest.raises(TypeError, match="Argument types differ"):
            ahead(given)


@attack(f"{MEMORY}#vmap-in-chunks", points=arrays((67, 3), odd=False))
def test_chunks_of_any_length_find_the_same(points: Array) -> None:
    found = chunked()
    distance = ((points[:, None].astype(float) - points) ** 2).sum(-1)
    for mapped in found:
        assert_same(mapped(points), distance.argmin(1), 0, 0)


@cache
def chunked() -> tuple[Any, Any]:
    """Return the answer's two maps, compiled."""
    names = program(f"{MEMORY}#vmap-in-chunks", "all_at_once", "in_chunks")
    return jax.jit(names["all_at_once"]), jax.jit(names["in_chunks"])


@slow_attack(f"{MEMORY}#long-loop", x=arrays((3,), odd=False).map(lambda x: np.clip(x / 8, -2, 2)))
def test_checkpoints_change_no_gradient(x: Array) -> None:
    wide, slope = x.astype(float), np.ones(3)
    for _ in range(1024):
        t = np.tanh(1.01 * wide + 0.1)
        slope = slope * (1.01 * (1 - t**2) * np.cos(wide) - t * np.sin(wide))
        wide = t * np.cos(wide)
    for gradient in looped():
        assert_same(gradient(x), slope, rtol=1e-2, atol=1e-3)


@cache
def looped() -> list[Any]:
    """Return the gradients of the answer's loops, compiled."""
    ways = program(f"{MEMORY}#long-loop", "ways", "chunk", "loop", "step")["ways"]
    return [jax.jit(jax.grad(lambda x, run=run: run(x).sum())) for run in ways.values()]


@slow_attack(f"{MEMORY}#checkpoint-without-effect", weights=arrays((2, 3, 4), odd=False), x=arrays((5, 3), odd=False))
def test_checkpointed_layers_have_the_same_gradient(weights: Array, x: Array) -> None:
    weights, x = weights / 16, np.clip(x / 9, -1, 1)

    def loss(w: Array) -> float:
        y = x.astype(float)
        for each in w:
            y = y + np.tanh(y @ each) @ each.T
        return float((y**2).mean())

    exact = slopes(loss, weights)
    for gradient in checkpointed():
        assert_same(gradient(weights, x), exact, rtol=1e-2, atol=1e-3 * max(1, float(np.abs(exact).max())))


@cache
def checkpointed() -> list[Any]:
    """Return the gradients of the answer's losses, compiled."""
    names = program(f"{MEMORY}#checkpoint-without-effect", "loss", "each_layer")
    return [jax.jit(jax.grad(names[name])) for name in ("loss", "each_layer")]


@attack(
    f"{MEMORY}#array-deleted", f"{SPEED}#updates-copy", w=arrays((4,)), x=arrays((4,), odd=False), i=st.integers(-4, 3)
)
def test_a_donated_array_is_never_read_again(w: Array, x: Array, i: int) -> None:
    step = program(f"{MEMORY}#array-deleted", "step")["step"]
    mine, given = w.copy(), jnp.asarray(w)
    kept = np.asarray(given).copy()
    with np.errstate(all="ignore"):
        expected = w - np.float32(0.1) * x
    assert_same(step(given.copy(), x), expected)
    assert_same(given, kept, 0, 0)
    assert_same(step(given, x), expected)
    assert_same(w, mine, 0, 0)  # the array of NumPy that it was made from
    put = program(f"{SPEED}#updates-copy", "put")["put"]
    changed = w.copy()
    changed[i] = 1
    assert_same(put(jnp.asarray(w), i), changed)
    assert_same(donated(put)(jnp.asarray(w), i), changed)


@cache
def donated(function: Callable[..., Any]) -> Any:
    """Return a function that may reuse the memory of its first argument, compiled."""
    return jax.jit(function, donate_argnums=0)


@attack(f"{SPEED}#slower-than-numpy", x=arrays((5,)), call=transformations())
def test_a_selu_has_a_slope_everywhere(x: Array, call: Transformation) -> None:
    selu = program(f"{SPEED}#slower-than-numpy", "selu")["selu"]
    wide = x.astype(float)
    with np.errstate(all="ignore"):
        expected = 1.0507 * np.where(wide > 0, wide, 1.6733 * np.expm1(np.minimum(wide, 0)))
        slope = 1.0507 * np.where(wide > 0, 1, 1.6733 * np.exp(np.minimum(wide, 0)))
    assert_same(call(selu)(x), expected)
    known = np.isfinite(wide) & (wide != 0)  # at 0 the two sides differ
    assert_same(np.asarray(sloped(selu)(x))[known], slope[known])


@cache
def sloped(function: Callable[..., Any]) -> Any:
    """Return the gradient of the sum of a function's results, compiled."""
    return jax.jit(jax.grad(lambda x: function(x).sum()))


@attack(f"{SPEED}#gpu-not-faster", batches=arrays((3, 4, 2), odd=False).map(lambda x: np.clip(x / 9, -1, 1)))
def test_many_steps_in_one_call_are_the_same_steps(batches: Array) -> None:
    found = program(f"{SPEED}#gpu-not-faster", "many", "one")
    w, norms = found["many"](jnp.zeros(2), batches)
    expected = np.zeros(2)
    for batch, norm in zip(batches.astype(float), norms, strict=True):
        slope = 2 * (batch @ expected - 1) @ batch / 4
        assert_same(norm, np.linalg.norm(slope), atol=1e-3)
        expected = expected - 0.1 * slope
    assert_same(w, expected, atol=1e-3)


@attack(f"{SPEED}#list-to-array", numbers=st.lists(SMALL | st.sampled_from([np.nan, np.inf, -0.0, 1e30]), max_size=4))
def test_a_list_by_way_of_numpy(numbers: list[float]) -> None:
    assert "jnp.asarray(np.array(numbers, np.float32))" in (PROJECT.docs / SPEED).read_text(encoding="utf-8")
    assert_same(jnp.asarray(np.array(numbers, np.float32)), np.asarray(jnp.array(numbers)), 0, 0)


@slow_attack(
    f"{SPEED}#loops-on-gpu",
    x=st.sampled_from([0, 1, 5]).flatmap(lambda n: arrays((n,), dtypes("float", "int"))),
)
def test_a_joined_recurrence_is_the_loop(x: Array) -> None:
    level, expected = 0.0, []
    for value in x.astype(float):
        level = 0.9 * level + 0.1 * value
        expected.append(level)
    for smoothed in recurrences():
        assert_same(smoothed(x), np.array(expected), atol=1e-3)
        low = smoothed(jnp.full(200, 100, jnp.bfloat16))  # a level in bfloat16 stops on its way
        assert_same(low[-1], 100, rtol=5e-3)


@cache
def recurrences() -> tuple[Any, Any]:
    """Return the answer's two ways without a plain loop, compiled."""
    found = program(f"{SPEED}#loops-on-gpu", "smooth", "joined")
    return jax.jit(found["joined"]), jax.jit(lambda x: found["smooth"](x, 8))


@attack(f"{SPEED}#lax-or-numpy", x=arrays((3, 4)))
def test_lax_and_numpy_compute_the_same(x: Array) -> None:
    pairs = program(f"{SPEED}#lax-or-numpy", "pairs")["pairs"]
    references: dict[str, Callable[[Array], Array]] = {
        "tanh": np.tanh,
        "multiply": lambda x: x * x,
        "max": lambda x: np.max(x, axis=0),
    }
    with np.errstate(all="ignore"):
        for name, expected in references.items():
            for function in pairs[name]:
                assert_same(function(jnp.asarray(x)), expected(x.astype(float)))


@attack(
    f"{SPEED}#scatter-slow",
    x=arrays((6, 2), dtypes("float", "int"), odd=False),
    ids=arrays((6,), "int32"),
    large=st.booleans(),
    shape=st.sampled_from([(6, 2), (6, 6, 2)]),
)
def test_sums_by_a_product_are_those_of_a_scatter(x: Array, ids: Array, large: bool, shape: tuple[int, ...]) -> None:
    x = np.resize(x, shape)
    x = x.astype(np.int32) + 2**24 + 1 if large and x.dtype == np.int32 else x
    ids = ids // 2  # -5 to 4, and places outside are dropped
    expected = np.zeros((4, *shape[1:]))
    for place, row in zip(ids, x, strict=True):
        if 0 <= place < 4:
            expected[place] += row
    found = program(f"{SPEED}#scatter-slow", "with_scatter", "with_product")
    for sums in (found["with_scatter"], found["with_product"]):
        assert sums(x, ids).dtype == x.dtype
        assert_same(sums(x, ids), expected, rtol=0 if x.dtype.kind == "i" else 1e-5)


@cache
def loaded(anchor: str, made: str = "exported") -> Any:
    """Return an exported program of a page, saved and loaded."""
    exported = program(f"{EXPORT}#{anchor}", made)[made]
    return export.deserialize(exported.serialize(vjp_order=1))


@attack(f"{EXPORT}#without-source", f"{EXPORT}#large-file", w=arrays((3, 2), odd=False), x=arrays((4, 3), odd=False))
def test_a_loaded_program_is_the_function(w: Array, x: Array) -> None:
    assert_same(predicting().call({"w": w}, x), x.astype(float) @ w, rtol=1e-3, atol=1e-2)


@cache
def predicting() -> Any:
    """Return the answer's program, loaded from its bytes."""
    return program(f"{EXPORT}#without-source", "program", "data", "params")["program"]


@attack(f"{EXPORT}#batch-size", pair=masked(2, some=False), whole=st.booleans())
def test_rows_outside_the_mask_do_not_count(pair: tuple[Array, Array], whole: bool) -> None:
    x, keep = pair[0], pair[1][:, 0] | whole
    expected = np.zeros(x.shape)
    if keep.any():
        expected[keep] = x[keep] - x[keep].astype(float).mean(0)
    assert_same(loaded("batch-size").call(x, keep), expected, atol=1e-3)


@attack(f"{EXPORT}#inconclusive", x=st.sampled_from([4, 6]).flatmap(lambda n: arrays((n,), odd=False)))
def test_functions_of_symbolic_sizes(x: Array) -> None:
    found = program(f"{EXPORT}#inconclusive", "newest", "pairs")
    assert_same(symbolic(found["newest"], "b", ("b >= 4",))(x), x[-3:])
    assert_same(symbolic(found["pairs"], "2*k", ())(x), x.astype(float).reshape(-1, 2).sum(1))


@cache
def symbolic(function: Callable[..., Any], text: str, constraints: tuple[str, ...]) -> Any:
    """Return a function exported for a symbolic size."""
    (size,) = export.symbolic_shape(text, constraints=constraints)
    return export.export(jax.jit(function))(jax.ShapeDtypeStruct((size,), jnp.float32)).call


@pytest.mark.usefixtures("compiled_anew")  # a program that came from the cache cannot be stored, as the page says
@attack(f"{EXPORT}#pickle-compiled", f"{EXPORT}#host-callbacks", x=arrays((3,), odd=False))
def test_stored_programs_compute_what_they_did(x: Array) -> None:
    assert_same(program(f"{EXPORT}#pickle-compiled", "loaded")["loaded"](x), 2 * np.sin(x.astype(float)), atol=1e-3)
    quiet = program(f"{EXPORT}#host-callbacks", "quiet")["quiet"]
    assert_same(quiet.call(x), np.tanh(x.astype(float)))


@attack(f"{EXPORT}#warm-up", w=arrays((3, 2), odd=False), x=arrays((5, 3), odd=False))
def test_a_padded_request_gets_its_rows(w: Array, x: Array) -> None:
    found = served()[8](w, np.pad(x, ((0, 3), (0, 0))))[:5]
    assert_same(found, np.tanh(x.astype(float) @ w), atol=1e-3)


@cache
def served() -> Any:
    """Return programs as the answer compiles them at startup."""
    predict = program(f"{EXPORT}#warm-up", "predict")["predict"]
    shapes = {n: jax.ShapeDtypeStruct((n, 3), jnp.float32) for n in (1, 8)}
    return {
        n: jax.jit(predict).lower(jax.ShapeDtypeStruct((3, 2), jnp.float32), x).compile() for n, x in shapes.items()
    }


@attack(f"{EXPORT}#aot-transform", f"{EXPORT}#loaded-grad-vmap", x=arrays((3,), odd=False))
def test_gradients_of_compiled_and_loaded_programs(x: Array) -> None:
    assert_same(program(f"{EXPORT}#aot-transform", "gradient")["gradient"](x), 2 * x.astype(float))
    assert_same(cubes()(x), 3 * x.astype(float) ** 2, rtol=1e-3)


@cache
def cubes() -> Any:
    """Return the gradient of the answer's exported function, after loading."""
    energy = program(f"{EXPORT}#loaded-grad-vmap", "energy")["energy"]
    exported = export.export(jax.jit(energy))(jax.ShapeDtypeStruct((3,), jnp.float32))
    return jax.jit(jax.grad(export.deserialize(exported.serialize(vjp_order=1)).call))


@attack(f"{TESTING}#tolerance", x=arrays((4,), odd=False).map(lambda x: np.clip(x, -10, 10)))
def test_correct_code_passes_with_the_tolerance(x: Array) -> None:
    wide = x.astype(float)
    np.testing.assert_allclose(jnp.tanh(x) * jnp.exp(x), np.tanh(wide) * np.exp(wide), rtol=1e-5, atol=1e-6)


@attack(f"{TESTING}#random-functions", key=keys(), rate=st.sampled_from([0.1, 0.2, 0.5]))
def test_dropout_has_the_properties_that_are_asserted(key: jax.Array, rate: float) -> None:
    dropout, n = program(f"{TESTING}#random-functions", "dropout")["dropout"], 4000
    y = np.asarray(dropout(key, jnp.ones(n), rate))
    assert_same(y, dropout(key, jnp.ones(n), rate), 0, 0)
    assert np.isin(np.unique(y), np.array([0, 1 / (1 - rate)], np.float32)).all()
    assert abs(y.mean() - 1) < 6 * (rate / (1 - rate) / n) ** 0.5
    for changed in (rate, 1.0):
        value, slope = sloped_dropout()(jnp.ones(4), key, changed)
        assert_same(value, 0 if changed == 1 else dropout(key, jnp.ones(4), changed).sum())
        assert_same(slope, np.zeros(4) if changed == 1 else dropout(key, jnp.ones(4), changed))
    for half in (jnp.float16, jnp.bfloat16):
        assert (dropout(key, jnp.ones(4, half), 1.0) == 0).all()


@cache
def sloped_dropout() -> Any:
    """Return the sum of the answer's dropout and its gradient, compiled."""
    dropout = program(f"{TESTING}#random-functions", "dropout")["dropout"]
    return jax.jit(jax.value_and_grad(lambda x, key, rate: dropout(key, x, rate).sum()))


@attack(
    f"{TESTING}#compare-trees", w=arrays((2,)), b=arrays((2,), odd=False), change=st.sampled_from([0, 0.1, -1, np.nan])
)
def test_a_difference_in_a_leaf_is_found(w: Array, b: Array, change: float) -> None:
    chex = program(f"{TESTING}#compare-trees", "chex")["chex"]
    want = {"w": jnp.asarray(w), "b": jnp.asarray(b)}
    other = {"b": jnp.asarray(b * (1 + change) + change), "w": jnp.asarray(w)}
    checks: list[Callable[[Any, Any], Any]] = [
        lambda one, two: chex.assert_trees_all_close(one, two, rtol=1e-5, atol=1e-6),
        lambda one, two: chex.assert_trees_all_equal(one, two, strict=True),
        lambda one, two: jax.tree.map(np.testing.assert_allclose, one, two),
    ]
    differ = not np.allclose(other["b"], b, rtol=1e-4, atol=1e-4)
    for check in checks:
        check(want, {"b": want["b"] + 0, "w": want["w"]})
        if differ:
            with pytest.raises(AssertionError):
                check(other, want)


@attack(f"{TESTING}#jit-and-eager", batch=arrays((2,), odd=False))
def test_a_check_passes_pure_functions_and_finds_others(batch: Array) -> None:
    found = program(f"{TESTING}#jit-and-eager", "check", "relu")
    found["check"](found["relu"], batch)
    with pytest.raises(AssertionError):
        found["check"](depends, batch)


def depends(x: Any) -> Any:
    """Return another number where it is traced."""
    return x + 1.0 if isinstance(x, jax.core.Tracer) else x


@slow_attack(f"{TESTING}#shape-annotations", one=st.integers(1, 3), two=st.integers(1, 3), x=arrays((3,), odd=False))
def test_unequal_sizes_are_refused(one: int, two: int, x: Array) -> None:
    mse = program(f"{TESTING}#shape-annotations", "mse")["mse"]
    if one == two:
        assert_same(mse(x[:one], x[:two] + 1), 1, atol=1e-3)
    else:
        with pytest.raises(Exception, match="typechecking parameter 'target'"):
            mse(x[:one], x[:two])
