"""The imports of programs, found in their code."""

import ast
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from livepages.source.fences import PYTHON, LineError, find_fences
from livepages.source.options import parse_options
from livepages.source.snippets import expand
from livepages.worker import imported


def any_imports(files: Iterable[Path], libraries: Iterable[str], snippets: Path) -> bool:
    """Return whether a block that runs, or a module, in one of these files imports one of the libraries.

    Args:
        files: pages and modules; one that cannot be read imports nothing.
        libraries: top-level names.
        snippets: the folder that pages include files from.
    """
    wanted = {*libraries}
    names = "|".join(map(re.escape, sorted(wanted)))
    mentioned = re.compile(rf"^[> \t]*(?:import|from)[ \t].*\b(?:{names})\b", re.MULTILINE)
    for file in files:
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
        if mentioned.search(text) or (file.suffix != ".py" and "8<" in text):
            programs = [text] if file.suffix == ".py" else _programs(text, snippets)
            if any(imported(code) & wanted for code in programs):
                return True
    return False


def _programs(text: str, snippets: Path) -> list[str]:
    """Return the code of each block that runs, of a page; none of a page that cannot be read."""
    try:
        expanded = list(expand(text.splitlines(), snippets))
        fences = [*find_fences(tuple(line for line, _ in expanded), [number for _, number in expanded])]
    except LineError:
        return []
    return [
        "\n".join(fence.content) for fence in fences if fence.language in PYTHON and parse_options(fence.info)[0].exec
    ]


def first_imports(codes: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return what blocks, run in this order, import before they do anything else, the standard library left out.

    Returns:
        Each module, with the name that is taken from it, or with none.
    """
    found: dict[tuple[str, str], None] = {}
    for code in codes:
        try:
            body = ast.parse(code).body
        except (SyntaxError, ValueError, RecursionError):
            break
        for node in body:
            if isinstance(node, ast.Import):
                found |= dict.fromkeys((alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found |= dict.fromkeys((node.module, alias.name.replace("*", "")) for alias in node.names)
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                return _installed(found)
    return _installed(found)


def _installed(imports: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in imports if pair[0].partition(".")[0] not in sys.stdlib_module_names)
