"""The size of what is shown and kept of a block, and the notes that say what is left out."""

import nbformat
import pytest

from livepages import rendering
from livepages.execution import Outcome, Raised, Run, pair_results
from livepages.execution.truncate import FIGURE, LINE, MESSAGE, OUTPUT, TRACEBACK, head, head_tail, truncated
from livepages.exporters.cells import pieces
from livepages.exporters.markdown import plain
from livepages.exporters.publisher import programs
from livepages.records import entry
from tests.conftest import Site
from tests.prepared import Commands

LONG = "\n".join(f"line {number}" for number in range(300_000))
FRAMES = "\n".join(f'  File "page.py", line {number}, in f' for number in range(3_000))
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="{"M0 0" * FIGURE}"/></svg>'
OUTCOMES = {
    "output": Outcome(streams=(("out", LONG), ("err", "the end"))),
    "line": Outcome(streams=(("out", "a" * 990_000),)),
    "message": Outcome(raised=Raised("ValueError", ("ValueError",), "m" * 3_000_000, "ValueError", 1)),
    "traceback": Outcome(raised=Raised("ValueError", ("ValueError",), "why", f"{FRAMES}\nValueError: why", 1)),
    "figure": Outcome(figures=(SVG, "<svg/>")),
}
HOLD_NONE = {"traceback": ("Markdown", "record"), "figure": ("Markdown", "record")}
OPTIONS = {"message": 'raises="ValueError"', "traceback": 'raises="ValueError"', "figure": 'alt="Points"'}


@pytest.mark.parametrize("name", OUTCOMES)
def test_page_notebook_markdown_and_record_stay_readable_and_say_what_is_left_out(site: Site, name: str) -> None:
    page = site.page(f"{OPTIONS.get(name, '')}\nprint()".lstrip("\n"))
    run = Run(pair_results(page, [OUTCOMES[name]]))
    assert not run.failures
    forms = {
        "page": "\n".join(rendering.page_lines(page, run, site.project.runtime, lambda block: [], str)),
        "notebook": programs(page, run, site.project, "", str)["notebook"],
        "Markdown": plain(page, run, site.project.runtime, pieces(page, run, str)),
        "record": entry(run.results[0]).text,
    }
    nbformat.validate(nbformat.reads(forms["notebook"], as_version=4))
    for form, text in forms.items():
        assert len(text) < 3 * OUTPUT
        assert "left out" in text or form in HOLD_NONE.get(name, ()), form


def test_what_is_short_enough_stays_as_it_is() -> None:
    raised = Raised("E", ("E",), "m" * LINE, "t\n" * 10, 1)
    outcome = Outcome(
        streams=(("out", "a\n" * 100), ("err", "b" * LINE), ("out", "c\n")), raised=raised, figures=("<svg/>",)
    )
    assert truncated(outcome) == outcome


def test_the_notes_count_what_is_left_out() -> None:
    assert head("abc\nd", 5) == "abc\nd"
    assert head("abc\ndef", 5) == "abc\nd\n[… 2 more characters are left out]"
    assert head("a" * (LINE + 1000), MESSAGE) == "a" * LINE + " [… 1,000 more characters are left out]"
    assert head_tail("abcdefghij", 4) == "ab\n[… 6 more characters are left out]\nij"
    assert head_tail("abcd", 4) == "abcd"
    cut = truncated(Outcome(streams=(("out", "a\n" * 10), ("err", "b\n" * OUTPUT), ("out", "c\n"))))
    assert [stream for stream, _ in cut.streams] == ["out", "err"]
    left = 20 + 2 * OUTPUT + 2 - OUTPUT
    assert cut.streams[1][1].endswith(f"\n[… {left:,} more characters are left out]")


def test_a_long_failure_is_cut_to_a_size_that_can_be_read(site: Site) -> None:
    page = site.page("print()")
    raised = Raised("E", ("E",), "m" * 3_000_000, f"{FRAMES}\nE: the end", 1)
    (failure,) = Run(pair_results(page, [Outcome(raised=raised)])).failures
    assert len(str(failure)) < MESSAGE + 2 * TRACEBACK and failure.detail.endswith("E: the end")


def test_html_in_one_long_line_is_shown_whole(site: Site) -> None:
    page = site.page('html="on"\nprint()')
    text = f"<div><code>{'a' * 2 * LINE}</code></div>"
    run = Run(pair_results(page, [Outcome(streams=(("out", text),))]))
    assert text in "\n".join(rendering.page_lines(page, run, site.project.runtime, lambda block: [], str))


def test_every_form_says_why_a_block_after_a_failed_one_did_not_run(site: Site) -> None:
    page = site.page("1 / 0", "print('after')")
    why = "the block on line 3 failed"
    run = Run(pair_results(page, [Outcome(process_error="failed"), Outcome(skipped=why, stopped_by=0)]))
    notebook = nbformat.reads(programs(page, run, site.project, "", str)["notebook"], as_version=4)
    assert f"Not run: {why}" in "\n".join(rendering.page_lines(page, run, site.project.runtime, lambda block: [], str))
    assert f"Not run: {why}" in plain(page, run, site.project.runtime, pieces(page, run, str))
    assert notebook.cells[-1].outputs[0].text == f"Not run: {why}\n"


@pytest.mark.parametrize("program", ["build", "run"])
def test_a_build_and_a_run_say_how_much_they_leave_out(site: Site, commands: Commands, program: str) -> None:
    site.write("pyproject.toml", "[tool.livepages]\n")
    site.write("mkdocs.yml", "site_name: T\nplugins: [livepages]\n")
    site.write("docs/index.md", "# T\n\n```python\nprint('a\\n' * 40_000)\n```\n")
    if program == "build":
        assert commands.run("mkdocs", "build", "--strict", folder=site.root).returncode == 0
        shown = (site.root / "site/index.html").read_text(encoding="utf-8")
        assert "\n[… 30,001 more characters are left out]" in shown and len(shown) < 2 * OUTPUT
    too_much = site.write("docs/index.md", "# T\n\n```python\nwhile True:\n    print('a' * 99)\n```\n")
    words = ("mkdocs", "build") if program == "build" else ("livepages", "run", str(too_much))
    done = commands.run(*words, folder=site.root)
    reported = done.stdout + done.stderr
    assert done.returncode == 1 and len(reported) < TRACEBACK
    assert "docs/index.md:3: block of line 3: wrote more than 1,000,000 bytes of output\n" in reported
