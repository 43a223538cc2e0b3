"""Docstrings and words: they read as those of markdown-exec, pytest and Jupyter do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("livepages", "course", "tests", "benchmarks", "inventories")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
CLAUSE = re.compile(
    "(?:As|Because|How|If|It|Once|That|There|These|They|This|Those|Until|Wh(?:at|en|ere|ether|ich|o|om|ose|y)(?:ever)?)\\b"
)


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED) and (found := ast.get_docstring(node)):
            yield node.body[0].lineno, found.partition("\n")[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_open_with_an_imperative_or_a_noun(folder: str) -> None:
    """A clause, as "What the page shows", does not say whether it is returned, printed or checked."""
    files = [file for file in sorted((ROOT / folder).rglob("*.py")) if "hostile" not in file.parts]
    found = {f"{file.relative_to(ROOT)}:{line}: {text}" for file in files for line, text in docstrings(file)}
    assert found and {text for text in found if CLAUSE.match(text.split(": ", 1)[1])} == set()
