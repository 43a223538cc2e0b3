"""Readers' use of the site: dark mode, copying, the keyboard, deep links, print, and going from page to page."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from livepages.source import Block, find_project, read_page
from tests.browser.chosen import rarely
from tests.browser.reader import View, Visit, hold

Open = Callable[..., Visit]
PROJECT = find_project(Path(__file__))
VMAP = "basics/vmap/"
CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}


def blocks(url: str) -> list[Block]:
    """The blocks of a page whose source a reader sees."""
    path = PROJECT.docs / f"{url.rstrip('/')}.md"
    page = read_page(path, PROJECT)
    return [block for block in page.blocks if block.options.source != "none"]


def expect_scheme(page: Page, scheme: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", scheme)


# --- dark mode --------------------------------------------------------------------------------------------------------


def test_dark_mode_by_click_is_kept(visit: Open) -> None:
    page = visit(VMAP).page
    expect_scheme(page, "default")
    for choice in (1, 2):  # from the system's, to light, to dark
        page.locator(f"label[for=__palette_{choice}]").click()
    expect_scheme(page, "slate")
    page.reload()
    expect_scheme(page, "slate")


def test_dark_mode_follows_the_system(visit: Open) -> None:
    page = visit(VMAP, View("dark", 1280)).page
    expect_scheme(page, "slate")
    page.emulate_media(color_scheme="light")
    expect_scheme(page, "default")


def test_dark_mode_does_not_wait_for_the_themes_script(visit: Open) -> None:
    page = visit(VMAP, View("dark", 1280)).page
    held = hold(page, "**/bundle.*.js")
    with page.expect_request("**/bundle.*.js"):
        page.reload(wait_until="commit")
    expect_scheme(page, "slate")
    held[0].continue_()


def test_dark_mode_by_keyboard(visit: Open) -> None:
    page = visit(VMAP).page
    page.locator("#__palette_0").focus()
    for _ in range(2):
        page.keyboard.press("Enter")
    expect_scheme(page, "slate")
    expect(page.locator("#__palette_2")).to_be_focused()


def test_the_drawer_of_a_phone_holds_the_pages_once_it_is_open(visit: Open) -> None:
    page = visit(VMAP, View("light", 390)).page
    link = page.locator(".md-sidebar--primary").get_by_role("link", name="Pytrees")
    expect(link).not_to_be_in_viewport()
    page.get_by_role("button", name="Menu").click()
    expect(link).to_be_in_viewport()
    link.click()
    expect(page).to_have_url(re.compile("basics/pytrees/"))


def test_the_menu_of_a_narrow_window_leads_to_a_section_by_keyboard(visit: Open) -> None:
    page = visit(VMAP, View("dark", 390)).page
    focus, menu = page.locator(":focus"), page.get_by_label("Menu")
    for _ in range(2):  # past the link to the content
        page.keyboard.press("Tab")
    expect(menu).to_be_focused()
    page.keyboard.press("Enter")
    expect(focus).to_have_text(re.compile("Vectorizing with vmap"))
    page.keyboard.press("Enter")  # its contents
    expect(focus).to_have_text(re.compile("Table of contents"))
    page.keyboard.press("Tab")
    expect(focus).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#__drawer")).not_to_be_checked()
    expect(page).to_have_url(re.compile("#"))
    expect(page.locator("h2:target")).to_be_focused()


def test_a_wide_window_which_lists_the_pages_has_no_menu(visit: Open) -> None:
    page = visit(VMAP, View("light", 1280)).page
    expect(page.locator(".live-menu")).to_be_hidden()


def test_the_menu_closes_by_keyboard_and_gives_the_focus_back(visit: Open) -> None:
    page = visit(VMAP, View("light", 390)).page
    closed = page.get_by_role("button", name="Menu", expanded=False)
    closed.focus()
    page.keyboard.press("Space")
    expect(page.locator(":focus")).to_have_text(re.compile("Vectorizing with vmap"))
    expect(closed).to_have_count(0)
    page.keyboard.press("Shift+Tab")
    expect(page.locator(":focus")).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(closed).to_be_focused()


# --- blocks -----------------------------------------------------------------------------------------------------------


def copies(page: Page, url: str) -> None:
    """Check that the copy buttons give the code of the page's blocks, and nothing else."""
    for number, block in enumerate(blocks(url)[:4]):
        source = page.locator(".live-anchor + .highlight").nth(number)
        source.scroll_into_view_if_needed()
        source.hover()
        source.get_by_role("button", name="Copy to clipboard").click()
        expect(page.get_by_text("Copied to clipboard")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == block.code.rstrip()


@pytest.mark.parametrize("url", [rarely(VMAP), "basics/updates/"])  # the former when going on without a reload, too
def test_copying_gives_the_code_alone(url: str, visit: Open) -> None:
    copies(visit(url, **CLIPBOARD).page, url)


def test_the_small_print_opens_by_keyboard(visit: Open) -> None:
    page = visit(VMAP).page
    small = page.locator("details.live-small").first
    page.locator("h1").click()
    for _ in range(40):
        page.keyboard.press("Tab")
        if small.locator("summary").evaluate("summary => summary === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(small).to_have_attribute("open", "")
    expect(small.locator("span").first).to_be_visible()


def test_a_block_that_has_not_run_says_so_beside_its_buttons(visit: Open) -> None:
    """A page that is served before it has run holds this note in the place of a result that will be silent."""
    page = visit(VMAP, View("light", 390)).page
    silent = page.locator(".live-silent:has(> .live-acts)").first
    silent.evaluate("place => place.insertAdjacentHTML('afterbegin', '<p class=live-note>Running …</p>')")
    boxes = [silent.locator(part).bounding_box() for part in ("> .live-note", "> .live-acts")]
    note, acts = (box for box in boxes if box)
    assert acts["x"] + acts["width"] <= note["x"]
    assert acts["y"] < note["y"] + note["height"] and note["y"] < acts["y"] + acts["height"]  # in one row


@pytest.mark.parametrize(
    ("url", "region", "scheme"),
    [
        ("basics/dtypes/", ".highlight pre > code", "light"),
        ("basics/dtypes/", ".live-result pre > code", "dark"),
        ("start/settings/", ".md-typeset__scrollwrap", "light"),
        rarely("basics/dtypes/", ".highlight pre > code", "dark"),
        rarely("basics/dtypes/", ".live-result pre > code", "light"),
        rarely("start/settings/", ".md-typeset__scrollwrap", "dark"),
    ],
)
def test_a_phone_shows_that_a_wide_part_goes_on(
    url: str, region: str, scheme: Literal["light", "dark"], visit: Open
) -> None:
    page = visit(url, View(scheme, 390)).page
    wide = page.locator(f"article {region}")
    part = wide.nth(wide.evaluate_all("all => all.findIndex(part => part.scrollWidth > part.clientWidth + 30)"))
    part.scroll_into_view_if_needed()
    edges = []
    for x in (0, 100_000):
        part.evaluate("(part, x) => part.scrollTo(x, 0)", x)
        shot = Image.open(io.BytesIO(part.screenshot()))
        edges.append([shot.getpixel((shot.width - away, shot.height - 4)) for away in (3, 25)])
    (edge, inside), (end, end_inside) = edges
    assert edge != inside == end_inside == end


def test_what_runs_a_block_keeps_its_distance_from_the_text_below(visit: Open) -> None:
    page = visit("start/rosetta/", View("light", 390)).page
    gaps = page.locator(".live-acts").evaluate_all("""all => all.map(acts => {
      const next = acts.closest(".live-result").nextElementSibling;
      return next?.matches("p") ? next.getBoundingClientRect().top - acts.getBoundingClientRect().bottom : 9;
    })""")
    assert min(gaps) > 7


def test_a_link_to_a_section_scrolls_to_it(visit: Open) -> None:
    page = visit(VMAP).page
    link = page.locator("article h2 .headerlink").last.get_attribute("href") or ""
    again = visit(VMAP + re.sub(r".*#", "#", link)).page
    expect(again.locator("article h2").last).to_be_in_viewport()
    assert again.evaluate("scrollY") > 0


def test_a_link_to_a_block_scrolls_to_it(visit: Open) -> None:
    page = visit(VMAP).page
    small = page.locator("article > .live-result > .live-small").last
    small.locator("summary").press("Enter")  # a click is lost where the theme sets up the code above it meanwhile
    anchor = (small.get_by_role("link", name="link to this block").get_attribute("href") or "").rpartition("#")[2]
    again = visit(f"{VMAP}#{anchor}").page
    expect(again.locator(f"[id='{anchor}'] + *")).to_be_in_viewport()
    assert again.evaluate("scrollY") > 0


NEXT = """id => {
  const part = document.getElementById(id), next = document.activeElement;
  return next.closest("article") !== null && (part.compareDocumentPosition(next) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
}"""  # whether what has the focus is in the text, in this part or after it


@pytest.mark.parametrize("way", ["skip", rarely("contents"), "heading", rarely("hit"), "elsewhere"])
def test_reading_by_keyboard_goes_on_from_where_a_link_leads(way: str, visit: Open) -> None:
    page = visit("basics/derivatives/").page
    if way == "skip":
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    elif way == "contents":
        page.locator(".md-sidebar--secondary .md-nav__link").nth(3).focus()
    elif way == "heading":
        page.locator("article h2 .headerlink").nth(2).focus()
    else:
        page.keyboard.press("/")
        page.locator(".md-search__input").fill("several outputs make a matrix" if way == "hit" else "stop a loop early")
        found = "basics/derivatives" if way == "hit" else "answers/loops"
        page.locator(f".md-search-result__item a[href*='{found}'][href*='#']:has(h2)").first.focus()
    for again in (False, True):
        page.keyboard.press("Enter")
        page.wait_for_url("**#*" if way != "elsewhere" else "**/answers/loops/**")
        page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
        part = page.evaluate("decodeURIComponent(location.hash.slice(1))")
        target = page.locator(f"[id='{part}']")
        expect(target.locator(".headerlink") if way == "heading" else target).to_be_focused()
        expect(target).to_be_in_viewport()
        page.keyboard.press("Tab")
        assert page.evaluate(NEXT, part)
        expect(target).not_to_have_attribute("tabindex", "-1")
        if way != "skip" or again:
            break
        page.get_by_role("link", name="Skip to content").focus()  # which leads to where the address is already


def test_a_link_of_a_heading_has_no_line_of_its_own(visit: Open) -> None:
    page = visit("basics/derivatives/", View("light", 390), has_touch=True, is_mobile=True).page
    for width in range(320, 420, 7):
        page.set_viewport_size({"width": width, "height": 800})
        alone = page.locator("article :is(h1, h2, h3):has(> .headerlink)").evaluate_all("""all => all.filter(heading => {
          const link = heading.querySelector(".headerlink"), words = document.createRange();
          words.setStart(heading, 0);
          words.setEndBefore(link);
          const last = [...words.getClientRects()].at(-1), own = link.getBoundingClientRect();
          return own.top > last.bottom - 5;
        }).map(heading => heading.textContent)""")
        assert not alone, width
    link = page.locator("article h2 .headerlink").first
    assert 0.4 < float(link.evaluate("link => getComputedStyle(link).opacity")) < 1  # nothing hovers there


def test_a_note_on_a_line_opens_and_closes(visit: Open) -> None:
    page = visit("start/ten-minutes/").page
    notes = page.locator(".highlight:has(.md-annotation)")
    page.locator("pre:has-text('(1)')").first.scroll_into_view_if_needed()
    button = notes.first.locator(".md-annotation__index").first
    button.click()
    expect(
        notes.first.locator(".md-annotation .md-tooltip--active, .md-annotation .md-tooltip2--active").first
    ).to_be_visible()
    page.locator("h1").click()
    expect(page.locator(".md-annotation .md-tooltip--active")).to_have_count(0)


def test_a_link_shows_what_it_leads_to(visit: Open) -> None:
    page = visit("learn/").page
    page.locator("article").get_by_role("link", name="Vectorizing with vmap").first.hover()
    expect(page.locator(".md-tooltip2")).to_contain_text("write a function for one example")


# --- pages ------------------------------------------------------------------------------------------------------------


def test_print_from_dark_mode_is_dark_on_white(visit: Open) -> None:
    page = visit(VMAP, View("dark", 1280)).page
    page.emulate_media(media="print", color_scheme="dark")
    for part in ("h1", "article > p", "article .highlight code", "article .live-result code"):
        shown = page.locator(part).first
        expect(shown).to_be_visible()
        red, green, blue = map(
            int, re.findall(r"\d+", shown.evaluate("element => getComputedStyle(element).color"))[:3]
        )
        assert red + green + blue < 3 * 128, part
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")


@pytest.mark.parametrize("url", [rarely(VMAP), "practice/basics/"])
def test_paper_has_no_buttons_small_print_tracebacks_or_solutions(url: str, visit: Open) -> None:
    page = visit(url, View("dark", 1280)).page
    opened = page.locator("article details:not([class*=live])").last
    opened.evaluate("part => (part.open = true)")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = "part => part.checkVisibility({ visibilityProperty: true }) && part.getBoundingClientRect().height > 0"
    for parts in ("button", ".live-small", ".live-traceback", "details:not([class*=live]) > :not(summary)"):
        seen = [part for part in page.locator(f"article {parts}").all() if part.evaluate(shown)]
        assert not [
            part for part in seen if not opened.evaluate("(one, other) => one.contains(other)", part.element_handle())
        ]
    assert opened.locator("> :not(summary)").first.evaluate(shown)  # the reader has opened it
    for part in (".md-path", ".live-downloads"):
        expect(page.locator(part)).to_have_count(1)
        expect(page.locator(part)).not_to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    page.emulate_media(media="screen")
    expect(page.locator(".live-folded")).to_have_count(0)


def test_paper_has_all_of_a_long_output(visit: Open) -> None:
    page = visit("lookup/upgrade/").page
    more = page.locator("article .live-more").first
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(more).not_to_have_class(re.compile("live-folded"))
    expect(page.locator("article .live-small").first).to_have_class(re.compile("live-folded"))


def test_without_javascript_nothing_is_promised_that_needs_it(visit: Open) -> None:
    page = visit("lookup/all-errors/", java_script_enabled=False).page
    expect(page.get_by_text("Each entry says what the message means")).to_be_visible()
    expect(page.get_by_text("The filter looks only")).not_to_be_visible()


def test_home_leads_by_need_in_one_click(visit: Open) -> None:
    page = visit().page
    for need, address in {
        "a training job that is slow": "speed/profile/",
        "a newer JAX": "lookup/upgrade/",
        "an error": "lookup/message-to-cause/",
        "a program in PyTorch": "start/pytorch/",
    }.items():
        row = page.locator("tr", has=page.locator(f"td:text-matches('^{need}')"))
        assert (row.get_by_role("link").first.get_attribute("href") or "").endswith(address)


def test_going_on_without_a_reload_keeps_everything_working(visit: Open) -> None:
    page = visit("basics/derivatives/", **CLIPBOARD).page
    page.evaluate("window.stayed = true")
    page.locator(".md-footer__link--next").click()
    expect(page.locator("h1")).to_contain_text("vmap")
    page.wait_for_url(f"**/{VMAP}")
    assert page.evaluate("window.stayed")
    copies(page, VMAP)
    small = page.locator("details.live-small").first
    small.locator("summary").click()
    expect(small).to_have_attribute("open", "")
    page.locator(".md-footer__link--prev").click()
    page.wait_for_url("**/basics/derivatives/")
    assert page.evaluate("window.stayed")


def test_an_unknown_address_has_a_way_home(visit: Open) -> None:
    seen = visit("no/such/page/")
    seen.complaints.clear()  # the browser's own, of the 404
    seen.page.locator("article").get_by_role("link", name="Home").click()
    expect(seen.page.locator("h1")).to_contain_text("Learn JAX")
