"""The cheat sheet prints on two sheets, and the table of three libraries can be filtered."""

import re
from collections.abc import Callable

import pytest

from tests.browser.reader import Visit


@pytest.mark.slow
def test_the_cheat_sheet_prints_on_two_sheets(visit: Callable[..., Visit]) -> None:
    for paper in ("A4", "Letter"):
        pdf = visit("lookup/cheat-sheet/").page.pdf(format=paper)
        assert len(re.findall(rb"/Type /Page\b", pdf)) == 2


def test_rows_are_filtered_by_what_is_typed(visit: Callable[..., Visit]) -> None:
    page = visit("start/rosetta/").page
    rows, field = page.locator(".live-row:not([hidden])"), page.get_by_role("searchbox", name="Filter")
    page.locator("[data-live-filter]").scroll_into_view_if_needed()
    everything = rows.count()
    field.fill("torch.cat")
    assert rows.locator("h3").all_text_contents()[0].startswith("Concatenate") and rows.count() == 1
    assert page.locator("output").last.text_content() == f"1 of {everything}"
    field.fill("differs median")
    assert rows.count() == 1
    field.fill("")
    assert rows.count() == everything > 60
