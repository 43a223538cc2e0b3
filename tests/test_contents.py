"""The lists of all questions and of all errors are whole and in order."""

import re
from pathlib import Path

import pytest

from livepages.source import find_project

DOCS = find_project(Path(__file__)).docs
HEADING = re.compile(r"^## (.+?) \{ ?#([\w-]+) ?\}$", re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "listed"), [("answers/index.md", "answers/*.md"), ("lookup/all-errors.md", "lookup/errors*.md")]
)
def test_every_section_is_listed_once(page: str, listed: str) -> None:
    text = (DOCS / page).read_text()
    for file in sorted(DOCS.glob(listed)):
        if file.name == "index.md":
            continue
        rows = [f"- [{title}]({file.name}#{anchor})" for title, anchor in HEADING.findall(file.read_text())]
        assert rows and "\n".join(rows) in text, f"{page}: wants these rows below {file.name}:\n" + "\n".join(rows)
