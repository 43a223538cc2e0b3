"""Matplotlib figures as inline SVG that follows the page: text as text, colors as CSS variables, stable bytes."""

import io
import re
import sys
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# Stand-ins that survive matplotlib's color parsing; each becomes a CSS variable, which the site's style sheet sets.
_TEXT, _LINE = "#010203", "#020406"
# Okabe and Ito's set (https://jfly.uni-koeln.de/color/), told apart with any color vision.
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")

_STABLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "livepages"}
_STYLE: dict[Any, Any] = {
    "font.family": ["sans-serif"],
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "figure.figsize": (6.4, 3.2),
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "white",  # of files
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


# Code that saves a figure in a file, which must be the same as for a reader who runs the code.
_SAVES = re.compile(r"\b(?:savefig|print_figure|PdfPages)\b|\.save\([^()]*(?:\bdpi\b|\.(?:png|jpe?g|pdf|svg)\b)")


class HouseStyle(MetaPathFinder):
    """The style of figures that a page shows, from the moment when anything in this process imports Matplotlib.

    A block that saves figures draws in Matplotlib's own style.
    """

    def __init__(self) -> None:
        self._wanted, self._is_on = True, False

    def install(self) -> None:
        """Wait for Matplotlib to be imported, if it has not been."""
        if "matplotlib" in sys.modules:
            self._switch()
        elif self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def begin(self, code: str) -> None:
        """Take the style that a block of this code draws in."""
        self._wanted = not _SAVES.search(code)
        if "matplotlib" in sys.modules and self not in sys.meta_path:
            self._switch()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find Matplotlib as the other finders do, and set the style as soon as it has been imported."""
        if name != "matplotlib":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._switch()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _switch(self) -> None:
        """Switch between the two styles, except for settings that the page has made."""
        if self._wanted == self._is_on:
            return
        from cycler import cycler
        from matplotlib import RcParams, rcParams, rcParamsDefault

        for name, styled in RcParams({**_STYLE, "axes.prop_cycle": cycler(color=CYCLE)}).items():
            before, after = (rcParamsDefault[name], styled) if self._wanted else (styled, rcParamsDefault[name])
            if rcParams[name] == before:
                rcParams[name] = after
        self._is_on = self._wanted


house_style = HouseStyle()


@cache
def preload() -> None:
    """Import matplotlib with the site's style, and draw once, so that forks find its fonts and its parser ready.

    Does nothing where matplotlib is not installed.
    """
    house_style.install()
    try:
        import matplotlib.pyplot  # noqa: F401
    except ImportError:
        return
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().loglog([1, 10], [1, 10])
    figure.savefig(io.StringIO(), format="svg", bbox_inches="tight")


def take_open() -> list[str]:
    """Return the figures that pyplot holds open, as SVG, in order, and close them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    figures = []
    background = "none" if pyplot.rcParams["figure.facecolor"] == "none" else "auto"
    about: dict[str, Any] = {"metadata": {"Date": None, "Creator": None}, "facecolor": background}
    try:
        for number in pyplot.get_fignums():
            buffer = io.StringIO()
            with pyplot.rc_context(_STABLE):
                pyplot.figure(number).savefig(buffer, format="svg", bbox_inches="tight", **about)
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
