"""The list of what the pages recommend, and the count of what has no attack."""

from tests.site.recommended.listed import REASONS, attacked, left, no_number, recommendations

WITHOUT = 0  # may only fall


def test_an_attack_is_on_something_that_is_recommended() -> None:
    assert attacked() <= set(recommendations())


def test_what_gives_no_number_is_recommended_says_why_and_is_not_attacked() -> None:
    assert list(no_number()) == [name for name in recommendations() if name in no_number()], "in the order of the list"
    assert set(no_number().values()) <= set(REASONS)
    assert not attacked() & set(no_number())


def test_no_recommendation_is_added_without_an_attack() -> None:
    assert len(left()) <= WITHOUT, f"attack the new one, or take a line off: {left()[-20:]}"
    assert len(left()) == WITHOUT, f"{len(left())} are left: lower WITHOUT to that, so that it stays so"


def test_each_kind_of_recommendation_is_found() -> None:
    found = recommendations()
    for name in (
        "answers/numpy.md#ufunc-methods",
        "lookup/errors.md#NonConcreteBooleanIndexError",
        "practice/basics.md#delay",
        "speed/shapes.md: only some of the elements",
        "rosetta: Softmax",
        "cheat sheet: x[10]",
        "then and now: jax.numpy.msort",
    ):
        assert name in found
    assert not [name for name in found if name.startswith("speed/where-did-it-go.md: ")]  # its tables only describe
    assert "rosetta: Read out of bounds" not in found  # such a row warns
