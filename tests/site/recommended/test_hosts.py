"""Attacks on the answers about many processes, as far as one process can play each of them."""

import io
import logging
import re
from contextlib import redirect_stdout
from functools import cache, partial
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import PROJECT, attack, program
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, keys

Array = np.ndarray[Any, Any]
PAGE = "answers/hosts.md"


@cache
def by_rows() -> NamedSharding:
    """One axis of all devices, which splits the rows."""
    return NamedSharding(jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,)), P("data"))


@attack(
    f"{PAGE}#data-per-process",
    files=st.lists(st.text("abc", max_size=3), max_size=9) | st.integers(0, 20).map(range),
    processes=st.integers(1, 9),
    rows=arrays((8, 2)),
)
def test_processes_read_each_file_once(files: Any, processes: int, rows: Array) -> None:
    shows(f"{PAGE}#data-per-process", "batch = jax.make_array_from_process_local_data(rows, local, (8, 4))")
    my_files = program(f"{PAGE}#data-per-process", "my_files")["my_files"]
    shares = [[*my_files(range(len(files)), index, processes)] for index in range(processes)]
    size = len(files) // processes
    assert {len(share) for share in shares} == {size}  # with other sizes, each process computes another mean
    assert sorted(sum(shares, [])) == [*range(size * processes)]
    for index, share in enumerate(shares):
        assert [*my_files(files, index, processes)] == [sorted(files)[i] for i in share]
    batch = jax.make_array_from_process_local_data(by_rows(), rows, (8, 2))  # "with one process"
    assert batch.shape == rows.shape and batch.addressable_data(0).shape[0] == 8 // jax.device_count()
    for shard in batch.addressable_shards:
        assert_same(shard.data, rows[shard.index], 0, 0)
    with pytest.raises(ValueError, match="global_shape"):
        jax.make_array_from_process_local_data(by_rows(), np.concatenate([rows, rows]), (8, 2))


@cache
def draws() -> tuple[Any, ...]:
    """A draw for each example of a share, one for a split array, and the same for one that is whole."""
    of_examples = jax.vmap(lambda key, i: jax.random.normal(jax.random.fold_in(key, i)), (None, 0))
    whole = partial(jax.random.normal, shape=(8,))
    return jax.jit(of_examples), jax.jit(whole, out_shardings=by_rows()), jax.jit(whole)


@attack(f"{PAGE}#same-key", key=keys(), processes=st.sampled_from([1, 2, 4]))
def test_what_is_shared_is_equal_and_what_is_local_differs(key: jax.Array, processes: int) -> None:
    runs = [
        program(f"{PAGE}#same-key", "init_key", "data_key", "local_key", key=jax.random.clone(key))
        for _ in range(processes)
    ]
    first = runs[0]
    assert all(run["init_key"] == first["init_key"] and run["data_key"] == first["data_key"] for run in runs)
    local = [run["local_key"](index) for index, run in enumerate(runs)]
    assert local == [first["local_key"](index) for index in range(processes)]  # again
    everything = [*local, first["init_key"], first["data_key"], key]
    assert len({np.asarray(jax.random.key_data(one)).tobytes() for one in everything}) == len(everything)
    for one in local:
        assert sorted(np.asarray(jax.random.permutation(one, 5))) == [*range(5)]
    of_examples, split, whole = draws()
    shares = [of_examples(first["data_key"], np.arange(8)[index::processes]) for index in range(processes)]
    assert_same(np.stack(shares, 1).ravel(), of_examples(first["data_key"], np.arange(8)), 1e-6, 1e-6)
    assert_same(split(key), whole(key), 1e-6, 1e-6)


def run_as(anchor: str, process: int, old: str, x: Array) -> tuple[dict[str, Any], list[str]]:
    """Run an answer's program as this process, with other data; return its names and the lines that it prints."""
    text = (PROJECT.docs / PAGE).read_text(encoding="utf-8").split(f"{{ #{anchor} }}")[1]
    code = text.split("```python", 1)[1].split("\n", 1)[1].split("```")[0]
    assert old in code
    names: dict[str, Any] = {"x": jnp.asarray(x)}
    with mock.patch.object(jax, "process_index", lambda: process), redirect_stdout(io.StringIO()) as out:
        exec(code.replace(old, "x"), names)
    return names, out.getvalue().splitlines()


@attack(f"{PAGE}#only-process-zero-hangs", f"{PAGE}#print-once", x=arrays((4,), odd=False), processes=st.integers(1, 4))
def test_every_process_computes_and_one_prints(x: Array, processes: int) -> None:
    mean = np.float64(x.astype(float).mean())
    for anchor, old, name, others in (
        ("only-process-zero-hangs", "jnp.arange(8.0)", "mean", 0),
        ("print-once", "jnp.arange(4.0)", "loss", 1),
    ):
        for process in range(processes):
            try:
                names, lines = run_as(anchor, process, old, x)
            finally:
                logging.getLogger("train").handlers.clear()
            assert_same(np.float64(names[name]), mean)
            assert len(lines) == others + (process == 0)
            if process == 0:
                assert_same(np.float64(re.findall(r"-?\d+\.\d+(?:e-?\d+)?", lines[0])[0]), mean)


@cache
def runs() -> tuple[Any, ...]:
    """A run of an answer's program, and of a few steps, and both for many seeds and rates at once."""
    shows(
        f"{PAGE}#independent-runs", 'key = jax.random.key(int(os.environ["SEED"]))', "`vmap` over them in one process"
    )

    def draw(seed: Any) -> jax.Array:
        return jax.random.normal(jax.random.key(seed))

    def descend(rate: Any, target: Any) -> Any:
        slope = jax.grad(lambda w: ((w - target) ** 2).sum())
        return jax.lax.fori_loop(0, 3, lambda i, w: w - rate * slope(w), jnp.zeros(2))

    return draw, jax.jit(jax.vmap(draw)), jax.jit(jax.vmap(descend, (0, None)))


@attack(
    f"{PAGE}#independent-runs",
    seeds=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=3, max_size=3),
    rates=arrays((3,), odd=False).map(lambda x: np.clip(x / 32, -1, 1)),
    target=arrays((2,), odd=False),
)
def test_many_runs_at_once_are_the_runs_alone(seeds: list[int], rates: Array, target: Array) -> None:
    draw, many, descend = runs()
    assert_same(many(np.array(seeds, np.int32)), [draw(seed) for seed in seeds], 1e-6, 1e-6)
    expected = [(1 - (1 - 2 * np.float64(rate)) ** 3) * target for rate in rates]
    assert_same(descend(rates, target), np.array(expected), atol=1e-2)
