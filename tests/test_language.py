"""Docstrings and words: they read as those of markdown-exec, pytest and Jupyter do."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "livepages/README.md").read_text(encoding="utf-8").partition("## Glossary\n")[2]
FOLDERS = ("livepages", "course", "snippets", "tests", "benchmarks", "inventories")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
CLAUSE = re.compile(
    "(?:As|Because|How|If|It|Once|That|There|These|They|This|Those|Until|Wh(?:at|en|ere|ether|ich|o|om|ose|y)(?:ever)?|"
    "(?:Ask|Examin|Follow|Giv|Hold|Judg|Keep|Know|Leav|Let|Mak|Open|Print|Rais|Read|Refus|Return|Serv|Tak|Writ)(?:e?s))\\b"
)


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED) and (found := ast.get_docstring(node)):
            yield node.body[0].lineno, found.partition("\n")[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_open_with_an_imperative_or_a_noun(folder: str) -> None:
    """A clause, as "What the page shows", does not say whether it is returned, printed or checked; nor does "Shows it"."""
    files = [file for file in sorted((ROOT / folder).rglob("*.py")) if "hostile" not in file.parts]
    found = {f"{file.relative_to(ROOT)}:{line}: {text}" for file in files for line, text in docstrings(file)}
    assert found and {text for text in found if CLAUSE.match(text.split(": ", 1)[1])} == set()


def test_the_glossary_names_what_there_is_and_no_name_has_two_meanings() -> None:
    modules = [ast.parse(file.read_text(encoding="utf-8")) for file in (ROOT / "livepages").rglob("*.py")]
    defined = Counter(
        node.name for module in modules for node in module.body if isinstance(node, ast.ClassDef | ast.FunctionDef)
    )
    rows = re.findall(r"^\| ([\w ]+) \| .* \|(?: `(\w+)`)? \|$", GLOSSARY, re.M)
    words = [word for word, _ in rows]
    assert len({*words}) == len(words) > 20
    assert [name for _, name in rows if name and defined[name] != 1] == []
    classes = Counter(node.name for module in modules for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    assert [name for name, count in classes.items() if count > 1] == []
