"""Removal of what pages do without: marks, links and explanations that cost a phone time and tell readers nothing."""

import re
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from markdown.util import AMP_SUBSTITUTE

from livepages.source import MARKDOWN


def hint_sparingly(root: Element) -> None:
    """Have the theme show something where a reader points only where it helps.

    That is what a link to another page leads to, and a word's explanation, except under a heading that is this word and
    in such a link, which shows only one of both.
    The theme can do so for all links and titles, but each takes time when a page arrives, which on a phone is long.
    """
    sign = f"{AMP_SUBSTITUTE}para;"  # of a heading's link to itself
    headings = {"".join(heading.itertext()).removesuffix(sign).casefold() for heading in root.iter("h2")}
    for word in [*root.iter("abbr")]:
        if "".join(word.itertext()).casefold() in headings:
            word.tag, word.attrib = "span", {}
    for link in root.iter("a"):
        to = urlsplit(link.get("href", ""))
        if link.get("class") == "headerlink" and "title" in link.attrib:
            link.set("aria-label", link.attrib.pop("title"))
        elif not to.scheme and to.path.endswith(MARKDOWN):
            link.set("data-preview", "")
            for word in [*link.iter("abbr")]:
                word.tag, word.attrib = "span", {}


def without_marks(content: str) -> str:
    """Return a page's HTML without code's marks of names, signs and blanks, which look like text, and without the
    explanations of a word but for the first one in a section."""
    content = content.replace("<pre><span></span>", "<pre>")
    content = re.sub(r'<span class="(?:n|nn|o|p|w)">([^<]*)</span>', r"\1", content)
    explained: set[str] = set()

    def keep(found: re.Match[str]) -> str:
        if found["word"] is None:
            explained.clear()
        elif found["means"] in explained:
            return found["word"]
        else:
            explained.add(found["means"])
        return found[0]

    return re.sub(r'<h[12]\b|<abbr title="(?P<means>[^"]*)">(?P<word>.*?)</abbr>', keep, content)
