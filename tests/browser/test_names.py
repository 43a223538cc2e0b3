"""Every name in the index is found by typing it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Found
from tests.browser.reader import Visit


def test_a_name_typed_in_full_is_the_first_result(
    ask: Callable[..., dict[str, Found]], visit: Callable[..., Visit]
) -> None:
    url = "lookup/names/"
    names = visit(url).page.locator("h3[id]").evaluate_all("all => all.map(heading => heading.id)")
    places = {name: f"{url}#{name}" for name in names}
    assert len(places) > 300
    found = {name: found.sections[0] for name, found in ask(list(places)).items()}
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
