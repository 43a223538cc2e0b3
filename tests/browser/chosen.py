"""Inputs of tests that `make test` takes, and those that only `make test-all` does."""

import pytest

# Of many inputs, every tenth; all of them where there is time.
NTH = pytest.mark.parametrize(
    "nth", [pytest.param(10, marks=pytest.mark.brief), pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"]
)


def rarely(*values: object) -> object:
    """Arguments of a test that only `make test-all` takes: others show the same, unless very much breaks."""
    return pytest.param(*values, marks=pytest.mark.slow)
