"""Diagnostics of Markov chains: R-hat and the effective sample size."""

# Laid out as on the page.
# fmt: off
import numpy as np


# --8<-- [start:r_hat]
def r_hat(x: np.ndarray) -> np.ndarray:  # (chain, step, parameter)
    """The spread of all chains, divided by the spread within one."""
    x = np.asarray(x, np.float64)
    x = x - x[0, 0]  # so that what never moves has a spread of exactly 0
    half = x.shape[1] // 2  # a chain that drifts differs from itself
    x = np.concatenate([x[:, :half], x[:, half:2 * half]])
    within = x.var(axis=1, ddof=1).mean(axis=0)
    between = x.mean(axis=1).var(axis=0, ddof=1)
    return np.asarray(np.sqrt((half - 1) / half + between / within))
# --8<-- [end:r_hat]


# --8<-- [start:effective_size]
def effective_size(x: np.ndarray) -> np.ndarray:
    """Return how many independent draws would give a mean as exact as this one."""
    x = np.asarray(x, np.float64)
    x = x - x[0, 0]
    chains, steps = x.shape[:2]
    within = x.var(axis=1, ddof=1).mean(axis=0)
    spread = within * (steps - 1) / steps + x.mean(axis=1).var(axis=0, ddof=1)
    waves = np.fft.rfft(x - x.mean(axis=1, keepdims=True), 2 * steps, axis=1)
    lagged = np.fft.irfft(abs(waves) ** 2, axis=1)[:, :steps].mean(axis=0)
    alike = 1 - (within - lagged / (steps - 1)) / spread  # at each lag
    pairs = alike[:steps // 2 * 2].reshape(steps // 2, 2, -1).sum(axis=1)
    pairs = np.where(np.cumprod(~(pairs <= 0), axis=0), pairs, 0)  # then noise
    time = 2 * np.minimum.accumulate(pairs, axis=0).sum(axis=0) - 1
    shortest = 1 / np.log10(chains * steps)
    return np.asarray(chains * steps / np.maximum(time, shortest))
# --8<-- [end:effective_size]
