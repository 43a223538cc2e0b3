"""A page's other forms: script, notebook and Markdown; the feed."""

from livepages.exporters.publisher import Publication, publish

__all__ = ["Publication", "publish"]
