"""Turns a block and its outcome into what a page shows; links and mathematics; the status of all pages."""

from livepages.render import status
from livepages.render.blocks import anchors, failures_shown, missing, page_lines, slim, stamp, unmarked
from livepages.render.links import Hints, NameLinks

__all__ = [
    "Hints",
    "NameLinks",
    "anchors",
    "failures_shown",
    "missing",
    "page_lines",
    "slim",
    "stamp",
    "status",
    "unmarked",
]
