"""A page as a Python script that runs to its end: prose in comments, cells for editors, expected errors caught."""

from collections.abc import Iterable

from livepages.exporters.cells import Code, Prose
from livepages.exporters.download import Download, indented
from livepages.exporters.script_helpers import MustRaise, show_figures, source
from livepages.source import Block
from livepages.worker import split_futures


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
        names, code = split_futures(block.code)
        futures.update(names)
        if carried := download.carried(block):
            parts.append(f"# %% files that come with the page\n{carried}")
        code = _runnable(download, block, code.strip("\n"))
        parts.append(f"# %% {title}".rstrip() + f"\n{code}")
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


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.split("\n"))
