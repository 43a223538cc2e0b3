"""Old names and the errors they give lead to their rows, and the rows can be filtered."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Found
from tests.browser.reader import Visit

FUNCTIONS, ARRAYS, DEVICES = (f"lookup/then-and-now-{part}/" for part in ("functions", "arrays", "devices"))


@pytest.mark.parametrize(
    ("pasted", "row"),
    [
        ("jax.tree_map", FUNCTIONS + "#old-jax.tree_map"),
        ("jax.ops.index_update", FUNCTIONS + "#old-jax.ops.index_update"),
        ("jnp.trapz", ARRAYS + "#old-jax.numpy.trapz"),
        ("lax.tie_in", FUNCTIONS + "#old-jax.lax.tie_in"),
        ("jax.experimental.maps.xmap", DEVICES + "#old-jax.experimental.maps.xmap"),
        ("module 'jax' has no attribute 'tree_map'", FUNCTIONS + "#old-jax.tree_map"),
        ("AttributeError: module 'jax' has no attribute 'tree_multimap'", FUNCTIONS + "#old-jax.tree_multimap"),
        ("AttributeError: module 'jax.numpy' has no attribute 'in1d'", ARRAYS + "#old-jax.numpy.in1d"),
        ("AttributeError: module 'jax.random' has no attribute 'KeyArray'", ARRAYS + "#old-jax.random.KeyArray"),
        ("ImportError: cannot import name 'linear_util' from 'jax'", DEVICES + "#old-jax.linear_util"),
        ("ModuleNotFoundError: No module named 'jax.abstract_arrays'", DEVICES + "#old-jax.abstract_arrays"),
        ("TypeError: clip() got an unexpected keyword argument 'a_max'", ARRAYS + "#old-jnp.clip-a_min-a_max"),
        ("AttributeError: 'jaxlib._jax.ArrayImpl' object has no attribute 'to_py'", ARRAYS + "#old-arr.to_py"),
    ],
)
def test_an_old_name_or_its_error_finds_its_row(pasted: str, row: str, ask: Callable[..., dict[str, Found]]) -> None:
    assert ask([pasted])[pasted].sections[0] == row


def test_a_link_to_a_row_opens_it(visit: Callable[..., Visit]) -> None:
    page = visit(f"{FUNCTIONS}#old-jax.tree_map").page
    row = page.locator(".live-then", has=page.locator("[id='old-jax.tree_map']"))
    expect(row).to_be_in_viewport()
    expect(row.locator("details")).to_have_attribute("open", "")
    expect(row).to_contain_text("jax.tree_map was removed in JAX v0.6.0: use jax.tree.map")


def test_rows_are_filtered_by_words_and_release(visit: Callable[..., Visit]) -> None:
    page = visit(FUNCTIONS).page
    rows, count = page.locator(".live-then:visible"), page.locator("[data-live-filter] output")
    total = page.locator(".live-then").count()
    assert total > 40
    expect(count).to_have_text(f"{total} of {total}")

    page.get_by_label("Name or message").fill("no attribute 'index_")
    expect(rows).to_have_count(2)
    expect(page.get_by_role("heading", name="Trees", exact=True)).to_be_hidden()
    expect(page.get_by_role("heading", name="Where next")).to_be_visible()

    page.get_by_label("Name or message").fill("")
    page.get_by_label("Ran on, and fails now").select_option(label="jax 0.10.2")
    expect(page.locator("[id='old-jax.cloud_tpu_init']")).to_be_visible()
    expect(page.locator("[id='old-jax.tree_map']")).to_be_hidden()
    page.get_by_label("Ran on, and fails now").select_option(label="jax 0.4.13")
    expect(page.locator("[id='old-jax.tree_map']")).to_be_visible()
    expect(page.locator("[id='old-jax.tree_multimap']")).to_be_hidden()
