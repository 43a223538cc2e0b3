"""Answers to the exercises on training, sampling and escape hatches."""

# Learners' code, with learners' habits:
# mypy: ignore-errors
# ruff: noqa: B023, N801, PLR0124, PLW0108, RET503, RET504, SIM110
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from tests.site.snippets.answers import right, wrong

# --- cross_entropy -------------------------------------------------------------------------------------------------


@right("cross_entropy")
def _(logits, labels):
    return -jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels].mean()


@right("cross_entropy")
def _(logits, labels):
    hot = jax.nn.one_hot(labels, logits.shape[1])
    return -(hot * jax.nn.log_softmax(logits, axis=1)).sum(axis=1).mean()


@right("cross_entropy")
def _(logits, labels):
    def one(row, label):
        return jax.nn.logsumexp(row) - row[label]

    return jax.vmap(one)(logits, labels).mean()


@right("cross_entropy")
def _(logits, labels):
    moved = logits - logits.max(axis=-1, keepdims=True)
    logs = moved - jnp.log(jnp.exp(moved).sum(axis=-1, keepdims=True))
    return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=-1))


@right("cross_entropy")
@jax.jit
def _(logits, labels):
    picked = logits[jnp.arange(labels.size), labels]
    return jnp.mean(jax.scipy.special.logsumexp(logits, axis=1) - picked)


@wrong("cross_entropy", "gave nan, expected 750")
def _(logits, labels):
    powers = jnp.exp(logits - logits.max())
    return -jnp.log(powers / powers.sum(1, keepdims=True))[jnp.arange(labels.size), labels].mean()


@wrong("cross_entropy", "4 rows of 3 logits: gave")
def _(logits, labels):
    hot = jax.nn.one_hot(labels, logits.shape[1])
    return -(hot * jax.nn.log_softmax(logits)).mean()


@wrong("cross_entropy", "4 rows of 3 logits: gave")
def _(logits, labels):
    return -jax.nn.log_softmax(logits)[jnp.arange(labels.size), labels].sum()


@wrong("cross_entropy", r"gave shape \(4,\), expected \(\)")
def _(logits, labels):
    return -jax.nn.log_softmax(logits)[jnp.arange(labels.size), labels]


@wrong("cross_entropy", "expected 750")
def _(logits, labels):
    shares = jnp.clip(jax.nn.softmax(logits), 1e-7, 1)
    return -jnp.log(shares)[jnp.arange(labels.size), labels].mean()


@wrong("cross_entropy", "4 rows of 3 logits: gave")
def _(logits, labels):
    return jax.nn.log_softmax(logits)[jnp.arange(labels.size), labels].mean()


@wrong("cross_entropy", "expected 750")
def _(logits, labels):
    logs = jax.nn.log_softmax(jnp.clip(logits, -50, 50))
    return -logs[jnp.arange(labels.size), labels].mean()


# --- momentum_step -------------------------------------------------------------------------------------------------


@right("momentum_step")
def _(params, velocity, grads, rate, decay):
    new = jax.tree.map(lambda v, g: v * decay + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - rate * v, params, new), new


@right("momentum_step")
def _(params, velocity, grads, rate, decay):
    leaves, structure = jax.tree.flatten(params)
    new = [decay * v + g for v, g in zip(jax.tree.leaves(velocity), jax.tree.leaves(grads))]
    moved = [p - rate * v for p, v in zip(leaves, new)]
    return jax.tree.unflatten(structure, moved), jax.tree.unflatten(structure, new)


@right("momentum_step")
def _(params, velocity, grads, rate, decay):
    def move(p, v, g):
        v = decay * v + g
        return p - rate * v, v

    pairs = jax.tree.map(move, params, velocity, grads)
    return jax.tree.transpose(jax.tree.structure(params), jax.tree.structure((0, 0)), pairs)


@right("momentum_step")
def _(params, velocity, grads, rate, decay):
    flat_p, back = ravel_pytree(params)
    flat_v, flat_g = (ravel_pytree(tree)[0] for tree in (velocity, grads))
    flat_v = decay * flat_v + flat_g
    return back(flat_p - rate * flat_v), back(flat_v)


@right("momentum_step")
@jax.jit
def _(params, velocity, grads, rate, decay):
    velocity = jax.tree.map(jnp.add, jax.tree.map(lambda v: decay * v, velocity), grads)
    return jax.tree.map(jnp.subtract, params, jax.tree.map(lambda v: rate * v, velocity)), velocity


@wrong("momentum_step", "that are tuples of two arrays: result\\[0\\]")
def _(params, velocity, grads, rate, decay):
    def move(p, v, g):
        v = decay * v + g
        return p - rate * v, v

    def is_pair(node):
        return isinstance(node, tuple)

    pairs = jax.tree.map(move, params, velocity, grads)
    return tuple(jax.tree.map(lambda pair, at=at: pair[at], pairs, is_leaf=is_pair) for at in (0, 1))


@wrong("momentum_step", "step 1: result\\[0\\]")
def _(params, velocity, grads, rate, decay):
    velocity = jax.tree.map(lambda v, g: decay * v + (1 - decay) * g, velocity, grads)
    return jax.tree.map(lambda p, v: p - rate * v, params, velocity), velocity


@wrong("momentum_step", "step 1: result\\[0\\]")
def _(params, velocity, grads, rate, decay):
    velocity = jax.tree.map(lambda v, g: decay * v + g, velocity, grads)
    return jax.tree.map(lambda p, v, g: p - rate * (g + decay * v), params, velocity, grads), velocity


@wrong("momentum_step", "step 1: result\\[0\\]")
def _(params, velocity, grads, rate, decay):
    velocity = jax.tree.map(lambda v, g: decay * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p + rate * v, params, velocity), velocity


@wrong("momentum_step", "raised TypeError")
def _(params, velocity, grads, rate, decay):
    for name in params:
        velocity[name] = decay * velocity[name] + grads[name]
        params[name] = params[name] - rate * velocity[name]
    return params, velocity


@wrong("momentum_step", "step 1")
def _(params, velocity, grads, rate, decay):
    velocity = jax.tree.map(lambda v, g: decay * v + g, velocity, grads)
    params = jax.tree.map(lambda p, v: p - rate * v, params, velocity)
    return velocity, params


@wrong("momentum_step", "it changed velocity")
def _(params, velocity, grads, rate, decay):
    new = jax.tree.map(lambda v, g: decay * v + g, velocity, grads)
    if isinstance(velocity, dict):
        velocity.update(new)
    return jax.tree.map(lambda p, v: p - rate * v, params, new), new


@wrong("momentum_step", "it changed params")
def _(params, velocity, grads, rate, decay):
    velocity = jax.tree.map(lambda v, g: decay * v + g, velocity, grads)
    moved = jax.tree.map(lambda p, v: p - rate * v, params, velocity)
    if isinstance(params, dict):
        params.update(moved)
        return params, velocity
    return moved, velocity


@wrong("momentum_step", "it changed a NumPy array of velocity")
def _(params, velocity, grads, rate, decay):
    def faster(v, g):
        v *= decay
        v += g
        return v

    velocity = jax.tree.map(faster, velocity, grads)
    return jax.tree.map(lambda p, v: p - rate * v, params, velocity), velocity


# --- epoch ---------------------------------------------------------------------------------------------------------


@right("epoch")
def _(key, count, size):
    batches = count // size
    return jax.random.permutation(key, count)[: batches * size].reshape(batches, size)


@right("epoch")
def _(key, count, size):
    return jax.random.choice(key, count, (count // size, size), replace=False)


@right("epoch")
def _(key, count, size):
    order = jax.random.permutation(key, jnp.arange(count))
    return jnp.stack([order[i * size : (i + 1) * size] for i in range(count // size)])


@right("epoch")
def _(key, count, size):
    order = jnp.argsort(jax.random.uniform(key, (count,)))
    return jnp.array(jnp.split(order[: count - count % size], count // size))


@right("epoch")
@partial(jax.jit, static_argnums=(1, 2))
def _(key, count, size):
    order = jax.random.permutation(key, count)
    return jnp.resize(order, (count // size, size))


@wrong("epoch", "are there a second time")
def _(key, count, size):
    return jax.random.choice(key, count, (count // size, size))


@wrong("epoch", "the same examples are left out in every epoch")
def _(key, count, size):
    batches = jnp.arange(count // size * size).reshape(-1, size)
    return jax.random.permutation(key, batches)


@wrong("epoch", "expected \\(4, 5\\)")
def _(key, count, size):
    order = jax.random.permutation(key, count)
    return jnp.resize(order, (-(-count // size), size))


@wrong("epoch", "two keys give the same order")
def _(key, count, size):
    order = jax.random.permutation(jax.random.key(0), count)
    return order[: count // size * size].reshape(-1, size)


@wrong("epoch", "most examples come right after their neighbor")
def _(key, count, size):
    shift = jax.random.randint(key, (), 0, count)
    return jnp.roll(jnp.arange(count), shift)[: count // size * size].reshape(-1, size)


@wrong("epoch", "expected \\(4, 5\\)")
def _(key, count, size):
    order = jax.random.permutation(key, count)
    return order[: count // size * size].reshape(size, -1)


@wrong("epoch", "the indices go from 1 to 2|expected 0 to 22")
def _(key, count, size):
    order = jax.random.permutation(key, count) + 1
    return order[: count // size * size].reshape(-1, size)


@wrong("epoch", "the same key gives another order the second time")
def _(key, count, size):
    return jnp.array(np.random.permutation(count)[: count // size * size].reshape(-1, size))


@wrong("epoch", "gave a list, expected a matrix")
def _(key, count, size):
    order = jax.random.permutation(key, count)
    return [order[i : i + size] for i in range(0, count - size + 1, size)]


@wrong("epoch", "each batch is sorted")
def _(key, count, size):
    return jnp.sort(jax.random.permutation(key, count)[: count // size * size].reshape(-1, size), axis=1)


# --- fit -----------------------------------------------------------------------------------------------------------


def mse(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


@right("fit")
@partial(jax.jit, static_argnums=2)
def _(x, y, steps, rate):
    def step(w, _):
        loss, slope = jax.value_and_grad(mse)(w, x, y)
        return w - rate * slope, loss

    return jax.lax.scan(step, jnp.zeros(x.shape[1]), None, steps)


@right("fit")
def _(x, y, steps, rate):
    def step(i, state):
        w, losses = state
        loss, slope = jax.value_and_grad(mse)(w, x, y)
        return w - rate * slope, losses.at[i].set(loss)

    return jax.lax.fori_loop(0, steps, step, (jnp.zeros(x.shape[1]), jnp.zeros(steps)))


@right("fit")
def _(x, y, steps, rate):
    def step(w, _):
        errors = x @ w - y
        return w - rate * 2 / len(y) * x.T @ errors, (errors**2).mean()

    w, losses = jax.lax.scan(step, jnp.zeros(x.shape[1]), jnp.arange(steps))
    return w, losses


@right("fit")
def _(x, y, steps, rate):
    def step(w, _):
        new = jax.tree.map(lambda w, g: w - rate * g, w, jax.grad(mse)(w, x, y))
        return new, mse(w, x, y)

    return jax.lax.scan(step, jnp.zeros_like(x[0]), length=steps)


@right("fit")
def _(x, y, steps, rate):
    def step(state):
        i, w, losses = state
        loss, slope = jax.value_and_grad(mse)(w, x, y)
        return i + 1, w - rate * slope, losses.at[i].set(loss)

    start = jnp.int32(0), jnp.zeros(x.shape[-1]), jnp.zeros(steps)
    return jax.lax.while_loop(lambda state: state[0] < steps, step, start)[1:]


@wrong("fit", "program grows with the number of steps")
def _(x, y, steps, rate):
    step = jax.jit(jax.value_and_grad(mse))
    w, losses = jnp.zeros(x.shape[1]), []
    for _ in range(steps):
        loss, slope = step(w, x, y)
        losses.append(loss)
        w -= rate * slope
    return w, jnp.stack(losses)


@wrong("fit", "result\\[1\\]")
def _(x, y, steps, rate):
    def step(w, _):
        w = w - rate * jax.grad(mse)(w, x, y)
        return w, mse(w, x, y)

    return jax.lax.scan(step, jnp.zeros(x.shape[1]), length=steps)


@wrong("fit", "result\\[0\\]")
def _(x, y, steps, rate):
    w = jnp.linalg.lstsq(x, y)[0]
    return w, jnp.full(steps, mse(w, x, y))


@wrong("fit", "result\\[0\\]")
def _(x, y, steps, rate):
    def loss(w):
        return jnp.sum((x @ w - y) ** 2)

    def step(w, _):
        value, slope = jax.value_and_grad(loss)(w)
        return w - rate * slope, value

    return jax.lax.scan(step, jnp.zeros(x.shape[1]), length=steps)


@wrong("fit", "result\\[1\\]: gave shape|result is built as|gave")
def _(x, y, steps, rate):
    def step(w, _):
        loss, slope = jax.value_and_grad(mse)(w, x, y)
        return w - rate * slope, loss

    w, losses = jax.lax.scan(step, jnp.zeros(x.shape[1]), length=steps)
    return w, losses[-1]


@wrong("fit", "raised")
def _(x, y, steps, rate):
    def step(w, _):
        loss, slope = jax.value_and_grad(mse)(w, x, y)
        return w - rate * slope, loss

    return jax.lax.scan(step, (0.0, 0.0), length=steps)


@wrong("fit", "20 steps, rate 0.02")
def _(x, y, steps, rate):
    def step(w, _):
        loss, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return w - 0.1 * slope, loss

    return jax.lax.scan(step, jnp.zeros(x.shape[1]), length=steps)


# --- clip_gradient -------------------------------------------------------------------------------------------------


@right("clip_gradient")
@jax.custom_vjp
def _(x, limit):
    return x


_.defvjp(lambda x, limit: (x, limit), lambda limit, g: (jnp.clip(g, -limit, limit), None))


@right("clip_gradient")
@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _(x, limit):
    return x


_.defvjp(lambda x, limit: (x, None), lambda limit, _, g: (jnp.clip(g, -limit, limit),))


@right("clip_gradient")
def _(x, limit):
    @jax.custom_vjp
    def same(x):
        return x

    same.defvjp(lambda x: (x, ()), lambda _, g: (jnp.minimum(jnp.maximum(g, -limit), limit),))
    return same(x)


@right("clip_gradient")
@jax.custom_vjp
def _(x, limit):
    return jnp.asarray(x)


def keep(x, limit):
    return x, (limit,)


def bounded(kept, g):
    (limit,) = kept
    return jnp.sign(g) * jnp.minimum(jnp.abs(g), limit), jnp.zeros_like(limit)


_.defvjp(keep, bounded)


@right("clip_gradient")
@jax.custom_vjp
def _(x, limit):
    return x * 1


_.defvjp(keep, lambda kept, g: (jnp.where(jnp.abs(g) > kept[0], jnp.sign(g) * kept[0], g), 0.0))


@wrong("clip_gradient", "x: gave")
def _(x, limit):
    return jnp.clip(x, -limit, limit)


@wrong("clip_gradient", r"gradient \[10, -0.5, -4\], limit 1: gave \[10, -0.5, -4\]")
def _(x, limit):
    return x


@wrong("clip_gradient", r"gradient \[10, -0.5, -4\], limit 1: gave \[0.9")
@jax.custom_vjp
def _(x, limit):
    return x


_.defvjp(
    lambda x, limit: (x, limit), lambda limit, g: (g * jnp.minimum(1, limit / jnp.sqrt((g**2).sum())), jnp.zeros(()))
)


@wrong("clip_gradient", r"limit 1: gave \[1, -0.5, -4\]")
@jax.custom_vjp
def _(x, limit):
    return x


_.defvjp(lambda x, limit: (x, limit), lambda limit, g: (jnp.minimum(g, limit), None))


@wrong("clip_gradient", r"limit 2: gave \[1, -0.5, -1\]")
@jax.custom_vjp
def _(x, limit):
    return x


_.defvjp(lambda x, limit: (x, None), lambda _, g: (jnp.clip(g, -1, 1), None))


@wrong("clip_gradient", "x, while a gradient is computed")
@jax.custom_vjp
def _(x, limit):
    return x


_.defvjp(lambda x, limit: (jnp.clip(x, -limit, limit), limit), lambda limit, g: (jnp.clip(g, -limit, limit), None))


@wrong("clip_gradient", "raised|the gradient of a matrix")
def _(x, limit):  # knows only three elements
    @jax.custom_vjp
    def same(x):
        return x

    same.defvjp(lambda x: (x, None), lambda _, g: (jnp.stack([jnp.clip(g[i], -limit, limit) for i in range(3)]),))
    return same(x)


def rounded_forward(x, limit):
    return x.astype(jnp.float32), (limit, jnp.zeros((), x.dtype))


@wrong("clip_gradient", "x, float16")
@jax.custom_vjp
def _(x, limit):
    return x.astype(jnp.float32)


_.defvjp(rounded_forward, lambda kept, g: (jnp.clip(g, -kept[0], kept[0]).astype(kept[1].dtype), None))


# --- on_host -------------------------------------------------------------------------------------------------------


@right("on_host")
def _(f, x):
    out = jax.ShapeDtypeStruct(jnp.shape(x), jnp.float32)
    return jax.pure_callback(lambda x: np.float32(f(np.asarray(x))), out, x, vmap_method="sequential")


@right("on_host")
def _(f, x):
    def call(x):
        return np.asarray(f(x)).astype(np.float32)

    return jax.pure_callback(call, jax.ShapeDtypeStruct(x.shape, np.float32), x, vmap_method="sequential_unrolled")


@right("on_host")
def _(f, x):
    def call(xs):
        shape = xs.shape[: xs.ndim - x.ndim]
        flat = np.asarray(xs).reshape(-1, *x.shape)
        return np.stack([f(one) for one in flat]).astype(np.float32).reshape(*shape, *x.shape)

    return jax.pure_callback(call, jax.ShapeDtypeStruct(x.shape, jnp.float32), x, vmap_method="expand_dims")


@right("on_host")
def _(f, x):
    @jax.custom_batching.sequential_vmap
    def run(x):
        out = jax.ShapeDtypeStruct(x.shape, jnp.float32)
        return jax.pure_callback(lambda x: f(np.array(x)).astype("float32"), out, x)

    return run(x)


@right("on_host")
@partial(jax.jit, static_argnums=0)
def _(f, x):
    out = jnp.zeros(x.shape, jnp.float32)
    return jax.pure_callback(lambda x: np.asarray(f(x), dtype=out.dtype), out, x, vmap_method="sequential")


@wrong("on_host", r"^f got an array of shape \(3, 3\)")
def _(f, x):
    out = jax.ShapeDtypeStruct(x.shape, jnp.float32)
    return jax.pure_callback(lambda x: f(x).astype(np.float32), out, x, vmap_method="broadcast_all")


@wrong("on_host", r"^f got an array of shape \(3, 3\)")
def _(f, x):
    out = jax.ShapeDtypeStruct(x.shape, jnp.float32)
    return jax.pure_callback(lambda x: f(x).astype(np.float32), out, x, vmap_method="expand_dims")


@wrong("on_host", "gave dtype float64, expected float32")
def _(f, x):
    return f(x)


@wrong("on_host", "raised TracerArrayConversionError")
def _(f, x):
    return jnp.asarray(f(np.asarray(x)), jnp.float32)


@wrong("on_host", "NotImplementedError")
def _(f, x):
    out = jax.ShapeDtypeStruct(x.shape, jnp.float32)
    return jax.pure_callback(lambda x: f(x).astype(np.float32), out, x)


@wrong("on_host", "gave dtype float16, expected float32")
def _(f, x):
    return jax.pure_callback(f, x, x, vmap_method="sequential").astype(jnp.float16)


@wrong("on_host", "gave|raised|f got")
def _(f, x):
    jax.debug.callback(f, x)
    return x.astype(jnp.float32)


@wrong("on_host", "integers minus their mean: gave dtype int32, expected float32")
def _(f, x):
    return jax.pure_callback(lambda a: np.asarray(f(np.asarray(a)), x.dtype), x, x, vmap_method="sequential")


@right("on_host")
def _(f, x):
    @jax.custom_batching.sequential_vmap
    def call(x):
        out = jax.ShapeDtypeStruct(x.shape, jnp.float32)
        return jax.pure_callback(lambda x: f(np.asarray(x)).astype(np.float32), out, x)

    return call(x)


# --- babylonian ----------------------------------------------------------------------------------------------------


def loop(a):
    def more(state):
        i, x = state
        return (i < 50) & (jnp.abs(x**2 - a) > 1e-6 * a)

    return jax.lax.while_loop(more, lambda s: (s[0] + 1, (s[1] + a / s[1]) / 2), (0, jnp.asarray(a, float)))[1]


@right("babylonian")
@jax.custom_vjp
def _(a):
    return loop(a)


_.defvjp(lambda a: (root := loop(a), root), lambda root, g: (g / (2 * root),))


@right("babylonian")
def _(a):
    root = jax.lax.stop_gradient(loop(jax.lax.stop_gradient(a)))
    return root + (a - jax.lax.stop_gradient(a)) / (2 * root)


@right("babylonian")
def _(a):
    root = loop(jax.lax.stop_gradient(a))
    return (root + a / root) / 2


@jax.custom_jvp
def by_rule(a):
    return loop(a)


by_rule.defjvps(lambda da, root, a: da / (2 * root))
right("babylonian")(by_rule)


@right("babylonian")
@jax.jit
def _(a):
    return jax.lax.custom_root(
        lambda x: x * x - a, jnp.asarray(a, float), lambda f, _: loop(jax.lax.stop_gradient(a)), lambda g, y: y / g(1.0)
    )


@wrong("babylonian", "Reverse-mode differentiation")
def _(a):
    return loop(a)


@wrong("babylonian", "there is no while_loop")
def _(a):
    return jnp.sqrt(a)


@wrong("babylonian", "derivative of 3 \\* answer")
@jax.custom_vjp
def _(a):
    return loop(a)


_.defvjp(lambda a: (root := loop(a), root), lambda root, g: (1 / (2 * root),))


@wrong("babylonian", "derivative at 2: gave 0.7071")
@jax.custom_vjp
def _(a):
    return loop(a)


_.defvjp(lambda a: (root := loop(a), root), lambda root, g: (g / root,))


@wrong("babylonian", "a = 0.01|a = 900|a = 1e\\+08|derivative")
def _(a):
    x = jnp.asarray(a, float)
    for _ in range(8):
        x = (x + a / x) / 2
    return x


@wrong("babylonian", "derivative at 2: gave 0, expected")
def _(a):
    return loop(jax.lax.stop_gradient(a))


@wrong("babylonian", "TracerBoolConversionError")
def _(a):
    x = jnp.asarray(a, float)
    while abs(x * x - a) > 1e-6 * a:
        x = (x + a / x) / 2
    return x


def _with_a_rule(loop):
    @jax.custom_jvp
    def answer(a):
        return loop(a)

    answer.defjvp(lambda primals, tangents: (answer(*primals), tangents[0] / (2 * answer(*primals))))
    return answer


@wrong("babylonian", r"a = 1e\+36: gave 1e\+18, expected 8.88e\+20")
@_with_a_rule
def _(a):  # no end
    return jax.lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-6 * a, lambda x: (x + a / x) / 2, a)


@wrong("babylonian", "the condition of its while_loop only counts")
@_with_a_rule
def _(a):
    return jax.lax.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 1, (s[1] + a / s[1]) / 2), (0, a))[1]


@wrong("babylonian", "a = 1e-10: gave")
@_with_a_rule
def _(a):
    def far(state):
        return (jnp.abs(state[1] ** 2 - a) > 1e-6) & (state[0] < 50)

    return jax.lax.while_loop(far, lambda s: (s[0] + 1, (s[1] + a / s[1]) / 2), (0, a))[1]


@wrong("babylonian", r"a = 1e\+36: gave 1e\+18, expected 8.88e\+20")
def _(a):  # a loop whose result nobody uses
    def far(state):
        return (jnp.abs(state[1] ** 2 - a) > 1e-6 * a) & (state[0] < 50)

    jax.lax.while_loop(far, lambda s: (s[0] + 1, (s[1] + a / s[1]) / 2), (0, jax.lax.stop_gradient(a)))
    return jnp.sqrt(a)


@wrong("babylonian", "50 steps from x = a")
def _(a):
    def go_on(state):
        x, steps = state
        return (jnp.abs(x * x - a) > 1e-6 * a) & (steps < 51)

    def better(state):
        x, steps = state
        return (x + a / x) / 2, steps + 1

    root = jax.lax.stop_gradient(jax.lax.while_loop(go_on, better, (a, 0))[0])
    return root + (a - jax.lax.stop_gradient(a)) / (2 * root)


# --- metropolis ----------------------------------------------------------------------------------------------------


def sampler(propose, accept, collect=lambda here, there: here):
    """A random walk made of its parts."""

    def walk(key, log_density, start, steps):
        def step(here, key):
            first, second = jax.random.split(key)
            there = propose(first, here)
            go = accept(second, log_density(there) - log_density(here))
            new = jnp.where(go, there, here)
            return new, collect(new, there)

        return jax.lax.scan(step, start, jax.random.split(key, steps))[1]

    return walk


def normal(key, here):
    return here + jax.random.normal(key, here.shape)


def usual(key, gain):
    return jnp.log(jax.random.uniform(key)) < gain


right("metropolis")(sampler(normal, usual))
right("metropolis")(sampler(normal, lambda key, gain: jax.random.uniform(key) < jnp.exp(gain)))
right("metropolis")(sampler(normal, lambda key, gain: jax.random.bernoulli(key, jnp.minimum(1.0, jnp.exp(gain)))))
right("metropolis")(sampler(normal, lambda key, gain: -jax.random.exponential(key) < gain))


@right("metropolis")
def _(key, log_density, start, steps):
    def step(i, state):
        here, log_here, walk = state
        one, two = jax.random.split(jax.random.fold_in(key, i))
        there = here + jax.random.normal(one, start.shape)
        log_there = log_density(there)
        accept = jnp.log(jax.random.uniform(two)) < log_there - log_here
        here, log_here = jax.tree.map(partial(jnp.where, accept), (there, log_there), (here, log_here))
        return here, log_here, walk.at[i].set(here)

    walk = jnp.zeros((steps, *start.shape))
    return jax.lax.fori_loop(0, steps, step, (start, log_density(start), walk))[2]


@right("metropolis")
def _(key, log_density, start, steps):
    def step(state, _):
        key, here = state
        key, one, two = jax.random.split(key, 3)
        there = here + jax.random.normal(one, here.shape)
        here = jax.lax.cond(
            jnp.log(jax.random.uniform(two)) < log_density(there) - log_density(here), lambda: there, lambda: here
        )
        return (key, here), here

    return jax.lax.scan(step, (key, start), length=steps)[1]


wrong("metropolis", "it stays in 5.% of its steps")(
    sampler(normal, lambda key, gain: jax.random.uniform(key) < jax.nn.sigmoid(gain))
)
wrong("metropolis", "for log_density = -x\\[0\\] it accepts 5.%")(
    sampler(normal, lambda key, gain: gain >= 0 + 0 * jax.random.uniform(key))
)
wrong("metropolis", "for log_density = -x\\[0\\] it accepts|it stays in")(
    sampler(normal, lambda key, gain: jax.random.uniform(key) - 1 < gain)
)
wrong("metropolis", "its proposals have standard deviation 0.10")(
    sampler(lambda key, here: here + 0.1 * jax.random.normal(key, here.shape), usual)
)
wrong("metropolis", "its proposals have|are not normal")(
    sampler(lambda key, here: here + jax.random.uniform(key, here.shape, minval=-1, maxval=1), usual)
)
wrong("metropolis", "are not normal")(
    sampler(lambda key, here: here + 3**0.5 * jax.random.uniform(key, here.shape, minval=-1, maxval=1), usual)
)
wrong("metropolis", "its proposals are around one place")(
    sampler(lambda key, here: jax.random.normal(key, here.shape), usual)
)
wrong("metropolis", "both coordinates move together")(sampler(lambda key, here: here + jax.random.normal(key), usual))
wrong("metropolis", "accepts 100%")(sampler(normal, usual, lambda new, there: there))


@wrong("metropolis", "the first position is the start")
def _(key, log_density, start, steps):
    def step(here, key):
        one, two = jax.random.split(key)
        there = here + jax.random.normal(one, here.shape)
        accept = jnp.log(jax.random.uniform(two)) < log_density(there) - log_density(here)
        return jnp.where(accept, there, here), here

    return jax.lax.scan(step, start, jax.random.split(key, steps))[1]


@wrong("metropolis", "KeyReuseError")
def _(key, log_density, start, steps):
    def step(here, key):
        there = here + jax.random.normal(key, here.shape)
        accept = jnp.log(jax.random.uniform(key)) < log_density(there) - log_density(here)
        here = jnp.where(accept, there, here)
        return here, here

    return jax.lax.scan(step, start, jax.random.split(key, steps))[1]


@right("metropolis")
def _(key, log_density, start, steps):  # all random numbers first
    first, second = jax.random.split(key)
    moves = jax.random.normal(first, (steps, *start.shape))
    limits = jax.random.uniform(second, (steps,))

    def step(here, move_limit):
        move, limit = move_limit
        go = limit < jnp.exp(log_density(here + move) - log_density(here))
        here = jnp.where(go, here + move, here)
        return here, here

    return jax.lax.scan(step, start, (moves, limits))[1]


def one_step(log_density, here, key):
    first, second = jax.random.split(key)
    there = here + jax.random.normal(first, here.shape)
    return jnp.where(jnp.log(jax.random.uniform(second)) < log_density(there) - log_density(here), there, here)


@wrong("metropolis", "the program grows with the number of steps")
def _(key, log_density, start, steps):
    walk = [start]
    for one in jax.random.split(key, steps):
        walk.append(one_step(log_density, walk[-1], one))
    return jnp.stack(walk[1:])


@wrong("metropolis", r"gave shape \(20, 2\), expected \(20, 3\)")
def _(key, log_density, start, steps):
    def step(here, key):
        return 2 * (one_step(log_density, here, key),)

    return jax.lax.scan(step, jnp.zeros(2), jax.random.split(key, steps))[1]


@wrong("metropolis", r"from \[50, -50, 7\], the position after the first step")
def _(key, log_density, start, steps):
    def step(here, key):
        return 2 * (one_step(log_density, here, key),)

    return jax.lax.scan(step, jnp.zeros_like(start), jax.random.split(key, steps))[1]


def walk(key, start, steps, propose, goes):
    def step(x, key):
        one, two = jax.random.split(key)
        proposal = propose(x, jax.random.normal(one, x.shape))
        x = jnp.where(goes(x, proposal, two), proposal, x)
        return x, x

    return jax.lax.scan(step, start, jax.random.split(key, steps))[1]


@wrong("metropolis", "it stays in 100% of its steps")
def _(key, log_density, start, steps):
    return walk(key, start, steps, jnp.add, lambda x, new, _: log_density(new) > log_density(x))


@wrong("metropolis", "divide the density by more than e, expected 3.8%")
def _(key, log_density, start, steps):
    return walk(key, start, steps, jnp.add, lambda x, new, _: jnp.exp(log_density(new) - log_density(x)) > 0.5)


@wrong("metropolis", "its proposals are around one place")
def _(key, log_density, start, steps):
    def goes(x, new, key):
        return jnp.log(jax.random.uniform(key)) < log_density(new) - log_density(x)

    return walk(key, start, steps, lambda _, noise: noise, goes)


@wrong("metropolis", "the two share random numbers")
def _(key, log_density, start, steps):
    def step(here, i):
        there = here + jax.random.normal(jax.random.fold_in(key, i), start.shape)
        chance = jax.random.uniform(jax.random.fold_in(key, i + 1))
        here = jnp.where(jnp.log(chance) < log_density(there) - log_density(here), there, here)
        return here, here

    return jax.lax.scan(step, start, jnp.arange(steps))[1]
