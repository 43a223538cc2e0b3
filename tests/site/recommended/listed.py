"""A list of what the pages recommend, made from them: `python -m tests.site.recommended.listed` prints what has no attack.

A recommendation is what somebody copies or does: the answer to a question, the fix of an error, a row of a table that
says what to use, a row of the tables of equivalents, a line of the cheat sheet, the new form of an old idiom, the
solution of an exercise. A new one is found without being registered; its name is the page and its title or text there.
"""

import importlib
import pkgutil
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from livepages.source import find_project

ROOT = find_project(Path(__file__)).root
DOCS, SNIPPETS = ROOT / "docs", ROOT / "snippets"
# Why a recommendation of `no_number.toml` cannot be attacked.
REASONS = {
    "command": "it is typed or set outside a program: a command, a package, an environment variable",
    "choice": "it chooses a library, a device or a tool, and names no program",
    "absent": "it needs what no test has: an accelerator, a second host, a release that no index has any more",
    "text": "it explains or shows something; no value that anybody goes on with comes out of it",
}
# The heading of a column that says what to do. A table that only describes has none.
ADVICE = re.compile(r"\b(use|instead|today|what to write|without it|form)\b", re.I)
_HEADING = re.compile(r"^## [^\n]+\{ ?#([\w.-]+) ?\}", re.M)
_TABLE = re.compile(r"^(\|[^\n]+\|)\n\|[-:| ]+\|\n((?:\|[^\n]+\|\n)+)", re.M)
_FENCE = re.compile(r"^ *(`{3,}).*?^ *\1$", re.M | re.S)


@cache
def recommendations() -> tuple[str, ...]:
    """The names of all, in the order of the pages' files.

    Raises:
        AssertionError: two have one name.
    """
    found = [*_of_pages(), *_of_tables()]
    twice = [name for name, count in Counter(found).items() if count > 1]
    assert not twice, twice
    return tuple(found)


def _of_pages() -> Iterator[str]:
    for path in sorted(DOCS.rglob("*.md")):
        page = path.relative_to(DOCS).as_posix()
        text = _FENCE.sub("", path.read_text(encoding="utf-8"))
        if page.startswith(("answers/", "lookup/errors")) and path.stem != "index":
            yield from (f"{page}#{anchor}" for anchor in _HEADING.findall(text))
        elif page.startswith("practice/"):
            exercises = re.split(r"(?=^## )", text, flags=re.M)
            yield from (f"{page}#{_HEADING.findall(part)[0]}" for part in exercises if '"Solution"' in part)
        for head, rows in _TABLE.findall(text):
            if ADVICE.search(head):
                yield from (f"{page}: {row.split('|')[1].strip()}" for row in rows.splitlines())


def _of_tables() -> Iterator[str]:
    sys.path.insert(0, str(SNIPPETS))
    rosetta, cheat_sheet = importlib.import_module("rosetta"), importlib.import_module("cheat_sheet")
    for row in rosetta.read_rows(rosetta.ROWS.read_text(encoding="utf-8")):
        if "jax" in row.code and row.kind != "differs":  # such a row warns
            yield f"rosetta: {row.title}"
    for line in cheat_sheet.read_lines(cheat_sheet.LINES.read_text(encoding="utf-8")):
        if line.expected and not line.expected.endswith("Error"):
            yield f"cheat sheet: {line.code}"
    for group in tomllib.loads((SNIPPETS / "idioms.toml").read_text(encoding="utf-8")).values():
        yield from (f"then and now: {idiom['name']}" for idiom in group if "new" in idiom)


def no_number() -> dict[str, str]:
    """The recommendations out of which no number comes, so that there is nothing to attack, and the reason of each."""
    return tomllib.loads(Path(__file__).with_name("no_number.toml").read_text(encoding="utf-8"))


def left() -> list[str]:
    """The names of those that have no attack and need one."""
    return [name for name in recommendations() if name not in attacked() and name not in no_number()]


def attacked() -> set[str]:
    """The names of those that the modules beside this one attack."""
    package = importlib.import_module(__package__ or "tests.site.recommended")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name.rpartition(".")[2].startswith("test_"):
            importlib.import_module(module.name)
    return set(importlib.import_module(f"{package.__name__}.attack").ATTACKED)


if __name__ == "__main__":
    print(*left(), f"{len(left())} of {len(recommendations())} recommendations have no attack", sep="\n")
