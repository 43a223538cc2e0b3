"""The Markdown of a page whose Python fences are replaced by their source and result.

The layout of source and result is markdown-exec's (`add_source`), and so are the words for it; not its execution.
"""

import html
import re
from collections.abc import Sequence
from typing import Literal

from livepages.course import Stash
from livepages.execution import Run
from livepages.records import Seen
from livepages.rendering.anchors import anchors
from livepages.rendering.failures import with_faults
from livepages.rendering.inline import fill_inline, inline_html
from livepages.rendering.results import ResultRenderer
from livepages.source import Block, Page
from livepages.worker import Runtime

# The fences that a site's Markdown shows as code: all that the engine writes; those without options; of those without
# options, the ones outside lists and quotes; or none.
FenceSupport = Literal["all", "bare", "outer", "none"]


def page_lines(
    page: Page, run: Run, runtime: Runtime, seen: Seen, stash: Stash, fences: FenceSupport = "all"
) -> list[str]:
    """Return a page's lines with its fences replaced by source and result, its inline expressions by their values."""
    text = with_faults(page, fill_inline(page.markdown, run, inline_html(seen, stash)), stash)
    lines: list[str] = []
    at = 0
    found = anchors(page, run)
    for result in run.on_page:
        block, anchor = result.block, found[result.block.index]
        lines += text[at : block.fence.start]
        notes, at = _notes(text, block)
        variants = tuple(
            ResultRenderer(other, run, runtime, seen(other.block), f"{anchor}.{number}")
            for number, other in enumerate(run.variants(block), 1)
        )
        renderer = ResultRenderer(result, run, runtime, seen(block), anchor, variants)
        if not result.hidden and not renderer.is_silent:
            lines += _block_lines(renderer, notes, stash, fences)
    return "\n".join([*lines, *text[at:]]).split("\n")


def _notes(text: Sequence[str], block: Block) -> tuple[list[str], int]:
    """The list that explains a block's ``# (1)!``, which the theme looks for right after the source; where it ends."""
    inside = [line[len(block.fence.prefix) :] for line in text[block.fence.end :]]  # of the list, quote … it is in
    blank = next((n for n, line in enumerate(inside) if line.strip()), 0)
    if not re.search(r"#.*\(1\)", block.code) or not inside or not inside[blank].startswith("1. "):
        return [], block.fence.end
    length = next((n for n, line in enumerate(inside[blank:]) if not re.match(r"\d+\. | {4}|\s*$", line)), len(inside))
    return inside[blank : blank + length], block.fence.end + blank + length


def _block_lines(renderer: ResultRenderer, notes: Sequence[str], stash: Stash, fences: FenceSupport) -> list[str]:
    result, block = renderer.result, renderer.result.block
    body = stash(renderer.html())
    if block.options.result == "markdown" and not result.failure:
        body = f"{result.outcome.stdout}\n\n{body}"
    if notes:
        body = "\n".join([*notes, "", body])
    if block.options.source != "none" or not block.runs:
        body = _with_source(block, body, stash, fences)
    anchor = stash(f'<div class="live-anchor" id="{html.escape(renderer.anchor)}"></div>')
    prefix = block.fence.prefix
    return [prefix + line if line or ">" in prefix else "" for line in ["", anchor, "", *body.split("\n"), ""]]


def _with_source(block: Block, result: str, stash: Stash, fences: FenceSupport) -> str:
    """Return Markdown for the code of a block and its result."""
    from markdown_exec import add_source  # installed where sites are built

    options, code = block.options, block.code.rstrip("\n")
    location = "above" if options.source in ("block", "none") else options.source
    title = ""
    if fences != "all" and options.title:
        title = stash(f"<p><code>{html.escape(options.title)}</code></p>") + "\n\n"
    if location in ("above", "below") and (fences == "none" or (fences == "outer" and block.fence.prefix)):
        source = stash(f'<pre><code class="language-python">{html.escape(code, quote=False)}\n</code></pre>')
        return title + "\n\n".join([source, result] if location == "above" else [result, source])
    names = ("title", "hl_lines", "linenums") if fences == "all" else ()
    extra = {name: getattr(options, name) for name in names if getattr(options, name)}
    tabs = options.tabs.partition("|")[::2]
    return title + add_source(source=code, location=location, output=result, language="python", tabs=tabs, **extra)
