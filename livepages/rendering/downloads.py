"""The links to the other forms of a page, and the button that runs it."""

import posixpath
import re
from urllib.parse import quote

from livepages.course import OutputPaths

_LINK = re.compile(r'data-live-form="(?P<form>\w+)" href="[^"]*"')
# It is shown where the style sheet is that comes with the script that serves it.
RUN = '<button type="button" class="live-here" hidden>run it here</button>'


def downloads(place: OutputPaths) -> str:
    """Return links from a page to its script, its notebook and its Markdown, as HTML."""
    return (
        f"<a {_href(place, 'script')} download>script</a>, <a {_href(place, 'notebook')} download>notebook</a>, "
        f"<a {_href(place, 'markdown')}>Markdown</a>"
    )


def restore_downloads(html: str, place: OutputPaths) -> str:
    """Return a page's HTML in which `downloads` lead where they should, after a program that has changed all links."""
    return _LINK.sub(lambda link: _href(place, link["form"]), html)


def _href(place: OutputPaths, form: str) -> str:
    return f'data-live-form="{form}" href="{quote(posixpath.basename(getattr(place, form)))}"'


def at_end(place: OutputPaths) -> str:
    """Return what stands at the end of a page that has these nowhere else, as HTML."""
    return f'<span class="live-downloads">Take it with you: {downloads(place)} {RUN}</span>'
