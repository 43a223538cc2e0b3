"""Figures: inline SVG in the page's colors, the same bytes every time, never without words."""

import re

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
