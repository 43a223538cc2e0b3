"""The links to the other forms of a page, and the buttons that copy and run it."""

import posixpath
import re
from urllib.parse import quote

from livepages.course import OutputPaths

_LINK = re.compile(r'data-live-form="(?P<form>\w+)" href="[^"]*"')
# It is shown where the style sheet is that comes with the script that serves it.
_RUN = '<button type="button" class="live-offer live-here" hidden>run it here</button>'


# It copies what the link before it leads to.
_COPY = '<button type="button" class="live-offer live-take" aria-label="copy as Markdown" hidden>(copy)</button>'


def _downloads(place: OutputPaths) -> str:
    """Return links from a page to its script, its notebook and its Markdown, which a button copies, as HTML."""
    return (
        f"<a {_href(place, 'script')} download>script</a>, <a {_href(place, 'notebook')} download>notebook</a>, "
        f"<a {_href(place, 'markdown')}>Markdown</a> {_COPY}"
    )


def head_links(place: OutputPaths) -> str:
    """Return what programs look for in the head of a page: its Markdown, and the contents of the site, as HTML."""
    # A blank in `rel` means nothing, but Material's script compares all of the attribute. Without it the script would
    # take the Markdown for the page in another language, and ask for the map of that site.
    markdown = quote(posixpath.basename(place.markdown))
    whole = posixpath.relpath("llms.txt", place.folder or ".")
    return (
        f'<link rel="alternate " type="text/markdown" href="{markdown}">'
        f'<link rel="describedby" type="text/plain" href="{whole}">'
    )


def restore_downloads(html: str, place: OutputPaths) -> str:
    """Return a page's HTML whose downloads are linked as they should, after a program that has changed all links."""
    return _LINK.sub(lambda link: _href(place, link["form"]), html)


def _href(place: OutputPaths, form: str) -> str:
    return f'data-live-form="{form}" href="{quote(posixpath.basename(getattr(place, form)))}"'


def at_end(place: OutputPaths, more: str) -> str:
    """Return what stands at the end of a page, as HTML: its downloads, `more` of them, and the button that runs it."""
    return f'<span class="live-downloads">Take it with you: {_downloads(place)}{more} {_RUN}</span>'
