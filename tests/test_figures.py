"""Figures: inline SVG in the page's colors, the same bytes every time, never without words."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Site

pytest.importorskip("matplotlib")

PLOT = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2], [0.123456, 0.9], label='3.14159')\nax.legend()"


def test_open_figures_are_taken_as_themed_svg(site: Site) -> None:
    outcome, after = site.outcomes(f'alt="a line"\n{PLOT}', "print(plt.get_fignums())")
    (svg,) = outcome.figures
    assert svg.startswith("<svg") and svg.endswith("</svg>")
    assert "var(--live-figure-0" in svg and "var(--live-figure-text" in svg
    assert ">3.14159</text>" in svg
    # The style of a figure is none of the page that it is in.
    assert "<style" not in svg and svg.startswith('<svg stroke-linejoin="round" stroke-linecap="butt" ')
    assert re.search(r"<(text|tspan)", svg) and "<metadata" not in svg and not re.search(r'<svg[^>]* width="', svg)
    assert after.stdout == "[]\n"


def test_two_processes_draw_the_same_bytes(site: Site) -> None:
    block = f'alt="a line"\n{PLOT}'
    assert site.outcomes(block)[0].figures == site.outcomes(block)[0].figures


def test_a_figure_without_words_is_a_failure(site: Site) -> None:
    (failure,) = site.failures(PLOT)
    assert "alt=" in failure.message


def test_words_in_a_figure_that_name_a_color_stay_words(site: Site) -> None:
    (outcome,) = site.outcomes(f'alt="a line"\n{PLOT}\nax.set_title("#0072b2 and #010203")')
    assert ">#0072b2 and #010203</text>" in outcome.figures[0]


def test_a_figure_that_cannot_be_drawn_is_the_failure_of_its_block_alone(site: Site) -> None:
    first, second = site.outcomes(
        'alt="a"\nimport matplotlib.pyplot as plt\nplt.title("$\\\\nonsense{$")\nplt.plot([1])', "x = 1"
    )
    assert first.raised and not second.raised


def test_words_without_a_figure_are_a_failure(site: Site) -> None:
    (failure,) = site.failures('alt="a line"\nprint(1)')
    assert "leaves none open" in failure.message


def test_a_figure_that_cannot_be_drawn_is_a_failure(site: Site) -> None:
    (failure,) = site.failures('alt="a"\nimport matplotlib.pyplot as plt\nplt.title("$\\\\nonsense{$")\nplt.plot([1])')
    assert "raised" in failure.message


HELPER = """import matplotlib
def draw():
    from matplotlib import pyplot as plt
    plt.plot([1, 2], label="3")
    plt.legend();
"""


def test_a_figure_that_a_module_draws_looks_like_one_that_the_page_draws(site: Site) -> None:
    """The bytes are the same in each build, whichever module imports Matplotlib, also if the page does not name it."""
    site.write("snippets/helper.py", HELPER)
    (own,) = site.outcomes(f'alt="a line"\n{HELPER}\ndraw()')[0].figures
    assert "var(--live-figure-0" in own
    for _ in range(2):
        assert site.outcomes('alt="a line"\nimport helper\nhelper.draw()')[0].figures == (own,)


SAVE = """
import hashlib
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.plot([1, 2], label="a")
ax.set_title("title")
ax.legend()
fig.savefig("plot.png")
print(plt.imread("plot.png").shape, hashlib.sha256(open("plot.png", "rb").read()).hexdigest())
"""


@pytest.mark.parametrize("before", ["x = 1", "import matplotlib.pyplot"])
def test_a_file_that_a_page_saves_is_what_a_reader_gets(site: Site, tmp_path: Path, before: str) -> None:
    (tmp_path / "reader").mkdir()
    environment = {**os.environ, "MPLBACKEND": "agg", "MATPLOTLIBRC": os.devnull}
    command = [sys.executable, "-c", SAVE]
    alone = subprocess.check_output(command, cwd=tmp_path / "reader", env=environment, text=True)
    _, saved, shown = site.outcomes(before, f'alt="a line" {SAVE}', f'alt="a line"\n{PLOT}')
    assert saved.stdout == alone and alone.startswith("(480, 640, 4)")
    assert saved.figures and "var(--live-figure-0" not in saved.figures[0]
    assert "var(--live-figure-0" in shown.figures[0], "the next block has the style of the site again"


def test_a_library_on_matplotlib_saves_in_matplotlib_s_own_style(site: Site) -> None:
    """Plotnine, for one, which takes from Matplotlib what its themes leave open."""
    plot = "class Plot:\n    def save(self, path, dpi=72):\n        print(mpl.rcParams['grid.alpha'])\n"
    codes = ["Plot().save(path, dpi=300)", "Plot().save('plot.png')", "print(mpl.rcParams['grid.alpha'])"]
    outcomes = site.outcomes(f"import matplotlib as mpl\npath = 'plot.png'\n{plot}", *codes)
    assert [outcome.stdout for outcome in outcomes[1:]] == ["1.0\n", "1.0\n", "0.25\n"]


def test_a_style_that_a_page_sets_stays_whatever_is_saved(site: Site) -> None:
    outcomes = site.outcomes(
        "import matplotlib as mpl\nmpl.rcParams['font.size'] = 20",
        "mpl.savefig = 1",
        "print(mpl.rcParams['font.size'])",
    )
    assert outcomes[2].stdout == "20.0\n"
