"""The links to the other forms of a page, in its head and on its last line, which says what ran it, too."""

import html
import posixpath
import re
from urllib.parse import quote

from livepages.course import SitePaths
from livepages.execution import Run

_LINK = re.compile(r'data-live-form="(?P<form>\w+)" href="[^"]*"')
# Shown by the style sheet of the script that handles it.
_RUN = '<button type="button" class="live-offer live-here" hidden>run it here</button>'
# Copies the target of the link before it.
_COPY = '<button type="button" class="live-offer live-take" aria-label="copy as Markdown" hidden>(copy)</button>'


def stamp(run: Run, versions: str, notebook: str, more: str = "") -> str:
    """Return the line that says what ran a page, ending with `more`, as HTML; its notebook is at an address."""
    device = f" on {html.escape(run.device)}" if run.device else ""
    versions = html.escape(versions)
    text = f"Every output on this page was produced by the code above it, with {versions}{device}."
    if run.pending:
        text = f"This page is running, with {versions}. Until a block has run, its recorded output is shown."
    where = f'data-live-notebook="{html.escape(notebook)}" data-search-exclude'
    return f'<p class="live-stamp" {where}>{text}{" " if more else ""}{more}</p>'


def head_links(place: SitePaths) -> str:
    """Return what programs look for in the head of a page: its Markdown, and the contents of the site, as HTML."""
    # A blank in `rel` means nothing, but Material's script compares all of the attribute. Without it the script would
    # take the Markdown for the page in another language, and ask for the map of that site.
    markdown = quote(posixpath.basename(place.markdown))
    whole = posixpath.relpath("llms.txt", place.folder or ".")
    return (
        f'<link rel="alternate " type="text/markdown" href="{markdown}">'
        f'<link rel="describedby" type="text/plain" href="{whole}">'
    )


def restore_downloads(content: str, place: SitePaths) -> str:
    """Return a page's HTML whose downloads are linked as they should, after a program that has changed all links."""
    return _LINK.sub(lambda link: _href(place, link["form"]), content)


def _href(place: SitePaths, form: str) -> str:
    return f'data-live-form="{form}" href="{quote(posixpath.basename(getattr(place, form)))}"'


def footer_html(place: SitePaths, more: str) -> str:
    """Return the end of a page as HTML: its downloads, `more` of them, and the button that runs it."""
    return (
        f'<span class="live-downloads">Take it with you: <a {_href(place, "script")} download>script</a>, '
        f"<a {_href(place, 'notebook')} download>notebook</a>, <a {_href(place, 'markdown')}>Markdown</a> {_COPY}"
        f"{more} {_RUN}</span>"
    )
