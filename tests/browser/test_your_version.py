"""The site for the JAX that its reader has: what it lacks is marked, and the outputs nearest to it are open."""

import re
from collections.abc import Callable

import public_names
from playwright.sync_api import Page, expect

from tests.browser.reader import VIEWS, Visit

URL = "basics/pytrees/"
RELEASE = "0.4.20"  # has no jax.tree

# By the site's own script, which releases have each name: for each release 1 or 0.
LACKS = """async (base) => {
  const { describe, lacks } = await import(`${base}javascripts/releases.js`);
  const { releases, names } = await (await fetch(`${base}names.json`)).json();
  const said = Object.entries(names).map(([name, facts]) => [name, releases.map((release) => +!lacks(facts, release, releases)).join("")]);
  return { said: Object.fromEntries(said), again: describe(names["jax.interpreters.ad.jvp_jaxpr"], releases) };
}"""


def choose(page: Page, release: str) -> None:
    """Say which release one has."""
    page.locator(".live-version").click()
    page.get_by_label("Your release of JAX").select_option(release)
    expect(page.locator("#live-ask-version output")).to_contain_text("On this page" if release else "as they ran")
    page.get_by_role("button", name="Done").click()


def test_names_that_the_chosen_release_lacks_are_marked_until_it_is_taken_back(visit: Callable[..., Visit]) -> None:
    view = VIEWS[1]
    seen = visit(URL, view)
    page = seen.page
    button = page.get_by_role("button", name="Your JAX")
    assert not [request.url for request in seen.requests if re.search(r"version|names|releases", request.url)]

    button.focus()
    page.keyboard.press("Enter")
    field = page.get_by_label("Your release of JAX")
    expect(field).to_be_focused()
    field.select_option(RELEASE)
    expect(page.locator("#live-ask-version output")).to_contain_text("marked")
    box = page.locator("#live-ask-version").bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= view.width
    assert seen.violations() == []
    page.keyboard.press("Escape")
    expect(page.locator("#live-ask-version")).to_have_count(0)

    note = page.get_by_role("note", name=f"For your JAX {RELEASE}")
    expect(note).to_contain_text(f"Not yet in your JAX {RELEASE}: jax.tree.")
    mark = page.locator("pre a.live-lacking").first
    expect(mark).to_have_text(re.compile(r"^jax\.tree\."))
    expect(mark).to_have_attribute("aria-description", f"Not yet in your JAX {RELEASE}")
    expect(page.locator("p a.live-lacking").first).to_have_attribute("aria-description", re.compile("Not yet"))
    assert page.locator("pre a.live-lacking", has_text="jax.numpy").count() == 0
    assert seen.violations() == []
    assert "jax=" not in page.url

    page.reload()
    expect(mark).to_have_class(re.compile("live-lacking"))
    mark.focus()
    expect(page.locator("#live-card")).to_contain_text(f"Not yet in your JAX {RELEASE}.")
    choose(page, "")
    expect(page.locator(".live-lacking, .live-heard, .live-yours, .md-content [aria-description]")).to_have_count(0)
    expect(button).to_be_visible()


def test_a_name_in_prose_that_is_gone_says_so_to_those_who_hear_it(visit: Callable[..., Visit]) -> None:
    page = visit(f"{URL}?jax=0.12.0").page
    code = page.locator("article p code.live-lacking", has_text=re.compile(r"^jax\.tree_map$")).first
    expect(code.locator("+ .live-heard")).to_have_text(" (No longer in your JAX 0.12.0)")


def test_an_output_of_the_nearest_release_is_open(visit: Callable[..., Visit]) -> None:
    page = visit("basics/vmap/").page
    row = page.locator(".live-result:not([data-live-volatile]) .live-elsewhere details").first
    other = re.search(r"jax ([\d.]+)", row.locator("summary").inner_text())
    assert other
    expect(row).not_to_have_attribute("open", "")
    # What leads to another output must not read as a caption of the one above it.
    words = page.locator(".live-elsewhere").first.evaluate("row => getComputedStyle(row, '::before').content")
    assert words == '"compare with"'
    choose(page, other[1])
    expect(row).to_have_attribute("open", "")
    expect(row.locator("summary")).to_contain_text("your release")
    expect(page.locator(".live-yours")).to_contain_text("your release, and ")
    choose(page, "")
    expect(row).not_to_have_attribute("open", "")


def test_an_upgrade_begins_at_the_release_that_the_reader_has(visit: Callable[..., Visit]) -> None:
    page = visit("lookup/upgrade/").page
    old = page.get_by_role("group", name="old", exact=True)
    chosen, first = old.locator("label:has(:checked)"), old.locator("label").first.inner_text()
    choose(page, "0.6.2")
    expect(chosen).to_have_text("'0.6.2', your release")
    expect(page.locator(".live-value.live-chosen").first).to_contain_text("0.6.2")
    choose(page, "0.7.1")
    expect(chosen).to_have_text("'0.6.2', the nearest to your 0.7.1")
    page.reload()
    expect(chosen).to_have_text("'0.6.2', the nearest to your 0.7.1")
    choose(page, "0.4.14")
    expect(chosen).to_have_text("'0.4.13', the nearest to your 0.4.14")
    old.get_by_label("0.8.3").check()  # what the reader has chosen here stays
    choose(page, "")
    expect(chosen).to_have_text("'0.8.3'")
    page.reload()
    expect(chosen).to_have_text(first)


def test_a_shared_link_shows_a_release_and_keeps_nothing(visit: Callable[..., Visit]) -> None:
    seen = visit(f"{URL}?jax={RELEASE}", permissions=["clipboard-read", "clipboard-write"])
    page = seen.page
    expect(page.locator(".live-yours")).to_contain_text(f"Not yet in your JAX {RELEASE}")
    assert page.evaluate("localStorage.getItem('live-jax')") is None
    page.get_by_role("button", name=f"JAX {RELEASE}").click()
    expect(page.get_by_label("Your release of JAX")).to_have_value(RELEASE)
    assert seen.violations() == []
    page.get_by_role("button", name="Copy a link").click()
    expect(page.locator("#live-ask-version output")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == f"{seen.base}{URL}?jax={RELEASE}"
    page.get_by_role("button", name="Done").click()
    choose(page, "0.6.0")
    assert page.url == seen.base + URL
    expect(page.get_by_role("button", name="JAX 0.6.0")).to_be_visible()


def test_the_table_of_libraries_leaves_out_one_that_the_reader_does_not_come_from(visit: Callable[..., Visit]) -> None:
    page = visit("start/rosetta/").page
    row = page.locator(".live-row").first
    expect(row.get_by_text("PyTorch", exact=True)).to_be_visible()
    page.get_by_role("button", name="Your JAX").click()
    page.get_by_label("compare JAX with").select_option("NumPy")
    page.get_by_role("button", name="Done").click()
    expect(row.get_by_text("NumPy", exact=True)).to_be_visible()
    expect(row.get_by_text("JAX", exact=True)).to_be_visible()
    expect(row.get_by_text("PyTorch", exact=True)).to_be_hidden()
    page.reload()
    expect(row.get_by_text("PyTorch", exact=True)).to_be_hidden()


def test_without_scripts_nothing_asks(visit: Callable[..., Visit]) -> None:
    page = visit(URL, java_script_enabled=False).page
    expect(page.get_by_text("Your JAX")).to_be_hidden()


def test_each_release_lacks_what_the_record_says(visit: Callable[..., Visit]) -> None:
    seen = visit("404.html")
    found = seen.page.evaluate(LACKS, seen.base)
    record = public_names.Record()
    wrong = []
    for name, output in found["said"].items():
        changes, state = dict(record.histories[name].changes), public_names.ABSENT
        for release, has in zip(record.releases, output, strict=True):
            state = changes.get(release, state)
            if (has == "1") != (state.state in ("there", "deprecated")):
                wrong.append((name, release))
    assert len(found["said"]) > 3000 and wrong == []
    assert found["again"].startswith("since 0.4.13 or before, gone in 0.9.0, again since 0.11.1")
