"""Attacks on the answers about derivatives: their gradients against formulas and differences, in float64."""

from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree
from jax.test_util import check_grads
from scipy import special

from tests.site.recommended.attack import PROJECT, attack, program, slow_attack
from tests.site.strategies import Transformation, arrays, assert_same, dtypes, slopes, transformations

Array = np.ndarray[Any, Any]
WRONG, RULES, SLOPES = (f"answers/{page}.md" for page in ("gradients-gone-wrong", "custom-derivatives", "derivatives"))
SMALL = st.integers(-16, 16).map(lambda n: n / 8)
NUMBERS = st.integers(-9, 9).map(float)
FEW_ROWS = arrays((3,), odd=False).map(lambda x: np.clip(x / 8, -2, 2))


@cache
def compiled(name: str, wanted: str, made: Callable[[Any], Any] = jax.jit) -> Any:
    """Return a function of a page, or what is made of it, compiled."""
    return jax.jit(made(program(name, wanted)[wanted]))


def of_sum(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient of the sum of a function's results."""
    return jax.grad(lambda x, *others: function(x, *others).sum())


def of_product(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient of the product of a function's result with a vector."""
    return jax.grad(lambda x, value: function(x) @ value)


def masked_softmax(x: Any, valid: Any) -> Any:
    """Return the weights of the elements that are valid, as debug/nans.md says."""
    return jax.nn.softmax(x, where=valid)


def slope_of_masked_softmax(x: Any, valid: Any) -> Any:
    """Return the gradient of the weights, the first taken 0 times, the second once and so on."""
    return jax.grad(lambda x: (masked_softmax(x, valid) * jnp.arange(3, dtype=x.dtype)).sum())(jnp.asarray(x))


def sinc(x: Any) -> Any:
    """Return sin(x) / x, as debug/nans.md says."""
    return jnp.sinc(x / jnp.pi)


def of_raveled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Hessian of a function of the answer's parameters, in one vector."""
    unflatten = ravel_pytree({"w": jnp.ones(2), "b": jnp.ones(())})[1]
    return jax.hessian(lambda v: function(unflatten(v)))


def of_each(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient at each of many points."""
    return jax.vmap(jax.grad(function))


def of_both(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the derivatives of all outputs by two arguments."""
    return jax.jacrev(function, argnums=(0, 1))


def by_second(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the value and the gradient by the second argument."""
    return jax.value_and_grad(function, argnums=1)


def with_extras(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the value with its extras, and the gradient."""
    return jax.value_and_grad(function, has_aux=True)


def with_weights(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the outputs, and the gradient with weights of the outputs."""

    def both(x: Any, weights: Any) -> tuple[Any, Any]:
        outputs, backward = jax.vjp(function, x)
        return outputs, backward(weights)[0]

    return both


def of_mean(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient of the mean of a function's results."""
    return jax.grad(lambda x, *others: function(x, *others).mean())


def of_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient of the first of a function's results."""
    return jax.grad(lambda x, *others: function(x, *others)[0])


def by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return both gradients of an answer's function that takes keywords."""

    def both(w: Any, scale: Any) -> tuple[Any, Any]:
        return jax.grad(function)(w, scale=scale), jax.grad(lambda scale: function(w=w, scale=scale))(scale)

    return both


def backwards(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradients by the second argument and by the first."""
    return jax.grad(function, argnums=(1, 0))


def backwards_with_weights(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient by the second argument, with weights of the outputs."""
    return lambda params, x, i, weights: jax.grad(lambda x: function(params, x, i) @ weights)(x)


def holomorphic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the complex derivative."""
    return jax.grad(function, holomorphic=True)


@attack(f"{WRONG}#where-nan", x=arrays((5,), dtypes("float")), call=transformations())
def test_a_safe_root_has_a_slope_everywhere_and_keeps_nan(x: Array, call: Transformation) -> None:
    wide = x.astype(float)
    with np.errstate(all="ignore"):
        expected = np.where(wide <= 0, 0, np.sqrt(wide))
        slope = np.where(wide <= 0, 0, 0.5 / np.sqrt(wide))
    safe = program(f"{WRONG}#where-nan", "safe")["safe"]
    assert_same(call(safe)(x), expected)
    assert_same(compiled(f"{WRONG}#where-nan", "safe", of_sum)(x), slope)


@attack(
    f"{WRONG}#norm-zero",
    v=arrays((4, 3)) | st.just(np.zeros((4, 3), np.float32)),
    call=transformations(),
)
def test_a_safe_norm_is_the_norm_and_its_slope_is_a_direction(v: Array, call: Transformation) -> None:
    name = f"{WRONG}#norm-zero"
    sizes = np.sqrt((v.astype(float) ** 2).sum(-1))
    assert_same(call(program(name, "safe_norm")["safe_norm"])(v), sizes)
    found = np.asarray(compiled(name, "safe_norm", of_sum)(v))
    for row, size, slope in zip(v.astype(float), sizes, found, strict=True):
        if np.isfinite(size):
            assert_same(slope, row / (size or 1))


@pytest.mark.parametrize(
    "v", [np.array([100, 100], np.int8), np.array([200, 100], np.uint8), [65536, 0], [1, 1j], [0, 1j]]
)
@pytest.mark.parametrize(
    "name", [(f"{WRONG}#norm-zero", "safe_norm"), ("basics/kinks.md", "safe_norm"), ("debug/nans.md", "length")]
)
def test_a_safe_norm_of_integers_or_complex_numbers_is_that_of_numpy(name: tuple[str, str], v: Any) -> None:
    found = program(*name)[name[1]](jnp.asarray(v))
    assert_same(found, np.linalg.norm(np.asarray(v).astype(complex)))


@pytest.mark.parametrize("name", [f"{WRONG}#norm-zero", "basics/kinks.md"])
def test_a_safe_norm_has_the_second_derivative_of_the_norm(name: str) -> None:
    found = jax.hessian(program(name, "safe_norm")["safe_norm"])(jnp.array([3.0, 0.0]))
    assert_same(found, [[0, 0], [0, 1 / 3]])


@attack(v=arrays((4, 3)))
def test_the_lengths_of_other_pages_keep_nan_too(v: Array) -> None:
    sizes = np.sqrt((v.astype(float) ** 2).sum(-1))
    assert_same(compiled("debug/nans.md", "length")(v), sizes)
    safe_norm = compiled("basics/kinks.md", "safe_norm")
    assert_same(np.array([safe_norm(row) for row in v]), sizes)


@attack(losses=arrays((6,)) | st.just(np.ones(6, np.float32)))
def test_the_first_bad_step_is_the_first_and_an_error_where_none_is(losses: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(losses))
    if bad.size:
        assert program("debug/nans.md", "first", losses=jnp.asarray(losses))["first"] == bad[0]
    else:
        with pytest.raises(IndexError):
            program("debug/nans.md", "first", losses=jnp.asarray(losses))


@attack(x=st.floats(1e-6, 0.02))
def test_sinc_has_a_slope_next_to_zero_in_the_versions_that_a_page_names(x: float) -> None:
    text = " ".join((PROJECT.docs / "debug/nans.md").read_text(encoding="utf-8").split())
    assert "In jax 0.10.2, the slope of `jnp.sinc` is wrong very close to zero" in text
    whole = jax.grad(lambda x: 1 - x**2 / 6)(x) if jax.__version_info__ < (0, 11) else jax.grad(sinc)(x)
    assert_same(whole, np.cos(x) / x - np.sin(x) / x**2 if x > 1e-2 else -x / 3, rtol=1e-3, atol=0)


@attack(x=st.floats(1, 1e6, width=32))
def test_sinc_loses_digits_far_from_zero_as_a_page_says(x: float) -> None:
    text = " ".join((PROJECT.docs / "debug/nans.md").read_text(encoding="utf-8").split())
    assert "At 1e6, jax 0.12 is off by about a tenth" in text
    expected = np.sin(x) / x
    assert abs(sinc(jnp.float32(x)) - expected) < 2e-7  # the angle is rounded by half a digit of x
    assert_same(jnp.sin(jnp.float32(x)) / x, np.float64(expected), rtol=1e-4, atol=1e-12)


@attack(
    x=arrays((2, 3), dtypes("float")),
    mask=st.lists(st.booleans(), min_size=6, max_size=6),
    call=transformations(),
)
def test_a_softmax_with_a_mask_is_that_of_the_valid_elements(x: Array, mask: list[bool], call: Transformation) -> None:
    """The rule of debug/nans.md, for any values of the hidden elements; a row without valid ones gets zeros."""
    valid = np.array(mask).reshape(2, 3) & np.isfinite(x)
    expected = np.zeros((2, 3))
    for row, of_row, ok in zip(expected, x.astype(float), valid, strict=True):
        if ok.any():
            row[ok] = special.softmax(of_row[ok])
    worth = np.arange(3.0)
    slope = expected * (worth - (expected * worth).sum(-1, keepdims=True))
    assert_same(call(masked_softmax)(x, valid), expected)
    assert_same(call(slope_of_masked_softmax)(x, valid), slope, atol=1e-2 if x.dtype == np.float16 else 1e-4)


@attack(v=arrays((3,), "int32"), scale=st.sampled_from([1, 9999]), kind=st.sampled_from(["i4", "u1", "?", "c8"]))
def test_the_length_of_a_page_takes_integers_and_complex_numbers(v: Array, scale: int, kind: str) -> None:
    v = v * (0.6 + 0.8j) if kind == "c8" else v * scale
    v = v.astype(kind)
    assert_same(compiled("basics/kinks.md", "safe_norm")(v), np.sqrt(np.sum(np.abs(v.astype(complex)) ** 2)))


@attack(a=st.sampled_from([1.0, 1 + 2**-20, 0.99, 0.25, 2.0, 100.0, 1e4]))
def test_a_loop_as_it_ran_has_the_slope_of_a_root(a: float) -> None:
    newton = program("basics/derivatives.md", "newton_sqrt")["newton_sqrt"]
    slope, _ = jax.grad(newton, has_aux=True)(a)
    assert_same(slope, np.float64(0.5 / np.sqrt(a)), rtol=2e-3)


@attack(f"{WRONG}#all-zero", logits=arrays((2, 2), odd=False))
def test_a_smooth_loss_has_the_slope_of_cross_entropy(logits: Array) -> None:
    found = compiled(f"{WRONG}#all-zero", "cross_entropy", jax.value_and_grad)(logits)

    def loss(z: Array) -> float:
        return float(np.mean(np.logaddexp.reduce(z, axis=1) - z[[0, 1], [0, 1]]))

    assert_same(found[0], np.float64(loss(logits.astype(float))), rtol=1e-3)
    assert_same(found[1], slopes(loss, logits), atol=1e-3)


@attack(f"{WRONG}#nan-after-steps", w=NUMBERS, x=arrays((2,), odd=False), label=arrays((2,), "bool"))
def test_a_stable_loss_is_finite_with_its_slope(w: float, x: Array, label: Array) -> None:
    stable = program(f"{WRONG}#nan-after-steps", "stable", x=jnp.asarray(x), label=jnp.asarray(label))["stable"]
    signed = np.where(label, x, -x).astype(float)
    value, slope = jax.value_and_grad(stable)(w)
    assert_same(value, np.logaddexp(0, -w * signed).mean(), rtol=1e-3)
    assert_same(slope, np.mean(-signed * special.expit(-w * signed)), rtol=1e-3, atol=1e-3)


@cache
def skipping() -> Any:
    """Return the optimizer that skips bad steps, with its update compiled."""
    optimizer = program(f"{WRONG}#skip-nan-update", "optimizer")["optimizer"]
    return optimizer, jax.jit(optimizer.update)


@attack(
    f"{WRONG}#skip-nan-update",
    steps=st.lists(st.tuples(NUMBERS, st.sampled_from([0.0, np.nan, np.inf, np.nan])), max_size=9),
)
def test_bad_steps_change_nothing_until_there_are_too_many(steps: list[tuple[float, float]]) -> None:
    optimizer, update = skipping()
    w = jnp.array([1.0, 2.0])
    state, expected, count, bad = optimizer.init(w), np.array([1.0, 2.0]), 0, 0
    mu, nu = np.zeros(2), np.zeros(2)
    for value, broken in steps:
        gradient = np.array([value, value + broken])
        updates, state = update(jnp.float32(gradient), state, w)
        w = w + updates
        bad = 0 if np.isfinite(gradient).all() else bad + 1
        if 0 < bad <= 5:
            continue
        count += 1
        with np.errstate(all="ignore"):
            mu, nu = 0.9 * mu + 0.1 * gradient, 0.999 * nu + 0.001 * gradient**2
            expected = expected - 0.1 * (mu / (1 - 0.9**count)) / (np.sqrt(nu / (1 - 0.999**count)) + 1e-8)
    assert_same(w, expected, atol=1e-3)


@attack(f"{WRONG}#none-gradient", w=arrays((2,), odd=False), scale=SMALL)
def test_only_an_array_gets_a_gradient_in_equinox(w: Array, scale: float) -> None:
    filtered: Any = eqx.filter_grad
    found = program(f"{WRONG}#none-gradient", "Model", "loss")
    for given, slope in ((scale, None), (jnp.array(scale), (w.astype(float) ** 2).sum())):
        grads = filtered(found["loss"])(found["Model"](jnp.asarray(w), given))
        assert_same(grads.weight, 2 * scale * w, rtol=1e-3)
        if slope is None:
            assert grads.scale is None
        else:
            assert_same(grads.scale, np.float64(slope))


@attack(f"{WRONG}#integer-leaves", w=NUMBERS, step=st.integers(0, 9))
def test_an_integer_beside_the_parameters_is_a_constant(w: float, step: int) -> None:
    found = program(f"{WRONG}#integer-leaves", "loss", "combined")
    assert_same(jax.grad(found["loss"])({"w": w}, step)["w"], np.float64(2 * w / (1 + step)))
    mixed = jax.grad(found["combined"], allow_int=True)({"w": w, "step": step})
    assert_same(mixed["w"], np.float64(2 * w / (1 + step)))
    assert mixed["step"].dtype == jax.dtypes.float0


@attack(f"{WRONG}#loss-shape", w=arrays((2, 1), odd=False), x=arrays((3, 2), odd=False))
def test_a_mean_and_an_element_have_their_own_slopes(w: Array, x: Array) -> None:
    name, wide = f"{WRONG}#loss-shape", x.astype(float)
    assert_same(compiled(name, "losses", of_mean)(w, x), 2 * wide.T @ (wide @ w) / 3, rtol=1e-3, atol=1e-2)
    assert_same(compiled(name, "losses", of_first)(w, x[0]), 2 * wide[:1].T @ (wide[:1] @ w), rtol=1e-3, atol=1e-2)


@slow_attack(f"{WRONG}#sampling-gradient", logits=FEW_ROWS)
def test_the_score_function_estimates_the_exact_slope(logits: Array) -> None:
    name = f"{WRONG}#sampling-gradient"
    p, reward = special.softmax(logits.astype(float)), np.array([0.0, 1.0, 5.0])
    exact = p * (reward - p @ reward)
    assert_same(compiled(name, "exact", jax.grad)(logits), exact, atol=1e-3)
    assert not compiled(name, "sampled", jax.grad)(logits).any()
    each = reward[:, None] * (np.eye(3) - p)  # the terms that are averaged
    spread = np.sqrt((p[:, None] * (each - exact) ** 2).sum(0) / 2000)
    assert (np.abs(compiled(name, "score", jax.grad)(logits) - exact) < 6 * spread + 1e-3).all()


@attack(f"{WRONG}#missing-part", w=NUMBERS)
def test_a_part_counts_if_it_is_computed_from_the_argument(w: float) -> None:
    found = program(f"{WRONG}#missing-part", "right", "through_item")
    p = {"w": jnp.float32(w)}
    assert_same(jax.grad(found["right"])(p)["w"], np.float64(2 * w))
    assert_same(jax.grad(found["through_item"])(p)["w"], np.float64(w))  # as the answer warns


@attack(f"{WRONG}#eigh-nan", a=arrays((2, 2), odd=False))
def test_an_inverse_without_vectors_has_its_slope(a: Array) -> None:
    m = a.astype(float) @ a.T / 81 + np.eye(2)
    slope = -np.linalg.inv(m).T @ np.ones((2, 2)) @ np.linalg.inv(m).T
    assert_same(compiled(f"{WRONG}#eigh-nan", "direct", jax.grad)(jnp.float32(m)), slope, rtol=1e-3, atol=1e-3)


@attack(
    f"{WRONG}#exploding",
    start=st.integers(1, 9).map(lambda n: n / 10),
    rate=st.integers(1, 17).map(lambda n: n / 5),
    window=st.sampled_from([0, 1, 2, 10, 99, 100]),
)
def test_exactly_the_last_steps_are_differentiated(start: float, rate: float, window: int) -> None:
    x, by_start, by_rate = start, 1.0, 0.0
    for i in range(100):  # rates below 3.4 are not chaotic, so float32 follows
        slope = rate * (1 - 2 * x)
        by_start, by_rate = slope * by_start, slope * by_rate + x * (1 - x)
        x = rate * x * (1 - x)
        if i < 100 - window:
            by_start = by_rate = 0.0
    found = program(f"{WRONG}#exploding", "slopes")["slopes"](start, rate, window)
    assert_same(found, np.array([by_start, by_rate]), rtol=1e-2, atol=1e-3)


@attack(f"{WRONG}#kinks-and-edges", u=arrays((2,), odd=False), v=arrays((2,), odd=False), k=st.integers(-3, 3))
def test_an_angle_by_arctan2_has_a_finite_slope(u: Array, v: Array, k: int) -> None:
    assert "`jnp.arctan2(cross, dot)`" in (PROJECT.docs / WRONG).read_text(encoding="utf-8")
    if not u.any() or not v.any():
        return  # the zero vector has no direction
    v = v if k == 0 else k * u  # often parallel, where arccos has no slope
    expected = np.arctan2(u[0] * v[1] - u[1] * v[0], u.astype(float) @ v)
    value, slope = _angle(u, v)
    assert_same(value, expected)
    turned = np.array([u[1], -u[0]]) / (u.astype(float) @ u)
    assert_same(slope, turned, rtol=1e-3)


@jax.jit
@jax.value_and_grad
def _angle(u: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.arctan2(u[0] * v[1] - u[1] * v[0], u @ v)


ODD = st.sampled_from([0.0, -0.0, 11.5, 100.0, -100.0, 1e4, -1e4, np.inf, -np.inf, np.nan]) | SMALL


@attack(f"{RULES}#which-rule", x=ODD, dtype=dtypes("float"))
def test_softplus_is_right_with_two_derivatives(x: float, dtype: np.dtype[Any]) -> None:
    wide = np.float64(dtype.type(x))
    s = special.expit(wide)
    value, slope, second = (found(jnp.asarray(x, dtype)) for found in softplus())
    with np.errstate(all="ignore"):
        assert_same(value, np.logaddexp(wide, 0))
    assert_same(slope, s)
    if np.isfinite(wide):
        assert_same(second, s * (1 - s))


@cache
def softplus() -> tuple[Any, Any, Any]:
    """Return the answer's softplus and its two derivatives, compiled."""
    found = program(f"{RULES}#which-rule", "softplus", "rule")["softplus"]
    return jax.jit(found), jax.jit(jax.jacfwd(found)), jax.jit(jax.grad(jax.grad(found)))


@attack(f"{RULES}#straight-through", x=arrays((3,), odd=False), value=arrays((3,), odd=False))
def test_a_hard_value_has_the_slope_of_the_soft_one(x: Array, value: Array) -> None:
    name = f"{RULES}#straight-through"
    found = program(name, "round_through", "hard_one_hot")
    assert_same(found["round_through"](x), np.round(x.astype(float)))
    assert_same(compiled(name, "round_through", of_sum)(x), np.ones(3))
    soft = special.softmax(x.astype(float))
    assert_same(found["hard_one_hot"](jnp.asarray(x)), np.eye(3)[x.argmax()])
    rows = np.stack([x, value])
    assert_same(found["hard_one_hot"](jnp.asarray(rows)), np.eye(3)[rows.argmax(1)])
    slope = compiled(name, "hard_one_hot", of_product)(x, value)
    assert_same(slope, soft * (value - soft @ value), rtol=1e-3, atol=1e-2)


@attack(f"{RULES}#change-backward", x=NUMBERS, strength=SMALL, call=transformations())
def test_a_gradient_is_changed_on_its_way_back_only(x: float, strength: float, call: Transformation) -> None:
    assert "`strength * x + jax.lax.stop_gradient((1 - strength) * x)`" in (PROJECT.docs / RULES).read_text("utf-8")
    reverse = program(f"{RULES}#change-backward", "reverse")["reverse"]
    ways: list[tuple[Callable[..., Any], float]] = [(reverse, -strength), (_scaled, strength)]
    for identity, factor in ways:
        assert_same(call(identity)(x, strength), np.float64(x))
        assert_same(call(squared_slope(identity))(x, strength), np.float64(factor * 2 * x))


@cache
def squared_slope(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient of a function's square."""
    return jax.grad(lambda *args: function(*args) ** 2)


def _scaled(x: Any, strength: Any) -> Any:
    return strength * x + jax.lax.stop_gradient((1 - strength) * x)


@attack(f"{RULES}#nondiff-tracer", x=arrays((4,)), mask=arrays((4,), odd=False), call=transformations())
def test_an_array_that_needs_no_gradient_is_an_argument(x: Array, mask: Array, call: Transformation) -> None:
    good = program(f"{RULES}#nondiff-tracer", "good")["good"]
    with np.errstate(all="ignore"):
        assert_same(call(good)(x, mask), x * mask)
    assert_same(compiled(f"{RULES}#nondiff-tracer", "good", of_sum)(x, mask), mask)


@attack(f"{RULES}#none-cotangent", x=arrays((3,), odd=False), i=st.integers(-3, 2), scale=SMALL)
def test_the_element_that_is_picked_gets_the_gradient(x: Array, i: int, scale: float) -> None:
    params = {"scale": jnp.float32(scale), "count": jnp.array(7)}
    value, slope = compiled(f"{RULES}#none-cotangent", "pick", by_second)(params, x, i)
    assert_same(value, np.float64(scale * x[i]))
    assert_same(slope, scale * np.eye(3)[i])


@attack(i=arrays((3,), "int32", odd=False), scale=SMALL)
def test_elements_that_are_picked_twice_get_the_gradient_twice(i: Array, scale: float) -> None:
    params = {"scale": jnp.float32(scale), "count": jnp.array(7)}
    x, weights = jnp.arange(3.0), np.array([1.0, 2.0, 4.0])
    picks = compiled(f"{RULES}#none-cotangent", "pick", backwards_with_weights)
    places = np.clip(np.where(i < 0, i + 3, i), 0, 2)  # as x[i] reads
    expected = np.zeros(3)
    np.add.at(expected, places, scale * weights)
    assert_same(picks(params, x, i, weights), expected)


@attack(f"{RULES}#several-outputs", x=NUMBERS, y=NUMBERS, size=st.sampled_from([1.0, 1e-20, 1e25]))
def test_polar_coordinates_of_any_size_have_their_slopes(x: float, y: float, size: float) -> None:
    if x == y == 0:
        return  # where the angle has no slope
    x, y = float(np.float32(x * size)), float(np.float32(y * size))
    r = np.hypot(x, y)
    assert_same(compiled(f"{RULES}#several-outputs", "polar")(x, y), np.array([r, np.arctan2(y, x)]), atol=0)
    (r_x, r_y), (angle_x, angle_y) = compiled(f"{RULES}#several-outputs", "polar", of_both)(x, y)
    assert_same([r_x, r_y], np.array([x, y]) / r)
    assert_same(np.array([angle_x, angle_y], float) * r, np.array([-y, x]) / r)


@attack(f"{RULES}#fixed-point", a=st.integers(-8, 8).map(lambda n: n / 8))
def test_a_fixed_point_has_its_implicit_slope(a: float) -> None:
    value, slope = compiled(f"{RULES}#fixed-point", "solve", jax.value_and_grad)(a)
    x = 0.5
    for _ in range(500):
        x = float(np.cos(a * x))
    assert_same(value, np.float64(x))
    assert_same(slope, np.float64(-x * np.sin(a * x) / (1 + a * np.sin(a * x))), rtol=1e-3)


@slow_attack(f"{RULES}#root-argmin", a=arrays((2,), odd=False).map(lambda a: np.clip(a / 4, -2, 2)))
def test_a_minimum_moves_with_its_parameter(a: Array) -> None:
    argmin, slope = (compiled(f"{RULES}#root-argmin", "argmin", made) for made in (jax.jit, of_sum))
    x = np.array(
        [max(np.roots([4, 0, 2, -2 * each]), key=lambda root: -abs(root.imag)).real for each in a.astype(float)]
    )
    assert_same(argmin(a), x, atol=1e-3)
    assert_same(slope(a), 2 / (2 + 12 * x**2), rtol=1e-2, atol=1e-3)


@slow_attack(f"{RULES}#external-function", x=arrays((4,), odd=False), call=transformations("jit"))
def test_a_function_of_scipy_has_its_slope(x: Array, call: Transformation) -> None:
    j0 = program(f"{RULES}#external-function", "j0", "rule")["j0"]
    wide = x.astype(float)
    assert_same(call(j0)(x), special.j0(wide), atol=1e-3)
    assert_same(called_back()(x), -special.j1(wide), atol=1e-3)


@cache
def called_back() -> Any:
    """Return the gradient of the answer's Bessel function, mapped and compiled."""
    return jax.jit(jax.vmap(jax.grad(program(f"{RULES}#external-function", "j0", "rule")["j0"])))


@attack(f"{RULES}#complex-conjugate", x=NUMBERS, y=NUMBERS)
def test_the_conjugate_points_uphill(x: float, y: float) -> None:
    if (x, y) == (1, 1):
        return  # at the minimum there is no direction
    found = compiled(f"{RULES}#complex-conjugate", "f", jax.grad)(jnp.complex64(complex(x, y)))
    uphill = slopes(lambda p: (p[0] - 1) ** 2 + (p[1] - 1) ** 2, [x, y])
    assert_same([found.conj().real, found.conj().imag], uphill, atol=1e-3)


@attack(f"{RULES}#complex-output", x=SMALL, y=SMALL)
def test_complex_slopes_are_those_of_the_formulas(x: float, y: float) -> None:
    name = f"{RULES}#complex-output"
    found = compiled(name, "square", holomorphic)(jnp.complex64(complex(x, y)))
    assert_same([found.real, found.imag], np.array([2 * x, 2 * y]))
    wave = compiled(name, "wave", jax.jacfwd)(x)
    assert_same([wave.real, wave.imag], np.array([-np.sin(x), np.cos(x)]))


@attack(f"{RULES}#closure", a=SMALL, x=NUMBERS, call=transformations())
def test_a_rule_of_all_arguments_gives_all_slopes(a: float, x: float, call: Transformation) -> None:
    scaled = program(f"{RULES}#closure", "scaled")["scaled"]
    assert_same(call(scaled)(a, x), np.float64(a * x))
    assert_same(jax.grad(scaled, argnums=(0, 1))(a, x), np.array([x, a]))


@attack(f"{RULES}#test-rule", x=arrays((2,), odd=False))
def test_a_wrong_rule_is_found_and_a_right_one_passes(x: Array) -> None:
    found = program(f"{RULES}#test-rule", "right", "wrong")
    x = np.where(np.abs(x) < 1, 1, x)
    with jax.enable_x64(True):
        given = jnp.asarray(x.astype(float))
        check_grads(found["right"], (given,), order=1, modes=["rev"])
        with pytest.raises(AssertionError, match="VJP cotangent projection"):
            check_grads(found["wrong"], (given,), order=1, modes=["rev"])


@attack(f"{RULES}#forward-mode", x=NUMBERS)
def test_both_modes_and_the_hessian_of_a_sine(x: float) -> None:
    name = f"{RULES}#forward-mode"
    assert_same(compiled(name, "both", jax.jacfwd)(x), np.cos(x))
    assert_same(compiled(name, "both", jax.jacrev)(x), np.cos(x))
    assert_same(compiled(name, "sine", jax.hessian)(x), -np.sin(x))


@attack(f"{SLOPES}#many-points", x=arrays((5,), odd=False).map(lambda x: np.clip(x, -99, 99)))
def test_a_slope_at_each_point(x: Array) -> None:
    wide = x.astype(float)
    expected = np.sin(wide) + wide * np.cos(wide)
    for made in (of_each, of_sum):
        assert_same(compiled(f"{SLOPES}#many-points", "f", made)(x), expected, rtol=1e-3, atol=1e-3)


@attack(f"{SLOPES}#several-arguments", f"{SLOPES}#keyword-arguments", x=NUMBERS, y=NUMBERS)
def test_each_argument_has_its_slope(x: float, y: float) -> None:
    name = f"{SLOPES}#several-arguments"
    assert_same(compiled(name, "f", backwards)(x, y), np.array([x**2, 2 * x * y]))
    assert_same(compiled(name, "g", jax.grad)({"y": y, "x": x})["x"], np.float64(2 * x * y))
    assert_same(compiled(f"{SLOPES}#keyword-arguments", "loss", by_name)(x, y), np.array([2 * x * y, x**2]))


@attack(f"{SLOPES}#value-and-aux", w=arrays((2,), odd=False), x=arrays((3, 2), odd=False), y=arrays((3,), odd=False))
def test_a_loss_its_extras_and_its_gradient(w: Array, x: Array, y: Array) -> None:
    both = compiled(f"{SLOPES}#value-and-aux", "loss", with_extras)
    (value, extra), slope = both(w, x, y)
    off = x.astype(float) @ w - y
    assert_same(value, (off**2).mean(), rtol=1e-3, atol=1e-2)
    assert_same(extra["worst"], np.abs(off).max(), rtol=1e-3)
    assert_same(slope, 2 * off @ x / 3, rtol=1e-3, atol=1.0 if np.abs(off).max() > 1e5 else 1e-1)


@attack(f"{SLOPES}#some-parameters", body=arrays((2, 2), odd=False), head=FEW_ROWS, x=FEW_ROWS)
def test_only_the_head_has_a_gradient(body: Array, head: Array, x: Array) -> None:
    grads = compiled(f"{SLOPES}#some-parameters", "loss", jax.grad)({"head": head[:2]}, {"body": body}, x[:2])
    hidden = np.tanh(x[:2].astype(float) @ body)
    assert list(grads) == ["head"]
    assert_same(grads["head"], 2 * (hidden @ head[:2]) * hidden, rtol=1e-3, atol=1e-3)


@attack(f"{SLOPES}#second-derivative", w=FEW_ROWS, b=SMALL)
def test_one_matrix_of_second_derivatives(w: Array, b: float) -> None:
    flat, _ = ravel_pytree({"w": jnp.asarray(w[:2]), "b": jnp.float32(b)})
    found = compiled(f"{SLOPES}#second-derivative", "loss", of_raveled)(flat)
    one, two = 2 * w[:2].astype(float)
    assert_same(found, np.array([[0, one, two], [one, 2 * b, 0], [two, 0, 2 * b]]))


@attack(f"{SLOPES}#hvp", x=arrays((4,), odd=False), v=arrays((4,), odd=False))
def test_a_product_with_the_hessian(x: Array, v: Array) -> None:
    t = np.tanh(x.astype(float))
    matrix = np.diag(2 * (1 - t**2) * (1 - 3 * t**2))
    matrix[0, 1] += 1
    matrix[1, 0] += 1
    for product in products():
        assert_same(product(x, v), matrix @ v, rtol=1e-3, atol=1e-2)


@cache
def products() -> tuple[Any, Any]:
    """Return the answer's product of its function's Hessian with a vector, and the linearized one, compiled."""
    found = program(f"{SLOPES}#hvp", "hvp", "f")
    f = found["f"]
    return jax.jit(lambda x, v: found["hvp"](f, x, v)), jax.jit(lambda x, v: jax.linearize(jax.grad(f), x)[1](v))


@attack(f"{SLOPES}#which-jacobian", x=arrays((3,), odd=False))
def test_both_modes_give_one_jacobian(x: Array) -> None:
    eye = np.eye(3)
    expected = np.einsum("ik,j->ijk", eye, x) + np.einsum("i,jk->ijk", x, eye)
    for made in (jax.jacfwd, jax.jacrev, jax.jacobian):
        assert_same(compiled(f"{SLOPES}#which-jacobian", "f", made)(x), expected)


@attack(f"{SLOPES}#input-derivatives", parts=arrays((3, 3), odd=False), t=FEW_ROWS, x=FEW_ROWS)
def test_the_residual_of_a_network_is_that_of_its_formula(parts: Array, t: Array, x: Array) -> None:
    a, b, c = parts.astype(float) / 8
    h = np.tanh(np.outer(t, a) + np.outer(x, b))
    residual = ((1 - h**2) * a * c).sum(1) - 0.1 * (-2 * h * (1 - h**2) * b**2 * c).sum(1)
    params = dict(zip("abc", np.array([a, b, c], np.float32), strict=True))
    assert_same(compiled(f"{SLOPES}#input-derivatives", "loss")(params, t, x), (residual**2).mean(), rtol=1e-3)


@attack(f"{SLOPES}#jit-grad-order", x=arrays((3,), odd=False))
def test_the_order_of_jit_and_grad_changes_no_slope(x: Array) -> None:
    found, t = program(f"{SLOPES}#jit-grad-order", "inside", "outside"), np.tanh(x.astype(float))
    for gradient in (found["inside"], found["outside"]):
        assert_same(gradient(jnp.asarray(x)), 2 * t * (1 - t**2))


@attack(f"{SLOPES}#vjp-many", w=arrays((3,), odd=False), g=arrays((2,), odd=False).map(lambda g: np.clip(g, -9, 9)))
def test_backward_passes_with_any_weights(w: Array, g: Array) -> None:
    wide = w.astype(float)
    output, found = compiled(f"{SLOPES}#vjp-many", "features", with_weights)(w, g)
    products_of_others = np.array([wide[1] * wide[2], wide[0] * wide[2], wide[0] * wide[1]])
    assert_same(output, np.array([wide.sum() ** 2, wide.prod()]), rtol=1e-3, atol=1e-2)
    assert_same(found, g[0] * 2 * wide.sum() + g[1] * products_of_others, rtol=1e-3, atol=1e-1)


@attack(f"{SLOPES}#show-formula", x=NUMBERS | st.sampled_from([1e3, 1e9, -0.0, np.inf, np.nan]))
def test_a_cube_has_the_slope_that_the_program_computes(x: float) -> None:
    assert_same(compiled(f"{SLOPES}#show-formula", "f", jax.grad)(x), np.float64(3 * x**2))
    assert_same(jax.grad(jax.nn.softplus)(x), special.expit(x))


def length_loss(w: Array) -> Any:
    """The loss of the answer whose gradient is NaN at the origin."""
    return (np.sqrt((w**2).sum()) - 1) ** 2


@cache
def of_length() -> tuple[Any, Any]:
    """The loss of an answer, and its compiled gradient."""
    loss = program(f"{WRONG}#find-nan-gradient", "loss")["loss"]
    return loss, jax.jit(jax.grad(loss))


@attack(
    f"{WRONG}#find-nan-gradient",
    w=arrays((2,)),
    scale=st.sampled_from([1.0, 1.0, 1e-30, 1e30]),
    eager=st.booleans(),
)
def test_a_gradient_is_stopped_if_it_is_nan_and_only_then(w: Array, scale: float, eager: bool) -> None:
    loss, compiled = of_length()
    w = np.asarray(w * np.float32(scale))
    slope = np.asarray(compiled(w))
    if scale == 1 and np.isfinite(w).all() and w.any():
        assert_same(slope, slopes(length_loss, w), 1e-3, 1e-3)
    with jax.debug_nans(True):
        if np.isnan(slope).any():
            with pytest.raises(FloatingPointError, match="invalid value"):
                (jax.grad(loss) if eager else compiled)(w)
        else:
            np.testing.assert_allclose((jax.grad(loss) if eager else compiled)(w), slope, rtol=1e-5)


@pytest.mark.parametrize("label", [[1, -1], [1, 0], [True, False], [1.0, -1.0]])
def test_a_stable_loss_takes_labels_of_minus_one(label: list[Any]) -> None:
    x = np.array([1.0, 2.0], np.float32)
    stable = program(f"{WRONG}#nan-after-steps", "stable", x=jnp.asarray(x), label=jnp.array(label))["stable"]
    assert_same(stable(1.0), np.logaddexp(0, [-1.0, 2.0]).mean())


@pytest.mark.parametrize(
    ("u", "v"),
    [
        (np.array([1, 200], np.uint8), np.array([200, 1], np.uint8)),
        (np.array([1e20, 0], np.float32), np.array([1e20, 5e19], np.float32)),
        (np.array([1e-25, 0], np.float32), np.array([0, 1e-25], np.float32)),
        (np.array([300, 0], np.float16), np.array([300, 200], np.float16)),
    ],
)
def test_an_angle_needs_floats_of_moderate_size(u: Array, v: Array) -> None:
    """The rule of the answer on edges: the products overflow, unless they are floats divided by the largest."""

    def angle(u: Any, v: Any) -> Any:
        return jnp.arctan2(u[0] * v[1] - u[1] * v[0], u @ v)

    a, b = u.astype(float), v.astype(float)
    expected = np.arctan2(a[0] * b[1] - a[1] * b[0], a @ b)
    assert abs(angle(jnp.asarray(u), jnp.asarray(v)) - expected) > 0.1
    given = (jnp.asarray(w, w.dtype if w.dtype.kind == "f" else "float32") for w in (u, v))
    assert_same(angle(*(w / abs(w).max() for w in given)), np.float64(expected), 1e-2, 1e-2)


@pytest.mark.parametrize("v", [np.array([3e19, 4e19], np.float32), np.array([300, 400], np.float16)])
def test_a_norm_whose_squares_do_not_fit_is_infinite(v: Array) -> None:
    for norm in (jnp.linalg.norm, program(f"{WRONG}#norm-zero", "safe_norm")["safe_norm"]):
        assert np.isinf(norm(jnp.asarray(v)))
        assert not jax.grad(norm)(jnp.asarray(v)).any()
    if v.dtype == np.float16:
        assert_same(jax.grad(norm)(jnp.asarray(v, "float32")), np.array([0.6, 0.8]))


@pytest.mark.parametrize(("huge", "clip"), [(250, None), (300, None), (300, "value"), (300, "norm")])
def test_adam_in_float16_is_clipped_by_value(huge: float, clip: str | None) -> None:
    """A clip by the norm squares a huge gradient, too, as the answer warns."""
    clips = {None: optax.identity(), "value": optax.clip(1.0), "norm": optax.clip_by_global_norm(1.0)}
    optimizer = optax.apply_if_finite(optax.chain(clips[clip], optax.adam(0.1)), max_consecutive_errors=5)
    params = jnp.ones(2, jnp.float16)
    state = optimizer.init(params)
    for g in (huge, 1.0, 1.0, 1.0):
        updates, state = optimizer.update(jnp.array([g, 1.0], jnp.float16), state, params)
        params = jnp.asarray(optax.apply_updates(params, updates))
    if clip == "norm":
        assert not np.isfinite(params).any()
    else:
        assert params[1] < 1
        assert (params[0] == 1) == (huge == 300 and clip is None)


def test_small_numbers_on_a_diagonal_must_be_larger_than_rounding() -> None:
    gradient = compiled(f"{WRONG}#eigh-nan", "by_vectors", jax.grad)
    off: dict[float, list[float]] = {1e-7: [], 1e-4: []}
    for seed in range(8):
        q = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
        m = q @ np.diag([1.0, 1, 2]) @ q.T
        exact = -np.linalg.inv(m) @ np.ones((3, 3)) @ np.linalg.inv(m)
        for size, found in off.items():
            slope = np.asarray(gradient(np.float32(m + size * np.diag([1, 2, 3]))))
            found.append(abs((slope + slope.T) / 2 - exact).max())
    assert not max(off[1e-7]) < 0.1
    assert max(off[1e-4]) < 0.02
