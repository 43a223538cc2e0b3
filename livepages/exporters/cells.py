"""A page as prose and blocks in turn, in Markdown that any program reads: without admonitions, tabs and marks."""

import itertools
import os.path
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from livepages.execution import BlockResult, Run
from livepages.rendering import fill_inline_as_markdown
from livepages.source import Page, find_fences

_TITLED = re.compile(
    r'(?P<indent> *)(?:!!!|\?\?\?\+|(?P<fold>\?\?\?)|===[!+]?) +(?P<kind>[\w -]*?) *(?:"(?P<title>.*)")? *'
)
_LINK = re.compile(r"(\]\(|^ *\[[^\]]+\]: +)([^)\s#]+)", re.MULTILINE)


@dataclass(frozen=True)
class Prose:
    """Markdown, and the title of the closed fold (`???`) that holds it, if one does: its first line may show it."""

    text: str
    fold: str = ""

    @property
    def inside(self) -> str:
        """The text without the line that shows the title of its fold."""
        return self.text.removeprefix(_bold(self.fold)).strip("\n") if self.fold else self.text


@dataclass(frozen=True)
class Code:
    """A block, the prefix of each of its lines (blanks in a list, marks in a quotation), and its closed fold."""

    result: BlockResult
    prefix: str
    fold: str = ""
    printed: str = ""  # the Markdown that it printed, if it prints the page's


def pieces(page: Page, run: Run, address: Callable[[Path], str]) -> list[Prose | Code]:
    """Prose and blocks in the page's order; prose is cut where a closed fold begins or ends.

    Args:
        page: the page.
        run: the results of its blocks.
        address: returns the target of a link to a file of the site.
    """
    link = _linking(page, address)
    lines, folds = _lines(fill_inline_as_markdown(page, run), link)
    found: list[Prose | Code] = []

    def add_prose(start: int, end: int) -> None:
        for fold, numbers in itertools.groupby(range(start, end), folds.__getitem__):
            text = "\n".join(lines[number] for number in numbers)
            if text.strip():
                found.append(Prose(text, fold[1]))

    at = 0
    for result in run.on_page:
        fence = result.block.fence
        add_prose(at, fence.start)
        opening = lines[fence.start]
        prefix = opening[: len(opening) - len(opening.lstrip("> \t"))]
        is_markdown = result.block.options.result == "markdown"
        printed = _LINK.sub(link, "".join(text for _, text in result.outcome.streams)) if is_markdown else ""
        found.append(Code(result, prefix, folds[fence.start][1], printed))
        at = fence.end
    add_prose(at, len(lines))
    return found


def split_cells(found: Iterable[Prose | Code]) -> list[Prose | Code]:
    """The pieces for a form that keeps prose and code in separate cells: none goes on in the list of the one before."""
    return [piece if isinstance(piece, Code) else replace(piece, text=_at_the_margin(piece.text)) for piece in found]


def _at_the_margin(text: str) -> str:
    lines = text.strip("\n").split("\n")
    width = _indent(lines[0])
    for number, line in enumerate(lines):
        width = min(width, _indent(line)) if line.strip() else width
        lines[number] = line[width:]
    return "\n".join(lines)


def summary(page: Page) -> str:
    """Return the subject of the page: its description, else its first paragraph after the title."""
    if page.description:
        return page.description
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", page.body.partition("# ")[2].partition("\n")[2])
    return " ".join(text.strip().partition("\n\n")[0].split())


def _bold(title: str) -> str:
    return f"**{title}**"


def _linking(page: Page, address: Callable[[Path], str]) -> Callable[[re.Match[str]], str]:
    """Return a function that rewrites a link of the page, as `_LINK` matches it."""

    def link(match: re.Match[str]) -> str:
        file = Path(os.path.normpath(page.path.parent / unquote(match[2])))
        return match[1] + (address(file) if file.is_file() else match[2])

    return link


def _lines(page: Page, link: Callable[[re.Match[str]], str]) -> tuple[list[str], list[tuple[int, str]]]:
    """The page's text, line by line: titles of admonitions in bold, their content without indentation; and of each
    line the outermost closed fold, as the line that it begins on and its title, which is empty outside of folds."""
    found = list(find_fences(page.text, range(len(page.text)), []))
    fences = {fence.start: fence.end for fence in found}
    hidden = {number for fence in found for number in fence.comment or ()}  # a comment holds blocks that run unseen
    titles: list[int] = []  # the indentation of each title above this line
    lines: list[str] = []
    folds: list[tuple[int, str]] = []
    fold, under = (0, ""), 0  # the fold, and how many titles its content is indented under
    code_ends = comment_ends = 0
    for number, line in enumerate(page.text):
        indent = _indent(line)
        in_code = number < code_ends
        while titles and line.strip() and not in_code and indent < titles[-1] + 4:
            titles.pop()
        if len(titles) < under:
            fold, under = (number, ""), 0
        plain = line[min(indent, 4 * len(titles)) :]
        code_ends = fences.get(number, code_ends)
        if number < code_ends:
            lines.append(plain)
        elif number < comment_ends or number in hidden:
            lines.append("")
        elif match := _TITLED.fullmatch(plain):
            titles.append(indent)
            title = match["title"] or match["kind"].capitalize()
            if match["fold"] and not under:
                fold, under = (number, title), len(titles)
            lines.append(match["indent"] + _bold(title) + "\n")
        elif re.match(r" *<!--[-\s]*(pytest\b|live:|material/|asked$)", plain):
            comment_ends = number + 1
            while comment_ends < len(page.text) and "-->" not in page.text[comment_ends - 1]:
                comment_ends += 1
            lines.append("")
        else:
            lines.append(_LINK.sub(link, plain))
        folds.append(fold)
    return lines, folds


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
