"""Attacks on the answers about memory and speed: what is measured equals arithmetic, and measuring changes no number."""

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import Transformation, arrays, assert_same, transformations

Array = np.ndarray[Any, Any]
MEMORY, SPEED = "answers/memory.md", "answers/speed.md"
SQUARES = arrays((3, 3), odd=False).map(lambda x: np.clip(x / 16, -0.5, 0.5))


def floats(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """A description of an array."""
    return jax.ShapeDtypeStruct(shape, dtype)


@cache
def needs(function: Callable[..., Any], *described: jax.ShapeDtypeStruct, donated: tuple[int, ...] = ()) -> Any:
    """Return what the compiler plans for a function of such arrays."""
    return jax.jit(function, donate_argnums=donated).lower(*described).compile()


def total(compiled: Any) -> int:
    """The bytes that a compiled function needs, as an answer computes them."""
    shows(
        f"{MEMORY}#ask-first",
        "needs = jax.jit(distances).lower(points).compile().memory_analysis()",
        "total = (needs.temp_size_in_bytes + needs.argument_size_in_bytes"
        " + needs.output_size_in_bytes - needs.alias_size_in_bytes)",
    )
    found = compiled.memory_analysis()
    return int(
        found.temp_size_in_bytes + found.argument_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes
    )


@cache
def scaled() -> Callable[[Any], Any]:
    """Return a function that needs nothing but its argument and its result."""
    return lambda x: 0.9 * x


@attack(
    f"{MEMORY}#ask-first",
    n=st.sampled_from([64, 100, 150]),
    shape=st.sampled_from([(), (1,), (5,), (3, 4)]),
    dtype=st.sampled_from([jnp.float32, jnp.float16, jnp.complex64]),
    donated=st.booleans(),
)
def test_the_bytes_of_a_function_are_those_of_its_arrays(
    n: int, shape: tuple[int, ...], dtype: Any, donated: bool
) -> None:
    size = int(np.prod(shape)) * jnp.dtype(dtype).itemsize
    plan = needs(scaled(), floats(*shape, dtype=dtype), donated=(0,) if donated else ())
    assert total(plan) - plan.memory_analysis().temp_size_in_bytes == (1 if donated else 2) * size
    ends = 4 * 3 * n + 4 * n  # the points, and an index for each
    found = total(needs(program(f"{MEMORY}#ask-first", "distances")["distances"], floats(n, 3)))
    assert 4 * n**2 <= found - ends <= 1.1 * 4 * 3 * n**2  # between all distances and all differences


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep what other tests left from being freed meanwhile."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@attack(
    f"{MEMORY}#memory-grows",
    n=st.sampled_from([1, 5, 1000]),
    kept=st.lists(st.sampled_from(["weights", "mean", "nothing"]), max_size=5),
)
def test_live_arrays_are_those_that_are_kept(n: int, kept: list[str]) -> None:
    names = program(f"{MEMORY}#memory-grows", "megabytes", "step")
    w, held = jnp.ones(n), []
    names["step"](w)
    with no_collection():
        mean = None
        before = names["megabytes"]()
        for i, what in enumerate(kept, 1):
            w, mean = names["step"](w)
            assert_same(w, np.full(n, 0.9**i))
            assert_same(mean, np.float64(0.9**i))
            held += [w] if what == "weights" else [mean] if what == "mean" else []
        mean = None
        again = bool(kept) and kept[-1] == "weights"  # the list and the name are one array
        count = n * (kept.count("weights") - again) + kept.count("mean")
        assert round((names["megabytes"]() - before) * 1e6) == 4 * count
        held.clear()
        assert round((names["megabytes"]() - before) * 1e6) == 0


def live() -> int:
    """The bytes of all arrays, as an answer counts them."""
    shows(f"{MEMORY}#free-memory", "return sum(a.nbytes for a in jax.live_arrays()) // 4_000_000")
    return sum(a.nbytes for a in jax.live_arrays())


def assert_deleted(x: jax.Array) -> None:
    """Check that nothing reads this array.

    Raises:
        AssertionError: something does.
    """
    assert x.is_deleted()
    for read in (lambda: x + 1, lambda: np.asarray(x), x.sum):
        with pytest.raises(RuntimeError, match="deleted"):
            read()


@attack(f"{MEMORY}#free-memory", x=arrays((5,)), names=st.integers(1, 3), delete=st.booleans())
def test_an_array_is_freed_with_its_last_name(x: Array, names: int, delete: bool) -> None:
    with no_collection():
        before = live()
        kept = [jnp.array(x)] * names
        other, view = kept[0] + 1, np.asarray(kept[0])
        assert live() == before + 2 * x.nbytes
        if delete:
            kept[-1].delete()
            assert_deleted(kept[0])
        while kept:
            assert live() == before + (1 if delete else 2) * x.nbytes
            kept.pop()
        if delete:
            assert live() == before + x.nbytes
        assert_same(view, x, 0, 0)  # which holds the memory
        del view
        assert live() == before + x.nbytes
        with np.errstate(all="ignore"):
            assert_same(other, x + 1)


@attack(
    f"{MEMORY}#no-grad",
    weights=arrays((2, 3, 3), odd=False),
    x=arrays((4, 3), odd=False),
    layers=st.sampled_from([4, 16]),
)
def test_only_a_gradient_keeps_the_layers(weights: Array, x: Array, layers: int) -> None:
    loss, gradient = losses()
    weights, x = weights / 16, np.clip(x, -4, 4)
    found = x.astype(float)
    for w in weights:
        found = np.tanh(found @ w)
    assert_same(loss(weights, x), (found**2).mean(), rtol=1e-3)
    each = 4 * 32 * 64  # the bytes of an activation
    given = floats(layers, 64, 64), floats(32, 64)
    forward, backward = (needs(f, *given).memory_analysis().temp_size_in_bytes for f in (loss, gradient))
    assert backward >= layers * each
    assert forward == needs(loss, floats(32, 64, 64), floats(32, 64)).memory_analysis().temp_size_in_bytes


@cache
def losses() -> tuple[Any, Any]:
    """Return the answer's loss and its gradient, compiled."""
    loss = program(f"{MEMORY}#no-grad", "loss")["loss"]
    return jax.jit(loss), jax.jit(jax.grad(loss))


# What a donated float32 array of n numbers shares with the results, and the function of NumPy.
DONATED: dict[str, tuple[Callable[[Any], Any], Callable[[int], int | None], Callable[[Array], Array]]] = {
    "scaled": (lambda x: 0.9 * x, lambda n: 4 * n, lambda x: np.float32(0.9) * x),
    "sorted": (jnp.sort, lambda n: 4 * n, np.sort),
    "half": (lambda x: x.astype(jnp.float16), lambda n: 0, lambda x: x.astype(np.float16)),
    "unread": (lambda x: jnp.zeros(x.shape), lambda n: 0, np.zeros_like),
    "shorter": (lambda x: x[:1] * 2, lambda n: 4 if n == 1 else 0, lambda x: x[:1] * 2),
}


@cache
def donated(name: str) -> Any:
    """Return a function that may reuse the memory of its argument, compiled."""
    return jax.jit(DONATED[name][0], donate_argnums=0)


@attack(f"{MEMORY}#donation-works", x=st.sampled_from([1, 5]).flatmap(lambda n: arrays((n,))))
@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_donation_changes_no_number_and_is_seen(x: Array) -> None:
    shows(
        f"{MEMORY}#donation-works", "shared = lowered.compile().memory_analysis().alias_size_in_bytes", "x.is_deleted()"
    )
    for name, (function, shared, expected) in DONATED.items():
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            plan = needs(function, floats(x.size), donated=(0,)).memory_analysis()
            given = jnp.array(x)
            assert_same(donated(name)(given), expected(x))
        assert plan.alias_size_in_bytes == shared(x.size)
        assert given.is_deleted() == (plan.alias_size_in_bytes > 0)


@attack(
    f"{MEMORY}#keep-on-host", data=arrays((12, 4), odd=False), size=st.sampled_from([2, 3, 5]), device=st.integers(0, 7)
)
def test_batches_from_the_host_are_those_of_numpy(data: Array, size: int, device: int) -> None:
    shows(
        f"{MEMORY}#keep-on-host", "total(data[i:i + 1000]) for i in range(0, len(data), 1000)", 'jax.devices("cpu")[0])'
    )
    total = program(f"{MEMORY}#keep-on-host", "total")["total"]
    total(data[:size]), total(data[: 12 % size or size])
    with no_collection():
        before = live()
        totals = [total(data[i : i + size]) for i in range(0, len(data), size)]
        assert live() - before == 4 * len(totals)
    assert_same(sum(totals) / data.size, data.astype(float).mean(), atol=1e-3)
    cpus = jax.devices("cpu")
    w = jax.device_put(data[::2].copy(), cpus[device % len(cpus)])
    assert (2 * w).device == w.device == cpus[device % len(cpus)]
    assert_same(jax.device_get(2 * w), 2 * data[::2])


@attack(f"{SPEED}#time-a-function", spent=st.lists(st.integers(1, 9999), min_size=6, max_size=6), x=SQUARES)
def test_the_smallest_time_is_taken_and_nothing_is_changed(spent: list[int], x: Array) -> None:
    shows(f"{SPEED}#time-a-function", "jax.block_until_ready(work(x))")
    clock = SimpleNamespace(now=0.0, left=[*spent])

    def run() -> None:
        clock.now += clock.left.pop(0) / 1e3

    fake = SimpleNamespace(perf_counter=lambda: clock.now)
    assert program(f"{SPEED}#time-a-function", "best", time=fake)["best"](run) == f"{min(spent):.2f} ms"
    assert not clock.left
    found = jax.block_until_ready(program(f"{SPEED}#time-a-function", "work")["work"](x))
    wide = x.astype(float)
    for _ in range(10):
        wide = np.tanh(wide @ wide)
    assert_same(found, wide, rtol=1e-2, atol=1e-3)


@attack(f"{SPEED}#float-waits", x=SQUARES, steps=st.integers(0, 4))
def test_losses_may_be_converted_late(x: Array, steps: int) -> None:
    shows(f"{SPEED}#float-waits", "So keep the losses as arrays in a list")
    step = program(f"{SPEED}#float-waits", "step")["step"]
    late, at_once, state = [], [], jnp.array(x)
    for _ in range(steps):
        late.append(step(state))
        at_once.append(float(step(state)))
        state = donated("scaled")(state)  # whose memory is used again
    assert [float(loss) for loss in late] == at_once
    for i, loss in enumerate(at_once):
        wide = x.astype(float) * 0.9**i
        for _ in range(30):
            wide = np.tanh(wide @ wide)
        assert_same(loss, wide.sum(), rtol=1e-2, atol=1e-2)


@attack(
    f"{SPEED}#where-to-begin",
    x=st.sampled_from([(3,), (1,), (), (2, 3)]).flatmap(lambda shape: arrays(shape, odd=False)),
    steps=st.integers(0, 20),
)
def test_the_steps_of_a_simulation_compile_once_for_each_shape(x: Array, steps: int) -> None:
    simulate, shapes = simulated()
    expected = x.astype(float)
    for _ in range(steps):
        expected = expected + 0.01 * np.sin(expected)
    assert_same(simulate(jnp.array(x), steps), expected, atol=1e-3)
    assert len(shapes) == len(set(shapes)) and str(x.shape) in shapes


@cache
def simulated() -> tuple[Any, list[str]]:
    """Return the answer's simulation, and the shapes for which it says that it is compiling."""
    shapes: list[str] = []
    report = {"print": lambda _, shape: shapes.append(str(shape))}
    return program(f"{SPEED}#where-to-begin", "simulate", **report)["simulate"], shapes


@attack(f"{SPEED}#element-by-element", x=arrays((100,)))
def test_elements_are_the_same_on_the_host(x: Array) -> None:
    shows(f"{SPEED}#element-by-element", "on_host = np.asarray(x)", "sum(float(v) for v in on_host)")
    there = jnp.array(x)
    on_host = np.asarray(there)
    assert_same([float(v) for v in on_host], x.astype(float), 0, 0)
    with np.errstate(all="ignore"):
        assert_same(np.float64(sum(float(v) for v in on_host)), x.astype(float).sum())
        assert_same(there.sum(), x.astype(float).sum(), atol=1e-2)
    assert_same(picked()(there), x, 0, 0)


@cache
def picked() -> Any:
    """Return the answer's loop, compiled."""
    return jax.jit(program(f"{SPEED}#element-by-element", "pick")["pick"])


@attack(f"{SPEED}#jit-the-whole-step", w=arrays((3,), odd=False), x=arrays((4, 3), odd=False))
def test_each_way_to_compile_takes_the_same_step(w: Array, x: Array) -> None:
    w, x = w / 8, np.clip(x / 8, -1, 1)
    t = np.tanh(x.astype(float) @ w)
    expected = w - 0.1 * (2 * t * (1 - t**2)) @ x / len(x)
    for name in ("no jit", "jit the step"):  # the third one is there to be counted
        assert_same(ways()[name](w, x), expected)


@cache
def ways() -> dict[str, Any]:
    """Return the answer's ways to compile a step."""
    found: dict[str, Any] = program(f"{SPEED}#jit-the-whole-step", "ways")["ways"]
    return found


@attack(f"{SPEED}#fusion", x=arrays((3,)), call=transformations())
def test_lines_and_an_expression_are_one_function(x: Array, call: Transformation) -> None:
    shows(f"{SPEED}#fusion", "lambda x: jnp.sin(1.1 * x) + 0.1")
    in_lines, slope, same = fused()
    with np.errstate(all="ignore"):
        assert_same(call(in_lines)(x), np.sin(1.1 * x.astype(float)) + 0.1, atol=1e-3)
        assert_same(slope(x), 1.1 * np.cos(1.1 * x.astype(float)), atol=1e-3)
    assert same


@cache
def fused() -> tuple[Any, Any, bool]:
    """Return the answer's function, its slope, and whether it compiles to the steps of one expression."""
    names = program(f"{SPEED}#fusion", "steps", "in_lines")
    both = [names["steps"](f, jnp.ones(1000)) for f in (names["in_lines"], lambda x: jnp.sin(1.1 * x) + 0.1)]
    return names["in_lines"], jax.jit(jax.vmap(jax.grad(names["in_lines"]))), both[0] == both[1] and len(both[0]) == 1


SIZES = st.sampled_from([1, 2, 5])


def turned(x: Any) -> Any:
    """Return a transposed matrix, which takes no arithmetic."""
    return x.T


@slow_attack(f"{SPEED}#count-flops", rows=SIZES, inner=SIZES, columns=SIZES, times=st.sampled_from([1, 4]))
def test_operations_are_counted_as_on_paper(rows: int, inner: int, columns: int, times: int) -> None:
    shows(f"{SPEED}#count-flops", '`compiled.cost_analysis()["flops"]`', '`.get("flops", 0)`')
    shows(f"{SPEED}#count-flops", "A complex-valued operation counts as one operation.")
    exact = 2 * rows * inner * columns
    shape = [(rows, inner), (inner, columns)]
    flops = needs(jnp.matmul, *(floats(*s) for s in shape)).cost_analysis().get("flops", 0)
    assert rows * columns * (2 * inner - 1) <= flops <= exact  # the first term is not added to anything
    if 1 not in (rows, inner, columns):
        assert flops == exact
        batched = needs(jnp.matmul, *(floats(times, *s) for s in shape)).cost_analysis()["flops"]
        assert batched == times * exact
        complex_ones = needs(jnp.matmul, *(floats(*s, dtype=jnp.complex64) for s in shape))
        assert complex_ones.cost_analysis()["flops"] == exact  # as the answer says
    assert needs(turned, floats(rows, inner)).cost_analysis().get("flops", 0) == 0


@slow_attack(f"{SPEED}#profile", x=arrays((3, 3), odd=False).map(lambda x: np.clip(x, -4, 4)))
def test_a_profile_changes_no_number(x: Array) -> None:
    step, mapped, gradient = profiled()
    wide = x.astype(float)
    hidden = np.tanh(wide @ wide.T)
    with TemporaryDirectory() as folder, jax.profiler.trace(folder):
        found = [jax.block_until_ready(f(x)) for f in (step, mapped, gradient)]
    assert_same(found[0], np.sort(hidden, axis=1))
    assert_same(found[1], np.sort(hidden, axis=1))
    assert_same(found[2], 2 * (1 - hidden**2) @ wide, rtol=1e-3, atol=1e-3)


@cache
def profiled() -> tuple[Any, Any, Any]:
    """Return the answer's step, the same for an example of a batch, and the gradient of the sum, compiled."""
    step = program(f"{SPEED}#profile", "step")["step"]
    return step, jax.jit(lambda x: jax.vmap(step)(x[None])[0]), jax.jit(jax.grad(lambda x: step(x).sum()))


@pytest.mark.parametrize("repeats", [1, 5, 20, 50, 101])
def test_a_spread_describes_any_number_of_repeats(repeats: int) -> None:
    seconds = np.sort(np.random.default_rng(repeats).random(repeats))
    spread = program("speed/timing.md", "spread", first=9.0, seconds=seconds)["spread"]
    assert_same(spread["median"], np.median(seconds))
    assert_same(spread["mean of all"], (9 + seconds.sum()) / (1 + repeats))
    assert (spread["first call"], spread["fastest"], spread["slowest"]) == (9, seconds[0], seconds[-1])


@pytest.mark.parametrize(("each", "batches"), [(True, 1), (True, 3), (False, 1), (False, 7), (False, 4)])
def test_a_loop_that_is_timed_ends_with_a_wait(each: bool, batches: int) -> None:
    given = {"clock": lambda: 0.0, "zeros": jnp.zeros(2), "ones": np.ones(2), "iterations": 1}
    train = program("speed/timing.md", "train", **given, time=SimpleNamespace(sleep=lambda _: None))["train"]
    names = [name for name, _ in train(lambda state, batch, _: state + batch, each, batches)]
    assert names[-2:] == ["wait", "end"]
    assert names.count("wait") == (batches if each else 1)
