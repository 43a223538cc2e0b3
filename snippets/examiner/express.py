"""Checks of the exercises on arrays, randomness, derivatives, vmap and pytrees."""

import jax
import jax.numpy as jnp
import numpy as np

from examiner.tools import Answer, Refused, counted, finite, largest, numbers, require, same, show, unchanged
from examiner.verdict import check


@check
def standardize(answer: Answer) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3)) * [1, 5, 0.1] + [0, 7, 3]
    wanted = (x - x.mean(0)) / x.std(0)
    same("a matrix", answer(jnp.asarray(x)), wanted, 1e-3)
    same("the same under jit", jax.jit(answer)(jnp.asarray(x)), wanted, 1e-3)
    same("a column of equal numbers", answer(jnp.array([[1.0, 5], [3, 5]])), np.array([[-1.0, 0], [1, 0]]))
    x[:, 2], wanted[:, 2] = 3, 0
    same("float16", answer(jnp.asarray(x, "float16")), wanted.astype("float16"), 2e-2)


@check
def swap_rows(answer: Answer) -> None:
    x = np.arange(6.0).reshape(3, 2)
    result = unchanged(lambda a: answer(jnp.asarray(a), 0, 2), x)
    same("rows 0 and 2", result, x[[2, 1, 0]])
    same("rows 1 and 1", answer(jnp.asarray(x), 1, 1), x)
    program, traces = counted(answer)
    same("rows 1 and 2 under jit", program(x, 1, 2), x[[0, 2, 1]])
    same("rows 0 and 1 under jit", program(x, 0, 1), x[[1, 0, 2]])
    require(len(traces) == 1, "under jit it is traced anew for other rows")


@check
def cap(answer: Answer) -> None:
    x = np.array([1.0, 5, 3, 9], np.float32)
    same("[1, 5, 3, 9] and limit 4", answer(jnp.asarray(x), 4.0), np.minimum(x, 4))
    same("a NumPy array", unchanged(lambda a: answer(a, 4.0), x), np.minimum(x, 4))
    same("limit 2 under jit", jax.jit(answer)(x, 2.0), np.minimum(x, 2))


@check
def delay(answer: Answer) -> None:
    x = np.arange(1.0, 6)
    program, traces = counted(answer)
    for steps in (2, 0, -1, 7, -5):
        wanted = np.array([x[i - steps] if 0 <= i - steps < 5 else 0.0 for i in range(5)])
        same(f"[1, 2, 3, 4, 5] and {steps} steps", answer(jnp.asarray(x), steps), wanted)
        same(f"{steps} steps under jit", program(x, steps), wanted)
    require(len(traces) == 1, f"under jit, 5 numbers of steps cost {len(traces)} traces")


@check
def blend(answer: Answer) -> None:
    a, b = np.array([[10, 200], [255, 7]], np.uint8), np.array([[20, 100], [255, 0]], np.uint8)
    wanted = ((a.astype(int) + b) // 2).astype(np.uint8)
    same(f"{show(a)} and {show(b)}", answer(jnp.asarray(a), jnp.asarray(b)), wanted)


@check
def shuffle_together(answer: Answer) -> None:
    x, y = jnp.arange(40.0).reshape(20, 2), jnp.arange(20)
    with jax.debug_key_reuse(True):
        result, other = (answer(jax.random.key(seed), x, y) for seed in (0, 1))
    require(isinstance(result, tuple) and len(result) == 2, "the result is not a pair")
    first, second = map(np.asarray, result)
    require(first.shape == x.shape and second.shape == y.shape, "the shapes of x and y are not kept")
    require(sorted(second) == list(range(20)), f"y should have each of its elements once; gave {second.tolist()}")
    require(np.array_equal(first[:, 0], 2 * second), "the rows of x and of y are not in the same order")
    require(np.array_equal(first[:, 1], 2 * second + 1), "elements of x have left their rows")
    require(list(second) != list(range(20)), "the order is not random")
    require(not np.array_equal(other[1], second), "two keys give the same order")


@check
def init(answer: Answer) -> None:
    sizes = [300, 200, 200, 200, 5]
    with jax.debug_key_reuse(True):
        params, other = (answer(jax.random.key(seed), sizes) for seed in (0, 1))
    shapes = [{"b": jnp.zeros(n), "w": jnp.zeros((m, n))} for m, n in zip(sizes, sizes[1:])]
    same("the shapes", jax.tree.map(jnp.zeros_like, params), shapes)
    for m, layer in zip(sizes, params):
        require(not np.any(layer["b"]), '"b" is not all zeros')
        spread, mean = float(layer["w"].std()) * m**0.5, float(layer["w"].mean()) * m**0.5
        require(0.9 < spread < 1.1 and abs(mean) < 0.2, f'"w" of {m} rows has a deviation {spread:.1f} / sqrt({m})')
    between = np.corrcoef(np.ravel(params[1]["w"]), np.ravel(params[2]["w"]))[0, 1]
    require(abs(between) < 0.1, "two layers of one shape have the same numbers")
    require(not np.array_equal(other[0]["w"], params[0]["w"]), "two keys give the same parameters")


@check
def root(answer: Answer) -> None:
    same("x**2 - 2 from 1.0", answer(lambda x: x**2 - 2, 1.0), np.float32(2**0.5))
    same("cos(x) - x from 0.5", answer(lambda x: jnp.cos(x) - x, 0.5), np.float32(0.7390851), 1e-6)
    same("x**2 - 2 from the int 1", answer(lambda x: x**2 - 2, 1), np.float32(2**0.5))


@check
def directional(answer: Answer) -> None:
    def f(x: jax.Array) -> jax.Array:
        return jnp.sin(x) * jnp.roll(x, 1)

    x, v = numbers(50), numbers(50, seed=1)
    a, b = np.asarray(x, float), np.asarray(v, float)
    wanted = np.cos(a) * b * np.roll(a, 1) + np.sin(a) * np.roll(b, 1)
    same("sin(x) * roll(x, 1)", answer(f, x, v), wanted)
    most = largest(lambda x, v: answer(f, x, v), x, v)
    require(most < 2500, f"for a vector of 50 elements it computes an array of {most}")


@check
def gradient_norms(answer: Answer) -> None:
    def loss(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return (jnp.dot(x, w) - y) ** 2

    for count in (5, 3):
        w, xs, ys = numbers(3), numbers(count, 3, seed=1), numbers(count, seed=2)
        wanted = 2 * np.abs(np.asarray(xs) @ np.asarray(w) - ys) * np.linalg.norm(xs, axis=1)
        same(f"{count} examples with 3 features", answer(loss, w, xs, ys), wanted)


@check
def ensemble(answer: Answer) -> None:
    def predict(model: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        return jnp.tanh(model["w"] @ x + model["b"])

    models = {"w": numbers(4, 2, 3), "b": numbers(4, 2, seed=1)}
    for x in (numbers(3, seed=2), jnp.zeros(3)):
        outputs = np.tanh(np.asarray(models["w"]) @ np.asarray(x) + np.asarray(models["b"]))
        same("four models and 2 outputs", answer(predict, models, x), (outputs.mean(0), outputs.std(0)))


@check
def clip_tree(answer: Answer) -> None:
    tree = {"w": np.array([3.0, 0]), "b": [np.array(4.0)]}
    small = jax.tree.map(jnp.asarray, tree)
    same("norm 5, limit 10", answer(small, 10.0), tree)
    same("norm 5, limit 1", answer(small, 1.0), {"w": np.array([0.6, 0]), "b": [np.array(0.8)]})
    same("limit 1 under jit", jax.jit(answer)(small, 1.0), {"w": np.array([0.6, 0]), "b": [np.array(0.8)]})
    zeros = {"w": np.zeros(2)}
    same("zeros", answer(jax.tree.map(jnp.asarray, zeros), 1.0), zeros)


@check
def Ball(answer: type) -> None:  # noqa: N802  (the exercise is a class)
    try:
        ball = answer(jnp.array([1.0, 2.0]), jnp.array([0.5, 0.0]), "red")
    except TypeError:
        raise Refused("Ball(position, velocity, name) cannot be called") from None
    count = len(jax.tree.leaves(ball))
    require(ball not in jax.tree.leaves(ball), "for JAX it is one leaf: nothing says how to take it apart")
    leaves = [leaf for leaf in jax.tree.leaves(ball) if isinstance(leaf, jax.Array)]
    require(count == len(leaves) == 2, f"it has {count} leaves, of which {len(leaves)} are arrays; expected 2 arrays")
    moved = jax.jit(lambda b: jax.tree.map(lambda leaf: 2 * leaf, b))(ball)
    require(isinstance(moved, answer), "jit does not give a Ball back")
    same("position after jit", moved.position, np.array([2.0, 4.0]))
    require(moved.name == "red", f"after jit its name is {moved.name!r}")
    slope = jax.grad(lambda b: jnp.sum(b.position**2))(ball)
    same("gradient by position", slope.position, np.array([2.0, 4.0]))
    finite("gradient by velocity", slope.velocity)
