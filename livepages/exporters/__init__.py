"""A page's other forms: script, notebook and Markdown; the feed."""

from livepages.exporters.publisher import OutputFolder, Publication, publish

__all__ = ["OutputFolder", "Publication", "publish"]
