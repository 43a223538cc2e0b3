"""Fixes of the error dictionary for loops, `vmap`, pytrees, keys, callbacks and derivatives, against loops of Python."""

import contextlib
import io
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from jax.experimental import checkify
from jax.extend.core import Primitive

from tests.site.recommended.attack import attack, program
from tests.site.recommended.entries import compiled_fix, fixed, refused
from tests.site.recommended.shown import shows
from tests.site.strategies import Transformation, arrays, assert_same, dtypes, keys, slopes, transformations

Array = np.ndarray[Any, Any]
STRUCTURES, DERIVATIVES = "lookup/errors-structures.md", "lookup/errors-derivatives.md"
SMALL = st.integers(-16, 16).map(lambda n: n / 8)
SINGLE = st.floats(width=32, allow_subnormal=False)  # which a CPU takes for zero
small = partial(arrays, dtype="float32", odd=False)
pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # of NumPy, where NaN and infinity meet


@cache
def of(name: str, wanted: str) -> Any:
    """A name that an entry defines, with what it uses of the page."""
    found = program(name.partition("#")[0], "jax", "jnp", "np")
    given = {"until_nine": program(DERIVATIVES, "until_nine")["until_nine"]} if "derivatives" in name else {}
    return program(name, wanted, **{module: found[module] for module in ("jax", "jnp", "np")}, **given)[wanted]


@attack(f"{STRUCTURES}#scan-carry", f"{STRUCTURES}#scan-pair", x=arrays(st.sampled_from([(3,), (1,), (0,)])))
def test_a_scan_carries_the_total(x: Array) -> None:
    data = {"jnp.arange(3.0)": "x"}
    with np.errstate(all="ignore"):
        expected = np.cumsum(x.astype(float))
    total = expected[-1] if x.size else 0
    [(last, totals)] = compiled_fix(f"{STRUCTURES}#scan-carry", data, x=x)
    assert_same(last, total, atol=1e-3)
    assert_same(totals, expected, atol=1e-3)
    [(last, nothing)] = compiled_fix(f"{STRUCTURES}#scan-pair", data, x=x)
    assert_same(last, total, atol=1e-3)
    assert nothing is None
    refused(f"{STRUCTURES}#scan-carry", data, x=x)
    refused(f"{STRUCTURES}#scan-pair", data, x=x)


@attack(f"{STRUCTURES}#scan-length", x=SMALL, n=st.integers(0, 4))
def test_a_length_doubles_so_often(x: float, n: int) -> None:
    [(last, kept)] = compiled_fix(f"{STRUCTURES}#scan-length", {"1.0, length=3": f"x, length={n}"}, x=x)
    assert last == x * 2**n
    np.testing.assert_array_equal(kept, [x * 2**i for i in range(n)])
    refused(f"{STRUCTURES}#scan-length", {"1.0, None": "x, None"}, x=x)


@attack(f"{STRUCTURES}#leading-axis", prices=arrays(st.sampled_from([(4,), (3,), (5,)])))
def test_days_meet_the_first_prices(prices: Array) -> None:
    given: dict[str, Any] = {"days": np.arange(3), "prices": jnp.asarray(prices)}
    [total] = compiled_fix(f"{STRUCTURES}#leading-axis", **given)
    assert_same(total, prices[:3].sum(dtype=float), atol=1e-3)
    if prices.size != 3:
        refused(f"{STRUCTURES}#leading-axis", **given)


@attack(f"{STRUCTURES}#cond-branches", x=arrays((), "float32"), call=transformations())
def test_a_branch_is_that_of_python(x: Array, call: Transformation) -> None:
    assert_same(call(of(f"{STRUCTURES}#cond-branches", "shrink"))(x), x / 2 if x > 1 else np.float32(0))
    refused(f"{STRUCTURES}#cond-branches", {"shrink(3.0)": "shrink(x)"}, x=x)


@attack(f"{STRUCTURES}#cond-fun", x=small(st.sampled_from([(2,), (1,), (0,)])))
def test_a_loop_goes_on_while_one_is_below(x: Array) -> None:
    [found] = compiled_fix(f"{STRUCTURES}#cond-fun", {"jnp.zeros(2)": "x"}, x=x)
    expected = x.copy()
    while (expected < 3).any():
        expected += 1
    np.testing.assert_array_equal(found, expected)
    refused(f"{STRUCTURES}#cond-fun", {"jnp.zeros(2)": "jnp.asarray(x)"}, x=x)


@attack(
    f"{STRUCTURES}#vmap-sizes",
    f"{STRUCTURES}#vmap-rank",
    f"{STRUCTURES}#in-axes",
    weights=small((3,)),
    batch=small(st.sampled_from([(8, 3), (3, 3), (1, 3)])),
    rate=SMALL,
)
def test_what_examples_share_is_not_mapped(weights: Array, batch: Array, rate: float) -> None:
    given: dict[str, Any] = {"weights": jnp.asarray(weights), "batch": jnp.asarray(batch)}
    [found] = fixed(f"{STRUCTURES}#vmap-sizes", {".shape": ""}, **given)
    assert_same(found, batch.astype(float) @ weights)
    if len(batch) != 3:
        refused(f"{STRUCTURES}#vmap-sizes", **given)
    data = {"jnp.ones(3)": "x", "0.1": "rate"}
    for name in ("vmap-rank", "in-axes"):
        [found] = fixed(f"{STRUCTURES}#{name}", data, x=weights, rate=rate)
        assert_same(found, weights * rate)
        refused(f"{STRUCTURES}#{name}", data, x=weights, rate=rate)


@attack(f"{STRUCTURES}#pytree-structure", w=small((4,)), b=small((2,)))
def test_a_step_meets_the_gradient_of_its_name(w: Array, b: Array) -> None:
    params = {"w": w[:2], "b": b[:1]}
    grads = {"w": w[2:], "bias": b[1:]}
    new, same = fixed(f"{STRUCTURES}#pytree-structure", params=params, grads=grads)
    assert same and {*new} == {"w", "b"}
    assert_same(new["w"], w[:2] - 0.1 * w[2:])
    assert_same(new["b"], b[:1] - 0.1 * b[1:])
    refused(f"{STRUCTURES}#pytree-structure", params=params, grads=grads)


@attack(f"{STRUCTURES}#dict-keys", keys=st.lists(st.integers(0, 20), min_size=1, max_size=4, unique=True))
def test_leaves_are_in_the_order_of_text(keys: list[int]) -> None:
    mixed: dict[Any, float] = {"bias": 0.0, **{key: float(key) for key in keys}}
    named = {str(key): value for key, value in mixed.items()}
    found, *_ = fixed(f"{STRUCTURES}#dict-keys", {'{"bias": 0.0, "1": 2.0}': "named"}, named=named)
    assert found == [named[key] for key in sorted(named)]
    refused(f"{STRUCTURES}#dict-keys", {'{"bias": 0.0, 1: 2.0}': "mixed"}, mixed=mixed)


@attack(f"{STRUCTURES}#callback-jvp", x=SINGLE.filter(lambda x: abs(x) < 1e4))
def test_the_slope_of_a_host_function_is_the_one_that_is_given(x: float) -> None:
    value, slope = sine_and_slope()(np.float32(x))
    assert_same(value, np.sin(x))
    assert_same(slope, np.cos(x))


@cache
def sine_and_slope() -> Any:
    """The page's function and its gradient, compiled once."""
    on_host = of(f"{STRUCTURES}#callback-jvp", "on_host")
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        jax.grad(on_host)(1.0)
    return jax.jit(jax.value_and_grad(of(f"{STRUCTURES}#callback-jvp", "sine")))


@attack(f"{STRUCTURES}#vmap-method", x=arrays(st.sampled_from([(3,), (1, 3), (1,)]), dtypes("float")))
def test_a_host_function_gets_whole_batches(x: Array) -> None:
    with np.errstate(all="ignore"):
        expected = np.sin(x)
    assert_same(mapped_on_host(x.ndim)(x), expected)


@cache
def mapped_on_host(times: int) -> Any:
    """The page's host function for each element of an array of so many axes."""
    function = of(f"{STRUCTURES}#vmap-method", "on_host")
    for _ in range(times):
        function = jax.vmap(function)
    return jax.jit(function)


def load(i: Any) -> Any:
    """Read every other shard."""
    if int(i) % 2:
        raise FileNotFoundError(f"no shard {i}")
    return np.float32(1.5 * i)


@attack(f"{STRUCTURES}#callback-failed", i=st.integers(-5, 5))
def test_a_failed_read_is_marked(i: int) -> None:
    changes = {'raise FileNotFoundError(f"no shard {i}")': "return load(i)", "struct, 7": "struct, i"}
    *_, found = fixed(f"{STRUCTURES}#callback-failed", changes, load=load, i=i)
    assert_same(found, np.float32(np.nan if i % 2 else 1.5 * i))


@attack(f"{STRUCTURES}#debug-print", loss=SINGLE)
def test_a_named_value_is_printed(loss: float) -> None:
    shows(f"{STRUCTURES}#debug-print", 'jax.debug.print("loss {loss}", loss=0.25)', 'jax.debug.print("loss {}", 0.25)')
    with contextlib.redirect_stdout(io.StringIO()) as output:
        jax.debug.print("loss {loss}", loss=loss)
        jax.debug.print("loss {}", loss)
        jax.effects_barrier()
    lines = output.getvalue().splitlines()
    assert len(lines) == 2
    for line in lines:
        word, number = line.split()
        assert word == "loss"
        np.testing.assert_array_equal(np.float32(number), np.float32(loss))
    refused(f"{STRUCTURES}#debug-print", {"0.25": "loss"}, loss=loss)


@attack(f"{STRUCTURES}#not-functionalized", x=arrays(()))
def test_a_check_is_a_second_result(x: Array) -> None:
    error, value = checked_root()(x)
    with np.errstate(all="ignore"):
        assert_same(value, np.sqrt(x))
    assert (error.get() is None) == bool(x >= 0)
    refused(f"{STRUCTURES}#not-functionalized", {"root(4.0)": "root(x)"}, x=x)


@cache
def checked_root() -> Any:
    """The page's function with its check, compiled once."""
    return jax.jit(checkify.checkify(of(f"{STRUCTURES}#not-functionalized", "root")))


@attack(f"{DERIVATIVES}#scalar-output", w=SMALL)
def test_slopes_of_one_number_and_of_several(w: float) -> None:
    wide = 2 * (w - np.array([1.0, 2.0]))
    total, (slope, parts), each = compiled_fix(f"{DERIVATIVES}#scalar-output", {"(0.5)": "(w)"}, w=w)
    assert_same(total, wide.sum())
    assert_same(slope, wide.sum())
    assert_same(parts, (w - np.array([1.0, 2.0])) ** 2)
    assert_same(each, wide)
    refused(f"{DERIVATIVES}#scalar-output", {"(0.5)": "(w)"}, w=w)


@attack(f"{DERIVATIVES}#grad-inputs", w=st.integers(-9, 9), step=st.integers(0, 9))
def test_a_whole_number_has_a_slope_as_a_float(w: int, step: int) -> None:
    changes = {"(3.0)": "(float(w))", '{"w": 3.0}, 1': '{"w": float(w)}, step'}
    slope, tree = fixed(f"{DERIVATIVES}#grad-inputs", changes, w=w, step=step)
    assert_same(slope, 2.0 * w)
    assert_same(tree["w"], 2.0 * w / (1 + step))
    refused(f"{DERIVATIVES}#grad-inputs", {"(3)": "(w)"}, w=w)


@attack(f"{DERIVATIVES}#grad-outputs", logits=small((2,)), t=SMALL)
def test_a_smooth_loss_has_the_slope_of_its_formula(logits: Array, t: float) -> None:
    changes = {"jnp.array([0.2, 0.8])": "logits", ".round(3)": "", "(0.0)": "(t)"}
    slope, wave = compiled_fix(f"{DERIVATIVES}#grad-outputs", changes, logits=jnp.asarray(logits), t=t)
    parts = np.exp(logits.astype(float) - logits.max())
    assert_same(slope, parts / parts.sum() - [0, 1])
    assert_same(wave, -np.sin(t))
    refused(f"{DERIVATIVES}#grad-outputs", {"jnp.array([0.2, 0.8])": "logits"}, logits=jnp.asarray(logits))


@attack(
    f"{DERIVATIVES}#reverse-while", x=st.integers(1, 60).map(lambda n: n / 4), limit=st.integers(-4, 4000).map(float)
)
def test_a_bounded_loop_is_the_loop_or_no_number(x: float, limit: float) -> None:
    bounded, short, fast, slow = doubled()
    doublings, expected = 0, x
    while expected < limit:
        doublings, expected = doublings + 1, 2 * expected
    for most, loop in ((20, bounded), (2, short)):
        value, slope = loop(x, limit)
        assert_same(value, expected if doublings <= most else np.nan)
        assert_same(slope, 2.0**doublings if doublings <= most else np.nan)
    if x < 9:
        assert_same(fast(x), slow(x))
    refused(f"{DERIVATIVES}#reverse-while", {"1.0, 9.0": "x, limit"}, x=x, limit=limit)


@cache
def doubled() -> tuple[Any, ...]:
    """The page's loop with its bound and with one of 2, and its loop without a bound in forward mode, compiled once."""
    loop = of(f"{DERIVATIVES}#reverse-while", "double_until")
    until_nine = program(DERIVATIVES, "until_nine")["until_nine"]
    bounded = [jax.jit(jax.value_and_grad(function)) for function in (loop, partial(loop, most=2))]
    return *bounded, jax.jit(jax.jacfwd(until_nine)), lambda x: 2.0 ** np.ceil(np.log2(9 / x))


@cache
def slopes_of_each(function: Any) -> Any:
    """The gradient of a function for each element, compiled once."""
    return jax.jit(jax.vmap(jax.grad(function)))


@attack(f"{DERIVATIVES}#invalid-value", x=arrays((4,)), call=transformations("eager", "jit"))
def test_a_guarded_logarithm_and_its_slope(x: Array, call: Transformation) -> None:
    safe_log = of(f"{DERIVATIVES}#invalid-value", "safe_log")
    inside = ~(x <= 0)
    with np.errstate(all="ignore"):
        assert_same(call(safe_log)(x), np.where(inside, np.log(np.where(inside, x, 1)), 0))
        expected = np.where(inside, 1 / np.where(inside, x, 1).astype(float), 0)
    assert_same(slopes_of_each(safe_log)(x), expected)
    if not (x < 0).any():
        assume(not np.isnan(x).any() and np.isfinite(x).all())
    elif not np.isnan(x).any():  # which the check would find in the data
        refused(f"{DERIVATIVES}#invalid-value", {"jnp.array([-1.0, 1.0])": "jnp.asarray(x)"}, x=x)


@attack(
    f"{DERIVATIVES}#no-vjp", f"{DERIVATIVES}#bwd-structure", f"{DERIVATIVES}#forward-custom-vjp", slope=SMALL, x=SMALL
)
def test_a_slope_is_clipped(slope: float, x: float) -> None:
    clipped = float(np.clip(slope, -1, 1))
    [found] = compiled_fix(f"{DERIVATIVES}#no-vjp", {"5 *": "slope *", ")(1.0)": ")(x)"}, slope=slope, x=x)
    assert_same(found, clipped)
    refused(f"{DERIVATIVES}#no-vjp", {"(1.0)": "(x)"}, x=x)
    changes = {"jax.grad(clip_slope)(1.0)": "jax.grad(lambda x: slope * clip_slope(x))(x)"}
    [found] = compiled_fix(f"{DERIVATIVES}#bwd-structure", changes, slope=slope, x=x)
    assert_same(found, clipped)
    refused(f"{DERIVATIVES}#bwd-structure", changes, slope=slope, x=x)
    first, second = compiled_fix(f"{DERIVATIVES}#forward-custom-vjp", {"(1.0)": "(x)"}, x=x)
    assert_same(first, 1.0)
    if abs(2 * x) != 1:  # where the first derivative, which is 2 * x clipped, has a corner
        assert_same(second, 2.0 if abs(2 * x) < 1 else 0.0)
    refused(f"{DERIVATIVES}#forward-custom-vjp", {"(1.0)": "(x)"}, x=x)


@attack(f"{DERIVATIVES}#no-rule", x=SMALL)
def test_a_rule_of_its_own_gives_the_slope(x: float) -> None:
    my_op = Primitive("my_op")
    my_op.def_impl(lambda x: x * 2)
    my_op.def_abstract_eval(lambda x: x)
    changes = {"(1.0)": "(x)", "print(jax.grad": "print(jax.value_and_grad"}
    [found] = fixed(f"{DERIVATIVES}#no-rule", changes, x=x, my_op=my_op)
    assert_same(found[0], 2 * x)
    assert_same(found[1], slopes(lambda x: 2 * x, x))
    refused(f"{DERIVATIVES}#no-rule", {"(1.0)": "(x)"}, x=x)


@attack(
    f"{STRUCTURES}#key-dtype",
    f"{STRUCTURES}#invalid-key-data",
    seed=st.integers(0, 2**32 - 1),
    other=st.integers(0, 2**32 - 1),
)
def test_each_number_makes_a_stream_of_its_own(seed: int, other: int) -> None:
    epochs = fixed(f"{STRUCTURES}#key-dtype", {".round(3)": ""}, key=jax.random.key(seed))
    assert epochs[::2] == [0, 1, 2] and len({float(noise) for noise in epochs[1::2]}) == 3
    assert [float(jax.random.normal(jax.random.fold_in(jax.random.key(seed), epoch))) for epoch in range(3)] == epochs[
        1::2
    ]
    refused(f"{STRUCTURES}#key-dtype", key=jax.random.key(seed))
    [draw] = fixed(f"{STRUCTURES}#invalid-key-data", {"42": "seed"}, seed=seed)
    [second] = fixed(f"{STRUCTURES}#invalid-key-data", {"42": "seed"}, seed=other)
    assert (seed == other) == bool((draw == second).all()) and len({*map(float, draw)}) == 3
    [same] = fixed(f"{STRUCTURES}#invalid-key-data", {"42": "seed"}, seed=2**32 + seed)
    assert bool((draw == same).all()), "as the entry says of higher bits"
    refused(f"{STRUCTURES}#invalid-key-data", {"42": "seed"}, match=f"Got {seed}", seed=seed)


@attack(f"{STRUCTURES}#seed-integer", whole=st.integers(0, 2**31), part=st.sampled_from([0.0, 0.25, 0.75]))
def test_a_float_seed_is_that_of_its_whole_number(whole: int, part: float) -> None:
    [draw] = fixed(f"{STRUCTURES}#seed-integer", seed=whole + part)
    np.testing.assert_array_equal(draw, jax.random.normal(jax.random.key(whole), (3,)))
    [other] = fixed(f"{STRUCTURES}#seed-integer", seed=whole + 1 + part)
    assert not (draw == other).all()
    compiled = jax.jit(lambda seed: jax.random.key(seed.astype(int)))(jnp.float32(whole % 2**20 + part))
    assert compiled == jax.random.key(whole % 2**20)
    refused(f"{STRUCTURES}#seed-integer", seed=whole + part)


@attack(f"{STRUCTURES}#single-key", key=keys())
def test_a_row_for_each_key_is_its_draw(key: jax.Array) -> None:
    rows = jax.random.split(key, 4)
    one, each = fixed(f"{STRUCTURES}#single-key", {".shape": ""}, keys=rows)
    assert_same(one, jax.random.normal(rows[0], (4, 2)))
    assert_same(each, np.stack([jax.random.normal(row, (2,)) for row in rows]))
    assert len(np.unique(each)) == len(np.unique(one)) == 8
    refused(f"{STRUCTURES}#single-key", keys=rows)


@attack(f"{STRUCTURES}#larger-sample", key=keys(), x=small((3,)).map(lambda x: x + np.arange(3, dtype="f4") * 100))
def test_a_sample_is_of_the_population(key: jax.Array, x: Array) -> None:
    changes = {"jax.random.key(0)": "key", "jnp.arange(3)": "x"}
    once, often = fixed(f"{STRUCTURES}#larger-sample", changes, key=key, x=jnp.asarray(x))
    assert sorted(map(float, once)) == sorted(map(float, x))
    assert {*map(float, often)} <= {*map(float, x)} and often.shape == (5,)
    refused(f"{STRUCTURES}#larger-sample", changes, key=key, x=jnp.asarray(x))
