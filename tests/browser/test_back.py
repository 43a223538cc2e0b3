"""Back and a reload return to the text that one was reading, however one went on."""

import random
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chosen import rarely
from tests.browser.reader import View, Visit

Open = Callable[..., Visit]
WIDE, PHONE = View("light", 1280), View("dark", 390)
READ = """() => {
  const header = document.querySelector(".md-header").getBoundingClientRect().bottom;
  const part = [...document.querySelectorAll(".md-content article > *")].find((part) => part.getBoundingClientRect().bottom > header);
  return [part.textContent.slice(0, 60), part.getBoundingClientRect().top];
}"""
MOVED = """([words, top]) => {
  const same = [...document.querySelectorAll(".md-content article > *")].filter((part) => part.textContent.slice(0, 60) === words);
  return Math.min(...same.map((part) => Math.abs(part.getBoundingClientRect().top - top)));
}"""  # by how much a text has; rounding alone may put another one at the top
STAYS = "() => new Promise((done) => setTimeout(done, 1700))"  # for longer than a page may still move


def scrolled(page: Page, part: float) -> tuple[str, float]:
    """Scroll as with a wheel to this part of the page, and return the text at its top."""
    height = page.evaluate("document.documentElement.scrollHeight")
    while page.evaluate("scrollY") < part * height - 1000:
        page.mouse.wheel(0, 700)
        page.evaluate("() => new Promise(requestAnimationFrame)")
    page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
    return tuple(page.evaluate(READ))


@pytest.mark.parametrize(
    ("address", "view"),
    [
        ("answers/arrays/", PHONE),
        rarely("answers/arrays/", WIDE),
        rarely("lookup/errors/", PHONE),
        rarely("lookup/errors/", WIDE),
    ],
    ids=str,
)
def test_back_and_a_reload_return_to_the_text(address: str, view: View, visit: Open) -> None:
    page = visit(address, view).page
    page.mouse.move(200, 500)
    at = random.Random(address)
    for way in ("in place", "whole", "reload"):
        text, top = scrolled(page, at.uniform(0.3, 0.8))
        heading = page.locator("h1").inner_text()
        if way == "reload":
            page.reload()
        else:
            page.evaluate(
                """way => {
                  const link = [...document.querySelectorAll("article a[href]")].find((link) =>
                    link.pathname !== location.pathname && link.host === location.host && link.pathname.endsWith("/"));
                  way === "whole" ? (location.href = link.href) : link.click();
                }""",
                way,
            )
            expect(page.locator("h1")).not_to_have_text(heading)
            page.go_back()
        expect(page.locator("h1")).to_have_text(heading)
        page.evaluate(STAYS)
        assert page.evaluate(MOVED, [text, top]) < 4, way


@pytest.mark.parametrize("view", [WIDE, rarely(PHONE)], ids=str)
def test_back_from_a_search_hit_returns_to_the_text(view: View, visit: Open) -> None:
    page = visit("basics/dtypes/", view).page
    page.mouse.move(200, 500)
    heading = page.locator(".md-content h1").inner_text()
    text, top = scrolled(page, 0.4)
    page.locator(".md-header label[for=__search]").first.click() if view.width < 600 else page.keyboard.press("/")
    page.locator(".md-search__input").fill("vmap axis")
    page.locator(".md-search-result__item a").first.click()
    expect(page.locator(".md-content h1")).not_to_have_text(heading)
    page.go_back()
    expect(page.locator(".md-content h1")).to_have_text(heading)
    page.evaluate(STAYS)
    assert page.evaluate(MOVED, [text, top]) < 4


def test_a_close_request_closes_the_search_of_a_phone(visit: Open) -> None:
    page = visit("basics/dtypes/", PHONE).page
    toggle = page.locator("#__search")
    page.evaluate("() => { window.CloseWatcher = class { constructor() { window.asked = this; } destroy() {} }; }")
    page.locator(".md-header label[for=__search]").first.click()
    expect(toggle).to_be_checked()
    page.evaluate("asked.onclose()")  # as Android's Back does
    expect(toggle).not_to_be_checked()
