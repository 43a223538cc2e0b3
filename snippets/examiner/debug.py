"""Checks of the exercises on printing, NaN, numerics and testing."""

import contextlib
import io
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from examiner.tools import Answer, Refused, finite, gradient, numbers, require, same, unlike
from examiner.verdict import check


@check("warm-up", "debug/inside")
def announce(answer: Answer) -> None:
    program = jax.jit(answer)
    for way, function in (("without jit", answer), ("under jit", program)):
        for numbers_ in ([1.0, 3.0], [7.5, 2.0], [7.5, 2.0], [[-2.25, -3.0], [-9.0, -4.0]], 4099.0, [[[5.0], [6.0]]]):
            x = np.array(numbers_, np.float32)
            with contextlib.redirect_stdout(io.StringIO()) as output:
                same("x", function(jnp.asarray(x)), x)
                jax.effects_barrier()
            printed = output.getvalue().strip()
            wanted = f"largest: {x.max()}"
            require(printed, f"{way}, the call with {numbers_} prints nothing")
            match = re.fullmatch(r"largest:\s*([-+.e\d]+)", printed)  # in any format
            require(
                match and np.isclose(float(match[1]), x.max()),
                f"{way}, for {numbers_} it prints {printed!r}, expected {wanted!r}",
            )


@check("warm-up", "debug/nans")
def culprit(answer: Answer) -> None:
    def boom(x: jax.Array) -> jax.Array:
        raise Refused("a stage was called after the first one whose result contains NaN")

    x = jnp.array([4.0, 9.0])
    same("stages without NaN", answer([jnp.sqrt, jnp.log], x), -1)
    same("no stages", answer([], x), -1)
    same("log of -1 in one of two elements", answer([lambda x: x - 5, jnp.log, boom], x), 1)
    same("inf - inf", answer([lambda x: x / 0, lambda x: x - x, boom], x), 1)
    same("a result of [inf, -inf]", answer([lambda x: (x - 5) / 0, jnp.abs], x), -1)
    safe = answer([lambda x: x - 5, lambda x: jnp.where(x > 0, jnp.log(x), 0.0)], x)
    same("a stage that computes a NaN and drops it", safe, -1)
    same("the first stage", answer([lambda x: jnp.sqrt(-x), boom], x), 0)
    same("log three times, [4, 2]", answer([jnp.log, jnp.log, jnp.log, boom], jnp.array([4.0, 2.0])), 2)


@check("warm-up", "debug/numerics")
def log_mean_exp(answer: Answer) -> None:
    same("[0, 1, 2]", answer(jnp.array([0.0, 1, 2])), np.float32(np.log(np.exp([0.0, 1, 2]).mean())))
    same("[1000, 1000]", answer(jnp.array([1000.0, 1000])), np.float32(1000))
    same("[-2000, -2000, -2000]", answer(jnp.full(3, -2000.0)), np.float32(-2000))
    same("[0, 400, 0, 0]", answer(jnp.array([0.0, 400, 0, 0])), np.float32(400 - np.log(4)), 1e-5)
    cases = np.array([1.0, 2, 500], np.float32), np.full(2, 1000, np.float32), np.array([-1000, -1001], np.float32)
    gradient(answer, lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(), *cases)


@check("challenge", "debug/nans")
def distances(answer: Answer) -> None:
    points = np.array([[0.0, 0], [3, 4], [0, 1]], np.float32)
    for name, some in (
        ("[0, 0], [3, 4], [0, 1]", points),
        ("points around 10000", points + 10000),
        ("points as close as 0.0001", points * 0.0001),
    ):
        gaps = some[:, None] - some
        wanted = np.sqrt((gaps.astype(float) ** 2).sum(-1))
        got = answer(jnp.asarray(some))
        same(name, got, wanted)
        require(not np.any(np.diag(got)), f"{name}: the diagonal holds {np.diag(got).max():.0e}, not zero")
        slope = jax.grad(lambda p: answer(p).sum())(jnp.asarray(some))
        finite(f"{name}: the gradient", slope)
        same(f"{name}: the gradient", slope, 2 * (gaps / np.where(wanted, wanted, 1)[..., None]).sum(1), 1e-3)
    twice = jnp.array([[1.0, 2], [1, 2], [4, 6]])
    got = answer(twice)
    same("[1, 2], [1, 2], [4, 6], of which two are equal", got, np.array([[0.0, 0, 5], [0, 0, 5], [5, 5, 0]]))
    require(not np.any(got[:2, :2]), f"the distance of two equal points is {np.max(got[:2, :2]):.0e}, not zero")
    finite("two equal points: the gradient", jax.grad(lambda p: answer(p).sum())(twice))


@check("core", "debug/checkify")
def checked_sqrt(answer: Answer) -> None:
    for way, function in (("", answer), (" under jit", jax.jit(answer))):
        for x in ([4.0, 9.0], [4.0, -9.0], [-1.0, -1.0], [0.0, 1.0], [9.0, -4.0, 1.0], [-1e-30, 4.0], [-0.0, 4.0]):
            result = function(jnp.array(x))
            require(isinstance(result, tuple) and len(result) == 2, "the result is not a pair (error, roots)")
            error, roots = result
            require(hasattr(error, "throw"), f"error is a {type(error).__name__}, which has no throw()")
            try:
                error.throw()
            except Exception as raised:
                require(min(x) < 0, f"{x}{way}: error.throw() raised {type(raised).__name__}")
                continue
            require(min(x) >= 0, f"{x}{way}: error.throw() raised nothing")
            same(f"{x}{way}: roots", roots, np.sqrt(x))


@check("core", "debug/numerics")
def weighted_variance(answer: Answer) -> None:
    rng = np.random.default_rng(0)
    same("[0, 10], weights [3, 1]", answer(jnp.array([0.0, 10]), jnp.array([3.0, 1])), np.float32(18.75), 1e-3)
    for name, shift in (("numbers around 0", 0.0), ("numbers around 10000", 1e4)):
        x = (rng.normal(size=500) + shift).astype(np.float32)
        weights = np.where(x > shift, rng.uniform(2, 3, size=500), 0.5).astype(np.float32)
        mean = np.average(x.astype(float), weights=weights)
        wanted = np.average((x.astype(float) - mean) ** 2, weights=weights)
        same(name, answer(jnp.asarray(x), jnp.asarray(weights)), np.float32(wanted), 1e-2)


@check("challenge", "debug/numerics")
def quadratic_roots(answer: Answer) -> None:
    program = jax.jit(answer)
    for a, b, c in (
        (1.0, -3.0, 2.0),
        (2.0, 10000.0, 1.0),
        (1.0, -20000.0, 3.0),
        (1.0, 1e6, 1.0),
        (1.0, 300.0, 1.0),
        (1.0, 2000.0, 5e5),
        (1.0, 1.0, 0.009),
        (1.0, 0.0, -4.0),
        (-1.0, 1.0, 6.0),
        (-2.0, -9000.0, 1.0),
        (1.0, 5.0, 0.0),
    ):
        wanted = np.sort(np.roots([a, b, c]))
        for way, function in (("", answer), (" under jit", program)):
            got = function(jnp.float32(a), jnp.float32(b), jnp.float32(c))
            where = f"{a:g}, {b:g}, {c:g}{way}"
            same(where, jax.tree.map(jnp.zeros_like, got), np.zeros(2))
            for name, one, other in zip(("smaller", "larger"), np.asarray(got, float), wanted):
                require(np.isclose(one, other, rtol=2e-4), f"{where}: the {name} root: {unlike(one, other)}")


@check("challenge", "debug/testing")
def agrees(answer: Answer) -> None:
    def f(x: np.ndarray) -> float:
        require(isinstance(x, np.ndarray), f"f was called with a {type(x).__name__}, not with a NumPy array")
        return float((np.sin(x.astype(np.float32)) ** 2 + x.astype(np.float32)).sum(dtype=np.float32))

    def slope(x: np.ndarray) -> np.ndarray:
        return 2 * np.sin(x) * np.cos(x) + 1

    xs = [np.array(numbers(6, seed=seed)) for seed in range(4)]
    wrong = {
        "the wrong sign": lambda x: -slope(x),
        "a factor 1.1": lambda x: 1.1 * slope(x),
        "a factor 0.9": lambda x: 0.9 * slope(x),
        "an element that is off by 0.3": lambda x: slope(x) + 0.3 * (np.arange(x.size) == 4),
        "a last element of zero": lambda x: slope(x) * (np.arange(x.size) < 5),
        "elements in the wrong order": lambda x: slope(x)[::-1],
        "NaN": lambda x: slope(x) * np.nan,
        "NaN in one element": lambda x: np.where(np.arange(x.size) == 2, np.nan, slope(x)),
    }
    for x in xs:
        before = x.copy()
        verdict = answer(f, slope, x)
        require(np.array_equal(x, before), "it changed x, which belongs to the caller")
        is_bool = np.shape(verdict) == () and np.asarray(verdict).dtype == bool
        require(is_bool, f"it gave a {type(verdict).__name__}, not a bool")
        require(verdict, "it calls the right slope wrong")
    for what, other in wrong.items():
        with warnings.catch_warnings(action="ignore"):
            passed = [bool(answer(f, other, x)) for x in xs]
        require(not any(passed), f"it lets a slope pass that has {what}")
