"""Attacks on the answers about checkpoints: what was written is what comes back."""

import io
import pickle
import re
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as legacy
import pytest
from flax import serialization
from hypothesis import strategies as st
from orbax.checkpoint import v1 as ocp

from tests.site.recommended.attack import ATTACKED, PROJECT, attack, program, search, slow_attack
from tests.site.strategies import arrays, dtypes, shapes

Array = np.ndarray[Any, Any]
# A write takes a tenth of a second, so each of a few trees holds many arrays.
TREES = st.lists(arrays(shapes(empty=False), dtypes()), min_size=40, max_size=40)
ATTACKED["answers/saving.md#checkpoint-manager"] = "test_the_new_interface_reads_what_both_wrote"


def read_back(leaves: list[np.ndarray[Any, Any]]) -> None:
    """Write arrays with both interfaces, and read both with the new one.

    Raises:
        AssertionError: one that is read is not the one that was written.
    """
    tree = {f"leaf{i}": jnp.asarray(leaf) for i, leaf in enumerate(leaves)}
    with TemporaryDirectory() as folder:
        old, new = Path(folder) / "old", Path(folder) / "new"
        with legacy.CheckpointManager(old) as manager:
            manager.save(3, args=legacy.args.StandardSave(tree))
            manager.wait_until_finished()
        with ocp.training.Checkpointer(new) as saved:
            saved.save(3, tree)
            found = saved.load(3, tree)
        for loaded in (found, ocp.load(old / "3", tree)):
            for i, leaf in enumerate(leaves):
                np.testing.assert_array_equal(np.asarray(loaded[f"leaf{i}"]), leaf)
                assert loaded[f"leaf{i}"].dtype == leaf.dtype


@pytest.mark.slow
def test_the_new_interface_reads_what_both_wrote() -> None:
    search(5, read_back, leaves=TREES)


PAGE = "answers/saving.md"
LEAVES = arrays(shapes(empty=False), dtypes())


def block(anchor: str, old: str, new: str) -> str:
    """The program of an answer, in a folder that is given, with one of its statements replaced."""
    text = (PROJECT.docs / PAGE).read_text(encoding="utf-8").split(f"{{ #{anchor} }}")[1]
    code = text.split("```python", 1)[1].split("\n", 1)[1].split("```")[0]
    assert old in code and "mkdtemp()" in code
    return code.replace(old, new).replace("mkdtemp()", "folder")


def assert_equal(found: Any, expected: Any) -> None:
    """Check that all leaves of two trees are equal, and that they have equal dtypes.

    Raises:
        AssertionError: they differ.
    """
    structures: list[Any] = [jax.tree.structure(found), jax.tree.structure(expected)]
    assert structures[0] == structures[1]
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == two.dtype
        wide = [np.asarray(x.astype(np.float32) if x.dtype == jnp.bfloat16 else x) for x in (one, two)]
        np.testing.assert_array_equal(wide[0], wide[1])


@attack(f"{PAGE}#npz", leaves=st.lists(LEAVES, min_size=5, max_size=5))
def test_a_file_has_each_leaf_under_its_path(leaves: list[Array]) -> None:
    a, b, c, d, e = leaves
    params = {"layers": [{"w": a, "b": b}, {"w": c}], "pair": (d, e), "none": None}
    code = block("npz", 'params = {"layers": [{"w": jnp.ones((2, 3)), "b": jnp.zeros(3)}]}\n', "")
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        names = {"params": params, "folder": folder}
        exec(code, names)
    assert_equal(names["loaded"], params)


@attack(f"{PAGE}#pickle", leaves=st.lists(LEAVES, min_size=3, max_size=3), seed=st.integers(0, 9))
def test_pickled_arrays_and_states_come_back(leaves: list[Array], seed: int) -> None:
    params = {"w": [jnp.asarray(leaf) for leaf in leaves], "low": jnp.asarray(leaves[0], jnp.bfloat16)}
    found = pickle.loads(pickle.dumps((params, optax.adam(0.1).init(params), jax.random.key(seed))))
    assert_equal(found[:2], (params, optax.adam(0.1).init(params)))
    assert found[2] == jax.random.key(seed)


@attack(f"{PAGE}#random-keys", seed=st.integers(0, 2**31 - 1), impl=st.sampled_from([None, "threefry2x32", "rbg"]))
def test_a_key_comes_back_from_its_numbers(seed: int, impl: str | None) -> None:
    key, file = jax.random.key(seed, impl=impl), io.BytesIO()
    jnp.save(file, jax.random.key_data(key))
    file.seek(0)
    again = jax.random.wrap_key_data(jnp.load(file), impl=impl)
    assert again == key and jax.random.bits(again) == jax.random.bits(key)
    assert str(jax.random.key_impl(again)) == str(jax.random.key_impl(key))


@attack(f"{PAGE}#bfloat16-files", bits=arrays((4,), "int32").map(lambda x: np.uint16(x * 7919 % 2**16)))
def test_a_view_of_raw_bytes_has_all_bits(bits: Array) -> None:
    file, w = io.BytesIO(), jnp.asarray(bits).view(jnp.bfloat16)
    np.save(file, w)
    file.seek(0)
    raw = np.load(file)
    assert raw.dtype == "V2" and "jnp.asarray(raw.view(jnp.bfloat16))" in (PROJECT.docs / PAGE).read_text("utf-8")
    assert_equal(jnp.asarray(raw.view(jnp.bfloat16)).view(jnp.uint16), bits)
    file.seek(0)
    assert_equal(jnp.load(file).view(jnp.uint16), bits)


@cache
def skeleton() -> tuple[Any, Any]:
    """Return a model of the answer's kind, and its types."""
    make: Any = eqx.nn.MLP
    return make(2, 1, 8, 1, key=jax.random.key(0)), eqx.filter_eval_shape(make, 2, 1, 8, 1, key=jax.random.key(0))


@slow_attack(f"{PAGE}#equinox", weight=arrays((8, 2)))
def test_the_leaves_of_a_model_come_back_in_their_order(weight: Array) -> None:
    model, like = skeleton()
    model, file = eqx.tree_at(lambda m: m.layers[0].weight, model, jnp.asarray(weight)), io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    assert_equal(*(eqx.filter(m, eqx.is_array) for m in (eqx.tree_deserialise_leaves(file, like), model)))


@attack(f"{PAGE}#flax-bytes", w=LEAVES, other=LEAVES)
def test_types_are_compared_after_loading(w: Array, other: Array) -> None:
    page = (PROJECT.docs / PAGE).read_text(encoding="utf-8")
    assert "(jax.tree.map(jax.typeof, t) for t in (loaded, expected))" in page
    loaded = serialization.from_bytes({"w": jnp.zeros(other.shape, other.dtype)}, serialization.to_bytes({"w": w}))
    assert_equal(loaded, {"w": w})
    types = [jax.tree.map(jax.typeof, tree) for tree in (loaded, {"w": jnp.asarray(other)})]
    assert (types[0] == types[1]) == ((w.shape, w.dtype) == (other.shape, other.dtype))


@slow_attack(f"{PAGE}#resume", steps=st.integers(0, 3), more=st.integers(0, 2), x=st.integers(-4, 4))
def test_a_resumed_run_is_the_one_that_never_stopped(steps: int, more: int, x: int) -> None:
    found = training()
    start = jnp.array([x / 4, 1.0])
    state = found["optimizer"].init(start)
    whole = found["train"](start, state, steps + more)
    kept = pickle.loads(pickle.dumps(found["train"](start, state, steps)))
    assert_equal(found["train"](*kept, more), whole)


@cache
def training() -> dict[str, Any]:
    """Return what the answer trains with."""
    return program(f"{PAGE}#resume", "train", "optimizer", "grad", w=None, state=None)


def in_every_way(leaves: list[Array]) -> None:
    """Save a tree, and read all, some and the state of an optimizer of it, on the host and on the device.

    Raises:
        AssertionError: one that is read is not the one that was written.
    """
    params = {f"leaf{i}": jnp.asarray(leaf) for i, leaf in enumerate(leaves)}
    tree = {"params": params, "state": optax.adam(0.1).init(params), "step": jnp.array(7)}
    with TemporaryDirectory() as place:
        folder = Path(place) / "tree"
        ocp.save(folder, jax.tree.map(jnp.zeros_like, tree))
        response = ocp.save_async(folder, tree, overwrite=True)
        response.result()
        assert_equal(ocp.load(folder, jax.tree.map(jnp.zeros_like, tree)), tree)
        host = ocp.load(folder, jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), tree))
        assert_equal(host, tree)
        assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(host))
        context = ocp.Context()
        context.pytree.loading.partial_load = True
        with context:
            some = ocp.load(folder, {"params": {"leaf0": jnp.zeros_like(params["leaf0"])}})
        assert_equal(some, {"params": {"leaf0": params["leaf0"]}})


def the_best(losses: list[float]) -> None:
    """Save a step for each loss, and look which the policies keep.

    Raises:
        AssertionError: they are not the newest two, not one of the smallest loss, or not the newest and such a one.
    """
    policies = ocp.training.preservation_policies
    best = policies.BestN(n=1, reverse=True, get_metric_fn=lambda m: m["loss"])
    both = policies.AnyPreservationPolicy([policies.LatestN(1), best])
    for policy, newest in ((policies.LatestN(2), True), (best, False), (both, None)):
        with TemporaryDirectory() as place, ocp.training.Checkpointer(place, preservation_policy=policy) as saved:
            for step, loss in enumerate(losses):
                saved.save(step, {"w": jnp.ones(2)}, metrics={"loss": loss})
            kept = [checkpoint.step for checkpoint in saved.checkpoints]
        if newest:
            assert kept == [*range(len(losses))][-2:]
        elif newest is None:
            others = [losses[step] for step in kept if step != len(losses) - 1]
            assert kept[-1] == len(losses) - 1
            assert others == [min(losses)] or (not others and losses[-1] == min(losses))
        else:
            assert [losses[step] for step in kept] == [min(losses)]


def test_a_nan_is_not_the_best_with_the_infinity_that_the_answer_names() -> None:
    """Of an accuracy, minus infinity: with infinity, the step of the NaN would be the one that stays."""
    answer = (PROJECT.docs / PAGE).read_text("utf-8").split("{ #keep-best }")[1].split("\n## ")[0]
    assert "minus infinity" in " ".join(answer.split())
    policies = ocp.training.preservation_policies
    for reverse, replaced, found in ((True, np.inf, 1), (False, -np.inf, 0), (False, np.inf, 2)):

        def metric(m: dict[str, float], replaced: float = replaced) -> float:
            return replaced if np.isnan(m["it"]) else m["it"]

        policy = policies.BestN(n=1, reverse=reverse, get_metric_fn=metric)
        with TemporaryDirectory() as place, ocp.training.Checkpointer(place, preservation_policy=policy) as saved:
            for step, it in enumerate([3.0, 1.0, np.nan, 2.0]):
                saved.save(step, {"w": jnp.ones(2)}, metrics={"it": it})
            assert [checkpoint.step for checkpoint in saved.checkpoints] == [found]


@pytest.mark.slow
def test_a_checkpoint_is_read_in_every_way() -> None:
    search(3, in_every_way, leaves=st.lists(arrays(shapes(empty=False), dtypes()), min_size=8, max_size=8))


def test_names_that_differ_in_dots_only_are_confused_mostly_without_an_error(tmp_path: Path) -> None:
    for name, alike in (("a.b", True), ("a/b", False), ("a_b", False)):
        tree = {name: jnp.ones(2), "a": {"b": jnp.zeros(2)}}
        try:
            ocp.save(tmp_path / name.replace("/", "-"), tree)
        except ValueError as error:  # both leaves were written to one place at the same time
            assert alike and "ALREADY_EXISTS" in str(error)
            continue
        loaded = ocp.load(tmp_path / name.replace("/", "-"), tree)
        assert bool((loaded[name] == loaded["a"]["b"]).all()) == alike


@pytest.mark.slow
def test_the_newest_and_the_best_are_kept() -> None:
    search(3, the_best, losses=st.lists(st.integers(-3, 3).map(float), min_size=3, max_size=4))


for _name in ("save-parameters", "opt-state-lists", "other-devices", "partial", "folder", "async"):
    ATTACKED[f"{PAGE}#{_name}"] = "test_a_checkpoint_is_read_in_every_way"
ATTACKED[f"{PAGE}#keep-best"] = "test_the_newest_and_the_best_are_kept"


@attack(f"{PAGE}#rename", sizes=st.lists(st.integers(0, 3), min_size=1, max_size=4), extra=st.booleans())
def test_renamed_leaves_are_those_that_were_saved(sizes: list[int], extra: bool) -> None:
    fill = program(f"{PAGE}#rename", "fill")["fill"]

    def tree(name: str, sign: int) -> dict[str, Any]:
        return {name: {"layers": [sign * np.arange(1.0, n + 1) for n in sizes]}, f"p{name}": np.zeros(1)}

    def old_name(name: str) -> str:
        return re.sub("^(p?)layer/?", lambda m: m[0].replace("layer", "dense"), name)

    saved = tree("dense", 1) | ({"step": np.zeros(())} if extra else {})
    found, left = fill(tree("layer", -1), saved, old_name)
    assert_equal(found, tree("layer", 1))
    assert left == (["step"] if extra else [])
    with pytest.raises(KeyError):
        fill(tree("layer", -1), saved, lambda name: name)
    other = tree("layer", 1) | {"player": np.zeros(2)}
    with pytest.raises(AssertionError):
        fill(other, saved, old_name)
    with pytest.raises(AssertionError, match="two leaves, one name"):
        fill({"layer": {"w": np.zeros(1)}}, {"dense/w": np.ones(1), "dense": {"w": np.zeros(1)}}, old_name)


@pytest.mark.slow
def test_a_checkpoint_goes_where_the_arguments_say() -> None:
    last = jax.devices()[-1]
    like = {"w": jax.device_put(jnp.zeros(3), last)}
    restore_args = legacy.checkpoint_utils.construct_restore_args(like)
    with TemporaryDirectory() as place, legacy.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(Path(place) / "saved", {"w": jax.device_put(jnp.arange(3.0), jax.devices()[0])})
        loaded = checkpointer.restore(Path(place) / "saved", item=like, restore_args=restore_args)
        assert_equal(loaded, {"w": jnp.arange(3.0)})
        assert loaded["w"].devices() == {last}
        assert ocp.load(Path(place) / "saved", like)["w"].devices() == {last}


ATTACKED[f"{PAGE}#sharding-info"] = "test_a_checkpoint_goes_where_the_arguments_say"
