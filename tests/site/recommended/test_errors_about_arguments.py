"""Fixes of the error dictionary for arguments, shapes and dtypes, against NumPy, and what is refused for other data too."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.experimental import checkify

from tests.site.recommended.attack import attack, program
from tests.site.recommended.entries import fixed, refused
from tests.site.strategies import Transformation, arrays, assert_same, dtypes, shapes, transformations

Array = np.ndarray[Any, Any]
ERRORS = "lookup/errors-arguments.md"
SMALL = st.integers(-16, 16).map(lambda n: n / 8)
small = partial(arrays, dtype="float32", odd=False)
pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # of NumPy, where NaN and infinity meet


@cache
def of(anchor: str, name: str) -> Any:
    """A name that an entry defines; what is compiled is compiled once."""
    return program(f"{ERRORS}#{anchor}", name, jax=jax, jnp=jnp, np=np, partial=partial)[name]


@attack(
    f"{ERRORS}#arrays-immutable",
    f"{ERRORS}#at-assignment",
    x=arrays(st.sampled_from([(3,), (1,), (2, 2)]), "float32"),
)
def test_updates_are_those_of_numpy_in_place(x: Array) -> None:
    expected = x.copy()
    expected[0] = 1
    expected[1:] += 2
    for name in ("arrays-immutable", "at-assignment"):
        [found] = fixed(f"{ERRORS}#{name}", x=jnp.asarray(x))
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, expected)
        refused(f"{ERRORS}#{name}", x=jnp.asarray(x))


@attack(f"{ERRORS}#array-attribute", x=arrays(st.sampled_from([(3,), (0,)]), dtypes("float", "int")))
def test_functions_stand_for_the_methods(x: Array) -> None:
    array, longer, shape, placed = fixed(f"{ERRORS}#array-attribute", x=jnp.asarray(x))
    np.testing.assert_array_equal(array, x)
    assert_same(longer, np.append(x, np.float32(1)))
    assert shape == np.expand_dims(x, 0).shape and placed
    refused(f"{ERRORS}#array-attribute", x=jnp.asarray(x))


@attack(f"{ERRORS}#list-refused", numbers=st.lists(SMALL | st.integers(-9, 9) | st.booleans(), max_size=4))
def test_a_list_that_became_an_array_has_its_sum(numbers: list[float]) -> None:
    [found] = fixed(f"{ERRORS}#list-refused", {"[1.0, 2.0, 3.0]": "numbers"}, numbers=numbers)
    assert_same(found, np.sum(numbers))
    refused(f"{ERRORS}#list-refused", {"[1.0, 2.0, 3.0]": "numbers"}, numbers=numbers)


@attack(f"{ERRORS}#data-type", rows=st.integers(0, 5), columns=st.integers(0, 5))
def test_a_shape_is_one_argument(rows: int, columns: int) -> None:
    changes = {"(3, 4)": "(rows, columns)"}
    found = fixed(f"{ERRORS}#data-type", changes, rows=rows, columns=columns)
    assert found == [np.ones((rows, columns)).shape] * 2
    refused(f"{ERRORS}#data-type", changes, f"Cannot interpret .{columns}. as a data type", rows=rows, columns=columns)


@attack(f"{ERRORS}#error-interpreting-argument", scales=st.lists(SMALL, max_size=3), x=arrays(shapes(0, 1)))
def test_a_registered_layer_has_the_scale_of_each_call(scales: list[float], x: Array) -> None:
    layer = of("error-interpreting-argument", "Layer")(1.0)
    for scale in scales:
        layer.scale = scale
        assert_same(layer.apply(x), np.float32(scale) * x)
    dense = of("error-interpreting-argument", "dense")
    assert_same(dense(x, jax.nn.relu), np.maximum(x, 0))
    assert_same(dense(x, jnp.abs), np.abs(x))
    refused(f"{ERRORS}#error-interpreting-argument", {"apply(1.0)": "apply(x)"}, x=x)


@attack(f"{ERRORS}#not-a-valid-jax-type", w=small((2,)), x=arrays((2,)))
def test_a_gradient_of_the_arrays_alone(w: Array, x: Array) -> None:
    params = {"w": w, "activation": "relu"}
    [found] = fixed(f"{ERRORS}#not-a-valid-jax-type", {"jnp.ones(2)": "x"}, params=params, x=x)
    assert {*found} == {"w"}
    np.testing.assert_array_equal(found["w"], x)
    refused(f"{ERRORS}#not-a-valid-jax-type", {"(params, jnp.ones(2))": "(params, x)"}, params=params, x=x)


@attack(
    f"{ERRORS}#non-hashable-static",
    x=arrays((5,), dtypes()),
    sizes=st.sampled_from([(2, 3), (5,), (0, 5), (1, 1, 3), (2, 2), (2, 4), ()]),
)
def test_pieces_have_the_sizes_that_are_asked_for(x: Array, sizes: tuple[int, ...]) -> None:
    split = of("non-hashable-static", "split")
    if sum(sizes) != x.size:
        with pytest.raises(AssertionError):
            split(x, sizes=sizes)
        return
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    pieces = split(x, sizes=sizes)
    assert len(pieces) == len(sizes)
    for piece, end, size in zip(pieces, ends, sizes, strict=True):
        np.testing.assert_array_equal(piece, x[end - size : end])
    changes = {"jnp.arange(5), sizes=[2, 3]": "x, sizes=sizes"}
    refused(f"{ERRORS}#non-hashable-static", changes, x=x, sizes=[*sizes])


@attack(f"{ERRORS}#invalid-argnames", x=arrays((3, 2), dtypes("float", "int")), axis=st.sampled_from([0, 1, -1, None]))
def test_a_spread_is_along_the_axis(x: Array, axis: int | None) -> None:
    with np.errstate(all="ignore"):
        assert_same(of("invalid-argnames", "spread")(x, axis=axis), x.max(axis) - x.min(axis))


@attack(f"{ERRORS}#compiled-types", x=arrays((3,), st.sampled_from([np.dtype(f"f{n}") for n in (2, 4, 8)])))
def test_a_compiled_program_doubles_what_it_takes(x: Array) -> None:
    assert_same(of("compiled-types", "double")(x), 2 * x)
    compiled = of("compiled-types", "double_three")
    if x.dtype == np.float16:
        refused(f"{ERRORS}#compiled-types", {"double_three(jnp.ones(4))": "double_three(x)"}, x=x)
    else:
        assert_same(compiled(x), 2 * x)


@attack(
    f"{ERRORS}#non-tuple-index",
    x=arrays((3, 3), dtypes()),
    rows=st.lists(st.integers(-3, 2), min_size=1, max_size=2) | st.just([True, False, True]),
)
def test_an_array_picks_rows_and_a_tuple_an_element(x: Array, rows: list[int]) -> None:
    changes = {"x[0, 2]": "x[tuple(rows)]", "[0, 2]": "rows"}
    picked, element = fixed(f"{ERRORS}#non-tuple-index", changes, x=jnp.asarray(x), rows=rows)
    np.testing.assert_array_equal(picked, x[rows])
    if rows[0] is not True:
        np.testing.assert_array_equal(element, x[tuple(rows)])
    refused(f"{ERRORS}#non-tuple-index", {"[0, 2]": "rows"}, x=jnp.asarray(x), rows=rows)


@attack(f"{ERRORS}#index-type", x=arrays(shapes(1, 2, empty=False), dtypes()), i=st.integers(-1, 0))
def test_a_middle_is_that_of_whole_numbers(x: Array, i: int) -> None:
    array = jnp.asarray(x)
    labels = jnp.asarray([i, -1 - i], jnp.float32)
    found, picked = fixed(f"{ERRORS}#index-type", x=array, labels=labels)
    np.testing.assert_array_equal(found, x[len(x) // 2])
    np.testing.assert_array_equal(picked, x[[i, -1 - i]])
    np.testing.assert_array_equal(array[jnp.full(2, float(i)).astype(int)], x[[i, i]])
    refused(f"{ERRORS}#index-type", x=array)


@attack(f"{ERRORS}#too-many-indices", batch=arrays(st.sampled_from([(2, 3), (1, 2), (3, 3)]), dtypes("float", "int")))
def test_a_mapped_function_sees_one_row(batch: Array) -> None:
    first, mean = fixed(f"{ERRORS}#too-many-indices", batch=jnp.asarray(batch))
    np.testing.assert_array_equal(first, batch[:, 0])
    with np.errstate(all="ignore"):
        assert_same(mean, batch[:, 1].astype(float).mean())
    refused(f"{ERRORS}#too-many-indices", batch=jnp.asarray(batch))


@attack(
    f"{ERRORS}#out-of-bounds", x=arrays((3,), dtypes("float", "int")), i=st.integers(-6, 6), call=transformations("jit")
)
def test_an_index_outside_does_what_its_mode_says(x: Array, i: int, call: Transformation) -> None:
    inside = -3 <= i < 3
    clamped, filled, dropped, _ = fixed(
        f"{ERRORS}#out-of-bounds", {"[5]": "[i]", "[i].get": "[i].get"}, x=jnp.asarray(x), i=i
    )
    np.testing.assert_array_equal(clamped, x[min(max(i, -3), 2)])
    none = np.nan if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    np.testing.assert_array_equal(filled, x[i] if inside else none)
    expected = x.copy()
    if inside:
        expected[i] = 9
    np.testing.assert_array_equal(dropped, expected)
    error, _ = checked()(x, i)
    assert (error.get() is None) == inside


@cache
def checked() -> Callable[..., Any]:
    """The page's function with its check, compiled once."""
    return jax.jit(checkify.checkify(of("out-of-bounds", "newest"), errors=checkify.index_checks))


@attack(
    f"{ERRORS}#truth-value",
    a=arrays(st.sampled_from([(2,), (1,), (0,), (2, 1)]), dtypes("float", "int")),
    b=arrays(st.sampled_from([(2,), (1,), (0,), (3,)]), dtypes("float", "int")),
)
def test_arrays_are_the_same_as_for_numpy(a: Array, b: Array) -> None:
    if a.shape == b.shape:
        some, same, *_ = fixed(f"{ERRORS}#truth-value", a=jnp.asarray(a), b=jnp.asarray(b))
        assert some == bool((a == b).any()) and same == np.array_equal(a, b)
    assert bool(jnp.array_equal(a, b)) == np.array_equal(a, b)
    changes = {"jnp.array([1, 2]) == jnp.array([1, 3])": "a == b"}
    if a.shape == b.shape == (2,):
        refused(f"{ERRORS}#truth-value", changes, a=jnp.asarray(a), b=jnp.asarray(b))


@attack(f"{ERRORS}#int-too-large", n=st.integers(2**31, 2**63 - 2))
def test_large_integers_are_exact(n: int) -> None:
    refused(f"{ERRORS}#int-too-large", {"3_000_000_000": "n"}, match=f"{n} too large", n=n)
    if n >= 2**32:
        with pytest.raises(OverflowError):
            fixed(f"{ERRORS}#int-too-large", {"3_000_000_000": "n"}, n=n)
        n %= 2**32
    unsigned, large = fixed(f"{ERRORS}#int-too-large", {"3_000_000_000": "n"}, n=n)
    assert (int(unsigned), int(large)) == (n, n + 1)
    assert (unsigned.dtype, large.dtype) == (np.uint32, np.int64)


@attack(f"{ERRORS}#float64-truncated", x=arrays(shapes(1), "float64"))
def test_wide_floats_are_kept_where_they_are_turned_on(x: Array) -> None:
    with jax.enable_x64(True):
        wide = jnp.asarray(x + np.pi)
        assert wide.dtype == np.float64
        np.testing.assert_array_equal(wide, x + np.pi)
    shape = {"jnp.zeros(3": "jnp.zeros(shape", "np.zeros(3)": "given"}
    kept, silent = fixed(f"{ERRORS}#float64-truncated", shape, shape=x.shape, given=x)
    assert (kept, silent) == (np.float64, np.float32)
    refused(f"{ERRORS}#float64-truncated", {"zeros(3": "zeros(shape"}, shape=x.shape)


@attack(
    f"{ERRORS}#TypePromotionError", x=arrays((3,), "int32"), y=arrays((3,)), z=st.integers(-8, 8).map(lambda n: n / 4)
)
def test_a_converted_side_gives_the_sum(x: Array, y: Array, z: float) -> None:
    changes = {"jnp.arange(3)": "x", "jnp.ones(3)": "y", "jnp.float8_e4m3fn(1.0)": "jnp.float8_e4m3fn(z)"}
    total, small = fixed(f"{ERRORS}#TypePromotionError", changes, x=jnp.asarray(x), y=jnp.asarray(y), z=z)
    assert_same(total, x + y + 1)
    assert float(small) == 1 + z
    refused(
        f"{ERRORS}#TypePromotionError", {"jnp.arange(3)": "x", "jnp.ones(3)": "y"}, x=jnp.asarray(x), y=jnp.asarray(y)
    )


@attack(f"{ERRORS}#same-dtypes", x=arrays((3,)), n=arrays((3,), dtypes("int", "bool")))
def test_both_conversions_add(x: Array, n: Array) -> None:
    changes = {"jnp.ones(3)": "x", "jnp.arange(3)": "n"}
    for found in fixed(f"{ERRORS}#same-dtypes", changes, x=jnp.asarray(x), n=jnp.asarray(n)):
        assert_same(found, x + n)
    if n.dtype != bool:  # which add does not take
        refused(f"{ERRORS}#same-dtypes", changes, x=jnp.asarray(x), n=jnp.asarray(n))


@attack(f"{ERRORS}#incompatible-shapes", batch=arrays(st.sampled_from([(4, 3), (3, 3), (1, 3)])), bias=arrays((4,)))
def test_a_bias_is_added_to_each_row(batch: Array, bias: Array) -> None:
    bias = bias[: len(batch)]
    with np.errstate(all="ignore"):
        expected = np.stack([row + number for row, number in zip(batch, bias, strict=True)])
    [found] = fixed(f"{ERRORS}#incompatible-shapes", {".shape": ""}, batch=jnp.asarray(batch), bias=jnp.asarray(bias))
    assert_same(found, expected)
    if len(batch) == 4:
        refused(f"{ERRORS}#incompatible-shapes", batch=jnp.asarray(batch), bias=jnp.asarray(bias))


@attack(f"{ERRORS}#contracting-dimensions", x=small((2, 3)), w=small(st.sampled_from([(4, 3), (3, 3), (1, 3)])))
def test_both_products_are_those_of_the_loop(x: Array, w: Array) -> None:
    wide = np.array([[sum(a * b) for b in w.astype(float)] for a in x.astype(float)])
    for found in fixed(f"{ERRORS}#contracting-dimensions", {".shape": ""}, x=jnp.asarray(x), w=jnp.asarray(w)):
        assert_same(found, wide)
    if len(w) == 4:
        refused(f"{ERRORS}#contracting-dimensions", x=jnp.asarray(x), w=jnp.asarray(w))


@attack(
    f"{ERRORS}#conv-features",
    images=small(st.sampled_from([(2, 4, 5, 3), (1, 1, 3, 3)])),
    kernel=small(st.sampled_from([(5, 5, 3, 2), (3, 1, 3, 1)])),
    per_channel=small(st.sampled_from([(3, 3, 1, 3), (1, 5, 1, 6)])),
)
def test_channels_last_are_convolved_as_in_the_loops(images: Array, kernel: Array, per_channel: Array) -> None:
    data: dict[str, Any] = {
        "images": jnp.asarray(images),
        "kernel": jnp.asarray(kernel),
        "per_channel": jnp.asarray(per_channel),
    }
    together, apart = fixed(f"{ERRORS}#conv-features", {".shape": ""}, **data)
    assert_same(together, correlated(images, kernel))
    many = per_channel.shape[-1] // 3
    for channel in range(3):
        group = slice(channel * many, (channel + 1) * many)
        assert_same(apart[..., group], correlated(images[..., channel : channel + 1], per_channel[..., group]))
    if images.shape[1] != kernel.shape[1]:  # else the wrong order fits, as the entry says
        refused(f"{ERRORS}#conv-features", match="divided by feature_group_count must equal", **data)


def correlated(images: Array, kernel: Array) -> Array:
    """Return a convolution of images with their channels last, for a kernel of odd sides that stays at the edges."""
    height, width = kernel.shape[0] // 2, kernel.shape[1] // 2
    wide = np.pad(images.astype(float), ((0, 0), (height, height), (width, width), (0, 0)))
    expected = np.zeros((*images.shape[:3], kernel.shape[3]))
    for n, i, j in np.ndindex(*images.shape[:3]):
        window = wide[n, i : i + kernel.shape[0], j : j + kernel.shape[1]]
        expected[n, i, j] = np.sum(window[..., None] * kernel, axis=(0, 1, 2))
    return expected


@attack(
    f"{ERRORS}#square-matrix",
    a=arrays(st.sampled_from([(3, 2), (5, 2), (2, 3)]), "int32").map(lambda a: (a % 4).astype("float32")),
    b=small((5,)),
    stack=arrays((2, 2, 4), "int32").map(lambda a: (a % 3).astype("float32")),
)
def test_a_matrix_that_is_not_square_has_the_least_squares(a: Array, b: Array, stack: Array) -> None:
    b = b[: len(a)]
    stack += 5 * np.eye(2, dtype="float32")[..., None]
    found, same, inverses = fixed(
        f"{ERRORS}#square-matrix",
        {".round(2)": "", ".shape": ""},
        a=jnp.asarray(a),
        b=jnp.asarray(b),
        stack=jnp.asarray(stack),
    )
    expected = np.linalg.lstsq(a.astype(float), b.astype(float), rcond=1e-6)[0]
    assert_same(found, expected, 1e-3, 1e-3)
    assert_same(same, expected, 1e-3, 1e-3)
    for i in range(stack.shape[-1]):
        assert_same(inverses[i] @ stack[..., i], np.eye(2))
    refused(f"{ERRORS}#square-matrix", match="must have shape", a=jnp.asarray(a), b=jnp.asarray(b))


@attack(
    f"{ERRORS}#core-dimension",
    a=arrays((2, 2), "int32").map(lambda a: (a % 4 + 9 * np.eye(2)).astype("float32")),
    sides=small(st.sampled_from([(3, 2), (2, 2), (1, 2)])),
)
def test_rows_are_solved_one_by_one(a: Array, sides: Array) -> None:
    [found] = fixed(f"{ERRORS}#core-dimension", a=jnp.asarray(a), sides=jnp.asarray(sides))
    assert_same(found, [np.linalg.solve(a.astype(float), side) for side in sides])
    if len(sides) != 2:
        refused(f"{ERRORS}#core-dimension", match="core dimension", a=jnp.asarray(a), sides=jnp.asarray(sides))


@attack("lookup/errors-derivatives.md#zero-d", w=small((2,)))
def test_a_pair_comes_with_the_gradient(w: Array) -> None:
    value, extra, slope = fixed("lookup/errors-derivatives.md#zero-d", {"jnp.ones(2)": "w"}, w=jnp.asarray(w))
    wide = w.astype(float)
    np.testing.assert_allclose(value, np.sum(wide**2), rtol=1e-5)
    assert extra == w.max()
    np.testing.assert_array_equal(slope, 2 * w)
    refused("lookup/errors-derivatives.md#zero-d", {"jnp.ones(2)": "w"}, w=jnp.asarray(w))


@attack(f"{ERRORS}#cannot-reshape", x=arrays(st.sampled_from([(6,), (2, 1), (0,), (3, 2)]), dtypes()))
def test_rows_are_filled_one_after_the_other(x: Array) -> None:
    if x.size:
        [found] = fixed(f"{ERRORS}#cannot-reshape", {"jnp.arange(6)": "x", ".shape": ""}, x=jnp.asarray(x))
        np.testing.assert_array_equal(found, [x.ravel()[: x.size // 2], x.ravel()[x.size // 2 :]])
    refused(f"{ERRORS}#cannot-reshape", {"jnp.arange(6)": "x"}, x=jnp.asarray(x))


@attack(
    f"{ERRORS}#cannot-concatenate",
    rows=arrays(st.sampled_from([(2, 3), (0, 3), (1, 3)]), dtypes("float", "int")),
    row=arrays((3,), dtypes("float", "int")),
)
def test_a_row_comes_last(rows: Array, row: Array) -> None:
    expected = np.array([*rows.astype(float), row.astype(float)])
    for found in fixed(f"{ERRORS}#cannot-concatenate", {".shape": ""}, rows=jnp.asarray(rows), row=jnp.asarray(row)):
        assert_same(found, expected)
    refused(
        f"{ERRORS}#cannot-concatenate",
        match="different numbers of dimensions",
        rows=jnp.asarray(rows),
        row=jnp.asarray(row),
    )


@attack(
    f"{ERRORS}#stack-shapes", x=arrays((6,)), sizes=st.sampled_from([(2, 4), (1, 5), (0, 2), (1, 2, 3), (3, 3), (4,)])
)
def test_a_padded_row_has_the_mean_of_its_numbers(x: Array, sizes: tuple[int, ...]) -> None:
    ends = np.cumsum(sizes)
    rows = [x[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    means, laid = fixed(f"{ERRORS}#stack-shapes", samples=[*map(jnp.asarray, rows)])
    with np.errstate(all="ignore"):
        assert_same(means, [row.astype(float).mean() if row.size else np.nan for row in rows])
    np.testing.assert_array_equal(laid, x[: sum(sizes)])
    if len({*sizes}) > 1:
        changes = {"jnp.array([1.0, 2.0])": "short", "jnp.array([3.0, 4.0, 5.0])": "long"}
        refused(f"{ERRORS}#stack-shapes", changes, short=rows[0], long=rows[1])


@attack(f"{ERRORS}#missing-argument", scale=st.integers(-3, 3).map(float), x=arrays((2,)))
def test_a_jitted_method_keeps_its_first_attributes(scale: float, x: Array) -> None:
    model = of("missing-argument", "Model")(scale)
    predict = jax.jit(model.predict)
    assert_same(predict(x), scale * x)
    model.scale = scale + 1
    assert_same(predict(x), scale * x)
    assert_same(jax.jit(model.predict)(x), scale * x)
    refused(f"{ERRORS}#missing-argument", {"jnp.ones(2)": "x"}, x=x)
