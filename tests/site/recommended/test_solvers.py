"""Attacks on the answers about Diffrax, Lineax, Optimistix and BlackJAX: exact solutions, NumPy and SciPy."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import blackjax  # type: ignore[import-untyped]
import diffrax
import jax
import jax.numpy as jnp
import lineax as lx  # type: ignore[import-untyped]
import numpy as np
import optimistix as optx
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import program, slow_attack
from tests.site.recommended.test_samplers import chains, r_hat

ANSWERS = "answers/solvers.md"
BLACKJAX = "answers/blackjax.md"
small = st.integers(-8, 8)
PID = diffrax.PIDController(rtol=1e-5, atol=1e-6)


@cache
def defined(anchor: str, name: str, *wrappers: Callable[..., Any]) -> Any:
    """Return what an answer defines; of a function, wrapped and compiled."""
    page = (
        BLACKJAX if anchor in {"warm-up", "stuck-chain", "several-modes", "chain-axis", "warm-up-memory"} else ANSWERS
    )
    found = program(f"{page}#{anchor}", name)[name]
    for wrap in wrappers:
        found = wrap(found)
    return found


@slow_attack(
    f"{ANSWERS}#jump-state",
    doses=st.lists(small, min_size=4, max_size=4),
    gaps=st.lists(st.integers(0, 6), min_size=4, max_size=4),
    rate=st.integers(0, 8).map(lambda n: n / 4),
)
def test_doses_decay_exactly_and_differentiably(doses: list[int], gaps: list[int], rate: float) -> None:
    """Times may be equal; the derivative is that of the sum of exponentials."""
    before = defined("jump-state", "before_each_dose", jax.jit)
    slope = defined("jump-state", "before_each_dose", lambda f: jax.jit(jax.jacrev(f)))
    times = np.concatenate([[0], np.cumsum(gaps)]).astype("float32")
    ages = np.maximum(times[1:, None] - times[:-1], 0)
    given = np.tril(np.broadcast_to(doses, (4, 4)))
    args = (rate, jnp.array(doses, jnp.float32), jnp.array(times))
    np.testing.assert_allclose(before(*args), (given * np.exp(-rate * ages)).sum(1), atol=2e-3)
    np.testing.assert_allclose(slope(*args), (-ages * given * np.exp(-rate * ages)).sum(1), atol=2e-2)


@slow_attack(f"{ANSWERS}#continue", position=small, speed=small)
def test_a_continued_solve_takes_the_steps_of_one_solve(position: int, speed: int) -> None:
    ten_steps, names = defined("continue", "ten_steps"), defined("continue", "names")
    y0 = jnp.array([position, speed], jnp.float32)
    found, steps = ten_steps(0.0, y0, {}), 0
    while found.result == diffrax.RESULTS.max_steps_reached:
        steps += int(found.stats["num_steps"])
        assert found.stats["num_steps"] == 10
        found = ten_steps(found.ts[-1], found.ys[-1], {name: getattr(found, name) for name in names})
    steps += int(found.stats["num_steps"])
    field = diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -y[0]]))
    whole = diffrax.diffeqsolve(field, diffrax.Tsit5(), 0.0, 20.0, None, y0, stepsize_controller=PID)
    assert abs(steps - int(whole.stats["num_steps"])) <= 1
    np.testing.assert_allclose(found.ys, whole.ys, atol=1e-4)
    exact = np.array([[np.cos(20), np.sin(20)], [-np.sin(20), np.cos(20)]]) @ [position, speed]
    np.testing.assert_allclose(found.ys[-1], exact, atol=5e-3)


def test_after_a_jump_the_solver_has_to_be_told() -> None:
    save = diffrax.SaveAt(t1=True, solver_state=True, controller_state=True, made_jump=True)
    solve = partial(
        diffrax.diffeqsolve,
        diffrax.ODETerm(lambda t, y, args: -y),
        diffrax.Tsit5(),
        dt0=None,
        stepsize_controller=PID,
        saveat=save,
    )
    first = solve(t0=0.0, t1=1.0, y0=1.0)
    states = {"solver_state": first.solver_state, "controller_state": first.controller_state}
    start = first.ys[-1] + 10
    error = [
        abs(float(solve(t0=1.0, t1=2.0, y0=start, made_jump=jump, **states).ys[-1] - start * np.exp(-1)))
        for jump in (first.made_jump, True)
    ]
    assert error[1] < 1e-4
    assert error[0] > 1e-3


def test_backward_in_time_the_times_to_save_fall() -> None:
    solve = partial(
        diffrax.diffeqsolve, diffrax.ODETerm(lambda t, y, args: -2 * y), diffrax.Tsit5(), 1.0, 0.0, -0.1, 1.0
    )
    times = jnp.linspace(1, 0, 5)
    found = solve(saveat=diffrax.SaveAt(ts=times)).ys
    np.testing.assert_allclose(found, np.exp(2 * (1 - np.asarray(times))), rtol=1e-3)
    with pytest.raises(RuntimeError, match="increasing or decreasing"):
        solve(saveat=diffrax.SaveAt(ts=times[::-1]))


@partial(jax.jit, static_argnums=0)
def _level(level: Any, hours: Any, pump: Any) -> Any:
    return diffrax.diffeqsolve(
        diffrax.ODETerm(level),
        diffrax.Tsit5(),
        0.0,
        5.0,
        0.1,
        0.0,
        args=pump,
        stepsize_controller=diffrax.ClipStepSizeController(PID, jump_ts=hours),
    ).ys[0]


@slow_attack(f"{ANSWERS}#measured-data", pump=st.lists(small, min_size=6, max_size=6))
def test_held_data_give_the_exact_level(pump: list[int]) -> None:
    exact = 0.0
    for value in pump[:-1]:
        exact = 2 * value + (exact - 2 * value) * np.exp(-0.5)
    level, hours = defined("measured-data", "level"), defined("measured-data", "hours")
    np.testing.assert_allclose(_level(level, hours, jnp.array(pump, jnp.float32)), exact, atol=2e-3)


@partial(jax.jit, static_argnums=0)
def _stiff(rate: Any, k: Any) -> Any:
    found = diffrax.diffeqsolve(
        diffrax.ODETerm(rate), diffrax.Kvaerno5(), 0.0, 10.0, 1e-3, 0.0, args=k, max_steps=1000, throw=False,
        stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-4),
    )  # fmt: skip
    return found.ys[0], found.result == diffrax.RESULTS.successful


@slow_attack(f"{ANSWERS}#max-steps", k=st.integers(20, 1000))
def test_the_implicit_solver_is_near_the_slow_solution(k: int) -> None:
    y, good = _stiff(defined("max-steps", "rate"), float(k))
    exact = (k * k * np.cos(10) + k * np.sin(10)) / (k * k + 1)  # what was there at the start has decayed
    assert good
    np.testing.assert_allclose(y, exact, atol=5e-3)


@slow_attack(
    f"{ANSWERS}#throw-false",
    starts=st.lists(st.sampled_from([-3, -1, 0.25, 0.5, 0.75, 1.5, 2, 9]), min_size=3, max_size=3),
)
def test_the_flag_is_true_where_the_solution_exists(starts: list[float]) -> None:
    y, good = defined("throw-false", "solve")(jnp.array(starts))
    assert [bool(g) for g in good] == [start < 1 for start in starts]
    for start, value in zip(starts, y, strict=True):
        if start < 1:
            np.testing.assert_allclose(value, start / (1 - start), rtol=5e-3)


@jax.jit
def _decay(k: Any, at: Any) -> Any:
    curve = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, k: -k * y), diffrax.Tsit5(), 0.0, 1.0, None, 1.0, args=k, max_steps=64,
        stepsize_controller=PID, saveat=diffrax.SaveAt(ts=at[None], dense=True),
    )  # fmt: skip
    return curve.evaluate(at), curve.ys[0], curve.evaluate(1.5)


@slow_attack(f"{ANSWERS}#save-at", f"{ANSWERS}#step-size", k=st.integers(-4, 9), at=st.integers(0, 16))
def test_saved_and_dense_values_are_those_of_the_solution(k: int, at: int) -> None:
    dense, saved, outside = _decay(float(k), jnp.float32(at / 16))
    exact = np.exp(-k * at / 16)
    np.testing.assert_allclose([dense, saved], exact, rtol=1e-3, atol=1e-4)
    assert np.isnan(outside)


@slow_attack(
    f"{ANSWERS}#event", height=st.integers(1, 100)
)  # from about 176, float32 cannot reach the tolerance, which raises
def test_a_ball_lands_when_it_should(height: int) -> None:
    time, slope = defined("event", "landing", jax.value_and_grad, jax.jit)(float(height))
    np.testing.assert_allclose(time, (2 * height / 9.81) ** 0.5, rtol=1e-3)
    np.testing.assert_allclose(slope, (2 * 9.81 * height) ** -0.5, rtol=1e-3)


@cache
def slopes() -> list[Callable[..., Any]]:
    last = defined("adjoint", "last")
    return [
        jax.jit(mode(lambda k, a=adjoint: last(k, a)))
        for mode, adjoint in [
            (jax.grad, diffrax.RecursiveCheckpointAdjoint()),
            (jax.jacfwd, diffrax.ForwardMode()),
            (jax.grad, diffrax.DirectAdjoint()),
            (jax.jacfwd, diffrax.DirectAdjoint()),
        ]
    ]


@slow_attack(f"{ANSWERS}#adjoint", k=st.integers(-5, 10))
def test_each_adjoint_returns_the_derivative(k: int) -> None:
    for slope in slopes():
        np.testing.assert_allclose(slope(float(k)), -np.exp(-k), rtol=1e-2, atol=1e-3)


@slow_attack(
    f"{ANSWERS}#lineax-solver",
    rows=st.lists(st.lists(small, min_size=2, max_size=2), min_size=3, max_size=3),
    y=st.lists(small, min_size=3, max_size=3),
)
def test_least_squares_are_those_of_numpy(rows: list[list[int]], y: list[int]) -> None:
    matrix, right = np.array(rows, np.float32), np.array(y, np.float32)
    exact, _, rank, _ = np.linalg.lstsq(matrix.astype(float), right.astype(float), rcond=1e-6)
    found = lx.linear_solve(lx.MatrixLinearOperator(jnp.asarray(matrix)), jnp.asarray(right), lx.SVD(), throw=False)
    np.testing.assert_allclose(found.value, exact, atol=2e-2)
    if rank == 2:
        found = lx.linear_solve(lx.MatrixLinearOperator(jnp.asarray(matrix)), jnp.asarray(right), lx.QR(), throw=False)
        np.testing.assert_allclose(found.value, exact, atol=2e-2)


@slow_attack(
    f"{ANSWERS}#many-right-hand-sides",
    f"{ANSWERS}#matrix-free",
    rows=st.lists(st.lists(small, min_size=3, max_size=3), min_size=3, max_size=3),
    sides=st.lists(st.lists(small, min_size=3, max_size=3), min_size=2, max_size=2),
)
def test_solves_are_those_of_numpy(rows: list[list[int]], sides: list[list[int]]) -> None:
    matrix = np.array(rows, np.float32)
    positive = matrix @ matrix.T + np.eye(3, dtype=np.float32)
    exact = np.linalg.solve(positive.astype(float), np.array(sides, float).T).T
    np.testing.assert_allclose(_factored(positive, jnp.array(sides, jnp.float32)), exact, atol=1e-2)
    x, good = _conjugate(positive, jnp.array(sides[0], jnp.float32))
    if good:
        np.testing.assert_allclose(x, exact[0], atol=5e-2)


@jax.jit
def _factored(matrix: Any, sides: Any) -> Any:
    operator, solver = lx.MatrixLinearOperator(matrix), lx.LU()
    state = solver.init(operator, options={})
    return jax.vmap(lambda b: lx.linear_solve(operator, b, solver, state=state).value)(sides)


@jax.jit
def _conjugate(matrix: Any, b: Any) -> Any:
    operator = lx.FunctionLinearOperator(lambda x: matrix @ x, jax.eval_shape(lambda: b), lx.positive_semidefinite_tag)
    found = lx.linear_solve(operator, b, lx.CG(rtol=1e-6, atol=1e-6, max_steps=50), throw=False)
    return found.value, found.result == lx.RESULTS.successful


@slow_attack(f"{ANSWERS}#optimistix-steps", squares=st.lists(st.integers(-9, 99), min_size=3, max_size=3))
def test_a_root_that_is_flagged_good_is_one(squares: list[int]) -> None:
    roots, good = defined("optimistix-steps", "solve", jax.vmap, jax.jit)(jnp.array(squares, jnp.float32))
    for square, root, flag in zip(squares, roots, good, strict=True):
        assert flag == (square >= 0) or square == 0  # a double root converges slowly
        if flag:
            np.testing.assert_allclose(abs(root), square**0.5, atol=1e-2)


@slow_attack(f"{ANSWERS}#least-squares", height=st.integers(1, 8), rate=st.integers(2, 12))
def test_the_fit_finds_the_parameters(height: int, rate: int) -> None:
    t = jnp.linspace(0.0, 4.0, 20)
    found = defined("least-squares", "fit", jax.jit)(t, height * jnp.exp(-rate / 10 * t))
    np.testing.assert_allclose([found["height"], found["rate"]], [height, rate / 10], rtol=2e-2)


@jax.jit
def _replaced(a: Any, b: Any) -> Any:
    tight: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}
    least: Any = optx.minimise(
        lambda z, args: jnp.sum((z - args) ** 2), optx.BFGS(**tight), jnp.zeros(2), jnp.stack([a, b])
    )
    halves: Any = optx.fixed_point(lambda x, args: x / 2 + args, optx.FixedPointIteration(**tight), jnp.zeros(()), a)
    return least.value, halves.value


@slow_attack(f"{ANSWERS}#jaxopt", a=small, b=small)
def test_what_replaces_jaxopt_finds_the_exact_solutions(a: int, b: int) -> None:
    least, halves = _replaced(float(a), float(b))
    np.testing.assert_allclose(least, [a, b], atol=1e-3)
    np.testing.assert_allclose(halves, 2 * a, atol=1e-2)


@slow_attack(f"{BLACKJAX}#stuck-chain", z=st.integers(-6, 3))
def test_the_free_density_is_that_of_the_logarithm(z: int) -> None:
    density, slope = defined("stuck-chain", "free", jax.value_and_grad, jax.jit)(float(z))
    np.testing.assert_allclose(density, 2 * z - np.exp(z), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(slope, 2 - np.exp(z), rtol=1e-4, atol=1e-4)
    outside = blackjax.nuts.init(jnp.array(float(-1 - abs(z))), lambda x: jnp.where(x > 0, jnp.log(x) - x, -jnp.inf))
    assert np.isneginf(outside.logdensity)


@partial(jax.jit, static_argnums=0)
def _path(path: Any, key: Any) -> Any:
    noise = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(), key=key)
    return path(key), jnp.exp(0.1 - 0.02 + 0.2 * noise.evaluate(0.0, 1.0))


@slow_attack(f"{ANSWERS}#sde", seed=st.integers(0, 9999))
def test_a_path_is_the_exact_one_of_its_noise(seed: int) -> None:
    found, exact = _path(defined("sde", "path"), jax.random.key(seed))
    np.testing.assert_allclose(found, exact, rtol=2e-2)


@jax.jit
def _warmed(seed: Any, center: Any) -> Any:
    key, warm_key = jax.random.split(jax.random.key(seed))

    def log_density(x: Any) -> Any:
        return -0.5 * (((x["a"] - center) / 0.1) ** 2 + (x["b"] / 10) ** 2)

    warm_up = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, tuned), _ = warm_up.run(warm_key, {"a": jnp.zeros(()), "b": jnp.zeros(())}, num_steps=500)
    nuts = blackjax.nuts(log_density, **tuned)

    def step(state: Any, key: Any) -> Any:
        state, _ = nuts.step(key, state)
        return state, state.position

    return jax.lax.scan(step, state, jax.random.split(key, 1000))[1]


@slow_attack(f"{BLACKJAX}#warm-up", seed=st.integers(0, 9999), center=small)
def test_draws_after_the_warm_up_have_the_mean_and_the_widths(seed: int, center: int) -> None:
    draws = _warmed(seed, float(center))
    np.testing.assert_allclose(draws["a"].mean(), center, atol=0.05)
    np.testing.assert_allclose([draws["a"].std(), draws["b"].std()], [0.1, 10], rtol=0.3)


@jax.jit
def _tempered(seed: Any, measured: Any) -> Any:
    def log_likelihood(x: Any) -> Any:
        return jax.scipy.stats.norm.logpdf(x**2, measured, 1.0)

    smc = program(f"{BLACKJAX}#several-modes", "smc", log_likelihood=log_likelihood)["smc"]
    key, start_key = jax.random.split(jax.random.key(seed))

    def step(carry: Any) -> Any:
        state, key = carry
        key, now = jax.random.split(key)
        return smc.step(now, state)[0], key

    start = smc.init(1.0 + 3.0 * jax.random.normal(start_key, (4000,)))
    state, _ = jax.lax.while_loop(lambda carry: carry[0].tempering_param < 1, step, (start, key))
    return state.particles, state.weights


@slow_attack(f"{BLACKJAX}#several-modes", seed=st.integers(0, 9999), root=st.sampled_from([2.0, 3.0, 4.0]))
def test_weighted_particles_have_the_shares_and_the_width_of_the_posterior(seed: int, root: float) -> None:
    x = np.linspace(-12, 12, 24001)
    exact = np.exp(-0.5 * ((x - 1) / 3) ** 2 - 0.5 * (x**2 - root**2) ** 2)
    exact /= exact.sum()
    particles, weights = (np.asarray(a, float) for a in _tempered(seed, root**2))

    def found(points: Any, mass: Any) -> tuple[float, float]:
        center = (mass * points**2).sum()
        return (mass * (points > 0)).sum(), np.sqrt((mass * (points**2 - center) ** 2).sum())

    share, width = found(particles, weights)
    exact_share, exact_width = found(x, exact)
    assert abs(share - exact_share) < 0.09
    assert abs(width / exact_width - 1) < 0.08


@slow_attack(f"{BLACKJAX}#chain-axis", seed=st.integers(0, 9999), apart=st.sampled_from([0.0, 0.5, 10.0]))
def test_diagnostics_told_the_axes_are_those_of_chains(seed: int, apart: float) -> None:
    right = defined("chain-axis", "right")
    x = chains(seed, 0.5)[..., :1] + np.float32(apart) * np.arange(4, dtype=np.float32)[:, None, None]
    draws = jnp.asarray(x[..., 0].T)  # (draw, chain)
    found = _diagnosed(draws, *right.values())
    np.testing.assert_allclose(found[0], r_hat(x)[0], rtol=2e-3)
    np.testing.assert_allclose(found[1], blackjax.diagnostics.ess_bulk(jnp.asarray(x[..., 0])), rtol=1e-3)


@partial(jax.jit, static_argnums=(1, 2))
def _diagnosed(draws: Any, chain_axis: int, sample_axis: int) -> Any:
    axes = {"chain_axis": chain_axis, "sample_axis": sample_axis}
    return blackjax.diagnostics.rhat(draws, **axes), blackjax.diagnostics.ess_bulk(draws, **axes)


@partial(jax.jit, static_argnums=2)
def _adapted(seed: Any, scale: Any, lean: Any) -> Any:
    options = {} if lean is None else {"adaptation_info_fn": lean}
    warm_up = blackjax.window_adaptation(blackjax.nuts, lambda x: -0.5 * ((x / scale) ** 2).sum(), **options)
    return warm_up.run(jax.random.key(seed), jnp.zeros(3), 100)[0]


@slow_attack(f"{BLACKJAX}#warm-up-memory", seed=st.integers(0, 9999), scale=st.sampled_from([0.1, 1.0, 10.0]))
def test_a_warm_up_that_keeps_nothing_ends_as_the_other(seed: int, scale: float) -> None:
    lean = defined("warm-up-memory", "lean")
    for one, other in zip(*(jax.tree.leaves(_adapted(seed, scale, kept)) for kept in (None, lean)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3)


@slow_attack(f"{ANSWERS}#steady-state", inflow=st.integers(1, 24).map(lambda n: n / 4))
def test_a_solve_that_settles_ends_near_the_square_of_the_inflow(inflow: float) -> None:
    time, event, level, exact = defined("steady-state", "settle")(inflow)
    assert event and time < 1e4
    np.testing.assert_allclose(exact, inflow**2, rtol=1e-3)
    assert abs(inflow - float(level) ** 0.5) <= 1e-3 * (1 + float(level)) + 1e-5  # the tolerance of the event


@slow_attack("answers/blackjax.md#progress-bar", seed=st.integers(0, 99))
def test_the_warm_up_finds_the_widths(seed: int) -> None:
    adapt = _adapt()
    state, found = adapt(jax.random.key(seed))
    widths = np.sqrt(found["inverse_mass_matrix"])
    assert 0.5 < widths[0] < 2 and 5 < widths[1] < 20 and found["step_size"] > 0
    assert np.isfinite(state.position).all()


@cache
def _adapt() -> Any:
    return jax.jit(program("answers/blackjax.md#progress-bar", "adapt")["adapt"])
