"""Old names and the errors they give lead to their rows, and the rows can be filtered."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Found
from tests.browser.reader import Visit

PAGE = "lookup/then-and-now/"


@pytest.mark.parametrize(
    ("pasted", "row"),
    [
        ("jax.tree_map", PAGE + "#old-jax.tree_map"),
        ("jax.ops.index_update", PAGE + "#old-jax.ops.index_update"),
        ("jnp.trapz", PAGE + "#old-jax.numpy.trapz"),
        ("lax.tie_in", PAGE + "#old-jax.lax.tie_in"),
        ("jax.experimental.maps.xmap", PAGE + "#old-jax.experimental.maps.xmap"),
        ("module 'jax' has no attribute 'tree_map'", PAGE + "#old-jax.tree_map"),
        ("AttributeError: module 'jax' has no attribute 'tree_multimap'", PAGE + "#old-jax.tree_multimap"),
        ("AttributeError: module 'jax.numpy' has no attribute 'in1d'", PAGE + "#old-jax.numpy.in1d"),
        ("AttributeError: module 'jax.random' has no attribute 'KeyArray'", PAGE + "#old-jax.random.KeyArray"),
        ("ImportError: cannot import name 'linear_util' from 'jax'", PAGE + "#old-jax.linear_util"),
        ("ModuleNotFoundError: No module named 'jax.abstract_arrays'", PAGE + "#old-jax.abstract_arrays"),
        ("TypeError: clip() got an unexpected keyword argument 'a_max'", PAGE + "#old-jnp.clip-a_min-a_max"),
        ("AttributeError: 'jaxlib._jax.ArrayImpl' object has no attribute 'to_py'", PAGE + "#old-arr.to_py"),
    ],
)
def test_an_old_name_or_its_error_finds_its_row(pasted: str, row: str, ask: Callable[..., dict[str, Found]]) -> None:
    assert ask([pasted])[pasted].sections[0] == row


def test_a_link_to_a_row_opens_it(visit: Callable[..., Visit]) -> None:
    page = visit(f"{PAGE}#old-jax.tree_map").page
    row = page.locator(".live-then", has=page.locator("[id='old-jax.tree_map']"))
    expect(row).to_be_in_viewport()
    expect(row.locator("details")).to_have_attribute("open", "")
    expect(row).to_contain_text("jax.tree_map(lambda a: a * 2, [1, 2])")


def test_rows_are_filtered_by_words_and_release(visit: Callable[..., Visit]) -> None:
    page = visit(PAGE).page
    rows, count = page.locator(".live-then:visible"), page.locator("[data-live-filter] output")
    total = page.locator(".live-then").count()
    assert total > 140
    expect(count).to_have_text(f"{total} of {total}")

    page.get_by_label("Name or message").fill("no attribute 'index_")
    expect(rows).to_have_count(2)
    expect(page.get_by_role("heading", name="Trees", exact=True)).to_be_hidden()
    expect(page.get_by_role("heading", name="Where next")).to_be_visible()

    page.get_by_label("Name or message").fill("")
    expect(page).to_have_url(re.compile(f"/{PAGE}$"))
    page.get_by_label("Ran on, and fails now").select_option(label="jax 0.10.2")
    expect(page.locator("[id='old-jax.cloud_tpu_init']")).to_be_visible()
    expect(page.locator("[id='old-jax.tree_map']")).to_be_hidden()
    page.get_by_label("Ran on, and fails now").select_option(label="jax 0.4.13")
    expect(page.locator("[id='old-jax.tree_map']")).to_be_visible()
    expect(page.locator("[id='old-jax.tree_multimap']")).to_be_hidden()


def test_the_address_keeps_the_filter(visit: Callable[..., Visit]) -> None:
    seen = visit(PAGE)
    seen.page.get_by_label("Name or message").fill("tree_map")
    seen.page.get_by_label("Ran on, and fails now").select_option(label="jax 0.5.3")
    shown = seen.page.locator(".live-then:visible h3 > code")
    expect(shown).to_have_text(["jax.tree_map"])
    address = seen.page.url
    assert address.endswith(f"/{PAGE}?filter=tree_map&from=0.5.3")

    seen.page.goto(address)
    expect(shown).to_have_text(["jax.tree_map"])
    expect(seen.page.get_by_label("Name or message")).to_have_value("tree_map")
    expect(seen.page.get_by_label("Ran on, and fails now")).to_have_value("0.5.3")


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (
            "cannot import name 'host_callback' from 'jax.experimental' (/home/me/jax/experimental/__init__.py). Did you mean: 'io_callback'?",
            "jax.experimental.host_callback",
        ),
        ("jnp.product", "jax.numpy.product"),
        ("jtu.build_tree", "jax.tree_util.build_tree"),
    ],
)
def test_what_a_file_writes_or_prints_is_filtered_as_the_row_has_it(
    typed: str, name: str, visit: Callable[..., Visit]
) -> None:
    page = visit(PAGE).page
    page.get_by_label("Name or message").fill(typed)
    expect(page.locator(".live-then:visible h3 > code")).to_have_text([name])


@pytest.mark.parametrize(
    ("mine", "chosen", "label"),
    [
        ("0.4.14", "0.4.13", "jax 0.4.13, the nearest to your 0.4.14"),
        ("0.4.13", "0.4.13", "jax 0.4.13"),
        ("0.12.0.1", "", "any release"),
    ],
)
def test_the_release_of_the_reader_is_chosen(mine: str, chosen: str, label: str, visit: Callable[..., Visit]) -> None:
    page = visit(f"{PAGE}?jax={mine}").page
    field = page.get_by_label("Ran on, and fails now")
    expect(field).to_have_value(chosen)
    expect(field.locator("option:checked")).to_have_text(label)


def test_a_row_that_the_address_leads_to_is_shown_whatever_the_filter(visit: Callable[..., Visit]) -> None:
    page = visit(f"{PAGE}?filter=shuffle&from=0.0#old-jax.tree_map").page
    shown = page.locator(".live-then:visible h3 > code")
    expect(shown).to_have_text(["jax.tree_map", "jax.random.shuffle"])
    page.get_by_role("heading", name="jax.random.shuffle").get_by_role("link", name="Link to this row").click()
    expect(shown).to_have_text(["jax.random.shuffle"])
    assert page.url.endswith(f"/{PAGE}?filter=shuffle&from=0.0#old-jax.random.shuffle")
