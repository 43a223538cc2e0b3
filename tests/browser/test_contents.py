"""The table of contents marks the section that one went to, which stays where it was put."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.chosen import rarely
from tests.browser.reader import View, Visit

Open = Callable[..., Visit]
# The entries that are marked once nothing has moved for so many frames, and whether the section of the address is in view
# below the header: at the place of a section, or where the page ends.
SEEN = """() => new Promise((done) => {
  let before = "", still = 0;
  const look = () => {
    const now = [scrollY, document.documentElement.scrollHeight, location.href].join();
    still = now === before ? still + 1 : 0;
    before = now;
    if (still < 20) return requestAnimationFrame(look);
    const marked = [...document.querySelectorAll(".md-sidebar .md-nav--secondary .md-nav__link--active")];
    const { top } = document.querySelector(":target")?.getBoundingClientRect() ?? {};
    const end = scrollY + innerHeight > document.documentElement.scrollHeight - 2;
    done([[...new Set(marked.map(({ hash }) => hash))], Math.abs(top - 68) < 3 || (end && top > 60 && top < innerHeight)]);
  };
  look();
})"""
CLICK = "hash => document.querySelector(`.md-sidebar .md-nav--secondary a[href$='${hash}']`).click()"
WIDE, PHONE = View("light", 1280), View("dark", 390)


def sections(page: Page) -> list[str]:
    """Some of the sections of the table of contents, as hashes: from its begin, its middle and its end."""
    links = page.locator(".md-sidebar--secondary .md-nav--secondary .md-nav__link")
    hashes: list[str] = links.evaluate_all("links => links.map(({ hash }) => hash).filter(Boolean)")
    return [hashes[0], hashes[len(hashes) // 2], *hashes[-2:]]


@pytest.mark.parametrize(
    ("url", "view"),
    [
        ("basics/dtypes/", WIDE),
        ("answers/loops/", PHONE),
        rarely("basics/dtypes/", PHONE),
        rarely("answers/loops/", WIDE),
        *(rarely(url, view) for url in ("basics/vmap/", "start/pytorch/") for view in (WIDE, PHONE)),
    ],
    ids=str,
)
def test_a_section_is_marked_that_was_gone_to_by_click_or_address(url: str, view: View, visit: Open) -> None:
    seen = visit(url, view)
    page = seen.page
    for section in sections(page):
        page.evaluate(CLICK, section)
        assert page.evaluate(SEEN) == [[section], True], section
    for section in sections(page)[1:3]:
        page.goto("about:blank")
        seen.go(f"{url}{section}")
        assert page.evaluate(SEEN) == [[section], True], section


@pytest.mark.parametrize("view", [rarely(WIDE), PHONE], ids=str)
def test_a_section_is_marked_that_the_search_has_found(view: View, visit: Open) -> None:
    page = visit("learn/", view).page
    page.locator(".md-header label[for=__search]").first.click() if view.width < 600 else page.keyboard.press("/")
    page.locator(".md-search__input").fill("numbers are 32 bits wide unless you ask")
    page.locator(".md-search-result__item a[href*='basics/dtypes/']").first.click()
    page.wait_for_url("**/basics/dtypes/**")
    assert page.evaluate(SEEN) == [["#numbers-are-32-bits-wide-unless-you-ask"], True]


def test_back_from_a_section_returns_to_the_text_above_it(visit: Open) -> None:
    page = visit("basics/vmap/").page
    page.mouse.move(400, 500)
    page.mouse.wheel(0, 900)
    page.evaluate(SEEN)
    before = page.evaluate("scrollY")
    page.evaluate(CLICK, sections(page)[-2])
    page.evaluate(SEEN)
    assert page.evaluate("scrollY") > before + 1000
    page.go_back()
    page.evaluate(SEEN)
    assert abs(page.evaluate("scrollY") - before) < 4
