"""Attacks on the answers about numerics and mixed precision: the same numbers in float64, and each dtype's own rounding."""

import re
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from hypothesis import strategies as st
from scipy import special

from tests.site.recommended.attack import PROJECT, attack, program, slow_attack
from tests.site.strategies import arrays, assert_same, keys, slopes

Array = np.ndarray[Any, Any]
PAGE, MIXED = "answers/numerics.md", "answers/mixed-precision.md"
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)
LARGE = arrays((4,), odd=False).map(lambda x: x * np.float32(1e35)) | arrays((4,), odd=False)


@cache
def compiled(name: str, wanted: str) -> Any:
    """Return a function of a page, compiled."""
    return jax.jit(program(name, wanted)[wanted])


def text_of(page: str) -> str:
    """Return the text of a page, on one line."""
    return " ".join((PROJECT.docs / page).read_text(encoding="utf-8").split())


@attack(f"{PAGE}#differs-from-numpy", x=arrays((5,), odd=False).map(lambda x: np.clip(x, -1e3, 80)))
def test_the_libraries_agree_within_the_tolerance(x: Array) -> None:
    assert "`np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)`" in text_of(PAGE)
    for name in ("arctan", "sin", "exp", "tanh"):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x.astype(float))
        np.testing.assert_allclose(getattr(jnp, name)(x), expected, rtol=1e-5, atol=1e-6)


@attack(f"{PAGE}#jit-changes-digits", x=arrays((5,), odd=False))
def test_eager_and_compiled_results_are_close(x: Array) -> None:
    if x.std() < 0.5:
        return  # a difference of nearly equal numbers, as the answer says
    expected = (x.astype(float) - x.astype(float).mean()) / x.astype(float).std()
    assert_same(
        program(f"{PAGE}#jit-changes-digits", "standardize")["standardize"](jnp.asarray(x)), expected, atol=1e-3
    )
    assert_same(compiled(f"{PAGE}#jit-changes-digits", "standardize")(x), expected, atol=1e-3)


@jax.custom_vjp
def _product(a: Any, b: Any) -> Any:
    return a @ b


_product.defvjp(lambda a, b: (a @ b, (a, b)), lambda kept, g: (g @ kept[1].T, kept[0].T @ g))


def _plain(a: Any, b: Any) -> Any:
    return a @ b


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.checkpoint], ids=["plain", "jit", "checkpoint"])
@pytest.mark.parametrize(("product", "inside"), [(_product, 1), (_plain, 3)], ids=["own rule", "no rule"])
def test_a_precision_belongs_around_the_gradient(around: Any, product: Any, inside: int) -> None:
    def loss(a: Any, b: Any) -> Any:
        return jnp.sum(around(product)(a, b))

    def with_its_own(a: Any, b: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return loss(a, b)

    def slope(a: Any, b: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return jax.grad(loss, (0, 1))(a, b)

    square = jnp.ones((2, 2))
    for function, expected in ((jax.grad(with_its_own, (0, 1)), inside), (slope, 3)):
        text = str(jax.make_jaxpr(function)(square, square))
        assert text.count("dot_general[") == 3
        assert len(re.findall(r"precision=\(?Precision\.HIGHEST", text)) == expected


@attack(f"{PAGE}#matmul-precision", a=arrays((3, 4), odd=False), b=arrays((4, 3), odd=False))
def test_a_product_of_highest_precision(a: Array, b: Array) -> None:
    assert '`jnp.matmul(a, b, precision="highest")`' in text_of(PAGE)
    exact, size = a.astype(float) @ b, np.abs(a).astype(float) @ np.abs(b) + 1
    for found in (jnp.matmul(a, b, precision="highest"), jnp.matmul(jnp.asarray(a) / 3, b, precision="highest") * 3):
        assert (np.abs(found - exact) <= 1e-6 * size).all()


@slow_attack(f"{PAGE}#determinism", key=keys())
def test_a_key_repeats_its_bits(key: jax.Array) -> None:
    train = program(f"{PAGE}#determinism", "train")["train"]
    assert_same(train(key), train(key), 0, 0)


@cache
def checked() -> Any:
    """Return the answer's quotient that reports, compiled."""
    return jax.jit(program(f"{PAGE}#no-error", "checked", "checkify")["checked"])


@attack(f"{PAGE}#no-error", a=arrays((3,)), b=arrays((3,)))
def test_a_division_by_zero_or_a_nan_is_reported(a: Array, b: Array) -> None:
    error, value = checked()(a, b)
    with np.errstate(all="ignore"):
        expected = a / b
    assert_same(value, expected)
    assert (error.get() is not None) == bool((b == 0).any() or np.isnan(expected).any())


@attack(f"{PAGE}#overflow", f"{PAGE}#subnormal", v=LARGE, p=arrays((4,), odd=False).map(lambda x: np.abs(x) + 1))
def test_logarithms_neither_overflow_nor_vanish(v: Array, p: Array) -> None:
    wide = v.astype(float)
    assert_same(jax.nn.logsumexp(v), special.logsumexp(wide), rtol=1e-5)
    with np.errstate(all="ignore"):
        assert_same(jax.nn.log_softmax(v), np.float32(special.log_softmax(wide)), rtol=1e-5, atol=1e-4)
    assert_same(jax.nn.log_sigmoid(v), -np.logaddexp(0, -wide), rtol=1e-5, atol=1e-6)
    tiny = np.float32(p * 1e-20)
    assert_same(jnp.log1p(tiny), np.log1p(tiny.astype(float)), rtol=1e-5, atol=0)
    assert_same(jnp.sum(jnp.log(tiny)), np.log(tiny.astype(float)).sum(), rtol=1e-5)  # their product is 1e-80


@attack(f"{PAGE}#too-small-to-add", x=FLOATS.map(abs), part=st.integers(-24, 24))
def test_less_than_half_a_gap_is_rounded_away(x: float, part: int) -> None:
    if not 1e-20 < x < 1e20:
        return  # far below, the gap is subnormal, which a CPU takes as zero
    gap = float(np.nextafter(np.float32(x), np.float32(np.inf))) - x
    assert float(jnp.nextafter(jnp.float32(x), jnp.inf)) - x == gap
    changed = jnp.float32(x) + jnp.float32(part / 32 * gap) != jnp.float32(x)
    half = 8 if part < 0 and np.frexp(x)[0] == 0.5 else 16  # below a power of two, the gap is half as wide
    if abs(part) != half:  # a tie goes to the even neighbor
        assert bool(changed) == (abs(part) > half)


@attack(f"{PAGE}#running-total", steps=st.integers(0, 10**8), dt=st.sampled_from([0.001, 0.1, 1 / 3]))
def test_a_clock_from_the_number_of_steps_does_not_drift(steps: int, dt: float) -> None:
    assert "jnp.float32(steps) * dt" in text_of(PAGE)
    assert_same(jnp.float32(steps) * dt, np.float64(steps * dt), rtol=3e-7, atol=0)


@attack(f"{PAGE}#cancellation", x=arrays((5,), odd=False), offset=st.sampled_from([0, 1e4, 1e6]))
def test_a_variance_survives_an_offset(x: Array, offset: float) -> None:
    y = (x + offset).astype(np.float32)
    spread = 1e-6 * float(np.abs(y).max())  # the mean itself is rounded
    assert_same(jnp.var(y), y.astype(float).var(), rtol=1e-4, atol=spread**2 + 1e-6)
    a, b = y[:2]
    assert_same((a - b) ** 2, (float(a) - float(b)) ** 2, rtol=1e-5)


@attack(f"{PAGE}#decimal-digits", x=FLOATS, digits=st.integers(0, 4))
def test_digits_are_a_matter_of_text(x: float, digits: int) -> None:
    number = jnp.float32(x)
    assert np.float32(str(number)) == np.float32(x)
    assert number.item() == float(np.float32(x))
    assert f"{number:.4f}" == f"{float(np.float32(x)):.4f}"
    if abs(x) < 1e30:  # far above, x times a power of ten overflows, in NumPy too
        assert_same(
            jnp.round(number, digits), np.round(float(np.float32(x)), digits), rtol=1e-6, atol=10.0**-digits / 1e3
        )
    assert jnp.isclose(jnp.float32(0.1) + 0.2, 0.3)


@attack(f"{PAGE}#handle-nan", x=arrays((4, 3)))
def test_nan_is_ignored_replaced_and_counted(x: Array) -> None:
    valid = ~np.isnan(x)
    assert_same(jnp.isnan(x).sum(), (~valid).sum())
    assert_same(jnp.where(jnp.isnan(x), 0.0, x), np.where(valid, x, 0))
    largest = float(np.finfo(np.float32).max)
    assert_same(jnp.nan_to_num(x), np.nan_to_num(x, posinf=largest, neginf=-largest), rtol=1e-6)
    assert bool(jax.tree.all(jax.tree.map(lambda v: jnp.isfinite(v).all(), {"w": x}))) == np.isfinite(x).all()
    if valid.any():
        with np.errstate(all="ignore"):
            assert_same(jnp.nanmean(x), x[valid].astype(float).mean())
        if (x[valid] > -np.inf).any():
            assert x.ravel()[int(jnp.nanargmax(x))] == x[valid].max()
    if not valid.all():
        assert np.isnan(x.ravel()[int(jnp.argmax(x))]) and np.isnan(jnp.sort(x.ravel())[-1])


@attack(f"{PAGE}#negative-power", x=arrays((4,)), n=st.integers(-3, 3))
def test_roots_and_negative_powers(x: Array, n: int) -> None:
    with np.errstate(all="ignore"):
        assert_same(jnp.cbrt(x), np.cbrt(x.astype(float)), rtol=1e-5)
        whole = np.where(np.isfinite(x), x, 1).astype(int)
        assert_same(jnp.asarray(whole) ** float(n), whole.astype(float) ** n, rtol=1e-5)
        expected = np.power(x.astype(complex), 1 / 3)
        found = jnp.power(jnp.asarray(x, jnp.complex64), 1 / 3)
    some = np.isfinite(x)
    assert_same(np.abs(found)[some], np.abs(expected)[some], atol=1e-3)


@cache
def bfloat16_step() -> Any:
    """Return the answer's step, and its loss."""
    found = program(f"{MIXED}#train-bfloat16", "step", "loss")
    return found["step"]


EIGHTHS = st.integers(-8, 8).map(lambda n: n / 8)


@slow_attack(
    f"{MIXED}#train-bfloat16",
    w=arrays((3, 16), odd=False).map(lambda w: w / 9),
    v=arrays((16,), odd=False).map(lambda v: np.clip(v / 9, -1, 1)),
    y=arrays((3,), odd=False).map(lambda y: np.clip(y, -3, 3)),
)
def test_gradients_in_bfloat16_are_those_of_float64_to_two_digits(w: Array, v: Array, y: Array) -> None:
    params = {"w": jnp.float32(w), "v": jnp.float32(v)}
    (value, hidden), grads = bfloat16_step()(params, jnp.eye(3), y)

    def loss(v: Array) -> float:
        return float(np.mean((np.tanh(w.astype(float)) @ v - y) ** 2))

    assert hidden.dtype == jnp.bfloat16 and {g.dtype for g in grads.values()} == {np.dtype("float32")}
    exact = loss(v.astype(float))
    assert_same(value, np.float64(exact), rtol=0.05, atol=0.05 * (1 + np.sqrt(exact)))
    assert_same(grads["v"], slopes(loss, v), rtol=0.05, atol=0.05 * (1 + np.sqrt(exact)))


def rounded(x: Any, dtype: Any = BFLOAT16) -> Array:
    """Return what a dtype keeps of some numbers, in float64."""
    with np.errstate(all="ignore"):
        found: Array = np.asarray(x, np.float32).astype(dtype).astype(float)
    return found


@attack(f"{MIXED}#autocast", f"{MIXED}#cast-tree", x=arrays((3,)), i=arrays((2,), "int32"), n=st.integers(0, 10**6))
def test_only_floats_are_converted_and_come_back(x: Array, i: Array, n: int) -> None:
    cast = program(f"{MIXED}#autocast", "cast", "in_bfloat16")
    tree = {"x": jnp.asarray(x), "i": jnp.asarray(i), "n": n, "b": True, "f": x[0].item(), "none": None}
    low = cast["cast"](tree, jnp.bfloat16)
    assert low["x"].dtype == low["f"].dtype == jnp.bfloat16
    assert_same(low["x"], rounded(x), 0, 0)
    assert_same(low["f"], rounded(x[0]), 0, 0)
    assert (low["n"], low["b"], low["none"]) == (n, True, None)
    assert_same(low["i"], i, 0, 0)
    back = cast["in_bfloat16"](lambda tree: {"twice": 2 * tree["x"], "i": tree["i"]})(tree)
    assert back["twice"].dtype == jnp.float32 and back["i"].dtype == jnp.int32
    assert_same(back["twice"], 2 * rounded(x), 0, 0)
    to = program(f"{MIXED}#cast-tree", "to")["to"]
    tree |= {"key": jax.random.key(n), "act": jnp.tanh, "host": x}
    low = to(tree, jnp.bfloat16)
    assert_same(low["x"], rounded(x), 0, 0)
    assert low["host"] is x and low["act"] is jnp.tanh and low["key"] is tree["key"] and low["n"] == n
    assert low["i"].dtype == jnp.int32


@attack(f"{MIXED}#stuck-weights", w=EIGHTHS, g=EIGHTHS, steps=st.integers(0, 20))
def test_float32_weights_take_small_steps(w: float, g: float, steps: int) -> None:
    optimizer: optax.GradientTransformation = program(f"{MIXED}#stuck-weights", "optimizer")["optimizer"]
    moved = jnp.float32(w)
    state = optimizer.init(moved)
    for _ in range(steps):
        updates, state = optimizer.update(jnp.float32(g), state)
        moved = jnp.asarray(optax.apply_updates(moved, updates))
    assert_same(moved, np.float64(w - 0.001 * g * steps), atol=1e-5)


@attack(f"{MIXED}#which-format", x=arrays((4,), st.sampled_from([np.dtype("float16"), BFLOAT16]), odd=False))
def test_a_norm_in_float32_does_not_overflow(x: Array) -> None:
    x = (x * np.asarray(40, x.dtype)).astype(x.dtype)  # up to 40,720, whose square float16 does not hold
    assert "jnp.linalg.norm(x.astype(jnp.float32))" in text_of(MIXED)
    assert_same(jnp.linalg.norm(jnp.asarray(x).astype(jnp.float32)), np.linalg.norm(x.astype(float)), rtol=1e-5)


@attack(f"{MIXED}#loss-scaling", w=st.integers(-8, 8), scale=st.integers(0, 40).map(lambda n: 2.0**n))
def test_a_scaled_gradient_is_right_or_not_finite(w: int, scale: float) -> None:
    found, finite = program(f"{MIXED}#loss-scaling", "gradient")["gradient"](jnp.float32(w), scale)
    exact = 2 * w * float(np.float16(1e-4)) ** 2
    if scale >= 2**15 and finite:  # a smaller one lets it vanish, as the answer shows
        assert_same(found, np.float64(exact), rtol=2e-2, atol=0)
    if scale >= 2.0**38 and w:
        assert not finite


@attack(f"{MIXED}#gradient-dtype", w=arrays((2,), odd=False))
def test_a_gradient_keeps_its_digits_if_weights_are_converted_before(w: Array) -> None:
    loss = program(f"{MIXED}#gradient-dtype", "loss")["loss"]
    low, factors = jnp.asarray(w, jnp.bfloat16), np.array([1.001, 1.002], np.float32)
    assert_same(jax.grad(loss)(low.astype(jnp.float32)), factors, 0, 0)
    assert_same(jax.grad(loss)(low).astype(jnp.float32), rounded(factors), 0, 0)


@attack(f"{MIXED}#embedding-gradient", tokens=st.integers(0, 1000), last=st.integers(-2, 1))
def test_each_use_of_a_row_counts(tokens: int, last: int) -> None:
    used = np.array([0] * tokens + [last] + [1] * (999 - min(tokens, 999)))[:1000]
    convert = program(f"{MIXED}#embedding-gradient", "convert_rows", tokens=jnp.asarray(used))["convert_rows"]
    expected = np.zeros((2, 1))
    np.add.at(expected, used, 1)
    assert_same(jax.grad(convert)(jnp.ones((2, 1))), expected, 0, 0)


@jax.jit
def preferred(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return a product in float32."""
    return jnp.matmul(a, b, preferred_element_type=jnp.float32)


@attack(f"{MIXED}#matmul-accumulation", a=arrays((3, 40), odd=False), b=arrays((40, 2), odd=False))
def test_a_float32_result_of_bfloat16_factors(a: Array, b: Array) -> None:
    low, high = jnp.asarray(a, jnp.bfloat16), jnp.asarray(b, jnp.bfloat16)
    found = preferred(low, high)
    size = np.abs(rounded(a)) @ np.abs(rounded(b)) + 1
    assert found.dtype == jnp.float32
    assert (np.abs(found - rounded(a) @ rounded(b)) <= 1e-6 * size).all()


@attack(f"{MIXED}#float32-parts", x=arrays((4, 3), st.sampled_from([np.dtype("float16"), BFLOAT16]), odd=False))
def test_a_softmax_in_float32_has_its_digits(x: Array) -> None:
    found = jax.nn.log_softmax(jnp.asarray(x).astype(jnp.float32))
    assert_same(found, special.log_softmax(x.astype(float), axis=-1), rtol=1e-5, atol=1e-3)
    for reduce in ("sum", "mean"):  # which add in float32 by themselves
        expected = getattr(x.astype(float), reduce)()
        assert_same(getattr(jnp, reduce)(x).astype(jnp.float32), rounded(expected, x.dtype), rtol=1e-2, atol=1e-2)


@cache
def half_adam() -> Any:
    """Return Adam whose first average is in bfloat16, with its update compiled."""
    optimizer = optax.adam(0.1, mu_dtype=jnp.bfloat16)
    return optimizer, jax.jit(optimizer.update)


@attack(f"{MIXED}#optimizer-dtype", g=arrays((2,), odd=False), steps=st.integers(1, 9))
def test_the_second_average_keeps_up_in_float32(g: Array, steps: int) -> None:
    assert "`mu_dtype` changes only the first" in text_of(MIXED)
    optimizer, update = half_adam()
    state = optimizer.init(jnp.zeros(2))
    for _ in range(steps):
        _, state = update(g, state)
    assert (state[0].mu.dtype, state[0].nu.dtype) == (jnp.bfloat16, jnp.float32)
    assert_same(state[0].nu, (1 - 0.999**steps) * g.astype(float) ** 2, rtol=1e-4)
    assert_same(state[0].mu.astype(jnp.float32), (1 - 0.9**steps) * g.astype(float), rtol=0.05)


@attack(f"{MIXED}#linear-algebra", a=arrays((2, 2), odd=False))
def test_an_inverse_by_way_of_float32(a: Array) -> None:
    assert "jnp.linalg.inv(a.astype(jnp.float32)).astype(a.dtype)" in text_of(MIXED)
    low = jnp.asarray(np.clip(a, -9, 9) + 30 * np.eye(2), jnp.bfloat16)
    found = jnp.linalg.inv(low.astype(jnp.float32)).astype(low.dtype)
    exact = np.linalg.inv(np.asarray(low).astype(float))
    assert_same(found.astype(jnp.float32), exact, rtol=1e-2, atol=1e-4)


@attack(
    f"{MIXED}#float8",
    x=arrays((4, 4)),
    name=st.sampled_from(["float8_e4m3fn", "float8_e5m2"]),
    size=st.sampled_from([1, 1e-3, 1e3]),
)
def test_float8_rounds_as_its_format_and_multiplies_in_float32(x: Array, name: str, size: float) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    low = jnp.asarray(np.float32(x * np.float32(size))).astype(dtype)
    assert_same(low.astype(jnp.float32), rounded(np.float32(x * np.float32(size)), dtype), 0, 0)
    some = np.where(np.isfinite(rounded(x, dtype)), rounded(x, dtype), 0)
    a = jnp.asarray(np.float32(some)).astype(dtype)
    assert_same(preferred(a, a), some @ some, rtol=1e-5)
