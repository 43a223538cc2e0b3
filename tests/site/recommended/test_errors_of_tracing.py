"""Fixes of the error dictionary's classes: under `jit`, the numbers that the refused program gives as plain Python."""

import contextlib
import io
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.recommended.entries import compiled_fix, fixed, refused
from tests.site.strategies import Transformation, arrays, assert_same, dtypes, keys, shapes, transformations

Array = np.ndarray[Any, Any]
ERRORS = "lookup/errors.md"
SMALL = st.integers(-16, 16).map(lambda n: n / 8)
SINGLE = st.floats(width=32, allow_subnormal=False)  # which a CPU takes for zero
pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # of NumPy, where NaN and infinity meet


def of(anchor: str, name: str) -> Any:
    """A name that the fix of an entry defines; what is compiled is compiled once."""
    return program(f"{ERRORS}#{anchor}", name, jax=jax, jnp=jnp, partial=partial)[name]


@cache
def kept(anchor: str, name: str) -> Any:
    """The same object each time."""
    return of(anchor, name)


@attack(f"{ERRORS}#TracerBoolConversionError", x=arrays((), dtypes("float", "int")), call=transformations())
def test_an_absolute_value_is_that_of_the_branches(x: Array, call: Transformation) -> None:
    assert_same(call(kept("TracerBoolConversionError", "absolute"))(x), x if x > 0 else -x)
    refused(f"{ERRORS}#TracerBoolConversionError", {"-3.0": "x"}, x=x)


@attack(
    f"{ERRORS}#TracerIntegerConversionError",
    x=SMALL | st.integers(-3, 3),
    n=st.integers(-1, 6),
    i=st.integers(-3, 9),
    call=transformations(),
)
def test_a_power_is_that_of_the_loop(x: float, n: int, i: int, call: Transformation) -> None:
    assert_same(call(kept("TracerIntegerConversionError", "power"))(x, n), np.float64(x) ** max(n, 0), rtol=1e-5)
    refused(f"{ERRORS}#TracerIntegerConversionError", {"2.0, 10": "x, n"}, x=x, n=n)
    *_, inside, past = fixed(f"{ERRORS}#TracerIntegerConversionError", {"[i])(1)": "[i])(j)", "(7)": "(k)"}, j=i, k=i)
    assert inside == past == [10, 20, 30][min(i, 2)], "as the sentence below says of an index past the end"


@attack(
    f"{ERRORS}#TracerArrayConversionError",
    x=arrays(shapes(1, 2), dtypes("float")),
    table=st.sampled_from([np.array([10, 20, 30]), np.array([1.5, np.nan, -0.0]), np.array([True, False, True])]),
    i=st.integers(-3, 2),
    call=transformations("eager", "jit"),
)
def test_functions_of_jax_are_those_of_numpy(x: Array, table: Array, i: int, call: Transformation) -> None:
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = np.sqrt(np.mean(wide**2)) if x.size else np.nan
    found = call(kept("TracerArrayConversionError", "loudness"))(x)
    if x.dtype == np.float32 or not (np.abs(wide) > 200).any():  # whose squares float16 does not hold, nor in NumPy
        assert_same(found, expected)
    refused(f"{ERRORS}#TracerArrayConversionError", {"jnp.ones(4)": "x"}, x=x)
    *_, looked_up = fixed(f"{ERRORS}#TracerArrayConversionError", {"(1)": "(i)"}, table=table, i=i)
    assert_same(looked_up, table[i])


@attack(
    f"{ERRORS}#ConcretizationTypeError",
    loss=SINGLE | st.integers(-(2**31), 2**31 - 1),
    x=arrays((4,), dtypes("float", "bool")),
)
def test_a_reported_loss_stays_what_it_is(loss: float, x: Array) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        found = kept("ConcretizationTypeError", "report")(loss)
        jax.effects_barrier()
    word, number = output.getvalue().split()
    assert word == "loss"
    np.testing.assert_array_equal(np.float32(number), np.float32(loss))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.float32(loss))
    refused(f"{ERRORS}#ConcretizationTypeError", {"0.25": "loss"}, loss=loss)
    places = kept("ConcretizationTypeError", "where")(x)
    np.testing.assert_array_equal(places, [*np.flatnonzero(x), -1, -1, -1][:3])


@attack(
    f"{ERRORS}#NonConcreteBooleanIndexError",
    x=arrays(st.sampled_from([(5,), (1,)]), dtypes("float", "int")),
    far=st.booleans(),
)
def test_a_mask_keeps_what_the_index_kept(x: Array, far: bool) -> None:
    if far and x.dtype == np.int32:
        x = x + np.int32(2**24 + 1)  # which float32 does not hold
    wide = x[x > 0].astype(np.float64)
    expected = wide.mean() if wide.size else np.nan
    assert_same(kept("NonConcreteBooleanIndexError", "positive_mean")(x), expected, rtol=1e-3)
    refused(f"{ERRORS}#NonConcreteBooleanIndexError", {"jnp.array([-1.0, 2.0, 4.0])": "x"}, x=x)
    _, masked = compiled_fix(f"{ERRORS}#NonConcreteBooleanIndexError", {"jnp.array([-1.0, 2.0])": "x"}, x=x)
    assert masked.dtype == x.dtype
    np.testing.assert_array_equal(masked, np.where(x > 0, x, np.zeros_like(x)))
    set_to_zero = x.copy()
    set_to_zero[x > 0] = 0
    np.testing.assert_array_equal(jnp.where(x > 0, 0, x), set_to_zero)
    assert jnp.where(x > 0, 0, x).dtype == x.dtype


@attack(f"{ERRORS}#UnexpectedTracerError", f"{ERRORS}#leaked-trace", xs=st.lists(SMALL, max_size=3))
def test_what_is_returned_is_kept(xs: list[float]) -> None:
    step, history = kept("UnexpectedTracerError", "step"), []
    for x in xs:
        y, value = step(x)
        history.append(value)
        assert y == value
        assert fixed(f"{ERRORS}#UnexpectedTracerError", {"step(1.0)": "step(x)"}, x=x) == [2 * x + 1]
        assert fixed(f"{ERRORS}#leaked-trace", {"(1.0)[0]": "(x)"}, x=x) == [(2 * x + 1, 2 * x)]
        refused(f"{ERRORS}#UnexpectedTracerError", {"step(1.0)": "step(x)"}, x=x)
    assert history == [2 * x for x in xs]


@attack(f"{ERRORS}#concrete-shapes", n=st.integers(0, 5), x=arrays(st.sampled_from([(6,), (2,), (0,), (5,)])))
def test_shapes_are_those_that_are_asked_for(n: int, x: Array) -> None:
    np.testing.assert_array_equal(kept("concrete-shapes", "column")(n), np.ones((n, 1)))
    refused(f"{ERRORS}#concrete-shapes", {"(3)": "(n)"}, n=n)
    halves = kept("concrete-shapes", "halves")
    if x.size % 2:
        with pytest.raises(TypeError, match="reshape"):
            halves(x)
    else:
        np.testing.assert_array_equal(halves(x), x.reshape(2, x.size // 2))


@attack(f"{ERRORS}#static-slice", x=arrays((5,), dtypes()), start=st.integers(0, 3), n=st.integers(0, 7))
def test_a_window_and_a_head_are_slices_where_they_fit(x: Array, start: int, n: int) -> None:
    np.testing.assert_array_equal(kept("static-slice", "window")(x, start), x[start : start + 2])
    np.testing.assert_array_equal(kept("static-slice", "head")(x, n), np.pad(x[:n], (0, max(0, x.size - n))))
    refused(f"{ERRORS}#static-slice", {"jnp.arange(5), 2": "x, n"}, x=x, n=n)


@attack(f"{ERRORS}#unsupported-format-string", loss=SINGLE, call=transformations("jit", "vmap"))
def test_a_formatted_loss_is_printed_and_returned(loss: float, call: Transformation) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        found = call(kept("unsupported-format-string", "report"))(np.float32(loss))
        jax.effects_barrier()
    assert {*output.getvalue().splitlines()} == {f"loss {loss:.3f}"}
    np.testing.assert_array_equal(found, np.float32(loss))
    refused(f"{ERRORS}#unsupported-format-string", {"0.25": "loss"}, loss=loss)


@attack(f"{ERRORS}#unhashable-tracer", phase=st.integers(-3, 4))
def test_a_table_of_rates_has_no_other_rates(phase: int) -> None:
    rates = {0: 0.1, 1: 0.01}
    rate = kept("unhashable-tracer", "rate")
    assert_same(rate(phase), rates.get(phase, np.nan))
    refused(f"{ERRORS}#unhashable-tracer", {"rate(1)": "rate(phase)"}, phase=phase)
    change = {"static_argnums=0)(1)": "static_argnums=0)(phase)"}
    if phase in rates:
        *_, static = fixed(f"{ERRORS}#unhashable-tracer", change, phase=phase)
        assert_same(static, rates[phase])
    else:
        with pytest.raises(KeyError):
            fixed(f"{ERRORS}#unhashable-tracer", change, phase=phase)


@attack(f"{ERRORS}#KeyReuseError", key=keys())
def test_a_check_of_keys_leaves_the_draws(key: jax.Array) -> None:
    refused(f"{ERRORS}#KeyReuseError", {"jax.random.key(0)": "jax.random.clone(given)"}, given=key)
    draws = {"jax.random.key(0)": "jax.random.clone(given)", "==": ","}
    found = fixed(f"{ERRORS}#KeyReuseError", draws, given=key)
    expected = [jax.random.normal(part) for part in jax.random.split(jax.random.clone(key))]
    assert found == expected and found[0] != found[1]


@attack(f"{ERRORS}#JaxRuntimeError", x=arrays((3,), dtypes("float", "int")))
def test_a_transfer_that_says_so_adds(x: Array) -> None:
    [found] = fixed(f"{ERRORS}#JaxRuntimeError", {"np.ones(3, np.float32)": "x"}, x=x)
    assert_same(found, x.astype(np.float64) + 1)
    refused(f"{ERRORS}#JaxRuntimeError")


@attack(f"{ERRORS}#InconclusiveDimensionOperation", x=st.sampled_from([0, 2, 3, 5]).flatmap(lambda n: arrays((n,))))
def test_an_exported_program_has_the_lengths_of_its_constraint(x: Array) -> None:
    exported = kept("InconclusiveDimensionOperation", "exported")
    if x.size >= 3:
        np.testing.assert_array_equal(exported.call(x), x[-3:])
    else:
        with pytest.raises(ValueError, match="n >= 3|Expected value >= 1 for dimension"):
            exported.call(x)


@attack(f"{ERRORS}#JaxprTypeError", x=SMALL)
def test_a_traced_program_adds_twice(x: float) -> None:
    twice = kept("JaxprTypeError", "twice")
    closed = jax.make_jaxpr(lambda x: x)(1.0).replace(jaxpr=twice)
    [found] = jax.extend.core.jaxpr_as_fun(closed)(jnp.float32(x))
    assert found == x + 2


# What people pass in: some can be traced and some cannot.
PASSED: list[Callable[[Any], Any]] = [
    lambda x: x.sum(),
    lambda x: x[x > 0].sum(),
    lambda x: float(x.sum()),
    lambda x: x.sum() if x[0] > 0 else -x.sum(),
    lambda x: x[int(x[0]) % 3],
    lambda x: [1.0, 2.0][x.astype(int)[0] % 2],
    lambda x: np.sqrt(abs(x)).sum(),
    lambda x: x[: x.size - 1].sum(),
]


@attack(f"{ERRORS}#JAXTypeError", given_function=st.sampled_from(PASSED), x=arrays((3,), odd=False))
def test_a_fallback_returns_what_python_does(given_function: Callable[[Any], Any], x: Array) -> None:
    verdict = kept("JAXTypeError", "try_tracing")(given_function, x)
    expected = given_function(jnp.asarray(x))
    if verdict == "traced":
        assert_same(jax.jit(given_function)(x), expected)
    else:
        with pytest.raises(getattr(jax.errors, verdict)):
            jax.jit(given_function)(x)
