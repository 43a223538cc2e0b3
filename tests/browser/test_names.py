"""Every name in the index is found by typing it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.reader import Visit


def test_a_name_typed_in_full_is_the_first_result(
    ask: Callable[..., dict[str, Any]], visit: Callable[..., Visit]
) -> None:
    names = visit("find/names/").page.locator("h3[id]").evaluate_all("all => all.map(heading => heading.id)")
    assert len(names) > 300
    assert {name: first for name, first in ask(names).items() if first != f"find/names/#{name}"} == {}


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("jnp.where", "jax.numpy.where"),
        ("lax.scan", "jax.lax.scan"),
        ("np.asarray", "numpy.asarray"),
        (" jax.jit ", "jax.jit"),
    ],
)
def test_a_name_as_code_has_it_is_the_first_result(typed: str, name: str, ask: Callable[..., dict[str, Any]]) -> None:
    assert ask([typed])[typed] == f"find/names/#{name}"
