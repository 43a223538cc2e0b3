"""Attacks on the answers about several devices: what is split over them is what one device, or NumPy, computes."""

import ast
import os
from collections.abc import Callable
from functools import cache
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import PROJECT, attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, dtypes, keys

Array = np.ndarray[Any, Any]
PAGE = "answers/devices.md"
KINDS = st.sampled_from([AxisType.Auto, AxisType.Explicit])
PLACES = st.integers(0, 7)


@pytest.fixture(autouse=True)
def eight_devices() -> None:
    """Skip where conftest.py could not make them, which it can on a CPU only."""
    if jax.device_count() != 8:
        pytest.skip("needs eight devices")


def made(anchor: str, *wanted: str, **given_names: Any) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted, **given_names)


@cache
def mesh(kind: AxisType = AxisType.Explicit, rows: int = 8) -> Mesh:
    """A mesh of one axis, or of two if its first has fewer than eight devices."""
    shape, names = ((8,), ("data",)) if rows == 8 else ((rows, 8 // rows), ("data", "model"))
    return jax.make_mesh(shape, names, axis_types=(kind,) * len(names))


def split(x: Any, *axes: str | None, kind: AxisType = AxisType.Explicit, rows: int = 8) -> Any:
    """Place an array, or a tree of them, on a mesh, split over these axes."""
    return jax.device_put(x, NamedSharding(mesh(kind, rows), P(*axes)))


def functions_of_first_block(anchor: str) -> dict[str, Any]:
    """The functions of an answer's visible program, some of which a hidden block defines again."""
    text = (PROJECT.docs / PAGE).read_text(encoding="utf-8").split(f"{{ #{anchor} }}")[1]
    body = ast.parse(text.split("```python", 1)[1].split("\n", 1)[1].split("```")[0]).body
    names: dict[str, Any] = {}
    kept: list[ast.stmt] = [one for one in body if isinstance(one, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    exec(compile(ast.Module(kept, []), anchor, "exec"), names)
    return names


def refuse(function: Callable[[Any], Any], x: Any) -> None:
    """Check that a function of a split array raises a `ShardingTypeError`, which JAX does not make public.

    Raises:
        AssertionError: it does not.
    """
    with pytest.raises(Exception) as caught:
        function(x)
    assert caught.typename == "ShardingTypeError"


def pieces(x: jax.Array) -> Array:
    """The whole array, from the part of each device."""
    found = np.zeros(x.shape, x.dtype)
    for shard in x.addressable_shards:
        found[shard.index] = np.asarray(shard.data)
    return found


@attack(
    f"{PAGE}#virtual-devices", x=arrays((8, 4), dtypes()), number=st.integers(1, 16), axes=st.permutations(range(2))
)
def test_a_mesh_of_all_devices_holds_each_number(x: Array, number: int, axes: list[int]) -> None:
    shows(f"{PAGE}#virtual-devices", 'jax.config.update("jax_num_cpu_devices", 8)', "A later change raises an error")
    found = made("virtual-devices", "mesh")["mesh"]
    placed = jax.device_put(x, NamedSharding(found, P(*[found.axis_names[i] for i in axes])))
    assert len(placed.devices()) == found.size == 8
    assert_same(pieces(placed), x, 0, 0)
    assert_same(jax.jit(jnp.negative if x.dtype != bool else jnp.logical_not)(placed), ~x if x.dtype == bool else -x)
    if number != 8:
        with pytest.raises(RuntimeError, match="before backends are initialized"):
            jax.config.update("jax_num_cpu_devices", number)
    with mock.patch.dict(os.environ, XLA_FLAGS=f"--xla_force_host_platform_device_count={number}"):
        assert jax.device_count() == 8


@attack(
    f"{PAGE}#one-device-used",
    x=arrays((16, 3), odd=False).map(lambda x: np.clip(x / 8, -2, 2)),
    w=arrays((3,), odd=False).map(lambda w: np.clip(w / 8, -2, 2)),
    y=arrays((16,), odd=False).map(lambda y: np.clip(y, -9, 9)),
    kind=KINDS,
)
def test_a_step_on_all_devices_is_that_of_one(x: Array, w: Array, y: Array, kind: AxisType) -> None:
    step = made("one-device-used", "step")["step"]
    wide = x.astype(float)
    expected = w - 0.1 * 2 * wide.T @ (wide @ w - y) / 16
    found = step(split(w, kind=kind), *split((x, y), "data", kind=kind))
    assert len(found.devices()) == 8
    assert_same(found, expected, atol=1e-3)
    assert_same(step(w, x, y), expected, atol=1e-3)
    with pytest.raises(ValueError, match="partitioned 8 times"):
        split(x[:12], "data", kind=kind)


@attack(
    f"{PAGE}#which-device",
    x=arrays((8, 4), dtypes()),
    axes=st.sampled_from([(), ("data",), ("data", "model"), (None, "data"), ("model", "data")]),
    place=PLACES,
)
def test_shards_say_which_part_they_are(x: Array, axes: tuple[str | None, ...], place: int) -> None:
    placed, one = split(x, *axes, rows=4), jax.device_put(x, jax.devices()[place])
    assert placed.devices() == set(jax.devices()) and one.devices() == {one.device} == {jax.devices()[place]}
    assert placed.sharding.spec == P(*axes) and placed.device == placed.sharding
    for shard in placed.addressable_shards:
        assert shard.data.devices() == {shard.device}
        assert_same(shard.data, x[shard.index], 0, 0)
    assert_same(pieces(placed), x, 0, 0)


@cache
def chosen(place: int) -> Any:
    """The function of an answer that moves its argument inside `jit`, to this device."""
    return made("choose-device", "f", third=jax.devices()[place])["f"]


@attack(f"{PAGE}#choose-device", x=arrays((4,)), place=PLACES, start=PLACES)
def test_a_computation_follows_its_inputs(x: Array, place: int, start: int) -> None:
    device = jax.devices()[place]
    with np.errstate(all="ignore"):
        tree = jax.device_put({"x": jnp.asarray(x), "n": [1.0, x]}, device)
        doubled = jax.tree.map(lambda leaf: leaf * 2, tree)
        assert all(leaf.devices() == {device} for leaf in jax.tree.leaves(doubled))
        assert_same(doubled["x"], x * 2)
        old = jnp.asarray(x)
        with jax.default_device(device):
            for new in (jnp.asarray(x), jnp.ones(4) * x, old * 2):
                assert new.devices() == {device}
            assert_same(old * 2, x * 2)
        moved = chosen(place)(jax.device_put(x, jax.devices()[start]))  # "did not move anything here"
        assert_same(moved, x * 2)
        assert moved.devices() == {jax.devices()[start]}


@attack(f"{PAGE}#incompatible-devices", x=arrays((2,), odd=False), y=arrays((2,), odd=False), one=PLACES, two=PLACES)
def test_only_arrays_that_are_placed_apart_are_refused(x: Array, y: Array, one: int, two: int) -> None:
    shows(f"{PAGE}#incompatible-devices", "placed + jax.device_put(other, jax.devices()[1])", "placed + free")
    placed, other = jax.device_put(x, jax.devices()[one]), jax.device_put(y, jax.devices()[two])
    for free in (y, jnp.asarray(y), jax.device_put(other, jax.devices()[one])):
        found = placed + free
        assert found.committed and found.devices() == {jax.devices()[one]}
        assert_same(found, x + y)
    if one == two:
        assert_same(placed + other, x + y)
    else:
        for function in (jnp.add, jax.jit(jnp.add)):
            with pytest.raises(ValueError, match="Received incompatible devices"):
                function(placed, other * 1)
    on_mesh = split(np.zeros(8, np.float32), "data")
    with pytest.raises(ValueError, match="incompatible devices"):
        on_mesh + jax.device_put(jnp.ones(8), jax.devices()[one])


@attack(f"{PAGE}#explicit-auto", x=arrays((16, 4), odd=False), whole=st.booleans())
def test_a_product_over_a_split_axis_is_that_of_all_rows(x: Array, whole: bool) -> None:
    shows(f"{PAGE}#explicit-auto", "jnp.matmul(x.T, x, out_sharding=whole)", "(x.T @ x).sharding.spec", "jax.reshard")
    wide = x.astype(float)
    expected, atol = wide.T @ wide, 1e-6 * float((wide**2).sum()) + 1e-6  # rounding, in another order
    auto, explicit = split(x, "data", kind=AxisType.Auto), split(x, "data")
    assert_same(auto.T @ auto, expected, atol=atol)
    everywhere = NamedSharding(mesh(), P())
    out = jnp.matmul(explicit.T, explicit, out_sharding=everywhere if whole else NamedSharding(mesh(), P(None, None)))
    assert_same(out, expected, atol=atol)
    assert_same(out.addressable_data(7), expected, atol=atol)
    copies = jax.reshard(explicit, everywhere)
    assert_same(copies.T @ copies, expected, atol=atol)
    refuse(lambda x: x.T @ x, explicit)
    with pytest.raises(ValueError):
        auto.T @ explicit


@slow_attack(
    f"{PAGE}#index-sharded",
    x=arrays((16,), dtypes("float", "int")),
    index=st.integers(-16, 15)
    | st.lists(st.integers(-16, 15), min_size=3, max_size=3)
    | st.builds(
        lambda start, step: slice(start, start + 3 * step, step), st.integers(3, 9), st.sampled_from([1, 2, -1])
    ),
    kind=KINDS,
)
def test_an_index_into_a_split_array_is_that_of_numpy(x: Array, index: Any, kind: AxisType) -> None:
    shows(f"{PAGE}#index-sharded", "x.at[:4].get(out_sharding=everywhere)", "jax.reshard(x, everywhere)[:4]")
    at = np.array(index) if isinstance(index, list) else index
    placed, expected = split(x, "data", kind=kind), x[at]
    if kind == AxisType.Auto:
        assert_same(placed[at], expected, 0, 0)
        return
    everywhere = NamedSharding(mesh(), P())
    assert_same(placed.at[at].get(out_sharding=everywhere), expected, 0, 0)
    copies = jax.reshard(placed, everywhere)
    assert_same(copies[at], expected, 0, 0)
    assert_same(jnp.sort(copies), np.sort(x), 0, 0)
    for refused in (jnp.sort, jnp.cumsum, lambda x: x[at]):
        refuse(refused, placed)
    rows = split(np.stack([x, -x], 1), "data")
    assert_same(rows[:, 1], -x, 0, 0)
    assert_same(jnp.sort(rows, axis=1), np.sort(np.stack([x, -x], 1), axis=1), 0, 0)


@attack(
    f"{PAGE}#uneven",
    values=st.sampled_from([0, 1, 7, 8, 19]).flatmap(lambda n: arrays((n,), dtypes("float", "int"))),
    kind=KINDS,
)
def test_padding_stays_out_of_the_mean(values: Array, kind: AxisType) -> None:
    shows(
        f"{PAGE}#uneven",
        "padded = np.pad(values, (0, -len(values) % 8))",
        "keep = np.arange(len(padded)) < len(values)",
        "x, keep = jax.device_put((padded, keep), by_rows)",
        "x.mean(where=keep)",
    )
    padded = np.pad(values, (0, -len(values) % 8))
    keep = np.arange(len(padded)) < len(values)
    x, keep = split((padded, keep), "data", kind=kind)
    wide = values.astype(float)
    with np.errstate(all="ignore"):
        total = wide.sum()
        assert_same(x.sum(where=keep), total if values.dtype.kind == "f" else values.sum(), atol=1e-3)
        assert_same(x.mean(where=keep), total / len(values) if len(values) else np.nan, atol=1e-3)
    whole = values[: len(values) // 8 * 8]
    assert_same(split(whole, "data", kind=kind), whole, 0, 0)
    if len(values) % 8:
        with pytest.raises(ValueError, match="partitioned 8 times"):
            split(values, "data", kind=kind)


@attack(
    f"{PAGE}#gather",
    x=arrays((8, 4), dtypes()),
    axes=st.sampled_from([("data",), ("data", "model"), (None, "model"), ()]),
    key=keys(),
)
def test_the_parts_are_assembled_on_the_host(x: Array, axes: tuple[str | None, ...], key: jax.Array) -> None:
    shows(
        f"{PAGE}#gather",
        "host = np.asarray(x)",
        "copies = jax.device_put(x, NamedSharding(mesh, P()))",
        "copies.addressable_data(0)",
        "jnp.tan(jax.device_put(x, jax.devices()[0]))",
        "`jax.random.key_data`",
    )
    placed = split(x, *axes, rows=4)
    tree = jax.device_get({"x": placed, "n": [placed, 3]})
    for host in (np.asarray(placed), tree["x"], tree["n"][0]):
        assert isinstance(host, np.ndarray)
        assert_same(host, x, 0, 0)
        assert host.dtype == x.dtype and jnp.asarray(host).devices() == {jax.devices()[0]}
    copies = split(placed, rows=4)
    assert_same(copies.addressable_data(0), x, 0, 0)
    assert (copies.addressable_data(0) == 1).devices() == {jax.devices()[0]}
    with pytest.raises(ValueError, match="Length of device assignment 1"):
        jnp.tan(jax.device_put(placed, jax.devices()[0]))
    several = split(jax.random.split(key, 8), "data")
    assert_same(np.asarray(jax.random.key_data(several)), jax.random.key_data(jax.random.split(key, 8)), 0, 0)


@cache
def inits() -> tuple[Any, Any, Any]:
    """The function of an answer that makes parameters: plain, split by `jit`, and its draw with a mesh that is set."""
    found = made("sharded-init", "init", "layout")
    drawn = jax.jit(lambda key: 0.1 * jax.random.normal(key, (1024, 64), out_sharding=P("data")))
    return found["init"], jax.jit(found["init"], out_shardings=found["layout"]), drawn


@slow_attack(f"{PAGE}#sharded-init", key=keys())
def test_parameters_do_not_depend_on_where_they_are_made(key: jax.Array) -> None:
    shows(f"{PAGE}#sharded-init", "jax.jit(init, out_shardings=layout)", 'normal(key, shape, out_sharding=P("data"))')
    plain, parts, drawn = inits()
    expected, found = plain(key), parts(key)
    assert found["w"].addressable_data(0).shape == (128, 64) and found["b"].is_fully_replicated
    assert abs(np.std(np.asarray(expected["w"])) - 0.1) < 0.01
    with jax.set_mesh(mesh()):
        inside = drawn(key)
    assert inside.addressable_data(0).shape == (128, 64)
    assert_same(inside, expected["w"], 1e-6, 1e-6)
    for name, leaf in expected.items():
        assert_same(found[name], leaf, 1e-6, 1e-6)


@cache
def adam(kind: AxisType) -> tuple[Any, Any]:
    """Two steps of an answer's optimizer on a mesh, from the state that it makes without and with `jit`."""
    optimizer = made("optimizer-state", "adam")["adam"]

    @jax.jit
    def two_steps(w: jax.Array, state: Any, gradients: jax.Array) -> jax.Array:
        for gradient in gradients:
            updates, state = optimizer.update(gradient, state)
            w = w + updates
        return w

    return two_steps, {"plain": optimizer.init, "jit": jax.jit(optimizer.init)}


@attack(
    f"{PAGE}#optimizer-state",
    w=arrays((16, 4), odd=False),
    gradients=arrays((2, 16, 4), odd=False),
    kind=KINDS,
    name=st.sampled_from(["plain", "jit"]),
)
def test_a_split_optimizer_takes_the_steps_of_adam(w: Array, gradients: Array, kind: AxisType, name: str) -> None:
    two_steps, inits = adam(kind)
    with jax.set_mesh(mesh(kind)):
        placed = jax.device_put(w, P("data"))
        state = inits[name](placed)
        assert state[0].mu.addressable_data(0).shape == ((16, 4) if (kind, name) == (AxisType.Auto, "jit") else (2, 4))
        found = two_steps(placed, state, jax.device_put(gradients, P(None, "data")))
    expected, mu, nu = w.astype(float), np.zeros(w.shape), np.zeros(w.shape)
    for step, gradient in enumerate(gradients.astype(float), 1):
        mu, nu = 0.9 * mu + 0.1 * gradient, 0.999 * nu + 0.001 * gradient**2
        expected -= 0.1 * mu / (1 - 0.9**step) / (np.sqrt(nu / (1 - 0.999**step)) + 1e-8)
    assert_same(found, expected, atol=1e-3)


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "reshard": jax.reshard,
    "constraint": jax.lax.with_sharding_constraint,
    "out_shardings": lambda x, sharding: x,
}


@cache
def changed(kind: AxisType, name: str) -> Any:
    """The jitted function of an answer, with one of the three ways to ask for a whole array."""
    shows(f"{PAGE}#constraint", "jax.jit(lambda x: change(2 * x, whole))", "`out_shardings`")
    whole, change = NamedSharding(mesh(kind), P()), CHANGES[name]
    return jax.jit(lambda x: change(2 * x, whole), out_shardings=whole if name == "out_shardings" else None)


@attack(f"{PAGE}#constraint", x=arrays((8,), dtypes("float", "int")), kind=KINDS, name=st.sampled_from([*CHANGES]))
def test_a_layout_changes_no_number(x: Array, kind: AxisType, name: str) -> None:
    found = changed(kind, name)(split(x, "data", kind=kind))
    working = {"reshard": [AxisType.Explicit], "constraint": [AxisType.Auto]}.get(name, [*AxisType])
    assert found.is_fully_replicated == (kind in working)
    with np.errstate(all="ignore"):
        assert_same(found, 2 * x)
        assert_same(pieces(found), 2 * x)


@cache
def drawing(name: str) -> Any:
    """A function of an answer that draws on each device."""
    if name == "keys":
        function, specs = lambda key: jax.random.normal(key[0], (1,)), P("data")
    else:
        function, specs = made("random-shards", name)[name], P()
    return jax.jit(jax.shard_map(function, mesh=mesh(), in_specs=specs, out_specs=P("data")))


@cache
def draws(mapped: bool) -> Any:
    """A draw of each of eight keys, or one draw of eight numbers."""
    return jax.jit(jax.vmap(jax.random.normal) if mapped else lambda key: jax.random.normal(key, (8,)))


@cache
def draw_of_all() -> Any:
    """One draw of eight numbers, split over the devices."""
    shows(f"{PAGE}#random-shards", 'out_sharding=P("data")', 'jax.device_put(keys, P("data"))', "use `key[0]`")
    return jax.jit(lambda key: jax.random.normal(key, (8,), out_sharding=P("data")))


@slow_attack(f"{PAGE}#random-shards", key=keys())
def test_each_device_draws_from_the_key_with_its_number(key: jax.Array) -> None:
    of_each = np.asarray(draws(True)(jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(8))))
    found = np.asarray(drawing("different")(key))
    assert_same(found, of_each, 1e-6, 1e-6)
    assert len(np.unique(found)) == 8 and len(np.unique(drawing("same")(key))) == 1
    several = jax.random.split(key, 8)
    assert_same(drawing("keys")(split(several, "data")), draws(True)(several), 1e-6, 1e-6)
    with jax.set_mesh(mesh()):
        whole = draw_of_all()(key)
    assert whole.sharding.spec == P("data")
    assert_same(whole, draws(False)(key), 1e-6, 1e-6)


@cache
def walks() -> tuple[Any, Any, Any]:
    """The walk of an answer, over all jobs; that with a start; and the steps of one."""
    jobs, walk = jax.vmap(functions_of_first_block("cpu-cores")["walk"]), made("cpu-cores", "walk")["walk"]
    steps = jax.vmap(lambda key, i: jax.random.normal(jax.random.fold_in(key, i)), (None, 0))
    return jax.jit(jobs), jax.jit(jax.vmap(walk)), jax.jit(jax.vmap(steps, (0, None)))


@slow_attack(f"{PAGE}#cpu-cores", key=keys(), starts=arrays((16,), odd=False))
def test_jobs_on_all_devices_are_those_of_one(key: jax.Array, starts: Array) -> None:
    shows(f"{PAGE}#cpu-cores", "jax.jit(jax.vmap(walk))(split)", "`jax.vmap(walk)(split, starts)`")
    jobs, started, steps = walks()
    several = jax.random.split(key, 16)
    ends = np.asarray(steps(several, jnp.arange(100)), float).sum(1)
    found = jobs(split(several, "data", kind=AxisType.Auto))
    assert found.addressable_data(0).shape == (2,)
    assert_same(found, ends, atol=1e-3)
    with pytest.raises(ValueError):
        jobs(split(several, "data"))  # on Explicit axes, without starts
    found = started(*split((several, starts), "data"))
    assert found.addressable_data(0).shape == (2,)
    assert_same(found, starts + ends, atol=1e-2)


@cache
def sums() -> dict[str, Any]:
    """The functions of an answer, and a mean, for all devices."""
    found = made("which-tool", "part", "whole")
    functions = {**found, "mean": lambda x: jax.lax.pmean(jnp.mean(x), "data")}
    specs = {"part": P("data"), "whole": P(), "mean": P()}
    return {
        name: jax.jit(jax.shard_map(functions[name], mesh=mesh(), in_specs=P("data"), out_specs=out))
        for name, out in specs.items()
    }


@attack(f"{PAGE}#which-tool", x=arrays((16,), dtypes("float", "int"), odd=False), kind=KINDS)
def test_a_sum_over_devices_needs_psum(x: Array, kind: AxisType) -> None:
    wide, placed = x.astype(float), split(x, "data")
    assert_same(jax.jit(jnp.sum)(split(x, "data", kind=kind)), x.sum(dtype=float), atol=1e-2)
    assert_same(sums()["part"](placed), wide.reshape(8, 2).sum(1), atol=1e-2)
    assert_same(sums()["whole"](placed), wide.sum(), atol=1e-2)
    assert_same(sums()["mean"](placed), wide.mean(), atol=1e-2)
