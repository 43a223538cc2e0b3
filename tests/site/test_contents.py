"""The lists of all questions and of all errors are whole and in order; no page shows a log or a line of syntax."""

import re
from pathlib import Path

import pytest

from livepages.source import find_project

PROJECT = find_project(Path(__file__))
DOCS, RECORDS = PROJECT.docs, PROJECT.records
HEADING = re.compile(r"^## (.+?) \{ ?#([\w-]+) ?\}$", re.MULTILINE)


@pytest.mark.parametrize(
    ("lists", "listed"),
    [
        (["answers/index.md", "libraries.md"], "answers/*.md"),
        (["lookup/all-errors.md"], "lookup/errors*.md"),
    ],
)
def test_every_section_is_listed_once(lists: list[str], listed: str) -> None:
    text = "".join((DOCS / page).read_text().replace("](answers/", "](") for page in lists)
    for file in sorted(DOCS.glob(listed)):
        if file.name == "index.md":
            continue
        rows = [f"- [{title}]({file.name}#{anchor})" for title, anchor in HEADING.findall(file.read_text())]
        wanted = f"{' or '.join(lists)}: wants these rows once, below {file.name}:\n" + "\n".join(rows)
        assert rows and text.count("\n".join(rows)) == 1, wanted


def test_no_page_shows_what_the_compiler_logs() -> None:
    line = re.compile(r"^ *[EFIW]\d{4} \d\d:\d\d:\d\d\.\d", re.MULTILINE)  # with the time of day and a process's number
    shown = [str(file) for file in RECORDS.rglob("*.yml") if line.search(file.read_text(encoding="utf-8"))]
    assert not shown, "hide these lines where the page asks for them, or redirect descriptor 2: " + ", ".join(shown)


def test_the_title_of_an_admonition_ends_its_line() -> None:
    """Text after it, as where a paragraph is filled, makes all of the admonition a paragraph."""
    wrong = re.compile(r'^ *(?:\?{3}\+?|!!!) [\w -]+"[^"\n]*" *\S', re.MULTILINE)
    found = [
        f"{file.relative_to(DOCS)}: {line.strip()}"
        for file in DOCS.rglob("*.md")
        for line in wrong.findall(file.read_text())
    ]
    assert not found, "begin the text on the next line, four columns in: " + "; ".join(found)


def test_search_ranks_answers_on_libraries_behind_those_on_jax() -> None:
    """A page in the list of libraries that the search does not know precedes answers on JAX for words that both have."""
    script = (PROJECT.root / "course/theme/javascripts/find/ranking.js").read_text(encoding="utf-8")
    known = re.search(r"OF_LIBRARY =\s*/\^answers\\/\(([\w|-]+)\)", script)
    assert known
    listed = re.findall(r"^## \[.+\]\(answers/([\w-]+)\.md\)$", (DOCS / "libraries.md").read_text(), re.MULTILINE)
    on_both = {"sampling-and-simulation"}
    assert len(listed) > 8 and set(listed) - on_both - set(known[1].split("|")) == set()
