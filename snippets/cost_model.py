"""The costs of operations: one line of text each, read back from what other hosts recorded, and drawn as a roofline."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

PEAKS = ("peak product", "peak memory")  # the names of the two rows that measure a host's limits
_SIZE = 10  # of the names in the figure, in points
_ROW = re.compile(
    r"^[^\w\n]*(?P<name>\w.*?)\s+(?P<numbers>\d\.\d{3}e[+-]\d\d(\s+\d\.\d{3}e[+-]\d\d){2})\s*$", re.MULTILINE
)


class Cost(NamedTuple):
    """The cost of one run of a program: arithmetic operations, bytes moved to and from memory, and time."""

    name: str
    flops: float
    bytes: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.name:16}{self.flops:11.3e}{self.bytes:11.3e}{self.seconds:11.3e}"

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes


class Box(NamedTuple):
    """A rectangle in a figure, in points."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: "Box") -> bool:
        """Return whether the two have a point in common."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def holds(self, other: "Box") -> bool:
        """Return whether the other lies inside."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.bottom <= other.bottom
            and other.top <= self.top
        )


class Host(NamedTuple):
    """The limits of a host, and the costs of the operations measured there."""

    flops: float  # per second
    bytes: float  # per second
    costs: list[Cost]

    @property
    def ridge(self) -> float:
        """The intensity above which arithmetic is the limit, and below which memory is."""
        return self.flops / self.bytes

    def predict(self, flops: float, moved: float) -> float:
        """The seconds for its arithmetic or for its memory traffic, whichever are more."""
        return max(flops / self.flops, moved / self.bytes)


def read_host(text: str) -> Host | None:
    """The host whose costs are somewhere in a text, one per line; None if its limits are not there."""
    costs = [Cost(row["name"], *map(float, row["numbers"].split())) for row in _ROW.finditer(text)]
    peaks = {cost.name: cost for cost in costs if cost.name in PEAKS}
    if len(peaks) < len(PEAKS):
        return None
    product, memory = (peaks[name] for name in PEAKS)
    rest = [cost for cost in costs if cost.name not in PEAKS]
    return Host(product.flops / product.seconds, memory.bytes / memory.seconds, rest)


def recorded(folder: Path) -> dict[str, Host]:
    """The hosts whose records of the page are in a folder, by the names of the folders that hold them."""
    found = {file.parts[-3]: read_host(file.read_text("utf-8")) for file in sorted(folder.glob("*/speed/cost-model.*"))}
    return {name: host for name, host in found.items() if host}


def draw_roofline(figure: Figure, axes: Axes, host: Host) -> None:
    """The two limits of a host as a roof, and each operation with any arithmetic as a dot with its name.

    Labels and title have to be there already, because names are placed in the room that they leave.
    """
    dots = [cost for cost in host.costs if cost.flops]
    left = min(cost.intensity for cost in dots) / 4
    right = max(*(cost.intensity for cost in dots), host.ridge) * 6  # room for names
    roof = [host.bytes * left / 1e9, host.flops / 1e9, host.flops / 1e9]
    axes.loglog([left, host.ridge, right], roof, color="C0", label="limits of this machine")
    for below, color, marker, label in [(True, "C1", "o", "memory limits"), (False, "C2", "s", "arithmetic limits")]:
        some = [cost for cost in dots if (cost.intensity < host.ridge) == below]
        speeds = [cost.flops / cost.seconds / 1e9 for cost in some]
        axes.scatter([cost.intensity for cost in some], speeds, color=color, marker=marker, label=label, zorder=3)
    axes.set_xlim(left, right)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    _name_dots(figure, axes, dots, list(zip([left, host.ridge, right], roof)))


def _name_dots(figure: Figure, axes: Axes, dots: list[Cost], roof: list[tuple[float, float]]) -> None:
    """Write each name beside its dot, where it covers no dot, no other name and not the roof."""
    figure.draw_without_rendering()
    to_points = 72 / figure.dpi

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x, y = axes.transData.transform(point) * to_points
        return float(x), float(y)

    area = Box(*(float(edge) * to_points for edge in axes.get_window_extent().extents))
    at = {cost: place((cost.intensity, cost.flops / cost.seconds / 1e9)) for cost in dots}
    taken = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in at.values()]
    corners = [place(point) for point in roof]
    for (x, y), (next_x, next_y) in zip(corners, corners[1:]):
        for n in range(101):
            on_x, on_y = x + (next_x - x) * n / 100, y + (next_y - y) * n / 100
            taken.append(Box(on_x - 1, on_y - 1, on_x + 1, on_y + 1))
    for cost, (x, y) in sorted(at.items(), key=lambda item: -item[1][1]):
        found = [box for box in _around(x, y, cost.name) if area.holds(box) and not any(map(box.overlaps, taken))]
        box = found[0] if found else next(_around(x, y, cost.name))
        taken.append(box)
        axes.annotate(
            cost.name,
            (cost.intensity, cost.flops / cost.seconds / 1e9),
            (box.left - x, (box.bottom + box.top) / 2 - y),
            textcoords="offset points",
            va="center",
            fontsize=_SIZE,
            arrowprops={"arrowstyle": "-", "linewidth": 0.6, "color": "0.5", "shrinkA": 0, "shrinkB": 2},
        )


def _around(x: float, y: float, name: str) -> Iterator[Box]:
    """Boxes for a name around a dot, the nearest first."""
    width, height = 0.6 * _SIZE * len(name), 1.25 * _SIZE
    for away in range(0, 150, 4):
        for bottom in {y - height / 2 + away: None, y - height / 2 - away: None}:
            for left in (x + 7 + away / 4, x - 7 - away / 4 - width):
                yield Box(left, bottom, left + width, bottom + height)
