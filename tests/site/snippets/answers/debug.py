"""Answers to the exercises on printing, NaN, numerics and testing."""

# Learners' code, with learners' habits:
# mypy: ignore-errors
# ruff: noqa: B023, N801, PLR0124, PLW0108, RET503, RET504, SIM110
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify, io_callback

from tests.site.snippets.answers import right, wrong

# --- announce ------------------------------------------------------------------------------------------------------


@right("announce")
def _(x):
    jax.debug.print("largest: {largest}", largest=jnp.max(x))
    return x


@right("announce")
def _(x):
    jax.debug.callback(lambda top: print(f"largest: {top}"), x.max())
    return x


@right("announce")
@jax.jit
def _(x):
    jax.debug.print("largest: {}", jnp.sort(x.ravel())[-1])
    return x


@wrong("announce", r"prints 'largest: \[-9. -4.\]', expected")
def _(x):
    jax.debug.print("largest: {}", jnp.sort(x)[-1])
    return x


@right("announce")
def _(x):
    io_callback(lambda top: print("largest:", top), None, x.max(), ordered=True)
    return x


@right("announce")
def _(x):
    jax.debug.callback(lambda x: print("largest:", np.max(x)), x)
    return x


@wrong("announce", "under jit, .* it prints 'largest: .*Tracer")
def _(x):
    print("largest:", x.max())
    return x


@wrong("announce", "without jit, .* it prints")
def _(x):
    jax.debug.print("largest: {}", x)
    return x


@wrong("announce", "prints nothing")
def _(x):
    jax.pure_callback(lambda top: print("largest:", top), None, x.max())
    return x


@wrong("announce", "under jit")
def _(x):
    jax.debug.print("largest: " + str(x.max()))
    return x


@wrong("announce", "returned None; is a return missing")
def _(x):
    jax.debug.print("largest: {}", x.max())


@wrong("announce", "it prints 'largest: 8', expected 'largest: 7.5'")
def _(x):
    jax.debug.print("largest: {:.0f}", x.max())
    return x


@wrong("announce", "raised ConcretizationTypeError|raised TracerArray|raised")
def _(x):
    print(f"largest: {float(x.max())}")
    return x


@right("announce")
def _(x):
    jax.debug.callback(lambda largest: print("largest: ", largest), x.max())  # print adds a space of its own
    return x


@right("announce")
def _(x):
    jax.debug.print("largest: {:.2f}", jnp.max(x))
    return x


@wrong("announce", "prints 'largest: 9.0', expected 'largest: -2.25'")
def _(x):
    jax.debug.print("largest: {}", jnp.abs(x).max())
    return x


@wrong("announce", "prints 'largest: 0.0', expected 'largest: -2.25'")
def _(x):
    jax.debug.print("largest: {}", x.max(initial=0))
    return x


@wrong("announce", r"prints 'largest: \[-2.25 -3. +\]', expected")
def _(x):
    jax.debug.print("largest: {}", x.max(axis=0))
    return x


@wrong("announce", "prints 'largest: 7', expected 'largest: 7.5'")
def _(x):
    jax.debug.print("largest: {}", x.max().astype(int))
    return x


@wrong("announce", "4099")
def _(x):
    jax.debug.print("largest: {}", x.astype(jnp.float16).max())
    return x


# --- culprit -------------------------------------------------------------------------------------------------------


@right("culprit")
def _(stages, x):
    for i, stage in enumerate(stages):
        x = stage(x)
        if np.isnan(np.asarray(x)).any():
            return i
    return -1


@right("culprit")
def _(stages, x):
    for i in range(len(stages)):
        x = stages[i](x)
        if (x != x).any():
            return i
    return -1


@right("culprit")
def _(stages, x, number=0):
    def look(stages, x, number):
        if not stages:
            return -1
        x = stages[0](x)
        return number if bool(jnp.any(jnp.isnan(x))) else look(stages[1:], x, number + 1)

    return look(stages, x, 0)


@right("culprit")
def _(stages, x):
    i = -1
    while i + 1 < len(stages):
        i += 1
        x = stages[i](x)
        if jnp.isnan(x).sum() > 0:
            return i
    return -1


@right("culprit")
def _(stages, x):
    for i, stage in enumerate(stages):
        x = jax.block_until_ready(stage(x))
        if jnp.isnan(jnp.max(x)):
            return i
    return -1


@wrong("culprit", r"a result of \[inf, -inf\]: gave 0, expected -1")
def _(stages, x):
    for i, stage in enumerate(stages):
        x = stage(x)
        if jnp.isnan(x.sum()):
            return i
    return -1


@wrong("culprit", "a stage was called after the first one")
def _(stages, x):
    results = []
    for stage in stages:
        x = stage(x)
        results.append(bool(jnp.isnan(x).any()))
    return results.index(True) if True in results else -1


@wrong("culprit", "a stage that computes a NaN and drops it: gave 1, expected -1")
def _(stages, x):
    with jax.debug_nans(True):
        for i, stage in enumerate(stages):
            try:
                x = stage(x)
            except FloatingPointError:
                return i
    return -1


@wrong("culprit", "gave 0, expected|gave 0, expected 1")
def _(stages, x):
    for i, stage in enumerate(stages):
        if jnp.isnan(stage(x)).any():
            return i
    return 0


@wrong("culprit", "gave 2, expected 1|called after")
def _(stages, x):
    for i, stage in enumerate(stages):
        x = stage(x)
        if jnp.isnan(x).any():
            return i + 1
    return -1


@wrong("culprit", "returned None; is a return missing")
def _(stages, x):
    for i, stage in enumerate(stages):
        x = stage(x)
        if jnp.isnan(x).any():
            return i


@wrong("culprit", r"log three times, \[4, 2\]: gave 0, expected 2")
def _(stages, x):
    for stage in stages:
        x = stage(x)
        if jnp.isnan(x).any():
            return stages.index(stage)
    return -1


# --- log_mean_exp --------------------------------------------------------------------------------------------------


@right("log_mean_exp")
def _(x):
    top = x.max()
    return top + jnp.log(jnp.mean(jnp.exp(x - top)))


@right("log_mean_exp")
def _(x):
    top = jax.lax.stop_gradient(x.max())
    return jnp.log(jnp.exp(x - top).sum()) + top - jnp.log(len(x))


@right("log_mean_exp")
def _(x):
    return jax.scipy.special.logsumexp(x, b=1 / x.size)


@right("log_mean_exp")
def _(x):
    return jax.nn.logsumexp(x - np.log(x.size))


@right("log_mean_exp")
def _(x):
    return reduce(jnp.logaddexp, list(x)) - np.log(len(x)).astype(np.float32)


@wrong("log_mean_exp", r"\[0, 1, 2\]: gave")
def _(x):
    return jax.nn.logsumexp(x) / x.size


@wrong("log_mean_exp", r"\[1000, 1000\]: gave inf")
def _(x):
    return jnp.log(jnp.exp(x).mean())


@wrong("log_mean_exp", r"\[0, 400, 0, 0\]: gave inf")
def _(x):
    return x.mean() + jnp.log(jnp.mean(jnp.exp(x - x.mean())))


@wrong("log_mean_exp", r"\[0, 1, 2\]: gave")
def _(x):
    return jnp.log(jnp.mean(jnp.exp(x - 1000)) + 1e-30) + 1000


@wrong("log_mean_exp", r"gradient at")
def _(x):
    top = x.max()
    return top + jax.lax.stop_gradient(jnp.log(jnp.mean(jnp.exp(x - top))))


@wrong("log_mean_exp", r"\[0, 1, 2\]: gave")
def _(x):
    return jnp.mean(x)


# --- distances -----------------------------------------------------------------------------------------------------


@right("distances")
def _(points):
    gaps = points[:, None] - points
    same = (gaps == 0).all(-1)
    norms = jnp.linalg.norm(jnp.where(same[..., None], 1.0, gaps), axis=-1)
    return jnp.where(same, 0.0, norms)


@jax.custom_jvp
def length(v):
    return jnp.linalg.norm(v)


@length.defjvp
def _(primals, tangents):
    size = length(*primals)
    return size, jnp.vdot(primals[0], tangents[0]) / jnp.where(size > 0, size, 1.0)


@right("distances")
def _(points):
    return jax.vmap(jax.vmap(lambda a, b: length(a - b), (None, 0)), (0, None))(points, points)


@right("distances")
def _(points):
    def one(a, b):
        square = jnp.sum((a - b) ** 2)
        positive = square > 0
        return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)

    return jnp.stack([jnp.stack([one(a, b) for b in points]) for a in points])


@right("distances")
def _(points):
    squares = jnp.sum((points[:, None] - points[None, :]) ** 2, -1)
    zero = squares == 0
    return jnp.sqrt(squares + zero) * (1 - zero)


@right("distances")
def _(points):
    def one(gap):
        return jax.lax.cond(jnp.any(gap != 0), jnp.linalg.norm, lambda gap: 0.0 * jnp.sum(gap), gap)

    return jax.lax.map(lambda a: jax.lax.map(lambda b: one(a - b), points), points)


@wrong("distances", "two equal points: the gradient: gave")
def _(points):
    gaps = points[:, None] - points
    eye = jnp.eye(len(points))
    return jnp.linalg.norm(gaps + eye[..., None], axis=-1) * (1 - eye)


@wrong("distances", "the gradient: gave .*nan")
def _(points):
    gaps = points[:, None] - points
    return jnp.where(jnp.eye(len(points), dtype=bool), 0.0, jnp.linalg.norm(gaps, axis=-1))


@wrong("distances", "the diagonal holds")
def _(points):
    squares = jnp.sum((points[:, None] - points) ** 2, -1)
    return jnp.sqrt(jnp.maximum(squares, 1e-12))


@wrong("distances", "0.0001|the diagonal")
def _(points):
    squares = jnp.sum((points[:, None] - points) ** 2, -1)
    return jnp.sqrt(squares + 1e-12) - 1e-6


@wrong("distances", "points around 10000")
def _(points):
    sizes = jnp.sum(points**2, axis=1)
    squares = jnp.maximum(sizes[:, None] + sizes - 2 * points @ points.T, 0)
    safe = jnp.where(squares > 1e-4, squares, 1.0)
    return jnp.where(squares > 1e-4, jnp.sqrt(safe), 0.0)


@wrong("distances", "gave")
def _(points):
    squares = jnp.sum((points[:, None] - points) ** 2, axis=-1)
    return squares


@wrong("distances", r"the gradient: gave .*nan|gave .*0\\.")
def _(points):
    squares = jnp.sum((points[:, None] - points) ** 2, axis=-1)
    return squares**0.5


# --- checked_sqrt --------------------------------------------------------------------------------------------------


@right("checked_sqrt")
def _(x):
    return checkify.checkify(jnp.sqrt, errors=checkify.nan_checks)(x)


@right("checked_sqrt")
@checkify.checkify
def _(x):
    checkify.check(jnp.min(x) >= 0, "negative")
    return jnp.sqrt(x)


@right("checked_sqrt")
def _(x):
    def f(x):
        checkify.check(~jnp.any(x < 0), "some element is negative")
        return x**0.5

    error, roots = jax.jit(checkify.checkify(f))(x)
    return error, roots


@right("checked_sqrt")
def _(x):
    return checkify.checkify(jnp.sqrt, errors=checkify.float_checks | checkify.user_checks)(x)


@jax.tree_util.register_pytree_node_class
class Negative:
    def __init__(self, any_negative):
        self.any_negative = any_negative

    def throw(self):
        if self.any_negative:
            raise ValueError("negative")

    def tree_flatten(self):
        return (self.any_negative,), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


@right("checked_sqrt")
def _(x):
    return Negative((x < 0).any()), jnp.sqrt(x)


@wrong("checked_sqrt", "error is a .*which has no throw")
def _(x):
    error, roots = checkify.checkify(jnp.sqrt, errors=checkify.nan_checks)(x)
    return roots, error


@wrong("checked_sqrt", "error.throw\\(\\) raised")
@checkify.checkify
def _(x):
    checkify.check(jnp.all(x > 0), "not positive")
    return jnp.sqrt(x)


@wrong("checked_sqrt", "raised nothing")
@checkify.checkify
def _(x):
    checkify.check(jnp.any(x >= 0), "negative")
    return jnp.sqrt(x)


@wrong("checked_sqrt", "raised")
def _(x):
    error, roots = checkify.checkify(jnp.sqrt, errors=checkify.nan_checks)(x)
    error.throw()
    return error, roots


@wrong("checked_sqrt", "raised nothing")
def _(x):
    return checkify.checkify(lambda x: jnp.sqrt(jnp.maximum(x, 0)), errors=checkify.nan_checks)(x)


@wrong("checked_sqrt", "raised TracerBoolConversionError")
def _(x):
    return Negative(bool((x < 0).any())), jnp.sqrt(x)


@right("checked_sqrt")
def _(x):
    def one(x):
        checkify.check(x >= 0, "negative")
        return jnp.sqrt(x)

    return checkify.checkify(jax.vmap(one))(x)


@wrong("checked_sqrt", r"\[9.0, -4.0, 1.0\]: error.throw\(\) raised nothing")
@checkify.checkify
def _(x):
    checkify.check(x[-1] >= 0, "negative")
    return jnp.sqrt(x)


@wrong("checked_sqrt", r"\[9.0, -4.0, 1.0\]: error.throw\(\) raised nothing")
@checkify.checkify
def _(x):
    checkify.check(x.sum() >= 0, "negative")
    return jnp.sqrt(x)


@wrong("checked_sqrt", r"\[-1e-30, 4.0\]: error.throw\(\) raised nothing")
@checkify.checkify
def _(x):
    checkify.check(jnp.all(x > -1e-6), "negative")
    return jnp.sqrt(x)


@wrong("checked_sqrt", r"\[-0.0, 4.0\]: error.throw\(\) raised")
@checkify.checkify
def _(x):
    checkify.check(~jnp.signbit(x).any(), "negative")
    return jnp.sqrt(x)


# --- weighted_variance ---------------------------------------------------------------------------------------------


@right("weighted_variance")
def _(x, weights):
    w = weights / weights.sum()
    mean = (w * x).sum()
    return (w * (x - mean) ** 2).sum()


@right("weighted_variance")
def _(x, weights):
    return jnp.cov(x, aweights=weights, ddof=0)


@right("weighted_variance")
def _(x, weights):
    moved = x - x[0]
    mean = jnp.average(moved, weights=weights)
    return jnp.average(moved**2, weights=weights) - mean**2


@right("weighted_variance")
def _(x, weights):
    total = weights.sum()
    deviation = x - weights @ x / total
    return weights @ deviation**2 / total


@right("weighted_variance")
@jax.jit
def _(x, weights):
    mean = jnp.average(x, weights=weights)
    rest = x - mean
    rest = rest - jnp.average(rest, weights=weights)
    return jnp.average(rest**2, weights=weights)


@wrong("weighted_variance", "gave")
def _(x, weights):
    return jnp.average((x - x.mean()) ** 2, weights=weights)


@wrong("weighted_variance", "gave")
def _(x, weights):
    mean = jnp.average(x, weights=weights)
    return jnp.mean((x - mean) ** 2)


@wrong("weighted_variance", "numbers around 10000: gave")
def _(x, weights):
    w = weights / weights.sum()
    return w @ x**2 - (w @ x) ** 2


@wrong("weighted_variance", r"weights \[3, 1\]: gave")
def _(x, weights):
    mean = (weights * x).sum()
    return (weights * (x - mean) ** 2).sum()


@wrong("weighted_variance", r"weights \[3, 1\]: gave")
def _(x, weights):
    mean = jnp.average(x, weights=weights)
    return jnp.sqrt(jnp.average((x - mean) ** 2, weights=weights))


@wrong("weighted_variance", r"weights \[3, 1\]: gave")
def _(x, weights):
    mean = jnp.average(x, weights=weights)
    return (weights * (x - mean) ** 2).sum() / (weights.sum() - 1)


# --- quadratic_roots -----------------------------------------------------------------------------------------------


@right("quadratic_roots")
def _(a, b, c):
    root = jnp.sqrt(b * b - 4 * a * c)
    q = -0.5 * (b + jnp.copysign(root, b))
    one, two = q / a, c / q
    return jnp.stack([jnp.minimum(one, two), jnp.maximum(one, two)])


@right("quadratic_roots")
def _(a, b, c):
    root = jnp.sqrt(b**2 - 4 * a * c)
    sign = jnp.where(b >= 0, 1.0, -1.0)
    large = (-b - sign * root) / (2 * a)
    small = c / (a * large)
    return jnp.sort(jnp.array([large, small]))


@right("quadratic_roots")
def _(a, b, c):
    root = jnp.sqrt(b**2 - 4 * a * c)
    down, up = -b - root, -b + root
    usual = jnp.stack([down, up]) / (2 * a)
    other = 2 * c / jnp.stack([up, down])
    return jnp.sort(jnp.where(jnp.abs(jnp.stack([down, up])) >= jnp.abs(b), usual, other))


@right("quadratic_roots")
def _(a, b, c):
    def plus(_):
        q = -(b + jnp.sqrt(b**2 - 4 * a * c)) / 2
        return jnp.stack([q / a, c / q])

    def minus(_):
        q = -(b - jnp.sqrt(b**2 - 4 * a * c)) / 2
        return jnp.stack([q / a, c / q])

    return jnp.sort(jax.lax.cond(b >= 0, plus, minus, None))


@right("quadratic_roots")
@jax.jit
def _(a, b, c):
    half = b / (2 * a)
    rest = c / a
    far = -half - jnp.where(half < 0, -1, 1) * jnp.sqrt(half**2 - rest)
    return jnp.sort(jnp.stack([far, rest / far]))


@wrong("quadratic_roots", "the larger root")
def _(a, b, c):
    root = jnp.sqrt(b**2 - 4 * a * c)
    return jnp.sort(jnp.array([(-b - root) / (2 * a), (-b + root) / (2 * a)]))


@wrong("quadratic_roots", "1, 0, -4: the")
def _(a, b, c):
    q = -(b + jnp.sign(b) * jnp.sqrt(b**2 - 4 * a * c)) / 2
    return jnp.sort(jnp.stack([q / a, c / q]))


@wrong("quadratic_roots", "TracerBoolConversionError")
def _(a, b, c):
    root = jnp.sqrt(b**2 - 4 * a * c)
    q = -(b + root) / 2 if b >= 0 else -(b - root) / 2
    return jnp.sort(jnp.stack([q / a, c / q]))


@wrong("quadratic_roots", "the smaller root")
def _(a, b, c):
    q = -(b + jnp.where(b < 0, -1, 1) * jnp.sqrt(b**2 - 4 * a * c)) / 2
    return jnp.stack([q / a, c / q])


@wrong("quadratic_roots", "root")
def _(a, b, c):
    q = -(b + jnp.where(b < 0, -1, 1) * jnp.sqrt(b**2 - 4 * a * c)) / 2
    return jnp.sort(jnp.stack([q, c / q]))


@wrong("quadratic_roots", r"the result is built as \(an array, an array\)")
def _(a, b, c):
    root = jnp.sqrt(b**2 - 4 * a * c)
    q = -(b + jnp.where(b < 0, -root, root)) / 2
    return jnp.minimum(q / a, c / q), jnp.maximum(q / a, c / q)


@wrong("quadratic_roots", "returned None; is a return missing")
def _(a, b, c):
    root = jnp.sqrt(b**2 - 4 * a * c)
    q = -(b + jnp.where(b < 0, -root, root)) / 2
    jnp.sort(jnp.stack([q / a, c / q]))


@right("quadratic_roots")
def _(a, b, c):
    return jnp.sort(jnp.roots(jnp.array([a, b, c]), strip_zeros=False).real)


@wrong("quadratic_roots", "1, 300, 1: the larger root")
def _(a, b, c):
    s = jnp.sqrt(b * b - 4 * a * c)
    naive = jnp.stack([(-b - s) / (2 * a), (-b + s) / (2 * a)])
    return jnp.sort(jnp.where(jnp.abs(b) > 1000 * jnp.abs(a), jnp.stack([-b / a, -c / b]), naive))


@wrong("quadratic_roots", "1, 1, 0.009: the larger root")
def _(a, b, c):
    s = jnp.sqrt(b * b - 4 * a * c)
    roots = jnp.stack([(-b - s) / (2 * a), (-b + s) / (2 * a)])
    return jnp.sort(jnp.where(jnp.abs(roots) < 0.01, -c / b, roots))


# --- agrees --------------------------------------------------------------------------------------------------------


@right("agrees")
def _(f, slope, x):
    h = 5e-3
    numeric = np.zeros_like(x)
    for i in range(x.size):
        step = np.zeros_like(x)
        step[i] = h
        numeric[i] = (f(x + step) - f(x - step)) / (2 * h)
    return bool(np.all(np.abs(numeric - slope(x)) < 0.02))


@right("agrees")
def _(f, slope, x):
    h = 1e-2
    numeric = jnp.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size, dtype=x.dtype)])
    return jnp.allclose(slope(x), numeric, rtol=1e-2, atol=1e-2)


@right("agrees")
def _(f, slope, x):
    g = np.asarray(slope(x))
    for i, e in enumerate(np.eye(x.size)):
        numeric = (8 * (f(x + 0.02 * e) - f(x - 0.02 * e)) - (f(x + 0.04 * e) - f(x - 0.04 * e))) / 0.24
        if not abs(numeric - g[i]) <= 0.01 + 0.01 * abs(numeric):
            return False
    return True


@right("agrees")
def _(f, slope, x):
    h = np.float32(1e-2)
    numeric = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size, dtype=np.float32)]
    try:
        np.testing.assert_allclose(slope(x), numeric, rtol=0.02, atol=0.02)
    except AssertionError:
        return False
    return True


@right("agrees")
def _(f, slope, x):
    numeric = np.array([np.subtract(f(x + d), f(x - d)) / 0.02 for d in 0.01 * np.eye(len(x))])
    return np.isclose(numeric, slope(x), 0.01, 0.01).all()


@wrong("agrees", "raised|f was called with")
def _(f, slope, x):
    return bool(jnp.allclose(jax.grad(f)(x), slope(x)))


@wrong("agrees", "calls the right slope wrong")
def _(f, slope, x):
    h = np.sqrt(np.finfo(float).eps)
    numeric = [(f(x + h * e) - f(x)) / h for e in np.eye(x.size)]
    return np.allclose(numeric, slope(x), rtol=1e-2, atol=1e-2)


@wrong("agrees", "calls the right slope wrong|changed x")
def _(f, slope, x):
    h = 1e-2
    numeric = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    return np.allclose(numeric, slope(x))


@wrong("agrees", "it changed x")
def _(f, slope, x):
    h, numeric = 1e-2, []
    for i in range(x.size):
        x[i] += h
        up = f(x)
        x[i] -= 2 * h
        down = f(x)
        x[i] += h
        numeric.append((up - down) / (2 * h))
    x[:] = np.round(x, 4)
    return np.allclose(numeric, slope(x), rtol=1e-2, atol=1e-2)


@wrong("agrees", "lets a slope pass that has")
def _(f, slope, x):
    d = 1e-2 * np.ones_like(x)
    return bool(abs((f(x + d) - f(x - d)) / 2e-2 - slope(x).sum()) < 0.05)


@wrong("agrees", "lets a slope pass that has")
def _(f, slope, x):
    h = 1e-2
    numeric = np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)])
    return bool(np.dot(numeric, slope(x)) > 0.9 * np.linalg.norm(numeric) * np.linalg.norm(slope(x)))


@wrong("agrees", "lets a slope pass that has NaN")
def _(f, slope, x):
    h = 1e-2
    for i, e in enumerate(np.eye(x.size)):
        if abs((f(x + h * e) - f(x - h * e)) / (2 * h) - slope(x)[i]) > 0.02:
            return False
    return True


@wrong("agrees", "not a bool")
def _(f, slope, x):
    h = 1e-2
    numeric = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    return np.isclose(numeric, slope(x), rtol=1e-2, atol=1e-2)
