"""A page's other forms: script, notebook and Markdown; the feed."""

from livepages.export.publication import Publication, publish

__all__ = ["Publication", "publish"]
