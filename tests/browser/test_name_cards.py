"""The card at a name of JAX or of another library: by mouse, keyboard and finger; and the list of all public names."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chosen import rarely
from tests.browser.reader import VIEWS, Visit

URL = "basics/vmap/"
OPTAX = "train/training/"
NAMES = pytest.mark.parametrize(("url", "written"), [(URL, "jax.vmap"), rarely(OPTAX, "optax.adam")])


def name(page: Page, written: str = "jax.vmap") -> Locator:
    """The first link in code from a name."""
    return page.locator("pre a.live-name", has_text=re.compile(f"^{re.escape(written)}$")).locator("visible=true").first


def fetched(visit: Visit) -> list[str]:
    """Return what the page has asked for that only a card needs."""
    return [
        request.url
        for request in visit.requests
        if re.search(r"(names|releases|libraries)\.js(on)?$|card\.css$", request.url)
    ]


@pytest.mark.parametrize("view", [VIEWS[0], rarely(VIEWS[1])], ids=str)
def test_a_card_says_what_a_name_takes_since_when_and_where_it_is_explained(
    view: object, visit: Callable[..., Visit]
) -> None:
    seen = visit(URL, view)
    page = seen.page
    assert not fetched(seen)
    name(page).hover()
    card = page.get_by_role("dialog", name="jax.vmap")
    expect(card).to_contain_text("jax.vmap(fun, in_axes=0, out_axes=0")
    expect(card).to_contain_text("since 0.4.13 or before")
    expect(card.get_by_role("link", name="Official page")).to_have_attribute("href", re.compile(r"/jax\.vmap\.html$"))
    expect(card.get_by_role("link").first).to_have_attribute("href", re.compile(f"^{seen.base}"))
    assert len(fetched(seen)) == 4
    box = card.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= page.evaluate("innerWidth")
    page.mouse.move(0, 0)
    expect(card).to_have_count(0)
    name(page).focus()  # what axe needs to see of the page moves it below a mouse
    expect(card).to_be_visible()
    assert seen.violations() == []
    expect(card).to_be_visible()


@pytest.mark.parametrize("view", [rarely(VIEWS[0]), VIEWS[1]], ids=str)
def test_a_card_of_another_library_says_which_version_the_site_runs(view: object, visit: Callable[..., Visit]) -> None:
    seen = visit(OPTAX, view)
    page = seen.page
    name(page, "optax.adam").hover()
    card = page.get_by_role("dialog", name="optax.adam")
    expect(card).to_contain_text("optax.adam(learning_rate, b1=0.9, b2=0.999")
    expect(card).to_contain_text("The Adam optimizer.")
    expect(card).to_contain_text(re.compile(r"As in optax \d[\d.]*\d, which this site runs\."))
    official = card.get_by_role("link", name="Official page")
    expect(official).to_have_attribute("href", re.compile(r"^https://optax\..*/optax\.adam\.html$"))
    expect(card.get_by_role("link").first).to_have_attribute("href", re.compile(f"^{seen.base}"))
    expect(card.get_by_role("button")).to_have_count(0)  # about the reader's JAX
    assert not [url for url in fetched(seen) if url.endswith("/names.json")]
    box = card.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= page.evaluate("innerWidth")
    page.mouse.move(0, 0)
    name(page, "optax.adam").focus()
    expect(card).to_be_visible()
    assert seen.violations() == []


@pytest.mark.parametrize(
    ("url", "within", "written", "full"),
    [
        ("basics/arrays/", "pre a", "np.asarray", "numpy.asarray"),
        rarely("start/rosetta/", "code:not(:has(a))", "np.broadcast_to", "numpy.broadcast_to"),
        rarely("train/stack/", "pre a", "nnx.Linear", "flax.nnx.Linear"),
        rarely(OPTAX, "p code a", "eqx.filter_jit", "equinox.filter_jit"),
        ("answers/nnx/", "p code:not(:has(a))", "nnx.update", "flax.nnx.update"),
        rarely("train/schedules/", "p code a", "optax.adamw", "optax.adamw"),
        rarely("science/solvers/", "pre a", "lx.CG", "lineax.CG"),
    ],
)
def test_names_of_other_libraries_are_what_the_page_imports(
    url: str, within: str, written: str, full: str, visit: Callable[..., Visit]
) -> None:
    page = visit(url).page
    place = page.locator(f"article {within}", has_text=re.compile(rf"^{re.escape(written)}\b"))
    place.first.dispatch_event("pointerover")
    expect(page.get_by_role("dialog", name=full, exact=True)).to_contain_text("which this site runs.")


def test_the_mouse_may_go_into_the_card(visit: Callable[..., Visit]) -> None:
    page = visit(URL).page
    name(page).hover()
    link = page.locator("#live-card").get_by_role("link", name="Official page")
    link.hover()
    page.wait_for_timeout(600)  # a card that goes when the mouse leaves the name is gone by then
    expect(link).to_be_visible()


@NAMES
def test_the_keyboard_shows_the_card_enters_and_closes_it(url: str, written: str, visit: Callable[..., Visit]) -> None:
    page = visit(url).page
    link = name(page, written)
    link.evaluate("link => link.focus({ focusVisible: true })")
    card = page.locator("#live-card")
    expect(card).to_be_visible()
    expect(link).to_have_attribute("aria-describedby", "live-card")
    page.keyboard.press("ArrowDown")
    expect(card.get_by_role("link").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(link).to_be_focused()
    expect(link).not_to_have_attribute("aria-describedby", "live-card")


def test_tab_stops_at_a_name_once_a_page(visit: Callable[..., Visit]) -> None:
    page = visit("answers/loops/").page
    links = page.locator("article a.live-name:not(details *)")
    stops = links.evaluate_all("links => links.filter((link) => link.tabIndex === 0).map((link) => link.href)")
    assert len(set(stops)) == len(stops) < links.count() / 2
    assert set(stops) == set(links.evaluate_all("links => links.map((link) => link.href)"))


@NAMES
def test_a_long_press_shows_the_card_and_a_tap_follows_the_link(
    url: str, written: str, visit: Callable[..., Visit]
) -> None:
    seen = visit(url, VIEWS[3], has_touch=True)
    page = seen.page
    link = name(page, written)
    link.scroll_into_view_if_needed()
    box = link.bounding_box()
    assert box
    point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    finger = page.context.new_cdp_session(page)
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    card = page.locator("#live-card")
    expect(card).to_be_visible()
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(600)  # as above
    expect(card).to_be_visible()
    assert page.url == seen.base + url
    page.touchscreen.tap(5, 300)
    expect(card).to_have_count(0)


def test_a_name_that_is_gone_says_so_in_prose(visit: Callable[..., Visit]) -> None:
    page = visit("basics/pytrees/").page
    code = page.locator("article p code", has_text=re.compile(r"^jax\.tree_map$")).first
    code.dispatch_event("pointerover")  # by a mouse, the header would come in between while the page scrolls to it
    expect(page.locator("#live-card")).to_contain_text("deprecated in 0.4.26, gone in 0.6.0")


@pytest.mark.parametrize(("url", "written"), [(URL, r"^\w+$"), ("start/rosetta/", r"^torch\.\w+")])
def test_what_no_library_of_an_inventory_has_has_no_card(url: str, written: str, visit: Callable[..., Visit]) -> None:
    seen = visit(url)
    seen.page.locator("article h1").hover()
    code = seen.page.locator("article :not(pre) > code", has_text=re.compile(written)).locator("visible=true")
    code.first.hover()
    seen.page.wait_for_timeout(600)
    assert not fetched(seen)


def test_all_public_names_are_listed_as_one_types(visit: Callable[..., Visit]) -> None:
    seen = visit("lookup/names/")
    page = seen.page
    assert not [url for url in fetched(seen) if url.endswith("json")]
    page.get_by_label("Filter").fill("tree_map")
    row = page.locator("[data-live-names] li", has=page.get_by_text("jax.tree_map", exact=True))
    expect(row).to_contain_text("deprecated in 0.4.26, gone in 0.6.0")
    expect(row).to_contain_text("jax.tree.map")
    assert seen.violations() == []
    page.get_by_label("Filter").fill("")
    expect(page.locator("[data-live-names] li")).to_have_count(0)


def test_cards_cost_the_first_load_next_to_nothing(folder: Path) -> None:
    assert (folder / "names.json").stat().st_size > 100_000
    source = (folder / "javascripts/live.js").read_text(encoding="utf-8")
    assert "names.js" in source and len(source) < 8.5 * 1024  # of which what keeps the reader's place is a third
