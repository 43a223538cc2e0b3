"""Checks of the exercises on training, sampling and escape hatches."""

import jax
import jax.numpy as jnp
import numpy as np

from examiner.tools import Answer, equations, finite, names, no_unrolled_loop, numbers, require, same
from examiner.verdict import check


@check
def cross_entropy(answer: Answer) -> None:
    # The numbers of both cases have the same shapes, so the second case compiles nothing.
    logits, labels = np.asarray(numbers(2, 3), float), np.array([0, 2])
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    wanted = np.float32(-np.log(shares[np.arange(2), labels]).mean())
    same("2 rows of 3 logits", answer(jnp.asarray(logits), jnp.asarray(labels)), wanted)
    slope = jax.grad(answer)(jnp.asarray(logits), jnp.asarray(labels))
    same("the gradient", slope, (shares - np.eye(3)[labels]) / 2, 1e-3)
    large, twice = jnp.array([[3000.0, 0, 0], [0, 1000, 0]]), jnp.array([1, 1])
    same("logits [[3000, 0, 0], [0, 1000, 0]], labels [1, 1]", answer(large, twice), np.float32(1500))
    finite("the gradient there", jax.grad(answer)(large, twice))


@check
def momentum_step(answer: Answer) -> None:
    params = {"w": [np.array([1.0, 2.0])], "b": np.array(3.0)}
    grads = {"w": [np.array([0.5, -1.0])], "b": np.array(2.0)}
    wanted_p, wanted_v = params, jax.tree.map(np.zeros_like, params)
    p, v = jax.tree.map(jnp.asarray, (wanted_p, wanted_v))
    for step in (1, 2):
        wanted_v = jax.tree.map(lambda old, g: 0.5 * old + g, wanted_v, grads)
        wanted_p = jax.tree.map(lambda old, new: old - 0.1 * new, wanted_p, wanted_v)
        result = jax.jit(answer)(p, v, jax.tree.map(jnp.asarray, grads), 0.1, 0.5)
        same(f"step {step}", result, (wanted_p, wanted_v))
        p, v = result


@check
def epoch(answer: Answer) -> None:
    with jax.debug_key_reuse(True):  # inside and outside, everything is compiled for itself
        got = np.asarray(answer(jax.random.key(0), 23, 5))
        other = np.asarray(answer(jax.random.key(1), 23, 5))
    require(got.shape == (4, 5), f"23 examples in batches of 5: gave shape {got.shape}, expected (4, 5)")
    require(got.dtype.kind in "iu", f"gave dtype {got.dtype}, not whole numbers")
    require(got.min() >= 0 and got.max() < 23, f"the numbers go from {got.min()} to {got.max()}, expected 0 to 22")
    twice = got.size - len(set(got.ravel().tolist()))
    require(not twice, f"{twice} of 20 numbers come a second time")
    require(not np.array_equal(other, got), "two keys give the same order")
    left_out = {tuple(sorted(set(range(23)) - set(batches.ravel().tolist()))) for batches in (got, other)}
    require(len(left_out) == 2, "the same examples are left out in every epoch")
    require(not np.array_equal(np.sort(got, None), got.ravel()), "the order is not random")


@check
def fit(answer: Answer) -> None:
    x = np.asarray(numbers(20, 2), float)
    y = x @ [2.0, -1.0] + 0.5
    w, losses = np.zeros(2), []
    for _ in range(30):
        losses.append(np.mean((x @ w - y) ** 2))
        w = w - 0.1 * 2 * x.T @ (x @ w - y) / len(y)
    args = jnp.asarray(x), jnp.asarray(y)
    same("30 steps, rate 0.1", answer(*args, 30, 0.1), (w, np.array(losses)), 1e-3)
    program = [equations(lambda x, y, n=n: answer(x, y, n, 0.1), *args) for n in (4, 16)]
    no_unrolled_loop(*map(len, program))


@check
def clip_gradient(answer: Answer) -> None:
    x = np.array([0.1, -5.0, 3.0], np.float32)
    same("x", answer(jnp.asarray(x), 1.0), x)
    factors = np.array([10.0, -0.5, -4.0], np.float32)
    for limit in (1.0, 2.0):
        slope = jax.jit(jax.grad(lambda x, limit=limit: jnp.sum(factors * answer(x, limit))))(x)
        same(f"gradient [10, -0.5, -4], limit {limit:g}", slope, np.clip(factors, -limit, limit))


@check
def on_host(answer: Answer) -> None:
    def f(x: np.ndarray) -> np.ndarray:
        require(not isinstance(x, jax.core.Tracer), "f got a tracer, not numbers")
        return np.sort(np.asarray(x)) * 2.0

    x = np.array([3.0, 1.0, 2.0], np.float32)
    same("sort, times 2", answer(f, jnp.asarray(x)), np.sort(x) * 2)
    same("under jit", jax.jit(lambda x: answer(f, x))(x), np.sort(x) * 2)
    rows = np.stack([x, -x, 5 - 2 * x])
    same("three rows under vmap", jax.vmap(lambda x: answer(f, x))(rows), np.sort(rows) * 2)


@check
def babylonian(answer: Answer) -> None:
    for a in (2.0, 0.01, 900.0, 1.0):
        same(f"a = {a:g}", answer(jnp.float32(a)), np.float32(a**0.5))
        same(f"a = {a:g} under jit", jax.jit(answer)(a), np.float32(a**0.5))
        same(f"derivative at {a:g}", jax.grad(answer)(jnp.float32(a)), np.float32(0.5 / a**0.5), 1e-3)
    require("while" in names(answer, 2.0), "there is no while_loop in its program")


@check
def metropolis(answer: Answer) -> None:
    def log_density(x: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum((x - 1.0) ** 2) / 0.25

    start, steps = jnp.zeros(2), 4000
    no_unrolled_loop(
        *(len(equations(lambda k, n=n: answer(k, log_density, start, n), jax.random.key(2))) for n in (4, 16))
    )
    with jax.debug_key_reuse(True):
        program = jax.jit(lambda key: answer(key, log_density, start, steps))
        walk, other = np.asarray(program(jax.random.key(0))), np.asarray(program(jax.random.key(1)))
    require(walk.shape == (steps, 2), f"gave shape {walk.shape}, expected {(steps, 2)}")
    finite("the walk", walk)
    moved = (walk[1:] != walk[:-1]).any(1).mean()
    require(moved < 0.9, "every proposal is accepted")
    require(moved > 0.05, "hardly any proposal is accepted")
    mean, spread = walk[500:].mean(0), walk[500:].std(0)
    require(np.all(np.abs(mean - 1) < 0.2), f"a density around 1: the mean of the walk is {mean.mean():.1f}")
    require(np.all(np.abs(spread - 0.5) < 0.15), f"a density of width 0.5: the walk has {spread.mean():.1f}")
    require(abs(np.corrcoef(walk[500:].T)[0, 1]) < 0.3, "both coordinates move together: they get the same numbers")
    require(not np.array_equal(other, walk), "two keys give the same walk")
    require(not np.array_equal(walk[1:400:2] - walk[:399:2], walk[2:401:2] - walk[1:400:2]), "each step is the same")
