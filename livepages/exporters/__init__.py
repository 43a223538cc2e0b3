"""A page's other forms: script, notebook and Markdown; the feed."""

from livepages.exporters.html_to_markdown import as_markdown
from livepages.exporters.publisher import Memo, Publication, SiteFolder, no_memo

__all__ = ["Memo", "Publication", "SiteFolder", "as_markdown", "no_memo"]
