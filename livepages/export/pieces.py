"""A page as prose and blocks in turn, in Markdown that any program reads: without admonitions, tabs and marks."""

import os.path
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from livepages.source import Block, Page, find_fences

_TITLED = re.compile(r'( *)(?:!!!|\?\?\?\+?|===[!+]?) +([\w -]*?) *(?:"(.*)")? *')
_LINK = re.compile(r"(\]\(|^ *\[[^\]]+\]: +)([^)\s#]+)")


@dataclass(frozen=True)
class Code:
    """A block, and what stands before each of its lines: blanks in a list, marks in a quotation."""

    block: Block
    prefix: str


def pieces(page: Page, address: Callable[[Path], str]) -> list[str | Code]:
    """Prose and blocks in the page's order.

    Args:
        page: the page.
        address: what a link to a file of the site becomes.
    """
    lines = _lines(page, address)
    found: list[str | Code] = []
    at = 0
    for block in page.blocks:
        found.append("\n".join(lines[at : block.fence.start]))
        opening = lines[block.fence.start]
        found.append(Code(block, opening[: len(opening) - len(opening.lstrip("> \t"))]))
        at = block.fence.end
    found.append("\n".join(lines[at:]))
    return [piece for piece in found if not isinstance(piece, str) or piece.strip()]


def apart(found: list[str | Code]) -> list[str | Block]:
    """The pieces for a form that keeps prose and code in separate cells: none goes on in the list of the one before."""
    cells: list[str | Block] = []
    width = 0
    for piece in found:
        if isinstance(piece, Code):
            cells.append(piece.block)
            width = len(piece.prefix)
        else:
            lines = []
            for line in piece.split("\n"):
                width = min(width, _indent(line)) if line.strip() else width
                lines.append(line[width:])
            cells.append("\n".join(lines).strip("\n"))
    return cells


def summary(page: Page) -> str:
    """What the page is about: its description, else its first paragraph after the title."""
    if page.description:
        return page.description
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", page.body.partition("# ")[2].partition("\n")[2])
    return " ".join(text.strip().partition("\n\n")[0].split())


def fenced(text: str, language: str) -> str:
    """Text in a fence that is longer than any in it."""
    text = text.rstrip("\n")
    ticks = max([2, *(len(run) for run in re.findall("`+", text))]) + 1
    return f"{'`' * ticks}{language}\n{text}\n{'`' * ticks}"


def _lines(page: Page, address: Callable[[Path], str]) -> list[str]:
    """The lines of the page's text, one for each: titles of admonitions in bold, their content without indentation."""
    fences = {fence.start: fence.end for fence in find_fences(page.text, list(range(1, len(page.text) + 1)))}
    titles: list[int] = []  # how far the titles are indented that this line stands under
    lines: list[str] = []
    code_ends = comment_ends = 0

    def link(match: re.Match[str]) -> str:
        file = Path(os.path.normpath(page.path.parent / unquote(match[2])))
        return match[1] + (address(file) if file.is_file() else match[2])

    for number, line in enumerate(page.text):
        indent = _indent(line)
        in_code = number < code_ends
        while titles and line.strip() and not in_code and indent < titles[-1] + 4:
            titles.pop()
        plain = line[min(indent, 4 * len(titles)) :]
        code_ends = fences.get(number, code_ends)
        if number < code_ends:
            lines.append(plain)
        elif number < comment_ends:
            lines.append("")
        elif match := _TITLED.fullmatch(plain):
            titles.append(indent)
            lines.append(f"{match[1]}**{match[3] or match[2].capitalize()}**\n")
        elif re.match(r" *<!--[-\s]*(pytest\b|live:|material/|asked$)", plain):
            comment_ends = number + 1
            while comment_ends < len(page.text) and "-->" not in page.text[comment_ends - 1]:
                comment_ends += 1
            lines.append("")
        else:
            lines.append(_LINK.sub(link, plain))
    return lines


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
