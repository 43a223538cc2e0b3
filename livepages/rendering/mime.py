"""Outputs as HTML: a renderer for each MIME type. Other distributions add some, or replace these, by entry points."""

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from livepages.execution import Failure
from livepages.source import Block

ENTRY_POINTS = "livepages.mime_renderers"  # the group; the name of each is a MIME type
PRE = '<pre class="nohighlight"><code>'  # highlight.js, which MkDocs' own themes have, guesses a language of its own
SHOWN, LONG = 12, 20  # of output longer than LONG lines, the first SHOWN; the rest is folded


@dataclass(frozen=True)
class MimeData:
    """A display or figure of a block, or a part of its streams, in the representation of one MIME type."""

    content: str  # bytes as base64, what is neither bytes nor text as JSON
    block: Block
    number: int = 0  # among the block's outputs of its kind


class RenderError(Exception):
    """An output that its renderer cannot show."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


Renderer = Callable[[MimeData], str]


def text_plain(data: MimeData) -> str:
    """Return text in the language that the fence names."""
    text, language = data.content.rstrip("\n"), data.block.options.result
    if language in ("text", "markdown"):
        return folded("live-stdout", html.escape(text))
    lexer = get_lexer_by_name(language, stripnl=False)
    return folded("live-stdout", highlight(text, lexer, HtmlFormatter(nowrap=True)).rstrip("\n"))


def image_svg(data: MimeData) -> str:
    """Return a figure, with ids that no other output of the page has."""
    block, alt = data.block, html.escape(data.block.options.alt)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1b{block.index}-{data.number}-", data.content)
    return f'<div class="live-figure" role="img" aria-label="{alt}" data-search-exclude>{svg}</div>'


def text_html(data: MimeData) -> str:
    """Return HTML unchanged."""
    return f'<div class="live-html">{data.content}</div>'


@cache
def renderers() -> Mapping[str, Renderer]:
    """Return the renderers by MIME type, the best first, plain text last.

    Raises:
        ImportError: one of another distribution cannot be imported.
    """
    others = {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}
    own: dict[str, Renderer] = {"text/html": text_html, "image/svg+xml": image_svg, "text/plain": text_plain}
    return {**others, **{mime: render for mime, render in own.items() if mime not in others}}


def render(bundle: Mapping[str, str], block: Block, number: int = 0) -> str:
    """Return an output as HTML, by the first renderer of a type that it has; empty if there is none.

    Raises:
        RenderError: the renderer fails.
    """
    mime = next((mime for mime in renderers() if mime in bundle), "")
    if not mime:
        return ""
    try:
        return renderers()[mime](MimeData(bundle[mime], block, number))
    except Exception as error:  # whatever another distribution does
        message = f"the renderer of {mime} raised {type(error).__name__}: {error}"
        raise RenderError(Failure(block.page, block.line, block.line, message)) from error


def folded(kind: str, body: str) -> str:
    """Return output as HTML; the lines of a long one after its first are folded."""
    lines = body.split("\n")
    more = ""
    if len(lines) > LONG:
        rest = "\n".join(lines[SHOWN:])
        summary = f"{len(lines) - SHOWN} more lines"
        more = f'<details class="live-more"><summary>{summary}</summary>{PRE}{rest}</code></pre></details>'
        body = "\n".join(lines[:SHOWN])
    return f'<div class="highlight {kind}">{PRE}{body}</code></pre>{more}</div>'
