"""Value and policy iteration, against all policies of small random worlds in float64."""

from functools import partial
from itertools import product
from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import assert_same

Array = np.ndarray[Any, Any]
PAGE = "science/value-iteration.md"
NAMES = partial(program, PAGE, "make_world", "solve", "policy_iteration", "start_value", "with_battery")
seeds, discounts = st.integers(0, 2**31 - 1), st.sampled_from([0.0, 0.5, 0.9, 0.99])
kinds = st.sampled_from(["random", "sparse", "equal", "still"])


def drawn(seed: int, kind: str) -> tuple[Array, Array]:
    """A world of three states and two actions: sparse moves, equal actions, or states that are never left."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(3, 0.05 if kind == "sparse" else 1), (2, 3)).astype(np.float32)
    rewards = rng.integers(-4, 5, (2, 3)).astype(np.float32)
    if kind == "equal":
        moves[1], rewards[1] = moves[0], rewards[0]
    if kind == "still":
        moves[:] = np.eye(3)
    return moves, rewards


def best(moves: Array, rewards: Array, discount: float) -> Array:
    """The values of the best of all policies."""
    wide, states = moves.astype(np.float64), np.arange(3)
    wide /= wide.sum(-1, keepdims=True)
    found = [
        np.linalg.solve(np.eye(3) - discount * wide[list(policy), states], rewards[list(policy), states])
        for policy in product(range(2), repeat=3)
    ]
    best: np.ndarray[Any, Any] = np.max(found, axis=0)  # one policy is the best in all states
    return best


@attack(seed=seeds, kind=kinds, discount=discounts, error=st.sampled_from([1.0, 0.05]))
def test_the_error_is_the_one_asked_for(seed: int, kind: str, discount: float, error: float) -> None:
    moves, rewards = drawn(seed, kind)
    values, _, steps = NAMES()["solve"](moves, rewards, discount, error)
    assert 0 < steps < 10_000
    assert abs(np.asarray(values) - best(moves, rewards, discount)).max() <= error + 0.01  # and what float32 rounds


@attack(seed=seeds, kind=kinds, discount=discounts)
def test_policy_iteration_finds_the_best_policy(seed: int, kind: str, discount: float) -> None:
    moves, rewards = drawn(seed, kind)
    values, policy, steps = NAMES()["policy_iteration"](moves, rewards, discount)
    assert steps < 100 and set(np.asarray(policy)) <= {0, 1}
    assert_same(values, best(moves, rewards, discount), rtol=2e-3, atol=1e-3)


@attack(slip=st.floats(0.01, 0.99))
def test_the_slope_of_the_value_is_that_of_its_differences(slip: float) -> None:
    def plain(slip: float) -> float:
        (moves0, rewards0), (moves1, rewards1) = (NAMES()["make_world"](s) for s in (0.0, 1.0))
        moves = (moves0 + slip * (moves1.astype(np.float64) - moves0)).astype(np.float64)
        rewards = rewards0 + slip * (rewards1.astype(np.float64) - rewards0)
        values = np.zeros(32)
        for _ in range(700):
            values = (rewards + 0.95 * (moves @ values)).max(axis=0)
        return float(values[24])

    value, slope = NAMES()["start_value"](slip)
    assert_same(value, plain(slip), rtol=1e-3)
    # Near a kink, where two actions are as good in float32, the slope may be that of the other side.
    near = [(plain(slip + d + 1e-5) - plain(slip + d - 1e-5)) / 2e-5 for d in (-5e-3, 0, 5e-3)]
    assert min(near) - 0.1 < slope < max(near) + 0.1


@attack(slip=st.floats(0, 1), start=st.integers(0, 31))
def test_a_battery_is_counted_backwards(slip: float, start: int) -> None:
    moves, rewards = NAMES()["make_world"](slip)
    values, policies = jax.device_get(NAMES()["with_battery"](moves, rewards))
    now = np.eye(32)[start]  # where the robot may be, when it follows the policy
    total = 0.0
    for policy in policies[::-1]:
        total += now @ rewards[policy, np.arange(32)]
        now = now @ moves[policy, np.arange(32)]
    assert_same(total, values[start])


@attack(slip=st.floats(0, 1), rows=st.integers(2, 4), columns=st.integers(3, 6))
def test_every_move_of_a_world_ends_somewhere(slip: float, rows: int, columns: int) -> None:
    moves, rewards = NAMES()["make_world"](slip, rows, columns)
    np.testing.assert_allclose(moves.sum(axis=-1), 1, atol=1e-6)
    assert (moves >= 0).all() and (rewards <= 0).all() and rewards.min() >= -21 - 1e-5
