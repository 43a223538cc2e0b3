"""Checks of the exercises on several devices."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from examiner.tools import Answer, Refused, collectives, equations, names, numbers, require, same
from examiner.verdict import check

DEVICES = 8


def _mesh() -> Mesh:
    if jax.device_count() < DEVICES:
        raise Refused(f"this needs {DEVICES} devices; before JAX starts, set jax_num_cpu_devices to {DEVICES}")
    return Mesh(np.array(jax.devices()[:DEVICES]), ("d",))


def _split(mesh: Mesh, x: np.ndarray) -> jax.Array:
    return jax.device_put(x, NamedSharding(mesh, P("d")))


def _is_split(where: str, x: jax.Array) -> None:
    shapes = {shard.data.shape for shard in x.addressable_shards}
    wanted = (x.shape[0] // DEVICES, *x.shape[1:])
    require(len(x.sharding.device_set) == DEVICES, f"{where} is on {len(x.sharding.device_set)} of {DEVICES} devices")
    require(shapes == {wanted}, f"{where}: each device holds the shape {shapes.pop()}, expected {wanted}")


def _by_hand(answer: Answer, mesh: Mesh, x: jax.Array) -> None:
    require("shard_map" in names(lambda x: answer(mesh, x), x), "it does not use jax.shard_map")


@check
def place(answer: Answer) -> None:
    mesh = _mesh()
    params, batch = {"w": np.ones((8, 3), np.float32)}, (np.arange(32.0).reshape(16, 2), np.arange(16))
    result = answer(mesh, params, batch)
    same("params and batch", result, (params, batch))
    placed, rows = result
    require(isinstance(placed["w"], jax.Array), "params are not arrays of JAX")
    count = len(placed["w"].sharding.device_set)
    require(count == DEVICES, f"params are on {count} of {DEVICES} devices")
    require(placed["w"].sharding.is_fully_replicated, "params are split: no device has all of them")
    for leaf in rows:
        require(isinstance(leaf, jax.Array), "the batch is not arrays of JAX")
        _is_split("the batch", leaf)


@check
def global_mean(answer: Answer) -> None:
    mesh = _mesh()
    for x in (np.arange(24.0), np.asarray(numbers(64))):
        split = _split(mesh, x)
        same(f"{x.size} numbers on {DEVICES} devices", answer(mesh, split), np.float32(x.mean()))
        _by_hand(answer, mesh, split)
        used = collectives(lambda x: answer(mesh, x), split)
        require(used == ["all-reduce"], f"its collectives are {', '.join(used) or 'none'}; expected one all-reduce")


@check
def global_softmax(answer: Answer) -> None:
    mesh = _mesh()
    for name, x in (("16 numbers", np.asarray(numbers(16), float)), ("16 large numbers", np.arange(16.0) * 20 + 50)):
        split = _split(mesh, x)
        got = answer(mesh, split)
        wanted = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
        total = float(np.sum(got)) if got is not NotImplemented else 1.0
        require(np.isnan(total) or abs(total - 1) < 0.01, f"{name}: the result adds up to {total:.2f}, not to 1")
        same(name, got, wanted)
        _is_split("the result", got)
        _by_hand(answer, mesh, split)


@check
def second_difference(answer: Answer) -> None:
    mesh = _mesh()
    for size in (32, 8, 16):
        x = np.asarray(numbers(size), float)
        split = _split(mesh, x)
        got = answer(mesh, split)
        wanted = np.roll(x, 1) - 2 * x + np.roll(x, -1)
        if got is not NotImplemented and np.shape(got) == x.shape:
            off = np.flatnonzero(~np.isclose(got, wanted, atol=1e-4)).tolist()
            require(not off, f"ring of {size} on {DEVICES} devices: wrong at the places {off}")
        same(f"ring of {size}", got, wanted)
        _is_split("the result", got)
        _by_hand(answer, mesh, split)
    used = set(collectives(lambda x: answer(mesh, x), split))
    require(used <= {"collective-permute"}, f"it uses {', '.join(sorted(used))}: devices get more than they need")
    sent = [
        e.invars[0].aval.size for e in equations(lambda x: answer(mesh, x), split) if e.primitive.name == "ppermute"
    ]
    require(sum(sent) <= 2, f"each device is sent {sum(sent)} elements, expected 2")


@check
def two_layers(answer: Answer) -> None:
    mesh = _mesh()
    x, w1, w2 = numbers(4, 6), numbers(6, 16, seed=1), numbers(16, 5, seed=2)
    wanted = np.maximum(np.asarray(x) @ np.asarray(w1), 0) @ np.asarray(w2)
    got = answer(mesh, x, w1, w2)
    same("matrices of 6 by 16 and 16 by 5", got, wanted, 1e-3)
    require(got.sharding.is_fully_replicated, "the result is split")
    body = [e for e in equations(lambda *a: answer(mesh, *a), x, w1, w2) if e.primitive.name == "dot_general"]
    rows = {tuple(e.invars[1].aval.shape) for e in body}
    require((6, 16) not in rows and (16, 5) not in rows, "a device multiplies by a whole matrix")
    used = collectives(lambda *a: answer(mesh, *a), x, w1, w2)
    require(used == ["all-reduce"], f"its collectives are {', '.join(used) or 'none'}; expected one all-reduce")
