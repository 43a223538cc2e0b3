"""Attacks on the answers about samplers and simulated environments: exact densities, and loops in plain Python."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.experimental import io_callback
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from scipy.special import expit, gammaln
from scipy.stats import beta, gamma, norm

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.strategies import arrays

PAGE = "answers/sampling-and-simulation.md"
seeds = st.integers(0, 9999)
small = st.integers(-8, 8)


@cache
def defined(anchor: str, name: str) -> Any:
    return program(f"{PAGE}#{anchor}", name)[name]


@cache
def compiled(anchor: str, name: str) -> Any:
    return jax.jit(defined(anchor, name))


@attack(f"{PAGE}#constraints", rate=st.integers(-40, 15), share=st.integers(-40, 40))
def test_the_free_density_has_the_exact_determinant(rate: int, share: int) -> None:
    a, b = rate / 5, share / 5
    found = compiled("constraints", "free")({"rate": a, "share": b})
    density = gamma.logpdf(np.exp(a), 2.0) + beta.logpdf(expit(b), 2.0, 3.0)
    np.testing.assert_allclose(found, density + a + np.log(expit(b)) + np.log(expit(-b)), rtol=1e-3, atol=1e-3)
    assert gammaln(2.0) == 0  # the two densities have the scale that SciPy has


@attack(f"{PAGE}#new-data", seed=seeds, data=arrays((4,), "float32", odd=False), shift=st.sampled_from([0, 50, -1000]))
def test_the_mean_of_the_draws_is_that_of_the_posterior(seed: int, data: Any, shift: int) -> None:
    data = data + np.float32(shift)
    exact = data.sum() / (len(data) + 0.01)
    found = defined("new-data", "posterior_mean")(jax.random.key(seed), data)
    np.testing.assert_allclose(found, exact, atol=0.25, rtol=1e-3)


@slow_attack(f"{PAGE}#one-slow-chain", seed=seeds)
def test_a_chain_among_others_moves_as_it_does_alone(seed: int) -> None:
    together, alone, nuts = steps_of_nuts()
    keys = jax.random.split(jax.random.key(seed), 4)
    starts = jax.vmap(nuts.init)(jax.random.normal(jax.random.key(seed + 1), (4, 2)) * jnp.array([1.0, 0.1]))
    states, lengths = together(keys, starts)
    for i in range(4):
        state, length = alone(keys[i], jax.tree.map(lambda leaf, i=i: leaf[i], starts))
        assert length == lengths[i]
        np.testing.assert_allclose(state.position, states.position[i], rtol=1e-3, atol=1e-3)


@cache
def steps_of_nuts() -> Any:
    nuts = defined("one-slow-chain", "nuts")

    def step(key: Any, state: Any) -> Any:
        state, info = nuts.step(key, state)
        return state, info.num_integration_steps

    return jax.jit(jax.vmap(step)), jax.jit(step), nuts


@cache
def thinned() -> Any:
    names = program(f"{PAGE}#thinning", "kept", "hmc")
    return (
        names["hmc"],
        jax.jit(names["hmc"].step),
        jax.jit(lambda start, keys: jax.lax.scan(names["kept"], start, keys)),
    )


@attack(f"{PAGE}#thinning", seed=seeds, every=st.sampled_from([1, 2]))
def test_thinned_draws_and_averages_are_those_of_a_plain_loop(seed: int, every: int) -> None:
    hmc, step, thin = thinned()
    keys = jax.random.split(jax.random.key(seed), (2, every))
    state, total, some = hmc.init(jnp.ones(100)), np.zeros(100), []
    (_, found_total), found = thin((state, jnp.zeros(100)), keys)
    for row in keys:
        for key in row:
            state, _ = step(key, state)
            total += np.asarray(state.position, float) ** 2
        some.append(state.position[:2])
    np.testing.assert_allclose(found, some, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found_total, total, rtol=1e-3, atol=1e-4)


@attack(
    f"{PAGE}#reset-cost",
    seed=seeds,
    size=st.sampled_from([1, 3]),
    done=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_a_state_is_from_the_pool_where_an_episode_is_over(seed: int, size: int, done: list[bool]) -> None:
    pool, states = 100.0 + np.arange(3 * size).reshape(size, 3), -np.arange(15.0).reshape(5, 3)
    keys = jax.random.split(jax.random.key(seed), 5)
    found = np.asarray(picked()(states, np.array(done), keys, pool))
    for old, over, new in zip(states, done, found, strict=True):
        assert new.tolist() in pool.tolist() if over else new.tolist() == old.tolist()
    many = picked()(np.zeros((64, 3)), np.ones(64, bool), jax.random.split(keys[0], 64), pool)
    assert {tuple(row) for row in np.asarray(many).tolist()} == {tuple(row) for row in pool.tolist()}


@cache
def picked() -> Any:
    return jax.jit(jax.vmap(defined("reset-cost", "from_pool"), (0, 0, 0, None)))


@cache
def played(anew: bool) -> Any:
    return jax.jit(lambda key: defined("same-start", "play")(key, anew))


@attack(f"{PAGE}#same-start", seed=seeds)
def test_episodes_start_anew_or_where_the_first_did(seed: int) -> None:
    key, reset = jax.random.key(seed), compiled("same-start", "reset")
    first_key, rest = jax.random.split(key)
    first, keys = float(reset(first_key)["x"]), jax.random.split(rest, 20)
    np.testing.assert_allclose(played(False)(key), [first] * 4, rtol=1e-5)
    np.testing.assert_allclose(played(True)(key), [reset(keys[i])["x"] for i in (4, 9, 14, 19)], rtol=1e-5)


@attack(f"{PAGE}#final-observation", seed=seeds, x=small, time=st.integers(0, 6), action=small, reward=small)
def test_the_target_uses_the_state_before_the_reset(seed: int, x: int, time: int, action: int, reward: int) -> None:
    key = jax.random.key(seed)
    seen, later, final, terminated, truncated = compiled("final-observation", "step")(key, x / 2, time, action / 2)
    assert float(final) == (x + action) / 2
    assert bool(terminated) == (abs(x + action) > 6)
    assert bool(truncated) == (abs(x + action) <= 6 and time >= 4)
    over = bool(terminated) or bool(truncated)
    assert int(later) == (0 if over else time + 1)
    assert 0 <= seen <= 1 if over else seen == final
    found = defined("final-observation", "target")(reward, final, terminated, lambda s: 3 * s)
    np.testing.assert_allclose(found, reward + (0 if terminated else 0.9 * 3 * (x + action) / 2), rtol=1e-5)


@attack(
    f"{PAGE}#episode-returns",
    rewards=arrays((6, 2), "float32", odd=False),
    over=arrays((6, 2), "bool"),
)
def test_returns_are_the_sums_of_whole_episodes_across_rollouts(rewards: Any, over: Any) -> None:
    running, ended = jnp.zeros(2), []
    for part in (slice(0, 3), slice(3, 6)):  # two rollouts
        running, some = defined("episode-returns", "returns")(rewards[part], over[part], running)
        ended.append(some)
    totals, expected = np.zeros(2), np.zeros((6, 2))
    for t in range(6):
        for e in range(2):
            totals[e] += rewards[t, e]
            if over[t, e]:
                expected[t, e], totals[e] = totals[e], 0
    np.testing.assert_allclose(np.concatenate(ended), expected, atol=1e-4)
    np.testing.assert_allclose(running, totals, atol=1e-4)


@cache
def slopes() -> Any:
    loop, fixed = (defined("solver-gradient", name) for name in ("until_converged", "fixed"))
    return jax.jit(lambda f: (loop(f), jax.jacfwd(loop)(f), jax.grad(fixed)(f)))


@attack(f"{PAGE}#solver-gradient", force=st.integers(-1000, 1000))
def test_both_derivatives_are_the_implicit_one(force: int) -> None:
    [x] = [root.real for root in np.roots([1, 0, 1, -force / 10]) if abs(root.imag) < 1e-9]
    value, forward, reverse = slopes()(force / 10)
    np.testing.assert_allclose(value, x, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose([forward, reverse], 1 / (1 + 3 * x**2), rtol=2e-2)


@attack(f"{PAGE}#not-compiled", x=arrays((8,), "float32", odd=False), actions=arrays((20, 8), "float32", odd=False))
def test_a_rollout_is_the_loop_of_numpy(x: Any, actions: Any) -> None:
    exact = x.astype(float)
    for action in actions:
        exact = exact + 0.1 * action - 0.05 * np.sin(exact)
    np.testing.assert_allclose(defined("not-compiled", "rollout")(x, actions), exact, rtol=1e-3, atol=1e-3)


@attack(f"{PAGE}#python-environment", seed=seeds, x=st.sampled_from([-0.25, 0.0, 0.25]))
def test_actions_have_the_chances_of_their_scores(seed: int, x: float) -> None:
    names = program(f"{PAGE}#python-environment", "policy", "weights")
    seen = jnp.full((4000, 1), x)
    action = np.asarray(names["policy"](names["weights"], seen, jax.random.key(seed)))
    assert abs(action.mean() - expit(-8 * x)) < 0.05
    assert {0, 1} >= {*action.tolist()}


def test_an_ordered_callback_in_a_scan_steps_as_the_loop_does() -> None:
    names = program(f"{PAGE}#python-environment", "Corridors", "policy", "weights")
    found = []
    keys = jax.random.split(jax.random.key(1), 20)
    for compiled_loop in (False, True):
        envs = names["Corridors"]()
        seen, _ = envs.reset(seed=3)
        if compiled_loop:

            def once(seen: Any, key: Any, envs: Any = envs) -> Any:
                action = names["policy"](names["weights"], seen, key)
                call = lambda action: envs.step(np.asarray(action))[0]  # noqa: E731
                return io_callback(call, jax.typeof(seen), action, ordered=True), None

            seen = jax.jit(lambda seen, once=once: jax.lax.scan(once, seen, keys)[0])(jnp.asarray(seen))
        else:
            for key in keys:
                seen, _ = envs.step(np.asarray(names["policy"](names["weights"], seen, key)))
        found.append(np.asarray(seen))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


@slow_attack(f"{PAGE}#chains-on-devices", seed=seeds)
def test_a_chain_on_a_device_of_its_own_draws_what_it_draws_alone(seed: int) -> None:
    if jax.device_count() != 8:
        pytest.skip("needs eight devices")
    found = program(f"{PAGE}#chains-on-devices", "alone", "mesh", "chain")
    args = jnp.zeros((16, 2)), jax.random.split(jax.random.key(seed), 16)
    split = jax.device_put(args, NamedSharding(found["mesh"], P("chains")))
    together, each = on_devices(), one_by_one()
    draws = np.asarray(together(*split))
    for i in (0, 7, 15):
        np.testing.assert_allclose(draws[i, :20], each(args[0][i], args[1][i])[:20], rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(draws[:, 50:].mean((0, 1)), 3, atol=0.3)


@cache
def on_devices() -> Any:
    return jax.jit(defined("chains-on-devices", "alone"))


@cache
def one_by_one() -> Any:
    return jax.jit(defined("chains-on-devices", "chain"))


@attack(f"{PAGE}#progress-bar", seed=seeds)
def test_the_callback_runs_once_for_all_chains_and_changes_no_draw(seed: int) -> None:
    calls: list[int] = []
    keys = jax.random.split(jax.random.key(seed), 4)
    call, quiet = with_callback()
    calls_of["list"] = calls
    found = call(jnp.zeros((4, 2)), keys)
    jax.effects_barrier()
    assert calls == [0, 50]
    np.testing.assert_array_equal(found, quiet(jnp.zeros((4, 2)), keys))


calls_of: dict[str, list[int]] = {}


@cache
def with_callback() -> tuple[Any, Any]:
    """Return the chains of an answer with a callback that remembers its argument, and with none."""
    run = defined("progress-bar", "run")

    def remember(i: Any) -> None:
        calls_of["list"].append(int(i))

    def loud(start: Any, key: Any) -> Any:
        return run(lambda i: jax.debug.callback(remember, i), start, key)

    return jax.jit(jax.vmap(loud)), jax.jit(jax.vmap(lambda start, key: run(lambda i: None, start, key)))


@attack(
    f"{PAGE}#own-environment",
    x=st.integers(-30, 30),
    time=st.integers(0, 25),
    action=st.sampled_from([0, 1]),
    seed=seeds,
)
def test_a_step_is_that_of_plain_python(x: int, time: int, action: int, seed: int) -> None:
    page = f"{PAGE}#own-environment"
    names = program(page, "State", "reset", "step")
    key = jax.random.key(seed)
    state = names["State"](jnp.float32(x / 16), jnp.int32(time))
    new, (seen, reward, terminated, truncated) = names["step"](key, state, action)
    moved = x / 16 + (0.3 if action else -0.3)
    np.testing.assert_allclose([seen, reward], [moved, -abs(moved)], atol=1e-6)
    assert (bool(terminated), bool(truncated)) == (abs(moved) > 2, time + 1 >= 20)
    if terminated or truncated:
        assert new == names["reset"](key) and new.time == 0
    else:
        assert new.x == seen and new.time == time + 1


@attack(f"{PAGE}#tanh-policy", u=st.lists(st.integers(-80, 80), min_size=1, max_size=3), mean=small)
def test_the_density_of_a_squashed_normal_is_exact(u: list[int], mean: int) -> None:
    exact_u = np.array(u) / 2
    slope = 2 * (np.log(2) - abs(exact_u) - np.log1p(np.exp(-2 * abs(exact_u))))
    exact = (norm.logpdf(exact_u, mean, 2) - slope).sum()
    ones = np.ones(len(u), np.float32)
    found = defined("tanh-policy", "log_density")(jnp.float32(exact_u), mean * ones, 2 * ones)
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-4)
    action, density = defined("tanh-policy", "act")(jax.random.key(abs(mean)), mean * ones, 2 * ones)
    free = mean + 2 * np.float64(jax.random.normal(jax.random.key(abs(mean)), (len(u),)))
    slope = 2 * (np.log(2) - abs(free) - np.log1p(np.exp(-2 * abs(free))))
    np.testing.assert_allclose(action, np.tanh(free), atol=1e-5)
    np.testing.assert_allclose(density, (norm.logpdf(free, mean, 2) - slope).sum(), rtol=1e-3, atol=1e-3)
