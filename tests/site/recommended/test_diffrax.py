"""Fits and solutions with Diffrax, of made-up patients, against matrix exponentials in float64."""

from collections import Counter
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from scipy.linalg import expm

from tests.site.recommended.attack import examples, program, search

PAGE = "science/diffrax.md"
Array = np.ndarray[Any, Any]
EDGES, RATES = np.array([0.0, 0.1, 10.0, 10.1]), np.array([3000.0, 0.0, 1000.0, 0.0])
parameters = st.tuples(st.floats(0.5, 10), st.floats(0.5, 40), st.floats(3, 30))
times = st.lists(st.floats(0, 24), min_size=9, max_size=9).map(sorted)


def exact(p: Any, at: Any) -> Array:
    """Both concentrations at these times: from one edge to the next, the equation is linear."""
    clearance, exchange, volume = np.asarray(p, float)
    rows = [[-(clearance + exchange) / volume, exchange / volume], [exchange / 30, -exchange / 30]]
    found = []
    for t in at:
        y = np.zeros(2)
        for start, end, rate in zip(EDGES, [*EDGES[1:], np.inf], RATES, strict=True):
            if t > start:
                affine = np.array([[*rows[0], rate / volume], [*rows[1], 0], [0, 0, 0]])
                y = (expm(affine * (min(t, end) - start)) @ np.append(y, 1))[:2]
        found.append(y)
    return np.array(found)


@cache
def names() -> dict[str, Any]:
    """The page's functions, compiled."""
    found = program(PAGE, "solve", "diffrax")
    solve, diffrax = found["solve"], found["diffrax"]

    @jax.jit
    def met(p: Any, at: Any) -> Any:
        return solve(p, diffrax.SaveAt(ts=at), 1e-8, steps=at).ys

    def implicit(p: Any, at: Any) -> Any:
        return solve(p, diffrax.SaveAt(ts=at), 1e-8, steps=at, solver=diffrax.Kvaerno5()).ys

    @jax.jit
    def slope(p: Any, at: Any) -> Any:
        return jax.jacfwd(lambda p: solve(p, diffrax.SaveAt(ts=at), adjoint=diffrax.ForwardMode()).ys)(p)

    return {**found, "met": met, "implicit": jax.jit(implicit), "slope": slope}


@examples
def test_a_solver_told_of_the_jumps_gives_what_exponentials_give(count: int) -> None:
    def holds(p: tuple[float, ...], at: list[float]) -> None:
        with jax.enable_x64(True):
            for way in ("met", "implicit"):
                got = names()[way](jnp.array(p), jnp.array(at))
                np.testing.assert_allclose(got, exact(p, at), atol=2e-5)

    search(count, holds, p=parameters, at=times)


@examples
def test_slopes_of_a_fit_are_those_of_the_exact_solution(count: int) -> None:
    def holds(p: tuple[float, ...], at: list[float]) -> None:
        with jax.enable_x64(True):
            got = np.asarray(names()["slope"](jnp.array(p), jnp.array(at)))
        for i, size in enumerate(p):
            step = np.eye(3)[i] * size * 1e-4
            wanted = (exact(np.array(p) + step, at) - exact(np.array(p) - step, at)) / (2e-4 * size)
            np.testing.assert_allclose(got[:, :, i], wanted, atol=1e-3 * max(1.0, abs(wanted).max()))

    search(count, holds, p=parameters, at=times)


def test_a_batch_works_for_those_who_have_finished() -> None:
    diffrax, seen = names()["diffrax"], Counter[float]()

    def field(t: Any, y: Any, rate: Any) -> Any:
        jax.debug.callback(lambda rate: seen.update([float(rate)]), rate)
        return -rate * y

    def steps(rate: Any) -> Any:
        pid = diffrax.PIDController(rtol=1e-3, atol=1e-3)
        solved = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Heun(), 0.0, 1.0, 0.01, jnp.ones(()), rate, stepsize_controller=pid
        )
        return solved.stats["num_steps"]

    easy, hard = jax.vmap(steps)(jnp.array([1.0, 300.0]))
    jax.effects_barrier()
    assert hard > 5 * easy
    assert seen[1.0] == seen[300.0] >= hard


def test_saved_times_and_dense_output_interpolate_alike() -> None:
    diffrax, at = names()["diffrax"], jnp.linspace(0.0, 1.0, 7)
    save = diffrax.SaveAt(ts=at, dense=True)
    solved = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: -y), diffrax.Tsit5(), 0.0, 1.0, 0.3, 1.0, saveat=save, max_steps=8
    )
    np.testing.assert_allclose(solved.ys, jax.vmap(solved.evaluate)(at), rtol=1e-6)


def test_two_solves_have_the_slope_of_a_switch() -> None:
    """The repair of science/adjoints.md: one solve ends at a time that is a parameter, and the next begins there."""
    diffrax = names()["diffrax"]

    def part(y: Any, begin: Any, end: Any, speed: float) -> Any:
        term = diffrax.ODETerm(lambda t, y, speed: speed * y)
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), begin, end, 0.1, y, speed).ys[0]

    @jax.jit
    @jax.value_and_grad
    def both(k: Any) -> Any:
        return part(part(1.0, 0.0, k, 0.0), k, 1.0, 2.0)

    for k in (0.05, 0.3, 0.8):  # at rest until k, then growing at rate 2
        np.testing.assert_allclose(both(k), np.exp(2 * (1 - k)) * np.array([1, -2]), rtol=1e-3)
