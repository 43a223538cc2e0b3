"""Attention with masks, windows and packed rows, against loops of NumPy in float64."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import assert_same

Array = np.ndarray[Any, Any]
PAGE = "train/attention.md"
SILENT = f"{PAGE}: "
dot_product_attention = jax.nn.dot_product_attention
seeds = st.integers(0, 2**31 - 1)
window = jax.jit(partial(dot_product_attention, local_window_size=4, is_causal=True))


def defined(name: str) -> Callable[..., Any]:
    """Return a function of the page."""
    found: Callable[..., Any] = program(PAGE, "reach", "pack", "attend_packed", "attend_blocks", "decode")[name]
    return found


@cache
def compiled_of(name: str) -> Callable[..., Any]:
    """Return a function of the page, compiled."""
    return jax.jit(defined(name))


@jax.jit
def with_rows(q: Array, k: Array, v: Array, mask: Array) -> jax.Array:
    """Attention with a mask for each row of the batch, as the table says."""
    out = dot_product_attention(q, k, v, mask=mask[:, None])
    return jnp.where(jnp.any(mask, -1)[..., None, None], out, 0)


@jax.jit
@partial(jax.grad, has_aux=True)
def with_padding(q: Array, k: Array, v: Array, valid: Array) -> tuple[jax.Array, jax.Array]:
    """Attention to the valid keys, as the table says, and its gradient."""
    keys, values = (jnp.where(valid[..., None, None], a, 0) for a in (k, v))
    out = dot_product_attention(q, keys, values, mask=valid[:, None, None, :])
    return out.sum(), out


def plain(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """Attention of one row, position by position; a position that sees nothing gets zeros."""
    out = np.zeros(q.shape)
    for i, head in np.ndindex(q.shape[:2]):
        seen = np.flatnonzero(mask[i])
        if seen.size:
            scores = k[seen, head].astype(np.float64) @ q[i, head] / np.sqrt(q.shape[-1])
            weights = np.exp(scores - scores.max())
            out[i, head] = weights @ v[seen, head] / weights.sum()
    return out


def drawn(seed: int, *shape: int) -> Array:
    """Query, key and value."""
    return np.random.default_rng(seed).normal(scale=3, size=(3, *shape)).astype(np.float32)


def causal(n: int) -> Array:
    """The mask of who is not ahead."""
    return np.tril(np.ones((n, n), bool))


@attack(f"{SILENT}`is_causal=True` for one new query and a cache of keys", seed=seeds, at=st.integers(0, 4))
def test_a_new_query_sees_the_places_that_are_filled(seed: int, at: int) -> None:
    q, k, v = drawn(seed, 1, 5, 2, 4)
    expected = plain(q[0], k[0], v[0], causal(5))[at]
    k[:, at + 1 :] = v[:, at + 1 :] = 1e6  # left from before
    assert_same(compiled_of("decode")(q[:, at : at + 1], k, v, at)[0, 0], expected)


@attack(
    f"{SILENT}a `mask` of shape (batch, queries, keys)",
    f"{SILENT}a row of the mask that is all `False`",
    seed=seeds,
    density=st.sampled_from([0.0, 0.2, 0.8, 1.0]),
)
def test_any_mask_of_a_batch_is_that_of_its_rows(seed: int, density: float) -> None:
    q, k, v = drawn(seed, 2, 5, 2, 4)
    mask = np.random.default_rng(seed).random((2, 5, 5)) < density
    assert_same(
        with_rows(q, k, v, mask),
        np.stack([plain(*row) for row in zip(q, k, v, mask, strict=True)]),
        rtol=1e-3,
        atol=1e-3,
    )


@attack(
    f"{SILENT}a `mask` of shape (batch, keys) for padding",
    f"{SILENT}NaN or infinity in a masked value or key",
    seed=seeds,
    left=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    odd=st.sampled_from([np.nan, np.inf, 0.0]),
)
def test_padding_is_not_seen_whatever_it_holds(seed: int, left: tuple[int, int], odd: float) -> None:
    q, k, v = drawn(seed, 2, 5, 2, 4)
    valid = np.arange(5) < np.array(left)[:, None]
    expected = np.stack([plain(q[i], k[i], v[i], np.tile(valid[i], (5, 1))) for i in range(2)])
    v[~valid] = k[~valid] = odd
    slope, out = with_padding(q, k, v, valid)
    assert_same(out, expected, rtol=1e-3, atol=1e-3)
    assert np.isfinite(slope).all()


@attack(f"{SILENT}`local_window_size=4`", seed=seeds)
def test_a_window_back_is_the_newest_keys(seed: int) -> None:
    q, k, v = drawn(seed, 9, 2, 4)
    i, j = np.indices((9, 9))
    assert_same(window(q, k, v), plain(q, k, v, (j <= i) & (i - j <= 4)), rtol=1e-3, atol=1e-3)


@cache
def compiled(size: int) -> list[Callable[..., tuple[jax.Array, jax.Array]]]:
    """The gradient by the keys, and the result: in blocks, and by a mask."""

    def both(attend: Callable[..., jax.Array], q: Array, k: Array, v: Array) -> tuple[jax.Array, jax.Array]:
        out = attend(q, k, v)
        return (out**2).sum(), out

    in_blocks = partial(defined("attend_blocks"), window=size)
    by_mask = partial(dot_product_attention, local_window_size=(size - 1, 0))
    return [jax.jit(jax.grad(partial(both, f), argnums=1, has_aux=True)) for f in (in_blocks, by_mask)]


@attack(seed=seeds, sizes=st.sampled_from([(1, 1), (2, 1), (1, 3), (3, 2), (4, 3)]))
def test_blocks_are_a_window(seed: int, sizes: tuple[int, int]) -> None:
    size, blocks = sizes
    length = size * blocks
    q, k, v = drawn(seed, length, 2, 4)
    i, j = np.indices((length, length))
    (slope, out), (expected, _) = (both(q, k, v) for both in compiled(size))
    assert_same(out, plain(q, k, v, (j <= i) & (i - j < size)), rtol=1e-3, atol=1e-3)
    assert_same(slope, expected, rtol=1e-2, atol=1e-2)


def test_blocks_that_leave_a_rest_raise() -> None:
    x = np.ones((7, 1, 2), np.float32)
    with pytest.raises((TypeError, ValueError)):
        defined("attend_blocks")(x, x, x, 3)


@attack(seed=seeds, sizes=st.lists(st.integers(0, 8), max_size=7))
def test_a_packed_document_gets_what_it_gets_alone(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    documents = [rng.integers(1, 99, size) for size in sizes]
    tokens, number, place = defined("pack")(documents, 8)
    found = []
    for row, n in zip(tokens, number, strict=True):
        found += [row[n == i].tolist() for i in range(1, n.max() + 1)]
        if (n == 0).any():
            assert not row[n == 0].any() and (n[n.argmin() :] == 0).all()  # padding is at the end
    assert sorted(filter(None, found)) == sorted(d.tolist() for d in documents if d.size)
    full = np.zeros((4, 8), np.int32)  # so that one shape is compiled
    full[: len(number)] = number[:4]
    q, k, v = drawn(seed, 4, 8, 2, 4)
    out = np.asarray(compiled_of("attend_packed")(q, k, v, full))
    assert np.isfinite(out).all()
    for i, n in enumerate(full):
        for document in np.unique(n):
            own = n == document
            assert_same(out[i, own], plain(q[i, own], k[i, own], v[i, own], causal(own.sum())), rtol=1e-3, atol=1e-3)
    for row, n in zip(place, number, strict=True):
        assert all((row[n == i] == np.arange((n == i).sum())).all() for i in np.unique(n) if i)


def test_a_document_longer_than_a_row_raises() -> None:
    with pytest.raises(ValueError, match="9 tokens in 8 places"):
        defined("pack")([np.arange(9)], 8)


@attack(seed=st.integers(0, 9), density=st.sampled_from([0.2, 0.5, 0.9]))  # each compiles
def test_what_a_position_sees_is_its_row_of_the_mask(seed: int, density: float) -> None:
    mask = np.random.default_rng(seed).random((6, 6)) < density
    np.fill_diagonal(mask, True)
    x = np.random.default_rng(seed).normal(size=(6, 1, 4)).astype(np.float32)
    found = defined("reach")(partial(dot_product_attention, mask=mask), x)
    np.testing.assert_array_equal(found, mask)
