"""Answers to the exercises on arrays, randomness, derivatives, vmap and pytrees."""

# Learners' code, with learners' habits:
# mypy: ignore-errors
# ruff: noqa: B023, N801, PLR0124, PLW0108, RET503, RET504, SIM110
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from tests.site.snippets.answers import right, wrong

# --- standardize ---------------------------------------------------------------------------------------------------


@right("standardize")
def _(x):
    moved = x - x[0]  # a column of equal numbers is exactly zero
    spread = moved.std(axis=0)
    return (moved - moved.mean(axis=0)) / jnp.where(spread == 0, 1, spread)


@right("standardize")
def _(x):
    same = (x == x[0]).all(axis=0)
    scaled = (x - jnp.mean(x, 0, keepdims=True)) / jnp.where(same, 1, jnp.std(x, 0, keepdims=True))
    return jnp.where(same, 0, scaled)


@right("standardize")
def _(x):
    def column(c):
        constant = jnp.ptp(c) == 0
        return jnp.where(constant, jnp.zeros_like(c), (c - c.mean()) / jnp.where(constant, 1, c.std()))

    return jax.vmap(column, in_axes=1, out_axes=1)(x)


@right("standardize")
@jax.jit
def _(x):
    centered = x - x.mean(axis=0)
    spread = jnp.sqrt((centered**2).mean(axis=0))
    flat = spread <= 1e-5 * jnp.abs(x).max(axis=0)
    return jnp.where(flat, 0, centered / jnp.where(flat, 1, spread)).astype(x.dtype)


@right("standardize")
def _(x):
    columns = []
    for column in x.T:
        constant = column.max() == column.min()
        spread = jnp.where(constant, 1.0, column.std().astype(jnp.float32))
        columns.append(jnp.where(constant, 0.0, (column - column.mean()) / spread))
    return jnp.stack(columns, axis=1).astype(x.dtype)


@wrong("standardize", "a column of six")
def _(x):
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-8)


@wrong("standardize", r"a matrix: element \[0, 0\]: gave")
def _(x):
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


@wrong("standardize", r"a matrix: element \[0, 2\]")
def _(x):
    return jax.nn.standardize(x, axis=0)


@wrong("standardize", "a matrix: element")
def _(x):
    return (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)


@wrong("standardize", "a column of six 0.1")
def _(x):
    spread = x.std(axis=0)
    return jnp.nan_to_num((x - x.mean(axis=0)) / spread)


@wrong("standardize", "TracerBoolConversionError")
def _(x):
    spread = jnp.array([1.0 if c.max() == c.min() else c.std() for c in x.T])
    return (x - x.mean(axis=0)) / spread


@wrong("standardize", "a column around 1000")
def _(x):
    y = x.astype(jnp.float32)
    mean = y.mean(0)
    deviation = jnp.sqrt(jnp.maximum((y * y).mean(0) - mean * mean, 1e-12))
    return jnp.where((x == x[0]).all(0), 0, (y - mean) / deviation).astype(x.dtype)


@wrong("standardize", "a column around 1000")
def _(x):
    mean, deviation = x.mean(0), x.std(0)
    flat = deviation <= 1e-4 * jnp.abs(mean)
    return jnp.where(flat, 0, (x - mean) / jnp.where(flat, 1, deviation)).astype(x.dtype)


# --- swap_rows -----------------------------------------------------------------------------------------------------


@right("swap_rows")
def _(x, i, j):
    return x.at[i].set(x[j]).at[j].set(x[i])


@right("swap_rows")
def _(x, i, j):
    one, two = x[i], x[j]
    x = x.at[i].set(two)
    return x.at[j].set(one)


@right("swap_rows")
def _(x, i, j):
    order = jnp.arange(x.shape[0])
    order = jnp.where(order == i, j, jnp.where(order == j, i, order))
    return x[order]


@right("swap_rows")
def _(x, i, j):
    rows = jnp.arange(len(x))[:, None]
    return jnp.where(rows == i, x[j], jnp.where(rows == j, x[i], x))


@right("swap_rows")
@jax.jit
def _(x, i, j):
    pick = partial(jax.lax.dynamic_index_in_dim, x, keepdims=True)
    y = jax.lax.dynamic_update_slice_in_dim(x, pick(j), i, 0)
    return jax.lax.dynamic_update_slice_in_dim(y, pick(i), j, 0)


@wrong("swap_rows", "TypeError")
def _(x, i, j):
    x[i], x[j] = x[j], x[i]
    return x


@wrong("swap_rows", r"\[\[1, 1e9\], \[1e9, 3\]\]: it changed the numbers")
def _(x, i, j):
    step = x[j] - x[i]
    return x.at[i].add(step).at[j].add(-step)


@wrong("swap_rows", "a matrix of integers: gave dtype float32")
def _(x, i, j):
    eye = jnp.eye(x.shape[0])
    return eye.at[i].set(eye[j]).at[j].set(eye[i]) @ x


@wrong("swap_rows", "rows 0 and 2: gave")
def _(x, i, j):
    return x.at[:, jnp.array([i, j])].set(x[:, jnp.array([j, i])])


@wrong("swap_rows", "raised Tracer")
def _(x, i, j):
    copy = np.array(x)
    copy[[i, j]] = copy[[j, i]]
    return jnp.array(copy)


@wrong("swap_rows", "rows 0 and 2: gave")
def _(x, i, j):
    return jnp.roll(x, j - i, axis=0)


@wrong("swap_rows", "raised TypeError|rows 0 and 2|it changed|gave|slice")
def _(x, i, j):  # knows only two columns
    one, other = jax.lax.dynamic_slice(x, (i, 0), (1, 2)), jax.lax.dynamic_slice(x, (j, 0), (1, 2))
    return jax.lax.dynamic_update_slice(jax.lax.dynamic_update_slice(x, other, (i, 0)), one, (j, 0))


@wrong("swap_rows", r"\[\[inf, 1, 2\], \[3, nan, 4\]\]: gave")
def _(x, i, j):
    same = jnp.eye(len(x), dtype=x.dtype)
    return same.at[i].set(same[j]).at[j].set(same[i]) @ x


@wrong("swap_rows", "it deleted x")
@partial(jax.jit, donate_argnums=0)
def _(x, i, j):
    return x.at[jnp.array([i, j])].set(x[jnp.array([j, i])])


@wrong("swap_rows", r"2\*\*24 \+ 1\], \[3, 4\]\], integers: it changed the numbers")
def _(x, i, j):
    y = x.astype(float)
    return y.at[i].set(y[j]).at[j].set(y[i]).astype(x.dtype)


# --- cap -----------------------------------------------------------------------------------------------------------


@right("cap")
def _(x, limit):
    return jnp.minimum(x, limit)


@right("cap")
def _(x, limit):
    return jnp.clip(x, max=limit)


@right("cap")
def _(x, limit):
    return jnp.asarray(x).at[:].min(limit)


@right("cap")
def _(x, limit):
    x = jnp.array(x)
    return jax.vmap(lambda e: jax.lax.select(e > limit, jnp.asarray(limit, x.dtype), e))(x)


@right("cap")
@jax.jit
def _(x, limit):
    return jnp.where(jnp.greater(x, limit), limit, x)


@wrong("cap", "and limit 4: gave")
def _(x, limit):
    return jnp.clip(x, limit)


@wrong("cap", "TracerArrayConversionError")
def _(x, limit):
    x = np.array(x)
    x[x > limit] = limit
    return jnp.asarray(x)


@wrong("cap", r"\[nan, -inf, 5, inf\] and limit 4: gave \[4, -inf")
def _(x, limit):
    return jnp.where(x < limit, x, limit)


@wrong("cap", r"the integers \[1, 5, 3\] and limit 4: gave dtype float32")
def _(x, limit):
    return jnp.minimum(x, jnp.float32(limit))


@wrong("cap", "TracerBoolConversionError")
def _(x, limit):
    return jnp.stack([limit * (e / e) if e > limit else e for e in jnp.asarray(x)])


@wrong("cap", r"\[1, 5, 3, 9\] and limit 4: gave \[1, 5, 3, 9\]")
def _(x, limit):
    x = jnp.asarray(x)
    x.at[x > limit].set(limit)
    return x


# --- delay ---------------------------------------------------------------------------------------------------------


@right("delay")
def _(x, steps):
    place = jnp.arange(x.size)
    moved = jnp.roll(x, steps)
    return jnp.where((place >= steps) & (place < x.size + steps), moved, 0)


@right("delay")
def _(x, steps):
    n = x.shape[0]
    padded = jnp.pad(x, n)
    return jax.lax.dynamic_slice(padded, (jnp.clip(n - steps, 0, 2 * n),), (n,))


@right("delay")
def _(x, steps):
    source = jnp.arange(x.size) - steps
    source = jnp.where(source < 0, x.size, source)
    return x.at[source].get(mode="fill", fill_value=0)


@right("delay")
def _(x, steps):
    to = jnp.arange(x.size) + steps
    return jnp.zeros_like(x).at[jnp.where(to < 0, x.size, to)].set(x, mode="drop")


@right("delay")
def _(x, steps):
    def one(i):
        j = i - steps
        return jax.lax.cond((j >= 0) & (j < x.size), lambda: x[j], lambda: jnp.zeros((), x.dtype))

    return jax.vmap(one)(jnp.arange(x.size))


@wrong("delay", "and 2 steps: gave")
def _(x, steps):
    return jnp.roll(x, steps)


@right("delay")
def _(x, steps):
    place = jnp.arange(x.size) - steps
    return x[place] * ((place >= 0) & (place < x.size))  # JAX selects: infinity times False is 0


@wrong("delay", r"inf.* steps.*: gave .*nan")
def _(x, steps):
    place = jnp.arange(x.size) - steps
    return x[place] * ((place >= 0) & (place < x.size)).astype(x.dtype)


@wrong("delay", "and -1 steps: gave")
def _(x, steps):
    to = jnp.arange(x.size) + steps
    return jnp.zeros_like(x).at[to].set(x, mode="drop")


@wrong("delay", "and 2 steps: gave")
def _(x, steps):
    return x.at[jnp.arange(x.size) - steps].get(mode="fill", fill_value=0)


@wrong("delay", "TracerBoolConversionError|raised")
def _(x, steps):
    if steps >= 0:
        return jnp.concatenate([jnp.zeros(steps, x.dtype), x])[: x.size]
    return jnp.concatenate([x, jnp.zeros(-steps, x.dtype)])[-steps:]


@wrong("delay", "gave dtype float32, expected int32")
def _(x, steps):
    source = jnp.arange(x.size) - steps
    return jnp.where((source >= 0) & (source < x.size), x[source], 0.0)


# --- blend ---------------------------------------------------------------------------------------------------------


@right("blend")
def _(a, b):
    return ((a.astype(jnp.int32) + b.astype(jnp.int32)) // 2).astype(jnp.uint8)


@right("blend")
def _(a, b):
    return (a & b) + ((a ^ b) >> 1)


@right("blend")
def _(a, b):
    return a // 2 + b // 2 + (a & b & 1)


@right("blend")
def _(a, b):
    return jnp.stack([a, b]).mean(axis=0).astype(jnp.uint8)


@right("blend")
def _(a, b):
    return jnp.floor((a.astype(jnp.float16) + b) / 2).astype("uint8")


@wrong("blend", r"200 and 100: gave \[22\], expected \[150\]")
def _(a, b):
    return ((a + b) / 2).astype(jnp.uint8)


@wrong("blend", "gave dtype int32, expected uint8")
def _(a, b):
    return (a.astype(int) + b) // 2


@wrong("blend", "and .*: gave .*, expected")
def _(a, b):
    return jnp.round((a.astype(float) + b) / 2).astype(jnp.uint8)


@wrong("blend", "and .*: gave .*, expected")
def _(a, b):
    return ((a.astype(jnp.bfloat16) + b) / 2).astype(jnp.uint8)


@wrong("blend", "200 and 100: gave .*, expected")
def _(a, b):
    return ((a.astype(jnp.int8) + b.astype(jnp.int8)) // 2).astype(jnp.uint8)


@wrong("blend", "255 and 255: gave .*254.*, expected")
def _(a, b):
    return (a >> 1) + (b >> 1)


@right("blend")
def _(a, b):
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    return low + (high - low) // 2


@wrong("blend", "raised")
def _(a, b):  # an image is no vector
    def mean(x, y):
        return jax.lax.cond(x > y, lambda: y + (x - y) // 2, lambda: x + (y - x) // 2)

    return jax.vmap(mean)(a, b)


# --- shuffle_together ----------------------------------------------------------------------------------------------


@right("shuffle_together")
def _(key, x, y):
    order = jax.random.permutation(key, len(y))
    return jnp.take(x, order, axis=0), jnp.take(y, order, axis=0)


@right("shuffle_together")
def _(key, x, y):
    order = jnp.argsort(jax.random.uniform(key, (x.shape[0],)))
    return x[order], y[order]


@right("shuffle_together")
def _(key, x, y):
    order = jax.random.choice(key, len(x), (len(x),), replace=False)
    return x[order], y[order]


@right("shuffle_together")
def _(key, x, y):
    order = jax.random.permutation(key, jnp.arange(x.shape[0]))
    return jax.tree.map(lambda leaf: leaf[order], (x, y))


@right("shuffle_together")
@jax.jit
def _(key, x, y):
    _, sub = jax.random.split(key)
    order = jax.random.permutation(sub, x.shape[0], independent=True)
    return x.at[order].get(), y.at[order].get()


@wrong("shuffle_together", "each of its elements once")
def _(key, x, y):
    order = jax.random.randint(key, (x.shape[0],), 0, x.shape[0])
    return x[order], y[order]


@wrong("shuffle_together", "neighbors stay neighbors")
def _(key, x, y):
    shift = jax.random.randint(key, (), 1, x.shape[0])
    return jnp.roll(x, shift, axis=0), jnp.roll(y, shift, axis=0)


@wrong("shuffle_together", "each of its elements once|y has become float32")
def _(key, x, y):
    table = jax.random.permutation(key, jnp.column_stack([x, y]))
    return table[:, :-1], table[:, -1].astype(y.dtype)


@wrong("shuffle_together", "two keys give the same order")
def _(key, x, y):
    order = jax.random.permutation(jax.random.key(0), x.shape[0])
    return x[order], y[order]


@wrong("shuffle_together", "KeyReuseError")
def _(key, x, y):
    x = jax.random.permutation(key, x)
    y = jax.random.permutation(key, y)
    return x, y


@wrong("shuffle_together", "not a pair")
def _(key, x, y):
    order = jax.random.permutation(key, x.shape[0])
    return [x[order], y[order]]


@wrong("shuffle_together", "the same key gives another order")
def _(key, x, y):
    order = np.random.permutation(len(x))
    return x[order], y[order]


@wrong("shuffle_together", "rows stay at their places")
def _(key, x, y):  # swaps two rows
    i, j = jax.random.randint(key, (2,), 0, len(x))
    order = jnp.arange(len(x)).at[i].set(j).at[j].set(i)
    return x[order], y[order]


@wrong("shuffle_together", "of the 6 orders of three rows, 60 keys give 2")
def _(key, x, y):
    def swap(k, order):
        i = len(y) - 1 - k
        j = jax.random.randint(jax.random.fold_in(key, k), (), 0, i)
        return order.at[i].set(order[j]).at[j].set(order[i])

    order = jax.lax.fori_loop(0, len(y) - 1, swap, jnp.arange(len(y)))
    return x[order], y[order]


@wrong("shuffle_together", "of the 6 orders of three rows, 60 keys give 2")
def _(key, x, y):
    order = jnp.append(jax.random.permutation(key, len(y) - 1), len(y) - 1)
    return x[order], y[order]


@wrong("shuffle_together", "it clones the key")
def _(key, x, y):
    return jax.random.permutation(key, x), jax.random.permutation(jax.random.clone(key), y)


# --- init ----------------------------------------------------------------------------------------------------------


@right("init")
def _(key, sizes):
    params = []
    for m, n in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append({"w": jax.random.normal(sub, (m, n)) / jnp.sqrt(m), "b": jnp.zeros((n,))})
    return params


@right("init")
def _(key, sizes):
    return [
        {"b": jnp.zeros(n), "w": jax.random.normal(jax.random.fold_in(key, i), (m, n)) * m**-0.5}
        for i, (m, n) in enumerate(zip(sizes, sizes[1:]))
    ]


@right("init")
def _(key, sizes):
    draw = jax.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
    keys = jax.random.split(key, len(sizes))
    return [{"w": draw(keys[i], (sizes[i], sizes[i + 1])), "b": jnp.zeros(sizes[i + 1])} for i in range(len(sizes) - 1)]


@right("init")
def _(key, sizes):
    pairs = list(zip(sizes, sizes[1:]))
    flat = jax.random.normal(key, (sum(m * n for m, n in pairs),))
    params, start = [], 0
    for m, n in pairs:
        params.append({"w": flat[start : start + m * n].reshape(m, n) / m**0.5, "b": jnp.zeros(n)})
        start += m * n
    return params


@right("init")
def _(key, sizes):
    def layer(key, m, n):
        return dict(w=jax.nn.initializers.normal(1 / np.sqrt(m))(key, (m, n)), b=jnp.zeros(n))

    return list(map(layer, jax.random.split(key, len(sizes) - 1), sizes[:-1], sizes[1:]))


@wrong("init", "is not normal|deviation")
def _(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.uniform(k, (m, n), minval=-1, maxval=1) * (3 / m) ** 0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


@wrong("init", "not normal")
def _(key, sizes):
    draw = jax.nn.initializers.lecun_normal()
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": draw(k, (m, n)), "b": jnp.zeros(n)} for k, m, n in zip(keys, sizes, sizes[1:])]


@wrong("init", "has standard deviation 4.")
def _(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (m, n)) / n**0.5, "b": jnp.zeros(n)} for k, m, n in zip(keys, sizes, sizes[1:])]


@wrong("init", "standard deviation 1.4")
def _(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) * (2 / m) ** 0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


@wrong("init", "KeyReuseError")
def _(key, sizes):
    params = []
    for m, n in zip(sizes, sizes[1:]):
        params.append({"w": jax.random.normal(key, (m, n)) / m**0.5, "b": jnp.zeros(n)})
        jax.random.split(key)
    return params


@wrong("init", '"b" is not all zeros')
def _(key, sizes):
    params = []
    for m, n in zip(sizes, sizes[1:]):
        key, kw, kb = jax.random.split(key, 3)
        params.append({"w": jax.random.normal(kw, (m, n)) / m**0.5, "b": jax.random.normal(kb, (n,))})
    return params


@wrong("init", "same numbers")
def _(key, sizes):
    flat = jax.random.normal(key, (max(sizes) ** 2,))
    return [{"w": flat[: m * n].reshape(m, n) / m**0.5, "b": jnp.zeros(n)} for m, n in zip(sizes, sizes[1:])]


@wrong("init", "the same numbers more than once|deviation")
def _(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jnp.tile(jax.random.normal(k, (1, n)), (m, 1)) / m**0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


@wrong("init", "the same key gives other parameters the second time")
def _(key, sizes):
    return [
        {"w": jnp.asarray(np.random.randn(m, n) / np.sqrt(m), jnp.float32), "b": jnp.zeros(n)}
        for m, n in zip(sizes, sizes[1:])
    ]


# --- root ----------------------------------------------------------------------------------------------------------


@right("root")
def _(f, start):
    slope = jax.grad(f)
    x = float(start)
    for _ in range(10):
        x = x - f(x) / slope(x)
    return x


@right("root")
def _(f, start):
    def step(_, x):
        value, slope = jax.jvp(f, (x,), (jnp.ones_like(x),))
        return x - value / slope

    return jax.lax.fori_loop(0, 10, step, jnp.asarray(start, float))


@right("root")
def _(f, start):
    def step(x, _):
        return x - f(x) / jax.jacfwd(f)(x), None

    return jax.lax.scan(step, 1.0 * start + jnp.zeros(()), length=10)[0]


@right("root")
@partial(jax.jit, static_argnums=0)
def _(f, start):
    x = start * 1.0
    for _ in range(10):
        value, back = jax.vjp(f, x)
        x = x - value / back(jnp.ones_like(value))[0]
    return x


@right("root")
def _(f, start):
    def newton(x, left):
        return newton(x - f(x) / jax.grad(f)(x), left - 1) if left else x

    return newton(jnp.array(start, jnp.float32), 10)


@wrong("root", "grad requires real")
def _(f, start):
    x = jnp.asarray(start)
    for _ in range(10):
        x = x - f(x) / jax.grad(f)(x)
    return x


@wrong("root", "x\\*\\*3 from 1.0")
def _(f, start):
    x = jnp.float32(start)
    while abs(f(x)) > 1e-6:
        x = x - f(x) / jax.grad(f)(x)
    return x


@wrong("root", "gave 0.01156, expected 0.01734")
def _(f, start):
    x = jnp.float32(start)
    for _ in range(11):
        x = x - f(x) / jax.grad(f)(x)
    return x


@wrong("root", "JAX was not asked|x\\*\\*3 from 1.0")
def _(f, start):
    x = jnp.float32(start)
    h = 1e-2
    for _ in range(10):
        x = x - f(x) / ((f(x + h) - f(x - h)) / (2 * h))
    return x


@wrong("root", "x\\*\\*2 - 2 from 1.0: gave")
def _(f, start):
    x = jnp.float32(start)
    for _ in range(10):
        x = x + f(x) / jax.grad(f)(x)
    return x


@wrong("root", "x\\*\\*2 - 2 from 1.0: gave")
def _(f, start):
    x = jnp.float32(start)
    for _ in range(10):
        x = x - 0.1 * jax.grad(f)(x)
    return x


@wrong("root", "x\\*\\*3 from 1e-9")
def _(f, start):  # at most ten steps
    x = jnp.float32(start)
    for _ in range(10):
        if abs(f(x)) < 1e-6:
            break
        x = x - f(x) / jax.grad(f)(x)
    return x


@wrong("root", "x\\*\\*3 from 1e-9")
def _(f, start):
    x = float(start)
    for _ in range(10):
        before, x = x, x - f(x) / jax.grad(f)(x)
        if abs(x - before) < 1e-6:
            break
    return x


# --- directional ---------------------------------------------------------------------------------------------------


@right("directional")
def _(f, x, v):
    _, push = jax.linearize(f, x)
    return push(v)


@right("directional")
def _(f, x, v):
    return jax.jacfwd(lambda t: f(x + t * v))(0.0)


@right("directional")
def _(f, x, v):
    y, back = jax.vjp(f, x)
    return jax.vjp(lambda u: back(u)[0], jnp.zeros_like(y))[1](v)[0]


@right("directional")
def _(f, x, v):
    value, slope = jax.jvp(f, [x], [v])
    return slope


@right("directional")
def _(f, x, v):
    return jax.jit(lambda x, v: jax.jvp(f, (x,), (v,))[1])(x, v)


@wrong("directional", "gave")
def _(f, x, v):
    h = 1e-3
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


@wrong("directional", "gave")
def _(f, x, v):
    h = 1e-2
    return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / (12 * h)


@wrong("directional", "computes an array of 2500")
def _(f, x, v):
    return jax.jacrev(f)(x) @ v


@wrong("directional", "gave")
def _(f, x, v):
    return jax.jvp(f, (x,), (v / jnp.linalg.norm(v),))[1]


@wrong("directional", "gave")
def _(f, x, v):
    return jax.jvp(f, (x,), (v,))[0]


@wrong("directional", "element|gave")
def _(f, x, v):
    return jax.grad(lambda x: f(x).sum())(x) * v


@wrong("directional", "computes an array of 2500")
def _(f, x, v):
    columns = jax.vmap(lambda e: jax.jvp(f, (x,), (e,))[1])(jnp.eye(x.size))
    return v @ columns


# --- gradient_norms ------------------------------------------------------------------------------------------------


@right("gradient_norms")
def _(loss, w, xs, ys):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    return jnp.linalg.norm(grads, axis=1)


@right("gradient_norms")
def _(loss, w, xs, ys):
    return jnp.array([jnp.sqrt(jnp.sum(jax.grad(loss)(w, x, y) ** 2)) for x, y in zip(xs, ys)])


@right("gradient_norms")
def _(loss, w, xs, ys):
    jacobian = jax.jacrev(lambda w: jax.vmap(loss, (None, 0, 0))(w, xs, ys))(w)
    return jnp.sqrt((jacobian**2).sum(-1))


@right("gradient_norms")
def _(loss, w, xs, ys):
    return jax.lax.map(lambda pair: jnp.linalg.norm(jax.grad(loss)(w, *pair)), (xs, ys))


@right("gradient_norms")
def _(loss, w, xs, ys):
    grads = jax.vmap(partial(jax.grad(loss), w))(xs, ys)
    return jnp.sqrt(jnp.einsum("ij,ij->i", grads, grads))


@wrong("gradient_norms", "inconsistent sizes")
def _(loss, w, xs, ys):
    return jax.vmap(lambda w, x, y: jnp.linalg.norm(jax.grad(loss)(w, x, y)))(w, xs, ys)


@wrong("gradient_norms", "element|gave")
def _(loss, w, xs, ys):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    return jnp.linalg.norm(grads, ord=1, axis=1)


@wrong("gradient_norms", "gave")
def _(loss, w, xs, ys):
    grads = jax.vmap(jax.grad(loss, argnums=1), in_axes=(None, 0, 0))(w, xs, ys)
    return jnp.linalg.norm(grads, axis=1)


@wrong("gradient_norms", r"gave shape \(3,\), expected \(5,\)")
def _(loss, w, xs, ys):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    return jnp.linalg.norm(grads, axis=0)


@wrong("gradient_norms", r"gave shape \(\), expected \(5,\)")
def _(loss, w, xs, ys):
    total = jax.grad(lambda w: jax.vmap(loss, (None, 0, 0))(w, xs, ys).sum())(w)
    return jnp.linalg.norm(total)


@wrong("gradient_norms", "gave")
def _(loss, w, xs, ys):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    return (grads**2).sum(axis=1)


@right("gradient_norms")
def _(loss, w, xs, ys):
    gradients = jax.vmap(jax.grad(loss))(jnp.tile(w, (len(xs), 1)), xs, ys)
    return jnp.linalg.norm(gradients, axis=-1)


@right("gradient_norms")
def _(loss, w, xs, ys):
    return jnp.linalg.norm(jnp.vectorize(jax.grad(loss), signature="(w),(x),()->(w)")(w, xs, ys), axis=-1)


@wrong("gradient_norms", "raised")
def _(loss, w, xs, ys):  # as many weights as features
    gradients = jax.vmap(jax.grad(loss))(jnp.broadcast_to(w, xs.shape), xs, ys)
    return jnp.linalg.norm(gradients, axis=-1)


@wrong("gradient_norms", "raised")
def _(loss, w, xs, ys):  # knows one loss
    return 2 * jnp.abs(xs @ w - ys) * jnp.linalg.norm(xs, axis=1)


@wrong("gradient_norms", "another loss")
def _(loss, w, xs, ys):
    def differences(x, y):
        return jax.vmap(lambda e: (loss(w + e, x, y) - loss(w - e, x, y)) / 2e-3)(1e-3 * jnp.eye(w.size))

    return jnp.linalg.norm(jax.vmap(differences)(xs, ys), axis=1)


@wrong("gradient_norms", "whose gradient is zero")
def _(loss, w, xs, ys):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    return jnp.sqrt((grads**2).sum(1) + 1e-6)


# --- ensemble ------------------------------------------------------------------------------------------------------


@right("ensemble")
def _(predict, models, x):
    outputs = jax.vmap(lambda model: predict(model, x))(models)
    return jnp.mean(outputs, 0), jnp.std(outputs, 0)


@right("ensemble")
def _(predict, models, x):
    count = len(jax.tree.leaves(models)[0])
    one = [predict(jax.tree.map(lambda leaf: leaf[i], models), x) for i in range(count)]
    outputs = jnp.stack(one)
    return outputs.mean(0), outputs.std(0)


@right("ensemble")
def _(predict, models, x):
    outputs = jax.lax.map(lambda model: predict(model, x), models)
    mean = outputs.mean(axis=0)
    return mean, jnp.sqrt(jnp.mean((outputs - mean) ** 2, axis=0))


@right("ensemble")
def _(predict, models, x):
    _, outputs = jax.lax.scan(lambda carry, model: (carry, predict(model, x)), None, models)
    return outputs.mean(axis=0), outputs.var(axis=0) ** 0.5


@right("ensemble")
def _(predict, models, x):
    outputs = jax.jit(jax.vmap(predict, (0, None), -1))(models, x)
    return outputs.mean(axis=-1), outputs.std(axis=-1)


@wrong("ensemble", "which gives one number|raised ValueError: axis 1 is out of bounds")
def _(predict, models, x):  # knows only predictions that are vectors
    outputs = jax.vmap(predict, (0, None), 1)(models, x)
    return outputs.mean(axis=-1), outputs.std(axis=-1)


@wrong("ensemble", "result\\[1\\]")
def _(predict, models, x):
    outputs = jax.vmap(predict, (0, None))(models, x)
    return outputs.mean(0), outputs.std(0, ddof=1)


@wrong("ensemble", "result\\[1\\]")
def _(predict, models, x):
    outputs = jax.vmap(predict, (0, None))(models, x)
    return outputs.mean(0), outputs.var(0)


@wrong("ensemble", "3 models")
def _(predict, models, x):
    outputs = jnp.stack([predict(jax.tree.map(lambda leaf: leaf[i % 4], models), x) for i in range(4)])
    return outputs.mean(0), outputs.std(0)


@wrong("ensemble", "result\\[0\\]")
def _(predict, models, x):
    average = jax.tree.map(lambda leaf: leaf.mean(0), models)
    outputs = jax.vmap(predict, (0, None))(models, x)
    return predict(average, x), outputs.std(0)


@wrong("ensemble", "gave shape|result\\[0\\]")
def _(predict, models, x):
    outputs = jax.vmap(predict, (0, None))(models, x)
    return outputs.mean(axis=1), outputs.std(axis=1)


@wrong("ensemble", "models with 2 outputs|two models")
def _(predict, models, x):
    outputs = predict(models, x)
    return outputs.mean(0), outputs.std(0)


@wrong("ensemble", r"5001, 5002 and 5003: result\[1\]: gave")
def _(predict, models, x):  # the difference of two large squares
    outputs = jax.vmap(predict, in_axes=(0, None))(models, x)
    mean = outputs.mean(axis=0)
    return mean, jnp.sqrt((outputs**2).mean(axis=0) - mean**2)


@wrong("ensemble", "w @ x|raised|matri")
def _(predict, models, x):
    outputs = jax.vmap(predict, in_axes=(0, None))(models, x)
    return outputs.mean(axis=-2), outputs.std(axis=-2)


@wrong("ensemble", "one model, whose prediction is a matrix: .*gave shape")
def _(predict, models, x):
    outputs = jnp.squeeze(jax.vmap(predict, in_axes=(0, None))(models, x))
    return outputs.mean(axis=0), outputs.std(axis=0)


@right("ensemble")
def _(predict, models, x):
    count = jax.tree.leaves(models)[0].shape[0]

    def prediction(i):
        return predict(jax.tree.map(lambda leaf: leaf[i], models), x)

    like = jnp.zeros_like(prediction(0))
    mean = jax.lax.fori_loop(0, count, lambda i, total: total + prediction(i), like) / count
    squares = jax.lax.fori_loop(0, count, lambda i, total: total + (prediction(i) - mean) ** 2, like)
    return mean, jnp.sqrt(squares / count)


# --- clip_tree -----------------------------------------------------------------------------------------------------


@right("clip_tree")
def _(tree, limit):
    norm = jnp.sqrt(jax.tree.reduce(lambda total, leaf: total + jnp.sum(leaf**2), tree, 0.0))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, limit / norm), tree)


@right("clip_tree")
def _(tree, limit):
    flat, restore = ravel_pytree(tree)
    norm = jnp.linalg.norm(flat)
    return restore(jnp.where(norm > limit, flat * limit / jnp.where(norm > 0, norm, 1), flat))


@right("clip_tree")
def _(tree, limit):
    leaves, structure = jax.tree.flatten(tree)
    norm = sum(jnp.vdot(leaf, leaf) for leaf in leaves) ** 0.5
    factor = jnp.clip(limit / (norm + 1e-6), max=1.0)
    return jax.tree.unflatten(structure, [factor * leaf for leaf in leaves])


@right("clip_tree")
def _(tree, limit):
    norm = jnp.linalg.norm(jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)]))
    shrink = partial(jax.tree.map, lambda leaf: leaf * limit / norm)
    return jax.lax.cond(norm > limit, shrink, lambda tree: tree, tree)


@wrong("clip_tree", "three leaves of norm 9, limit 3")
def _(tree, limit):  # the norm of two leaves
    norm = jnp.hypot(*[jnp.linalg.norm(jnp.ravel(leaf)) for leaf in [*jax.tree.leaves(tree), jnp.zeros(1)][:2]])
    return jax.tree.map(lambda leaf: jnp.where(norm > limit, leaf * (limit / norm), leaf), tree)


@wrong("clip_tree", "norm 5, limit 10")
def _(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf * limit / norm, tree)


@wrong("clip_tree", "limit 1")
def _(tree, limit):
    return jax.tree.map(lambda leaf: jnp.clip(leaf, -limit, limit), tree)


@wrong("clip_tree", "norm 5, limit")
def _(tree, limit):
    norm = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, limit / norm), tree)


@wrong("clip_tree", "TracerBoolConversionError")
def _(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    return tree if norm <= limit else jax.tree.map(lambda leaf: leaf * limit / norm, tree)


@wrong("clip_tree", "zeros: result")
def _(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf / norm * jnp.minimum(norm, limit), tree)


@wrong("clip_tree", "limit")
def _(tree, limit):
    norm = sum(jnp.linalg.norm(leaf) for leaf in jax.tree.leaves(tree))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, limit / norm), tree)


@wrong("clip_tree", "limit")
def _(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(leaf) ** 2 for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, limit / norm), tree)


@right("clip_tree")
def _(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf / jnp.maximum(1.0, norm / limit), tree)


# --- Ball ----------------------------------------------------------------------------------------------------------


@right("Ball")
@jax.tree_util.register_pytree_node_class
class _:
    def __init__(self, position, velocity, name):
        self.position, self.velocity, self.name = position, velocity, name

    def tree_flatten(self):
        return (self.position, self.velocity), self.name

    @classmethod
    def tree_unflatten(cls, name, leaves):
        return cls(*leaves, name)


@right("Ball")
@partial(jax.tree_util.register_dataclass, data_fields=["position", "velocity"], meta_fields=["name"])
@dataclass
class _:
    position: jax.Array
    velocity: jax.Array
    name: str


@right("Ball")
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _:
    position: jax.Array
    velocity: jax.Array
    name: str = field(metadata=dict(static=True), default="")


class Plain:
    def __init__(self, position, velocity, name):
        self.position = position
        self.velocity = velocity
        self.name = name


jax.tree_util.register_pytree_node(
    Plain, lambda ball: ((ball.position, ball.velocity), (ball.name,)), lambda names, leaves: Plain(*leaves, *names)
)
right("Ball")(Plain)


class WithKeys:
    def __init__(self, position, velocity, name):
        self.__dict__.update(position=position, velocity=velocity, name=name)


jax.tree_util.register_pytree_with_keys(
    WithKeys,
    lambda b: ([(jax.tree_util.GetAttrKey(k), getattr(b, k)) for k in ("position", "velocity")], b.name),
    lambda name, leaves: WithKeys(*leaves, name),
)
right("Ball")(WithKeys)


@wrong("Ball", "it is one leaf")
class _:
    def __init__(self, position, velocity, name):
        self.position, self.velocity, self.name = position, velocity, name


@wrong("Ball", "3 leaves, of which 2 are arrays")
class _(NamedTuple):
    position: jax.Array
    velocity: jax.Array
    name: str


@wrong("Ball", "the name of Ball\\(…, 'blue'\\) is 'red'")
@jax.tree_util.register_pytree_node_class
class _:
    name = "red"

    def __init__(self, position, velocity, name):
        self.position, self.velocity = position, velocity

    def tree_flatten(self):
        return (self.position, self.velocity), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves, cls.name)


@wrong("Ball", "after jit, the name of the blue ball is 'red'")
@jax.tree_util.register_pytree_node_class
class _:
    def __init__(self, position, velocity, name="red"):
        self.position, self.velocity, self.name = position, velocity, name

    def tree_flatten(self):
        return (self.position, self.velocity), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


@wrong("Ball", "0 leaves|expected 2 arrays")
@jax.tree_util.register_static
@dataclass(frozen=True)
class _:
    position: jax.Array
    velocity: jax.Array
    name: str


@wrong("Ball", "doubled under jit")
@jax.tree_util.register_pytree_node_class
class _:
    def __init__(self, position, velocity, name):
        self.position, self.velocity, self.name = position, velocity, name

    def tree_flatten(self):
        return (self.velocity, self.position), self.name

    @classmethod
    def tree_unflatten(cls, name, leaves):
        return cls(*leaves, name)


@wrong("Ball", r"Ball\(position, velocity, name\) cannot be called")
@jax.tree_util.register_dataclass
@dataclass
class _:
    position: jax.Array
    velocity: jax.Array


@wrong("Ball", "two red balls have different structures")
@jax.tree_util.register_pytree_node_class
class _:
    def __init__(self, position, velocity, name):
        self.position, self.velocity, self.name = position, velocity, name

    def tree_flatten(self):
        return (self.position, self.velocity), self

    @classmethod
    def tree_unflatten(cls, old, leaves):
        return cls(*leaves, old.name)
