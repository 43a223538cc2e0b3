"""The anchors of a page's blocks and inline expressions: the fragments of links to them."""

import html
import re
from collections import Counter

from livepages.execution import Run
from livepages.source import Block, Page

_ID = re.compile(r"""<[^>]*\s(?:id|name)=["']?([^"'\s>]+)""")


def anchors(page: Page, run: Run) -> dict[int, str]:
    """Return the anchor of each block, by its index: its own id, or its section and its place among those shown there;
    of a block of which nothing is shown, and of an inline expression, the section."""
    places: Counter[str] = Counter()
    found = {}
    for result in run.on_page:
        block = result.block
        section = _section(page, block)
        hidden = result.hidden
        places[section] += not hidden
        found[block.index] = section if hidden else block.options.id or f"{section}.{places[section]}"
        found |= {variant.index: found[block.index] for variant in block.variants}
    return found | {one.index: _section(page, one) for one in page.inline_expressions}


def _section(page: Page, block: Block) -> str:
    above = [section.anchor for section in page.sections if section.start < block.fence.start]
    return above[-1] if above else "start"


def anchors_of_run(page: Page, run: Run) -> set[str] | None:
    """The anchors that a page has by its run: those in output that is HTML, and while it runs, those that may come.

    None if output that is still missing may bring any anchors.
    """
    missing = [result for result in run.on_page if result.outcome.pending or result.failure or result.stopped_by]
    if any(result.block.options.result == "markdown" or result.block.options.html for result in missing):
        return None
    printed = (result.outcome.stdout for result in run.results if result.block.options.html)
    found = {html.unescape(name) for text in printed for name in _ID.findall(text)}
    if run.pending:
        blocks = Counter(_section(page, block) for block in page.blocks)
        found |= {f"{section}.{place}" for section, number in blocks.items() for place in range(1, number + 1)}
    return found
