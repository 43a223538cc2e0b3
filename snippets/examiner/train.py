"""Checks of the exercises on training, sampling and escape hatches."""

import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from examiner.tools import Answer, does_not_grow, equations, equations_of, finite, names, numbers, require, same, show
from examiner.verdict import check


@check("warm-up", "train/training")
def cross_entropy(answer: Answer) -> None:
    logits, labels = np.asarray(numbers(4, 3), float), np.array([0, 2, 2, 1])
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    wanted = np.float32(-np.log(shares[np.arange(4), labels]).mean())
    same("4 rows of 3 logits", answer(jnp.asarray(logits), jnp.asarray(labels)), wanted)
    slope = jax.grad(answer)(jnp.asarray(logits), jnp.asarray(labels))
    same("the gradient", slope, (shares - np.eye(3)[labels]) / 4, 1e-3)
    large = jnp.array([[3000.0, 0, 0], [0, 1000, 0], [0, 0, -2000], [-5000, -5000, -5000]])
    several = jnp.array([1, 1, 0, 2])
    losses = [3000, 0, np.log(2), np.log(3)]
    same("logits from -5000 to 3000", answer(large, several), np.float32(np.mean(losses)))
    slopes = np.array([[1, -1, 0], [0, 0, 0], [-1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, -2 / 3]]) / 4
    same("logits from -5000 to 3000: the gradient", jax.grad(answer)(large, several), slopes, 2e-3)


class _Layer(NamedTuple):
    w: Any
    b: Any


@check("warm-up", "train/training")
def momentum_step(answer: Answer) -> None:
    params = {"w": [np.array([1.0, 2.0])], "b": np.array(3.0)}
    grads = {"w": [np.array([0.5, -1.0])], "b": np.array(2.0)}
    wanted_p, wanted_v = params, jax.tree.map(np.zeros_like, params)
    p, v = jax.tree.map(jnp.asarray, (wanted_p, wanted_v))
    given = p, v, jax.tree.map(jnp.asarray, grads)
    before = jax.tree.map(lambda leaf: leaf, given)  # new containers with the same arrays
    answer(*given, 0.1, 0.5)
    for name, tree, same_tree in zip(("params", "velocity", "grads"), given, before):
        kept = jax.tree.structure(tree) == jax.tree.structure(same_tree)
        kept = kept and all(map(operator.is_, jax.tree.leaves(tree), jax.tree.leaves(same_tree)))
        require(kept, f"it changed {name}, a tree that belongs to the caller")
    program = jax.jit(answer)
    for step in (1, 2):
        wanted_v = jax.tree.map(lambda old, g: 0.5 * old + g, wanted_v, grads)
        wanted_p = jax.tree.map(lambda old, new: old - 0.1 * new, wanted_p, wanted_v)
        result = program(p, v, jax.tree.map(jnp.asarray, grads), 0.1, 0.5)
        same(f"step {step}", result, (wanted_p, wanted_v))
        p, v = result
    one = answer(jnp.array([1.0]), jnp.array([2.0]), jnp.array([4.0]), 0.5, 0.25)
    same("params, velocity and grads that are one array each", one, (np.array([-1.25]), np.array([4.5])))
    trees = ((1.0, 3.0), (2.0, 0.0), (4.0, 1.0))
    two = answer(*(tuple(map(jnp.asarray, tree)) for tree in trees), 0.5, 0.25)
    wanted = (np.array(-1.25), np.array(2.5)), (np.array(4.5), np.array(1.0))
    same("params, velocity and grads that are tuples of two arrays", two, wanted)
    own = [[np.full(2, number, np.float32)] for number in (1, 2, 3)]
    answer(*own, 0.1, 0.5)
    for number, name, [leaf] in zip((1, 2, 3), ("params", "velocity", "grads"), own):
        require((leaf == number).all(), f"it changed a NumPy array of {name}, which belongs to the caller")
    places = [_Layer(jnp.array(number), None) for number in (3.0, 0.0, 2.0)]
    named = _Layer(np.array(2.8), None), _Layer(np.array(2.0), None)
    same("params, velocity and grads that are named tuples with None", answer(*places, 0.1, 0.5), named)


@check("warm-up", "train/training-loop")
def epoch(answer: Answer) -> None:
    with jax.debug_key_reuse(True):
        result, *others = [answer(jax.random.key(seed), 23, 5) for seed in (0, 0, 1, 2, 3)]
        require(isinstance(result, jax.Array | np.ndarray), f"gave a {type(result).__name__}, expected a matrix")
        again, *epochs = map(np.asarray, (result, *others))
        full = np.asarray(answer(jax.random.key(0), 20, 4))
    require(np.array_equal(again, epochs[0]), "the same key gives another order the second time")
    for got in epochs:
        require(got.shape == (4, 5), f"23 examples in batches of 5: gave shape {got.shape}, expected (4, 5)")
        require(got.dtype.kind in "iu", f"gave dtype {got.dtype}, not integers")
        require(got.min() >= 0 and got.max() < 23, f"the indices go from {got.min()} to {got.max()}, expected 0 to 22")
        twice = got.size - len(set(got.ravel().tolist()))
        require(not twice, f"of 20 indices, {twice} are there a second time")
    require(full.shape == (5, 4), f"20 examples in batches of 4: gave shape {full.shape}, expected (5, 4)")
    require(sorted(full.ravel()) == list(range(20)), "20 examples in batches of 4: not every example is used")
    require(not all(np.array_equal(got, epochs[0]) for got in epochs), "two keys give the same order")
    left_out = {tuple(sorted(set(range(23)) - set(got.ravel().tolist()))) for got in epochs}
    require(len(left_out) > 1, "the same examples are left out in every epoch")
    ordered = all((np.diff(got, axis=1) > 0).all() for got in epochs)
    require(not ordered, "each batch is sorted, so the order is not random")
    neighbors = np.mean([np.diff(got.ravel()) % 23 == 1 for got in epochs])
    require(neighbors < 0.5, "most examples come right after their neighbor: the order is not random")


@check("core", "train/training")
def fit(answer: Answer) -> None:
    x = np.asarray(numbers(20, 2), float)
    y = x @ [2.0, -1.0] + 0.5
    args = jnp.asarray(x), jnp.asarray(y)
    for steps, rate in ((30, 0.1), (1, 0.1), (20, 0.02)):
        w, losses = np.zeros(2), []
        for _ in range(steps):
            losses.append(np.mean((x @ w - y) ** 2))
            w = w - rate * 2 * x.T @ (x @ w - y) / len(y)
        same(f"{steps} steps, rate {rate:g}", answer(*args, steps, rate), (w, np.array(losses)), 1e-3)
    does_not_grow("the number of steps", lambda n: (lambda x, y: answer(x, y, n, 0.1), *args))


@check("challenge", "extend/escape-hatches")
def clip_gradient(answer: Answer) -> None:
    x = np.array([0.1, -5.0, 3.0], np.float32)
    same("x", answer(jnp.asarray(x), 1.0), x)
    factors = np.array([10.0, -0.5, -4.0], np.float32)
    for limit in (1.0, 2.0):

        def total(x: jax.Array, limit: float = limit) -> tuple[jax.Array, jax.Array]:
            passed = answer(x, limit)
            return jnp.sum(factors * passed), passed

        slope, passed = jax.jit(jax.grad(total, has_aux=True))(x)
        same(f"gradient [10, -0.5, -4], limit {limit:g}", slope, np.clip(factors, -limit, limit))
        same("x, while a gradient is computed", passed, x)
    same("x, float16", answer(jnp.asarray(x, "float16"), 1.0), x.astype("float16"))
    table = np.array([[10.0, -0.5, 3.0, -4.0], [0.1, 9.0, -1.0, 0.3]], np.float32)
    slope = jax.grad(lambda x: jnp.sum(table * answer(x, 2.0)))(jnp.ones((2, 4)))
    same("the gradient of a matrix, limit 2", slope, np.clip(table, -2, 2))


@check("challenge", "extend/escape-hatches")
def on_host(answer: Answer) -> None:
    def sort(x: np.ndarray) -> np.ndarray:
        require(not isinstance(x, jax.core.Tracer), "f got a tracer, not numbers")
        shape = np.shape(x)
        require(len(shape) == 1, f"f got an array of shape {shape}, and x has shape (3,)")
        return np.sort(np.asarray(x)).astype(np.float64) * 2

    def centered(x: np.ndarray) -> np.ndarray:
        require(not isinstance(x, jax.core.Tracer), "f got a tracer, not numbers")
        return np.asarray(x) - np.asarray(x).mean()

    x = np.array([3.0, 1.0, 2.0], np.float32)
    same("sort, times 2", answer(sort, jnp.asarray(x)), np.sort(x) * 2)
    same("under jit", jax.jit(lambda x: answer(sort, x))(x), np.sort(x) * 2)
    rows = np.stack([x, -x, 5 - 2 * x])
    same("three rows under vmap", jax.vmap(lambda x: answer(sort, x))(rows), np.sort(rows) * 2)
    same("a matrix minus its mean", answer(centered, jnp.asarray(rows)), rows - rows.mean())
    whole = np.array([3, 1, 2], np.int32)
    same("integers minus their mean", answer(centered, jnp.asarray(whole)), x - 2)


@check("challenge", "science/derivatives")
def babylonian(answer: Answer) -> None:
    program = jax.jit(answer)
    for a in (2.0, 0.01, 900.0, 1.0, 1e8, 1e-10):
        same(f"a = {a:g}", answer(jnp.float32(a)), np.float32(a**0.5))
        same(f"a = {a:g} under jit", program(a), np.float32(a**0.5))
        same(f"derivative at {a:g}", jax.grad(answer)(jnp.float32(a)), np.float32(0.5 / a**0.5), 1e-3)
    chain = jax.grad(lambda a: 3 * answer(4 * a))(jnp.float32(1))
    same("derivative of 3 * answer(4 * a) at 1", chain, np.float32(3), 1e-3)
    used = names(answer, 2.0)  # lax.custom_root does not show what is in it, but a scan is compiled to a while, too
    hidden = "scan" not in used and "stablehlo.while" in program.lower(2.0).as_text()
    require("while" in used or hidden, "there is no while_loop in its program")
    loops = [equation.params["cond_jaxpr"] for equation in equations(answer, 2.0) if equation.primitive.name == "while"]
    compared = [v.aval.dtype for loop in loops for equation in equations_of(loop.jaxpr) for v in equation.invars]
    counts = bool(compared) and all(jnp.issubdtype(dtype, jnp.integer) for dtype in compared)
    require(not counts, "the condition of its while_loop only counts, so it goes on when x**2 is near enough to a")
    last = np.asarray(answer(jnp.float32(1e36)))  # each iteration halves it; the root is 1e18
    require(4e20 < last < 9e20, f"a = 1e+36: gave {last:.3g}, expected 8.88e+20, which is what 50 iterations give")
    slope = np.asarray(jax.grad(answer)(jnp.float32(1e36)))  # by the root of the loop, also if one more step follows it
    require(not 1e-21 < slope < 1.3e-21, "a = 1e+36: the loop gives 4.44e+20, expected 8.88e+20: 50 steps from x = a")


@check("challenge", "science/sampling")
def metropolis(answer: Answer) -> None:
    def walks(tilt: float, peak: float, *seeds: int) -> list[np.ndarray]:
        found = []
        for seed in seeds:
            with jax.debug_key_reuse(True):
                got = program(jax.random.key(seed), tilt, peak)
            require(got is not None, "returned None; is a return missing?")
            require(np.shape(got) == (4000, 2), f"gave shape {np.shape(got)} for 4000 steps, expected (4000, 2)")
            finite("the walk", got)
            found.append(np.asarray(got))
        return found

    def densities(tilt: float, peak: float) -> Answer:
        return lambda x: -tilt * x[0] - peak * jnp.sum((x - 1.0) ** 2)

    start = jnp.zeros(2)
    program = jax.jit(lambda key, tilt, peak: answer(key, densities(tilt, peak), start, 4000))  # compiled once for all
    does_not_grow(
        "the number of steps", lambda n: (lambda k: answer(k, densities(0.0, 2.0), start, n), jax.random.key(2))
    )
    (flat,) = walks(0.0, 0.0, 0)
    moves = np.diff(flat, axis=0)
    still = (moves == 0).all(1).mean()
    require(still < 0.01, f"where all densities are equal, it stays in {still:.0%} of its steps, expected never")
    require(np.any(flat[0]), "the first position is the start: return the position after each step")
    require(not np.allclose(moves, moves[0], atol=0.01), "each step is the same")
    together = np.corrcoef(moves.T)[0, 1]
    require(abs(together) < 0.1, "both coordinates move together: they get the same numbers")
    undone = np.corrcoef(moves[1:].ravel(), moves[:-1].ravel())[0, 1]
    require(undone > -0.2, "its proposals are around one place, not around the position: most steps go back")
    width = moves.std()
    require(abs(width - 1) < 0.05, f"its proposals have standard deviation {width:.2f}, expected 1")
    tails = (moves**4).mean() / (moves**2).mean() ** 2
    require(abs(tails - 3) < 0.4, f"its proposals are not normal: their kurtosis is {tails:.1f}, not 3")
    require(abs(moves.mean()) < 0.1, f"its proposals have the mean {moves.mean():.1f}, expected 0")

    (slope,) = walks(1.0, 0.0, 0)
    moves = np.diff(slope, axis=0)
    rate = (moves != 0).any(1).mean()
    text = f"for log_density = -x[0] it accepts {rate:.0%} of its proposals, expected 76%"
    require(abs(rate - 0.762) < 0.035, text)
    moved = (moves != 0).any(1).astype(float)  # with this density, whether a step is accepted depends on no other step
    linked = np.corrcoef(moved[1:], moved[:-1])[0, 1]
    require(abs(linked) < 0.1, "a step stays more often after one that has stayed: the two share random numbers")
    down = (moves[:, 0] > 1).mean()
    text = f"for log_density = -x[0], {down:.1%} of its steps divide the density by more than e, expected 3.8%"
    require(abs(down - 0.038) < 0.015, text)

    around, other = (walk[500:] for walk in walks(0.0, 2.0, 0, 1))
    mean, spread = around.mean(0), around.std(0)
    require(np.all(np.abs(mean - 1) < 0.2), f"a density around 1: the mean of the walk is {mean.mean():.2f}")
    require(np.all(np.abs(spread - 0.5) < 0.15), f"a density of width 0.5: the walk has {spread.mean():.2f}")
    require(not np.array_equal(other, around), "two keys give the same walk")
    far = np.array([50.0, -50, 7])
    got = answer(jax.random.key(3), densities(0.0, 0.0), jnp.asarray(far), 20)
    require(np.shape(got) == (20, 3), f"3 coordinates and 20 steps: gave shape {np.shape(got)}, expected (20, 3)")
    near = np.abs(np.asarray(got[0]) - far).max() < 6
    require(near, f"from [50, -50, 7], the position after the first step is {show(got[0])}")
