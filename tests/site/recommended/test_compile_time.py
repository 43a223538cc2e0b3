"""Attacks on the answers about compile time: what is compiled sooner, less or once computes the same."""

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from tempfile import TemporaryDirectory
from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from hypothesis import strategies as st
from jax.experimental.compilation_cache import compilation_cache

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import Transformation, arrays, assert_same, keys, slopes, transformations

Array = np.ndarray[Any, Any]
PAGE = "answers/compile-time.md"
SMALL = st.integers(-16, 16).map(lambda n: n / 8)


def made(anchor: str, *wanted: str, **given_names: Any) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted, **given_names)


def small(*shape: int) -> st.SearchStrategy[Array]:
    """Arrays of numbers from -2 to 2."""
    return arrays(shape, odd=False).map(lambda x: np.clip(x / 8, -2, 2))


@contextmanager
def reported() -> Iterator[list[str]]:
    """The last parts of the names of what JAX reports meanwhile."""
    found: list[str] = []

    def durations(event: str, duration_secs: float, **_: Any) -> None:
        found.append(event.rsplit("/", maxsplit=1)[-1])

    def events(event: str, **_: Any) -> None:
        found.append(event.rsplit("/", maxsplit=1)[-1])

    jax.monitoring.register_event_duration_secs_listener(durations)
    jax.monitoring.register_event_listener(events)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(durations)
        jax.monitoring.unregister_event_listener(events)


@contextmanager
def setting(**values: Any) -> Iterator[None]:
    """Change settings of JAX, which then looks again whether and where it keeps what it compiles."""
    before = {name: getattr(jax.config, name) for name in values}
    try:
        change(values)
        yield
    finally:
        change(before)


def change(values: dict[str, Any]) -> None:
    """Set these settings of JAX."""
    for name, value in values.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@cache
def ahead(n: int) -> tuple[Any, Any]:
    """The function of an answer, called after it was compiled ahead of time, and what was compiled."""
    f, x = made("first-call", "f", stages=[])["f"], jnp.zeros((n, n))
    shows(f"{PAGE}#first-call", '`f.lower(jax.ShapeDtypeStruct((10, 10), "float32")).compile()`')
    with reported() as found:
        compiled = f.lower(jax.ShapeDtypeStruct((n, n), "float32")).compile()
        assert "backend_compile_duration" in found
        found.clear()
        f(x)
        assert not [stage for stage in found if stage.startswith(("backend", "jaxpr"))], found
    return f, compiled


@attack(f"{PAGE}#first-call", x=st.sampled_from([0, 1, 3]).flatmap(lambda n: small(n, n)))
def test_what_is_compiled_ahead_is_what_is_called(x: Array) -> None:
    expected = np.tanh(x.astype(float) @ x).sum()
    for function in ahead(len(x)):
        assert_same(function(x), expected)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "page": lambda x: 2 * x + 1,
    "sorted": lambda x: jnp.sort(x) / (1 + x**2),
    "solved": lambda x: jnp.linalg.solve(jnp.eye(3) * 4 + x, x),
    "drawn": lambda x: x + jax.random.normal(jax.random.key(0), (3,)),
    "scanned": lambda x: jax.lax.scan(lambda c, v: (c + jnp.sin(v), c), jnp.zeros(()), x)[1],
}


@cache
def from_disk(name: str, slope: bool) -> tuple[Any, ...]:
    """A function that is compiled without a folder, stored in one, and loaded from it."""

    def compiled() -> Any:
        function = FUNCTIONS[name]
        of_sum = jax.grad(lambda x: function(x).sum())
        return jax.jit(of_sum if slope else partial(function)).lower(jnp.zeros(3)).compile()

    with TemporaryDirectory() as folder:
        options = {"jax_compilation_cache_dir": folder, "jax_persistent_cache_min_compile_time_secs": 0}
        with setting(jax_enable_compilation_cache=False):
            found = [compiled()]
        for event in ("cache_misses", "cache_hits"):
            with setting(**options), reported() as events:
                found.append(compiled())
            assert event in events
    return tuple(found)


@attack(f"{PAGE}#keep-on-disk", x=arrays((3,)), name=st.sampled_from([*FUNCTIONS]), slope=st.booleans())
def test_a_program_from_disk_is_the_one_that_was_compiled(x: Array, name: str, slope: bool) -> None:
    anew, stored, loaded = from_disk(name, slope)
    expected = np.asarray(anew(x))
    assert_same(stored(x), expected, 0, 0)
    assert_same(loaded(x), expected, 0, 0)
    if name == "page":
        assert_same(expected, np.full(3, 2.0) if slope else 2 * x + 1)


@cache
def with_threshold(seconds: float) -> tuple[Any, bool]:
    """The function of an answer, compiled with this threshold, and whether it was stored."""
    with TemporaryDirectory() as folder:
        options = {"jax_compilation_cache_dir": folder, "jax_persistent_cache_min_compile_time_secs": seconds}
        with setting(**options), reported() as events:
            compiled = jax.jit(lambda x: 2 * x + 1).lower(1.0).compile()
    return compiled, "cache_misses" in events


@attack(f"{PAGE}#cache-folder-empty", x=SMALL, seconds=st.sampled_from([0, 1000.0]))
def test_the_threshold_decides_what_is_stored_and_not_what_is_computed(x: float, seconds: float) -> None:
    shows(f"{PAGE}#cache-folder-empty", 'jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)')
    compiled, stored = with_threshold(seconds)
    assert_same(compiled(x), np.float64(2 * x + 1))
    assert stored == (seconds == 0)


PROGRAMS = st.tuples(
    st.sampled_from([2.0, 3.0, -0.0, 0.0, float("nan"), float("inf")]),
    st.sampled_from(["named", "other"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from([1, 2]),
    st.sampled_from([np.dtype("float32"), np.dtype("int32")]),
    st.booleans(),
)


@slow_attack(f"{PAGE}#cache-key", programs=st.lists(PROGRAMS, min_size=2, max_size=3), x=st.integers(-9, 9))
def test_only_an_equal_program_comes_from_the_disk(programs: list[Any], x: int) -> None:
    seen: set[str] = set()
    with TemporaryDirectory() as folder, setting(jax_compilation_cache_dir=folder), np.errstate(all="ignore"):
        for constant, name, key, size, dtype, donated in programs:

            def function(x: jax.Array, constant: float = constant, key: str = key) -> Any:
                return {key: constant * x + 1}

            function.__name__ = name
            given_x = jnp.asarray(np.full(size, x, dtype))
            with reported() as events:
                jitted = jax.jit(function, donate_argnums=0 if donated else ())
                found = jitted(given_x)
            assert_same(found[key], np.full(size, np.float32(constant) * x + 1))
            program_key = str((constant, name, key, size, dtype, donated))
            assert ("cache_hits" in events) == (program_key in seen), programs
            seen.add(program_key)


@cache
def networks(of_weights: bool) -> dict[str, Any]:
    """The networks of an answer, and the scan with two layers in each iteration; or the gradients of their sums."""
    found = made("deep-network", "one_by_one", "scanned", "layer")
    functions = {
        "one_by_one": found["one_by_one"],
        "scanned": found["scanned"],
        "unrolled": lambda weights, x: jax.lax.scan(lambda x, w: (found["layer"](x, w), None), x, weights, unroll=2)[0],
        "stacked": lambda weights, x: found["scanned"](
            jax.tree.map(lambda *w: jnp.stack(w), *[{"w": w} for w in weights])["w"], x
        ),
    }

    def of_sum(function: Any) -> Any:
        return jax.grad(lambda weights, x: function(weights, x).sum())

    return {name: jax.jit(of_sum(f) if of_weights else f) for name, f in functions.items()}


@attack(
    f"{PAGE}#deep-network",
    weights=st.sampled_from([0, 1, 3]).flatmap(lambda depth: small(depth, 2, 2)),
    x=small(4, 2),
    name=st.sampled_from(["one_by_one", "scanned", "unrolled", "stacked"]),
)
def test_a_scan_over_layers_is_the_loop(weights: Array, x: Array, name: str) -> None:
    def in_numpy(weights: Array) -> Any:
        y = x.astype(float)
        for w in weights:
            y = np.tanh(y @ w)
        return y

    if name == "stacked" and not len(weights):
        return  # there is no layer whose structure it could take, which raises
    assert_same(networks(False)[name](weights, x), in_numpy(weights.astype(float)))
    expected = slopes(lambda weights: in_numpy(weights).sum(), weights)
    assert_same(networks(True)[name](weights, x), expected, 1e-3, 1e-3)


@cache
def passing() -> Any:
    """The function of an answer whose table is an argument."""
    return jax.jit(made("constant-folding", "passed")["passed"])


@slow_attack(f"{PAGE}#constant-folding", x=SMALL, table=arrays((3,), odd=False), new=arrays((3,), odd=False))
def test_a_table_that_is_passed_is_read_at_each_call(x: float, table: Array, new: Array) -> None:
    names = made("constant-folding", "captured", table=table.copy())
    expected, changed = (x * np.sin(values.astype(float)).sum() for values in (table, new))
    captured, partially = jax.jit(names["captured"]), partial(passing(), table=table)
    for found in (captured(x), passing()(x, table), partially(x)):
        assert_same(found, np.float64(expected), atol=1e-3)
    names["table"] = new
    assert_same(captured(x), np.float64(expected), atol=1e-3)  # "a constant of the program"
    assert_same(passing()(x, new), np.float64(changed), atol=1e-3)


@cache
def logged() -> tuple[Any, Any]:
    """The gradient of an answer, compiled with and without a log and a listener."""
    loss = made("log-compile-times", "loss")["loss"]
    shows(f"{PAGE}#log-compile-times", "`jax.log_compiles()`", "jax.jit(jax.grad(loss))(x, x)")
    shape, lines = jnp.zeros((2, 2)), list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("jax")
    logger.addHandler(handler)
    try:
        with jax.log_compiles(), reported() as found:
            watched = jax.jit(jax.grad(partial(loss)))
            watched(shape, shape)
    finally:
        logger.removeHandler(handler)
    assert "backend_compile_duration" in found and any("Compiling" in line for line in lines), lines
    return jax.jit(jax.grad(loss)), watched


@attack(f"{PAGE}#log-compile-times", w=small(2, 2), x=small(2, 2))
def test_a_log_changes_no_number(w: Array, x: Array) -> None:
    wide = x.astype(float)
    expected = slopes(lambda w: np.mean(np.tanh(wide @ w) ** 2), w)
    for function in logged():
        assert_same(function(w, x), expected, atol=1e-3)


@cache
def simulations() -> tuple[Any, ...]:
    """The gradient of an answer's simulation, of that with the loop that it recommends, and in two parts."""
    shows(f"{PAGE}#find-the-culprit", "write this `for` as a `scan`", "x = x + 0.01 * jnp.sin(x)", "`jax.eval_shape`")

    def step(x: jax.Array) -> jax.Array:
        return x + 0.01 * jnp.sin(x)

    def looped(x: jax.Array) -> Any:
        return jax.lax.fori_loop(0, 50, lambda i, x: step(x), x)

    def scanned(x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, _: (step(x), None), x, length=50)[0]

    whole = [made("find-the-culprit", "simulate")["simulate"]]
    whole += [lambda x, loop=loop: jnp.linalg.norm(loop(x)) for loop in (looped, scanned)]
    shape = jax.ShapeDtypeStruct((3,), jnp.float32)
    first = jax.jit(looped).lower(shape).compile()
    second = jax.jit(jnp.linalg.norm).lower(jax.eval_shape(looped, shape)).compile()
    return [jax.jit(jax.value_and_grad(f)) for f in whole], lambda x: second(first(x))


@attack(f"{PAGE}#find-the-culprit", x=small(3))
def test_a_loop_is_the_simulation_that_was_unrolled(x: Array) -> None:
    def in_numpy(x: Array) -> Any:
        for _ in range(50):
            x = x + 0.01 * np.sin(x)
        return np.linalg.norm(x)

    functions, parts = simulations()
    assert_same(parts(x), in_numpy(x.astype(float)))
    for function in functions:
        value, slope = function(x)
        assert_same(value, in_numpy(x.astype(float)))
        if x.any():  # at the origin the norm has no derivative
            assert_same(slope, slopes(in_numpy, x), atol=1e-3)


@cache
def with_less(less: bool) -> Any:
    """The function of an answer, compiled with and without most optimizations."""
    f = made("compile-less", "f")["f"]
    jax.config.update("jax_disable_most_optimizations", less)
    try:
        return jax.jit(partial(f)).lower(jnp.ones((3, 3))).compile()
    finally:
        jax.config.update("jax_disable_most_optimizations", False)


@attack(f"{PAGE}#compile-less", x=small(3, 3).map(lambda x: np.abs(x) + 1))
def test_fewer_optimizations_change_the_last_digits_only(x: Array) -> None:
    y = x.astype(float)
    for _ in range(8):
        y = np.tanh(y @ y.T) * np.sin(y) + y.sum()
    for less in (False, True):
        assert_same(with_less(less)(x), y, 1e-3)


@cache
def models(nested: bool) -> tuple[Any, int]:
    """The model of an answer, whose block is jitted or not, and how often that is traced."""
    traces: list[Any] = []
    found = made("inner-jit", "block", "model", traces=traces)
    block = jax.jit(found["block"]) if nested else found["block"]
    compiled = jax.jit(jax.value_and_grad(lambda x: found["model"](x, block).sum()))
    compiled(jnp.ones(4))
    return compiled, len(traces)


@attack(f"{PAGE}#inner-jit", x=arrays((4,), odd=False), nested=st.booleans())
def test_an_inner_jit_changes_no_number(x: Array, nested: bool) -> None:
    def in_numpy(x: Array) -> Any:
        for _ in range(20):
            x = np.tanh(np.tanh(np.tanh(x) + 1) + 1)
        return x.sum()

    compiled, traces = models(nested)
    value, slope = compiled(x)
    assert_same(value, in_numpy(x.astype(float)))
    assert_same(slope, slopes(in_numpy, x), atol=1e-3)
    assert traces == (1 if nested else 20)


@cache
def initializers() -> list[tuple[Any, Any]]:
    """Initializations of the answer and of its three libraries, plain and with `jit`."""
    shows(f"{PAGE}#slow-init", "`jax.jit(model.init)(key, x)`", "`eqx.filter_jit(Model)(key=key)`", "`nnx.jit`")
    init, linen, x = made("slow-init", "init")["init"], nn.Dense(2), jnp.ones((1, 3))

    def layer(key: jax.Array) -> Any:
        return nnx.Linear(3, 2, rngs=nnx.Rngs(key))

    class Model(eqx.Module):
        linear: eqx.nn.Linear

        def __init__(self, *, key: jax.Array) -> None:
            self.linear = eqx.nn.Linear(3, 2, key=key)

    compiled_linen, compiled_layer, compiled_model = jax.jit(linen.init), nnx.jit(layer), eqx.filter_jit(Model)
    return [
        (init, jax.jit(init)),
        (lambda key: linen.init(key, x), lambda key: compiled_linen(key, x)),
        (
            lambda key: nnx.to_pure_dict(nnx.state(layer(key))),
            lambda key: nnx.to_pure_dict(nnx.state(compiled_layer(key))),
        ),
        (lambda key: Model(key=key), lambda key: compiled_model(key=key)),
    ]


@slow_attack(f"{PAGE}#slow-init", key=keys())
def test_a_compiled_initialization_returns_the_parameters(key: jax.Array) -> None:
    for plain, compiled in initializers():
        trees = plain(key), compiled(key), jax.eval_shape(plain, key)
        for one, two, shape in zip(*map(jax.tree.leaves, trees), strict=True):
            assert (one.shape, one.dtype) == (two.shape, two.dtype) == (shape.shape, shape.dtype)
            is_key = jnp.issubdtype(one.dtype, jax.dtypes.prng_key)
            found, expected = map(jax.random.key_data if is_key else jnp.asarray, (two, one))
            assert_same(found, expected, 1e-6, 1e-6)


@cache
def derivatives(name: str, order: int) -> Any:
    """The derivative of this order that an answer computes."""
    function = made("higher-derivatives", name)[name]
    return jax.jit(lambda x: function(x, order))


def coefficients(x: float, count: int) -> Array:
    """The first coefficients of the answer's function in a Taylor series around a point, in float64."""
    sine = [math.sin(x + n * math.pi / 2) / math.factorial(n) for n in range(count)]
    growth = [math.exp(x) / math.factorial(n) for n in range(count)]
    below, above = [1 + x * x, 2 * x, 1.0, *[0.0] * count], np.convolve(sine, growth)[:count]
    found: list[float] = []
    for n in range(count):  # found * below == above
        found.append((above[n] - sum(below[n - i] * found[i] for i in range(n))) / below[0])
    return np.array(found)


@attack(
    f"{PAGE}#higher-derivatives",
    x=SMALL,
    order=st.integers(0, 4),
    name=st.sampled_from(["nested", "taylor"]),
    call=transformations(),
)
def test_a_higher_derivative_is_a_coefficient_of_the_series(
    x: float, order: int, name: str, call: Transformation
) -> None:
    expected = coefficients(x, order + 1)[order] * math.factorial(order)
    scale = max(1.0, abs(expected), math.exp(x)) * math.factorial(order)
    assert_same(call(derivatives(name, order))(x), np.float64(expected), 1e-4, 1e-5 * scale)
