"""A busy machine gives a block more time."""

import os
import time
from pathlib import Path

import pytest

from livepages.worker import LoadAdjustedTimer, timer


@pytest.mark.parametrize(("wanting", "expected"), [(1, 1.0), (3, 1.0), (4, 1.5), (9, 4.0)])
def test_the_load_is_what_each_processor_has_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanting: int, expected: float
) -> None:
    file = tmp_path / "loadavg"
    file.write_text(f"0.50 0.40 0.30 {wanting}/245 1234\n")
    monkeypatch.setattr(timer, "_AVERAGES", file)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert timer.load() == expected


def test_where_the_system_keeps_no_such_file_its_averages_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer, "_AVERAGES", tmp_path / "none")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (6.0, 0.0, 0.0), raising=False)
    assert timer.load() == 3.0
    monkeypatch.delattr(os, "getloadavg")
    assert timer.load() == 1.0


def test_a_second_among_many_counts_less(monkeypatch: pytest.MonkeyPatch) -> None:
    now, busy = [100.0], [1.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(timer, "load", lambda: busy[0])
    clock = LoadAdjustedTimer()
    now[0] = 101.0
    assert clock.seconds() == 1.0 and str(clock) == "1.0 s"
    now[0], busy[0] = 105.0, 4.0
    assert clock.seconds() == 2.0
    assert str(clock) == "5.0 s, as the machine had 2.5 times as much to do"
