"""HTML and Markdown of results, failures, links and formulas, and the status of all pages."""

from livepages.rendering import status
from livepages.rendering.anchors import anchors, anchors_of_run
from livepages.rendering.downloads import footer_html, head_links, restore_downloads, stamp
from livepages.rendering.explorables import explorable
from livepages.rendering.failures import Failing, below_title, failures_html, with_failing, with_faults
from livepages.rendering.inline import fill_inline, fill_inline_as_markdown, inline_html, unfilled_inline
from livepages.rendering.links import NameLinks
from livepages.rendering.mime import RenderError
from livepages.rendering.missing import missing, unmarked
from livepages.rendering.pages import FenceSupport, page_lines
from livepages.rendering.results import absence_html, figures_html

__all__ = [
    "Failing",
    "FenceSupport",
    "NameLinks",
    "RenderError",
    "absence_html",
    "anchors",
    "anchors_of_run",
    "below_title",
    "explorable",
    "failures_html",
    "figures_html",
    "fill_inline",
    "fill_inline_as_markdown",
    "footer_html",
    "head_links",
    "inline_html",
    "missing",
    "page_lines",
    "restore_downloads",
    "stamp",
    "status",
    "unfilled_inline",
    "unmarked",
    "with_failing",
    "with_faults",
]
