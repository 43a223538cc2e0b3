"""Attacks on the answers about Grain, jaxtyping and Chex: lists, permutations and shape rules in plain Python."""

import time
from functools import cache
from itertools import islice
from typing import Any

import chex  # type: ignore[import-untyped]
import grain  # type: ignore[import-untyped]
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from beartype.door import is_bearable
from hypothesis import strategies as st
from jaxtyping import Float, TypeCheckError, jaxtyped

from tests.site.recommended.attack import attack, program

PAGE = "answers/grain-and-checks.md"
seeds = st.integers(0, 10_000)


def rows_of(dataset: Any) -> list[int]:
    """Return what a dataset of numbers yields, one by one."""
    return [int(row) for row in dataset]


@attack(f"{PAGE}#epochs", size=st.integers(1, 12), seed=seeds, epochs=st.integers(1, 4))
def test_each_repetition_has_all_rows_and_a_loop_the_first_order(size: int, seed: int, epochs: int) -> None:
    rows = grain.MapDataset.source(np.arange(size)).seed(seed).shuffle()
    repeated = rows_of(rows.repeat(epochs))
    orders = [repeated[size * e : size * (e + 1)] for e in range(epochs)]
    assert all(sorted(order) == list(range(size)) for order in orders)
    assert rows_of(rows) == rows_of(rows) == orders[0]
    assert rows_of(rows.repeat(epochs, reseed_each_epoch=False)) == epochs * orders[0]
    assert epochs == 1 or size < 8 or orders[0] != orders[1]  # two of 40,320 orders are seldom the same
    resumed = rows.repeat()
    assert [int(resumed[i]) for i in range(size * (epochs - 1), size * epochs)] == orders[-1]


@attack(f"{PAGE}#subset", size=st.integers(2, 12), cut=st.integers(0, 12), seed=seeds)
def test_parts_share_no_row_in_any_epoch(size: int, cut: int, seed: int) -> None:
    cut = 1 + cut % (size - 1)
    data, places = 10 * np.arange(size), np.random.default_rng(seed).permutation(size)
    part = program(f"{PAGE}#subset", "part", data=data)["part"]
    for chosen in (places[:cut], places[cut:]):
        found = rows_of(part(chosen, seed).repeat(3))
        for epoch in range(3):
            assert sorted(found[len(chosen) * epoch : len(chosen) * (epoch + 1)]) == sorted(data[chosen].tolist())


@attack(f"{PAGE}#map-or-iter", size=st.integers(0, 12), seed=seeds, by=st.integers(1, 4), many=st.integers(1, 3))
def test_a_filter_keeps_the_numbers_and_a_stream_makes_batches(size: int, seed: int, by: int, many: int) -> None:
    if not size:
        return  # a source without rows has no order
    rows = grain.MapDataset.source(np.arange(size)).seed(seed).shuffle()
    kept = [row for row in rows_of(rows) if row % by == 0]
    filtered = rows.filter(lambda row: row % by == 0)
    assert len(filtered) == size and rows_of(filtered) == kept
    assert [filtered[i] for i in range(size)] == [row if row % by == 0 else None for row in rows_of(rows)]
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    stream = [batch.tolist() for batch in filtered.to_iter_dataset(options).batch(many)]
    assert stream == [kept[i : i + many] for i in range(0, len(kept), many)]


@attack(f"{PAGE}#steps-per-epoch", size=st.integers(4, 15), seed=seeds, many=st.integers(1, 4))
def test_an_epoch_has_as_many_steps_as_full_batches(size: int, seed: int, many: int) -> None:
    rows = grain.MapDataset.source(np.arange(size)).seed(seed).shuffle()
    batches = rows.batch(many, drop_remainder=True)
    per_epoch, endless = len(batches), batches.repeat()
    assert per_epoch == size // many
    for epoch in range(3):
        seen = np.concatenate([endless[epoch * per_epoch + i] for i in range(per_epoch)]).tolist()
        assert len(set(seen)) == len(seen) == per_epoch * many
    assert len(rows.repeat(3).batch(many, drop_remainder=True)) == 3 * size // many


@attack(f"{PAGE}#never-ends", size=st.sampled_from([2, 3, 5]), epochs=st.integers(1, 2))
def test_a_loader_yields_whole_epochs_of_the_order(size: int, epochs: int) -> None:
    loader = program(f"{PAGE}#never-ends", "loader", data=np.arange(size))["loader"]
    rows = [row for batch in loader(epochs) for row in batch.tolist()]
    assert len(rows) == size * epochs // 3 * 3
    whole = len(rows) // size
    assert all(sorted(rows[size * e : size * (e + 1)]) == list(range(size)) for e in range(whole))
    endless = [row for batch in islice(loader(None), len(rows) // 3) for row in batch.tolist()]
    assert endless == rows


@attack(f"{PAGE}#position", used=st.integers(0, 12), ahead=st.integers(1, 8))
def test_a_resumed_stream_continues_where_it_was(used: int, ahead: int) -> None:
    names = program(f"{PAGE}#position", "batches", "json")
    one = names["batches"]()
    before = [next(one).tolist() for _ in range(used)]
    state = names["json"].loads(names["json"].dumps(one.get_state()))
    after = [next(one).tolist() for _ in range(ahead)]
    other = names["batches"]()
    next(other)  # it may have been used
    other.set_state(state)
    assert [next(other).tolist() for _ in range(ahead)] == after
    seen = [row for batch in before + after for row in batch]
    for epoch in range(len(seen) // 10):
        assert sorted(seen[10 * epoch : 10 * (epoch + 1)]) == list(range(0, 20, 2))
    one.close()
    other.close()


@attack(f"{PAGE}#memory", buffer=st.integers(0, 4), used=st.integers(1, 3))
def test_an_iterator_reads_as_many_batches_ahead_as_the_buffer_holds(buffer: int, used: int) -> None:
    names = program(f"{PAGE}#memory", "Rows", read=[])
    batches = grain.MapDataset.source(names["Rows"]()).batch(10)
    options = grain.ReadOptions(num_threads=2 * bool(buffer), prefetch_buffer_size=buffer)
    iterator = iter(batches.to_iter_dataset(options))
    for _ in range(used):
        assert next(iterator).shape == (10, 1000)
    while len(names["read"]) < 10 * (used + buffer):
        time.sleep(0.001)
    iterator.close()
    assert sorted(names["read"]) == list(range(10 * (used + buffer)))


@attack(
    f"{PAGE}#combine", short=st.integers(1, 5), long=st.integers(1, 7), parts=st.sampled_from([(1, 1), (3, 1), (1, 2)])
)
def test_a_mixture_reads_each_source_in_order_by_its_weight(short: int, long: int, parts: tuple[int, int]) -> None:
    one, other = grain.MapDataset.source(np.arange(short)), grain.MapDataset.source(100 + np.arange(long))
    assert rows_of(grain.MapDataset.concatenate([one, other])) == [*range(short), *range(100, 100 + long)]
    weights = [part / sum(parts) for part in parts]
    mixed = grain.MapDataset.mix([one.repeat(), other.repeat()], weights)
    found = [int(mixed[i]) for i in range(6 * sum(parts))]
    for rows, start, size, part in ((found, 0, short, parts[0]), (found, 100, long, parts[1])):
        own = [row for row in rows if (row >= 100) == (start == 100)]
        assert own == [start + i % size for i in range(6 * part)]
    ended = rows_of(grain.MapDataset.mix([one, other], weights))
    assert len(set(ended)) == len(ended)  # it ends before a source begins again
    same = min(short, long)
    pairs = [(int(a), int(b)) for a, b in grain.experimental.ZipMapDataset([one[:same], other[:same]])]
    assert pairs == [(i, 100 + i) for i in range(same)]


@attack(f"{PAGE}#pack", sizes=st.lists(st.integers(1, 10), min_size=1, max_size=6), bins=st.integers(1, 3))
def test_packing_keeps_each_sequence_whole_and_apart(sizes: list[int], bins: int) -> None:
    names = program(f"{PAGE}#pack", "pack", "mask")
    texts = [100 * (i + 1) + np.arange(size) for i, size in enumerate(sizes)]
    found = []
    for row in names["pack"](texts, 8, bins):
        tokens, segments, places = (row[f"tokens{end}"] for end in ("", "_segment_ids", "_positions"))
        assert tokens.shape == (8,) and not tokens[segments == 0].any()
        for segment in range(1, segments.max() + 1):
            found.append(tokens[segments == segment].tolist())
            assert places[segments == segment].tolist() == list(range(len(found[-1])))
        seen = [
            [bool(j <= i and tokens[i] and tokens[i] // 100 == tokens[j] // 100) for j in range(8)] for i in range(8)
        ]
        assert np.asarray(names["mask"](segments)).tolist() == seen
        assert np.asarray(names["mask"](segments[None])).tolist() == [seen]  # a batch
    assert sorted(found) == [text[:8].tolist() for text in texts]


@cache
def dots() -> tuple[Any, Any]:
    dot = program(f"{PAGE}#not-checked", "dot")["dot"]
    return jaxtyped(typechecker=beartype)(dot), beartype(dot)


@attack(f"{PAGE}#not-checked", m=st.integers(0, 3), n=st.integers(0, 3), compiled=st.booleans())
def test_sizes_that_differ_are_refused_only_with_both_decorators(m: int, n: int, compiled: bool) -> None:
    both, alone = dots()
    a, b = jnp.arange(1.0, m + 1), jnp.arange(2.0, n + 2)
    checked = jax.jit(both) if compiled else both
    if m == n:
        np.testing.assert_allclose(checked(a, b), np.dot(a, b))
    else:
        with pytest.raises(TypeCheckError):
            checked(a, b)
        if 1 in (m, n):
            alone(a, b)  # runs, and sums what nobody meant


@attack(f"{PAGE}#axis-names", x=st.sampled_from([(), (3,), (1,), (2, 3), (2, 0), (4, 2, 3)]))
def test_shapes_are_accepted_by_the_rules_that_the_answer_states(x: tuple[int, ...]) -> None:
    affine = program(f"{PAGE}#axis-names", "affine")["affine"]
    for scale in ((), (3,), (1,), (2,), (2, 3)):
        for shift in ((), (1,), (2, 1), (4, 1, 1), (5, 1, 1, 1)):
            arguments_fit = len(x) >= 1 and len(scale) == 1 and scale[0] in (1, x[-1])
            try:
                result_fits = np.broadcast_shapes(x, scale, shift) == x
            except ValueError:
                continue  # NumPy refuses the sum as well
            if not (arguments_fit and result_fits):
                with pytest.raises(TypeCheckError):
                    jax.eval_shape(affine, *map(np.ones, (x, scale, shift)))
            elif x[-1]:  # the program repeats the first column
                found = jax.eval_shape(affine, *map(np.ones, (x, scale, shift)))
                assert found.shape == (*x[:-1], x[-1] + 1)


@attack(
    f"{PAGE}#scalars-and-keys",
    shape=st.sampled_from([(), (1,), (0,), (2, 3)]),
    dtype=st.sampled_from(["float32", "bfloat16", "int32", "bool"]),
    kind=st.sampled_from(["jax", "numpy", "python", "tree", "key", "old key"]),
)
def test_a_value_is_of_the_kinds_that_the_answer_lists(shape: Any, dtype: str, kind: str) -> None:
    kinds = program(f"{PAGE}#scalars-and-keys", "kinds")["kinds"]
    array, key = jnp.zeros(shape, dtype), jax.random.key(0)
    value: Any = {
        "jax": array, "numpy": np.asarray(array), "python": 1.5, "tree": [array, {"a": array}], "key": key,
        "old key": jax.random.key_data(key),
    }[kind]  # fmt: skip
    scalar, float_ = shape == (), dtype in ("float32", "bfloat16")
    expected = {
        "Float": kind == "jax" and scalar and float_,
        "ScalarLike": kind in ("python", "key") or kind in ("jax", "numpy") and scalar,
        "Key": kind == "key",
        "PRNGKeyArray": kind in ("key", "old key"),
        "PyTree": kind in ("jax", "tree") and float_,
    }
    assert {name: is_bearable(value, hint) for name, hint in kinds.items()} == expected


@cache
def checked_logarithm() -> Any:
    return program(f"{PAGE}#chexify", "checked")["checked"]


numbers = st.sampled_from([-1.0, 0.0, 0.5, 2.0, np.inf, np.nan])


@attack(f"{PAGE}#chexify", x=st.lists(numbers, min_size=2, max_size=2), rank=st.sampled_from([1, 1, 1, 2]))
def test_the_check_raises_where_numpy_has_no_number(x: list[float], rank: int) -> None:
    with np.errstate(all="ignore"):
        expected = np.log(np.array(x, np.float32).reshape((1,) * (rank - 1) + (2,)))
    if np.isfinite(expected).all() and rank == 1:
        np.testing.assert_allclose(checked_logarithm()(jnp.array(x)), expected, rtol=1e-5)
    else:
        with pytest.raises(AssertionError):
            checked_logarithm()(jnp.array(x).reshape(expected.shape))


@attack(f"{PAGE}#chex-dataclass", w=st.integers(0, 3), b=st.integers(0, 3), mapped=st.booleans())
def test_leaves_are_in_the_order_of_the_names(w: int, b: int, mapped: bool) -> None:
    names = program(f"{PAGE}#chex-dataclass", "Mapping", "Plain")
    one, other = np.arange(w) + 1.0, -np.arange(b) - 1.0
    made = names["Mapping"](w=one, b=other) if mapped else names["Plain"](one, other)
    assert [leaf.tolist() for leaf in jax.tree.leaves(made)] == [other.tolist(), one.tolist()]
    doubled = jax.jit(lambda tree: jax.tree.map(lambda leaf: 2 * leaf, tree))(made)
    assert isinstance(doubled, type(made))
    assert (doubled.w.tolist(), doubled.b.tolist()) == ((2 * one).tolist(), (2 * other).tolist())
    assert made.replace(b=one).b is one and made.b is other
    with pytest.raises((ValueError, TypeError)):
        names["Mapping"](one, other)


@attack(f"{PAGE}#random-map", size=st.integers(1, 8), seed=seeds, epochs=st.integers(1, 3), shuffled=st.booleans())
def test_each_row_of_each_epoch_gets_its_own_number_again(size: int, seed: int, epochs: int, shuffled: bool) -> None:
    names = program(f"{PAGE}#random-map", "jitter", "rows")
    jitter = names["jitter"]
    differences = names["rows"].random_map(jitter).random_map(lambda row, rng: row - rng.normal())
    assert all(abs(difference) > 0 for difference in differences)  # each map has numbers of its own
    shares = [list(names["rows"][i::2].random_map(jitter)) for i in range(2)]
    assert shares[0] == shares[1]  # as the answer warns
    shares = [list(names["rows"].random_map(jitter)[i::2]) for i in range(2)]
    assert not set(shares[0]) & set(shares[1])
    rows = grain.MapDataset.source(np.zeros(size))
    rows = rows.shuffle(seed=seed) if shuffled else rows
    augmented = rows.random_map(jitter, seed=seed).repeat(epochs)
    found = np.array(list(augmented))
    assert np.unique(found).size == size * epochs
    assert [augmented[i] for i in reversed(range(len(augmented)))] == found[::-1].tolist()  # in any order
    assert list(rows.repeat(epochs).random_map(jitter, seed=seed)) == found.tolist()
    assert list(augmented.to_iter_dataset()) == found.tolist()  # on threads
    batched = [row for batch in augmented.batch(3) for row in batch]
    assert batched == found.tolist()
    assert np.unique(rows.batch(size).random_map(jitter, seed=seed)[0]).size == 1


@attack(f"{PAGE}#stream", size=st.integers(0, 9), batch=st.integers(1, 4), at=st.integers(0, 9))
def test_a_stream_goes_on_after_the_last_row_that_it_returned(size: int, batch: int, at: int) -> None:
    rows = program(f"{PAGE}#stream", "Rows")["Rows"]

    class Stream(grain.IterDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return rows(lambda i: next(iter(range(size)[i:])))

    def batches() -> Any:
        return iter(Stream().map(lambda row: 10 * row).batch(batch))

    expected = [[10 * row for row in range(size)[i : i + batch]] for i in range(0, size, batch)]
    first, other = batches(), batches()
    assert [part.tolist() for part in islice(first, at)] == expected[:at]
    other.set_state(first.get_state())
    assert [part.tolist() for part in other] == expected[at:]
    held = [value * 10 for value in range(size)]
    found = grain.MapDataset.source(held).batch(batch)  # what has a length and items
    assert [part.tolist() for part in found] == expected


@attack(f"{PAGE}#batched-dataclass", batch=st.lists(st.integers(1, 3), max_size=2), other=st.integers(1, 4))
def test_a_dataclass_and_a_tree_are_refused_if_their_batch_axes_differ(batch: list[int], other: int) -> None:
    names = program(f"{PAGE}#batched-dataclass", "State", "pick")
    state = names["State"](jnp.ones((*batch, 3)), jnp.ones(batch))
    with pytest.raises(TypeCheckError):
        names["State"](jnp.ones((*batch, 3)), jnp.ones((*batch, 2)))
    with pytest.raises(TypeCheckError):
        jax.tree.map(lambda leaf: None, state)
    if batch and other == batch[0]:
        assert names["pick"](state, jnp.ones(other)) == other
        assert jax.vmap(lambda one: one.mass.sum() + one.position.ndim)(state).shape == (other,)
    else:
        with pytest.raises(TypeCheckError):
            names["pick"](state, jnp.ones(other))


sizes = st.lists(st.integers(1, 3), max_size=3).map(tuple)


@attack(f"{PAGE}#chex-axes", shape=sizes, pattern=sizes, free=st.integers(0, 3), front=st.booleans())
def test_a_pattern_of_axes_fits_as_plain_python_says(
    shape: tuple[int, ...], pattern: tuple[int, ...], free: int, front: bool
) -> None:
    wanted = tuple(None if i == free else {size, 9} for i, size in enumerate(pattern))
    axes = shape[len(shape) - len(pattern) :] if front else shape
    fits = len(axes) == len(pattern) and all(
        want is None or size in want for size, want in zip(axes, wanted, strict=True)
    )
    try:
        chex.assert_shape(jnp.ones(shape), (..., *wanted) if front else wanted)
    except AssertionError:
        assert not fits
    else:
        assert fits
    prefix = shape[: len(pattern)] == pattern
    try:
        chex.assert_tree_shape_prefix({"x": jnp.ones(shape)}, pattern)
    except AssertionError:
        assert not prefix
    else:
        assert prefix


@attack(f"{PAGE}#shape-structs", shape=sizes, wanted=sizes, dtype=st.sampled_from(["float16", "float32", "int32"]))
def test_a_description_fits_where_the_array_would(shape: tuple[int, ...], wanted: tuple[int, ...], dtype: str) -> None:
    text = " ".join(map(str, wanted))
    fits = shape == wanted and dtype.startswith("float")
    described: Any = Float[jax.ShapeDtypeStruct, text]
    array_only: Any = Float[jax.Array, text]
    assert isinstance(jax.ShapeDtypeStruct(shape, dtype), described) == fits
    assert not isinstance(jax.ShapeDtypeStruct(shape, dtype), array_only)
    either: Any = Float[jax.Array, text] | Float[np.ndarray, text]
    for array in (jnp.ones(shape, dtype), np.ones(shape, dtype)):
        assert isinstance(array, either) == fits
