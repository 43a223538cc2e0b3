"""Inline expressions: how they are found, what they see, and how they are shown, tested, recorded and exported."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown import markdown

from livepages.execution import Run, pair_results
from livepages.exporters.publisher import programs
from livepages.records import Records, check_page, record
from livepages.rendering import anchors, page_lines
from livepages.source import Page, PageError, read_page
from livepages.source.fences import find_fences
from livepages.source.inline import find_inline
from livepages.worker import Outcome
from tests.conftest import Site

BLOCK = "# Page\n\n```python\nx = 3\nname = '<b>|*_`'\n```\n\n"


def made(site: Site, prose: str, before: str = BLOCK) -> tuple[Page, Run]:
    """Return a page with prose below a block, and its run."""
    page = site.read(site.write("docs/page.md", before + prose))
    return page, site.engine.run([page])[page.path]


def printed(run: Run) -> list[str]:
    """Return the output of each inline expression."""
    return [result.outcome.stdout for result in run.inline_expressions]


def shown(site: Site, page: Page, run: Run) -> str:
    """Return the lines that are converted, with HTML where it goes."""
    seen = Records(site.project).seen(page)
    return "\n".join(page_lines(page, run, site.project.runtime, seen, lambda html: html))


def found(text: str) -> list[str]:
    """Return the expressions in a text."""
    lines = tuple(text.split("\n"))
    origin = [*range(1, len(lines) + 1)]
    faults: list[Exception] = []
    codes = [one.code for one in find_inline(lines, origin, find_fences(lines, origin), faults)]  # type: ignore[arg-type]
    assert not faults
    return codes


def test_an_inline_expression_has_its_value_after_the_block_above(site: Site) -> None:
    text = (
        'x is `{python} x`, and half of it `{python} f"{x / 2:.2f}"`.\n\n```python\nx = 4\n```\n\nNow `{python} x`.\n'
    )
    page, run = made(site, text)
    assert not run.failures
    assert printed(run) == ["3\n", "1.50\n", "4\n"]
    assert [block.line for block in page.inline_expressions] == [8, 8, 14]
    html = shown(site, page, run)
    assert 'x is <span class="live-inline">3</span>, and half of it <span class="live-inline">1.50</span>.' in html
    assert 'Now <span class="live-inline">4</span>.' in html
    assert "{python}" not in html


def test_an_inline_expression_is_escaped_and_in_one_line(site: Site) -> None:
    page, run = made(site, 'It is `{python} name`, `{python} "a\\n  b"`.\n')
    assert '<span class="live-inline">&lt;b&gt;|*_`</span>, <span class="live-inline">a b</span>.' in shown(
        site, page, run
    )


@pytest.mark.parametrize(
    "prose",
    [
        "- item\n\n    with `{python} x` in it",
        "| a | b |\n|---|---|\n| 1 | `{python} x` |",
        "[link `{python} x`](page.md), **`{python} x`**",
        "!!! note\n    `{python} x`",
        "## Section `{python} x` { #own }",
        "text\n    goes on `{python} x`",
        "> quoted `{python} x`",
        "<code>`{python} x`</code>",
        "<!-- comment --> `{python} x`",
        "an unmatched ` here\n\nand `{python} x`",
        "1. one ` tick\n2. `{python} x`",
        "\\`{python} y\\` and `{python} x`",
    ],
)
def test_prose_has_inline_expressions(prose: str) -> None:
    assert set(found(f"text\n\n{prose}\n")) == {"x"}


@pytest.mark.parametrize(
    "text",
    [
        "`` `{python} x` ``",
        "```python\n# `{python} x`\n```",
        "```\n`{python} x`\n```",
        "text\n\n    `{python} x`",
        "# Page\n    `{python} x`",
        "- item\n\n        `{python} x`",
        ">     `{python} x`",
        "<!-- `{python} x` -->",
        "<!--\n\n`{python} x`\n\n-->",
        "<pre>\n\n`{python} x`\n</pre>",
        "\\`{python} x`",
        "`{python}x`",
        "`a {python} x`",
        "{python} x",
    ],
)
def test_code_and_comments_have_none(text: str) -> None:
    assert found(f"{text}\n") == []


@pytest.mark.parametrize(
    ("prose", "line", "message"),
    [
        ("`{python} x +`", 8, "is not an expression: invalid syntax"),
        ("`{python} x = 1`", 8, "is not an expression"),
        ("`{python} 1); print(2`", 8, "is not an expression"),
        ("text `{python} x\nor 1`", 8, "write an inline expression on one line"),
        ("# `{python} x`", 8, "the title of a page holds no inline expression"),
        ("## Now `{python} x`", 8, "a heading with an inline expression needs an id"),
    ],
)
def test_what_is_no_inline_expression_is_a_fault(site: Site, prose: str, line: int, message: str) -> None:
    with pytest.raises(PageError, match=re.escape(message)) as caught:
        read_page(site.write("docs/page.md", f"{BLOCK}{prose}\n"), site.project)
    assert caught.value.line == line


def test_an_inline_expression_needs_a_block_above_it(site: Site) -> None:
    with pytest.raises(PageError, match="there is no block above that runs"):
        read_page(site.write("docs/page.md", f"`{{python}} 1`\n\n{BLOCK}"), site.project)


def test_an_inline_expression_that_fails_stops_no_block_and_shows_why(site: Site) -> None:
    page, run = made(site, "It is `{python} 1 / 0`, `{python} y`.\n\n```python\nprint(x)\n```\n")
    assert [str(failure).partition("\n")[0] for failure in run.failures] == [
        "docs/page.md:8: `{python} 1 / 0`: raised ZeroDivisionError: division by zero",
        "docs/page.md:8: `{python} y`: raised NameError: name 'y' is not defined",
    ]
    assert run.outcomes[-1].stdout == "3\n"
    assert '<strong class="live-inline live-failed">`{python} 1 / 0`: raised ZeroDivisionError' in shown(
        site, page, run
    )


def test_no_inline_expression_runs_after_a_block_that_failed(site: Site) -> None:
    page, run = made(site, "It is `{python} x`.\n", BLOCK.replace("x = 3", "x = 3 / 0"))
    assert len(run.failures) == 1
    assert run.inline_expressions[0].outcome.skipped == "the block on line 3 failed"
    assert '<code class="live-inline" title="the block on line 3 failed">x</code>' in shown(site, page, run)


def test_an_inline_expression_of_a_block_that_does_not_run_here_is_as_recorded(site: Site) -> None:
    page, run = made(site, "It is `{python} x`.\n", BLOCK.replace("```python", '```python needs="tpu"'))
    assert not run.failures
    assert run.inline_expressions[0].outcome.skipped == "needs x from the block on line 3, which did not run"
    assert "title=" in shown(site, page, run)
    ran = Run(pair_results(page, [Outcome(), Outcome(streams=(("out", "7\n"),))]))
    record(site.project, "other", [(page, ran)])
    assert 'It is <span class="live-inline">7</span>.' in shown(site, page, run)


def test_an_inline_expression_sees_the_namespace_of_the_block_above(site: Site) -> None:
    fences = (
        '\n```python isolated="on"\nx = 5\n```\n\n`{python} x`\n\n```python session="s"\nx = 6\n```\n\n`{python} x`\n'
    )
    _, run = made(site, f"{fences}\n```python\nprint(x)\n```\n\n`{{python}} x`\n")
    assert not run.failures
    assert printed(run) == ["5\n", "6\n", "3\n"]


def test_an_inline_expression_sees_the_first_of_the_values_that_a_block_runs_with(site: Site) -> None:
    varied = '```python vary="a=1, 2"\nb = a + x\n```\n\n`{python} b`\n\n```python vary="c=1, 2"\nprint(c)\n```\n'
    _, run = made(site, varied)
    assert printed(run) == ["4\n"]
    assert [outcome.stdout for outcome in run.outcomes] == ["", "", "4\n", "1\n", "", "2\n"]


def test_later_blocks_keep_their_keys_and_lines(site: Site) -> None:
    text = "```python\nimport warnings\nwarnings.warn('here')\n```\n"
    (without, first), (page, second) = made(site, text), made(site, f"`{{python}} x`\n\n{text}")
    assert [block.key for block in without.blocks] == [block.key for block in page.blocks]
    assert first.outcomes[-1].streams == second.outcomes[-1].streams
    assert page.key != without.key
    assert page.script == without.script


def test_an_inline_expression_is_compared_with_the_options_of_its_block(site: Site) -> None:
    page, _ = made(site, "`{python} x`\n", BLOCK.replace("```python", '```python volatile="on" tolerance="0.1"'))
    [inline] = page.inline_expressions
    assert (inline.options.volatile, inline.options.tolerance) == (True, 0.1)


def test_an_inline_expression_is_recorded_and_compared(site: Site) -> None:
    page, run = made(site, "`{python} x`\n")
    record(site.project, "cpu", [(page, run)])
    assert not Records(site.project).outdated([page])["cpu"]
    changed = Run(pair_results(page, [run.outcomes[0], Outcome(streams=(("out", "4\n"),))]), run.device, run.computer)
    [failure] = check_page(page, changed, Records(site.project))
    assert str(failure).startswith("docs/page.md:8: `{python} x`: the output differs from the record")


def test_downloads_have_the_values_of_inline_expressions(site: Site) -> None:
    page, run = made(site, "A `{python} x` and `{python} name`.\n")
    forms = programs(page, run, site.project, "", str)
    cells = ["".join(cell["source"]) for cell in json.loads(forms["notebook"])["cells"]]
    assert cells[-1] == "A 3 and \\<b>\\|\\*\\_\\`."
    assert "# A 3 and" in forms["script"]
    assert "{python}" not in forms["script"] + forms["notebook"]


def test_a_run_up_to_a_block_has_the_inline_expressions_above_it(site: Site) -> None:
    page, _ = made(site, "`{python} x`\n\n```python\ny = 1\n```\n\n`{python} y`\n")
    run = site.engine.run([page], last={page.path: page.blocks[1].index})[page.path]
    assert [result.outcome.pending for result in run.program] == [False, False, False, True]


def test_a_site_may_have_none(site: Site) -> None:
    site.write("pyproject.toml", "[tool.livepages]\ninline_expressions = false\n")
    page = site.read(site.write("docs/page.md", f"{BLOCK}`{{python}} x`\n"))
    assert not page.inline_expressions


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["`{python} x`", "text", "", "    more", "<!--", "-->", "`", "``", "- item", "> quote", "# head"]
        ),
        max_size=12,
    ),
    st.sampled_from([("```text", "```"), ("~~~~python", "~~~~"), ("<!--", "-->")]),
)
def test_nothing_in_fences_and_comments_is_taken(inside: list[str], around: tuple[str, str]) -> None:
    opening, closing = around
    hidden = [line for line in inside if line != closing]
    text = "\n".join(["before", "", opening, *hidden, closing, "", "after `{python} y`", ""])
    assert found(text) == ["y"]


@pytest.mark.slow
@settings(deadline=None)
@given(st.data())
def test_inline_expressions_are_where_markdown_finds_code(data: st.DataObject) -> None:
    parts = [
        "text",
        "`code`",
        "`` two ``",
        "`{python} x`",
        "\\`",
        "**bold**",
        "\n\n",
        "\n\n- ",
        "\n\n    ",
        "<!-- c -->",
    ]
    text = " ".join(["text", *data.draw(st.lists(st.sampled_from(parts), max_size=12))])
    assert markdown(text).count("<code>{python} x</code>") == len(found(text))


def test_a_link_to_an_inline_expression_leads_to_its_section(site: Site) -> None:
    """Values that differ on another host are linked from the page of the status, as blocks are."""
    page, run = made(site, "## Below\n\nx is `{python} x`.\n")
    assert [anchors(page, run)[one.index] for one in page.inline_expressions] == ["below"]
