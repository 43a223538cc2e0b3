"""A Markdown extension that sets formulas as MathML, which browsers draw and read aloud without any script.

``pymdownx.arithmatex`` (with `generic: true`) finds the formulas, between dollar signs as in TeX; this module converts
them.
"""

import html
import re
import unicodedata
from itertools import pairwise
from xml.etree.ElementTree import Element, tostring
from xml.sax.saxutils import unescape

from latex2mathml.converter import convert_to_element
from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

# Each with the punctuation around it.
_FORMULA = re.compile(r'([(\[]*)<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\2>([^\w\s<&]*)', re.DOTALL)
_NAME = re.compile(r"[^\W\d_]{2}")
_SCRIPTS = ("msub", "msup", "msubsup", "munder", "mover", "munderover")
_CLOSING = (")", "]", "}", "!")
_RELATION = {"lspace": "0.2778em", "rspace": "0.2778em"}  # of those that browsers take for an accent


class FormulaError(Exception):
    """A formula that cannot be set; the message quotes it."""

    def __init__(self, tex: str, why: str) -> None:
        super().__init__(f"the formula {tex!r} {why}")
        self.tex = tex


class MathMLExtension(Extension):
    """An extension without options."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  (the name is Python-Markdown's)
        """Register what turns formulas, after stashed HTML is back in place (30)."""
        md.postprocessors.register(_Formulas(md), "livepages.mathml", 5)


class _Formulas(Postprocessor):
    """Sets formulas. One that cannot be set ends the conversion, unless another extension collects the `errors`."""

    errors: list[FormulaError] | None = None

    def run(self, text: str) -> str:
        return _FORMULA.sub(self._set, text)

    def _set(self, formula: re.Match[str]) -> str:
        before, tag, opening, tex, after = formula.groups()
        try:
            mathml = _mathml(html.unescape(tex).strip(), "block" if opening == "[" else "inline")
        except FormulaError as error:
            if self.errors is None:
                raise
            self.errors.append(error)
            return formula[0]
        whole = f'{before}<{tag} class="live-formula" data-search-exclude>{mathml}</{tag}>{after}'
        # Browsers would end a line between a formula and the comma after it.
        return f'<span style="white-space: nowrap">{whole}</span>' if tag == "span" and before + after else whole


def _mathml(tex: str, display: str) -> str:
    if len(re.findall(r"(?<!\\){", tex)) != len(re.findall(r"(?<!\\)}", tex)):
        raise FormulaError(tex, "has a brace too many or too few")
    try:
        tree = convert_to_element(tex, display=display)
    except Exception as error:
        raise FormulaError(tex, f"cannot be set: {type(error).__name__}") from error
    for part in tree.iter("mi"):
        if unicodedata.category(_text(part)[:1] or "x") in ("Sm", "Ps", "Pe"):  # a relation or a bracket, no name
            part.tag = "mo"
            part.attrib |= _RELATION if _text(part) == "~" else {}
    for row in tree.iter():
        if row.tag in ("mrow", "mstyle", "mtd"):
            _space(row)
    mathml = unescape(tostring(tree, encoding="unicode"))  # its texts are written with references to characters
    if unknown := re.search(r">(\\[A-Za-z]+)<", mathml):
        raise FormulaError(tex, f"has a command that is not known: {unknown[1]}")
    return mathml


def _space(row: Element) -> None:
    """Put thin spaces beside the names of functions where TeX does: "r cos t", but "-cos(t)"."""
    for place, (left, right) in reversed(list(enumerate(pairwise(row), start=1))):
        if (_is_name(left) and not _is_operator(right, 0)) or (_is_name(right) and not _is_operator(left, -1)):
            row.insert(place, Element("mspace", {"width": "0.1667em"}))


def _is_name(part: Element) -> bool:
    """Return whether this is the name of a function, perhaps with an index or an exponent."""
    while part.tag in _SCRIPTS:
        part = part[0]
    return part.tag == "mi" and bool(_NAME.match(_text(part)))


def _is_operator(part: Element, end: int) -> bool:
    """Return whether this begins (`end` is 0) or ends (-1) with its own space, or with an opening parenthesis."""
    while part.tag in (*_SCRIPTS, "mrow") and len(part):
        part = part[end if part.tag == "mrow" else 0]
    return part.tag == "mspace" or (part.tag == "mo" and not (end and _text(part) in _CLOSING))


def _text(part: Element) -> str:
    return html.unescape(part.text or "")
