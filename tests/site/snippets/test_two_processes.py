"""The program of many processes, in one: how it reads and what it fits."""

from importlib import import_module
from pathlib import Path

import jax
import numpy as np
import pytest

two_processes = import_module("two_processes")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_processes_share_the_files(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def read_file(number: int) -> np.ndarray:
        read.append(number)
        return np.zeros((4, 4), np.float32)

    monkeypatch.setattr(two_processes, "read_file", read_file)
    monkeypatch.setattr(jax, "process_count", lambda: count)
    monkeypatch.setattr(jax, "make_array_from_process_local_data", lambda sharding, rows: rows)
    for index in range(count):
        monkeypatch.setattr(jax, "process_index", lambda index=index: index)
        two_processes.read_share()
    assert sorted(read) == list(range(8))


def test_rows_are_split_over_the_devices() -> None:
    rows = two_processes.read_share()
    assert rows.shape == (32, 4)
    assert len(rows.addressable_shards) == jax.device_count()
    np.testing.assert_array_equal(np.asarray(rows)[4:8], two_processes.read_file(1))


def test_fit_finds_the_weights() -> None:
    w = np.array(two_processes.fit(two_processes.read_share()).split(), float)
    np.testing.assert_allclose(w, [1, -2, 3], atol=0.1)


def test_one_process_sees_everything(capsys: pytest.CaptureFixture[str]) -> None:
    two_processes.look(two_processes.read_share())
    lines = capsys.readouterr().out.splitlines()
    assert "32 of 32 rows" in lines[0]
    assert lines[1:] == ["(32, 4)"]


def test_one_process_saves_everything(tmp_path: Path) -> None:
    rows = two_processes.read_share()
    two_processes.save(rows, str(tmp_path / "rows.npy"))
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), rows)


def test_a_process_that_is_not_the_first_gathers_but_does_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[jax.Array] = []

    def process_allgather(rows: jax.Array, tiled: bool) -> np.ndarray:
        gathered.append(rows)
        return np.asarray(rows)

    rows = two_processes.read_share()
    monkeypatch.setattr(two_processes, "process_allgather", process_allgather)
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    two_processes.save(rows, str(tmp_path / "rows.npy"))
    assert len(gathered) == 1
    assert not list(tmp_path.iterdir())
