"""Every name in the index is found by typing it."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chosen import NTH
from tests.browser.conftest import Found
from tests.browser.reader import Visit


@NTH
def test_a_name_typed_in_full_is_the_first_result(
    ask: Callable[..., dict[str, Found]], visit: Callable[..., Visit], nth: int
) -> None:
    url = "lookup/names/"
    names = visit(url).page.locator("h3[id]").evaluate_all("all => all.map(heading => heading.id)")
    places = {name: f"{url}#{name}" for name in names}
    assert len(places) > 300
    found = {name: found.sections[0] for name, found in ask(list(places)[::nth]).items()}
    assert {name: first for name, first in found.items() if first != places[name]} == {}


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("jnp.where", "lookup/names/#jax.numpy.where"),
        ("lax.scan", "lookup/names/#jax.lax.scan"),
        (" jax.jit ", "lookup/names/#jax.jit"),
    ],
)
def test_a_name_as_code_has_it_is_the_first_result(
    typed: str, place: str, ask: Callable[..., dict[str, Found]]
) -> None:
    assert ask([typed])[typed].sections[0] == place


def test_names_are_filtered_by_a_part(visit: Callable[..., Visit]) -> None:
    page = visit("lookup/names/?filter=fori").page
    expect(page.locator("h3:visible")).to_have_text(["jax.lax.fori_loop"])


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("jax.experimental.maps", "jax.experimental.maps"),
        ("jnp.fromfunction", "jax.numpy.fromfunction"),
        ("ModuleNotFoundError: No module named 'jax.experimental.maps'", "jax.experimental.maps"),
        ("ImportError: cannot import name 'Literal' from 'jax.core'", "jax.core.Literal"),
    ],
)
def test_a_name_that_no_section_is_about_is_found_with_its_history(
    query: str, name: str, ask: Callable[..., dict[str, Found]]
) -> None:
    assert ask([query])[query].sections[0] == f"lookup/names/?filter={name}"


@pytest.mark.parametrize("query", ["jax.numpy", "ModuleNotFoundError: No module named 'jax.config'", "jax.nosuchname"])
def test_what_the_record_has_nothing_to_say_of_is_left_to_the_pages(
    query: str, ask: Callable[..., dict[str, Found]]
) -> None:
    assert not [place for place in ask([query])[query].sections if "?filter=" in place]


def test_such_a_result_leads_to_the_list_of_all_names(visit: Callable[..., Visit]) -> None:
    page = visit().page
    page.keyboard.press("/")
    field = page.locator(".md-search__input")
    expect(field).to_be_focused()
    field.fill("jax.experimental.maps")
    found = page.locator(".md-search-result__item").first.locator("a").first
    expect(found).to_contain_text("gone in 0.4.31")
    page.keyboard.press("Enter")
    row = page.locator("[data-live-names] li").first
    expect(row).to_contain_text("jax.experimental.maps")
    expect(row).to_contain_text("gone in 0.4.31")


@pytest.mark.parametrize("typed", ["jnp.product", "np.product", "jax.numpy.product"])
def test_a_name_as_code_has_it_leads_from_the_names_to_its_row(typed: str, visit: Callable[..., Visit]) -> None:
    page = visit(f"lookup/names/?filter={typed}").page
    listed = page.locator("[data-live-names]")
    expect(listed.locator("li b")).to_have_text(["jax.numpy.product"])
    row = listed.get_by_role("link", name="What to write instead")
    expect(row).to_have_attribute("href", re.compile(r"/lookup/then-and-now/#old-jax\.numpy\.product$"))
