"""Turn a block and its outcome into what a page shows; links and mathematics; the status of all pages."""

from livepages.rendering import status
from livepages.rendering.blocks import (
    FenceSupport,
    anchors,
    anchors_made,
    figures_shown,
    missing,
    not_shown,
    page_lines,
    stamp,
    unmarked,
)
from livepages.rendering.downloads import at_end, head_links, restore_downloads
from livepages.rendering.explorables import explorable
from livepages.rendering.failures import Failing, below_title, failures_shown, with_failing, with_faults
from livepages.rendering.links import NameLinks
from livepages.rendering.mime import RenderError
from livepages.rendering.values import value_html, values_left, with_plain_values, with_values

__all__ = [
    "Failing",
    "FenceSupport",
    "NameLinks",
    "RenderError",
    "anchors",
    "anchors_made",
    "at_end",
    "below_title",
    "explorable",
    "failures_shown",
    "figures_shown",
    "head_links",
    "missing",
    "not_shown",
    "page_lines",
    "restore_downloads",
    "stamp",
    "status",
    "unmarked",
    "value_html",
    "values_left",
    "with_failing",
    "with_faults",
    "with_plain_values",
    "with_values",
]
