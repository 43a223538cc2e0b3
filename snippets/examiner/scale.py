"""Checks of the exercises on several devices."""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from examiner.tools import (
    Answer,
    Refused,
    collectives,
    compiled,
    equations_of,
    flops,
    listed,
    numbers,
    require,
    same,
    show,
)
from examiner.verdict import check

DEVICES = 8


def _mesh() -> Mesh:
    if jax.device_count() < DEVICES:
        raise Refused(
            f"this needs {DEVICES} devices; before anything uses one, set jax_platforms to cpu and "
            f"jax_num_cpu_devices to {DEVICES}"
        )
    return Mesh(np.array(jax.devices()[:DEVICES]), ("d",))


def _split(mesh: Mesh, x: np.ndarray) -> jax.Array:
    return jax.device_put(x, NamedSharding(mesh, P("d")))


def _is_split(where: str, x: jax.Array) -> None:
    shapes = {shard.data.shape for shard in x.addressable_shards}
    wanted = (x.shape[0] // DEVICES, *x.shape[1:])
    require(len(x.sharding.device_set) == DEVICES, f"{where} is on {len(x.sharding.device_set)} of {DEVICES} devices")
    require(shapes == {wanted}, f"{where}: each device holds the shape {shapes.pop()}, expected {wanted}")


def _compiled(answer: Answer, mesh: Mesh, x: jax.Array) -> tuple[Any, list[tuple[str, int]]]:
    """The answer's output, which has to come from shard_map, and the collectives of its compiled program."""
    traced = jax.jit(lambda x: answer(mesh, x)).trace(x)
    found = {equation.primitive.name for equation in equations_of(traced.jaxpr.jaxpr)}
    program = traced.lower().compile()
    result = program(x)
    require("shard_map" in found or result is None, "it does not use jax.shard_map")
    return result, collectives([program])


@check("warm-up", "scale/eight-devices")
def place(answer: Answer) -> None:
    mesh = _mesh()
    params = {"w": np.ones((8, 3), np.float32), "b": [np.ones(3, np.float32), np.float32(2)]}
    batch = (np.arange(32.0).reshape(16, 2), np.arange(16))
    result = answer(mesh, params, batch)
    same("params and batch", result, (params, batch))
    for leaf in jax.tree.leaves(result[0]):
        require(isinstance(leaf, jax.Array), "params are not arrays of JAX")
        count = len(leaf.sharding.device_set)
        require(count == DEVICES, f"params are on {count} of {DEVICES} devices")
        require(leaf.sharding.is_fully_replicated, "params are split: no device has all of them")
    for leaf in result[1]:
        require(isinstance(leaf, jax.Array), "the batch is not arrays of JAX")
        _is_split("the batch", leaf)


@check("core", "scale/eight-devices")
def global_mean(answer: Answer) -> None:
    mesh = _mesh()
    for x in (np.arange(24.0), np.asarray(numbers(64))):
        split = _split(mesh, x)
        got, used = _compiled(answer, mesh, split)
        same(f"{x.size} numbers on {DEVICES} devices", got, np.float32(x.mean()))
        kinds = listed([kind for kind, _ in used])
        one = kinds in ("1 all-reduce", "1 all-gather")  # a gather of the eight means sends one number, too
        require(one, f"its collectives are {kinds}; expected 1 all-reduce")
        [(kind, count)] = used
        sent = count // DEVICES if kind == "all-gather" else count
        require(sent == 1, f"for {x.size} numbers its collective sends {sent} numbers, expected 1")


@check("core", "scale/eight-devices")
def global_softmax(answer: Answer) -> None:
    mesh = _mesh()
    for name, x in (
        ("64 numbers", np.asarray(numbers(64), float)),
        ("64 numbers from 50 to 365", np.arange(64.0) * 5 + 50),
        ("64 numbers around -1000", np.asarray(numbers(64), float) - 1000),
    ):
        got, used = _compiled(answer, mesh, _split(mesh, x))
        wanted = (np.exp(x - x.max()) / np.exp(x - x.max()).sum()).astype(np.float32)
        total = float(np.sum(got)) if isinstance(got, jax.Array) else 1.0
        require(np.isnan(total) or abs(total - 1) < 0.01, f"{name}: the result adds up to {total:.2f}, not to 1")
        same(name, got, wanted)
        _is_split("the result", got)
    passed = sum(count for kind, count in used if kind == "collective-permute")
    require(passed < DEVICES, f"with 8 elements on each device, it passes {passed} numbers from device to device")
    for kind, count in used:  # two numbers of each device are enough for a softmax
        most = 2 * DEVICES if kind == "all-gather" else DEVICES
        require(count <= most, f"with 8 elements on each device, its {kind} gives each device {count} numbers")


@check("challenge", "scale/model-parallel")
def two_layers(answer: Answer) -> None:
    mesh = _mesh()
    x, w1, w2 = numbers(5, 16), numbers(16, 64, seed=1), numbers(64, 24, seed=2)  # x cannot be split instead
    wanted = np.maximum(np.asarray(x) @ np.asarray(w1), 0) @ np.asarray(w2)
    got = answer(mesh, x, w1, w2)
    same("matrices of 16 by 64 and 64 by 24", got, wanted, 1e-3)
    require(got.sharding.is_fully_replicated, "the result is split")
    count = len(got.sharding.device_set)
    require(count == DEVICES, f"the result is on {count} of {DEVICES} devices")
    programs = compiled(lambda *a: answer(mesh, *a), x, w1, w2)
    work, whole = flops(programs), 2 * x.shape[0] * (w1.size + w2.size)
    text = f"each device runs {work:.0f} of {whole} operations, about {whole // DEVICES} would do"
    require(work < whole / 4, f"{text}: the work is not split")
    used = [kind for kind, _ in collectives(programs)]
    require(len(used) == 1, f"its collectives are {listed(used)}; expected one")
    few = Mesh(mesh.devices[:4], ("d",))
    got = answer(few, x, w1, w2)
    same("the same on 4 of the devices", got, wanted, 1e-3)
    elsewhere = got.sharding.device_set - set(few.devices.flat)
    require(not elsewhere, "for a mesh of 4 devices, the result is on others: it does not use the mesh it is given")


@check("challenge", "scale/model-parallel")
def second_difference(answer: Answer) -> None:
    mesh = _mesh()
    for size in (32, 8, 16):
        x = np.asarray(numbers(size), float)
        got, used = _compiled(answer, mesh, _split(mesh, x))
        wanted = np.roll(x, 1) - 2 * x + np.roll(x, -1)
        if np.shape(got) == x.shape:
            off = np.flatnonzero(~np.isclose(got, wanted, atol=1e-4)).tolist()
            text = f"ring of {size} on {DEVICES} devices: wrong at the places {off[:8]}{' …' if off[8:] else ''}"
            require(not off, text if len(off) < size else f"ring of {size}: wrong everywhere; gave {show(got[:3])} …")
        same(f"ring of {size}", got, wanted)
        _is_split("the result", got)
        _is_split("without jit, the result", answer(mesh, _split(mesh, x)))
    others = sorted({kind for kind, _ in used} - {"collective-permute"})
    require(not others, f"it uses {' and '.join(others)}: devices get more than they need")
    sent = sum(count for _, count in used)
    require(sent <= 2, f"each device is sent {sent} elements, expected 2")
    few, x = Mesh(mesh.devices[:4], ("d",)), np.asarray(numbers(8), float)
    try:
        got, _ = _compiled(answer, few, _split(few, x))
    except (ValueError, IndexError, TypeError) as error:
        raise Refused(f"a mesh of 4 devices: raised {type(error).__name__}: {error}".splitlines()[0]) from error
    same("ring of 8 on 4 devices", got, np.roll(x, 1) - 2 * x + np.roll(x, -1))
