"""The programs of the pages, importable as the pages import them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "snippets"))


@pytest.fixture(autouse=True)
def key_reuse_is_an_error() -> Iterator[None]:
    """As on the pages, no key is used twice."""
    with jax.debug_key_reuse(True):
        yield
