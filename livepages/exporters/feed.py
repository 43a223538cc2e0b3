"""The site's pages as an Atom feed (RFC 4287), the last changed first."""

from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring


@dataclass(frozen=True)
class FeedEntry:
    """One page of the feed."""

    title: str
    url: str
    day: str  # of its last change, as ``2026-11-21``
    summary: str


def feed(name: str, description: str, url: str, entries: Iterable[FeedEntry]) -> str:
    """The text of the feed.

    Args:
        name: of the site.
        description: of the site.
        url: of the site, with a slash at its end; the feed is ``feed.xml`` below it.
        entries: the pages, in any order.
    """
    newest = sorted(sorted(entries, key=lambda entry: entry.url), key=lambda entry: entry.day, reverse=True)
    root = Element("feed", xmlns="http://www.w3.org/2005/Atom")
    _texts(root, id=url, title=name, subtitle=description, updated=_moment(newest[0].day if newest else "1970-01-01"))
    SubElement(root, "link", rel="self", type="application/atom+xml", href=f"{url}feed.xml")
    SubElement(root, "link", rel="alternate", type="text/html", href=url)
    _texts(SubElement(root, "author"), name=name)
    for entry in newest:
        element = SubElement(root, "entry")
        _texts(element, id=entry.url, title=entry.title, updated=_moment(entry.day), summary=entry.summary)
        SubElement(element, "link", rel="alternate", type="text/html", href=entry.url)
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _texts(parent: Element, **texts: str) -> None:
    for name, text in texts.items():
        if text:
            SubElement(parent, name).text = text


def _moment(day: str) -> str:
    return f"{day}T00:00:00Z"
