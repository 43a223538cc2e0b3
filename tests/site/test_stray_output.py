"""No block whose code a page hides prints, unless the page introduces its output.

Such lines come from checks, imports and figures: a reader looks in vain for the code above them. A hidden block may print
what the page made it for:

- Markdown or HTML, such as a table that a program writes;
- the values of a control (`vary`);
- what the sentence right above the block introduces: it ends with a colon.

A warning is never meant. What hosts recorded counts as printed, so no page runs.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from livepages.course import read_course
from livepages.records import Records
from livepages.source import Block, Page, find_project, read_page
from livepages.source.parser import parse

PROJECT = find_project(Path(__file__))


def stray(page: Page, records: Records) -> Iterator[str]:
    """The hidden blocks of a page that print what nothing introduces, as hosts recorded it: place and first line."""
    seen = records.seen(page)
    for block in page.program:
        if block.options.source != "none" or block.options.html or block.options.result == "markdown":
            continue
        meant = bool(block.options.vary) or is_introduced(page, block)
        for outcome in seen(block):
            entry = outcome.entry
            if printed := entry.stderr or ("" if meant else entry.stdout or entry.shown):
                yield f"{block.page}:{block.line}: {printed.splitlines()[0]}"
                break


def is_introduced(page: Page, block: Block) -> bool:
    """Return whether the line of text right above a block ends with a colon."""
    above = [line.strip() for line in page.text[: block.fence.start] if line.strip()]
    return bool(above) and above[-1].endswith(":")


def found(above: str, options: str = 'source="none"', stdout: str = "", stderr: str = "", shown: str = "") -> list[str]:
    text = f"# A title\n\n```python\nx = 1\n```\n\n{above}\n\n```python {options}\nprint(x)\n```\n"
    page = parse(text, PROJECT.docs / "page.md", PROJECT)
    outcome = SimpleNamespace(entry=SimpleNamespace(stdout=stdout, stderr=stderr, shown=shown))
    records = SimpleNamespace(seen=lambda _: lambda block: [outcome] if "print" in block.code else [])
    return [*stray(page, records)]  # type: ignore[arg-type]


@pytest.mark.parametrize("above", ["", "A sentence ends.", "```python\ny = 1\n```", "| a |\n|---|\n| 1 |"])
@pytest.mark.parametrize("stream", ["stdout", "stderr", "shown"])
def test_output_without_code_is_found(above: str, stream: str) -> None:
    line = 9 + above.count("\n")
    assert found(above, **{stream: "Invalid\nmore"}) == [f"docs/page.md:{line}: Invalid"]


def test_a_warning_is_found_where_output_is_meant() -> None:
    assert found("It prints:", stderr="UserWarning: no") and found("", 'source="none" vary="x=1, 2"', stderr="no")


@pytest.mark.parametrize(
    ("above", "options"),
    [
        ("JAX said:", 'source="none"'),
        ("", 'source="none" vary="x=1, 2"'),
        ("", 'source="none" html="on"'),
        ("", 'source="none" result="markdown"'),
        ("", ""),
        ("", 'source="below"'),
    ],
)
def test_output_that_is_meant_is_left_alone(above: str, options: str) -> None:
    assert not found(above, options, stdout="1")


def test_a_hidden_block_that_prints_nothing_is_left_alone() -> None:
    assert not found("")


def test_no_page_prints_without_code() -> None:
    records = Records(PROJECT)
    pages = (read_page(path, PROJECT) for path in read_course(PROJECT).pages)
    assert not [place for page in pages for place in stray(page, records)], "silence it, or say above it what it prints"
