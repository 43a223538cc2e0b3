"""Inputs for which programs on sequences once gave a wrong number silently: half precision, booleans, and no step."""

from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.site.recommended.shown import shows

transformer: Any = import_module("transformer")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_sample_draws_late_tokens_as_often_as_early_ones_in_any_float(dtype: str) -> None:
    vocab = 1000
    params = transformer.init(jax.random.key(0), vocab, 8, 2, 1)
    params["unembed"] = jnp.zeros_like(params["unembed"])  # every token is equally likely
    params = jax.tree.map(lambda a: a.astype(dtype), params)
    prompt = jnp.array([1, 2])
    draw = jax.jit(jax.vmap(lambda key: transformer.sample(params, prompt, key, 10)))
    drawn, scores = draw(jax.random.split(jax.random.key(1), 50))
    assert scores.dtype == dtype and not scores.any()
    assert abs(np.asarray(drawn).mean() / (vocab / 2) - 1) < 0.15  # 0.6 off in bfloat16 otherwise


def test_a_total_that_starts_as_a_boolean_is_true_as_stated() -> None:
    name = "answers/loops.md#carry-types"
    shows(name, "To count booleans, start from `0`, because `+` of two booleans means *or*")

    def step(c: Any, x: Any) -> Any:
        return c + x, None

    seen = jnp.array([True, False, True, True])
    assert jax.lax.scan(step, 0, seen)[0] == 3
    assert jax.lax.scan(step, jnp.zeros((), seen.dtype), seen)[0] == True  # noqa: E712


@pytest.mark.parametrize("cell", [nnx.OptimizedLSTMCell, nnx.LSTMCell, nnx.GRUCell, nnx.SimpleCell])
def test_the_state_of_a_sequence_without_steps_is_that_after_its_padding_as_stated(cell: Any) -> None:
    shows("answers/nnx-transforms.md#rnn", "For a sequence of length 0", "`jnp.where(lengths[:, None] > 0, h, 0)`")
    rnn = nnx.RNN(cell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
    x, lengths = jax.random.normal(jax.random.key(0), (2, 5, 3)), jnp.array([0, 2])
    carry, outputs = rnn(x, seq_lengths=lengths)
    h = carry[1] if isinstance(carry, tuple) else carry
    np.testing.assert_allclose(h[0], outputs[0, -1], rtol=1e-5)
    np.testing.assert_allclose(h[1], outputs[1, 1], rtol=1e-5)
    mended = jnp.where(lengths[:, None] > 0, h, 0)
    assert not mended[0].any() and (mended[1] == h[1]).all()
