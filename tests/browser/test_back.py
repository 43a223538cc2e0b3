"""Back and a reload return to the text that one was reading, however one went on."""

import random
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.reader import View, Visit

Open = Callable[..., Visit]
READ = """() => {
  const header = document.querySelector(".md-header").getBoundingClientRect().bottom;
  const part = [...document.querySelectorAll("article > *")].find((part) => part.getBoundingClientRect().bottom > header);
  return [part.textContent.slice(0, 60), part.getBoundingClientRect().top];
}"""
STAYS = "() => new Promise((done) => setTimeout(done, 1700))"  # for longer than a page may still move


def scrolled(page: Page, part: float) -> tuple[str, float]:
    """Scroll as with a wheel to this part of the page; gives the text at its top."""
    height = page.evaluate("document.documentElement.scrollHeight")
    while page.evaluate("scrollY") < part * height - 1000:
        page.mouse.wheel(0, 700)
        page.evaluate("() => new Promise(requestAnimationFrame)")
    page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
    return tuple(page.evaluate(READ))


@pytest.mark.parametrize("view", [View("light", 1280), View("dark", 390)], ids=str)
@pytest.mark.parametrize("address", ["answers/arrays/", "lookup/errors/"])
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
        seen = page.evaluate(READ)
        assert seen[0] == text, way
        assert abs(seen[1] - top) < 4, way
