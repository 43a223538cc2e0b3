"""The diagnostics of chains, against draws whose correlation is known and against BlackJAX."""

from importlib import import_module
from typing import Any

import jax
import numpy as np
import pytest

chains: Any = import_module("chains")


def correlated(rho: float, size: tuple[int, int, int] = (4, 2000, 2)) -> np.ndarray:
    """Chains in which each step keeps the share rho of the one before."""
    draws = np.random.default_rng(0).normal(size=size)
    for step in range(1, size[1]):
        draws[:, step] = rho * draws[:, step - 1] + np.sqrt(1 - rho**2) * draws[:, step]
    return draws


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_size_of_known_correlation(rho: float) -> None:
    expected = 4 * 2000 * (1 - rho) / (1 + rho)
    np.testing.assert_allclose(chains.effective_size(correlated(rho)), expected, rtol=0.25)


def test_r_hat_sees_a_stuck_chain_and_a_drift() -> None:
    good = correlated(0.5)
    assert (abs(chains.r_hat(good) - 1) < 0.01).all()
    stuck = good + np.array([0, 0, 0, 5]).reshape(4, 1, 1)
    assert (chains.r_hat(stuck) > 1.5).all()
    drift = good + np.linspace(0, 5, 2000)[:, None]  # the same in each chain
    assert (chains.r_hat(drift) > 1.2).all()


def test_agrees_with_blackjax() -> None:
    diagnostics = pytest.importorskip("blackjax.diagnostics")
    draws = correlated(0.7, (4, 500, 2))
    sizes = jax.jit(diagnostics.effective_sample_size)(draws)
    np.testing.assert_allclose(chains.effective_size(draws), sizes, rtol=0.02)
    halves = np.concatenate([draws[:, :250], draws[:, 250:]])
    ratio = jax.jit(diagnostics.potential_scale_reduction)(halves)
    np.testing.assert_allclose(chains.r_hat(draws), ratio, atol=1e-3)
