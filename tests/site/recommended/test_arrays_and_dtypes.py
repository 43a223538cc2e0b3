"""Attacks on the answers about arrays, dtypes and NumPy: each against what NumPy does to its own arrays, in place or wider."""

import json
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import special, stats

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, dtypes, shapes

Array = np.ndarray[Any, Any]
ARRAYS, DTYPES, NUMPY = "answers/arrays.md", "answers/dtypes.md", "answers/numpy.md"
PLACES = st.lists(st.integers(-5, 4), min_size=3, max_size=3)
NARROW = st.sampled_from(["float32", "float16", "bfloat16", "int8", "uint8", "int32"]).map(jnp.dtype)
METHODS: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
updates = jax.jit(lambda x, rows, values: {name: getattr(x.at[rows], name)(values) for name in METHODS})


def made(name: str, *wanted: str) -> Any:
    """Return what an answer defines under these names: one of them, or a tuple of all."""
    found = program(name, *wanted)
    return found[wanted[0]] if len(wanted) == 1 else tuple(found[one] for one in wanted)


@attack(f"{ARRAYS}#set-element", x=arrays((5,)), rows=PLACES, values=arrays((3,)), place=st.integers(-5, 4))
def test_updates_are_those_of_numpy_in_place(x: Array, rows: list[int], values: Array, place: int) -> None:
    shows(f"{ARRAYS}#set-element", "x.at[0, 1].set(5.0)", "`subtract`, `multiply`, `divide`, `power`, `min`, `max`")
    expected = x.copy()
    expected[place] = values[0]
    assert_same(jnp.asarray(x).at[place].set(values[0]), expected)
    with np.errstate(all="ignore"):
        for name, found in updates(x, np.array(rows), values).items():
            expected = x.copy()
            METHODS[name].at(expected, rows, values)  # repeated indices all count
            assert_same(found, expected)


@attack(f"{ARRAYS}#update-lost", x=arrays((5,)), place=st.integers(-5, 4))
def test_the_kept_result_is_changed_and_the_argument_is_not(x: Array, place: int) -> None:
    shows(f"{ARRAYS}#update-lost", "x = x.at[0].set(9)", "x = x.sort()")
    before, expected = jnp.array(x), x.copy()
    expected[place] = 9
    assert_same(before.at[place].set(9), expected)
    assert_same(before.sort(), np.sort(x))
    assert_same(before, x, 0, 0)


@attack(f"{ARRAYS}#masked-update", x=arrays((5,), st.sampled_from(["float32", "int32"]).map(np.dtype)),
        y=arrays((5,)))  # fmt: skip
def test_where_is_the_assignment_to_a_mask(x: Array, y: Array) -> None:
    zeroed, taken, doubled = made(f"{ARRAYS}#masked-update", "clear")(x, y)
    wide = x.astype(float)
    for found, mask, values in ((zeroed, x < 0, np.zeros(5)), (taken, x < 0, y), (doubled, x > 2, 2 * wide)):
        expected = wide.copy()
        expected[mask] = values[mask]
        assert_same(found, expected)


@attack(f"{ARRAYS}#to-numpy", f"{ARRAYS}#scalar-result", x=arrays((2, 2)), dtype=NARROW)
def test_values_survive_each_conversion(x: Array, dtype: Any) -> None:
    shows(f"{ARRAYS}#to-numpy", "x[0, 1].item(), float(x.sum()), int(x[1, 1])", "jax.device_get(params)")
    shows(f"{ARRAYS}#scalar-result", 'json.dumps({"loss": float(loss)})')
    x = np.clip(np.nan_to_num(x), 0, 9)
    found = jnp.asarray(x).astype(dtype)
    wide = x.astype(dtype).astype(float)
    assert_same(np.asarray(found), wide, 0, 0)
    assert found.tolist() == wide.tolist()
    assert found[0, 1].item() == float(found[0, 1]) == wide[0, 1] and int(found[1, 1]) == int(wide[1, 1])
    assert_same(jax.device_get({"w": [found]})["w"][0], wide, 0, 0)
    assert json.loads(json.dumps(float(found[0, 0]))) == wide[0, 0]


@attack(f"{ARRAYS}#read-only", x=arrays(shapes(1, 2, empty=False)))
def test_a_copy_can_be_written_to_and_changes_nothing_else(x: Array) -> None:
    shows(f"{ARRAYS}#read-only", "Use `np.array(x)`, which copies")
    kept = jnp.array(x)
    copied, wide = np.array(kept), np.asarray(kept, dtype=np.float64)
    copied[...] = wide[...] = 77
    assert_same(kept, x, 0, 0)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(kept)[...] = 77


@attack(
    f"{ARRAYS}#from-numpy", f"{ARRAYS}#shared-buffer", x=arrays(shapes(1, 2), dtypes("float", "int")),
    strided=st.booleans(),
)  # fmt: skip
def test_a_copy_that_numpy_made_is_never_shared(x: Array, strided: bool) -> None:
    shows(f"{ARRAYS}#shared-buffer", "`jax.device_put(buffer.copy())`")
    raw = np.zeros(x.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64  # where JAX could use the memory
    buffer = raw[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    buffer[...] = x
    view = buffer[::-1] if strided else buffer
    expected = view.copy()
    safe = jax.block_until_ready((jax.device_put(view.copy()), jnp.array(view.copy()), jnp.asarray(view.copy())))
    buffer[...] = 77
    for found in safe:
        assert_same(found, expected, 0, 0)
        assert found.dtype == x.dtype


@attack(f"{ARRAYS}#list-refused", numbers=st.lists(st.integers(-18, 18).map(lambda n: n / 2), max_size=5))
def test_a_list_as_an_array_has_its_sum(numbers: list[float]) -> None:
    shows(f"{ARRAYS}#list-refused", "jnp.sum(jnp.array([0.1, 0.2, 0.7]))")
    assert jnp.sum(jnp.array(numbers)) == sum(numbers)
    if numbers:
        assert_same(jnp.stack([jnp.full(2, number) for number in numbers]).mean(), np.mean(numbers))
    with pytest.raises(TypeError):
        jnp.sum(numbers)  # type: ignore[arg-type]


@attack(f"{ARRAYS}#append", numbers=st.lists(st.integers(-18, 18).map(lambda n: n / 2), max_size=9))
def test_a_buffer_holds_what_was_pushed_until_it_is_full(numbers: list[float]) -> None:
    push = made(f"{ARRAYS}#append", "push")
    shows(f"{ARRAYS}#append", "write to `count % buffer.size`")
    (buffer, count), ring = (jnp.zeros(4), 0), jnp.zeros(4)
    for number in numbers:
        ring, _ = push(ring, count % 4, number)
        buffer, count = push(buffer, count, number)
    assert count == len(numbers) and buffer[:count].tolist() == numbers[:4]
    last = {i % 4: number for i, number in enumerate(numbers)}
    assert ring.tolist() == [last.get(i, 0.0) for i in range(4)]
    assert jnp.append(jnp.array(numbers[:2]), 3.0).tolist() == [*numbers[:2], 3.0]


@attack(f"{ARRAYS}#is-array", x=arrays(shapes(0, 2)))
def test_an_array_and_its_tracers_are_arrays(x: Array) -> None:
    shows(f"{ARRAYS}#is-array", "`isinstance(x, jax.Array)`")
    seen: list[bool] = []

    def note(x: jax.Array) -> jax.Array:
        seen.append(isinstance(x, jax.Array))
        return x.sum()

    for transformed in (jax.eval_shape, lambda f, x: jax.make_jaxpr(jax.grad(f))(x), lambda f, x: f(jnp.asarray(x))):
        transformed(note, x)
    assert seen == [True] * len(seen) and len(seen) >= 3
    assert not any(isinstance(other, jax.Array) for other in (x, x.tolist(), None))


@attack(f"{ARRAYS}#view-or-copy", x=arrays((5,)), place=st.integers(0, 4), value=st.integers(-9, 9))
def test_a_slice_does_not_see_a_later_update(x: Array, place: int, value: int) -> None:
    shows(f"{ARRAYS}#view-or-copy", "So `y = x` is safe")
    whole = jnp.array(x)
    same, part, reshaped = whole, whole[:3], whole.reshape(5, 1)
    whole = whole.at[place].set(value)
    for found, expected in ((same, x), (part, x[:3]), (reshaped, x.reshape(5, 1))):
        assert_same(found, expected, 0, 0)


@attack(f"{ARRAYS}#unhashable", labels=arrays(st.sampled_from([(0,), (3,)]), "int32"))
def test_labels_are_looked_up_as_numbers(labels: Array) -> None:
    shows(f"{ARRAYS}#unhashable", "[names[label] for label in labels.tolist()]", "len(set(labels.tolist()))")
    names, found = {n: f"name {n}" for n in range(-9, 10)}, jnp.asarray(labels)
    assert [names[label] for label in found.tolist()] == [names[int(label)] for label in labels]
    assert len(set(found.tolist())) == len(np.unique(labels))
    assert {tuple(found.tolist()): 1}[tuple(labels)] == 1


@attack(f"{ARRAYS}#compare-equal", x=arrays((3,)), y=arrays((3,)), same=st.booleans(), dtype=NARROW)
def test_equality_is_that_of_numpy_for_one_dtype(x: Array, y: Array, same: bool, dtype: Any) -> None:
    shows(f"{ARRAYS}#compare-equal", "`jnp.array_equal(x, y)`", "`jnp.allclose(x, y)`", "equal_nan=True")
    x, y = (np.nan_to_num(one, nan=np.nan if dtype.kind == "f" else 0, posinf=9, neginf=0) for one in (x, y))
    x, y = np.clip(x, 0, 9).astype(dtype), np.clip(x if same else y, 0, 9).astype(dtype)
    left, right = jnp.asarray(x), jnp.asarray(y)
    wide, other = x.astype(float), y.astype(float)
    assert jnp.array_equal(left, right) == np.array_equal(wide, other)
    assert jnp.array_equal(left, right, equal_nan=True) == np.array_equal(wide, other, equal_nan=True)
    assert jnp.allclose(left, right) == np.allclose(wide, other)
    assert not jnp.array_equal(left, right[:2])


@attack(f"{ARRAYS}#diagonal", x=arrays((3, 3)), value=st.integers(-9, 9), size=st.sampled_from([1, 100, 10_000]))
def test_a_diagonal_and_a_triangle_are_those_of_numpy(x: Array, value: int, size: int) -> None:
    shows(f"{ARRAYS}#diagonal", "jnp.fill_diagonal(x, 0.0, inplace=False)", "x.at[np.triu_indices(3, k=1)].set(7.0)")
    shows(f"{ARRAYS}#diagonal", "x.at[[0, 2], [1, 0]].set(-1.0)", "`1e-6 * x.diagonal().max()`")
    found, expected = jnp.asarray(x), x.copy()
    np.fill_diagonal(expected, value)
    assert_same(jnp.fill_diagonal(found, value, inplace=False), expected)
    assert_same(found.at[np.diag_indices(3)].set(value), expected)
    upper = np.where(np.triu(np.ones((3, 3)), 1) == 1, value, x)
    assert_same(found.at[np.triu_indices(3, k=1)].set(value), upper)
    chosen = x.copy()
    chosen[[0, 2], [1, 0]] = value
    assert_same(found.at[[0, 2], [1, 0]].set(value), chosen)
    equal = jnp.full((3, 3), float(size))
    jittered = equal + 1e-6 * equal.diagonal().max() * jnp.eye(3)
    assert ((jittered != equal) == jnp.eye(3)).all()


@attack(f"{DTYPES}#float64", f"{DTYPES}#x64-scope", f"{DTYPES}#float32-default", x=arrays((3,), dtypes("float", "int")))
def test_a_scope_adds_up_in_float64(x: Array) -> None:
    total = made(f"{DTYPES}#x64-scope", "total")
    shows(f"{DTYPES}#float32-default", "dtype=jnp.float32)", "(w * 2.0).dtype")
    with np.errstate(invalid="ignore"):
        expected = np.float32(x.astype(float).sum())
    found = total(x)
    assert found.dtype == jnp.float32
    assert_same(found, expected, 1e-6, 0)
    large = np.array([1e8, *x.astype(np.float32), -1e8], np.float32)  # beside which float32 loses the others
    assert_same(total(large), expected, 1e-6, 0)
    with jax.enable_x64(True):
        wide = jnp.asarray(x.astype(float)) * 3
        assert wide.dtype == jnp.float64
        assert_same(wide, x.astype(float) * 3, 1e-15, 0)
        named = jnp.asarray(x, dtype=jnp.float32)
        assert (named * 2.0).dtype == jnp.mean(named).dtype == jnp.float32


def _weighed(x: Any) -> Any:
    with jax.enable_x64(True):
        result = jnp.sum(jnp.sort(x.astype(jnp.float64)) * jnp.array([1e9, 1.0, -1e9]))
    return result.astype(jnp.float32)


def test_a_scope_belongs_around_the_gradient() -> None:
    x = jnp.array([3.0, 1.0, 2.0])
    for slope in (jax.grad(_weighed), jax.jit(jax.grad(_weighed)), jax.grad(jax.jit(_weighed))):
        with pytest.raises(TypeError, match="same dtypes"):
            slope(x)
        with jax.enable_x64(True):
            np.testing.assert_array_equal(slope(x), np.array([-1e9, 1e9, 1.0], np.float32))


@attack(f"{DTYPES}#weak-type", f"{DTYPES}#widened", dtype=st.sampled_from(["bfloat16", "float16", "float32", "int8"]),
        number=st.sampled_from([2, 0.5, 8**0.5]))  # fmt: skip
def test_a_python_number_keeps_the_dtype(dtype: str, number: float) -> None:
    shows(f"{DTYPES}#widened", "`jnp.zeros((), x.dtype)`", '"8**0.5": 8**0.5')
    x = jnp.ones(2, dtype)
    whole = dtype == "int8" and isinstance(number, float)
    for weak in (number, jnp.asarray(number)):
        assert (x * weak).dtype == (jnp.float32 if whole else jnp.dtype(dtype))
    assert (x * jnp.zeros((), x.dtype)).dtype == x.dtype
    strong = jnp.asarray(number).astype(jnp.float32)
    assert not strong.weak_type and (x * strong).dtype == jnp.float32


@attack(
    f"{DTYPES}#find-promotion", left=st.sampled_from(["bfloat16", "float16", "float32", "int32"]),
    right=st.sampled_from(["bfloat16", "float16", "float32", "int32"]),
)  # fmt: skip
def test_strict_promotion_refuses_exactly_what_promotes(left: str, right: str) -> None:
    shows(f"{DTYPES}#find-promotion", 'with jax.numpy_dtype_promotion("strict"):')
    x, y = jnp.ones(2, left), jnp.ones(2, right)
    with jax.numpy_dtype_promotion("strict"):
        if left == right:
            assert (x + y).dtype == (x * 2).dtype == left
        else:
            with pytest.raises(jax.dtypes.TypePromotionError):
                x + y


@attack(f"{DTYPES}#int-overflow", f"{DTYPES}#int-too-large", scale=st.integers(0, 2**31 - 1), x=arrays((4,), "int32"))
def test_sums_in_64_bits_are_exact(scale: int, x: Array) -> None:
    shows(f"{DTYPES}#int-overflow", "jnp.sum(x, dtype=jnp.int64)", "jnp.sum(x, dtype=jnp.float32)")
    shows(f"{DTYPES}#int-too-large", "jnp.array(3_000_000_000, dtype=jnp.uint32)", "jnp.ones(1) + 3_000_000_000.0")
    narrow = np.array([scale, scale // 2, 7, 0]) * np.sign(x)
    exact = int(narrow.sum())
    found = jnp.asarray(narrow)
    assert_same(jnp.sum(found, dtype=jnp.float32), np.float64(exact), 1e-5, 300)
    with jax.enable_x64(True):
        assert jnp.sum(found, dtype=jnp.int64) == exact
        assert jnp.array(3 * scale) == 3 * scale
    assert int(jnp.array(2 * scale, dtype=jnp.uint32)) == 2 * scale
    assert_same(jnp.ones(1) + float(3 * scale), [3.0 * scale + 1], 1e-6)


@attack(f"{DTYPES}#uint8-image", image=arrays((4,), "int32").map(lambda x: (14 * x) % 256),
        shift=st.integers(-300, 300))  # fmt: skip
def test_an_image_in_floats_does_not_wrap(image: Array, shift: int) -> None:
    shows(f"{DTYPES}#uint8-image", "(x * 1.3).round().clip(0, 255).astype(jnp.uint8)", "image / 255")
    stored = jnp.asarray(image.astype(np.uint8))
    x = stored.astype(jnp.float32)
    assert (x + shift).round().clip(0, 255).astype(jnp.uint8).tolist() == np.clip(image + shift, 0, 255).tolist()
    brighter = [min(round(13 * int(pixel) / 10), 255) for pixel in image]
    assert [*map(int, (x * 1.3).round().clip(0, 255).astype(jnp.uint8))] == brighter
    assert_same(x - x[::-1], image - image[::-1])
    assert ((stored / 255 * 255).round().clip(0, 255).astype(jnp.uint8) == stored).all()


@attack(f"{DTYPES}#strings", names=st.lists(st.sampled_from(["cat", "dog", ""]), min_size=1, max_size=5),
        days=st.lists(st.integers(0, 99_999), min_size=1, max_size=4))  # fmt: skip
def test_codes_and_days_turn_back_into_names_and_dates(names: list[str], days: list[int]) -> None:
    shows(f"{DTYPES}#strings", "names, codes = np.unique(animals, return_inverse=True)")
    shows(f"{DTYPES}#strings", "jnp.asarray((days - days.min()).astype(np.float32))", "missing.astype(np.float32)")
    found, codes = np.unique(np.array(names), return_inverse=True)
    assert [str(found[code]) for code in jnp.asarray(codes).tolist()] == names
    dates = np.datetime64("1990-01-01") + np.array(days)
    numbers = jnp.asarray((dates - dates.min()).astype(np.float32))
    assert numbers.tolist() == [day - min(days) for day in days]
    holes = np.array([None, *days], dtype=object)
    assert_same(jnp.asarray(holes.astype(np.float32)), [np.nan, *days])


@attack(f"{DTYPES}#to-integers", y=arrays((5,), odd=False))
def test_floats_are_cut_rounded_or_floored_as_in_numpy(y: Array) -> None:
    shows(f"{DTYPES}#to-integers", "jnp.round(y).astype(int)", "jnp.floor(y).astype(int)")
    y = y / 2
    found = jnp.asarray(y)
    assert found.astype(int).tolist() == np.trunc(y).tolist()
    assert jnp.round(found).astype(int).tolist() == np.round(y).tolist()
    assert jnp.floor(found).astype(int).tolist() == np.floor(y).tolist()


@attack(f"{DTYPES}#is-float", name=st.sampled_from(["float32", "bfloat16", "float16", "float8_e4m3fn", "int8", "bool"]))
def test_floats_are_told_from_other_numbers(name: str) -> None:
    shows(f"{DTYPES}#is-float", "`jnp.issubdtype(x.dtype, jnp.floating)`")
    floating = "float" in name
    assert jnp.issubdtype(jnp.dtype(name), jnp.floating) == floating
    assert jnp.issubdtype(jnp.dtype(name), jnp.inexact) == floating
    half = jax.tree.map(
        lambda a: a.astype(jnp.bfloat16) if jnp.issubdtype(a.dtype, jnp.floating) else a, [jnp.ones(2, name)]
    )
    assert half[0].dtype == ("bfloat16" if floating else name)


@attack(f"{DTYPES}#float8", x=arrays((4,), odd=False), size=st.sampled_from([1e-3, 1.0, 1e6]))
def test_a_scale_brings_data_into_the_range_of_float8(x: Array, size: float) -> None:
    shows(f"{DTYPES}#float8", "divide by a scale that brings the data into range, and keep that scale")
    x = (x * size).astype(np.float32)
    scale = max(float(np.abs(x).max()), 1e-30) / 448  # the largest one, as the page prints
    stored = (jnp.asarray(x) / scale).astype(jnp.float8_e4m3fn)
    assert_same(stored.astype(jnp.float32) * scale, x, rtol=0.07, atol=0.1 * scale)


@attack(f"{DTYPES}#half-sum", n=st.sampled_from([1, 400, 5000]), dtype=st.sampled_from(["bfloat16", "float16"]),
        value=st.integers(1, 32))  # fmt: skip
def test_a_half_sum_is_rounded_once(n: int, dtype: str, value: int) -> None:
    shows(f"{DTYPES}#half-sum", "jnp.sum(y, dtype=jnp.float32)")
    x = jnp.full(n, value / 2, dtype)
    assert jnp.sum(x, dtype=jnp.float32) == n * value / 2
    assert jnp.sum(x) == jnp.asarray(n * value / 2, dtype)
    assert jnp.mean(x) == value / 2


@attack(f"{DTYPES}#complex", x=arrays((4,), dtypes("float", "int")))
def test_roots_of_negative_numbers_are_imaginary(x: Array) -> None:
    shows(f"{DTYPES}#complex", "jnp.sqrt(x + 0j)", "jnp.sqrt(x.astype(complex)).imag", "jax.lax.complex(1.0, 2.0)")
    x = np.nan_to_num(x.astype(np.float32), nan=3.0, posinf=4.0, neginf=-4.0)
    for found in (jnp.sqrt(jnp.asarray(x) + 0j), jnp.sqrt(jnp.asarray(x).astype(complex))):
        assert_same(found.real, np.sqrt(np.maximum(x, 0)))
        assert_same(found.imag, np.sqrt(np.maximum(-x, 0)))
    z = jax.lax.complex(x, x[::-1])
    assert_same(jnp.abs(z), np.hypot(x, x[::-1]))
    assert_same((z * jnp.conj(z)).real, x.astype(float) ** 2 + x[::-1].astype(float) ** 2)


@cache
def smoothed() -> Any:
    """The function of the answer, compiled."""
    return jax.jit(made(f"{NUMPY}#np-or-jnp", "smooth"))


@attack(f"{NUMPY}#np-or-jnp", x=arrays(st.sampled_from([(1,), (3,), (6,)]), odd=False))
def test_constants_of_numpy_stand_in_a_compiled_program(x: Array) -> None:
    assert_same(smoothed()(x), np.convolve(x, np.hanning(5) / 2)[: x.size // 2])


@attack(f"{NUMPY}#mixing", n=arrays((3,)), x=arrays((3,)))
def test_mixed_arrays_have_the_values_of_numpy(n: Array, x: Array) -> None:
    shows(f"{NUMPY}#mixing", '"n + x": n + x', '"np.sum(x)": np.sum(x)', "`total += np.asarray(x)`")
    found = jnp.asarray(x)
    with np.errstate(invalid="ignore"):
        assert_same(n + found, n.astype(float) + x)
        assert_same(np.where(found > 0, found, n), np.where(x > 0, x, n))
        assert_same(np.sum(found), x.astype(float).sum())
        total = np.array(n)
        kept = total
        total += np.asarray(found)
        assert total is kept
        assert_same(kept, n.astype(float) + x)


@attack(f"{NUMPY}#python-builtins", x=arrays((3,)))
def test_functions_of_jax_report_nan_as_numpy_does(x: Array) -> None:
    shows(f"{NUMPY}#python-builtins", "`round` gives an integer")
    first = made(f"{NUMPY}#python-builtins", "fine")(x)
    with np.errstate(invalid="ignore"):
        whole = np.round(x[0]) if np.isfinite(x[0]) else first[1]  # as the page says
        expected = (np.abs(x), whole, x.astype(float) ** 2, 3, np.maximum(x, 2))
    for found, right in zip(first, expected, strict=True):
        assert_same(found, right)
    assert_same(jnp.max(x), np.max(x))
    assert_same(jnp.round(x * 1e9), np.round(x * np.float32(1e9)), atol=0)  # also beyond the integers


@cache
def of_scipy() -> Any:
    """Functions of the answer, compiled."""
    return jax.jit(lambda x: (jax.grad(jax.scipy.special.gammaln)(x), jax.scipy.stats.norm.logpdf(x)))


@attack(f"{NUMPY}#scipy-coverage", x=st.integers(-79, 400).map(lambda n: n / 4))
def test_functions_of_scipy_and_their_derivatives(x: float) -> None:
    slope, density = of_scipy()(x)
    assert_same(density, stats.norm.logpdf(x), rtol=1e-5)
    if x > 0:
        assert_same(slope, special.digamma(x), rtol=1e-3, atol=1e-3)


@attack(f"{NUMPY}#pandas", codes=arrays((4,), "int8").map(lambda n: np.maximum(n, -1)), ages=arrays((4,), "int32"))
def test_a_missing_category_is_masked_and_not_the_last(codes: Array, ages: Array) -> None:
    shows(
        f"{NUMPY}#pandas", ".cat.codes.to_numpy(np.int32)", "color, known = jnp.asarray(codes), jnp.asarray(codes >= 0)"
    )
    codes = codes.astype(np.int32)
    assert (jnp.asarray(codes) * 100).tolist() == [code * 100 for code in codes.tolist()]
    color, known, table = jnp.asarray(codes), jnp.asarray(codes >= 0), jnp.arange(10.0) + 1
    expected = [0.0 if code < 0 else code + 1.0 for code in codes.tolist()]
    assert jnp.where(known, table[color], 0).tolist() == expected
    cells = np.array([[age, None] for age in ages.tolist()], dtype=object)
    assert_same(jnp.asarray(cells.astype(np.float32)), np.stack([ages, np.full(4, np.nan)], axis=1))
    assert jnp.asarray(cells[:, 0].astype(np.int32)).tolist() == ages.tolist()


@attack(f"{NUMPY}#out-argument", x=arrays((3,)), y=arrays((3,)))
def test_where_is_the_where_argument_of_numpy(x: Array, y: Array) -> None:
    shows(f"{NUMPY}#out-argument", "jnp.where(x > 1, x + y, x)", "jnp.sum(x, where=x > 1)", 'order="F")')
    expected, found = x.copy(), jnp.asarray(x)
    with np.errstate(invalid="ignore"):
        np.add(expected, y, out=expected, where=expected > 1)
        assert_same(jnp.where(found > 1, found + y, found), expected)
        assert_same(jnp.sum(found, where=found > 1), np.sum(x.astype(float), where=x > 1))
    assert_same(jnp.arange(4).reshape(2, 2, order="F"), np.arange(4).reshape(2, 2, order="F"))


@slow_attack(f"{NUMPY}#drop-in", x=arrays((3,), odd=False), place=st.integers(-9, 9), number=st.integers(0, 600))
def test_what_differs_silently_differs_as_the_page_shows(x: Array, place: int, number: int) -> None:
    found, stored = jnp.asarray(x), (np.array([0]) + number).astype(np.uint8)
    assert found[place] == x[min(max(place + 3 * (place < 0), 0), 2)]
    assert (jnp.zeros(1, jnp.uint8) + number)[0] == stored[0]
    before = found
    found += 1
    assert_same(before, x, 0, 0)
    assert not np.isfinite(np.asarray(jnp.linalg.inv(jnp.ones((2, 2))))).any()
