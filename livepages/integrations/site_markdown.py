"""The support of a site's Markdown for fences, tabs and includes."""

from pathlib import Path
from typing import Any

from markdown import Markdown

from livepages.execution import Failure
from livepages.rendering import FenceSupport
from livepages.source import Page, Project


def fence_support(md: Markdown) -> FenceSupport:
    """Return which fences the site's Markdown shows as code."""
    if "fenced_code_block" not in md.preprocessors:
        return "none"
    reader: Any = md.preprocessors["fenced_code_block"]
    if not hasattr(reader, "get_hl_settings"):  # it is not pymdownx.superfences
        return "outer"
    reader.get_hl_settings()
    return "all" if reader.use_pygments else "bare"


def without_tabs(md: Markdown, page: Page) -> list[Failure]:
    """Return a failure for each block that asks for tabs where the site's Markdown makes none."""
    if "tabbed" in md.parser.blockprocessors:
        return []
    message = "option source: the site's Markdown makes no tabs; add pymdownx.tabbed to markdown_extensions"
    blocks = (block for block in page.blocks if block.options.source.startswith("tabbed"))
    return [Failure(page.name, block.line, block.line, message) for block in blocks]


def lacking(md: Markdown, project: Project, include: str, wanted: str, found: str) -> str:
    """Return what the site's Markdown does not do with an include, and how to change that; empty if nothing."""
    folder = project.name(project.snippets)
    if "8<-" in found:
        return f"read {include}; add pymdownx.snippets to markdown_extensions, with base_path: [{folder}]"
    if "snippet" in md.preprocessors:
        reader: Any = md.preprocessors["snippet"]
        if project.snippets.resolve() not in [Path(base).resolve() for base in reader.base_path]:
            return f"find {include}; add {folder} to base_path of pymdownx.snippets"
        if found.strip() == wanted.strip():
            return f"take the indentation off {include}; add dedent_subsections: true to pymdownx.snippets"
    return ""
