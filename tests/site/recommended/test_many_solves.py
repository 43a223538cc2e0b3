"""Attacks on the answers about many, long and fast solves: exact solutions, SciPy, and NumPy in float64."""

from functools import cache
from math import factorial
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx  # type: ignore[import-untyped]
import numpy as np
import optimistix as optx
import pytest
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from tests.site.recommended.attack import program, slow_attack

PAGE = "answers/many-solves.md"
seeds = st.integers(0, 10_000)


@cache
def compiled(anchor: str, name: str, batched: bool = False) -> Any:
    """Return a function of an answer, compiled once for all inputs, and for a batch if that is asked for."""
    found = program(f"{PAGE}#{anchor}", name)[name]
    return jax.jit(jax.vmap(found) if batched else found)


@slow_attack(f"{PAGE}#own-steps", w=st.lists(st.sampled_from([0, 0.5, 1, 2, 4, 8, 16]), min_size=4, max_size=4))
def test_elements_of_a_batch_are_solved_as_if_they_were_alone(w: list[float]) -> None:
    y, steps = compiled("own-steps", "solve", True)(jnp.array(w, jnp.float32))
    np.testing.assert_allclose(y, np.cos(10 * np.array(w)), atol=2e-2)
    alone = np.array([compiled("own-steps", "solve")(jnp.float32(one))[1] for one in w])
    assert (abs(steps - alone) <= 2 + 0.05 * alone).all()
    assert compiled("own-steps", "solve")(jnp.array(w, jnp.float32))[1].shape == ()  # stacked: one count for all


@slow_attack(f"{PAGE}#steps-change", mus=st.lists(st.integers(0, 20), min_size=3, max_size=3))
def test_a_batch_agrees_with_single_solves_and_with_scipy(mus: list[int]) -> None:
    values = jnp.array(mus) / 4
    y, steps = compiled("steps-change", "solve", True)(values)
    for i, mu in enumerate(values.tolist()):
        one, own = compiled("steps-change", "solve")(values[i])
        exact = solve_ivp(
            lambda t, y, mu=mu: [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]], (0, 10), [2.0, 0.0], rtol=1e-9, atol=1e-9
        )
        assert abs(int(own) - int(steps[i])) <= 2 + 0.05 * int(own)
        np.testing.assert_allclose([one, y[i]], exact.y[0, -1], atol=3e-2)


@cache
def swings(name: str) -> Any:
    swing, solver = program(f"{PAGE}#long-oscillation", "swing")["swing"], getattr(diffrax, name)()
    return jax.jit(lambda tolerance, end: swing(solver, tolerance, end))


@slow_attack(f"{PAGE}#long-oscillation", end=st.integers(20, 1000), order=st.sampled_from(["Tsit5", "Dopri8"]))
def test_steps_grow_with_time_and_a_tight_tolerance_keeps_the_size(end: int, order: str) -> None:
    steps, size = swings(order)(1e-5, float(end))
    assert abs(size - 1) < 1e-2
    few, many = (10, 16) if order == "Tsit5" else (3, 8)
    assert few < steps < many + 2 * np.pi * 10 / end  # the first steps are short


@slow_attack(f"{PAGE}#terms", start=st.tuples(*[st.integers(-8, 8)] * 2), rate=st.integers(0, 12))
def test_the_batch_is_the_exact_decay(start: tuple[int, int], rate: int) -> None:
    solve = program(f"{PAGE}#terms", "solve")["solve"]
    fits = _decays(solve)
    one, other = fits(jnp.array([start], jnp.float32), rate / 4)
    left = start[0] * np.exp(-rate / 4)
    np.testing.assert_allclose([one[0, 0], other[0, 0]], [left, sum(start) - left], atol=1e-3)
    for wrong in (jnp.array(start, jnp.float32), tuple(map(float, start)), [*map(float, start), 1.0]):
        with pytest.raises(ValueError, match="same structure as `y0`"):
            solve(wrong, rate / 4)


@cache
def _decays(solve: Any) -> Any:
    return jax.jit(jax.vmap(lambda y0, rate: solve([y0[0], y0[1]], rate), in_axes=(0, None)))


@slow_attack(f"{PAGE}#sde-speed", seed=seeds, name=st.sampled_from(["tree", "unsafe"]))
def test_paths_have_the_moments_of_the_recursion(seed: int, name: str) -> None:
    ends = np.asarray(compiled("sde-speed", name, True)(jax.random.split(jax.random.key(seed), 2000)))
    shrink = 1 - 0.01
    mean = shrink**100
    spread = 0.5 * np.sqrt(0.01 * sum(shrink ** (2 * i) for i in range(100)))
    assert abs(ends.mean() - mean) < 6 * spread / np.sqrt(2000)
    assert abs(ends.std() / spread - 1) < 6 / np.sqrt(4000)


@slow_attack(f"{PAGE}#many-starts", w=st.integers(12, 96), noise=seeds, broken=st.booleans())
def test_the_best_of_many_starts_is_the_best_of_a_grid(w: int, noise: int, broken: bool) -> None:
    fit = program(f"{PAGE}#many-starts", "fit")["fit"]
    t = np.linspace(0.0, 10.0, 60)
    y = np.sin(w / 20 * t) + 0.05 * np.random.default_rng(noise).normal(size=60)
    y[3] = np.nan if broken else y[3]
    values, losses = fit(jnp.linspace(0.5, 5.0, 20), (jnp.asarray(t, jnp.float32), jnp.asarray(y, jnp.float32)))
    if broken:
        assert np.isinf(losses).all()
        return
    grid = np.linspace(0.3, 5.2, 20_000)
    each = ((np.sin(np.outer(grid, t)) - y) ** 2).sum(1)
    np.testing.assert_allclose(values[losses.argmin()], grid[each.argmin()], atol=2e-3)
    np.testing.assert_allclose(losses.min(), each.min(), rtol=1e-2, atol=1e-4)


@cache
def preconditioned(solver: Any, with_inverse: bool) -> Any:
    tag = lx.positive_semidefinite_tag

    @jax.jit
    def solve(diagonal: Any, off: Any, b: Any) -> Any:
        matrix = jnp.diag(diagonal) + jnp.diag(off, 1) + jnp.diag(off, -1)
        inverse = lx.TaggedLinearOperator(lx.DiagonalLinearOperator(1 / diagonal), tag)
        options = {"preconditioner": inverse} if with_inverse else {}
        found = lx.linear_solve(lx.MatrixLinearOperator(matrix, tag), b, solver, options=options, throw=False)
        return matrix, found.value, found.stats["num_steps"], found.result == lx.RESULTS.successful

    return solve


@slow_attack(f"{PAGE}#preconditioner", seed=seeds, large=st.integers(0, 3), name=st.sampled_from(["CG", "GMRES"]))
def test_a_preconditioned_solve_is_that_of_numpy_in_fewer_steps(seed: int, large: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    diagonal = 10 ** rng.uniform(0, large, 30)
    off = rng.uniform(-0.4, 0.4, 29)  # the diagonal dominates
    b = rng.normal(size=30)
    solver = getattr(lx, name)(rtol=1e-5, atol=1e-5, max_steps=500)
    inputs = [jnp.asarray(x, jnp.float32) for x in (diagonal, off, b)]
    matrix, value, steps, good = preconditioned(solver, True)(*inputs)
    assert good
    np.testing.assert_allclose(value, np.linalg.solve(np.asarray(matrix, float), b), atol=1e-3)
    *_, plain, _ = preconditioned(solver, False)(*inputs)
    assert steps <= plain + 3


@slow_attack(f"{PAGE}#optimistix-equinox", seed=st.integers(0, 10_000), slope=st.integers(-9, 9))
def test_a_line_fitted_as_a_model_is_that_of_least_squares(seed: int, slope: int) -> None:
    fit = program(f"{PAGE}#optimistix-equinox", "fit")["fit"]
    random = np.random.default_rng(seed)
    x = random.normal(size=32)
    y = slope * x + 1 + random.normal(size=32)
    line = eqx.nn.Linear("scalar", "scalar", key=jax.random.key(seed))
    found, result = fit(line, jnp.float32(x), jnp.float32(y))
    assert result == optx.RESULTS.successful
    np.testing.assert_allclose([found.weight.item(), found.bias.item()], np.polyfit(x, y, 1), rtol=1e-3, atol=1e-3)


@cache
def _bounded() -> Any:
    minimize = program(f"{PAGE}#optimistix-bounds", "minimize")["minimize"]
    return jax.jit(lambda best, stiff, *rest: minimize(lambda y: (stiff * (y - best) ** 2).sum(), *rest))


@slow_attack(f"{PAGE}#optimistix-bounds", seed=st.integers(0, 10_000), width=st.sampled_from([0.1, 1.0, 20.0]))
def test_a_minimum_within_bounds_is_the_nearest_point_of_the_box(seed: int, width: float) -> None:
    random = np.random.default_rng(seed)
    low = random.normal(size=2)
    high, best = low + width, low + width * random.uniform(-1, 2, 2)
    stiff = 10 ** random.uniform(0, 1, 2) / width**2
    start = low + width * random.uniform(0, 1, 2)
    y, _ = _bounded()(*map(jnp.float32, (best, stiff, start, low, high)))
    y = np.float64(y)
    assert (y >= low - 1e-5 * (1 + abs(low))).all() and (y <= high + 1e-5 * (1 + abs(high))).all()
    np.testing.assert_allclose((y - low) / width, np.clip((best - low) / width, 0, 1), atol=2e-2)


@slow_attack(f"{PAGE}#optimistix-progress", start=st.lists(st.integers(-3, 4), min_size=2, max_size=2))
def test_the_history_has_each_step_and_reaches_the_minimum(start: list[int]) -> None:
    names = program(f"{PAGE}#optimistix-progress", "solve", "history")
    names["history"].clear()
    sol = names["solve"](jnp.array(start, jnp.float32))
    jax.effects_barrier()
    assert len(names["history"]) == sol.stats["num_steps"]
    np.testing.assert_allclose(min(names["history"]), 2, atol=1e-4)
    np.testing.assert_allclose(sol.value, 1, atol=1e-2)


@slow_attack(f"{PAGE}#complex", seed=st.integers(0, 10_000), t1=st.sampled_from([0.1, 1.0, 3.0]))
def test_a_state_evolves_as_the_matrix_exponential_says(seed: int, t1: float) -> None:
    random = np.random.default_rng(seed)
    h, start = (random.normal(size=shape) + 1j * random.normal(size=shape) for shape in ((2, 2), (2,)))
    h += h.conj().T
    solve = program(f"{PAGE}#complex", "solve")["solve"]
    found = solve(jnp.complex64(start), jnp.complex64(h), t1)
    np.testing.assert_allclose(found, expm(-1j * h * t1) @ start, atol=2e-3)
    real = solve(jnp.float32(start.real), jnp.float32(h.real), t1)
    np.testing.assert_allclose(real, expm(-1j * h.real * t1) @ start.real, atol=2e-3)


@slow_attack(f"{PAGE}#held-control", gain=st.integers(-8, 8), dt=st.sampled_from([0.1, 0.5, 1.0]), y=st.integers(-5, 5))
def test_a_held_action_gives_the_exact_steps(gain: int, dt: float, y: int) -> None:
    simulate = program(f"{PAGE}#held-control", "simulate")["simulate"]
    found, actions = simulate(gain / 4, jnp.array([float(y)]), jnp.full(3, dt))
    now, decay = float(y), np.exp(-0.5 * dt)
    for state, action in zip(found[:, 0], actions[:, 0], strict=True):
        np.testing.assert_allclose(action, -gain / 4 * now, rtol=1e-3, atol=1e-5)
        now = decay * now - gain / 4 * now * (1 - decay) / 0.5
        np.testing.assert_allclose(state, now, rtol=1e-3, atol=1e-5)


@slow_attack(f"{PAGE}#delay", rate=st.integers(-6, 6), delay=st.sampled_from([0.1, 0.7, 1.0, 2.5]))
def test_a_delayed_decay_is_the_exact_one(rate: int, delay: float) -> None:
    solve = program(f"{PAGE}#delay", "solve")["solve"]
    run = _delayed(solve)
    found = run(rate / 4, delay)
    times = delay * np.arange(1, 5)
    exact = sum(((-rate / 4) ** k) * np.maximum(times - (k - 1) * delay, 0) ** k / factorial(k) for k in range(6))
    np.testing.assert_allclose(found, exact, rtol=2e-3, atol=2e-3)


@cache
def _delayed(solve: Any) -> Any:
    return jax.jit(lambda a, d: solve(lambda t, y, past: -a * past, jnp.ones_like, d, count=4))


@pytest.mark.slow
def test_the_gradient_of_a_delayed_decay_is_exact() -> None:
    solve = program(f"{PAGE}#delay", "solve")["solve"]

    def end(rate: Any, delay: Any) -> Any:
        wave = lambda t: jnp.stack([jnp.cos(t), jnp.sin(2 * t)])  # noqa: E731
        return solve(lambda t, y, past: -rate * past * jnp.array([1.0, 2.0]), wave, delay, count=1)[-1]

    # on the first piece, y(delay) = y(0) - rate * the integral of the history
    d = 0.8
    by_rate, by_delay = jax.jit(jax.jacrev(end, argnums=(0, 1)))(0.5, d)
    np.testing.assert_allclose(by_rate, [-np.sin(d), 1 - np.cos(2 * d)], atol=2e-3)
    np.testing.assert_allclose(by_delay, [-0.5 * np.cos(d), np.sin(2 * d)], atol=1e-2)


@slow_attack(f"{PAGE}#dae", y0=st.lists(st.integers(1, 40), min_size=2, max_size=2), mass=st.integers(2, 8))
def test_a_constraint_and_a_mass_matrix_give_what_scipy_gives(y0: list[int], mass: int) -> None:
    solve = program(f"{PAGE}#dae", "solve")["solve"]
    matrix = np.array([[1, 0.5], [0.25, mass / 4]])

    def slope(t: float, y: Any) -> Any:
        roots = [next(z.real for z in np.roots([1, 0, 1, -value]) if abs(z.imag) < 1e-9) for value in y]
        return np.linalg.solve(matrix, -np.array(roots))

    exact = solve_ivp(slope, (0, 2), np.array(y0) / 4, rtol=1e-8, atol=1e-8).y[:, -1]
    y, z = solve(jnp.array(y0) / 4, jnp.float32(matrix))
    np.testing.assert_allclose(y, exact, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(z + z**3, y, atol=1e-4)
    with pytest.raises(Exception, match="Nonfinite"):
        jax.block_until_ready(solve(jnp.array(y0) / 4, jnp.diag(jnp.array([1.0, 0.0]))))


@slow_attack(f"{PAGE}#large-roots", b=st.lists(st.integers(-20, 20), min_size=6, max_size=6))
def test_a_root_without_a_jacobian_and_its_gradient_are_exact(b: list[int]) -> None:
    found = program(f"{PAGE}#large-roots", "solve", "loss")
    right = np.array(b) / 4
    u = np.zeros(6)
    near = (np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0)) / 2
    for _ in range(60):
        u = right - 0.5 * np.tanh(near @ u)  # a contraction
    jacobian = np.eye(6) + 0.5 * (1 - np.tanh(near @ u) ** 2)[:, None] * near
    slope, root = _gradient(found["loss"])(jnp.float32(right))
    np.testing.assert_allclose(root, u, atol=2e-3)
    np.testing.assert_allclose(slope, np.linalg.solve(jacobian.T, 2 * u), atol=1e-2)


@cache
def _gradient(loss: Any) -> Any:
    return jax.jit(jax.grad(loss, has_aux=True))


@pytest.mark.slow
def test_only_both_solvers_keep_the_jacobian_out_of_memory() -> None:
    linear, n = lx.GMRES(rtol=1e-4, atol=1e-4), 500
    implicit = optx.ImplicitAdjoint

    def used(newton: Any, adjoint: Any, grad: bool) -> int:
        def total(b: Any) -> Any:
            residual = lambda u, b: u + 0.5 * jnp.tanh(jnp.roll(u, 1)) - b  # noqa: E731
            return optx.root_find(residual, newton, b, b, adjoint=adjoint).value.sum()

        run: Any = jax.jit(jax.grad(total) if grad else total).lower(jnp.ones(n)).compile()
        return int(run.memory_analysis().temp_size_in_bytes)

    iterative: Any = optx.Newton(1e-4, 1e-4, linear_solver=linear)
    matrix = 4 * n * n
    assert used(optx.Newton(1e-4, 1e-4), implicit(), False) > matrix
    assert used(iterative, implicit(), False) < matrix / 5
    assert used(iterative, implicit(), True) > matrix
    assert used(iterative, implicit(linear_solver=linear), True) < matrix / 5


@slow_attack(f"{PAGE}#blocks", seed=seeds, m=st.integers(1, 3))
def test_a_tuple_of_vectors_solves_as_the_block_matrix_does(seed: int, m: int) -> None:
    random = np.random.default_rng(seed)
    root, a = random.normal(size=(4, 4)), random.normal(size=(m, 4))
    h, right = root @ root.T + np.eye(4), (random.normal(size=4), random.normal(size=m))
    whole = np.block([[h, a.T], [a, np.zeros((m, m))]])
    if np.linalg.cond(whole) > 1e3:
        return
    exact = np.linalg.solve(whole, np.concatenate(right))
    solve = program(f"{PAGE}#blocks", "solve")["solve"]
    found = solve(*jax.tree.map(jnp.float32, (h, a, right)))
    np.testing.assert_allclose(np.concatenate(found), exact, rtol=1e-2, atol=1e-2)
    structure = jax.eval_shape(lambda: jax.tree.map(jnp.float32, right))
    blocks = jax.tree.map(jnp.float32, ((h, a.T), (a, np.zeros((m, m)))))
    operator = lx.PyTreeLinearOperator(blocks, structure)
    same = lx.linear_solve(operator, jax.tree.map(jnp.float32, right)).value
    np.testing.assert_allclose(np.concatenate(same), exact, rtol=1e-2, atol=1e-2)
    assert (np.linalg.eigvalsh(whole) < 0).any()
