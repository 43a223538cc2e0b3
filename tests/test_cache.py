"""The store: whole values or none, whoever else writes, and never more than its bound."""

import multiprocessing
import os
from pathlib import Path

import pytest

from livepages.execution.cache import Cache, prune


def test_what_was_put_is_got(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.get("ab1") is None
    cache.put("ab1", {"x": [1, "é"]})
    assert Cache(tmp_path).get("ab1") == {"x": [1, "é"]}
    assert cache.get("ab2") is None


def test_a_damaged_or_deleted_entry_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("ab1", 1)
    file = next(file for file in tmp_path.rglob("*.json"))
    file.write_text("{half")
    assert cache.get("ab1") is None
    cache.put("ab1", 2)
    assert cache.get("ab1") == 2
    file.unlink()
    assert cache.get("ab1") is None


def test_a_value_that_cannot_be_stored_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("ab1", 1)
    with pytest.raises(TypeError):
        cache.put("ab1", object())
    assert cache.get("ab1") == 1
    assert len([file for file in tmp_path.rglob("*") if file.is_file()]) == 1


def _write_many(folder: str, value: int) -> None:
    for _ in range(100):
        Cache(Path(folder)).put("ab1", [value] * 5000)


def test_two_writers_never_give_a_mixed_value(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(str(tmp_path), value)) for value in (1, 2)]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        value = Cache(tmp_path).get("ab1")
        assert value is None or (len(value) == 5000 and len(set(value)) == 1)
        seen.add(value[0] if value else None)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert seen & {1, 2}


def test_pruning_deletes_what_was_not_used_for_longest(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for number, key in enumerate(("aa1", "bb2", "cc3")):
        cache.put(key, "x" * 1000)
        os.utime(tmp_path / key[:2] / f"{key}.json", (number, number))
    cache.get("aa1")  # used now
    prune(tmp_path, limit=2100)
    assert [cache.get(key) is not None for key in ("aa1", "bb2", "cc3")] == [True, False, True]
    prune(tmp_path / "absent", limit=0)
