"""Old names and the errors they give lead to their rows, and the rows can be filtered."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.reader import Visit
from tests.browser.test_names import ask  # noqa: F401  (a fixture)

PAGE = "find/then-and-now/"


@pytest.mark.parametrize(
    ("pasted", "row"),
    [
        ("jax.tree_map", "jax.tree_map"),
        ("jax.ops.index_update", "jax.ops.index_update"),
        ("jnp.trapz", "jax.numpy.trapz"),
        ("lax.tie_in", "jax.lax.tie_in"),
        ("jax.experimental.maps.xmap", "jax.experimental.maps.xmap"),
        ("module 'jax' has no attribute 'tree_map'", "jax.tree_map"),
        ("AttributeError: module 'jax' has no attribute 'tree_multimap'", "jax.tree_multimap"),
        ("AttributeError: module 'jax.numpy' has no attribute 'in1d'", "jax.numpy.in1d"),
        ("AttributeError: module 'jax.random' has no attribute 'KeyArray'", "jax.random.KeyArray"),
        ("ImportError: cannot import name 'linear_util' from 'jax'", "jax.linear_util"),
        ("ImportError: cannot import name 'host_callback' from 'jax.experimental'", "jax.experimental.host_callback"),
        ("ModuleNotFoundError: No module named 'jax.abstract_arrays'", "jax.abstract_arrays"),
        ("TypeError: clip() got an unexpected keyword argument 'a_max'", "jnp.clip-a_min-a_max"),
        ("AttributeError: 'jaxlib._jax.ArrayImpl' object has no attribute 'to_py'", "arr.to_py"),
    ],
)
def test_an_old_name_or_its_error_finds_its_row(pasted: str, row: str, ask: Callable[..., dict[str, Any]]) -> None:  # noqa: F811
    assert ask([pasted])[pasted] == f"{PAGE}#old-{row}"


def test_a_link_to_a_row_opens_it(visit: Callable[..., Visit]) -> None:
    page = visit(f"{PAGE}#old-jax.tree_map").page
    row = page.locator(".live-then", has=page.locator("[id='old-jax.tree_map']"))
    expect(row).to_be_in_viewport()
    expect(row.locator("details")).to_have_attribute("open", "")
    expect(row).to_contain_text("jax.tree_map was removed in JAX v0.6.0: use jax.tree.map")


def test_rows_are_filtered_by_words_module_and_release(visit: Callable[..., Visit]) -> None:
    page = visit(PAGE).page
    rows, count = page.locator(".live-then:visible"), page.locator(".live-filter output")
    total = page.locator(".live-then").count()
    assert total > 130
    expect(count).to_have_text(f"{total} of {total} rows")

    page.get_by_label("Name or message").fill("no attribute 'index_")
    expect(rows).to_have_count(2)
    expect(page.get_by_role("heading", name="jax.numpy", exact=True)).to_be_hidden()
    expect(page.get_by_role("heading", name="Still runs")).to_be_visible()

    page.get_by_label("Name or message").fill("")
    page.get_by_label("Ran, and fails now, on").select_option("0.10.2")
    expect(rows.filter(has_text="jax.core.concrete_or_error")).to_have_count(1)
    expect(rows.filter(has=page.locator("[id='old-jax.tree_map']"))).to_have_count(0)

    page.get_by_label("About").select_option("Random numbers")
    page.get_by_label("Ran, and fails now, on").select_option("0.4.13")
    expect(rows.first).to_contain_text("jax.prng")
    assert 0 < rows.count() < 10
