"""Answers to the exercises on several devices."""

# Learners' code, with learners' habits:
# mypy: ignore-errors
# ruff: noqa: B023, N801, PLR0124, PLW0108, RET503, RET504, SIM110
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.site.snippets.answers import right, wrong


def on(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


# --- place ---------------------------------------------------------------------------------------------------------


@right("place")
def _(mesh, params, batch):
    return jax.device_put((params, batch), (on(mesh), on(mesh, "d")))


@right("place")
def _(mesh, params, batch):
    put = partial(jax.tree.map, jax.device_put)
    return jax.device_put(params, on(mesh)), put(batch, jax.tree.map(lambda _: on(mesh, "d"), batch))


@right("place")
def _(mesh, params, batch):
    return jax.jit(lambda *trees: trees, out_shardings=(on(mesh), on(mesh, "d")))(params, batch)


@right("place")
def _(mesh, params, batch):
    def put(leaf, sharding):
        leaf = np.asarray(leaf)
        return jax.make_array_from_callback(leaf.shape, sharding, lambda index: leaf[index])

    small = jax.tree.map(lambda leaf: jnp.asarray(leaf), batch)
    return jax.tree.map(lambda p: put(p, on(mesh)), params), jax.tree.map(lambda b: put(b, on(mesh, "d")), small)


@right("place")
def _(mesh, params, batch):
    def rows(leaf):
        return jax.device_put(jnp.asarray(leaf), on(mesh, "d", *[None] * (leaf.ndim - 1)))

    return jax.tree.map(lambda p: jax.device_put(p, on(mesh)), params), jax.tree.map(rows, batch)


@wrong("place", "on 1 of 8 devices")
def _(mesh, params, batch):
    return jax.device_put(params, mesh.devices[0]), jax.device_put(batch, on(mesh, "d"))


@wrong("place", "each device holds the shape")
def _(mesh, params, batch):
    return jax.device_put((params, batch), on(mesh))


@wrong("place", "raised")
def _(mesh, params, batch):
    return jax.device_put((params, batch), on(mesh, "d"))


@wrong("place", "is on 1 of 8 devices|are on 1 of 8")
def _(mesh, params, batch):
    return jax.device_put(params, on(mesh)), jax.tree.map(jnp.asarray, batch)


@wrong("place", "gave dtype float64|not arrays of JAX")
def _(mesh, params, batch):
    jax.device_put(params, on(mesh))
    jax.device_put(batch, on(mesh, "d"))
    return params, batch


@wrong("place", "raised")
def _(mesh, params, batch):
    return jax.device_put(params, on(mesh)), jax.device_put(batch, on(mesh, None, "d"))


# --- global_mean ---------------------------------------------------------------------------------------------------


@right("global_mean")
def _(mesh, x):
    return jax.shard_map(
        lambda part: jax.lax.psum(part.sum(), "d") / x.size, mesh=mesh, in_specs=P("d"), out_specs=P()
    )(x)


@right("global_mean")
def _(mesh, x):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("d"), out_specs=P())
    def mean(part):
        return jax.lax.psum(jnp.mean(part), "d") / jax.lax.axis_size("d")

    return mean(x)


@right("global_mean")
@partial(jax.jit, static_argnums=0)
def _(mesh, x):
    return jax.shard_map(lambda x: jax.lax.pmean(jnp.mean(x), "d"), mesh=mesh, in_specs=P("d"), out_specs=P())(x)


@right("global_mean")
def _(mesh, x):
    def mean(part):
        total = jax.lax.psum(part.sum(), mesh.axis_names[0])
        return total / (part.size * mesh.size)

    return jax.shard_map(mean, mesh=mesh, in_specs=(P("d"),), out_specs=P(), check_vma=False)(x)


@right("global_mean")
def _(mesh, x):
    def mean(part):
        return jax.lax.psum(part.mean(keepdims=True), "d") / 8

    return jax.shard_map(mean, mesh=mesh, in_specs=P("d"), out_specs=P())(x)[0]


@right("global_mean")
def _(mesh, x):  # sends one number, too
    def mean(x):
        return jax.lax.all_gather(x.mean(), "d").mean()

    return jax.shard_map(mean, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False)(x)


@wrong("global_mean", "its collective sends 3 numbers")
def _(mesh, x):
    def mean(x):
        return jax.lax.all_gather(x, "d").mean()

    return jax.shard_map(mean, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False)(x)


@wrong("global_mean", "its collective sends 3 numbers")
def _(mesh, x):
    return jax.shard_map(lambda x: jax.lax.pmean(x, "d").mean(), mesh=mesh, in_specs=P("d"), out_specs=P())(x)


@wrong("global_mean", "it does not use jax.shard_map")
def _(mesh, x):
    return x.mean()


@wrong("global_mean", "24 numbers on 8 devices: gave")
def _(mesh, x):
    return jax.shard_map(lambda x: jax.lax.psum(x.sum(), "d"), mesh=mesh, in_specs=P("d"), out_specs=P())(x)


@wrong("global_mean", r"gave shape \(8,\), expected \(\)")
def _(mesh, x):
    return jax.shard_map(lambda x: x.mean(keepdims=True), mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("global_mean", "its collectives are|sends 2 numbers")
def _(mesh, x):
    def mean(x):
        total, count = jax.lax.psum((x.sum(), x.sum() * 0 + x.size), "d")
        return total / count

    return jax.shard_map(mean, mesh=mesh, in_specs=P("d"), out_specs=P())(x)


@wrong("global_mean", "gave")
def _(mesh, x):
    return jax.shard_map(lambda x: x.mean(), mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False)(x)


# --- global_softmax ------------------------------------------------------------------------------------------------


def by_parts(part):
    return lambda mesh, x: jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@right("global_softmax")
@by_parts
def _(x):
    top = jax.lax.pmax(jnp.max(x), "d")
    powers = jnp.exp(x - top)
    total = jax.lax.psum(jnp.sum(powers), "d")
    return powers / total


@right("global_softmax")
@by_parts
def _(x):
    top = jax.lax.pmax(x.max(), "d")
    return jnp.exp(x - top - jnp.log(jax.lax.psum(jnp.exp(x - top).sum(), "d")))


@right("global_softmax")
@by_parts
def _(x):
    logs = jax.lax.all_gather(jax.nn.logsumexp(x), "d")
    return jnp.exp(x - jax.nn.logsumexp(logs))


@right("global_softmax")
def _(mesh, x):
    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    def softmax(x):
        weights = jnp.exp(x - jax.lax.pmax(x.max(), "d"))
        return weights / jax.lax.psum(weights.sum(), "d")

    return softmax(x)


@right("global_softmax")
@by_parts
def _(x):
    mine = x.max()
    top = jax.lax.pmax(mine, "d")
    total = jax.lax.psum(jnp.exp(x - mine).sum() * jnp.exp(mine - top), "d")
    return jnp.exp(x - top) / total


@right("global_softmax")
@by_parts
def _(x):  # a pair of numbers from each device
    top = x.max()
    pairs = jax.lax.all_gather(jnp.stack([top, jnp.exp(x - top).sum()]), "d")
    highest = pairs[:, 0].max()
    return jnp.exp(x - highest) / (pairs[:, 1] * jnp.exp(pairs[:, 0] - highest)).sum()


@wrong("global_softmax", "passes 56 numbers from device to device")
def _(mesh, x):
    def part(x):  # the parts go around the ring until each device has them all
        parts = [x]
        for _ in range(mesh.size - 1):
            parts.append(jax.lax.ppermute(parts[-1], "d", ring(mesh)))
        everything = jnp.concatenate(parts)
        powers = jnp.exp(x - everything.max())
        return powers / jnp.exp(everything - everything.max()).sum()

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("global_softmax", "passes 8 numbers from device to device")
def _(mesh, x):
    def part(x):
        def pass_on(_, state):
            total, moving = state
            moving = jax.lax.ppermute(moving, "d", ring(mesh))
            return jnp.logaddexp(total, jax.nn.logsumexp(moving)), moving

        total, _ = jax.lax.fori_loop(0, mesh.size - 1, pass_on, (jax.nn.logsumexp(x), x))
        return jnp.exp(x - total)

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("global_softmax", "gives each device 64 numbers")
@by_parts
def _(x):
    everything = jax.lax.all_gather(x, "d", tiled=True)
    here = jax.lax.axis_index("d") * x.size
    return jax.lax.dynamic_slice(jax.nn.softmax(everything), (here,), (x.size,))


@wrong("global_softmax", "adds up to 8")
@by_parts
def _(x):
    return jax.nn.softmax(x)


@wrong("global_softmax", "it does not use jax.shard_map")
def _(mesh, x):
    return jax.nn.softmax(x)


@wrong("global_softmax", "64 numbers from 50 to 365")
@by_parts
def _(x):
    weights = jnp.exp(x - jax.lax.pmean(x.mean(), "d"))
    return weights / jax.lax.psum(weights.sum(), "d")


@wrong("global_softmax", "64 numbers: element")
@by_parts
def _(x):
    weights = jnp.exp(x - x.max())
    return weights / jax.lax.psum(weights.sum(), "d")


@wrong("global_softmax", "each device holds the shape|the result is|raised")
def _(mesh, x):
    def softmax(x):
        weights = jnp.exp(x - jax.lax.pmax(x.max(), "d"))
        return jax.lax.all_gather(weights / jax.lax.psum(weights.sum(), "d"), "d", tiled=True)

    return jax.shard_map(softmax, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False)(x)


# --- two_layers ----------------------------------------------------------------------------------------------------


@right("two_layers")
def _(mesh, x, w1, w2):
    run = jax.jit(
        lambda x, w1, w2: jax.nn.relu(x @ w1) @ w2,
        in_shardings=(on(mesh), on(mesh, None, "d"), on(mesh, "d")),
        out_shardings=on(mesh),
    )
    return run(x, w1, w2)


@right("two_layers")
def _(mesh, x, w1, w2):
    w1 = jax.device_put(w1, on(mesh, None, "d"))
    w2 = jax.device_put(w2, on(mesh, "d", None))
    return jnp.maximum(x @ w1, 0) @ w2


@right("two_layers")
def _(mesh, x, w1, w2):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P(None, "d"), P("d", None)), out_specs=P())
    def run(x, w1, w2):
        return jax.lax.psum(jnp.maximum(x @ w1, 0) @ w2, "d")

    return run(x, w1, w2)


@right("two_layers")
@partial(jax.jit, static_argnums=0)
def _(mesh, x, w1, w2):
    split = jax.lax.with_sharding_constraint
    w1, w2 = split(w1, on(mesh, None, "d")), split(w2, on(mesh, "d", None))
    hidden = split(jax.nn.relu(x @ w1), on(mesh, None, "d"))
    return split(hidden @ w2, on(mesh))


@right("two_layers")
def _(mesh, x, w1, w2):
    def part(x, columns, rows):
        hidden = jax.nn.relu(jnp.einsum("bi,ij->bj", x, columns))
        return jax.lax.psum(jnp.einsum("bj,jk->bk", hidden, rows), "d")

    specs = P(None, None), P(None, "d"), P("d", None)
    return jax.jit(jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=P(None, None)))(x, w1, w2)


@wrong("two_layers", "on 1 of 8 devices")
def _(mesh, x, w1, w2):
    return jax.nn.relu(x @ w1) @ w2


@wrong("two_layers", "the work is not split")
def _(mesh, x, w1, w2):
    x, w1, w2 = jax.device_put((x, w1, w2), on(mesh))
    return jax.nn.relu(x @ w1) @ w2


@wrong("two_layers", "its collectives are|the work is not split")
def _(mesh, x, w1, w2):
    def part(x, w1, w2):
        hidden = jax.lax.all_gather(jax.nn.relu(x @ w1), "d", axis=1, tiled=True)
        return jax.lax.all_gather(hidden @ w2, "d", axis=1, tiled=True)

    specs = P(), P(None, "d"), P(None, "d")
    return jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(x, w1, w2)


@wrong("two_layers", "gave")
def _(mesh, x, w1, w2):
    def part(x, w1, w2):
        return jax.lax.pmean(jax.nn.relu(x @ w1) @ w2, "d")

    return jax.shard_map(part, mesh=mesh, in_specs=(P(), P(None, "d"), P("d")), out_specs=P())(x, w1, w2)


@wrong("two_layers", "the result is split")
def _(mesh, x, w1, w2):
    def part(x, w1, w2):
        return jax.nn.relu(x @ w1) @ w2

    return jax.shard_map(part, mesh=mesh, in_specs=(P(), P(), P(None, "d")), out_specs=P(None, "d"))(x, w1, w2)


@wrong("two_layers", "gave")
def _(mesh, x, w1, w2):
    def part(x, w1, w2):
        hidden = jax.lax.psum(x @ w1, "d")
        return jax.nn.relu(hidden) @ w2

    specs = P(None, "d"), P("d"), P()
    return jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(jnp.abs(x), w1, w2)


@wrong("two_layers", "its collectives are|the work is not split")
def _(mesh, x, w1, w2):
    def part(x, w1, w2):
        hidden = jax.nn.relu(jax.lax.psum(x @ w1, "d"))
        here = jax.lax.axis_index("d") * 8
        mine = jax.lax.dynamic_slice_in_dim(hidden, here, 8, axis=1)
        return jax.lax.psum(mine @ w2, "d")

    return jax.shard_map(part, mesh=mesh, in_specs=(P(None, "d"), P("d"), P("d")), out_specs=P())(x, w1, w2)


@right("two_layers")
def _(mesh, x, w1, w2):  # one collective, and each device adds the shares
    def part(x, w1, w2):
        return jax.lax.all_gather(jax.nn.relu(x @ w1) @ w2, "d").sum(axis=0)

    specs = P(), P(None, "d"), P("d")
    return jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(x, w1, w2)


@wrong("two_layers", "raised ValueError: .*not evenly divisible")
def _(mesh, x, w1, w2):  # splits x, and neither matrix
    def part(x, w1, w2):
        y = jax.nn.relu(x @ w1) @ w2
        whole = jnp.zeros((mesh.shape["d"] * y.shape[0], y.shape[1]))
        return jax.lax.psum(jax.lax.dynamic_update_slice(whole, y, (jax.lax.axis_index("d") * y.shape[0], 0)), "d")

    return jax.shard_map(part, mesh=mesh, in_specs=(P("d"), P(), P()), out_specs=P())(x, w1, w2)


@wrong("two_layers", "the same on 4 of the devices: .*gave")
def _(mesh, x, w1, w2):  # knows only eight devices
    def part(x, w1, w2):
        first = jax.lax.axis_index("d") * 8
        w1, w2 = jax.lax.dynamic_slice_in_dim(w1, first, 8, 1), jax.lax.dynamic_slice_in_dim(w2, first, 8, 0)
        return jax.lax.psum(jax.nn.relu(x @ w1) @ w2, "d")

    return jax.shard_map(part, mesh=mesh, in_specs=P(), out_specs=P())(x, w1, w2)


@wrong("two_layers", "it does not use the mesh it is given")
def _(mesh, x, w1, w2):
    def part(x, w1, w2):
        return jax.lax.psum(jax.nn.relu(x @ w1) @ w2, "d")

    specs = P(), P(None, "d"), P("d")
    mesh = Mesh(np.array(jax.devices()), ("d",))
    return jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=P())(x, w1, w2)


# --- second_difference ---------------------------------------------------------------------------------------------


def ring(mesh, step=1):
    return [(i, (i + step) % mesh.size) for i in range(mesh.size)]


@right("second_difference")
def _(mesh, x):
    def part(x):
        left = jax.lax.ppermute(x[-1], "d", ring(mesh))
        right = jax.lax.ppermute(x[0], "d", ring(mesh, -1))
        return jnp.append(left, x[:-1]) - 2 * x + jnp.append(x[1:], right)

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@right("second_difference")
@partial(jax.jit, static_argnums=0)
def _(mesh, x):
    def part(x):
        left = jax.lax.pshuffle(x[-1:], "d", [(i - 1) % mesh.size for i in range(mesh.size)])
        right = jax.lax.pshuffle(x[:1], "d", [(i + 1) % mesh.size for i in range(mesh.size)])
        return jnp.diff(jnp.concatenate([left, x, right]), 2)

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@right("second_difference")
def _(mesh, x):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    def part(x):
        padded = jnp.zeros(x.size + 2).at[1:-1].set(x)
        padded = padded.at[0].set(jax.lax.ppermute(x[-1], "d", ring(mesh)))
        padded = padded.at[-1].set(jax.lax.ppermute(x[0], "d", ring(mesh, -1)))
        return jnp.convolve(padded, jnp.array([1.0, -2, 1]), mode="valid")

    return part(x)


@right("second_difference")
def _(mesh, x):
    def part(x):
        inside = jnp.roll(x, 1) - 2 * x + jnp.roll(x, -1)
        left = jax.lax.ppermute(x[-1], "d", perm=ring(mesh))
        right = jax.lax.ppermute(x[0], "d", perm=ring(mesh, -1))
        return inside.at[0].add(left - x[-1]).at[-1].add(right - x[0])

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@right("second_difference")
def _(mesh, x):
    def part(x):
        rise = x - jnp.concatenate([jax.lax.ppermute(x[-1:], "d", ring(mesh)), x[:-1]])
        following = jnp.concatenate([rise[1:], jax.lax.ppermute(rise[:1], "d", ring(mesh, -1))])
        return following - rise

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("second_difference", "it does not use jax.shard_map")
def _(mesh, x):
    return jnp.roll(x, 1) - 2 * x + jnp.roll(x, -1)


@wrong("second_difference", r"wrong at the places \[0, 3, 4")
def _(mesh, x):
    def part(x):
        return jnp.roll(x, 1) - 2 * x + jnp.roll(x, -1)

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("second_difference", "it uses all-gather: devices get more than they need")
def _(mesh, x):
    def part(x):
        whole = jax.lax.all_gather(x, "d", tiled=True)
        here = jax.lax.axis_index("d") * x.size + jnp.arange(x.size)
        return whole[here - 1] - 2 * x + whole[(here + 1) % whole.size]

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("second_difference", "it uses all-gather")
def _(mesh, x):
    def part(x):
        first, last = jax.lax.all_gather((x[0], x[-1]), "d")
        i = jax.lax.axis_index("d")
        padded = jnp.concatenate([last[None, i - 1], x, first[None, (i + 1) % 8]])
        return jnp.diff(padded, 2)

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("second_difference", "wrong at the places")
def _(mesh, x):
    def part(x):
        left = jax.lax.ppermute(x[-1:], "d", ring(mesh, -1))
        right = jax.lax.ppermute(x[:1], "d", ring(mesh))
        return jnp.diff(jnp.concatenate([left, x, right]), 2)

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("second_difference", "is sent 4 elements, expected 2")
def _(mesh, x):
    def part(x):
        ends = jnp.stack([x[0], x[-1]])
        left = jax.lax.ppermute(ends, "d", ring(mesh))[1:]
        right = jax.lax.ppermute(ends, "d", ring(mesh, -1))[:1]
        return jnp.diff(jnp.concatenate([left, x, right]), 2)

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("second_difference", "a mesh of 4 devices: raised ValueError")
def _(mesh, x):
    n = jax.device_count()
    right_of = [(i, (i + 1) % n) for i in range(n)]

    def part(x):
        before = jax.lax.ppermute(x[-1:], "d", right_of)
        after = jax.lax.ppermute(x[:1], "d", [(j, i) for i, j in right_of])
        return jnp.diff(jnp.concatenate([before, x, after]), n=2)

    return jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


@wrong("second_difference", "without jit, the result")
def _(mesh, x):
    def part(x):
        left = jax.lax.ppermute(x[-1], "d", ring(mesh))
        right = jax.lax.ppermute(x[0], "d", ring(mesh, -1))
        return jnp.append(left, x[:-1]) - 2 * x + jnp.append(x[1:], right)

    result = jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)
    return jax.device_put(result, jax.NamedSharding(mesh, P()))
