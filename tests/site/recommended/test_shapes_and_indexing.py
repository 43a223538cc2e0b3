"""Attacks on the answers about shapes and indexing: each against NumPy, or a Python loop over the elements."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.experimental import checkify

from tests.site.recommended.attack import attack, program
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, floats

Array = np.ndarray[Any, Any]
PAGE = "answers/shapes-and-indexing.md"
INTS, FLOATS = np.dtype("int32"), np.dtype("float32")
NUMBERS = st.sampled_from([INTS, FLOATS])
at = jax.jit(lambda x, i: x[i])
top = jax.jit(partial(jax.lax.top_k, k=2))


def made(anchor: str, *wanted: str) -> Any:
    """Return what an answer defines under these names: one of them, or a tuple of all."""
    found = program(f"{PAGE}#{anchor}", *wanted)
    return found[wanted[0]] if len(wanted) == 1 else tuple(found[name] for name in wanted)


@attack(f"{PAGE}#boolean-mask", x=arrays((5,)))
def test_reductions_of_a_mask_are_those_of_what_it_selects(x: Array) -> None:
    found, kept = made("boolean-mask", "positive")(x), x[x > 0]
    assert_same(found["sum"], kept.astype(float).sum())
    with np.errstate(all="ignore"):
        assert_same(found["mean"], kept.astype(float).mean() if kept.size else np.nan)
    assert_same(found["max"], kept.max(initial=-np.inf))
    assert_same(found["zeroed"], np.where(x > 0, x, 0))
    assert_same(found["padded"], np.append(kept, [np.nan] * 3)[:3])


@attack(f"{PAGE}#traced-size", x=floats(), n=st.integers(0, 6))
def test_a_masked_sum_is_that_of_the_first_elements(x: Array, n: int) -> None:
    first, first_sum = made("traced-size", "first", "first_sum")
    with np.errstate(invalid="ignore"):
        assert_same(first_sum(x, n), x[:n].astype(float).sum())
    cut, zeros = first(x, n=n % 3)
    assert_same(cut, x[: n % 3])
    assert zeros.shape == (n % 3,)


@attack(f"{PAGE}#shape-arithmetic", x=arrays(st.sampled_from([(1,), (2,), (4,), (6,), (9,), (3, 2)])))
def test_sizes_are_those_of_python(x: Array) -> None:
    n = int(x.size**0.5)
    assert_same(made("shape-arithmetic", "fold")(x), x.reshape(n, -1)[: min(n, 2)])


@cache
def distinct() -> Any:
    """The distinct elements, padded to five."""
    return jax.jit(lambda x: jnp.unique(x, size=5))


@attack(f"{PAGE}#nonzero-unique", x=arrays((5,), NUMBERS))
def test_a_promised_size_holds_the_positions_and_the_count(x: Array) -> None:
    shows(f"{PAGE}#nonzero-unique", "jnp.nonzero(x > 0, size=4, fill_value=x.size)", "jnp.unique(x, size=4)")
    found, count = made("nonzero-unique", "positions")(x)
    real = np.flatnonzero(x > 0)
    assert count == len(real)  # also where the size is too small
    assert found.tolist() == np.append(real, [5] * 4)[:4].tolist()
    values = np.unique(x)
    assert_same(distinct()(x), np.append(values, [values[0]] * 5)[:5])


@attack(f"{PAGE}#out-of-bounds", x=floats(odd=False, empty=False), i=st.integers(-9, 9))
def test_an_index_outside_reads_what_the_page_says_and_is_found(x: Array, i: int) -> None:
    outside, found = not -len(x) <= i < len(x), jnp.asarray(x)
    assert at(found, i) == x[min(max(i + len(x) * (i < 0), 0), len(x) - 1)]
    filled = found.at[i].get(mode="fill", fill_value=-100.0)
    assert filled == (-100 if outside else x[i])
    assert outside == bool((found.at[i].set(100.0) == found).all())
    if len(x) == 2:
        error, value = checked()(found, i)
        assert (error.get() is not None) == outside and (outside or value == x[i])


@cache
def checked() -> Any:
    """The check of indices, compiled."""
    return jax.jit(checkify.checkify(lambda x, i: x[i], checkify.index_checks))


@attack(f"{PAGE}#ragged", padded=arrays((3, 4)), lengths=arrays((3,), "int32").map(lambda n: np.abs(n) % 5))
def test_means_of_rows_leave_out_the_padding(padded: Array, lengths: Array) -> None:
    with np.errstate(invalid="ignore"):
        rows = [row[:n].astype(float) for row, n in zip(padded, lengths, strict=True)]
        assert_same(made("ragged", "means")(padded, lengths), [row.mean() if len(row) else np.nan for row in rows])


@attack(f"{PAGE}#list-index", x=arrays((4, 3)), rows=st.lists(st.integers(-4, 3), min_size=2, max_size=2))
def test_a_list_as_an_array_selects_rows(x: Array, rows: list[int]) -> None:
    shows(f"{PAGE}#list-index", "`x[jnp.array([0, 2])]`", "x[np.array([0, 2])]", "x[:, [0, 2]]", "x[[0, 2], [1, 1]]")
    found = jnp.asarray(x)
    assert_same(found[jnp.array(rows)], x[rows])
    assert_same(found[np.array(rows)], x[rows])
    assert_same(found[:, [0, 2]], x[:, [0, 2]])
    assert_same(found[rows, [1, 1]], x[rows, [1, 1]])


@attack(
    f"{PAGE}#rows-and-columns", x=arrays((3, 4)), rows=arrays((2,), "int32").map(lambda i: i % 3),
    columns=arrays((2,), "int32").map(lambda i: i % 4 - 4),
)  # fmt: skip
def test_an_extra_axis_gives_the_block(x: Array, rows: Array, columns: Array) -> None:
    shows(f"{PAGE}#rows-and-columns", "x[rows[:, None], columns]", "x[np.ix_([0, 2], [1, 3])]", "`x[rows][:, columns]`")
    expected = [[x[i, j] for j in columns] for i in rows]
    assert_same(at(x, (rows[:, None], columns)), expected)
    assert_same(at(jnp.asarray(x), np.ix_(rows, columns)), expected)
    assert_same(jnp.asarray(x)[rows][:, columns], expected)


@jax.jit
def one_per_row(x: jax.Array, index: jax.Array) -> tuple[jax.Array, ...]:
    """The three ways to take one element from each row, and the largest."""
    best = jnp.argmax(x, axis=1, keepdims=True)
    return (
        x[jnp.arange(len(x)), index],
        jnp.take_along_axis(x, index[:, None], axis=1)[:, 0],
        jax.vmap(lambda row, i: row[i])(x, index),
        jnp.take_along_axis(x, best, axis=1)[:, 0],
    )


@attack(
    f"{PAGE}#one-per-row", x=arrays((4, 3)),
    index=arrays((4,), st.sampled_from(["int32", "int8"]).map(np.dtype)).map(lambda i: i % 6 - 3),
)  # fmt: skip
def test_one_element_of_each_row(x: Array, index: Array) -> None:
    shows(f"{PAGE}#one-per-row", "`x[jnp.arange(len(x)), index]`", "labels[:, None], axis=1)[:, 0]")
    shows(f"{PAGE}#one-per-row", "jax.vmap(lambda row, i: row[i])(logits, labels)", "best, axis=1)[:, 0]")
    *ways, largest = one_per_row(x, index)
    for found in ways:
        assert_same(found, x[np.arange(4), index])
    assert_same(largest, x.max(axis=1))


@attack(
    f"{PAGE}#sum-by-group", values=arrays(st.sampled_from([(5,), (5, 3), (5, 2)]), NUMBERS, odd=False),
    groups=arrays((5,), "int32").map(lambda g: g % 5 - 1),
)  # fmt: skip
def test_sums_and_means_by_group_are_those_of_the_rows(values: Array, groups: Array) -> None:
    total, count, mean = made("sum-by-group", "by_group")(values, groups)
    for group in range(3):
        rows = values[groups == group].astype(float)
        assert_same(total[group], rows.sum(axis=0))
        assert (np.asarray(count[group]) == len(rows)).all()
        assert_same(mean[group], rows.mean(axis=0) if len(rows) else rows.sum(axis=0))


@attack(f"{PAGE}#repeat", x=arrays((3,)), counts=arrays((3,), "int32").map(lambda n: n % 8 - 3))
def test_repeats_have_the_promised_length(x: Array, counts: Array) -> None:
    repeated = np.repeat(x, np.maximum(counts, 0))  # NumPy refuses negative counts
    expected = np.append(repeated, [x[-1]] * 6)[:6]  # cut, or filled with the last, as the page says
    assert_same(made("repeat", "expand")(x, counts), expected)
    assert_same(jnp.repeat(x, 2), np.repeat(x, 2))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.int32, np.bool_])
def test_counts_of_any_integer_type_are_added_up_without_a_wrap(dtype: Any) -> None:
    x, counts = np.arange(300), np.arange(300).astype(dtype)  # of bytes, their sum is far above 255
    expand = program(f"{PAGE}#repeat", "expand")["expand"]
    expected = np.append(np.repeat(x, counts.astype(int)), [x[-1]] * 6)[:6]
    assert_same(expand(x, counts), expected)
    with pytest.raises(TypeError):
        expand(x, counts.astype(np.float32))


@jax.jit
def windows_of_three(x: jax.Array) -> tuple[jax.Array, ...]:
    """The windows, their means and their maxima in two ways."""
    width = 3
    starts = jnp.arange(x.size - width + 1)
    windows = x[starts[:, None] + jnp.arange(width)]
    maxima = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (width,), (1,), "VALID")
    return windows, jnp.convolve(x, jnp.ones(width) / width, mode="valid"), windows.max(axis=1), maxima


@attack(f"{PAGE}#sliding-window", x=arrays(st.sampled_from([(3,), (4,), (7,)])))
def test_windows_are_those_of_numpy(x: Array) -> None:
    shows(f"{PAGE}#sliding-window", "x[starts[:, None] + jnp.arange(width)]", "jnp.ones(width) / width, mode=")
    shows(f"{PAGE}#sliding-window", "x, -jnp.inf, jax.lax.max, (width,), (1,)", "If `x` is shorter than the window")
    expected = np.lib.stride_tricks.sliding_window_view(x, 3)
    windows, means, maxima, reduced = windows_of_three(x)
    assert_same(windows, expected)
    with np.errstate(invalid="ignore"):
        assert_same(means, expected.astype(float).mean(axis=1), atol=1e-3)
    assert_same(maxima, expected.max(axis=1))
    assert_same(reduced, expected.max(axis=1))


@attack(f"{PAGE}#column-minus-row", predicted=arrays((3, 1), odd=False), target=arrays((3,), odd=False))
def test_without_the_extra_axis_the_error_is_that_of_each_pair(predicted: Array, target: Array) -> None:
    shows(f"{PAGE}#column-minus-row", "predicted.squeeze(-1) - target", "`y[:, 0]`", "jnp.mean(error**2)")
    expected = [p - t for p, t in zip(predicted[:, 0].tolist(), target.tolist(), strict=True)]
    with jax.numpy_rank_promotion("raise"):
        assert_same(jnp.asarray(predicted).squeeze(-1) - target, expected)
        assert_same(jnp.asarray(predicted)[:, 0] - target, expected)


@attack(f"{PAGE}#incompatible-shapes", x=arrays((3, 2)), scale=arrays((3,), odd=False))
def test_a_new_axis_meets_each_row(x: Array, scale: Array) -> None:
    shows(f"{PAGE}#incompatible-shapes", "x * scale[:, None]", "x - x.mean(axis=1, keepdims=True)")
    with np.errstate(invalid="ignore"):
        rows = x.astype(float)
        assert_same(jnp.asarray(x) * scale[:, None], [row * one for row, one in zip(rows, scale, strict=True)])
        assert_same(jnp.asarray(x) - jnp.asarray(x).mean(axis=1, keepdims=True), [row - row.mean() for row in rows])


@jax.jit
def places(x: jax.Array, value: jax.Array) -> tuple[jax.Array, ...]:
    """The last largest element, the one nearest to a value, and the one in a matrix."""
    m = x[:4].reshape(2, 2)
    found = jnp.unravel_index(jnp.argmax(m), m.shape)
    return x.size - 1 - jnp.argmax(x[::-1]), jnp.argmin(jnp.abs(x - value)), *found


@attack(
    f"{PAGE}#first-true", x=arrays((5,), st.sampled_from(["int32", "int8", "float32"]).map(np.dtype), odd=False),
    unsigned=st.booleans(), value=st.integers(-9, 9),
)  # fmt: skip
def test_the_first_the_last_and_the_nearest_are_those_of_python(x: Array, unsigned: bool, value: int) -> None:
    shows(f"{PAGE}#first-true", "jnp.argmin(jnp.abs(x - 2.0))", "x.size - 1 - jnp.argmax(x[::-1])")
    x = x.astype(np.uint8) if unsigned else x
    numbers = x.tolist()
    larger = [number > value for number in numbers]
    assert made("first-true", "first")(np.array(larger)) == (larger.index(True) if any(larger) else -1)
    last, nearest, row, column = places(x, float(value))
    assert last == 4 - numbers[::-1].index(max(numbers))
    distances = [abs(number - value) for number in numbers]
    assert nearest == distances.index(min(distances))
    assert (row, column) == divmod(numbers[:4].index(max(numbers[:4])), 2)


@cache
def sorts() -> Any:
    """Sorts of the answer, compiled: in descending order, and of a table by one or two columns."""

    def sorted_ways(x: jax.Array, table: jax.Array) -> tuple[jax.Array, ...]:
        return (
            jnp.sort(x, descending=True),
            jnp.argsort(x, descending=True),
            table[jnp.argsort(table[:, 0])],
            table[jnp.lexsort((table[:, 1], table[:, 0]))],
        )

    return jax.jit(sorted_ways)


@attack(
    f"{PAGE}#sort-and-top-k", x=arrays((5,), st.sampled_from(["int32", "float32"]).map(np.dtype), odd=False),
    table=arrays((4, 2), "int32"), extreme=st.booleans(),
)  # fmt: skip
def test_sorts_keep_ties_and_extremes_in_order(x: Array, table: Array, extreme: bool) -> None:
    shows(f"{PAGE}#sort-and-top-k", "~jax.lax.top_k(~x, 2)[0]", "table[jnp.lexsort((table[:, 1], table[:, 0]))]")
    if extreme and x.dtype.kind == "i":
        x[1], x[3] = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    descending, order, by_first, by_both = sorts()(x, table)
    numbers = x.tolist()
    stable = sorted(range(5), key=lambda i: -numbers[i])
    assert descending.tolist() == [numbers[i] for i in stable]
    assert order.tolist() == stable
    values, positions = top(jnp.asarray(x))
    assert values.tolist() == descending[:2].tolist() and positions.tolist() == stable[:2]
    smallest = ~top(~jnp.asarray(x))[0] if x.dtype.kind == "i" else -top(-jnp.asarray(x))[0]
    assert smallest.tolist() == sorted(numbers)[:2]
    assert by_first.tolist() == sorted(table.tolist(), key=lambda row: row[0])
    assert by_both.tolist() == sorted(table.tolist())
