"""Attacks on the answers about Orbax and Grain in longer runs: NumPy's own numbers, orders and folders."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as legacy
import pytest
from flax.training import orbax_utils
from hypothesis import strategies as st
from orbax.checkpoint import v1 as ocp

from tests.site.recommended.attack import ATTACKED, attack, program, search

PAGE = "answers/orbax.md"
seeds = st.integers(0, 10_000)


@attack(f"{PAGE}#arrays-in-memory", size=st.integers(1, 5), whole=st.integers(1, 6), rest=st.integers(0, 4))
def test_batches_of_an_epoch_have_each_row_at_most_once(size: int, whole: int, rest: int) -> None:
    x = 10.0 * np.arange(size * whole + rest % size)
    batch = program(f"{PAGE}#arrays-in-memory", "batch", x=x, size=size)["batch"]
    epochs = [np.array([batch(epoch * whole + k) for k in range(whole)]) for epoch in range(3)]
    for rows in epochs:
        assert rows.shape == (whole, size)
        assert len(np.unique(rows)) == size * whole and np.isin(rows, x).all()
    again = [batch(k) for k in reversed(range(3 * whole))][::-1]  # in any order
    np.testing.assert_array_equal(np.concatenate(epochs), again)
    assert len(x) < 8 or (epochs[0] != epochs[1]).any()


@attack(f"{PAGE}#several-hosts", depth=st.integers(0, 3))
def test_a_folder_is_shared_with_oneself_and_stays_empty(depth: int) -> None:
    is_shared = program(f"{PAGE}#several-hosts", "is_shared")["is_shared"]
    with TemporaryDirectory() as place:
        folder = Path(place).joinpath(*"abc"[:depth])
        folder.mkdir(parents=True, exist_ok=True)
        assert is_shared(folder)
        assert not [path for path in folder.iterdir() if path.is_file()]


@cache
def newest() -> Any:
    return program(f"{PAGE}#two-folders", "newest")["newest"]


def resumed(old: list[int], new: list[int]) -> None:
    """Save steps into two folders, and load the newest.

    Raises:
        AssertionError: it is not the last of the new folder, or else of the old one.
    """
    like = {"w": jnp.zeros(2, int)}
    with TemporaryDirectory() as place:
        folders = Path(place) / "old", Path(place) / "new"
        for folder, steps, sign in zip(folders, (old, new), (-1, 1), strict=True):
            with ocp.training.Checkpointer(folder) as saved:
                for step in steps:
                    saved.save(step, {"w": jnp.full(2, sign * step)})
        step, state = newest()(folders[1], folders[0], like)
    expected = new[-1] if new else old[-1] if old else -1
    assert step == expected
    assert state["w"].tolist() == 2 * [expected if new else -expected if old else 0]


def gone_on(seed: int, used: int, more: int) -> None:
    """Save a generator that has been used, and go on with it and with its copy.

    Raises:
        AssertionError: their numbers differ.
    """
    rng = np.random.default_rng(seed)
    rng.integers(9, size=used, dtype=np.int32)  # of an odd size: half of a word is left
    with TemporaryDirectory() as place:
        ocp.save(Path(place) / "run", {"w": jnp.ones(2), "rng": json.dumps(rng.bit_generator.state)})
        loaded = ocp.load(Path(place) / "run", {"w": jnp.zeros(2), "rng": ""})
        again = np.random.default_rng()
        again.bit_generator.state = json.loads(loaded["rng"])
        with pytest.raises(ValueError, match="Unsupported data type"):
            ocp.save(Path(place) / "other", {"rng": rng.bit_generator.state})
    np.testing.assert_array_equal(
        again.integers(9, size=more, dtype=np.int32), rng.integers(9, size=more, dtype=np.int32)
    )
    np.testing.assert_array_equal(again.normal(size=more), rng.normal(size=more))


def left_out(sizes: list[int]) -> None:
    """Save with the old arguments and without them.

    Raises:
        AssertionError: the new interface reads something else, or the names of the files differ.
    """
    tree = {f"leaf{i}": jnp.arange(1.0, size + 1) for i, size in enumerate(sizes)}
    with TemporaryDirectory() as place, legacy.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(Path(place) / "told", tree, save_args=orbax_utils.save_args_from_target(tree))
        checkpointer.save(Path(place) / "not", tree)
        for name in ("told", "not"):
            loaded = ocp.load(Path(place) / name, tree)
            assert all((loaded[key] == tree[key]).all() for key in tree)
        stated, plain = ({path.name for path in (Path(place) / name).iterdir()} for name in ("told", "not"))
        assert stated == plain


@pytest.mark.slow
def test_the_new_folder_comes_first() -> None:
    steps = st.lists(st.integers(0, 9), max_size=2, unique=True).map(sorted)
    search(6, resumed, old=steps, new=steps)


@pytest.mark.slow
def test_a_saved_generator_goes_on() -> None:
    search(6, gone_on, seed=seeds, used=st.integers(0, 9), more=st.integers(1, 9))


@pytest.mark.slow
def test_the_old_arguments_change_nothing() -> None:
    search(4, left_out, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30))


ATTACKED[f"{PAGE}#two-folders"] = "test_the_new_folder_comes_first"
ATTACKED[f"{PAGE}#numpy-generator"] = "test_a_saved_generator_goes_on"
ATTACKED[f"{PAGE}#save-args"] = "test_the_old_arguments_change_nothing"


@attack(f"{PAGE}#maxtext", layers=st.integers(1, 4), wide=st.integers(1, 5), seed=seeds)
def test_a_stack_multiplies_as_each_layer_does_and_comes_back(layers: int, wide: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    theirs = {f"model.layers.{i}.mlp.up_proj.weight": rng.normal(size=(wide, 3)) for i in range(layers)}
    names = program(f"{PAGE}#maxtext", "kernel", "back", theirs=theirs)
    x = rng.normal(size=3)
    for i, (name, weight) in enumerate(theirs.items()):
        np.testing.assert_allclose(x @ names["kernel"][:, i], weight @ x)
        assert names["kernel"].shape == (3, layers, wide)
        np.testing.assert_array_equal(names["back"][name], weight)


@attack(
    f"{PAGE}#inspect",
    shape=st.lists(st.integers(1, 3), max_size=3).map(tuple),
    dtype=st.sampled_from(["float32", "bfloat16", "int32", "uint8", "bool", "complex64"]),
)
def test_what_metadata_describes_is_loaded_as_it_was(shape: tuple[int, ...], dtype: str) -> None:
    load_here = program(f"{PAGE}#inspect", "load_here")["load_here"]
    tree = {"a": jnp.ones(shape, dtype), "inner": {"b": jnp.arange(3.0)}}
    with TemporaryDirectory() as place:
        ocp.save(Path(place) / "step", tree)
        loaded = load_here(Path(place) / "step")
    assert loaded["a"].dtype == dtype and loaded["a"].shape == shape
    np.testing.assert_array_equal(np.asarray(loaded["a"], complex), np.ones(shape))
    np.testing.assert_array_equal(loaded["inner"]["b"], [0, 1, 2])


@attack(
    f"{PAGE}#piece-by-piece",
    shapes=st.lists(st.lists(st.integers(1, 3), max_size=2).map(tuple), min_size=1, max_size=3),
)
def test_pieces_come_back_as_one_tree(shapes: list[tuple[int, ...]]) -> None:
    save_layers = program(f"{PAGE}#piece-by-piece", "save_layers")["save_layers"]
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + i for i, shape in enumerate(shapes)]
    with TemporaryDirectory() as place:
        path = Path(place) / "weights"
        save_layers(path, len(shapes), lambda i: jnp.asarray(arrays[i]))
        loaded = ocp.load(path, {f"layer_{i}": {"w": jnp.zeros(shape)} for i, shape in enumerate(shapes)})
    for i, array in enumerate(arrays):
        np.testing.assert_array_equal(loaded[f"layer_{i}"]["w"], array)


def test_an_array_without_elements_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="zero size"):
        ocp.partial.save(tmp_path / "weights", {"w": jnp.ones(0)})
