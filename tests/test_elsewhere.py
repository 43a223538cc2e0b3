"""`make elsewhere`: which drawings look the same, and how much room an assertion leaves."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Site
from tests.elsewhere import COMPUTERS, moved
from tests.room import FILE, Seen, watched


def test_it_emulates_six_other_computers() -> None:
    others = [computer.environment | {"cores": str(computer.cores)} for computer in COMPUTERS.values()]
    assert len(others) >= 7 and all(others.count(one) == 1 for one in others)


@pytest.mark.parametrize(("instruction_set", "others"), [("avx512", 6), ("avx2", 5), ("avx", 2), ("neon", 1)])
def test_only_computers_that_this_one_can_emulate_are_chosen(instruction_set: str, others: int) -> None:
    assert sum(computer.can_be(instruction_set) for computer in COMPUTERS.values()) == others + 1


@pytest.mark.parametrize(
    ("new", "difference"),
    [
        ('<path d="M 10 20.5"/>', ""),
        ('<path d="M 11 20.1"/>', ""),
        ('<path d="M 10 30.5"/>', "something in it is 10 points elsewhere"),
        ('<path d="M 10 20.5 L 1 1"/>', "has other parts"),
    ],
)
def test_a_drawing_differs_when_one_sees_it(new: str, difference: str) -> None:
    assert moved('<path d="M 10 20.5"/>', new) == difference


@pytest.mark.parametrize(
    ("several", "room"),
    [
        ([Seen(1.0, 1.5, 0), Seen(1.1, 1.5, 0)], 4),  # 0.4 is left where it varies by 0.1
        ([Seen(0.0, 0.3, 0, 0.5), Seen(0.0, 0.4, 0, 0.5)], 1),
        ([Seen(1.0, 1.5, 0.1), Seen(1.0, 1.5, 0.1)], 0.5 / 0.15),
        ([Seen(1.0, 2.5, 0), Seen(2.0, 4.5, 0)], math.inf),
    ],
)
def test_room_is_the_margin_against_what_computers_differ_by(several: list[Seen], room: float) -> None:
    assert Seen.room(several) == pytest.approx(room, rel=1e-5)


def test_assertions_say_what_they_compare(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = site.page(
        """import numpy as np
x = np.array([1.0, 2.0])
assert (x < 2.5).all() and len(x) > 1, (
    "small"
)
assert np.allclose(x, x + 1e-6, atol=1e-5)
np.testing.assert_allclose(x, x)
print("end", 0.1 < 0.2)"""
    )
    file = tmp_path / "rooms"
    monkeypatch.setenv(FILE, str(file))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    again = replace(page, blocks=tuple(map(watched, page.blocks)))
    assert [block.code.count("\n") for block in again.blocks] == [block.code.count("\n") for block in page.blocks]
    names: dict[str, object] = {}
    exec(again.blocks[0].code, names)
    seen = Seen.read(file)
    assert {where.partition(",")[0]: (one.left, one.right) for where, one in seen.items()} == {
        f"{page.name}:6": (2.0, 2.5),
        f"{page.name}:9": (1.0, 1.000001),
        f"{page.name}:10": (1.0, 1.0),
    }
