"""The forms that CONTRIBUTING shows to authors: each works as it is printed there."""

import re
import shutil
from pathlib import Path
from textwrap import dedent

from tests.conftest import Site

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def forms(heading: str) -> list[str]:
    """Return what a section shows, piece by piece."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [dedent(piece) for piece in re.findall(r"(?:^ {4}.*\n|^\n(?=\n* {4}))+", section, re.MULTILINE)]


def test_what_authors_are_shown_runs_as_it_stands_there(site: Site) -> None:
    site.write("pyproject.toml", "[tool.livepages]\n")
    exercise = forms("Write an exercise")[0]
    shown = "\n".join([*forms("Write a figure, an error, a value, an explorable"), exercise])
    page = site.read(site.write("docs/page.md", f"# Page\n\n{shown}"))
    run = site.engine.run([page])[page.path]
    assert not run.failures and len(page.blocks) == 5
    figure, error, _, explorable, solution = run.on_page
    assert len(figure.outcome.figures) == 1 and error.outcome.raised
    assert [value.outcome.stdout for value in run.inline_expressions] == ["10\n"]
    assert explorable.outcome.stdout == "2 squared is 4\n" and len(run.variants(explorable.block)) == 2
    assert solution.block.fence.prefix == "    " and '??? success "Solution"\n' in exercise


def test_an_exercise_that_is_checked_takes_what_authors_are_shown(site: Site) -> None:
    _, stub, check, section = forms("Write an exercise")
    shutil.copytree(ROOT / "snippets/examiner", site.root / "snippets/examiner")
    with (site.root / "snippets/examiner/basics.py").open("a", encoding="utf-8") as stream:
        stream.write(f"\n\n{check}")
    site.write("snippets/exercises.py", f"import jax\n\n\n{stub}")
    imports = "```python\nimport jax\nfrom examiner import Refused, examine\n```\n"
    page = site.read(site.write("docs/page.md", f"# Page\n\n{imports}\n{section}"))
    run = site.engine.run([page])[page.path]
    assert not run.failures
    _, written, solved, *refused = run.on_page
    assert "return NotImplemented" in written.block.code and solved.outcome.stdout == "double: right\n"
    assert len(refused) == 2 and all(one.outcome.raised for one in refused)
