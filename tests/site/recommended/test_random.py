"""Attacks on the answers about random numbers: what a key determines, and frequencies against the distributions of SciPy.

The inputs are the same in each run, so a bound on a frequency holds always or never: each is about five standard errors.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.errors import KeyReuseError
from scipy import stats

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import Transformation, arrays, assert_same, keys, transformations

Array = np.ndarray[Any, Any]
PAGE = "answers/random.md"
SEEDS = st.integers(0, 2**31 - 1)
normal = jax.jit(jax.random.normal, static_argnums=1)
normals = jax.jit(jax.vmap(jax.random.normal))


def different(found: jax.Array) -> bool:
    """Return whether no two of these keys are equal."""
    data = np.asarray(jax.random.key_data(found)).reshape(found.size, -1)
    return len(np.unique(data, axis=0)) == found.size


def far(drawn: Any, cdf: Any) -> float:
    """The largest difference between the frequencies of these draws and a distribution."""
    return float(stats.kstest(np.asarray(drawn, np.float64).ravel(), cdf).statistic)


@attack(f"{PAGE}#same-numbers", key=keys(), x=arrays((), odd=False), call=transformations("eager", "jit"))
def test_a_key_that_is_passed_decides(key: jax.Array, x: Array, call: Transformation) -> None:
    noisy = program(f"{PAGE}#same-numbers", "noisy")["noisy"]
    first, *others = jax.random.split(key, 4)
    assert_same(call(noisy)(first, x), x + np.asarray(normal(first, ())))
    assert all(noisy(first, 0.0) != noisy(other, 0.0) for other in others)
    assert different(jax.random.split(key, 4))


@attack(f"{PAGE}#global-seed", seed=SEEDS, length=st.integers(1, 8))
def test_a_stream_of_keys_repeats_with_its_seed_alone(seed: int, length: int) -> None:
    stream = program(f"{PAGE}#global-seed", "key_stream")["key_stream"]
    one, other, next_seed = stream(seed), stream(seed), stream(seed + 1)
    drawn = jnp.stack([next(one) for _ in range(length)])
    assert (drawn == jnp.stack([next(other) for _ in range(length)])).all()
    assert different(jnp.concatenate([drawn, jnp.stack([next(next_seed) for _ in range(length)])]))


@slow_attack(f"{PAGE}#numpy-names", key=keys())
def test_numbers_have_the_range_and_the_mean_of_numpy(key: jax.Array) -> None:
    name = f"{PAGE}#numpy-names"
    shows(name, "(2,), minval=-1, maxval=1)", "jax.random.randint(keys[3], (4,), 1, 7)")
    shows(name, "jax.random.bernoulli(keys[4], 0.3, (3,))", "jax.random.permutation(keys[5], 5)")
    shows(name, "2.0 * jax.random.exponential(key)", "jax.random.gamma(key, a) / rate")
    drawn = ranges()(key)
    assert far(drawn["uniform"], stats.uniform(-1, 2).cdf) < 0.08
    counts = np.bincount(drawn["die"], minlength=7)
    assert counts[0] == 0 and len(counts) == 7 and abs(counts[1:] / 1000 - 1 / 6).max() < 0.06
    assert abs(drawn["coin"].mean() - 0.3) < 0.08
    assert sorted(drawn["order"].tolist()) == list(range(5))
    assert far(drawn["exponential"], stats.expon(scale=2).cdf) < 0.08
    assert far(drawn["gamma"], stats.gamma(3, scale=1 / 4).cdf) < 0.08


@cache
def ranges() -> Any:
    """The draws of the answer, a thousand of each."""

    def draw(key: jax.Array) -> dict[str, jax.Array]:
        uses = jax.random.split(key, 6)
        return {
            "uniform": jax.random.uniform(uses[0], (1000,), minval=-1, maxval=1),
            "die": jax.random.randint(uses[1], (1000,), 1, 7),
            "coin": jax.random.bernoulli(uses[2], 0.3, (1000,)),
            "order": jax.random.permutation(uses[3], 5),
            "exponential": 2.0 * jax.random.exponential(uses[4], (1000,)),
            "gamma": jax.random.gamma(uses[5], 3.0, (1000,)) / 4.0,
        }

    return jax.jit(draw)


@attack(f"{PAGE}#key-or-prngkey", seed=st.integers(-(2**31), 2**32 - 1))
def test_both_kinds_of_key_hold_the_same_bits(seed: int) -> None:
    new, old = jax.random.key(seed), jax.random.PRNGKey(seed)
    assert normal(new, ()) == normal(old, ())
    data = jax.random.key_data(new)
    assert (data == old).all() and jax.random.wrap_key_data(data) == new
    with pytest.raises(TypeError):
        _ = new + 1


@attack(f"{PAGE}#keys-in-loop", key=keys(), start=st.integers(-4, 4))
def test_a_scan_over_keys_is_the_loop_over_them(key: jax.Array, start: int) -> None:
    step = program(f"{PAGE}#keys-in-loop", "step")["step"]
    drawn = jax.random.split(key, 3)
    final, path = jax.lax.scan(step, float(start), drawn)
    expected = start + np.cumsum(np.asarray(normals(drawn), np.float64))
    assert_same(path, expected)
    assert final == path[-1] and len(np.unique(np.diff(path))) == 2


@cache
def keys_for() -> tuple[Any, Any]:
    """The program for one pair, and for many in a compiled program."""
    key_for = program(f"{PAGE}#split-or-fold", "key_for")["key_for"]
    return key_for, jax.jit(jax.vmap(key_for))


@attack(f"{PAGE}#split-or-fold", step=st.integers(0, 2**31 - 2), row=st.integers(0, 2**31 - 2))
def test_each_step_and_row_has_a_key_of_its_own(step: int, row: int) -> None:
    key_for, mapped = keys_for()
    made = mapped(np.array([step, step + 1, step]), np.array([row, row, row + 1]))
    assert different(made) and made[0] == key_for(step, row)
    if step != row:
        assert different(mapped(np.array([step, row]), np.array([row, step])))


@attack(f"{PAGE}#many-samples", key=keys(), p=arrays((4,), "int8").map(lambda p: np.float32(np.abs(p) / 9)))
def test_an_array_of_keys_and_one_of_probabilities(key: jax.Array, p: Array) -> None:
    shows(f"{PAGE}#many-samples", "jax.vmap(jax.random.normal)(keys)", "jax.random.bernoulli(jax.random.key(2), p)")
    several = jax.random.split(key, 3)
    assert_same(normals(several), [normal(one, ()) for one in several], 0, 0)
    drawn = np.asarray(jax.random.bernoulli(key, p, (2000, 4)))
    assert (abs(drawn.mean(0) - p) <= 5 * np.sqrt(p * (1 - p) / 2000) + 1e-9).all()


def test_a_probability_of_16_bits_would_be_found() -> None:
    drawn = jax.random.bernoulli(jax.random.key(0), jnp.bfloat16(0.001), (100_000,))
    assert drawn.mean() > 0.005


@attack(f"{PAGE}#find-reuse", key=keys(), uses=st.lists(st.sampled_from(["draw", "split", "choose"]), max_size=3))
def test_the_check_finds_each_second_use(key: jax.Array, uses: list[str]) -> None:
    calls: dict[str, Any] = {
        "draw": jax.random.normal,
        "split": jax.random.split,
        "choose": lambda key: jax.random.permutation(key, 3),
    }
    with jax.debug_key_reuse(True):
        key = jax.random.wrap_key_data(jax.random.key_data(key))  # a new one, which nothing has used
        if len(uses) < 2:
            for use in uses:
                calls[use](key)
            return
        with pytest.raises(KeyReuseError):
            for use in uses:
                calls[use](key)


@slow_attack(f"{PAGE}#shuffle", key=keys(), x=arrays((4, 2)), y=arrays((4,), "int32"))
def test_data_and_labels_are_shuffled_together(key: jax.Array, x: Array, y: Array) -> None:
    shows(f"{PAGE}#shuffle", "jax.random.permutation(jax.random.key(1), len(x))", "x.T, axis=1, independent=True)")
    order = np.asarray(jax.random.permutation(key, len(x)))
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    x, y = x.copy(), y.copy()
    assert_same(jnp.asarray(x)[order], x[order], 0, 0)
    assert_same(jnp.asarray(y)[order], y[order], 0, 0)
    rows = np.asarray(jax.random.permutation(key, jnp.asarray(x.T), axis=1, independent=True))
    assert_same(np.sort(rows, axis=1), np.sort(x.T, axis=1), 0, 0)


@slow_attack(f"{PAGE}#choice", key=keys(), weights=arrays((4,), "int8").map(np.abs), k=st.integers(1, 4))
def test_a_choice_keeps_to_its_weights(key: jax.Array, weights: Array, k: int) -> None:
    shows(f"{PAGE}#choice", "`jax.random.choice(key, n, (k,), replace=False, p=weights)`")
    p = weights.astype(np.float32)
    allowed = np.flatnonzero(p)
    if len(allowed):
        drawn = np.bincount(jax.random.choice(key, 4, (2000,), p=p), minlength=4) / 2000
        exact = p / p.sum()
        assert (abs(drawn - exact) <= 5 * np.sqrt(exact * (1 - exact) / 2000) + 1e-9).all()
    if len(allowed) >= k:
        drawn = np.asarray(jax.random.choice(key, 4, (k,), replace=False, p=p))
        assert len(set(drawn.tolist())) == k and set(drawn.tolist()) <= set(allowed.tolist())
    rows = np.asarray(jax.random.choice(key, np.arange(8).reshape(4, 2), (k,), replace=False))
    assert len(set(rows[:, 0].tolist())) == k and (rows[:, 1] == rows[:, 0] + 1).all()


@attack(
    f"{PAGE}#categorical",
    key=keys(),
    weights=arrays((4,), "int8").map(np.abs),
    dtype=st.sampled_from(["float32", "bfloat16", "float16"]),
)
def test_classes_come_with_their_probabilities(key: jax.Array, weights: Array, dtype: str) -> None:
    shows(f"{PAGE}#categorical", "frequencies(jnp.log(p))", "`astype(jnp.float32)`")
    if not weights.any():
        return  # no class has a probability
    logits = jnp.log(jnp.asarray(weights, jnp.float32)).astype(dtype).astype(jnp.float32)
    drawn = np.bincount(jax.random.categorical(key, logits, shape=(2000,)), minlength=4) / 2000
    exact = np.exp(np.asarray(logits, np.float64))
    exact /= exact.sum()
    assert (abs(drawn - exact) <= 5 * np.sqrt(exact * (1 - exact) / 2000) + 1e-9).all()


def test_logits_of_16_bits_would_be_found() -> None:
    drawn = jax.random.categorical(jax.random.key(0), jnp.zeros(1000, jnp.bfloat16), shape=(2000,))
    assert far(drawn, stats.uniform(0, 1000).cdf) > 0.3


@cache
def tails() -> Any:
    """The program for bounds that are far from zero, compiled."""
    tail = program(f"{PAGE}#mean-and-std", "tail")["tail"]
    return jax.jit(lambda key, low, high: tail(key, low, high, (1000,)))


@cache
def truncated() -> Any:
    """The function of JAX for bounds near zero, compiled."""
    return jax.jit(lambda key, low, high: jax.random.truncated_normal(key, low, high, (1000,)))


@slow_attack(
    f"{PAGE}#mean-and-std", key=keys(), low=st.integers(0, 24), width=st.sampled_from([0.25, 1.0, 4.0, np.inf]),
    mean=st.integers(-9, 9), std=st.integers(1, 9),
)  # fmt: skip
def test_normal_numbers_within_bounds_have_their_distribution(
    key: jax.Array, low: int, width: float, mean: int, std: int
) -> None:
    shows(f"{PAGE}#mean-and-std", "`mean + std * jax.random.normal(key, shape)`")
    assert far(mean + std * normal(key, (1000,)), stats.norm(mean, std).cdf) < 0.08
    left, right = low / 2, low / 2 + width
    drawn = tails()(key, left, right)
    assert (drawn >= left * (1 - 1e-5) - 1e-3).all() and (drawn <= right * (1 + 1e-5)).all()
    assert far(drawn, stats.truncnorm(left, right).cdf) < 0.08
    assert far(truncated()(key, -left / 6, right / 6), stats.truncnorm(-left / 6, right / 6).cdf) < 0.08


def test_the_tail_of_truncated_normal_would_be_found() -> None:
    assert far(truncated()(jax.random.key(0), 6.0, 10.0), stats.truncnorm(6, 10).cdf) > 0.9


@cache
def mapped_draws() -> Any:
    """Many draws from the distributions of the answer, and of the one that it names."""
    draw = jax.vmap(program(f"{PAGE}#distributions", "draw")["draw"])

    def negative_binomial(key: jax.Array, r: Any, p: Any) -> jax.Array:
        k1, k2 = jax.random.split(key)
        rates = jax.random.gamma(k2, r, (2000,)) * (1 - p) / p
        return jax.random.poisson(k1, rates)

    return jax.jit(lambda key: draw(jax.random.split(key, 500))), jax.jit(negative_binomial)


@slow_attack(f"{PAGE}#distributions", key=keys(), r=st.integers(1, 9), p=st.sampled_from([0.2, 0.5, 0.8]))
def test_other_distributions_from_two_draws_or_a_formula(key: jax.Array, r: int, p: float) -> None:
    shows(f"{PAGE}#distributions", "`poisson(k1, gamma(k2, r) * (1 - p) / p)`")
    draw, negative_binomial = mapped_draws()
    mixture, logistic = draw(key)
    assert far(mixture, lambda x: 0.3 * stats.norm.cdf(x, -2, 0.1) + 0.7 * stats.norm.cdf(x, 5, 0.1)) < 0.08
    assert far(logistic, stats.logistic.cdf) < 0.08
    drawn = np.asarray(negative_binomial(key, float(r), p))
    exact = stats.nbinom(r, p).cdf(np.arange(40))
    assert abs((drawn[:, None] <= np.arange(40)).mean(0) - exact).max() < 0.06


@cache
def correlated() -> Any:
    """Draws with each of the two methods that the answer recommends."""

    def draw(key: jax.Array, cov: jax.Array, jitter: Any) -> tuple[jax.Array, jax.Array]:
        zero = jnp.zeros(len(cov))
        shifted = cov + jitter * jnp.eye(len(cov))
        by_svd = jax.random.multivariate_normal(key, zero, cov, (2000,), method="svd")
        return by_svd, jax.random.multivariate_normal(key, zero, shifted, (2000,))

    return jax.jit(draw)


@slow_attack(f"{PAGE}#multivariate-normal", key=keys(), factor=arrays((2, 2), odd=False), rank=st.integers(1, 2))
def test_a_singular_covariance_is_that_of_the_draws(key: jax.Array, factor: Array, rank: int) -> None:
    shows(f"{PAGE}#multivariate-normal", 'method="svd"', "add a small fraction of the diagonal to the covariance")
    factor = factor[:, :rank].astype(np.float64)
    cov = factor @ factor.T
    size = cov.diagonal().max()
    if size == 0:
        return
    for drawn in correlated()(key, np.float32(cov), np.float32(1e-5 * size)):
        assert np.abs(np.cov(np.asarray(drawn, np.float64).T) - cov).max() < 0.2 * size


@slow_attack(
    f"{PAGE}#reproducible", key=keys(), dtype=st.sampled_from(["uint8", "uint16", "uint32"]), n=st.sampled_from([4, 6])
)
def test_bits_depend_on_the_place_and_not_on_the_shape(key: jax.Array, dtype: str, n: int) -> None:
    drawn = np.asarray(jax.random.bits(key, (n,), dtype))
    assert_same(jax.random.bits(key, (2, n // 2), dtype).ravel(), drawn, 0, 0)
    assert_same(jax.random.bits(key, (12,), dtype)[:n], drawn, 0, 0)
    assert_same(normal(key, (2,)), jax.random.normal(key, (2,)), 1e-6, 1e-6)


@attack(f"{PAGE}#new-seed", seed=st.integers(-(2**63), 2**63 - 1))
def test_a_seed_counts_by_its_last_32_bits(seed: int) -> None:
    shows(f"{PAGE}#new-seed", "`secrets.randbits(32)`", "only the lower 32 bits of a seed count")
    assert jax.random.key(seed) == jax.random.key(seed % 2**32)
    assert jax.random.key(seed) != jax.random.key((seed + 1) % 2**32)


@slow_attack(f"{PAGE}#faster-generator", key=keys(), name=st.sampled_from(["bits", "normal", "uniform", "exponential"]))
def test_a_map_over_keys_of_threefry_is_the_loop(key: jax.Array, name: str) -> None:
    several = jax.random.split(key, 3)
    sampler = getattr(jax.random, name)
    assert_same(jax.vmap(sampler)(several), [sampler(one) for one in several], 1e-6, 1e-6)
