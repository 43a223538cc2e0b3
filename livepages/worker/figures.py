"""Matplotlib figures as inline SVG that follows the page: text as text, colors as CSS variables, stable bytes."""

import io
import re
import sys
from functools import cache
from typing import Any

# Stand-ins that survive matplotlib's color parsing; each becomes a CSS variable, which the site's style sheet sets.
_TEXT, _LINE = "#010203", "#020406"
# Okabe and Ito's set (https://jfly.uni-koeln.de/color/), told apart with any color vision.
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "livepages",
    "font.family": ["sans-serif"],
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "figure.figsize": (6.4, 3.2),
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "text.color": _TEXT,
    "axes.labelcolor": _TEXT,
    "axes.titlecolor": _TEXT,
    "axes.edgecolor": _LINE,
    "xtick.color": _LINE,
    "ytick.color": _LINE,
    "xtick.labelcolor": _TEXT,
    "ytick.labelcolor": _TEXT,
    "grid.color": _LINE,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@cache
def preload() -> None:
    """Import matplotlib with the site's style, and draw once, so that forks find its fonts and its parser ready.

    Does nothing where matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("svg")
    import matplotlib.pyplot  # noqa: F401
    from cycler import cycler
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(_STYLE)
    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=CYCLE)
    figure = Figure()
    figure.subplots().loglog([1, 10], [1, 10])
    figure.savefig(io.StringIO(), format="svg", bbox_inches="tight")


def take_open() -> list[str]:
    """The figures that pyplot holds open, as SVG, in order; closes them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    figures = []
    try:
        for number in pyplot.get_fignums():
            buffer = io.StringIO()
            pyplot.figure(number).savefig(
                buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None}
            )
            figures.append(_themed(buffer.getvalue()))
    finally:
        pyplot.close("all")
    return figures


def _themed(svg: str) -> str:
    """The SVG element alone, in the page's colors, sized by its view box."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # As a rule for every element it would be one for the whole page, which is styled anew when it comes.
    svg = re.sub(r'<defs>\s*<style type="text/css">\*\{[^}]*\}</style>\s*</defs>', "", svg)
    svg = svg.replace("<svg", '<svg stroke-linejoin="round" stroke-linecap="butt"', 1)
    svg = re.sub("<[^>]*>", _in_variables, svg)  # text that names a color stays as it is
    svg = re.sub(r'(<svg\b[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)  # the page's own font
    svg = re.sub(r'\b(d|x|y|points|transform)="[^"]*"', _rounded, svg)
    return re.sub(r">\s+<", "><", svg).replace("\n", " ").strip()


def _in_variables(tag: re.Match[str]) -> str:
    """A tag with the colors of the page."""
    text = tag[0].replace(_TEXT, "var(--live-figure-text, currentColor)")
    text = text.replace(_LINE, "var(--live-figure-line, currentColor)")
    for number, color in enumerate(CYCLE):
        text = text.replace(color, f"var(--live-figure-{number}, {color})")
    return text


def _rounded(attribute: re.Match[str]) -> str:
    """Coordinates in hundredths of a point: enough, and the same everywhere."""
    return re.sub(r"(\d+\.\d\d)\d+", r"\1", attribute[0])
