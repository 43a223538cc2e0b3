"""Markdown text to a `Page`: its blocks, each with code, options, line numbers and key; settings; the names in code.

Knows nothing of how code runs.
"""

from livepages.source.fences import find_fences, includes
from livepages.source.names import Inventory, PageNames, Use, read_inventories
from livepages.source.options import Affects
from livepages.source.page import Block, Page, PageError, read_page
from livepages.source.project import MARKDOWN, NoProjectError, Project, ProjectError, find_project
from livepages.source.suggestions import closest

__all__ = [
    "MARKDOWN",
    "Affects",
    "Block",
    "Inventory",
    "NoProjectError",
    "Page",
    "PageError",
    "PageNames",
    "Project",
    "ProjectError",
    "Use",
    "closest",
    "find_fences",
    "find_project",
    "includes",
    "read_inventories",
    "read_page",
]
