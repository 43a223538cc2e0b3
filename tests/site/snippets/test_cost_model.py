"""Costs are read back from records as they were printed, and the limits of a host predict."""

from pathlib import Path

import matplotlib.pyplot as plt
from cost_model import Cost, Host, draw_roofline, read_host, recorded
from matplotlib.text import Text

PRODUCT = Cost("peak product", 2e9, 1e6, 0.5)
MEMORY = Cost("peak memory", 1e6, 4e9, 2.0)
ROWS = [Cost("2 * x + y", 2e6, 1.2e7, 1e-3), Cost("copy", 0.0, 8e6, 2.5e-4), Cost("scan", 3e7, 1e5, 1e-2)]


def test_what_was_printed_is_read_back_among_other_text() -> None:
    lines = ["operations 4 bytes", *map(str, [PRODUCT, MEMORY, *ROWS]), "  3 terms  1.703 ms"]
    for margin in ("", "    ", "| "):
        host = read_host("\n".join(margin + line for line in lines))
        assert host is not None
        assert (host.flops, host.bytes, host.ridge) == (4e9, 2e9, 2.0)
        assert host.costs == ROWS
    assert read_host("\n".join(map(str, ROWS))) is None


def test_only_hosts_whose_limits_are_recorded_are_found(tmp_path: Path) -> None:
    for host, rows in {"b": [PRODUCT, MEMORY, *ROWS], "a": [MEMORY, PRODUCT], "c": ROWS}.items():
        file = tmp_path / host / "speed" / "cost-model.txt"
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(map(str, rows)), encoding="utf-8")
    (tmp_path / "b" / "speed" / "memory.txt").write_text("")
    found = recorded(tmp_path)
    assert list(found) == ["a", "b"]
    assert found["b"].costs == ROWS
    assert not found["a"].costs
    assert recorded(tmp_path / "nowhere") == {}


def test_the_slower_of_arithmetic_and_memory_is_predicted() -> None:
    host = Host(4e9, 2e9, [])
    assert host.predict(4e9, 1e9) == 1.0
    assert host.predict(1e9, 4e9) == 2.0


def test_names_cover_neither_each_other_nor_dots() -> None:
    alike = [Cost(f"program {n}", 1e6, 4e6, 1e-3 * (1 + n / 100)) for n in range(5)]
    alike += [Cost(f"other {n}", 1e7, 1e6, 1e-2 * 4**n) for n in range(3)]
    fig, ax = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
    draw_roofline(fig, ax, Host(4e9, 2e9, [*alike, Cost("copy", 0.0, 8e6, 1e-3)]))
    fig.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without the line to the dot
    assert sorted(text.get_text() for text in ax.texts) == sorted(cost.name for cost in alike)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    dots = [ax.transData.transform((cost.intensity, cost.flops / cost.seconds / 1e9)) for cost in alike]
    assert not any(box.contains(*dot) for box in boxes for dot in dots)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == [
        "limits of this machine",
        "memory limits",
        "arithmetic limits",
    ]
    plt.close(fig)
