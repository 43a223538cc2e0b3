"""A page's other forms: script, notebook and Markdown; the feed."""

from livepages.exporters.html_to_markdown import as_markdown
from livepages.exporters.publisher import Publication, SiteFolder

__all__ = ["Publication", "SiteFolder", "as_markdown"]
