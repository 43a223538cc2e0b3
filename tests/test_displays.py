"""The display of a block's last expression, by MIME type; a kind of output may come from another distribution."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest

from livepages.execution import Run
from livepages.exporters.cells import pieces
from livepages.exporters.markdown import plain
from livepages.exporters.publisher import programs
from livepages.records import Records, check_page, record
from livepages.rendering import page_lines
from livepages.rendering.mime import renderers
from livepages.source import Page
from tests.conftest import Site
from tests.test_markdown import Show

TABLE = """\
class Table:
    def __init__(self, cell):
        self.cell = cell
    def _repr_html_(self):
        return f"<table><tr><td>{self.cell}</td></tr></table>"
    def __repr__(self):
        return f"Table({self.cell})"
"""
COUNTER = """\
class Counter:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/x-counter+json": {"start": 3}, "text/html": "3"}, {"metadata": 1}
"""


def run(site: Site, *codes: str) -> tuple[Page, Run]:
    page = site.page(*codes)
    return page, site.engine.run([page])[page.path]


def displays(site: Site, *codes: str) -> tuple[Mapping[str, str], ...]:
    """Return the displays of the last of some blocks."""
    _, ran = run(site, *codes)
    assert not ran.failures
    return ran.outcomes[-1].displays


def shown(site: Site, page: Page, ran: Run) -> str:
    return "\n".join(page_lines(page, ran, site.project.runtime, lambda block: [], str))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("Table(1)", {"text/plain": "Table(1)", "text/html": "<table><tr><td>1</td></tr></table>"}),
        ("x = Table(1)\nx", {"text/plain": "Table(1)", "text/html": "<table><tr><td>1</td></tr></table>"}),
        ("Counter()", {"text/plain": "<__main__.Counter object at 0x…>", "application/x-counter+json": '{"start": 3}', "text/html": "3"}),
    ],
)  # fmt: skip
def test_a_last_expression_shows_what_its_value_shows_of_itself(site: Site, code: str, found: dict[str, str]) -> None:
    assert displays(site, TABLE + COUNTER, code) == (found,)


@pytest.mark.parametrize("code", ["x = Table(1)", "Table(1)\nx = 1", "Table", "[Table(1)]", "'text'", "1 + 1", "print(1)", "for x in ():\n    Table(1)"])  # fmt: skip
def test_nothing_else_is_shown(site: Site, code: str) -> None:
    assert displays(site, TABLE, code) == ()


def test_errors_in_a_last_expression_have_their_line(site: Site) -> None:
    page, ran = run(site, "from __future__ import annotations\nx = 1\n{}['k']")
    assert [(failure.line, failure.message) for failure in ran.failures] == [(6, "raised KeyError: 'k'")]
    page, ran = run(site, "x = 1\nclass Odd:\n    def _repr_html_(self):\n        raise OSError('no')\nOdd()")
    assert [failure.message for failure in ran.failures] == ["raised OSError: no"]
    page, ran = run(site, "x = 1\n(yield)")
    assert ran.failures[0].message.startswith("raised SyntaxError: 'yield' outside function")


def test_every_form_of_a_page_shows_it(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    page, ran = run(site, TABLE + "Table('cell')")
    assert '<div class="live-html"><table><tr><td>cell</td></tr></table></div>' in shown(site, page, ran)
    markdown = plain(page, ran, site.project.runtime, pieces(page, ran, str))
    assert "cell" in markdown.partition("```\n\n")[2] and "<table>" not in markdown.partition("```\n\n")[2]
    book = nbformat.reads(programs(page, ran, site.project, "", str)["notebook"], as_version=4)
    nbformat.validate(book)
    [output] = book.cells[-1].outputs
    assert (output.output_type, output.data["text/plain"]) == ("execute_result", "Table(cell)")


def test_it_is_recorded_and_compared_as_text(site: Site) -> None:
    page, ran = run(site, TABLE + "import os\nTable(len(os.environ.get('CELL', '')))")
    record(site.project, "cpu", [(page, ran)])
    assert "shown: Table(0)" in (site.root / "records/cpu/page.yml").read_text()
    changed = tuple({**bundle, "text/plain": "Table(1)"} for bundle in ran.outcomes[0].displays)
    other = Run(tuple(with_displays(result, changed) for result in ran.results), ran.device, ran.computer)
    assert not check_page(page, ran, Records(site.project))
    [failure] = check_page(page, other, Records(site.project))
    assert "the output differs from the record" in failure.message


def with_displays(result: Any, changed: tuple[Mapping[str, str], ...]) -> Any:
    from dataclasses import replace

    return replace(result, outcome=replace(result.outcome, displays=changed))


RENDERER = """
import json

def counter(data):
    start = json.loads(data.content)["start"]
    return f'<button onclick="this.textContent++">{start}</button>'

def fails(data):
    raise KeyError("start")
"""


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution that is not the engine's, with a renderer."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "counting.py").write_text(RENDERER)
    about = folder / "counting-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[livepages.mime_renderers]\napplication/x-counter+json = counting:counter\nimage/x-bad = counting:fails\n"
    )
    monkeypatch.syspath_prepend(folder)
    renderers.cache_clear()
    yield
    renderers.cache_clear()


def test_a_renderer_from_another_distribution_shows_an_interactive_view(site: Site, outside: Path) -> None:
    page, ran = run(site, COUNTER + "Counter()")
    assert '<button onclick="this.textContent++">3</button>' in shown(site, page, ran)


def test_a_renderer_that_fails_is_the_failure_of_its_block(site: Site, outside: Path) -> None:
    show = Show(site)
    bad = "class Bad:\n    def _repr_mimebundle_(self):\n        return {'image/x-bad': ''}\nBad()"
    html = show(f"# T\n\n```python\n{bad}\n```\n", strict=False)
    [failure] = show.failures
    assert str(failure) == "docs/page.md:3: block of line 3: the renderer of image/x-bad raised KeyError: 'start'"
    assert "image/x-bad raised KeyError" in html


def test_without_a_renderer_the_next_best_is_shown(site: Site) -> None:
    page, ran = run(site, COUNTER + "Counter()")
    assert '<div class="live-html">3</div>' in shown(site, page, ran)
    page, ran = run(site, "class Other:\n    def _repr_json_(self):\n        return {}\nOther()")
    assert "<code>&lt;__main__.Other object at 0x…&gt;" in shown(site, page, ran)
