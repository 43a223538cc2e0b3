"""A page as a Jupyter notebook that holds the outputs which the page shows. What the page folds is folded there, too.

The file is written in the form that nbformat gives it (https://nbformat.readthedocs.io/en/latest/format_description.html,
version 4.5), without that library: importing it takes longer than most builds.

A page also runs it for its reader: the metadata of each cell name, under ``live``, the block of the page that it holds
and the block's expected outcome.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from livepages.execution import ERR, BlockResult
from livepages.exporters.cells import Code, Prose
from livepages.exporters.download import Download
from livepages.records import short_key
from livepages.rendering import anchors
from livepages.source import Affects, fenced

_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook(download: Download, cells: Iterable[Prose | Code]) -> str:
    """The text of the notebook file.

    Args:
        download: the page, made ready.
        cells: its prose and its blocks, in order.
    """
    places = anchors(download.page, download.run)
    head = [f"# {line}".rstrip() for line in download.head]
    if download.install:
        head += ["# To install the same, take the mark from the next line:", f"# %pip {download.install}"]
    made = [_code("\n".join(head) + (f"\n\n{download.setup}" if download.setup else ""))]
    for cell in cells:
        if isinstance(cell, Prose):
            made.append(_markdown(_folded(cell.inside, cell.fold)))
            continue
        block = cell.result.block
        if not block.runs:
            text = f"Not run: {block.options.reason}\n\n{fenced(block.code, 'python')}"
            made.append(_markdown(_folded(text, cell.fold)))
            continue
        if carried := download.carried(block):
            made.append(_code(carried, metadata={"jupyter": {"source_hidden": True}, "live": {"prepares": True}}))
        code = _code_cell(download, cell.result, places[block.index])
        if cell.fold:
            code["metadata"]["jupyter"] = {"source_hidden": True, "outputs_hidden": True}
        made.append(code)
    if made[0]["source"] and download.page.program:
        made[0]["metadata"]["live"] = {"prepares": True}
    for number, cell_ in enumerate(made):
        cell_["id"] = f"cell-{number}"
    live = {
        "script": download.page.script_name,
        "page": download.record,
        "files": download.rests_on,
        "install": download.install.split()[1:],
    }
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}, "live": live}
    book = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code(
    text: str, outputs: Iterable[dict[str, Any]] = (), metadata: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": dict(metadata or {}),
        "outputs": [*outputs],
        "source": _lines(text),
    }


def _stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _code_cell(download: Download, result: BlockResult, place: str) -> dict[str, Any]:
    block, outcome = result.block, result.truncated
    options = block.options
    metadata: dict[str, Any] = {"live": _about(result, place)}
    if options.source == "none":
        metadata["jupyter"] = {"source_hidden": True}
    if options.raises:
        metadata["tags"] = ["raises-exception"]
    outputs = [_stream("stderr" if stream == ERR else "stdout", text) for stream, text in outcome.streams]
    if result.stopped_by:
        outputs.append(_stream("stderr", f"Not run: {outcome.skipped}\n"))
    if raised := outcome.raised:
        traceback = raised.traceback.split("\n")
        outputs.append({"output_type": "error", "ename": raised.type, "evalue": raised.message, "traceback": traceback})
    for bundle in outcome.displays:
        data = {mime: json.loads(text) if mime.endswith("json") else _lines(text) for mime, text in bundle.items()}
        outputs.append({"output_type": "execute_result", "execution_count": None, "data": data, "metadata": {}})
    for svg in outcome.figures:
        data = {"image/svg+xml": _lines(_standing_alone(svg)), "text/plain": _lines(options.alt)}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return _code(download.guarded(block, block.code.rstrip("\n")), outputs=outputs, metadata=metadata)


def _folded(text: str, title: str) -> str:
    """Return Markdown folded under its title, if it has one; the title alone if there is no text."""
    if not title or not text:
        return text or f"**{title}**"
    summary = re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(title, quote=False))
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _about(result: BlockResult, place: str) -> dict[str, Any]:
    """Return the metadata of a block for a reader's kernel, without empty values."""
    block, outcome = result.block, result.outcome
    options = block.options
    given = options.given(Affects.PROGRAM, Affects.RUN, Affects.CHECK)
    about = {
        "key": short_key(block),
        "start": block.start,
        "block": "" if options.source == "none" else place,
        "unknown": outcome.pending or bool(outcome.skipped),
        **{name: value for name, value in given.items() if name != "vary"},  # the code says so
    }
    return {name: value for name, value in about.items() if value}


def _standing_alone(svg: str) -> str:
    """Return a figure for use outside the page: with its own colors and size, on white."""
    svg = re.sub(r"var\(--[\w-]+, (#\w+)\)", r"\1", svg)
    svg = re.sub(r"var\(--[\w-]+, currentColor\)", "#222222", svg)
    box = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg)
    size = f' width="{box[1]}pt" height="{box[2]}pt"' if box else ""
    return svg.replace("<svg", f'<svg{size} style="background: #ffffff; font-family: sans-serif"', 1)
