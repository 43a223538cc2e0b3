"""Tokens that top-k and top-p leave, and how often each is drawn, against loops of NumPy in float64."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import examples, program, search
from tests.site.strategies import arrays

Array = np.ndarray[Any, Any]
PAGE = "train/generation.md"
VOCABULARY = 6


@cache
def compiled_of(name: str) -> Callable[..., Any]:
    """Return a function of the page, compiled."""
    return jax.jit(program(PAGE, "allowed", "draw")[name])


def those(logits: Array, top_k: int, top_p: float) -> tuple[set[int], bool]:
    """The tokens that may be drawn, by a loop; and whether rounding may decide otherwise."""
    order = sorted(range(len(logits)), key=lambda token: -logits[token])[: max(top_k, 1)]
    chances = np.exp(logits[order].astype(float) - logits[order[0]])
    chances /= chances.sum()
    kept, total, close = {order[0]}, chances[0], False
    for token, chance in zip(order[1:], chances[1:], strict=True):
        close |= abs(total - top_p) < 1e-5
        if total >= top_p or chance == 0:
            break
        kept.add(token)
        total += chance
    return kept, close


logits = arrays((VOCABULARY,), "float32", odd=False).filter(lambda a: np.abs(a).max() < 50)
banned = st.sets(st.integers(0, VOCABULARY - 1), max_size=VOCABULARY - 1)
limits = {"top_k": st.integers(0, VOCABULARY + 1), "top_p": st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0, 2.0])}


@examples
def test_what_may_be_drawn_is_what_a_loop_allows(count: int) -> None:
    def holds(logits: Array, banned: set[int], top_k: int, top_p: float) -> None:
        logits = np.where(np.isin(np.arange(VOCABULARY), [*banned]), -np.inf, logits).astype(np.float32)
        expected, close = those(logits, top_k, top_p)
        kept = set(np.flatnonzero(compiled_of("allowed")(logits, top_k, top_p)).tolist())
        assert kept and (close or kept == expected), (logits, kept, expected)

    search(count, holds, logits=logits, banned=banned, **limits)


@examples
def test_a_drawn_token_is_allowed_at_any_temperature(count: int) -> None:
    def holds(logits: Array, top_k: int, top_p: float, temperature: float, seed: int) -> None:
        token = int(compiled_of("draw")(jax.random.key(seed), logits, temperature, top_k, top_p))
        if temperature == 0:
            assert logits[token] == logits.max()
        scaled = logits / np.float32(max(temperature, 1e-6))
        expected, close = those(scaled, top_k, top_p)
        assert close or token in expected, (logits, token, expected)

    search(
        count,
        holds,
        logits=logits,
        temperature=st.sampled_from([0.0, 0.3, 1.0, 10.0]),
        seed=st.integers(0, 2**31 - 1),
        **limits,
    )


def test_draws_come_as_often_as_their_chances_say() -> None:
    scores, number = jnp.array([2.0, 1.0, 0.0, -1.0]), 4000
    keys = jax.random.split(jax.random.key(0), number)
    drawn = jax.vmap(lambda key: compiled_of("draw")(key, scores, 2.0, 3, 1.0))(keys)
    chances = np.exp(np.array([1.0, 0.5, 0.0]))
    found = np.bincount(drawn, minlength=4) / number
    np.testing.assert_allclose(found, [*chances / chances.sum(), 0], atol=0.03)  # four standard errors


def test_draws_from_scores_of_16_bits_prefer_no_token() -> None:
    draw_of: Any = program(PAGE, "draw_of")["draw_of"]
    keys = jax.random.split(jax.random.key(0), 1000)
    of_thousand: Any = partial(draw_of, k=1000)
    ways: list[Any] = [of_thousand, compiled_of("draw")]
    for dtype in (jnp.bfloat16, jnp.float16):
        for way in ways:
            drawn = jax.vmap(way, (0, None))(keys, jnp.zeros(1000, dtype))
            assert 0.4 < np.mean(np.asarray(drawn) < 500) < 0.6


def test_no_text_is_longer_than_the_cache() -> None:
    page = program(PAGE, "generate", "generate_until", "init", "ROOM")
    given = (
        page["init"](jax.random.key(0)),
        jnp.ones((1, 6), int),
        jnp.array([6]),
        jax.random.split(jax.random.key(0), 1),
    )
    for name in ("generate", "generate_until"):
        with pytest.raises(ValueError, match=f"tokens in {page['ROOM']} places"):
            page[name](*given, page["ROOM"] - 5)
