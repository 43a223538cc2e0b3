"""A page's other forms: script, notebook and Markdown; the feed."""

from livepages.export.publication import publish

__all__ = ["publish"]
