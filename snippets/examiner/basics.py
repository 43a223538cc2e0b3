"""Checks of the exercises on arrays, randomness, derivatives, vmap and pytrees."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examiner.tools import Answer, Refused, counted, finite, largest, names, numbers, require, same, show, unchanged
from examiner.verdict import check


@check("core", "basics/arrays")
def standardize(answer: Answer) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3)) * [1, 5, 0.001] + [0, 7, 0.002]
    wanted = (x - x.mean(0)) / x.std(0)
    same("a matrix", answer(jnp.asarray(x)), wanted, 1e-3)
    same("the same under jit", jax.jit(answer)(jnp.asarray(x)), wanted, 1e-3)
    for number in (5.0, 0.1, 1000.1):  # the computed mean of equal numbers may be another number
        x[:, 1], wanted[:, 1] = number, 0
        same(f"a column of six {number:g} between two others", answer(jnp.asarray(x)), wanted, 1e-3)
    far = (np.array([0.0, 4, 1, 3, 2, 2]) / 32 + 1000)[:, None]  # numbers that float32 has
    same("a column around 1000", answer(jnp.asarray(far)), (far - far.mean()) / far.std(), 1e-2)
    half = np.array([[1.0, 3, 20], [2, 3, 60], [4, 3, 40]])
    wanted = (half - half.mean(0)) / np.where(half.std(0) > 0, half.std(0), 1)
    same("float16", answer(jnp.asarray(half, "float16")), wanted.astype("float16"), 2e-2)


@check("warm-up", "basics/updates")
def swap_rows(answer: Answer) -> None:
    x = np.arange(6.0).reshape(3, 2)
    given = jnp.asarray(x)
    same("rows 0 and 2", answer(given, 0, 2), x[[2, 1, 0]])
    require(not given.is_deleted(), "it deleted x, which belongs to the caller: a donated array is gone")
    same("rows 1 and 1", answer(jnp.asarray(x), 1, 1), x)
    same("a matrix of integers", answer(jnp.arange(6).reshape(3, 2), 0, 1), np.array([[2, 3], [0, 1], [4, 5]]))
    far = np.array([[1.0, 1e9], [1e9, 3]], np.float32)
    require(np.array_equal(answer(jnp.asarray(far), 0, 1), far[::-1]), "[[1, 1e9], [1e9, 3]]: it changed the numbers")
    whole = np.array([[1, 2**24 + 1], [3, 4]], np.int32)  # float32 has no odd numbers there
    exact = np.array_equal(answer(jnp.asarray(whole), 0, 1), whole[::-1])
    require(exact, "[[1, 2**24 + 1], [3, 4]], integers: it changed the numbers")
    odd = np.array([[np.inf, 1, 2], [3, np.nan, 4]], np.float32)
    same("[[inf, 1, 2], [3, nan, 4]]", answer(jnp.asarray(odd), 0, 1), odd[::-1])
    program, traces = counted(answer)
    same("rows 1 and 2 under jit", program(x, 1, 2), x[[0, 2, 1]])
    same("rows 0 and 1 under jit", program(x, 0, 1), x[[1, 0, 2]])
    require(len(traces) == 1, "under jit, other rows cost another trace")


@check("warm-up", "basics/arrays")
def cap(answer: Answer) -> None:
    x = np.array([1.0, 5, 3, 9], np.float32)
    same("[1, 5, 3, 9] and limit 4", answer(jnp.asarray(x), 4.0), np.minimum(x, 4))
    same("a NumPy array", unchanged(lambda a: answer(a, 4.0), x), np.minimum(x, 4))
    same("limit 2 under jit", jax.jit(answer)(x, 2.0), np.minimum(x, 2))
    odd = np.array([np.nan, -np.inf, 5, np.inf], np.float32)
    same("[nan, -inf, 5, inf] and limit 4", answer(jnp.asarray(odd), 4.0), np.minimum(odd, np.float32(4)))
    same("the integers [1, 5, 3] and limit 4", answer(jnp.array([1, 5, 3]), 4), np.array([1, 4, 3]))


@check("core", "basics/updates")
def delay(answer: Answer) -> None:
    for x in (np.arange(1.0, 6), np.array([np.inf, 1, np.nan, 2, np.inf]), np.arange(1, 6)):
        program, traces = counted(answer)
        for steps in (2, 0, -1, 7, -5):
            wanted = np.array([x[i - steps] if 0 <= i - steps < 5 else 0 for i in range(5)], x.dtype)
            same(f"{show(x)} and {steps} steps", answer(jnp.asarray(x), steps), wanted)
            same(f"{show(x)} and {steps} steps under jit", program(x, steps), wanted)
        require(len(traces) == 1, f"under jit, 5 numbers of steps cost {len(traces)} traces")


@check("warm-up", "basics/arrays")
def blend(answer: Answer) -> None:
    a, b = (g.astype(np.uint8) for g in np.meshgrid(np.arange(256), np.arange(256)))
    wanted = ((a.astype(int) + b) // 2).astype(np.uint8)
    for x, y in ((10, 20), (200, 100), (255, 255)):
        same(f"{x} and {y}", answer(jnp.uint8([x]), jnp.uint8([y])), np.array([(x + y) // 2], np.uint8))
    got = np.asarray(answer(jnp.asarray(a), jnp.asarray(b)))
    require(got.shape == a.shape, f"images of shape {a.shape}: gave shape {got.shape}")
    wrong = np.argwhere(got != wanted)
    if wrong.size:
        first = tuple(wrong[0])
        raise Refused(f"{a[first]} and {b[first]}: gave {got[first]}, expected {wanted[first]}")


@check("warm-up", "basics/random")
def shuffle_together(answer: Answer) -> None:
    base = 2**24  # float32 has no odd numbers there
    x, y = jnp.arange(40.0).reshape(20, 2), base + jnp.arange(20)
    orders = []
    with jax.debug_key_reuse(True):
        for seed in range(6):
            result = answer(jax.random.key(seed), x, y)
            require(isinstance(result, tuple) and len(result) == 2, "the result is not a pair")
            first, second = map(np.asarray, result)
            require(first.shape == x.shape and second.shape == y.shape, "the shapes of x and y are not kept")
            order = second.astype(np.int64) - base
            content = f"{order.tolist()} + 2**24"
            require(sorted(order) == list(range(20)), f"y should have each of its elements once; gave {content}")
            require(np.array_equal(first[:, 0], 2 * order), "the rows of x and of y are not in the same order")
            require(np.array_equal(first[:, 1], 2 * order + 1), "elements of x have left their rows")
            require(second.dtype == y.dtype, f"y has become {second.dtype}")
            orders.append(order)
    require(any(list(order) != list(range(20)) for order in orders), "the order is not random")
    require(len({tuple(order) for order in orders}) == 6, "two keys give the same order")
    again = np.asarray(answer(jax.random.key(0), x, y)[1]).astype(np.int64) - base
    require(np.array_equal(again, orders[0]), "the same key gives another order at the next call")
    stayed = sum(int(np.sum(order == np.arange(20))) for order in orders)  # one a shuffle, on average
    require(stayed < 60, f"{stayed} of 6 * 20 rows stay at their places, so few orders are possible")
    steps = [(np.diff(order) % 20) for order in orders]
    require(not all(len(set(step)) == 1 for step in steps), "neighbors stay neighbors, so few orders are possible")
    three = _orders(lambda key: answer(key, x[:3], jnp.arange(3))[1])
    few = len({tuple(np.asarray(one).tolist()) for one in three})
    require(few == 6, f"of the 6 orders of three rows, 60 keys give {few}")
    cloned = "random_clone" in _names(answer, x, y)
    require(not cloned, "it clones the key, which is a second use of it")


def _orders(order: Answer) -> Any:
    keys = jax.random.split(jax.random.key(0), 60)  # 60 keys leave out one of 6 orders once in 10 000 times
    try:
        return jax.vmap(order)(keys)  # compiles once
    except jax.errors.JAXTypeError:  # it asks for the numbers of the key
        return [order(key) for key in keys]


def _names(answer: Answer, x: jax.Array, y: jax.Array) -> set[str]:
    try:
        return names(lambda key: answer(key, x, y), jax.random.key(0))
    except jax.errors.JAXTypeError:  # it asks for the numbers of the key
        return set()


@check("core", "basics/random")
def init(answer: Answer) -> None:
    sizes = [100, 100, 100, 5]
    with jax.debug_key_reuse(True):
        params, again, other = (answer(jax.random.key(seed), sizes) for seed in (0, 0, 1))
        small = answer(jax.random.key(0), [3, 2])
    shapes = [{"b": jnp.zeros(n), "w": jnp.zeros((m, n))} for m, n in zip(sizes, sizes[1:])]
    same("the shapes", jax.tree.map(jnp.zeros_like, params), shapes)
    same("sizes [3, 2]: the shapes", jax.tree.map(jnp.zeros_like, small), [{"b": np.zeros(2), "w": np.zeros((3, 2))}])
    for m, layer in zip(sizes, params):
        require(not np.any(layer["b"]), '"b" is not all zeros')
        w = np.asarray(layer["w"], float) * m**0.5
        near = 0.03 if w.size > 5000 else 0.1
        require(
            abs(w.std() - 1) < near and abs(w.mean()) < 0.1,
            f'"w" of {m} rows has standard deviation {w.std():.2f} / sqrt({m}) and mean {w.mean():.2f} / sqrt({m})',
        )
        if w.size > 5000:
            require(len(np.unique(w)) > 0.9 * w.size, '"w" holds the same numbers more than once')
            require(abs(w).max() > 2.5, f'"w" has no number beyond {abs(w).max():.2f} deviations: it is not normal')
            tails = (w**4).mean() / (w**2).mean() ** 2
            require(abs(tails - 3) < 0.2, f'the distribution of "w" is not normal: its kurtosis is {tails:.1f}, not 3')
    for one, two in itertools.combinations((np.ravel(layer["w"]) for layer in params), 2):
        size = min(one.size, two.size)
        require(abs(np.corrcoef(one[:size], two[:size])[0, 1]) < 0.15, "two layers have the same numbers")
    require(not np.array_equal(other[0]["w"], params[0]["w"]), "two keys give the same parameters")
    repeated = np.array_equal(again[0]["w"], params[0]["w"])
    require(repeated, "the same key gives other parameters the second time: not all numbers come from the key")


@check("warm-up", "basics/derivatives")
def root(answer: Answer) -> None:
    same("x**2 - 2 from 1.0", answer(lambda x: x**2 - 2, 1.0), np.float32(2**0.5))
    same("cos(x) - x from 0.5", answer(lambda x: jnp.cos(x) - x, 0.5), np.float32(0.7390851), 1e-6)
    same("x**2 - 2 from the int 1", answer(lambda x: x**2 - 2, 1), np.float32(2**0.5))
    same("x**3 from 1.0, whose tenth step gives (2/3)**10", answer(lambda x: x**3, 1.0), np.float32((2 / 3) ** 10))
    small = np.float32(1e-9 * (2 / 3) ** 10)
    same("x**3 from 1e-9, where ten steps are taken, too", answer(lambda x: x**3, 1e-9), small)
    derivatives = []

    @jax.custom_jvp
    def f(x: jax.Array) -> jax.Array:
        return x**2 - 2

    @f.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple:
        derivatives.append(1)
        return f(*primals), 2 * primals[0] * tangents[0]

    answer(f, 1.0)
    require(derivatives, "JAX did not compute the derivative of f")


@check("core", "basics/derivatives")
def directional(answer: Answer) -> None:
    def f(x: jax.Array) -> jax.Array:
        return jnp.sin(x) * jnp.roll(x, 1)

    x, v = numbers(50), numbers(50, seed=1)
    a, b = np.asarray(x, float), np.asarray(v, float)
    wanted = np.cos(a) * b * np.roll(a, 1) + np.sin(a) * np.roll(b, 1)
    same("sin(x) * roll(x, 1)", answer(f, x, v), wanted, 2e-5)
    two = answer(lambda x: jnp.stack([x @ x, x[0]]), jnp.array([1.0, 2, 3]), jnp.array([1.0, 0, 2]))
    same("[x @ x, x[0]] at [1, 2, 3] in the direction [1, 0, 2]", two, np.array([14.0, 1]))

    @jax.custom_jvp
    def rounded(x: jax.Array) -> jax.Array:
        return jnp.round(x)

    @rounded.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple:
        return rounded(*primals), tangents[0]

    through = answer(rounded, jnp.array([0.2, 1.7]), jnp.array([1.0, -3.0]))
    same("round(x), which has a rule that says its slope is 1", through, np.array([1.0, -3.0]))
    most = largest(lambda x, v: answer(f, x, v), x, v)
    require(most < 2500, f"for a vector of 50 elements it computes an array of {most}")


@check("core", "basics/vmap")
def gradient_norms(answer: Answer) -> None:
    def loss(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return (jnp.dot(x, w) - y) ** 2

    for count in (5, 3, 1):
        w, xs, ys = numbers(3), numbers(count, 3, seed=1), numbers(count, seed=2)
        wanted = 2 * np.abs(np.asarray(xs) @ np.asarray(w) - ys) * np.linalg.norm(xs, axis=1)
        same(f"{count} examples with 3 features", answer(loss, w, xs, ys), wanted)
    same("two examples whose gradient is zero", answer(loss, jnp.zeros(3), jnp.ones((2, 3)), jnp.zeros(2)), np.zeros(2))

    def waves(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return 1000 + jnp.cos(jnp.dot(w[:3], x) + w[3] * y)  # differences of it have few digits

    w, xs, ys = numbers(4), numbers(5, 3, seed=1), numbers(5, seed=2)
    a, inputs = np.asarray(w), np.column_stack([xs, ys])
    wanted = np.abs(np.sin(inputs @ a)) * np.linalg.norm(inputs, axis=1)
    same("another loss, with one weight more than features", answer(waves, w, xs, ys), wanted)


@check("core", "basics/vmap")
def ensemble(answer: Answer) -> None:
    def predict(model: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        return jnp.tanh(model["w"] @ x + model["b"])

    for count in (4, 3):
        models = {"w": numbers(count, 2, 3), "b": numbers(count, 2, seed=1)}
        for x in (numbers(3, seed=2), jnp.zeros(3)):
            outputs = np.tanh(np.asarray(models["w"]) @ np.asarray(x) + np.asarray(models["b"]))
            same(f"{count} models with 2 outputs", answer(predict, models, x), (outputs.mean(0), outputs.std(0)), 1e-3)
    one = answer(lambda scale, x: scale * x, jnp.array([1.0, 3.0]), jnp.array([1.0, 2]))
    same("two models scale * x, as one array", one, (np.array([2.0, 4]), np.array([1.0, 2])))
    number = answer(lambda w, x: w @ x, jnp.array([[1.0, 2], [3, 4], [5, 0]]), jnp.array([1.0, 2]))
    same("three models w @ x, which gives one number", number, (np.float32(7), np.float32(8**0.5)))
    table = np.array([[[1.0, 2, 3], [4, 5, 6]]])
    same(
        "one model, whose prediction is a matrix",
        answer(jnp.multiply, jnp.asarray(table), jnp.ones(())),
        (table[0], 0 * table[0]),
    )
    tables = np.concatenate([table, 3 * table])
    where = "two models, whose predictions are matrices"
    same(where, answer(jnp.multiply, jnp.asarray(tables), jnp.ones(())), (2 * table[0], table[0]))
    far = answer(jnp.add, jnp.array([5001.0, 5002, 5003]), jnp.zeros(2))
    same("three models that predict 5001, 5002 and 5003", far, (np.full(2, 5002.0), np.full(2, (2 / 3) ** 0.5)))


@check("core", "basics/pytrees")
def clip_tree(answer: Answer) -> None:
    tree = {"w": np.array([3.0, 0]), "b": [np.array(4.0)]}
    small = jax.tree.map(jnp.asarray, tree)
    same("norm 5, limit 10", answer(small, 10.0), tree)
    same("norm 5, limit 1", answer(small, 1.0), {"w": np.array([0.6, 0]), "b": [np.array(0.8)]})
    same("limit 1 under jit", jax.jit(answer)(small, 1.0), {"w": np.array([0.6, 0]), "b": [np.array(0.8)]})
    negative = answer({"w": jnp.array([[-3.0, 4.0], [0, -12.0]])}, 6.5)
    same("[[-3, 4], [0, -12]], limit 6.5", negative, {"w": np.array([[-1.5, 2], [0, -6]])})
    three = [np.array([2.0, 4]), np.array([5.0]), np.array([[6.0], [0]])]
    wanted = [leaf / 3 for leaf in three]
    same("three leaves of norm 9, limit 3", answer(jax.tree.map(jnp.asarray, three), 3.0), wanted)
    zeros = {"w": np.zeros(2)}
    same("zeros", answer(jax.tree.map(jnp.asarray, zeros), 1.0), zeros)
    same("zeros under jit", jax.jit(answer)(jax.tree.map(jnp.asarray, zeros), 1.0), zeros)


@check("core", "basics/pytrees")
def Ball(answer: type) -> None:  # noqa: N802  (the exercise is a class)
    place, speed = jnp.array([1.0, 2.0]), jnp.array([0.5, 0.0])
    try:
        balls = [answer(place, speed, name) for name in ("red", "blue")]
    except TypeError:
        raise Refused("Ball(position, velocity, name) cannot be called") from None
    double = jax.jit(lambda b: jax.tree.map(lambda leaf: 2 * leaf, b))
    for ball, name in zip(balls, ("red", "blue")):
        for attribute in ("position", "velocity", "name"):
            require(hasattr(ball, attribute), f"it has no attribute {attribute}")
        require(ball.name == name, f"the name of Ball(…, {name!r}) is {ball.name!r}")
        same("position", ball.position, np.array([1.0, 2.0]))
        same("velocity", ball.velocity, np.array([0.5, 0.0]))
        leaves = jax.tree.leaves(ball)
        require(not any(leaf is ball for leaf in leaves), "to JAX it is one leaf: nothing says how to take it apart")
        arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
        text = f"it has {len(leaves)} leaves, of which {len(arrays)} are arrays; expected 2 arrays"
        require(len(leaves) == len(arrays) == 2, text)
        moved = double(ball)
        require(isinstance(moved, answer), "jit does not return a Ball")
        same("position, doubled under jit", moved.position, np.array([2.0, 4.0]))
        same("velocity, doubled under jit", moved.velocity, np.array([1.0, 0.0]))
        require(moved.name == name, f"after jit, the name of the {name} ball is {moved.name!r}")
        slope = jax.grad(lambda b: jnp.sum(b.position**2))(ball)
        same("gradient by position", slope.position, np.array([2.0, 4.0]))
        finite("gradient by velocity", slope.velocity)
    red, blue = map(jax.tree.structure, balls)
    require(red != blue, "balls of two names have the same structure, so the name does not belong to it")
    again = jax.tree.structure(answer(2 * place, speed, "red"))
    require(red == again, "two red balls have different structures, so jit compiles anew for each ball")
