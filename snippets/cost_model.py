"""The costs of operations: one line of text each, read back from what other hosts recorded, and drawn as a roofline."""

import re
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

PEAKS = ("peak product", "peak memory")  # the names of the two rows that measure a host's limits
_ROW = re.compile(
    r"^[^\w\n]*(?P<name>\w.*?)\s+(?P<numbers>\d\.\d{3}e[+-]\d\d(\s+\d\.\d{3}e[+-]\d\d){2})\s*$", re.MULTILINE
)


class Cost(NamedTuple):
    """What one run of a program takes: arithmetic operations, bytes moved to and from memory, and time."""

    name: str
    flops: float
    bytes: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.name:16}{self.flops:11.3e}{self.bytes:11.3e}{self.seconds:11.3e}"

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes


class Host(NamedTuple):
    """The limits of a host, and the costs of the operations measured there."""

    flops: float  # a second
    bytes: float  # a second
    costs: list[Cost]

    @property
    def ridge(self) -> float:
        """The intensity from which on arithmetic is the limit, and no longer memory."""
        return self.flops / self.bytes

    def predict(self, flops: float, moved: float) -> float:
        """The seconds that a program takes at least: those of its arithmetic or of its memory, whichever are more."""
        return max(flops / self.flops, moved / self.bytes)


def read_host(text: str) -> Host | None:
    """The host whose costs, printed one a line, are somewhere in a text; None if its limits are not there."""
    costs = [Cost(row["name"], *map(float, row["numbers"].split())) for row in _ROW.finditer(text)]
    peaks = {cost.name: cost for cost in costs if cost.name in PEAKS}
    if len(peaks) < len(PEAKS):
        return None
    product, memory = (peaks[name] for name in PEAKS)
    rest = [cost for cost in costs if cost.name not in PEAKS]
    return Host(product.flops / product.seconds, memory.bytes / memory.seconds, rest)


def recorded(folder: Path) -> dict[str, Host]:
    """The hosts whose records of the page are in a folder, by the name of the folder that holds each."""
    found = {
        file.parts[-3]: read_host(file.read_text("utf-8")) for file in sorted(folder.glob("*/compile/cost-model.*"))
    }
    return {name: host for name, host in found.items() if host}


def draw_roofline(figure: Figure, axes: Axes, host: Host) -> None:
    """The two limits of a host as a roof, and each operation with any arithmetic as a dot with its name.

    Labels and title are to be there already, since names are placed in what they leave.
    """
    dots = [cost for cost in host.costs if cost.flops]
    left = min(cost.intensity for cost in dots) / 2
    right = max(*(cost.intensity for cost in dots), host.ridge) * 9  # room for names
    roof = [host.bytes * left, host.flops, host.flops]
    axes.loglog([left, host.ridge, right], [height / 1e9 for height in roof], color="C0")
    axes.scatter(
        [cost.intensity for cost in dots],
        [cost.flops / cost.seconds / 1e9 for cost in dots],
        color=["C1" if cost.intensity < host.ridge else "C2" for cost in dots],
        zorder=3,
    )
    axes.set_xlim(left, right)
    _name_dots(figure, axes, dots)


def _name_dots(figure: Figure, axes: Axes, dots: list[Cost]) -> None:
    """Write names to the right of dots, moved up where two would lie on each other."""
    figure.draw_without_rendering()
    to_points = 72 / figure.dpi
    taken: list[tuple[float, float, float]] = []  # left, right and bottom of each name, in points
    for cost in sorted(dots, key=lambda cost: cost.flops / cost.seconds):
        dot = (cost.intensity, cost.flops / cost.seconds / 1e9)
        x, y = axes.transData.transform(dot) * to_points
        bottom, end = y, x + 8 + 4.6 * len(cost.name)
        while blocking := [b for a, e, b in taken if a < end and x < e and abs(b - bottom) < 8.5]:
            bottom = max(blocking) + 8.6
        taken.append((x, end, bottom))
        axes.annotate(cost.name, dot, (6, bottom - y), textcoords="offset points", va="center", fontsize=8)
