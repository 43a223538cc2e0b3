"""The blocks and inline expressions that the HTML of a page lacks, found by an attribute of each result."""

import re

from livepages.execution import Failure
from livepages.rendering.inline import unfilled_inline
from livepages.source import Block, Page


def attribute(block: Block) -> str:
    """Return the attribute of the element that holds the result of a block."""
    return f'data-live-block="{block.index}"'


def missing(page: Page, content: str) -> list[Failure]:
    """The blocks and inline expressions that ought to be shown in a page's HTML and are not, or are only as code."""
    found = unfilled_inline(page, content)
    for block in page.blocks:
        at = content.find(attribute(block))
        if at < 0 and (block.options.source != "none" or not block.runs):
            what = "keeps this block from being shown"
        elif content.rfind("<code", 0, at) > content.rfind("</code>", 0, at):
            what = "makes this block text, not code"
        else:
            continue
        found.append(Failure(page.name, block.line, block.line, f"the Markdown around it {what}"))
    return found


def unmarked(content: str) -> str:
    """Return a page's HTML without the attributes by which `missing` finds blocks."""
    return re.sub(r' data-live-block="\d+"', "", content)
