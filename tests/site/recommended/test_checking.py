"""Attacks on answers about what looks into a program or checks it: it finds what is wrong, and lets pass what is right."""

import contextlib
import io
from collections.abc import Callable
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from flax import nnx
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows, visible
from tests.site.strategies import arrays, assert_same

Array = np.ndarray[Any, Any]
JIT, TESTING = "answers/jit.md", "answers/testing.md"


@attack(f"{JIT}#unwrap", x=arrays((3,)))
def test_the_function_inside_returns_the_same(x: Array) -> None:
    f = visible(f"{JIT}#unwrap")["f"]
    with np.errstate(all="ignore"):
        expected, slope = np.sin(x.astype(float)) + 1, np.cos(x.astype(float))
    array = type(jnp.ones(())).__name__
    for call, disabled in ((f, False), (f.__wrapped__, False), (f, True)):
        with contextlib.redirect_stdout(io.StringIO()) as out, jax.disable_jit(disabled):
            assert_same(call(jnp.asarray(x)), expected)
        traced = call is f and not disabled
        assert out.getvalue() in (("", "DynamicJaxprTracer\n") if traced else (f"{array}\n",))
    with contextlib.redirect_stdout(io.StringIO()):
        assert_same(sloped(f.__wrapped__)(x), slope)


@cache
def sloped(function: Callable[..., Any]) -> Any:
    """Return the derivative of a function at several points, compiled."""
    return jax.jit(jax.vmap(jax.grad(function)))


STEPS: dict[str, Callable[[Any], Any]] = {
    name: getattr(jnp, name) for name in ("sin", "cos", "tanh", "exp", "floor", "sign", "sqrt", "log1p")
}


@attack(
    f"{JIT}#see-program",
    used=st.lists(st.sampled_from(["sin", "cos", "tanh", "floor", "sign"]), min_size=1, max_size=4),
    unused=st.lists(st.sampled_from(["exp", "log1p", "sqrt"]), max_size=2),
    x=arrays((4,)),
)
def test_a_recorded_program_has_the_steps_and_computes_the_same(used: list[str], unused: list[str], x: Array) -> None:
    def chain(x: Any) -> Any:
        for name in unused:
            STEPS[name](x)
        for name in used:
            x = STEPS[name](x)
        return x

    recorded = jax.make_jaxpr(chain)(x)
    assert [step.primitive.name for step in recorded.eqns] == unused + used
    lowered = jax.jit(chain).lower(x).as_text()
    hlo = {"sin": "sine", "cos": "cosine", "exp": "exponential", "log1p": "log_plus_one"}
    for names, there in ((used, True), (unused, False)):
        assert all((f"stablehlo.{hlo.get(name, name)} " in lowered) == there for name in names)
    with np.errstate(all="ignore"):
        expected = x.astype(float)
        for name in used:
            expected = getattr(np, name)(np.float32(expected)).astype(float)
        if "floor" not in used and "sign" not in used:  # where a rounded digit becomes a step
            (found,) = jax.core.eval_jaxpr(recorded.jaxpr, recorded.consts, x)
            assert_same(found, expected, atol=1e-3)
        f, compiled = ahead()
        for call in (f, compiled):
            assert_same(call(x), np.tanh(2 * x.astype(float) + 1))


@cache
def ahead() -> tuple[Any, Any]:
    """Return the answer's function, and what the compiler made of it."""
    f = visible(f"{JIT}#see-program")["f"]
    return f, jax.jit(f).lower(jnp.ones(4)).compile()


@attack("answers/numerics.md#find-nan", p=arrays((3,)).map(lambda x: x / 16))
def test_a_nan_is_an_error_that_names_the_operation(p: Array) -> None:
    entropy, checked = compiled_entropy()
    with np.errstate(all="ignore"):
        logs = np.log(p.astype(float))
        terms = p * logs
        expected = -terms.sum()
    assert_same(entropy(p), expected)
    error, value = checked(p)
    assert_same(value, expected)
    found = np.isnan(logs).any() or np.isnan(terms).any()
    assert (error.get() is not None) == found
    with jax.debug_nans(True):
        if np.isnan(expected):
            name = "log" if np.isnan(logs).any() else "mul|reduce_sum"
            name = r"\w+" if np.isnan(p).any() else name  # it came in with the argument
            with pytest.raises(FloatingPointError, match=rf"invalid value \(nan\) encountered in ({name})"):
                entropy(p)
        else:
            assert_same(entropy(p), expected)


@cache
def compiled_entropy() -> tuple[Any, Any]:
    """Return the answer's function, and the same with its checks, compiled."""
    from jax.experimental import checkify

    shows("answers/numerics.md#find-nan", "checkify.checkify(f, errors=checkify.nan_checks)")
    entropy = visible("answers/numerics.md#find-nan")["entropy"]
    return entropy, jax.jit(checkify.checkify(entropy, errors=checkify.nan_checks))


@slow_attack(
    "answers/mixed-precision.md#flax-dtype",
    x=arrays((2, 2), odd=False).map(lambda x: x / 16),
    kind=st.sampled_from([(), ("dtype",), ("param_dtype",), ("dtype", "param_dtype")]),
    half=st.booleans(),
)
def test_a_layer_stores_and_computes_in_its_types(x: Array, kind: tuple[str, ...], half: bool) -> None:
    layer = layer_of(kind)
    given = jnp.asarray(x, jnp.bfloat16 if half else jnp.float32)
    found, kernel = applied(layer, given), layer.kernel[...]
    assert kernel.dtype == (jnp.bfloat16 if "param_dtype" in kind else jnp.float32)
    assert found.dtype == (jnp.bfloat16 if "dtype" in kind else jnp.promote_types(given.dtype, kernel.dtype))
    rounded = [np.asarray(a.astype(found.dtype).astype(jnp.float32), float) for a in (given, kernel)]
    exact = rounded[0] @ rounded[1]
    part = 2.0**-7 if found.dtype == ml_dtypes.bfloat16 else 1e-6  # a rounding of the sum, or of each of its two terms
    assert (np.abs(np.asarray(found, float) - exact) <= part * (np.abs(rounded[0]) @ np.abs(rounded[1])) + 1e-6).all()


@cache
def layer_of(kind: tuple[str, ...]) -> Any:
    """Return a layer made as the answer makes it."""
    shows("answers/mixed-precision.md#flax-dtype", "layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0), **kind)")
    types: dict[str, Any] = dict.fromkeys(kind, jnp.bfloat16)
    return nnx.Linear(2, 3, rngs=nnx.Rngs(0), **types)


applied = nnx.jit(lambda layer, x: layer(x))


@slow_attack(
    "answers/pytorch.md#register-buffer",
    x=arrays((3, 2), odd=False),
    scale=arrays((2,), odd=False),
    kernel=arrays((2, 1), odd=False),
)
def test_a_buffer_scales_and_is_not_trained(x: Array, scale: Array, kernel: Array) -> None:
    model, optimizer, step = buffered()
    x, start = x / 16, jax.tree.map(jnp.copy, nnx.state(model))
    model.scale[...], model.linear.kernel[...] = scale, kernel
    grads = step(model, optimizer, x)
    expected = (x.astype(float) * scale).sum(0)[:, None]
    pure = nnx.to_pure_dict(grads)
    assert list(pure) == ["linear"]
    assert_same(pure["linear"]["kernel"], expected, atol=1e-2)
    assert_same(pure["linear"]["bias"], [3])
    assert_same(model.scale[...], scale, 0, 0)
    assert_same(model.linear.kernel[...], kernel - 0.1 * expected, atol=1e-2)
    assert set(nnx.to_pure_dict(nnx.state(model))) == {"scale", "linear"}
    nnx.update(model, start)


@cache
def buffered() -> tuple[Any, Any, Any]:
    """Return a model of the answer, an optimizer, and a step of training."""
    shows("answers/pytorch.md#register-buffer", "nnx.grad(lambda m, x: m(x).sum())(model, ")
    model = visible("answers/pytorch.md#register-buffer")["Model"](nnx.Rngs(0))

    @nnx.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        grads = nnx.grad(lambda m, x: m(x).sum())(model, x)
        optimizer.update(model, grads)
        return grads

    return model, nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param), step


@slow_attack("answers/saving.md#nnx", dropped=st.integers(0, 4))
def test_a_saved_model_comes_back(dropped: int) -> None:
    kernel = np.array([[np.nan, -np.inf, -0.0], [1e-30, 1 / 3, dropped]], np.float32)
    shows(
        "answers/saving.md#nnx",
        "ocp.save(folder, nnx.state(model))",
        "nnx.update(other, ocp.load(folder, nnx.state(other)))",
        "`nnx.state((model, optimizer))` takes the state of both.",
    )
    names = visible("answers/saving.md#nnx")
    made = [(model, nnx.Dropout(0.5, rngs=nnx.Rngs(i)), adam(model)) for i in (0, 1) for model in [names["make"](i)]]
    model, dropout, optimizer = made[0]
    model.kernel[...] = kernel
    optimizer.step[...] = dropped
    for _ in range(dropped):
        dropout(jnp.ones(3))
    with TemporaryDirectory() as folder:
        path = names["Path"](folder) / "model"
        names["ocp"].save(path, nnx.state(made[0]))
        nnx.update(made[1], names["ocp"].load(path, nnx.state(made[1])))
    assert_same(made[1][0].kernel[...], kernel, 0, 0)
    for one, two in zip(*(jax.tree.leaves(nnx.state(each)) for each in made), strict=True):
        pair = [jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in (one, two)]
        assert pair[0].dtype == pair[1].dtype
        np.testing.assert_array_equal(pair[0], pair[1])
    assert_same(made[1][1](jnp.ones(9)), dropout(jnp.ones(9)), 0, 0)


def adam(model: Any) -> Any:
    """Return an optimizer with a state for each weight."""
    return nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)


@cache
def with_slope(wrong: float) -> Any:
    """Return a function whose gradient is wrong by this part."""

    @jax.custom_vjp
    def total(x: Any) -> Any:
        return jnp.sum(jnp.sin(x))

    total.defvjp(lambda x: (total(x), x), lambda x, g: (g * jnp.cos(x) * (1 + wrong),))
    return total


@slow_attack(
    f"{TESTING}#check-gradients",
    x=st.sampled_from([np.zeros(3), np.array([0.5, -1, 60])]),
    wrong=st.sampled_from([0, 0, 0.01, -0.5, -1, -2, np.nan]),
    large=st.sampled_from([1, 100]),
)
def test_right_gradients_pass_and_wrong_ones_do_not(x: Array, wrong: float, large: int) -> None:
    shows(f"{TESTING}#check-gradients", 'pass `modes=["rev"]`', "with jax.enable_x64(True): check_grads(")
    page = visible(f"{TESTING}#check-gradients")
    check = page["check_grads"]
    with jax.enable_x64(True):
        check(page["energy"], (jnp.asarray(large * x, float),), order=2)
        points = (jnp.asarray(x, float),)
        if wrong == 0:
            check(with_slope(wrong), points, order=1, modes=["rev"])
        elif np.abs(np.cos(x)).min() > 0.1:  # not at the top of a wave, where all slopes are zero
            with pytest.raises(AssertionError, match="Not equal to tolerance"):
                check(with_slope(wrong), points, order=1, modes=["rev"])


@attack(f"{TESTING}#one-test-x64", small=st.integers(-12, -9), wide=st.lists(st.booleans(), min_size=1, max_size=4))
def test_float64_ends_with_its_test(small: int, wide: list[bool]) -> None:
    page = visible(f"{TESTING}#one-test-x64")
    fixture = page["x64"].__wrapped__ if hasattr(page["x64"], "__wrapped__") else page["x64"].__pytest_wrapped__.obj
    for enabled in wide:
        running = fixture() if enabled else iter([None])
        next(running)
        dtype, bigger = page["test_small_step"]()
        assert (dtype, bigger) == ((jnp.float64, True) if enabled else (jnp.float32, False))
        found = plus(jnp.asarray(10.0**small))
        assert found.dtype == dtype
        assert_same(found, (1 + 10.0**small if enabled else 1) * np.ones(()), 0, 0)
        assert next(running, None) is None
        assert jnp.asarray(1.0).dtype == jnp.float32
        with pytest.raises(ZeroDivisionError), jax.enable_x64(True):  # what fails ends it, too
            1 / 0  # noqa: B018
        assert jnp.asarray(1.0).dtype == jnp.float32


plus = jax.jit(lambda x: 1 + x)


@attack(x=arrays((5,), odd=False), offset=st.sampled_from([0, 1e4, 1e8]))
def test_a_variance_in_float64_survives_an_offset(x: Array, offset: float) -> None:
    precise_var = program("debug/float64.md", "precise_var")["precise_var"]
    shifted = (x + np.float32(offset)).astype(np.float32)
    assert_same(precise_var(shifted), shifted.astype(float).var(), rtol=1e-6, atol=1e-12)


@cache
def logarithm() -> Any:
    """Return a function that is compiled once and called often."""
    return jax.jit(jnp.log)


def switch(nans: bool) -> None:
    """Turn the check on or off for a moment."""
    with jax.debug_nans(nans):
        pass


BEFORE: dict[str, Callable[[], Any]] = {
    "vmap": lambda: jax.vmap(jnp.square)(jnp.ones(3)),
    "var": lambda: jnp.var(jnp.ones(3)),
    "on": lambda: switch(True),
    "off": lambda: switch(False),
}
calls = st.lists(st.sampled_from([*BEFORE, 1.0, 0.0, np.inf, -1.0, np.nan]), max_size=6)


@attack("answers/numerics.md#find-nan", before=calls, inside=calls)
def test_the_check_around_a_program_sees_each_call(before: list[Any], inside: list[Any]) -> None:
    for call in before:
        BEFORE[call]() if call in BEFORE else logarithm()(call)
    with jax.debug_nans(True):
        for call in inside:
            bad = call not in BEFORE and not call >= 0
            with pytest.raises(FloatingPointError) if bad else contextlib.nullcontext():
                BEFORE[call]() if call in BEFORE else logarithm()(call)


@slow_attack("answers/saving.md#nnx-layers", outputs=st.integers(1, 4), seed=st.integers(0, 9))
def test_only_the_layers_of_the_filter_are_loaded(outputs: int, seed: int) -> None:
    names = visible("answers/saving.md#nnx-layers")
    ocp, net = names["ocp"], names["Net"]
    old, new = net(3, nnx.Rngs(seed)), net(outputs, nnx.Rngs(seed + 1))
    head = np.asarray(new.head.kernel[...])
    old.body.bias[...] = jnp.array([np.nan, -np.inf, seed])
    context = ocp.Context()
    context.pytree.loading.partial_load = True
    with TemporaryDirectory() as folder, context:
        ocp.save(names["Path"](folder) / "net", nnx.state(old))
        nnx.update(new, ocp.load(names["Path"](folder) / "net", nnx.state(new, nnx.PathContains("body"))))
    for name in ("kernel", "bias"):
        assert_same(getattr(new.body, name)[...], getattr(old.body, name)[...], 0, 0)
    assert_same(new.head.kernel[...], head, 0, 0)


@slow_attack("answers/saving.md#safetensors", sizes=st.lists(st.integers(1, 3), min_size=2, max_size=2))
def test_a_flat_dictionary_brings_all_weights_back_or_is_refused(sizes: list[int]) -> None:
    names = visible("answers/saving.md#safetensors")

    def make(seed: int) -> Any:
        rngs = nnx.Rngs(seed)
        parts = nnx.Linear(sizes[0], sizes[1], rngs=rngs), nnx.BatchNorm(sizes[1], rngs=rngs)
        return nnx.Sequential(*parts, nnx.Dropout(0.5, rngs=rngs))

    old, new = make(0), make(1)
    old.layers[1].mean[...] = jnp.full(sizes[1], np.nan)
    flat = {name: np.asarray(x) for name, x in names["to_flat"](old).items()}
    assert flat.keys() == {f"layers.{n}" for n in ("0.kernel", "0.bias", "1.scale", "1.bias", "1.mean", "1.var")}
    names["from_flat"](new, flat)
    for name, x in names["to_flat"](new).items():
        assert_same(x, flat[name], 0, 0)
    for wrong in (
        {**flat, "layers.0.bias": np.ones(sizes[1] + 1, np.float32)},
        {name: x for name, x in flat.items() if "mean" not in name},
        {**flat, "head": np.ones(2)},
    ):
        with pytest.raises(ValueError, match="but want"):
            names["from_flat"](new, wrong)
