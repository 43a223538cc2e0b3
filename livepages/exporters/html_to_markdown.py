"""HTML that a block has printed, as Markdown: its text, code, links and tables, without its layout."""

import re
from html.parser import HTMLParser

from livepages.source import fenced

_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_LEFT_OUT = {"button", "head", "input", "script", "select", "style", "svg", "template"}
_CODE = {"code", "kbd", "pre", "samp"}
_MARKS = {"b": "**", "strong": "**", "em": "*", "i": "*"} | {f"h{level}": "**" for level in range(1, 7)}
_INLINE = {"a", "abbr", "b", "cite", "em", "i", "label", "mark", "small", "span", "strong", "sub", "sup", "time", "u"}


def as_markdown(html: str) -> str:
    """Return the Markdown of a piece of HTML; empty if it has no text."""
    reader = _Converter()
    reader.feed(html)
    reader.close()
    return reader.end()


class _Converter(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[list[str]] = [[]]  # finished paragraphs, code and tables: of the whole, then of an open cell
        self._text = ""  # of the paragraph that is open
        self._ended = 0  # where in it an element has ended, after which code needs a gap
        self._code: list[str] = []  # the elements of code that are open, the outermost first
        self._coded = ""
        self._links: list[str] = []
        self._rows: list[list[str]] = []  # of the table that is open
        self._left_out = 0  # how many elements are open of which nothing is shown

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        hidden = "hidden" in values or values.get("aria-hidden") == "true" or values.get("class") == "headerlink"
        if self._left_out or tag in _LEFT_OUT or hidden:
            self._left_out += tag not in _VOID
            return
        if tag in _CODE:
            self._code.append(tag)
            return
        if self._code or tag == "wbr":
            return
        if tag not in _INLINE:
            self._paragraph()
        if tag == "a":
            self._links.append(values.get("href") or "")
            self._text += "[" if self._leads_away() else ""
        elif tag == "li":
            self._text = "- "
        elif tag == "table":
            self._rows = []
        elif tag == "tr":
            self._end_cell()
            self._rows.append([])
        elif tag in ("td", "th"):
            self._end_cell()
            self._blocks.append([])
        self._text += _MARKS.get(tag, "")

    def handle_endtag(self, tag: str) -> None:
        if self._left_out:
            self._left_out -= 1
            return
        if tag in _CODE and self._code:
            self._code.pop()
            if not self._code:
                self._end_code(tag == "pre")
            return
        if self._code:
            return
        if mark := _MARKS.get(tag, ""):
            self._text = self._text.removesuffix(mark) if self._text.endswith(mark) else self._text + mark
            self._ended = len(self._text)
        if tag == "a" and self._links:
            self._text += f"]({self._links[-1]})" if self._leads_away() else ""
            self._links.pop()
        if tag not in _INLINE:
            self._paragraph()
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()
        if tag == "table" and self._rows:
            self._end_table()

    def handle_data(self, data: str) -> None:
        if self._left_out:
            return
        if self._code:
            self._coded += data
        else:
            self._text += re.sub(r"([*`<\\])", r"\\\1", re.sub(r"\s+", " ", data))

    def end(self) -> str:
        """Return everything read so far as Markdown."""
        self._paragraph()
        return "\n\n".join(block for blocks in self._blocks for block in blocks)

    def _leads_away(self) -> bool:
        """Return whether the innermost link leads to another site: within this one, Markdown has other addresses."""
        return bool(self._links) and self._links[-1].startswith(("https://", "http://"))

    def _paragraph(self) -> None:
        text = self._text.strip()
        if text not in ("", "-"):
            self._blocks[-1].append(text)
        self._text, self._ended = "", 0

    def _end_code(self, block: bool) -> None:
        code, self._coded = self._coded.strip("\n"), ""
        if not code.strip():
            return
        if "\n" not in code and not block:
            gap = " " if self._text and self._ended == len(self._text) else ""
            self._text += gap + (f"`` {code} ``" if "`" in code else f"`{code}`")
            self._ended = len(self._text)
            return
        self._paragraph()
        if len(self._blocks) > 1:
            self._blocks[-1] += [f"`{line}`" for line in code.split("\n") if line.strip()]
        else:
            self._blocks[-1].append(fenced(code, "text"))

    def _end_cell(self) -> None:
        if len(self._blocks) > 1:
            content = "<br>".join(self._blocks.pop()).replace("\n", " ").replace("|", "\\|")
            self._rows = self._rows or [[]]
            self._rows[-1].append(content)

    def _end_table(self) -> None:
        width = max(map(len, self._rows))
        head, *rows = ([*row, *[""] * (width - len(row))] for row in self._rows)
        lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * width, *rows)]
        self._blocks[-1].append("\n".join(lines))
        self._rows = []
