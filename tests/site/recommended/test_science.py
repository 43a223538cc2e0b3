"""Attacks on the answers about scientific computing: each against SciPy, the definition, or the exact solution."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree
from scipy import integrate, ndimage, optimize, stats

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, keys

Array = np.ndarray[Any, Any]
PAGE = "answers/science.md"


def made(anchor: str, *wanted: str) -> Any:
    """Return what an answer defines under these names: one of them, or a tuple of all."""
    found = program(f"{PAGE}#{anchor}", *wanted)
    return found[wanted[0]] if len(wanted) == 1 else tuple(found[name] for name in wanted)


@cache
def swinging() -> Any:
    """The last angle of the pendulum and its derivative, compiled."""
    last_angle = made("ode", "last_angle")
    return jax.jit(jax.value_and_grad(last_angle))


@slow_attack(f"{PAGE}#ode", damping=st.integers(0, 20).map(lambda n: n / 10))
def test_a_pendulum_swings_as_in_scipy(damping: float) -> None:
    def last(damping: float) -> float:
        found = integrate.solve_ivp(
            lambda t, y: [y[1], -np.sin(y[0]) - damping * y[1]], (0, 5), [1, 0], rtol=1e-9, atol=1e-9
        )
        return float(found.y[0, -1])

    angle, slope = swinging()(damping)
    assert_same(angle, last(damping), atol=1e-3)
    assert_same(slope, (last(damping + 1e-4) - last(damping - 1e-4)) / 2e-4, atol=1e-2)


@cache
def implicit() -> Any:
    """The implicit method of the answer, over its times."""
    step, times = made("stiff", "implicit_euler", "times")
    return jax.jit(lambda start: jax.lax.scan(step, start, times[:-1])[1]), np.asarray(times[1:], float)


@attack(f"{PAGE}#stiff", start=st.integers(-20, 20))
def test_an_implicit_method_follows_the_slow_solution(start: int) -> None:
    run, times = implicit()
    assert_same(run(float(start))[1:], np.cos(times)[1:], atol=1e-2)


@cache
def rosenbrock() -> Any:
    """The loss of the answer as SciPy calls it, compiled in float64."""
    loss = made("scipy-minimize", "loss")
    with jax.enable_x64(True):
        unflatten = ravel_pytree({"x": 0.0, "y": 0.0})[1]
        return loss, jax.jit(jax.value_and_grad(lambda v: loss(unflatten(v))))


@attack(f"{PAGE}#scipy-minimize", start=st.tuples(st.sampled_from([-1.2, 0, 2, np.float32(0.3)]), st.integers(-2, 3)))
def test_every_parameter_moves_whatever_number_it_starts_from(start: tuple[Any, int]) -> None:
    shows(f"{PAGE}#scipy-minimize", "jax.tree.map(lambda v: jnp.asarray(v, float), start)")
    shows(f"{PAGE}#scipy-minimize", "jax.jit(jax.value_and_grad(lambda v: loss(unflatten(v))))")
    with jax.enable_x64(True):
        floats = jax.tree.map(lambda v: jnp.asarray(v, float), {"x": start[0], "y": start[1]})
        flat, _ = ravel_pytree(floats)
        found = optimize.minimize(rosenbrock()[1], np.asarray(flat), jac=True, method="BFGS")
    assert_same(found.x, [1, 1], atol=1e-3)


def test_an_integer_that_cannot_move_would_be_found() -> None:
    loss, _ = rosenbrock()
    with jax.enable_x64(True):
        flat, unflatten = ravel_pytree({"x": -1.2, "y": 2})
        slope = jax.grad(lambda v: loss(unflatten(v)))(flat)
    assert slope[0] != 0 and slope[1] == 0


@cache
def descent() -> Any:
    """Sixty steps of L-BFGS, compiled."""
    found = program(f"{PAGE}#minimize-fails", "opt", "step", x=jnp.zeros(2))
    return jax.jit(lambda x: jax.lax.fori_loop(0, 60, found["step"], (x, found["opt"].init(x)))[0])


@slow_attack(f"{PAGE}#minimize-fails", start=st.tuples(st.integers(-4, 4), st.integers(-4, 4)))
def test_sixty_steps_of_lbfgs_find_the_minimum(start: tuple[int, int]) -> None:
    assert_same(descent()(jnp.array(start) / 2), [1, 1], atol=1e-2)


@cache
def fits() -> Any:
    """The fit of the answer, compiled, and its model."""
    fit, model = made("curve-fit", "fit", "model")
    return jax.jit(fit), model


@slow_attack(
    f"{PAGE}#curve-fit", size=st.integers(2, 40), decay=st.integers(1, 20),
    hole=st.sampled_from([None, np.nan, np.inf]), where=st.integers(0, 29),
)  # fmt: skip
def test_a_fit_finds_the_curve_or_nothing(size: int, decay: int, hole: float | None, where: int) -> None:
    fit, model = fits()
    t, truth = np.linspace(0, 4, 30, dtype=np.float32), np.array([size / 10, decay / 10])
    y = np.asarray(model(truth.astype(np.float32), t)).copy()
    if hole is not None:
        y[where] = hole
    found = fit(y, t, np.ones(2, np.float32))
    assert_same(found, truth if hole is None else [np.nan, np.nan], rtol=1e-2, atol=1e-2)


@cache
def kepler() -> tuple[Any, Any, Any]:
    """The solution of Kepler's equation, its derivative, and a cube root."""
    solve, root = made("root-finding", "solve", "root")
    cube = jax.jit(jax.value_and_grad(lambda a: root(lambda x, a: x**3 - a, 0.0, 10.0, a)))
    return jax.jit(jax.vmap(solve)), jax.jit(jax.vmap(jax.grad(solve))), cube


@attack(f"{PAGE}#root-finding", means=arrays((4,), "int8").map(lambda n: np.float32(np.abs(n) * np.pi / 9)))
def test_a_root_and_its_derivative_are_those_of_brentq(means: Array) -> None:
    solve, slope, cube = kepler()
    exact = np.array([optimize.brentq(lambda x, m=m: x - 0.5 * np.sin(x) - m, -1, 4) for m in means.astype(float)])
    assert_same(solve(means), exact)
    assert_same(slope(means), 1 / (1 - 0.5 * np.cos(exact)), atol=1e-3)
    value, derivative = cube(means[0] + 1)
    assert_same(value, np.cbrt(means[0] + 1))
    assert_same(derivative, (means[0] + 1) ** (-2 / 3) / 3, rtol=1e-3)


@cache
def integrals() -> Any:
    """The integral of a bell curve, with its derivatives with respect to the width and the bounds."""
    rule = made("integrate", "integrate")
    return jax.jit(
        jax.value_and_grad(lambda beta, low, high: rule(lambda x: jnp.exp(-beta * x**2), low, high), argnums=(0, 1, 2))
    )


@attack(
    f"{PAGE}#integrate", beta=st.integers(-2, 8), low=st.integers(-4, 4), high=st.integers(-4, 4),
    samples=arrays((5,), odd=False),
)  # fmt: skip
def test_integrals_and_their_derivatives_are_those_of_quad(beta: int, low: int, high: int, samples: Array) -> None:
    b, left, right = beta / 4, low / 2, high / 2
    value, (by_beta, by_low, by_high) = integrals()(b, left, right)
    assert_same(value, integrate.quad(lambda x: np.exp(-b * x**2), left, right)[0], rtol=1e-3)
    assert_same(by_beta, integrate.quad(lambda x: -(x**2) * np.exp(-b * x**2), left, right)[0], rtol=1e-3, atol=1e-3)
    assert_same(by_low, -np.exp(-b * left**2), rtol=1e-3, atol=1e-3)
    assert_same(by_high, np.exp(-b * right**2), rtol=1e-3, atol=1e-3)
    shows(f"{PAGE}#integrate", "jnp.trapezoid(jnp.exp(-(x**2)), x)")
    places = np.array([0, 1, 3, 4, 9], np.float32)
    assert_same(jnp.trapezoid(samples, places), integrate.trapezoid(samples.astype(float), places))


@cache
def curves() -> Any:
    """The spline of the answer, its derivative, and the spline of SciPy."""
    evaluate, spline = made("interpolate", "evaluate", "spline")
    return jax.jit(jax.vmap(jax.value_and_grad(evaluate))), spline


LINE = jax.jit(jnp.interp)


@attack(
    f"{PAGE}#interpolate", points=arrays((5,)).map(lambda x: np.where(np.abs(x) > 9, np.nan, x)),
    steps=arrays((4,), "int8"), heights=arrays((4,), odd=False),
)  # fmt: skip
def test_splines_and_lines_are_those_of_scipy_and_numpy(points: Array, steps: Array, heights: Array) -> None:
    evaluate, spline = curves()
    values, slopes = evaluate(points)
    assert_same(values, spline(points.astype(float)), rtol=1e-3, atol=1e-3)
    assert_same(slopes, spline(points.astype(float), 1), rtol=1e-3, atol=1e-3)
    x = np.cumsum(np.abs(steps) + 1).astype(np.float32)
    assert_same(LINE(points, x, heights), np.interp(points, x, heights))


@cache
def metropolis() -> Any:
    """One step of one chain, for many keys."""
    step = made("mcmc-chains", "step")
    return jax.jit(jax.vmap(step, in_axes=(None, 0)))


@slow_attack(f"{PAGE}#mcmc-chains", key=keys(), start=st.integers(-4, 10))
def test_a_step_of_a_chain_accepts_with_the_ratio_of_densities(key: jax.Array, start: int) -> None:
    several = jax.random.split(key, 500)
    moved = np.asarray(metropolis()(float(start), several), float)
    new = start + 2 * np.asarray(jax.vmap(lambda key: jax.random.normal(jax.random.split(key)[0]))(several), float)
    ratio = np.minimum(1, np.exp((start - 3) ** 2 / 2 - (new - 3) ** 2 / 2))
    accepted = moved != start
    assert_same(moved[accepted], new[accepted], atol=1e-3)
    assert accepted[ratio >= 1].all() and abs(accepted.mean() - ratio.mean()) < 0.1


@cache
def batches_of(size: int) -> Any:
    """All the draws of an estimate, compiled."""
    inside = made("monte-carlo", "inside")
    return jax.jit(jax.vmap(lambda i, key: inside(jax.random.fold_in(key, i), size), (0, None)))


@slow_attack(f"{PAGE}#monte-carlo", key=keys(), batches=st.sampled_from([2, 20]), size=st.sampled_from([1, 50]))
def test_an_estimate_is_that_of_all_its_draws(key: jax.Array, batches: int, size: int) -> None:
    estimate = made("monte-carlo", "estimate")
    value, error = estimate(key, batches=batches, size=size)
    means = np.asarray(batches_of(size)(np.arange(batches), key), float).mean(axis=1)
    assert_same(value, means.mean())
    assert_same(error, means.std(ddof=1) / np.sqrt(batches), atol=1e-3)


def of_given(anchor: str, function: str, *names: str) -> Any:
    """Return a function of an answer that takes what it reads from the page as more arguments."""
    found = program(f"{PAGE}#{anchor}", function, **dict.fromkeys(names))

    def called(params: jax.Array, *values: jax.Array) -> Any:
        found.update(zip(names, values, strict=True))
        return found[function](params)

    return called


@cache
def likelihood() -> Any:
    """The negative log likelihood of the answer with its gradient, for any data."""
    return jax.jit(jax.value_and_grad(of_given("distributions", "negative_log_likelihood", "data")))


@slow_attack(
    f"{PAGE}#distributions", data=arrays((20,), odd=False), shift=st.sampled_from([0, 50]),
    scale=st.sampled_from([0.01, 0.3, 10.0]),
)  # fmt: skip
def test_a_fitted_distribution_is_that_of_scipy(data: Array, shift: int, scale: float) -> None:
    if data.std() < 1:
        return  # the likelihood of equal numbers has no maximum
    values = (shift + scale * data).astype(np.float32)
    shows(f"{PAGE}#distributions", "fun = jax.jit(jax.value_and_grad(negative_log_likelihood))")
    shows(f"{PAGE}#distributions", "result = minimize(fun, np.zeros(2), jac=True)")
    with jax.enable_x64(True):
        result = optimize.minimize(likelihood(), np.zeros(2), args=(values,), jac=True)
    mean, spread = stats.norm.fit(values.astype(float))
    assert_same(result.x[0], mean, rtol=1e-3, atol=1e-2 * scale)
    assert_same(np.exp(result.x[1]), spread, rtol=1e-2)


@cache
def bounded() -> tuple[Any, Any]:
    """The two ways to stay positive, for a target each."""
    train, positive = made("bounds", "train", "positive")

    def loss(x: jax.Array, target: jax.Array) -> jax.Array:
        return ((x - target) ** 2).sum()

    def softplus(target: jax.Array) -> Any:
        return jax.nn.softplus(train(lambda z: loss(jax.nn.softplus(z), target), jnp.zeros(2)))

    def projected(target: jax.Array) -> Any:
        return train(lambda x: loss(x, target), jnp.ones(2), positive)

    return jax.jit(softplus), jax.jit(projected)


@slow_attack(f"{PAGE}#bounds", target=arrays((2,), odd=False).map(lambda x: x / 4))
def test_a_bounded_parameter_is_the_nearest_allowed_one(target: Array) -> None:
    softplus, projected = bounded()
    assert_same(projected(target), np.maximum(target, 0), atol=1e-2)
    found = np.asarray(softplus(target))
    assert (found > 0).all()
    assert_same(found, np.maximum(target, 0), atol=0.1)


MODES = {"constant": "constant", "edge": "nearest", "wrap": "wrap"}


@attack(f"{PAGE}#stencil", u=arrays(st.sampled_from([(1, 1), (1, 3), (4, 3)])), mode=st.sampled_from([*MODES]))
def test_a_stencil_is_that_of_scipy(u: Array, mode: str) -> None:
    expected = sum(
        np.asarray(ndimage.convolve1d(u.astype(float), [1.0, 0.0, 1.0], axis, mode=MODES[mode])) for axis in (0, 1)
    )  # not the Laplacian of SciPy, whose zeros times infinity would be NaN
    with np.errstate(invalid="ignore"):
        if np.isfinite(u).all():
            assert_same(stencil()(u, mode), expected - 4.0 * u)


@cache
def stencil() -> Any:
    """The Laplacian of the answer, compiled for each boundary condition."""
    return jax.jit(made("stencil", "laplacian"), static_argnames="mode")


@attack(f"{PAGE}#tiny-constants", wavelength=st.integers(1, 900), temperature=st.integers(1, 9000))
def test_constants_that_python_combines_keep_their_size(wavelength: int, temperature: int) -> None:
    shows(f"{PAGE}#tiny-constants", "jnp.float32(si[0] / si[3]) * (si[1] / si[2] / si[4])")
    h, c, k = 6.626e-34, 2.998e8, 1.381e-23
    length = wavelength * 1e-9
    assert_same(
        jnp.float32(h / k) * (c / length / temperature) / (h * c / (length * k * temperature)), np.float64(1), 1e-5
    )
    with jax.enable_x64(True):
        energy = made("tiny-constants", "energy")
        wide = energy(*(jnp.float64(v) for v in (h, c, length, k, temperature)))
        assert_same(wide / (h * c / (length * k * temperature)), 1, 1e-9, 0)


@cache
def line() -> Any:
    """The Hessian and the gradient of the answer, for any noise and data."""
    function = of_given("error-bars", "negative_log_likelihood", "noise", "y")
    return jax.jit(lambda *args: (jax.hessian(function)(*args), jax.grad(function)(*args)))


@attack(f"{PAGE}#error-bars", noise=st.sampled_from([0.01, 0.1, 2.0]), y=arrays((50,), odd=False))
def test_errors_of_a_line_are_those_of_least_squares(noise: float, y: Array) -> None:
    shows(f"{PAGE}#error-bars", "best = -jnp.linalg.solve(hessian, grad)", "covariance = jnp.linalg.inv(hessian)")
    hessian, grad = line()(np.zeros(2, np.float32), noise, y)
    matrix = np.stack([np.linspace(0, 1, 50), np.ones(50)], axis=1)
    best = -jnp.linalg.solve(hessian, grad)
    assert_same(best, np.linalg.lstsq(matrix, y.astype(float))[0], rtol=1e-2, atol=1e-2)
    covariance = jnp.linalg.inv(hessian)
    assert_same(covariance / noise**2, np.linalg.inv(matrix.T @ matrix), rtol=1e-2, atol=1e-3)
