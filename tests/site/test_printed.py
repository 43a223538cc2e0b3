"""No page has a number in its prose that one of its blocks prints."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from livepages.source import find_project
from livepages.source.parser import parse
from tests.site.printed import all_printed, printed

PAGE = """\
# A title with 4096

We add up 300 numbers.

```python
print(sum(range(300)), "and more")
```

{prose}

## A section {{ #with-4096 }}

```python source="none"
assert 44850 == 44_850
```

{below}
"""
OUTPUT = "44850 1.5 shape [0.6 0.8]\n7 4096 0.12 2026 64\n300\n"


def found(prose: str, below: str = "") -> list[tuple[int, str]]:
    page = parse(PAGE.format(prose=prose, below=below), Path("docs/page.md"), find_project(Path(__file__)))
    outcome = SimpleNamespace(entry=SimpleNamespace(text=OUTPUT))
    records = SimpleNamespace(seen=lambda _: lambda _: [outcome])
    return [(one.line, one.number) for one in printed(page, records)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prose", "number"),
    [
        ("The sum is 44850.", "44850"),
        ("The sum is 44,850, as it should.", "44,850"),
        ("| sum |\n|---|\n| 44850 |", "44850"),
        ("It is larger than 1.5 by far.", "1.5"),
        ("The first row is `[0.6 0.8]`.", "0.6"),
        ("**At 4096**, it stops.", "4096"),
    ],
)
def test_a_number_that_a_block_prints_is_found(prose: str, number: str) -> None:
    line = 9 + prose.count("\n")
    assert found(prose)[0] == (line, number)
    assert found("", prose)[0] == (line + 8, number)


@pytest.mark.parametrize(
    "prose",
    [
        "The sum is `{python} sum(range(300))`.",
        "The last of the 300 numbers is 299.",
        "Only 7 are left, of 448 and of 448501.",
        "In jax 0.12, since 0.12, on 21 November 2026, with 64 bits and float64.",
        "See [the page](page.md#4096), `x[4096]`, `4096` and `sum(range(300))`.",
        "$x = 4096$\n\n$$\n4096\n$$\n\n<!-- 4096 -->\n\n```text\n4096\n```",
    ],
)
def test_other_numbers_are_left_alone(prose: str) -> None:
    assert not found(prose)


def test_an_input_is_one_in_its_own_section_only() -> None:
    assert found("", "Of these 300, none is left.") == [(17, "300")]


def test_no_page_says_what_it_prints() -> None:
    assert not [*map(str, all_printed())], "write the number as a value: `{python} ...`, or the sentence without it"
