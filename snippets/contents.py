"""The sections of pages as a list of links, with which a page of contents is filled."""

import html
import posixpath
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
HEADING = re.compile(r"^## (.+?) \{ ?#([\w-]+) ?\}$", re.MULTILINE)


def sections(page: str) -> list[tuple[str, str]]:
    """The sections of a page that have an address of their own: title, in Markdown, and id.

    Args:
        page: the page's file below the folder of pages, without its ending: ``answers/loops``.
    """
    return HEADING.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))


def title(page: str) -> str:
    """The title of a page, in Markdown."""
    return (DOCS / f"{page}.md").read_text(encoding="utf-8").partition("\n# ")[2].partition("\n")[0]


def as_html(*pages: str, here: str) -> str:
    """The sections of some pages as links, each page's under its title.

    Args:
        pages: their files below the folder of pages, without endings.
        here: the address, below that of the site, of the page that shows the links.
    """
    parts = []
    for page in pages:
        url = posixpath.relpath(page, here) + "/"
        rows = "".join(
            f'<li class="live-row"><a href="{url}#{anchor}">{_code(text)}</a></li>' for text, anchor in sections(page)
        )
        parts.append(f'<h3><a href="{url}">{_code(title(page))}</a></h3><ul>{rows}</ul>')
    return f'<div class="live-contents">{chr(10).join(parts)}</div>'


def _code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
