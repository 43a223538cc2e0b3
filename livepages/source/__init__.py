"""Markdown text to a `Page`: its blocks, each with code, options, line numbers and key; settings; the names in code.

Knows nothing of how code runs.
"""

from livepages.source.comments import parse_mark
from livepages.source.fences import LineError, fenced, find_fences, with_bare_fences
from livepages.source.markdown_exec import own_options
from livepages.source.mkdocs_yml import ProjectError, named, read_configuration
from livepages.source.names import Inventory, PageNames, Use, read_inventories
from livepages.source.options import Affects
from livepages.source.page import Block, Fault, Page, PageError
from livepages.source.parser import changed_page, read_page
from livepages.source.project import (
    MARKDOWN,
    NoProjectError,
    Project,
    find_project,
    lists_extension,
    site_project,
)
from livepages.source.snippets import includes
from livepages.source.suggestions import closest
from livepages.source.superfences import EXECUTED

__all__ = [
    "EXECUTED",
    "MARKDOWN",
    "Affects",
    "Block",
    "Fault",
    "Inventory",
    "LineError",
    "NoProjectError",
    "Page",
    "PageError",
    "PageNames",
    "Project",
    "ProjectError",
    "Use",
    "changed_page",
    "closest",
    "fenced",
    "find_fences",
    "find_project",
    "includes",
    "lists_extension",
    "named",
    "own_options",
    "parse_mark",
    "read_configuration",
    "read_inventories",
    "read_page",
    "site_project",
    "with_bare_fences",
]
