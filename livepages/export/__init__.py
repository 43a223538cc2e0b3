"""A page's other forms: script, notebook and Markdown; the feed."""

from livepages.export.publication import Kept, publish

__all__ = ["Kept", "publish"]
