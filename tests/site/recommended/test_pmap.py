"""Attacks on the ports of `pmap` and the words that replace its own, on eight devices: a program for one in NumPy."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax import P

from tests.site.recommended.attack import PROJECT, attack, program
from tests.site.recommended.devices import eight, mesh
from tests.site.strategies import arrays, assert_same, dtypes

Array = np.ndarray[Any, Any]
PAGE = "scale/pmap.md"
SPLIT = P("data")
SPECS: Any = {"in_specs": (P(), P("data"), P("data")), "out_specs": P()}
ROWS = arrays((16,), odd=False)
COUNTS = st.sampled_from([8, 2])
halves = st.integers(-18, 18).map(lambda n: np.float32(n / 2))
weights = st.fixed_dictionaries({"w": halves, "b": halves})


def row(you_have: str) -> str:
    """The name of a row of the page's tables.

    Raises:
        AssertionError: there is none.
    """
    assert f"\n| {you_have} |" in (PROJECT.docs / PAGE).read_text(encoding="utf-8")
    return f"{PAGE}: {you_have}"


def defined(name: str) -> Any:
    """Return what the page defines."""
    return program(PAGE, name)[name]


def slope(params: dict[str, Any], x: Array, y: Array, of: Any = True) -> tuple[float, dict[str, float]]:
    """The loss of the page and its gradient, over the rows that count."""
    wide = {name: float(value) for name, value in params.items()}
    error = np.where(of, wide["w"] * x.astype(float) + wide["b"] - y, 0)
    count = np.sum(np.broadcast_to(of, x.shape))
    return (error**2).sum() / count, {"w": 2 * (error * x).sum() / count, "b": 2 * error.sum() / count}


def stepped(params: dict[str, Any], grads: dict[str, float]) -> dict[str, float]:
    """Parameters after the page's step."""
    return {name: float(params[name]) - 0.01 * grads[name] for name in params}


@cache
def port(name: str, **options: Any) -> Callable[..., Any]:
    """Return a port of the page's step, compiled for eight devices; its data are put on them as the page does."""
    body = defined(name)
    compiled = jax.jit(body if name == "whole_batch" else jax.shard_map(body, mesh=mesh(8), **SPECS, **options))

    def run(params: Any, x: Any, y: Any) -> Any:
        with jax.set_mesh(mesh(8)):
            return compiled(jax.device_put(params, P()), *jax.device_put((x, y), P("data")))

    return run


PORTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a loss that is a mean over the batch": ("whole_batch", {}),
    "work to do on each device's own gradient, such as clipping it": ("own_copy", {}),
    "a long function that has to move today": ("step", {"check_vma": False}),
}


@attack(*map(row, PORTS), params=weights, x=ROWS, y=ROWS)
def test_each_port_takes_the_step_of_one_device(params: dict[str, Any], x: Array, y: Array) -> None:
    loss, grads = slope(params, x, y)
    for name, options in (*PORTS.values(), ("average_loss", {})):
        new, found = port(name, **options)(params, x, y)
        assert_same(found, loss, atol=1e-2)
        for part, expected in stepped(params, grads).items():
            assert_same(new[part], expected, atol=1e-3)
            for copy in new[part].addressable_shards:
                assert_same(copy.data, expected, atol=1e-3)


def test_the_port_that_the_page_warns_of_is_found() -> None:
    x, y = np.arange(16.0), np.ones(16)
    params = {"w": np.float32(1), "b": np.float32(0)}
    with pytest.raises(AssertionError):
        assert_same(port("step")(params, x, y)[0]["w"], stepped(params, slope(params, x, y)[1])["w"], atol=1e-3)


@attack(params=weights, x=ROWS, y=ROWS)
def test_each_device_clips_its_own_gradient(params: dict[str, Any], x: Array, y: Array) -> None:
    own = [slope(params, *part)[1] for part in zip(np.split(x, 8), np.split(y, 8), strict=True)]
    found = port("clipped")(params, x, y)
    for name in params:
        assert_same(found[name], np.mean([np.clip(each[name], -1, 1) for each in own]))


@cache
def centered() -> Callable[..., Any]:
    """Return port 2 of a loss that has a collective in its forward pass."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        guess = params["w"] * x + params["b"]
        return jnp.mean((guess - y) ** 2) + (jax.lax.pmean(guess.mean(), "data") - 3) ** 2

    compiled = jax.jit(
        jax.shard_map(program(PAGE, "average_loss", loss_fn=loss)["average_loss"], mesh=mesh(8), **SPECS)
    )

    def run(params: Any, x: Any, y: Any) -> Any:
        with jax.set_mesh(mesh(8)):
            return compiled(jax.device_put(params, P()), *jax.device_put((x, y), P("data")))

    return run


@attack(row("your own collectives in the forward pass"), params=weights, x=ROWS, y=ROWS)
def test_a_collective_in_the_loss_has_its_derivative(params: dict[str, Any], x: Array, y: Array) -> None:
    loss, grads = slope(params, x, y)
    off = (params["w"] * x.astype(float) + params["b"]).mean() - 3
    new, found = centered()(params, x, y)
    assert_same(found, loss + off**2, atol=1e-2)
    expected = stepped(params, {"w": grads["w"] + 2 * off * x.mean(), "b": grads["b"] + 2 * off})
    for name in params:
        assert_same(new[name], expected[name], atol=1e-3)


@cache
def masked(name: str) -> Callable[..., Any]:
    """Return the gradient of a loss of rows that count, over eight devices or as port 1."""
    body = jax.grad(defined(name))
    specs: Any = {"in_specs": (P(), *[P("data")] * 3), "out_specs": P()}
    return jax.jit(body if name == "port_1" else jax.shard_map(body, mesh=mesh(8), **specs))


@attack(params=weights, x=ROWS, y=ROWS, valid=arrays((16,), "bool"))
def test_rows_that_count_are_summed_and_divided_last(params: dict[str, Any], x: Array, y: Array, valid: Array) -> None:
    if not valid.any():
        return  # the mean of no rows
    grads = slope(params, x, y, valid)[1]
    with jax.set_mesh(mesh(8)):
        placed = jax.device_put(params, P()), *jax.device_put((x, y, valid), P("data"))
        for name in ("mean_over_rows", "port_1"):
            for part, found in masked(name)(*placed).items():
                assert_same(found, grads[part], atol=1e-2)


@attack(
    row("`x.reshape(8, -1)`, or `jax.device_put_sharded` (removed in 0.10)"),
    row("a `ShardedDeviceArray` (removed)"),
    x=arrays(st.sampled_from([(8,), (16, 3), (8, 0), (24, 1, 2)]), dtypes()),
)
def test_each_device_has_the_rows_of_the_reshaped_array(x: Array) -> None:
    with jax.set_mesh(mesh(8)):
        placed = jax.device_put(x, P("data"))
    assert isinstance(placed, jax.Array) and placed.shape == x.shape and placed.dtype == x.dtype
    again = np.zeros_like(x)
    parts = placed.addressable_shards
    for part, device, rows in zip(parts, eight(), x.reshape(8, len(x) // 8, *x.shape[1:]), strict=True):
        assert part.device == device
        assert_same(part.data, rows)
        again[placed.sharding.devices_indices_map(x.shape)[device]] = part.data
    assert_same(again, x)
    assert placed.sharding.shard_shape(x.shape) == (len(x) // 8, *x.shape[1:])


@attack(
    row("copies of the parameters, `in_axes=None`, or `jax.device_put_replicated` (removed in 0.10)"),
    row("`jax.device_get(out[0])`"),
    x=arrays(st.sampled_from([(), (3,), (0, 2)]), dtypes()),
    number=halves,
)
def test_each_device_has_all_of_the_parameters_and_one_copy_comes_back(x: Array, number: np.float32) -> None:
    params = {"w": x, "more": [number, None]}
    with jax.set_mesh(mesh(8)):
        placed = jax.device_put(params, P())
    back = jax.device_get(placed)
    for found, copied, given in zip(*map(jax.tree.leaves, (placed, back, params)), strict=True):
        assert found.is_fully_replicated and [part.device for part in found.addressable_shards] == eight()
        for copy in (*(part.data for part in found.addressable_shards), copied):
            assert_same(copy, given)
        assert isinstance(copied, np.ndarray | np.generic) and copied.dtype == given.dtype
    assert back["more"][1] is None


@cache
def over(n: int, function: Callable[..., Any], out: Any = SPLIT) -> Callable[..., Any]:
    """Return a function of a block of rows, mapped over some devices and compiled."""
    return jax.jit(jax.shard_map(function, mesh=mesh(n), in_specs=SPLIT, out_specs=out))


def _count(block: Any) -> Any:
    return jax.lax.psum(block.sum(), "data") / jax.lax.psum(block.size, "data")


@attack(row("`jax.local_device_count()`"), x=ROWS, n=COUNTS)
def test_the_devices_of_a_mesh_are_those_that_hold_rows(x: Array, n: int) -> None:
    placed = jax.device_put(x, jax.NamedSharding(mesh(n), P("data")))
    assert mesh(n).size == n == len(placed.addressable_shards)
    assert jax.local_device_count() == len(jax.local_devices())
    assert_same(over(n, _count, out=P())(placed), x.sum() / (mesh(n).size * len(x) // n))


RING = [(i, (i + 1) % 8) for i in range(8)]
COLLECTIVES: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Any]]] = {
    "psum": (lambda x: jax.lax.psum(x, "data") + 0 * x, lambda x: np.tile(x.reshape(8, 2).sum(0), 8)),
    "pmean": (lambda x: jax.lax.pmean(x, "data") + 0 * x, lambda x: np.tile(x.reshape(8, 2).mean(0), 8)),
    "ppermute": (lambda x: jax.lax.ppermute(x, "data", RING), lambda x: np.roll(x, 2)),
    "all_gather": (lambda x: jax.lax.all_gather(x, "data", tiled=True), lambda x: np.tile(x, 8)),
    "axis_index": (lambda x: x + jax.lax.axis_index("data"), lambda x: x + np.arange(16) // 2),
}
COLUMN = row("`psum`, `pmean`, `ppermute`, `all_gather`, `axis_index`")


def _total(w: Any, x: Any) -> Any:
    return jax.lax.psum((w * x**2).sum(), "data"), jax.lax.pmean((w * x).sum(), "data")


@cache
def of_totals() -> Callable[..., Any]:
    """Return the derivatives of a sum and a mean over the devices by a number that all of them have."""
    return jax.jit(jax.shard_map(jax.jacrev(_total), mesh=mesh(8), in_specs=(P(), P("data")), out_specs=P()))


@attack(COLUMN, x=ROWS, w=halves)
def test_the_functions_of_pmap_do_the_same_in_shard_map(x: Array, w: np.float32) -> None:
    assert all(f"`{name}`" in COLUMN for name in COLLECTIVES)
    placed = jax.device_put(x, jax.NamedSharding(mesh(8), P("data")))
    for function, expected in COLLECTIVES.values():
        assert_same(over(8, function)(placed), expected(x))
    total, mean = of_totals()(jax.device_put(w, jax.NamedSharding(mesh(8), P())), placed)
    assert_same(total, (x.astype(float) ** 2).sum(), atol=1e-2)
    assert_same(mean, x.sum() / 8)


@attack(
    row("a `pmap` inside a `pmap` (an error now)"),
    x=arrays((8, 4), odd=False),
    shape=st.sampled_from([(4, 2), (2, 4), (8, 1)]),
)
def test_two_axes_of_a_mesh_are_two_maps(x: Array, shape: tuple[int, int]) -> None:
    placed = jax.device_put(x, jax.NamedSharding(mesh(*shape), P("data", "model")))
    for part in placed.addressable_shards:
        assert part.data.shape == (8 // shape[0], 4 // shape[1])
    assert_same(in_two(shape)(placed), np.stack([x - x.sum(), x - x.sum(0), x - x.sum(1, keepdims=True)]))


def _centers(block: Any) -> Any:
    every = jax.lax.psum(block.sum(), ("data", "model"))
    return jnp.stack(
        [
            block - every,
            block - jax.lax.psum(block.sum(0), "data"),
            block - jax.lax.psum(block.sum(1, keepdims=True), "model"),
        ]
    )


@cache
def in_two(shape: tuple[int, int]) -> Callable[..., Any]:
    """Return differences to sums over both axes and over each, compiled for a mesh of this shape."""
    spec = P("data", "model")
    return jax.jit(jax.shard_map(_centers, mesh=mesh(*shape), in_specs=spec, out_specs=P(None, *spec)))


@cache
def donating() -> Callable[..., Any]:
    """Return a step of `jit` that takes its parameters over."""
    return jax.jit(lambda params, x: jax.tree.map(lambda p: p - 0.5 * x.sum(), params), donate_argnums=0)


@attack(row("`donate_argnums`"), w=ROWS, x=ROWS)
def test_a_donated_argument_is_gone_and_the_step_is_the_same(w: Array, x: Array) -> None:
    split = jax.NamedSharding(mesh(8), P("data"))
    params, data = jax.device_put({"w": w, "b": 2 * w}, split), jax.device_put(x, split)
    new = donating()(params, data)
    new = donating()(new, data)
    for found, given, times in zip(jax.tree.leaves(new), jax.tree.leaves(params), (2, 1), strict=True):
        assert_same(found, times * w - x.sum(), atol=1e-2)
        assert given.is_deleted()
    assert_same(data, x)


def _power(block: Any, n: int) -> Any:
    assert type(n) is int
    for _ in range(n):
        block = block / 4 * block
    return block


@cache
def with_static(n: int) -> tuple[Callable[..., Any], ...]:
    """Return both forms of a function of a static number."""
    mapped = jax.shard_map(partial(_power, n=n), mesh=mesh(8), in_specs=P("data"), out_specs=P("data"))
    return jax.jit(mapped), partial(jax.jit(_power, static_argnums=1), n=n)


@attack(row("`static_broadcasted_argnums`"), x=ROWS, n=st.integers(0, 2))
def test_a_static_number_is_a_number_of_python(x: Array, n: int) -> None:
    placed = jax.device_put(x, jax.NamedSharding(mesh(8), P("data")))
    expected = x.astype(float)
    for _ in range(n):
        expected = expected * expected / 4
    for function in with_static(n):
        assert_same(function(placed), expected, atol=1e-2)
