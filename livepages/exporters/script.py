"""A page as a Python script that runs to its end: prose in comments, cells for editors, expected errors caught."""

import ast
from collections.abc import Iterable

from livepages.exporters.cells import Code, Prose
from livepages.exporters.download import Download, indented
from livepages.exporters.script_helpers import MustRaise, show_figures, source
from livepages.source import Block


def script(download: Download, cells: Iterable[Prose | Code]) -> str:
    """The text of the script.

    Args:
        download: the page, made ready.
        cells: its prose and its blocks, in order.
    """
    futures: set[str] = set()
    parts: list[str] = []
    for cell in cells:
        if isinstance(cell, Prose):
            parts.append(f"# %% [markdown]\n{_comment(cell.text)}")
            continue
        block = cell.result.block
        if not block.runs:
            parts.append(f"# %% not run: {block.options.reason}\n{_comment(block.code)}")
            continue
        title = block.options.title or ("" if block.options.source != "none" else "not shown on the page")
        code, names = _without_futures(block.code.rstrip("\n"))
        futures |= names
        if carried := download.carried(block):
            parts.append(f"# %% files that come with the page\n{carried}")
        parts.append(f"# %% {title}".rstrip() + f"\n{_runnable(download, block, code)}")
    blocks = download.page.program
    helpers = [download.setup]
    if any(block.options.raises for block in blocks):
        helpers.append(source(MustRaise))
    if any(block.options.alt for block in blocks):
        helpers.append(source(show_figures))
    head = _comment("\n".join(download.head))
    if download.install:
        head += f" To install the same:\n#\n#     pip {download.install}"
    future = [f"from __future__ import {', '.join(sorted(futures))}"] if futures else []
    setup = "\n\n\n".join(filter(None, helpers))
    return "\n\n".join([head, *future, *([f"# %% set up\n{setup}"] if setup else []), *parts]) + "\n"


def _runnable(download: Download, block: Block, code: str) -> str:
    options = block.options
    if options.raises:
        match = f", match={options.match!r}" if options.match else ""
        code = f'with MustRaise("{options.raises}"{match}):\n{indented(code)}'
    if options.alt:
        code += "\nshow_figures()"
    return download.guarded(block, code)


def _without_futures(code: str) -> tuple[str, set[str]]:
    """Code without the imports that may only stand at the head of a script, and what they import."""
    if "__future__" not in code:
        return code, set()
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return code, set()
    futures = [node for node in body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    cut = {line for node in futures for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = [line for number, line in enumerate(code.split("\n"), 1) if number not in cut]
    return "\n".join(lines), {alias.name for node in futures for alias in node.names}


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.split("\n"))
