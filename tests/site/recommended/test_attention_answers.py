"""The answers on attention, caches, sampling and int8, against loops of NumPy in float64."""

from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax._src.cudnn import fused_attention_stablehlo as cudnn

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.test_attention import causal, drawn, plain
from tests.site.recommended.test_generation import those
from tests.site.strategies import assert_same

Array = np.ndarray[Any, Any]
PAGE = "answers/attention.md"
attend = jax.nn.dot_product_attention
window = jax.jit(partial(attend, is_causal=True), static_argnames="local_window_size")
seeds = st.integers(0, 2**31 - 1)
densities = st.sampled_from([0.0, 0.3, 0.8, 1.0])
roughly = partial(assert_same, rtol=1e-3, atol=1e-3)


def answer(anchor: str, name: str) -> Callable[..., Any]:
    """Return a function of an answer."""
    found: Callable[..., Any] = program(f"{PAGE}#{anchor}", name)[name]
    return found


@cache
def compiled(anchor: str, name: str, *static: str, **options: Any) -> Callable[..., Any]:
    """Return a function of an answer, compiled."""
    return jax.jit(partial(answer(anchor, name), **options), static_argnames=static)


def rows(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """Attention of each row of a batch; a query that sees nothing gets zeros."""
    mask = np.broadcast_to(mask, (len(q), q.shape[1], k.shape[1]))
    return np.stack([plain(*row) for row in zip(q, k, v, mask, strict=True)])


def heads(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """Attention of each row of a batch with a mask for each head, or for all."""
    mask = np.broadcast_to(mask, (len(q), q.shape[2], q.shape[1], k.shape[1]))
    parts = [[a[:, :, n : n + 1] for a in (q, k, v)] for n in range(q.shape[2])]
    return np.concatenate([rows(a, b, c, mask[:, n]) for n, (a, b, c) in enumerate(parts)], 2)


def chance(seed: int, density: float, *shape: int) -> Array:
    """A random mask with a share of True."""
    return np.random.default_rng(seed).random(shape) < density


def some(mask: Array) -> Array:
    """A mask in which each query sees at least the first key."""
    mask = mask.copy()
    mask[..., 0] |= ~mask.any(-1)
    return mask


@attack(f"{PAGE}#from-pytorch", seed=seeds, kind=st.sampled_from(["none", "causal", "bool", "float"]))
def test_heads_come_first_as_in_pytorch(seed: int, kind: str) -> None:
    q, k, v = drawn(seed, 2, 5, 3, 4)
    mask = some(chance(seed, 0.5, 2, 5, 5)) if kind in ("bool", "float") else causal(5) | (kind == "none")
    swapped = (np.swapaxes(a, 1, 2) for a in (q, k, v))
    expected = {"bool": mask[:, None], "float": np.where(mask, 0, -1e30).astype(np.float32)[:, None]}.get(kind)
    port = compiled("from-pytorch", "scaled_dot_product_attention", "is_causal")
    roughly(np.swapaxes(port(*swapped, expected, is_causal=kind == "causal"), 1, 2), rows(q, k, v, mask))


@attack(f"{PAGE}#mask", seed=seeds, density=densities, dtype=st.sampled_from(["bool", "int32", "float32"]))
def test_tokens_are_seen_and_padding_is_not(seed: int, density: float, dtype: str) -> None:
    q, k, v = drawn(seed, 2, 5, 2, 4)
    tokens = some(chance(seed, density, 2, 5))
    roughly(compiled("mask", "attend_to_tokens")(q, k, v, tokens.astype(dtype)), rows(q, k, v, tokens[:, None]))


@attack(f"{PAGE}#causal-cache", seed=seeds, queries=st.sampled_from([1, 3]), each=st.booleans())
def test_new_queries_see_the_cache_up_to_themselves(seed: int, queries: int, each: bool) -> None:
    q, k, v = drawn(seed, 2, 7, 2, 4)
    starts = np.random.default_rng(seed).integers(0, 8 - queries, 2)
    starts = starts if each else np.full(2, starts[0])
    full = rows(q, k, v, causal(7))
    expected = np.stack([full[i, at : at + queries] for i, at in enumerate(starts)])
    now = np.stack([q[i, at : at + queries] for i, at in enumerate(starts)])
    for i, at in enumerate(starts):
        k[i, at + queries :] = v[i, at + queries :] = 1e6  # left from before
    start = starts if each else starts[0]
    roughly(compiled("causal-cache", "attend_cached")(now, k, v, start), expected)


@attack(f"{PAGE}#window", seed=seeds, size=st.sampled_from([0, 2]))
def test_a_causal_window_is_the_newest_keys_and_its_own(seed: int, size: int) -> None:
    q, k, v = drawn(seed, 1, 7, 2, 4)
    i, j = np.indices((7, 7))
    roughly(window(q, k, v, local_window_size=size), rows(q, k, v, (j <= i) & (i - j <= size)))
    i, j = np.indices((8, 8))
    for options, mask in (({}, abs(i - j) <= size), ({"is_causal": True}, (j <= i) & (i - j <= size))):
        seen = compiled("window", "seen", "local_window_size", "is_causal")
        assert seen(local_window_size=size, **options).tolist() == mask[4].astype(int).tolist()


@attack(f"{PAGE}#sees-nothing", seed=seeds, density=densities, shape=st.sampled_from([(1, 1), (2, 1), (2, 3)]))
def test_a_query_that_sees_nothing_gets_zeros(seed: int, density: float, shape: tuple[int, int]) -> None:
    q, k, v = drawn(seed, 2, 4, 3, 4)
    mask = chance(seed, density, *shape, 4, 4)
    roughly(compiled("sees-nothing", "attend")(q, k, v, mask), heads(q, k, v, mask))


@attack(f"{PAGE}#packed", seed=seeds, most=st.integers(1, 4))
def test_a_segment_sees_itself_alone(seed: int, most: int) -> None:
    q, k, v = drawn(seed, 2, 6, 2, 4)
    segment = np.random.default_rng(seed).integers(0, most, (2, 6))
    same = (segment[:, :, None] == segment[:, None]) & causal(6)
    roughly(compiled("packed", "attend_packed")(q, k, v, segment), rows(q, k, v, same))


@attack(f"{PAGE}#grouped", seed=seeds, stored=st.sampled_from([1, 2, 4]))
def test_neighbors_share_a_head(seed: int, stored: int) -> None:
    q, k, v = drawn(seed, 1, 5, 4, 4)
    keys, values = (np.stack([a[:, :, n // (4 // stored)] for n in range(4)], 2) for a in (k, v))
    found = jax.jit(attend)(q, k[:, :, :stored], v[:, :, :stored])
    roughly(found, rows(q, keys, values, np.ones((5, 5), bool)))


@attack(f"{PAGE}#weights", seed=seeds, density=densities, dtype=st.sampled_from(["float32", "bfloat16"]))
def test_weights_are_those_of_attention(seed: int, density: float, dtype: str) -> None:
    short = [jnp.asarray(a, dtype) for a in drawn(seed, 2, 4, 2, 4)]
    mask = some(chance(seed, density, 2, 1, 4, 4))
    out, weights = compiled("weights", "attend")(*short, mask)
    near = 1e-3 if dtype == "float32" else 0.1
    q, k, v = (np.asarray(a, np.float64) for a in short)
    expected = rows(q, k, v, mask[:, 0])
    assert out.dtype == dtype and not np.asarray(weights)[~np.broadcast_to(mask, weights.shape)].any()
    assert_same(np.asarray(out, np.float32), expected, rtol=near, atol=near)
    assert_same(np.einsum("bnts,bsnh->btnh", weights, v), expected, rtol=near, atol=near)


@slow_attack(seed=seeds, rate=st.sampled_from([0.1, 0.5]))
def test_dropped_weights_are_zero_and_the_rest_grow(seed: int, rate: float) -> None:
    q, k, _ = drawn(seed, 1, 16, 2, 16) / 4
    marks = np.tile(np.eye(16, dtype=np.float32)[None, :, None], (1, 1, 2, 1))  # so that the output is the weights
    out, weights = compiled("weights", "attend", "rate")(q, k, marks, rate=rate, key=jax.random.key(seed))
    used, weights = np.swapaxes(out, 1, 2), np.asarray(weights)
    assert (np.isclose(used, 0, atol=1e-6) | np.isclose(used, weights / (1 - rate), atol=1e-4)).all()
    assert abs((used == 0).mean() - rate) < 0.12


@slow_attack(f"{PAGE}#memory", seed=seeds, size=st.sampled_from([1, 4, 8]))
def test_chunks_are_causal_attention(seed: int, size: int) -> None:
    q, k, v = drawn(seed, 2, 8, 2, 4) / 2

    def both(f: Callable[..., jax.Array], q: Array, k: Array, v: Array) -> tuple[jax.Array, jax.Array]:
        return (out := f(q, k, v)), (out**2).sum()

    chunks = partial(answer("memory", "attend_in_chunks"), size=size)
    roughly(jax.jit(chunks)(q, k, v), rows(q, k, v, causal(8)))
    slopes = [jax.jit(jax.grad(lambda *a, f=f: both(f, *a)[1], 1)) for f in (chunks, partial(attend, is_causal=True))]
    assert_same(slopes[0](q, k, v), slopes[1](q, k, v), rtol=1e-2, atol=1e-2)


@attack(f"{PAGE}#cudnn", seed=seeds, shape=st.sampled_from([(2, 1, 1, 6), (1, 1, 6, 6), (2, 2, 6, 6)]))
def test_attention_in_bfloat16_is_near(seed: int, shape: tuple[int, ...]) -> None:
    q, k, v = drawn(seed, 2, 6, 2, 8) / 3
    mask = some(chance(seed, 0.5, *shape))
    found = compiled("cudnn", "attend")(q, k, v, mask)
    assert found.dtype == np.float32
    assert_same(found, heads(q, k, v, mask), rtol=0.1, atol=0.1)


def lowered(function: Callable[..., Any], *shape: int, dtype: str = "bfloat16") -> str:
    """The program for an NVIDIA GPU, made without one."""
    one = jax.ShapeDtypeStruct(shape, dtype)
    text: str = jax.jit(function).trace(one, one, one).lower(lowering_platforms=("cuda",)).as_text()
    return text


@pytest.fixture
def with_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudnn, "cuda_versions", SimpleNamespace(cudnn_get_version=lambda: 91300))


@pytest.mark.usefixtures("with_cudnn")
def test_the_program_for_a_gpu_calls_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    ported = answer("cudnn", "attend")
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform="gpu")])
    for shape in (2, 1, 1, 6), (1, 1, 6, 6), (2, 2, 6, 6):
        masked = partial(ported, mask=jnp.ones(shape, bool))
        assert "__cudnn$fmha" in lowered(masked, 2, 6, 2, 8, dtype="float32")
    assert "__cudnn$fmha" in lowered(partial(ported, is_causal=True, local_window_size=3), 2, 6, 2, 8)


@pytest.mark.usefixtures("with_cudnn")
def test_messages_of_cudnn_are_those_of_the_answer() -> None:
    kernel = partial(attend, implementation="cudnn")
    slope = jax.grad(lambda *a: kernel(*a, mask=jnp.ones((7, 7), bool)).astype("float32").sum())
    for message, function, shape, dtype in (
        ("Q must be fp16/bf16", kernel, (2, 6, 2, 8), "float32"),
        ("The head dim must be <= 128 and a multiple of 8", kernel, (2, 6, 2, 12), "bfloat16"),
        ("The head dim must be <= 128 and a multiple of 8", kernel, (2, 6, 2, 136), "bfloat16"),
        (
            "Bias must have same seq length",
            partial(kernel, mask=jnp.ones((2, 1, 1, 6), bool)),
            (2, 6, 2, 8),
            "bfloat16",
        ),
        ("Unsupported sequence length Q 7, KV 7", slope, (2, 7, 2, 8), "bfloat16"),
        ("cuDNN doesn't support right window", partial(kernel, local_window_size=3), (2, 6, 2, 8), "bfloat16"),
    ):
        with pytest.raises((ValueError, NotImplementedError), match=message):
            lowered(function, *shape, dtype=dtype)


@pytest.mark.usefixtures("with_cudnn")
@pytest.mark.parametrize(("is_causal", "expected"), [(False, "NO_MASK"), (True, "CAUSAL")])
def test_cudnn_is_told_where_to_end_a_window_only_with_is_causal(is_causal: bool, expected: str) -> None:
    text = lowered(partial(attend, implementation="cudnn", local_window_size=(3, 0), is_causal=is_causal), 1, 8, 1, 8)
    assert [kind for kind in ("NO_MASK", "CAUSAL") if kind in text] == [expected]
    assert "sliding_window_length" in text


@attack(f"{PAGE}#rotary", seed=seeds, interleaved=st.booleans(), each=st.booleans(), far=st.sampled_from([0, 4000]))
def test_a_rotation_is_a_product_of_complex_numbers(seed: int, interleaved: bool, each: bool, far: int) -> None:
    x, _, _ = drawn(seed, 2, 3, 2, 6)
    position = far + np.random.default_rng(seed).integers(0, 50, (2, 3) if each else 3)
    pairs = x.reshape(2, 3, 2, 3, 2) if interleaved else np.stack(np.split(x, 2, -1), -1)
    angle = position[..., None, None] / 10_000.0 ** (np.arange(3) / 3)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angle)
    parts = np.stack([turned.real, turned.imag], -1 if interleaved else -2).reshape(x.shape)
    found = compiled("rotary", "rotate", interleaved=interleaved)(x, position)
    assert_same(found, parts, rtol=5e-3, atol=5e-3)


@attack(f"{PAGE}#kv-cache", seed=seeds, at=st.integers(0, 9), dtype=st.sampled_from(["float32", "bfloat16"]))
def test_a_cache_takes_the_newest_in_place(seed: int, at: int, dtype: str) -> None:
    old, new = drawn(seed, 1, 8, 2, 4)[:2], drawn(seed + 1, 1, 2, 2, 4)[:2]
    cache = {name: jnp.asarray(a, dtype) + 0 for name, a in zip("kv", old, strict=True)}  # no memory of NumPy's
    places = cache["k"].unsafe_buffer_pointer()
    found = answer("kv-cache", "append")(cache, dict(zip("kv", new, strict=True)), at)
    assert cache["k"].is_deleted() and found["k"].unsafe_buffer_pointer() == places
    first = min(at, 6)  # past the end, it moves back
    for name, expected, part in zip("kv", old, new, strict=True):
        expected[:, first : first + 2] = part
        assert found[name].dtype == dtype
        assert_same(np.asarray(found[name], np.float32), np.asarray(jnp.asarray(expected, dtype), np.float32))


@attack(seed=seeds, at=st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_each_row_writes_at_its_own_place_or_nowhere(seed: int, at: tuple[int, int]) -> None:
    (old, _, _), (new, _, _) = drawn(seed, 2, 8, 2, 4), drawn(seed + 1, 2, 1, 2, 4)
    found = jnp.asarray(old).at[jnp.arange(2), jnp.array(at)].set(new[:, 0])
    for row, place in enumerate(at):
        old[row, place : place + 1] = new[row]  # nothing, past the end
    assert_same(found, old)


@attack(
    f"{PAGE}#sampling",
    seed=seeds,
    top_k=st.sampled_from([1, 3, 50]),
    top_p=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    temperature=st.sampled_from([0.0, 0.3, 3.0]),
)
def test_sampled_tokens_are_those_that_may_be_drawn(seed: int, top_k: int, top_p: float, temperature: float) -> None:
    logits = np.random.default_rng(seed).normal(size=6).astype(np.float32)
    logits[seed % 6] = -np.inf  # forbidden
    sample = compiled("sampling", "sample", "top_k")
    drawn = np.asarray(sample(jax.random.key(seed), np.tile(logits, (600, 1)), temperature, top_k, top_p))
    scaled = logits / np.float32(max(temperature, 1e-6))
    allowed, close = those(scaled, top_k, top_p)
    assert drawn.shape == (600,) and (close or set(drawn.tolist()) <= allowed)
    chances = np.exp(scaled - scaled.max(), where=np.isin(np.arange(6), [*allowed]), out=np.zeros(6, np.float32))
    often = set(np.flatnonzero(chances / chances.sum() > 0.03).tolist())
    assert close or often <= set(drawn.tolist()), (logits, allowed)


def test_tokens_come_as_often_as_their_chances_say() -> None:
    sample = answer("sampling", "sample")
    keys = jax.random.split(jax.random.key(1), 4000)
    tokens = jax.vmap(lambda key: sample(key, jnp.array([2.0, 1.0, 0.0, -1.0]), 2.0, 3, 1.0))(keys)
    chances = np.exp(np.array([1.0, 0.5, 0.0, -np.inf]))
    np.testing.assert_allclose(np.bincount(tokens, minlength=4) / 4000, chances / chances.sum(), atol=0.03)


@attack(f"{PAGE}#int8-product", seed=seeds, inner=st.sampled_from([0, 1, 300]))
def test_sums_in_int32_are_exact(seed: int, inner: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.choice([-128, -1, 0, 3, 127], shape).astype(np.int8) for shape in ((2, inner), (inner, 3)))
    products: list[Callable[..., jax.Array]] = [jnp.matmul, jnp.dot, partial(jnp.einsum, "ik,kj->ij"), jax.lax.dot]
    products.append(partial(jax.lax.dot_general, dimension_numbers=(((1,), (0,)), ((), ()))))
    for product in products:
        found = product(a, b, preferred_element_type=jnp.int32)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, a.astype(int) @ b.astype(int))


@attack(f"{PAGE}#int8-weights", seed=seeds, size=st.sampled_from([1.0, 1e-20, 1e20, 0.0]))
def test_a_layer_of_int8_is_off_by_half_a_scale_per_weight(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    w, x, bias = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 3), (2, 5), (3,)))
    w *= np.float32(size) * rng.choice([0, 1, 100], 3).astype(np.float32)  # columns of different sizes
    numbers, scale = compiled("int8-weights", "quantize")(w)
    assert numbers.dtype == np.int8 and scale.shape == (1, 3)
    found = np.asarray(answer("int8-weights", "layer")((numbers, scale), bias, x), np.float64)
    room = np.abs(x).sum(1, keepdims=True) * np.abs(w).max(0) / 254
    assert (np.abs(found - (x.astype(np.float64) @ w + bias)) <= room * 1.01 + 1e-4 * np.abs(bias) + 1e-30).all()


@attack(f"{PAGE}#rotary-weights", seed=seeds, heads=st.integers(1, 3), keys=st.integers(1, 3), half=st.integers(1, 3))
def test_reordered_weights_give_the_same_scores(seed: int, heads: int, keys: int, half: int) -> None:
    draw = np.random.default_rng(seed).normal
    x, wq, wk = draw(size=(2, 5)), draw(size=(heads * 2 * half, 5)), draw(size=(keys * 2 * half, 5))
    angle = np.exp(1j * np.outer([7, 3], 0.3 ** np.arange(half)))

    def turned(w: Array, number: int, at: int, axis: int) -> Any:
        pairs = (w @ x[at]).reshape((number, half, 2) if axis == 2 else (number, 2, half)).swapaxes(2, axis)
        return (pairs[..., 0] + 1j * pairs[..., 1]) * angle[at]

    names = program(f"{PAGE}#rotary-weights", "to_halves", "to_neighbors")
    for number, w, at in ((heads, wq, 0), (keys, wk, 1)):
        halves = np.asarray(names["to_halves"](w, number))
        assert_same(turned(halves, number, at, 1).real, turned(w, number, at, 2).real, 0, 1e-9)
        assert_same(names["to_neighbors"](halves, number), w, 0, 0)
        bias = np.asarray(names["to_halves"](w[:, :1], number))[:, 0]
        assert_same(bias, halves[:, 0], 0, 0)
