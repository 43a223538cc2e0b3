"""A cart's steps, what environments in many copies play, and advantages, against loops in float64."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import examples, program, search
from tests.site.strategies import arrays

PAGE = "train/reinforcement.md"
STEPS, COPIES = 6, 3
Array = np.ndarray[Any, Any]


@cache
def names() -> dict[str, Any]:
    """The page's functions, compiled."""
    found = program(PAGE, "State", "step", "plain_step", "advantages", "plain_advantages", "play", "LIMIT")
    return {
        **found,
        "step": jax.jit(found["step"]),
        "advantages": jax.jit(found["advantages"]),
        "play": jax.jit(lambda params, states, key: found["play"](params, states, key, STEPS)),
    }


flags = st.lists(st.booleans(), min_size=STEPS * COPIES, max_size=STEPS * COPIES).map(
    lambda each: np.array(each).reshape(STEPS, COPIES)
)
numbers = arrays((STEPS, COPIES), "float32", odd=False).map(lambda a: np.clip(a, -1e3, 1e3))
share = st.sampled_from([0.0, 0.5, 0.95, 1.0])


@examples
def test_advantages_are_the_sums_over_each_episode(count: int) -> None:
    def holds(value: Array, later: Array, over: Array, fallen: Array, discount: float, decay: float) -> None:
        fallen = over & fallen
        got = names()["advantages"](1.0, value, later, fallen, over, discount, decay)
        wide = value.astype(float), later.astype(float)
        expected = names()["plain_advantages"](1.0, *wide, fallen, over, discount, decay)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-2)

    search(count, holds, value=numbers, later=numbers, over=flags, fallen=flags, discount=share, decay=share)


@examples
def test_a_step_follows_the_equations(count: int) -> None:
    def holds(seen: list[float], action: int, time: int) -> None:
        start = np.array(seen, np.float32)
        state, fallen = names()["step"](names()["State"](start, time), action)
        expected = names()["plain_step"](start, action)
        np.testing.assert_allclose(state.seen, expected, rtol=1e-3, atol=1e-3)
        assert state.time == time + 1
        margin = min(abs(abs(expected[0]) - 2.4), abs(abs(expected[2]) - 0.2095))
        if margin > 1e-3:
            assert bool(fallen) == (abs(expected[0]) > 2.4 or abs(expected[2]) > 0.2095)

    number = st.floats(-3, 3, width=32)
    seen = st.tuples(number, number, number, number)
    search(count, holds, seen=seen, action=st.sampled_from([0, 1]), time=st.integers(0, 300))


@examples
def test_each_copy_goes_on_or_starts_again(count: int) -> None:
    def holds(seen: list[tuple[float, ...]], times: list[int], seed: int) -> None:
        keys = iter(jax.random.split(jax.random.key(seed), 3))
        params = {
            part: [jax.random.normal(next(keys), (4, 5)), np.ones((5, wide), np.float32)]
            for part, wide in (("actor", 2), ("critic", 1))
        }
        states = names()["State"](np.array(seen, np.float32), np.array(times, np.int32))
        after, played = names()["play"](params, states, next(keys))
        played = {name: np.asarray(each) for name, each in played.items()}
        time = np.array(times)
        following = [*played["seen"][1:], np.asarray(after.seen)]
        np.testing.assert_array_equal(played["seen"][0], states.seen)
        for t in range(STEPS):
            time += 1
            for copy in range(COPIES):
                expected = names()["plain_step"](played["seen"][t, copy], played["action"][t, copy])
                np.testing.assert_allclose(played["later"][t, copy], expected, rtol=1e-3, atol=1e-3)
                assert played["over"][t, copy] == (played["fallen"][t, copy] or time[copy] >= names()["LIMIT"])
                if played["over"][t, copy]:
                    time[copy] = 0
                    assert np.abs(following[t][copy]).max() <= 0.05
                else:
                    np.testing.assert_array_equal(following[t][copy], played["later"][t, copy])
        np.testing.assert_array_equal(after.time, time)

    number = st.floats(-1, 1, width=32)
    seen = st.lists(st.tuples(number, number, number, number), min_size=COPIES, max_size=COPIES)
    times = st.lists(st.sampled_from([0, 50, 195, 199]), min_size=COPIES, max_size=COPIES)
    search(count, holds, seen=seen, times=times, seed=st.integers(0, 2**31 - 1))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int32"])
@pytest.mark.parametrize(("discount", "decay"), [(0.99, 0.95), (1.0, 1.0)])
def test_advantages_of_a_small_type_add_up_over_a_long_game(dtype: str, discount: float, decay: float) -> None:
    value, no = np.zeros((1000, 1)), np.zeros((1000, 1), bool)
    small = jnp.asarray(value, dtype)
    got = names()["advantages"](1.0, small, small, no, no, discount, decay)
    np.testing.assert_allclose(got, np.cumsum((discount * decay) ** np.arange(1000))[::-1, None], rtol=1e-4)


@pytest.mark.parametrize("place", range(4))
def test_a_state_that_is_not_a_number_does_not_stand(place: int) -> None:
    state, fallen = names()["step"](names()["State"](np.zeros(4, np.float32), 0), 1)
    assert not fallen
    lost = state.seen.at[place].set(jnp.nan)
    states, fallen = names()["step"](names()["State"](lost, 0), 1)
    assert fallen == np.isnan(states.seen)[[0, 2]].any()


@pytest.mark.parametrize("better", [0.0, 0.1, 7.3, -1000.1])
def test_equal_advantages_teach_the_actor_nothing(better: float) -> None:
    found = program(PAGE, "loss", "actor", "critic")
    keys = jax.random.split(jax.random.key(0), 4)
    params = {
        part: [jax.random.normal(keys[0], (4, 5)), jax.random.normal(keys[1], (5, wide))]
        for part, wide in (("actor", 2), ("critic", 1))
    }
    seen = jax.random.normal(keys[2], (2048, 4))
    scores = found["actor"](params, seen)
    batch = {
        "seen": seen,
        "scores": scores,
        "action": jax.random.categorical(keys[3], scores),
        "target": found["critic"](params, seen),
    }
    got, expected = (
        found["loss"](params, {**batch, "better": jnp.full(2048, each)}) for each in (jnp.float32(better), 0.0)
    )
    np.testing.assert_allclose(got, expected, atol=1e-6)
