"""A page's other forms: script, notebook and Markdown; the feed."""

from livepages.exporters.html_to_markdown import as_markdown
from livepages.exporters.publisher import OutputFolder, Publication, publish

__all__ = ["OutputFolder", "Publication", "as_markdown", "publish"]
