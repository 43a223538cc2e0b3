"""Linked panes light up together, with the mouse, the keyboard and a finger, and are links without a script."""

from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser.reader import View, Visit, hold

URL = "speed/read-the-compiler/"
EXPRESSION = "jnp.exp(x)"


def lit(panes: Locator, language: str) -> Locator:
    return panes.get_by_role("group", name=language, exact=True).locator(".live-lit")


def expect_linked(panes: Locator) -> None:
    for language, part in {
        "Python": "jnp.exp(x)",
        "jaxpr": "= exp",
        "StableHLO": "= exponential",
        "optimized HLO": "exponential(%",
    }.items():
        expect(lit(panes, language).filter(has_text=part)).to_have_count(1)
    expect(lit(panes, "jaxpr")).to_have_count(1)
    expect(panes.get_by_role("status")).to_contain_text("jnp.exp(x)\nLines: jaxpr 1, StableHLO 1, optimized HLO 2")


def test_pointing_lights_up_and_choosing_stays(visit: Callable[..., Visit]) -> None:
    page = visit(URL, View("light", 1280)).page
    panes = page.locator(".live-panes").first
    panes.get_by_role("link", name=EXPRESSION, exact=True).hover()
    expect_linked(panes)
    page.get_by_role("heading", level=1).hover()
    expect(panes.locator(".live-lit")).to_have_count(0)
    panes.get_by_role("group", name="StableHLO").get_by_text("= exponential").click()
    page.get_by_role("heading", level=1).hover()
    expect_linked(panes)
    assert "#" not in page.url


def test_what_is_pointed_at_before_the_script_is_there_lights_up_with_it(visit: Callable[..., Visit]) -> None:
    page = visit(URL, View("light", 1280)).page
    held = hold(page, "**/panes.js")
    with page.expect_request("**/panes.js"):
        page.reload()
        panes = page.locator(".live-panes").first
        panes.get_by_role("link", name=EXPRESSION, exact=True).hover()
    expect(panes.locator(".live-lit")).to_have_count(0)
    held[0].continue_()
    expect_linked(panes)


def test_the_keyboard_does_the_same(visit: Callable[..., Visit]) -> None:
    page = visit(URL, View("dark", 390)).page
    panes = page.locator(".live-panes").first
    panes.get_by_role("link", name=EXPRESSION, exact=True).focus()
    expect_linked(panes)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    expect_linked(panes)


def test_without_a_script_a_link_leads_to_the_list(visit: Callable[..., Visit]) -> None:
    page = visit(URL, java_script_enabled=False).page
    panes = page.locator(".live-panes").first
    panes.get_by_role("link", name=EXPRESSION, exact=True).click()
    entry = panes.locator("li:target")
    expect(entry).to_be_visible()
    expect(entry).to_contain_text("= exponential")
