"""The answers on blocks, scratch memory and names of Pallas, interpreted and lowered for a TPU, against NumPy."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.experimental import pallas as pl

from tests.site.recommended.attack import attack, program
from tests.site.recommended.test_gpu_kernels import drawn
from tests.site.strategies import assert_same

PAGE = "answers/pallas.md"
seeds = st.integers(0, 2**31 - 1)


@cache
def answer(anchor: str, name: str, **options: Any) -> Callable[..., Any]:
    """A function of an answer, compiled."""
    return jax.jit(partial(program(f"{PAGE}#{anchor}", name)[name], **options))


@attack(f"{PAGE}#index-map", step=st.sampled_from([1, 3]), start=st.integers(0, 3), seed=seeds)
def test_an_index_map_counts_in_blocks(step: int, start: int, seed: int) -> None:
    x = drawn(seed, 8).astype(np.float32)
    take = answer("index-map", "take", block=(2,), index_map=lambda i: ((step * i + start) % 4,))
    assert_same(take(x), np.concatenate([x[2 * b : 2 * b + 2] for b in (step * np.arange(4) + start) % 4]))
    take = answer("index-map", "take", block=(pl.Element(2),), index_map=lambda i: (i + start,))
    assert_same(take(x), np.concatenate([x[i + start :][:2] for i in range(4)]))


@attack(f"{PAGE}#captures", seed=seeds, dtype=st.sampled_from(["float32", "int32"]))
def test_an_argument_is_what_an_array_from_outside_should_be(seed: int, dtype: str) -> None:
    x, factors = (drawn(seed + i, 5).astype(dtype) for i in range(2))
    assert_same(answer("captures", "scale")(x, factors), x.astype(np.float64) * factors)


@pytest.mark.parametrize("outside", [np.ones(3, np.float32), jnp.ones(()), [1.0, 2.0, 3.0]])
def test_arrays_from_outside_are_refused(outside: Any) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * jnp.asarray(outside)

    with pytest.raises(ValueError, match="captures constants"):
        pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((3,), "float32"), interpret=True)(jnp.ones(3))


@attack(f"{PAGE}#partial-block", rows=st.sampled_from([1, 8, 11, 20]), seed=seeds, whole=st.booleans())
def test_a_partial_block_adds_only_what_there_is(rows: int, seed: int, whole: bool) -> None:
    x = drawn(seed, rows, 3).astype(np.int32 if whole else np.float32)
    assert_same(answer("partial-block", "total")(x), x.astype(np.float64).sum(0, keepdims=True), atol=1e-3)


@attack(
    f"{PAGE}#accumulate", blocks=st.sampled_from([1, 3]), seed=seeds, dtype=st.sampled_from(["float32", "bfloat16"])
)
def test_scratch_memory_adds_up_in_float32(blocks: int, seed: int, dtype: str) -> None:
    x = jnp.asarray(drawn(seed, 8 * blocks, 3), dtype)
    exact = np.asarray(x, np.float64)
    near = 1e-5 if dtype == "float32" else 5e-3
    found = np.asarray(answer("accumulate", "total")(x), np.float64)
    assert (abs(found - exact.sum(0)) <= near * abs(exact).sum(0) + 1e-6).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_tpu_takes_the_kernel_that_adds_up(dtype: str) -> None:
    x = jax.ShapeDtypeStruct((64, 256), dtype)
    text = answer("accumulate", "total", interpret=False).trace(x).lower(lowering_platforms=("tpu",)).as_text()  # type: ignore[attr-defined]
    assert "tpu_custom_call" in text


@attack(
    f"{PAGE}#tpu-blocks",
    shape=st.sampled_from([(36, 64), (64, 256)]),
    block=st.tuples(st.sampled_from([4, 8, 12, 16, 36, 64]), st.sampled_from([32, 64, 128, 256])),
    dtype=st.sampled_from(["float32", "bfloat16"]),
)
def test_a_tpu_takes_multiples_of_8_and_128_or_all(shape: tuple[int, int], block: tuple[int, int], dtype: str) -> None:
    block = min(block[0], shape[0]), min(block[1], shape[1])
    fine = all(b % tile == 0 or b == n for b, n, tile in zip(block, shape, (8, 128), strict=True))
    found = program(f"{PAGE}#tpu-blocks", "accepts")["accepts"](shape, block, dtype)
    assert found == fine


@cache
def refusals(start: int, rows: int) -> tuple[list[str | None], list[str | None], list[str | None]]:
    """Ask Triton and a TPU for their refusals of a slice of a ref, and of `at` and `jnp.where` on one row."""
    shown = program(f"{PAGE}#unimplemented-primitive", "refusal", "gpu")
    refusal, devices = shown["refusal"], (shown["gpu"], ("tpu", "TPU v5 lite"))
    return (
        [refusal(lambda x: x[start : start + rows], rows, *device) for device in devices],
        [refusal(lambda x: x[...].at[start].set(0), 8, *device) for device in devices],
        [refusal(lambda x: cleared(x, start), 8, *device) for device in devices],
    )


def cleared(x: Any, start: int) -> jax.Array:
    """Return a block with one row of zeros, without `at`."""
    return jnp.where(jax.lax.broadcasted_iota(jnp.int32, x.shape, 0) == start, 0, x[...])


@attack(f"{PAGE}#unimplemented-primitive", start=st.integers(0, 3), rows=st.integers(1, 5), seed=seeds)
def test_triton_takes_slices_of_refs_of_a_power_of_two(start: int, rows: int, seed: int) -> None:
    (on_gpu, on_tpu), scatters, wheres = refusals(start, rows)
    assert on_tpu is None
    assert on_gpu is None if rows in (1, 2, 4) else "power of 2" in str(on_gpu)
    assert all("scatter" in str(refused) for refused in scatters)
    assert wheres == [None, None]
    x = drawn(seed, 8, 128).astype(np.float32)
    found = np.asarray(cleared(x, start))
    x[start] = 0
    assert_same(found, x)


@attack(
    f"{PAGE}#shared-memory",
    blocks=st.lists(st.tuples(*[st.sampled_from([16, 32, 64, 256])] * 2), min_size=1, max_size=3),
    dtype=st.sampled_from(["float32", "bfloat16", "int8"]),
)
def test_blocks_need_the_memory_of_their_arrays(blocks: list[tuple[int, int]], dtype: str) -> None:
    needs = sum(jnp.zeros(shape, dtype).nbytes for shape in blocks)
    assert program(f"{PAGE}#shared-memory", "kib")["kib"](blocks, dtype) == -(-needs // 1024)


@attack(f"{PAGE}#print", seed=seeds, blocks=st.sampled_from([1, 3]))
def test_a_kernel_that_prints_computes_the_same(seed: int, blocks: int) -> None:
    x = drawn(seed, 2 * blocks).astype(np.float32)
    assert_same(answer("print", "double")(x), 2 * x.astype(np.float64))


@attack(f"{PAGE}#gone", seed=seeds, blocks=st.sampled_from([1, 3]), dtype=st.sampled_from(["float32", "bfloat16"]))
def test_refs_are_indexed_and_multiplied_as_arrays(seed: int, blocks: int, dtype: str) -> None:
    a, b = jnp.asarray(drawn(seed, 2, 3), dtype), jnp.asarray(drawn(seed + 1, 3, 4 * blocks), dtype)
    wide, tall = np.asarray(a, np.float64), np.asarray(b, np.float64)
    found = answer("gone", "product")(a, b)
    assert found.dtype == np.float32
    assert (abs(np.asarray(found) - wide @ tall) <= 1e-5 * (abs(wide) @ abs(tall))).all()


def test_names_that_are_gone_are_gone() -> None:
    for name in "load", "store", "atomic_add":
        assert not hasattr(pl, name)
    assert hasattr(pl, "dot") == (jax.__version_info__ < (0, 11, 2))


@pytest.mark.parametrize(
    ("dtype", "rows", "value"), [("bfloat16", 4096, 1), ("float16", 40000, 1), ("int8", 200, 1), ("uint8", 20, 1)]
)
def test_small_types_are_not_added_up_over_blocks(dtype: str, rows: int, value: int) -> None:
    total = program(f"{PAGE}#partial-block", "total")["total"]
    with pytest.raises(AssertionError, match="convert it first"):
        total(jnp.full((rows, 1), value, dtype))
    assert_same(total(jnp.full((rows, 1), value, dtype).astype("float32")), np.array([[float(rows * value)]]))


@pytest.mark.parametrize(("dtype", "value"), [("int32", 2**24 + 1), ("int8", 100), ("bool", 1)])
def test_scratch_memory_of_floats_takes_no_integers(dtype: str, value: int) -> None:
    with pytest.raises(AssertionError):
        program(f"{PAGE}#accumulate", "total")["total"](jnp.full((8, 1), value, dtype))


def test_scratch_memory_takes_whole_blocks_only_and_no_double() -> None:
    total = program(f"{PAGE}#accumulate", "total")["total"]
    with pytest.raises(AssertionError):
        total(jnp.ones((20, 3)))
    with jax.enable_x64(True), pytest.raises(AssertionError):
        total(jnp.full((8, 1), 0.1))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
@pytest.mark.parametrize("size", [1, 5])
def test_a_kernel_of_each_row_reaches_the_last_of_an_odd_number(size: int, dtype: str) -> None:
    x = jnp.arange(1, size + 1).astype(dtype)
    assert_same(program(f"{PAGE}#print", "double")["double"](x), 2.0 * np.asarray(x))
    assert_same(program(f"{PAGE}#index-map", "take")["take"](x, lambda i: (i,), (2,)), 1.0 * np.asarray(x))


@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
def test_rows_left_out_of_unsigned_integers_look_like_zeros(dtype: str) -> None:
    shown = program(f"{PAGE}#rows-left-out", "double", "double_any")
    x = jnp.ones(20, dtype)
    assert_same(shown["double_any"](x, 8), np.full(20, 2.0))
    assert not shown["double"](x, 8)[16:].any()  # as the answer warns
    x = jnp.ones((20, 1), jnp.uint32)
    total = program(f"{PAGE}#partial-block", "total")["total"]
    assert_same(total(x, masked=False), np.array([[20.0]]))  # as the answer warns: the test passes without the mask


@pytest.mark.parametrize("a", [np.full((1, 1), 4097), np.full((1, 1), 1j, np.complex64), np.ones((1, 1), np.int8)])
def test_a_product_in_float32_takes_floats_only(a: Any) -> None:
    product = program(f"{PAGE}#gone", "product")["product"]
    for left, right in ((a, jnp.full((1, 4), a[0, 0])), (jnp.ones((1, 1)), np.repeat(a, 4, 1))):
        if jnp.result_type(left, right) == jnp.float32:
            assert_same(product(jnp.asarray(left), jnp.asarray(right)), left @ np.asarray(right))
            continue
        with pytest.raises(AssertionError):
            product(jnp.asarray(left), jnp.asarray(right))
    with pytest.raises(AssertionError):
        product(jnp.ones((2, 3)), jnp.ones((3, 10)))


def test_blocks_that_just_exceed_the_memory_are_not_rounded_down_to_it() -> None:
    kib = program(f"{PAGE}#shared-memory", "kib")["kib"]
    assert kib([(163 * 1024 + 900,)], "int8") > 163
    assert kib([(16, 4)], "float32") > 0


@attack(f"{PAGE}#invalid-swap", rows=st.integers(1, 5), columns=st.integers(1, 5), seed=seeds)
def test_a_block_takes_a_value_of_its_own_shape_and_dtype(rows: int, columns: int, seed: int) -> None:
    x = drawn(seed, rows, columns).astype(np.float32)
    assert_same(answer("invalid-swap", "column_sums")(x), x.astype(np.float64).sum(0, keepdims=True), atol=1e-3)
    for wrong, message in ((jnp.ones(columns), "Invalid shape"), (jnp.ones((rows, columns), "int32"), "Invalid dtype")):

        def kernel(o_ref: Any, wrong: Any = wrong) -> None:
            o_ref[...] = jnp.ones(wrong.shape, wrong.dtype)

        with pytest.raises(ValueError, match=f"{message} for `swap`"):
            pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((rows, columns), "float32"), interpret=True)()


@attack(f"{PAGE}#ref-not-read", seed=seeds)
def test_only_a_ref_that_is_read_and_written_gives_a_result(seed: int) -> None:
    x = drawn(seed, 5).astype(np.float32)
    found = program(f"{PAGE}#ref-not-read", "run", "right", "lost", "unread")
    assert_same(found["run"](found["right"], x), np.sin(x.astype(np.float64)) + 1, atol=1e-5)
    assert np.isnan(found["run"](found["lost"], x)).all()
    with pytest.raises(TypeError, match="sin (got a Ref|requires ndarray)"):
        found["run"](found["unread"], x)
