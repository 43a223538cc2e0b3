"""The counter behind the page on recompilation: its marks, its tables and links, and the reasons it takes from the log."""

import pytest
from retraces import WAYS, Report, count, links, reason, table

pytestmark = pytest.mark.usefixtures("compiled_anew")
BY_NAME = {way.name: way for ways in WAYS.values() for way in ways}


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("same_function", "●···"),
        ("new_partial", "●●●●"),
        ("committed", "●◐··"),
        ("short_batch", "●··●"),
        ("ordered_dict", "●●··"),
        ("static_tuples", "●···"),
        ("under_prng", "●···"),
    ],
)
def test_marks(name: str, marks: str) -> None:
    assert count(BY_NAME[name]).marks == marks


def test_a_report_does_not_depend_on_what_ran_before() -> None:
    first = count(BY_NAME["int_carry"])
    count(BY_NAME["under_x64"])
    assert count(BY_NAME["int_carry"]) == first
    assert first.reason == "different input types: * at a, now f32[] and before i32[]"


def test_a_cheap_way_has_no_reason() -> None:
    assert count(BY_NAME["other_values"]).reason == ""


def test_code_is_the_body_that_runs() -> None:
    assert BY_NAME["new_lambda"].code == "for _ in calls:\n    jax.jit(lambda a: add(a, 1.0))(x)"


def test_every_way_has_its_own_anchor_and_row() -> None:
    anchors = [way.anchor for way in BY_NAME.values()]
    assert len(set(anchors)) == len(anchors) == sum(map(len, WAYS.values()))
    shown = table([Report(way, "●●··", "a < b") for way in WAYS["static"]])
    assert all(f'<tr id="{way.anchor}">' in shown for way in WAYS["static"])
    assert "a &lt; b" in shown and "2 of 4 calls traced" in shown


def test_links_group_the_ways_by_what_they_cost() -> None:
    ways = WAYS["static"]
    marks = ["●●●●", "●···", "●◐··", "●··●"]
    shown = links([Report(way, mark, "") for way, mark in zip(ways, marks)])
    every, some, once = shown.split("<li>")[1:]
    assert "(1)" in every and f'href="#{ways[0].anchor}"' in every
    assert "(2)" in some and all(f'href="#{way.anchor}"' in some for way in ways[2:4])
    assert "(1)" in once and f'href="#{ways[1].anchor}"' in once


def test_reason_leaves_out_places_and_addresses() -> None:
    message = (
        "TRACING CACHE MISS at /tmp/a.py:3:1 (<module>):\n  for f defined at /tmp/a.py:1\n"
        "  all previously seen cache keys differ. For the closest previous key:\n  different input pytree:\n"
        "  * at x, now <Plain object at 0x7f5ac6> id=12 and before None\n  https://docs.jax.dev/en/latest"
    )
    assert reason(["Compiling f", message]) == "different input pytree: * at x, now <Plain object> and before None"
    assert reason([]) == ""
