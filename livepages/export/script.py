"""A page as a Python script that runs to its end: prose in comments, cells as editors know them, errors expected."""

import ast
import inspect
import re
from collections.abc import Iterable
from types import TracebackType

from livepages.export.download import Download, indented
from livepages.source import Block


class MustRaise:
    """The lines below it must raise this error, which it shows; then the script goes on."""

    def __init__(self, name: str, match: str = "") -> None:
        self.name, self.match = name, match

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        bases = kind.__mro__ if kind else ()
        names = {name for base in bases for name in (base.__name__, f"{base.__module__}.{base.__qualname__}")}
        if kind is None or self.name not in names or not re.search(self.match, str(error)):
            raise AssertionError(f"expected {self.name} here, with a message that matches {self.match!r}") from error
        print(f"{kind.__name__}: {error}")
        return True


def show_figures() -> None:
    """Shows what the lines above have drawn."""
    import matplotlib.pyplot as plt

    plt.show()
    plt.close("all")


def script(download: Download, cells: Iterable[str | Block]) -> str:
    """The text of the script.

    Args:
        download: the page, made ready.
        cells: its prose and its blocks, in order.
    """
    futures: set[str] = set()
    parts: list[str] = []
    for cell in cells:
        if isinstance(cell, str):
            parts.append(f"# %% [markdown]\n{_comment(cell)}")
        elif not cell.runs:
            parts.append(f"# %% not run: {cell.options.why}\n{_comment(cell.code)}")
        else:
            title = cell.options.title or ("" if cell.options.source != "none" else "not shown on the page")
            code, names = _without_futures(cell.code.rstrip("\n"))
            futures |= names
            if carried := download.carried(cell):
                parts.append(f"# %% files that come with the page\n{carried}")
            parts.append(f"# %% {title}".rstrip() + f"\n{_runnable(download, cell, code)}")
    blocks = download.page.program
    helpers = [download.setup]
    if any(block.options.raises for block in blocks):
        helpers.append(f"import re\nfrom types import TracebackType\n\n\n{inspect.getsource(MustRaise)}")
    if any(block.options.alt for block in blocks):
        helpers.append(inspect.getsource(show_figures))
    head = _comment("\n".join(download.head))
    if download.install:
        head += f" To install the same:\n#\n#     pip {download.install}"
    future = [f"from __future__ import {', '.join(sorted(futures))}"] if futures else []
    setup = "\n\n\n".join(part.rstrip("\n") for part in helpers if part)
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
