"""Checks of the exercises on printing, NaN, numerics and testing."""

import contextlib
import io
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from examiner.tools import Answer, Refused, finite, gradient, numbers, require, same
from examiner.verdict import check


@check
def announce(answer: Answer) -> None:
    program = jax.jit(answer)
    for way, function in (("without jit", answer), ("under jit", program)):
        for x in (np.array([1.0, 3.0], np.float32), np.array([7.0, 2.0], np.float32)):
            with contextlib.redirect_stdout(io.StringIO()) as heard:
                same("x", function(jnp.asarray(x)), x)
                jax.effects_barrier()
            said = heard.getvalue().strip()
            wanted = f"largest: {x.max()}"
            require(said, f"{way}, the call with {x.tolist()} prints nothing")
            require(said == wanted, f"{way}, for {x.tolist()} it prints {said!r}, expected {wanted!r}")


@check
def culprit(answer: Answer) -> None:
    def boom(x: jax.Array) -> jax.Array:
        raise Refused("a stage was called after the one that gave a NaN")

    x = jnp.array([4.0, 9.0])
    same("all is well", answer([jnp.sqrt, jnp.log], x), -1)
    same("log of -1 in one of two elements", answer([lambda x: x - 5, jnp.log, boom], x), 1)
    same("inf - inf", answer([lambda x: x / 0, lambda x: x - x, boom], x), 1)
    same("infinity alone is no NaN", answer([lambda x: x / 0, lambda x: -x], x), -1)


@check
def log_mean_exp(answer: Answer) -> None:
    same("[0, 1, 2]", answer(jnp.array([0.0, 1, 2])), np.float32(np.log(np.exp([0.0, 1, 2]).mean())))
    same("[1000, 1000]", answer(jnp.array([1000.0, 1000])), np.float32(1000))
    same("[-2000, -2000, -2000]", answer(jnp.full(3, -2000.0)), np.float32(-2000))
    gradient(answer, lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(), np.array([1.0, 2, 500], np.float32))


@check
def distances(answer: Answer) -> None:
    points = np.array([[0.0, 0], [3, 4], [0, 1]], np.float32)
    gaps = points[:, None] - points
    wanted = np.sqrt((gaps**2).sum(-1))
    got = answer(jnp.asarray(points))
    same("three points", got, wanted)
    require(not np.any(np.diag(got)), f"the diagonal holds {np.diag(got).max():.0e}, not zero")
    slope = jax.grad(lambda p: answer(p).sum())(jnp.asarray(points))
    finite("the gradient", slope)
    same("the gradient", slope, 2 * (gaps / np.where(wanted, wanted, 1)[..., None]).sum(1), 1e-3)


@check
def checked_sqrt(answer: Answer) -> None:
    for way, function in (("", answer), (" under jit", jax.jit(answer))):
        for x in ([4.0, 9.0], [4.0, -9.0], [-1.0, -1.0], [0.0, 1.0]):
            result = function(jnp.array(x))
            require(isinstance(result, tuple) and len(result) == 2, "the result is not a pair (error, roots)")
            error, roots = result
            try:
                error.throw()
            except Exception as raised:
                require(min(x) < 0, f"{x}{way}: error.throw() raised {type(raised).__name__}")
                continue
            require(min(x) >= 0, f"{x}{way}: error.throw() raised nothing")
            same(f"{x}{way}: roots", roots, np.sqrt(x))


@check
def weighted_variance(answer: Answer) -> None:
    rng = np.random.default_rng(0)
    for name, shift in (("numbers around 0", 0.0), ("numbers around 10000", 1e4)):
        x = (rng.normal(size=500) + shift).astype(np.float32)
        weights = rng.uniform(1, 3, size=500).astype(np.float32)
        mean = np.average(x.astype(float), weights=weights)
        wanted = np.average((x.astype(float) - mean) ** 2, weights=weights)
        same(name, answer(jnp.asarray(x), jnp.asarray(weights)), np.float32(wanted), 1e-2)


@check
def quadratic_roots(answer: Answer) -> None:
    for a, b, c in ((1.0, -3.0, 2.0), (2.0, 10000.0, 1.0), (1.0, -20000.0, 3.0), (1.0, 0.0, -4.0), (-1.0, 1.0, 6.0)):
        wanted = np.sort(np.roots([a, b, c]))
        for way, function in (("", answer), (" under jit", jax.jit(answer))):
            got = function(jnp.float32(a), jnp.float32(b), jnp.float32(c))
            same(f"{a:g}, {b:g}, {c:g}{way}: shape", jnp.zeros_like(got), np.zeros(2))
            for name, one, other in zip(("smaller", "larger"), np.asarray(got, float), wanted):
                digits = "nan" if np.isnan(one) else f"{one:.4g}"
                problem = f"{a:g}, {b:g}, {c:g}{way}: the {name} root is {other:.4g}, not {digits}"
                require(np.isclose(one, other, rtol=2e-4), problem)


@check
def agrees(answer: Answer) -> None:
    def f(x: np.ndarray) -> float:
        require(isinstance(x, np.ndarray), f"f was called with a {type(x).__name__}, not with a NumPy array")
        return float((np.sin(x.astype(np.float32)) ** 2 + x.astype(np.float32)).sum(dtype=np.float32))

    def slope(x: np.ndarray) -> np.ndarray:
        return 2 * np.sin(x) * np.cos(x) + 1

    xs = [np.asarray(numbers(6, seed=seed)) for seed in range(4)]
    wrong = {
        "the wrong sign": lambda x: -slope(x),
        "a factor 1.1": lambda x: 1.1 * slope(x),
        "an element that is off by 0.3": lambda x: slope(x) + 0.3 * (np.arange(x.size) == 4),
        "elements in the wrong order": lambda x: slope(x)[::-1],
        "NaN": lambda x: slope(x) * np.nan,
    }
    for x in xs:
        before = x.copy()
        verdict = answer(f, slope, x)
        require(np.array_equal(x, before), "it changed x, which belongs to the caller")
        require(isinstance(verdict, bool | np.bool_), f"it gave a {type(verdict).__name__}, not a bool")
        require(verdict, "it calls the right slope wrong")
    for what, other in wrong.items():
        with warnings.catch_warnings(action="ignore"):
            passed = [bool(answer(f, other, x)) for x in xs]
        require(not any(passed), f"it lets a slope pass that has {what}")
