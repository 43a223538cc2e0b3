"""A Markdown extension that sets formulas as MathML, which browsers draw and read aloud without any script.

``pymdownx.arithmatex`` (with `generic: true`) finds them, between dollar signs as in TeX; this turns them.
"""

import html
import re

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


class FormulaError(Exception):
    """A formula that cannot be set; the message quotes it."""

    def __init__(self, tex: str, why: str) -> None:
        super().__init__(f"the formula {tex!r} {why}")
        self.tex = tex


class MathMLExtension(Extension):
    """Has no options."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  (the name is Python-Markdown's)
        """Register what turns formulas, after stashed HTML is back in place (30)."""
        md.postprocessors.register(_Formulas(md), "livepages.mathml", 5)


class _Formulas(Postprocessor):
    """Sets formulas. One that cannot be set ends the conversion, unless another extension collects the `errors`."""

    errors: list[FormulaError] | None = None

    def run(self, text: str) -> str:
        return _FORMULA.sub(self._set, text)

    def _set(self, formula: re.Match[str]) -> str:
        try:
            return _mathml(formula)
        except FormulaError as error:
            if self.errors is None:
                raise
            self.errors.append(error)
            return formula[0]


def _mathml(formula: re.Match[str]) -> str:
    tag, opening, tex = formula.groups()
    tex = html.unescape(tex).strip()
    if len(re.findall(r"(?<!\\){", tex)) != len(re.findall(r"(?<!\\)}", tex)):
        raise FormulaError(tex, "has a brace too many or too few")
    try:
        mathml = convert(tex, display="block" if opening == "[" else "inline")
    except Exception as error:
        raise FormulaError(tex, f"cannot be set: {type(error).__name__}") from error
    if unknown := re.search(r">(\\[A-Za-z]+)<", mathml):
        raise FormulaError(tex, f"has a command that is not known: {unknown[1]}")
    return f'<{tag} class="live-formula" data-search-exclude>{mathml}</{tag}>'
