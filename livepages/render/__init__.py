"""A block and its outcome to what stands in a page; links and mathematics; the status of all pages."""

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
