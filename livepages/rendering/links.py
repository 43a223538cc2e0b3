"""The links from the names in the code of a page to their reference."""

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.treeprocessors import Treeprocessor
from markdown.util import HTML_PLACEHOLDER_RE

from livepages.source import Inventory, Page, PageNames, Use

_BLOCK = re.compile(r'(<div class="(?:language-\w+ )?highlight".*?<code>)(.*?)(</code>.*)', re.DOTALL)
_PIECE = re.compile(r"<(?P<tag>\w+)[^>]*>|</\w+>|&#?\w+;|[^<&]+|&")
_NOT_IN = ("a", "h1", "h2", "h3", "h4", "h5", "h6", "pre")


class NameLinks(Treeprocessor):
    """Links names once the page is a tree in which highlighted blocks are stashed HTML."""

    def __init__(self, md: Markdown, converted: Callable[[], tuple[Page | None, Inventory]]) -> None:
        """Take `converted`, which returns the page that is being converted, if any, and the names with a reference."""
        super().__init__(md)
        self._converted = converted

    def run(self, root: Element) -> None:
        """Link the blocks, then the text."""
        page, inventory = self._converted()
        if not inventory.addresses:
            return
        names = PageNames(page, inventory)
        blocks = [(block.code.rstrip("\n"), uses) for block, uses in names.blocks]
        stash = self.md.htmlStash.rawHtmlBlocks
        for number, item in enumerate(stash):
            if isinstance(item, str) and (match := _BLOCK.fullmatch(item)):
                code = html.unescape(re.sub("<[^>]*>", "", match[2])).rstrip("\n")
                found = next((pair for pair in blocks if pair[0] == code), None)
                if found:
                    blocks.remove(found)
                    stash[number] = match[1] + linked(match[2], found[1]) + match[3]
        for element in _code(root):
            place = HTML_PLACEHOLDER_RE.fullmatch(element.text or "")
            code = str(stash[int(place[1])] if place else element.text)
            if uses := names.in_prose(html.unescape(code)):
                element.text = self.md.htmlStash.store(linked(code, uses))


def _code(element: Element) -> Iterator[Element]:
    """The code in the text below an element, outside links and headings."""
    for child in element:
        if child.tag == "code":
            yield child
        elif child.tag not in _NOT_IN:
            yield from _code(child)


@dataclass(eq=False, slots=True)
class _Tag:
    opening: str
    closing: str


@dataclass(slots=True)
class _Stretch:
    """Text in the same elements from end to end."""

    start: int  # in the text
    html: str
    tags: list[_Tag]  # those around it, the outermost first


def linked(code: str, uses: Iterable[Use]) -> str:
    """Return code as HTML with a link around each use; its text and its highlighting stay the same.

    Args:
        code: as HTML: text in elements without gaps.
        uses: the names in the text; those without an address, or not written in one piece, are left as they are.
    """
    uses = [use for use in uses if use.address and use.start < use.end]
    if not uses:
        return code
    stretches = list(_stretches(code, sorted({edge for use in uses for edge in (use.start, use.end)})))
    starts = [stretch.start for stretch in stretches]
    for use in uses:
        inside = stretches[bisect_left(starts, use.start) : bisect_left(starts, use.end)]
        link = _Tag(f'<a class="live-name" href="{html.escape(use.address)}">', "</a>")
        # Outside the innermost elements, which give the text its color: the link itself has that of all code.
        depth = min(max(len(inside[0].tags) - 1, 0), *(_shared(inside[0].tags, stretch.tags) for stretch in inside))
        for stretch in inside:
            stretch.tags = [*stretch.tags[:depth], link, *stretch.tags[depth:]]
    out: list[str] = []
    opened: list[_Tag] = []
    for stretch in [*stretches, _Stretch(0, "", [])]:
        shared = _shared(opened, stretch.tags)
        out += [tag.closing for tag in reversed(opened[shared:])] + [tag.opening for tag in stretch.tags[shared:]]
        out.append(stretch.html)
        opened = stretch.tags
    return "".join(out)


def _shared(some: list[_Tag], other: list[_Tag]) -> int:
    """Return how many of the outermost elements are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(some, other, strict=False)))


def _stretches(code: str, edges: list[int]) -> Iterator[_Stretch]:
    """The text of HTML in pieces that no edge lies inside of."""
    tags: list[_Tag] = []
    at = 0
    for piece in _PIECE.finditer(code):
        if piece["tag"]:
            tags = [*tags, _Tag(piece[0], f"</{piece['tag']}>")]
        elif piece[0].startswith("</"):
            tags = tags[:-1]
        else:
            size = 1 if piece[0].startswith("&") else len(piece[0])
            cuts = [edge - at for edge in edges[bisect_right(edges, at) : bisect_left(edges, at + size)]]
            for start, end in pairwise([0, *cuts, len(piece[0])]):
                yield _Stretch(at + start, piece[0][start:end], tags)
            at += size
