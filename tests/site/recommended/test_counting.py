"""Attacks on the answers about traces: counters count each kind of argument once, and the numbers stay the same."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows, visible
from tests.site.strategies import arrays, assert_same

Array = np.ndarray[Any, Any]
JIT, AGAIN, MEMORY, TESTING = (f"answers/{page}.md" for page in ("jit", "recompilation", "memory", "testing"))
SMALL = st.integers(-16, 16).map(lambda n: n / 8)
KINDS: dict[str, Any] = {
    "floats": np.array([1, 2, 4], np.float32),
    "ints": np.array([1, 2, 4], np.int32),
    "scalar": np.float32(1.5),
    "number": 1.5,
}
# Each order of the kinds, and back again: at the end, all have been met.
SEQUENCES = st.permutations([*KINDS]).map(lambda names: [*names, *reversed(names)])
SIZES = st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=2)
FACTORS = st.sampled_from([0.5, -2.0])


def kind(x: Any) -> tuple[Any, ...]:
    """Return what distinguishes one kind of argument from another."""
    described = jax.typeof(x)
    return described.shape, described.dtype, described.weak_type


def afresh(name: str, *functions: str) -> Any:
    """The names of an answer's program, whose functions have not been traced."""
    names = visible(name)
    for function in functions:
        names[function].clear_cache()
    if "traces" in names:
        names["traces"].clear()
    return SimpleNamespace(**names)


@attack(f"{JIT}#nested-jit", names=SEQUENCES)
def test_an_inner_function_is_traced_once_for_each_kind(names: list[str]) -> None:
    nested = afresh(f"{JIT}#nested-jit", "inner", "outer")
    outer_kinds, inner_kinds = set(), set()
    for x in map(KINDS.__getitem__, names):
        assert_same(nested.outer(x), np.sin(np.sin(np.sin(np.asarray(x, float)))))
        outer_kinds.add(kind(x))
        inner_kinds |= {kind(x), kind(jnp.sin(x))}
        assert nested.traces.count("outer") == len(outer_kinds)
        assert nested.traces.count("inner") == len(inner_kinds)


@attack(x=arrays((3,), odd=False))
def test_nested_functions_have_the_slope_of_one(x: Array) -> None:
    once = np.sin(x.astype(float))
    expected = np.cos(x.astype(float)) * np.cos(once) * np.cos(np.sin(once))
    assert_same(nested_slope()(x), expected, atol=1e-3)


@cache
def nested_slope() -> Any:
    """Return the derivative of the answer's function at several points, compiled."""
    return jax.jit(jax.vmap(jax.grad(visible(f"{JIT}#nested-jit")["outer"])))


@attack(f"{MEMORY}#compiled-programs", f"{TESTING}#slow-suite", sizes=SIZES, value=st.sampled_from([0, 1.5]))
def test_each_shape_is_traced_once_until_the_cache_is_cleared(sizes: list[int], value: float) -> None:
    kept, suite = afresh(f"{MEMORY}#compiled-programs", "total"), afresh(f"{TESTING}#slow-suite", "normalize")
    for n in sizes:
        x = np.full(n, value, np.float32)
        assert_same(kept.total(x), np.float64(n * value))
        assert_same(suite.normalize(x), np.full(n, np.sign(value) / np.sqrt(n) if value else np.nan))
    assert len(kept.traces) == len(suite.traces) == len({*sizes})
    kept.total.clear_cache()
    assert_same(kept.total(np.full(sizes[0], value, np.float32)), np.float64(sizes[0] * value))
    assert len(kept.traces) == len({*sizes}) + 1


@attack(f"{AGAIN}#count-traces", rows=SIZES, x=arrays((3, 2), odd=False))
def test_each_kind_of_batch_is_counted_once(rows: list[int], x: Array) -> None:
    counted, met = kinds_of_batches()
    met |= dict.fromkeys(f"float32[{n},2]" for n in rows)
    for n in rows:
        wide = x[:n].astype(float)
        with np.errstate(all="ignore"):
            expected = (wide - wide.mean()) / wide.std()
        found = counted.normalize(x[:n])
        if wide.std() > 0.4 or not wide.std():  # between, a mean far from zero rounds
            assert_same(found, expected, rtol=1e-2, atol=1e-2)
    assert counted.traces == [*met]


@attack(f"{AGAIN}#slower-each-step", x=arrays((3,), odd=False), steps=st.integers(0, 4))
def test_an_array_of_its_full_size_is_traced_once_and_holds_the_same_losses(x: Array, steps: int) -> None:
    answer = afresh(f"{AGAIN}#slower-each-step", "growing", "fixed")
    (one, grown), (other, full) = (jnp.float32(x), jnp.zeros(0)), (jnp.float32(x), jnp.zeros(steps))
    expected = [(0.8**i * x.astype(float)) @ (0.8**i * x.astype(float)) for i in range(steps)]
    for i in range(steps):
        one, grown = answer.growing(one, grown)
        other, full = answer.fixed(other, full, i)
    assert_same(grown, np.array(expected), rtol=1e-3)
    assert_same(full, np.array(expected), rtol=1e-3)
    assert answer.traces.count("growing") == steps
    assert answer.traces.count("fixed") == min(steps, 1)


@cache
def kinds_of_batches() -> tuple[Any, dict[str, None]]:
    """Return the names of the answer's program, and what its function is called with."""
    return afresh(f"{AGAIN}#count-traces", "normalize"), {}


class Kept(logging.Handler):
    """A handler that keeps the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.messages.append(record.getMessage())


@contextlib.contextmanager
def logged() -> Iterator[list[str]]:
    """The messages that JAX logs meanwhile, which are not printed."""
    handler, logger = Kept(), logging.getLogger("jax")
    others, logger.handlers, before = logger.handlers, [handler], logger.propagate
    logger.propagate = False
    try:
        yield handler.messages
    finally:
        logger.handlers, logger.propagate = others, before


@attack(f"{AGAIN}#why-again", names=SEQUENCES)
def test_each_new_trace_is_explained_and_no_other_call(names: list[str]) -> None:
    double, met = afresh(f"{AGAIN}#why-again", "double").double, set()
    for x in map(KINDS.__getitem__, names):
        with logged() as messages, jax.explain_cache_misses(True):
            assert_same(double(x), 2 * np.asarray(x))
        explained = [message for message in messages if "TRACING CACHE MISS" in message]
        assert len(explained) == (kind(x) not in met)
        assert all("double" in message for message in explained)
        met.add(kind(x))


def _add(total: Any, x: Any) -> tuple[Any, None]:
    return total + x, None


def _twice(x: Any) -> Any:
    return 2 * x


UNEXPLAINED: dict[str, Callable[[int], Any]] = {
    "an operation outside jit": lambda n: jnp.flip(np.ones(n, np.float32)),
    "another length": lambda n: jax.lax.scan(_add, np.float32(0), np.ones(n, np.float32)),
    "more rows": lambda n: jax.vmap(jax.jit(_twice))(np.ones((n, 7), np.float32)),
}


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_what_is_not_a_trace_of_a_jitted_function_is_listed_but_not_explained(name: str) -> None:
    jax.clear_caches()
    call = UNEXPLAINED[name]
    call(41)
    with logged() as messages, jax.explain_cache_misses(True), jax.log_compiles(True):
        call(42)
    assert any(message.startswith("Compiling") for message in messages), messages
    assert not any("TRACING CACHE MISS" in message for message in messages), messages


@attack(f"{AGAIN}#static-self", scales=st.lists(FACTORS, min_size=1, max_size=2), x=st.sampled_from([0, 3]))
def test_an_object_that_does_not_change_gives_its_own_results(scales: list[float], x: float) -> None:
    made = program(f"{AGAIN}#static-self", "Layer")["Layer"]
    for scale in scales:  # each is gone before the next, which may get its place in memory
        assert_same(made(scale).apply(x), np.float64(scale * x))
    layer = made(scales[0])
    for scale in scales:
        layer.scale = scale
        assert_same(layer.apply(x), np.float64(scales[0] * x))  # as the answer warns
        assert_same(passed()(layer, x), np.float64(scale * x))


@cache
def passed() -> Any:
    """Return the answer's method where its class is a pytree and the object an argument."""
    layer = program(f"{AGAIN}#static-self", "Layer", jax=jax)["Layer"]  # anew: a class is registered once
    method = layer.apply.__wrapped__
    jax.tree_util.register_pytree_node(layer, lambda x: ((x.scale,), None), lambda _, parts: layer(*parts))
    compiled = jax.jit(method)
    return lambda given, x: compiled(layer(given.scale), x)


ARRAY = st.sampled_from([np.array([1, 2, 4], np.float32), np.array([0.5, -1, 8], np.float32)])
STRUCTURES: dict[str, Any] = {
    "array": lambda a, b: ((a,), {}),
    "two": lambda a, b: ((a, b), {}),
    "named": lambda a, b: ((a,), {"mask": b}),
    "list": lambda a, b: (([a, b],), {}),
    "tuple": lambda a, b: (((a, b),), {}),
    "dict": lambda a, b: (({"p": a, "q": b},), {}),
    "dict, other order": lambda a, b: (({"q": b, "p": a},), {}),
}


@attack(f"{AGAIN}#structure", names=st.permutations([*STRUCTURES]), a=ARRAY, b=ARRAY)
def test_structures_count_and_the_order_of_keys_does_not(names: list[str], a: Array, b: Array) -> None:
    counted = traced_structures()
    for name in [*names, *names]:
        args, kwargs = STRUCTURES[name](a, b)
        assert_same(counted.total(*args, **kwargs), a if name == "array" else a.astype(float) + b)
    assert len(counted.traces) == len(STRUCTURES) - 1


@cache
def traced_structures() -> Any:
    """Return the names of the answer's program, whose function has not been traced."""
    return afresh(f"{AGAIN}#structure", "total")


@attack(
    f"{TESTING}#count-compilations",
    sizes=st.lists(st.sampled_from([1, 2]), min_size=1, max_size=3),
    start=st.sampled_from([jnp.float32(0), 0.0]),
    value=FACTORS,
)
def test_a_second_trace_is_an_error(sizes: list[int], start: Any, value: float) -> None:
    found = afresh(f"{TESTING}#count-compilations", "step")
    found.chex.clear_trace_counter()
    step, state, total = found.step, start, 0.0
    met: set[Any] = set()
    for n in sizes:
        batch = jnp.full(n, value, jnp.float32)
        key = kind(state), n
        if met and key not in met:
            with pytest.raises(AssertionError, match="traced > 1 times"):
                step(state, batch)
        else:
            met.add(key)
            state, total = step(state, batch), total + value
            assert_same(state, np.float64(total))


@attack(
    f"{TESTING}#monkeypatch", patches=st.lists(st.tuples(FACTORS, st.booleans()), max_size=2), x=st.sampled_from([0, 3])
)
def test_a_patch_is_seen_once_the_cache_is_cleared(patches: list[tuple[float, bool]], x: float) -> None:
    page = visible(f"{TESTING}#monkeypatch")
    settings, scale = page["settings"], page["scale"]
    settings.rate = known = 1.0
    scale.clear_cache()
    scale(x)
    for rate, cleared in patches:
        settings.rate = rate
        if cleared:
            scale.clear_cache()
            known = rate
        assert_same(scale(x), np.float64(known * x))
        with jax.disable_jit():
            assert_same(scale(x), np.float64(rate * x))


@slow_attack(f"{TESTING}#suite-memory", clear=st.lists(st.booleans(), max_size=3))
def test_cleared_programs_are_compiled_again(clear: list[bool]) -> None:
    shows(f"{TESTING}#suite-memory", "def clear(): yield jax.clear_caches()")
    page = afresh(f"{TESTING}#suite-memory", "double")
    expected = 1
    assert_same(page.double(1.0), np.float64(2))
    for cleared in clear:
        if cleared:
            jax.clear_caches()
        expected += cleared
        assert_same(page.double(3.0), np.float64(6))
        assert len(page.traces) == expected
