"""A word is explained once: the tooltips of `snippets/terms.md` are the sentences of the glossary."""

import re
from pathlib import Path

from livepages.source import find_project

PROJECT = find_project(Path(__file__))

# Words that readers know from NumPy, that occur in most paragraphs, or that also have an ordinary meaning: a tooltip at
# each would be in the way, or wrong.
EVERYDAY = "carry, device, dtype, gradient, host, key, mask, reference, residual, tracing"


def glossary() -> dict[str, str]:
    """The sentence of each entry."""
    text = (PROJECT.docs / "lookup/glossary.md").read_text()
    return dict(re.findall(r"^## (.+)\n\n(.+)\n\n```python", text, re.MULTILINE))


def singular(form: str, words: dict[str, str]) -> str:
    """The entry that a form of a word belongs to."""
    return next(word for word in (form, form.removesuffix("s"), form.removesuffix("es")) if word in words)


def test_tooltips_are_the_sentences_of_the_glossary() -> None:
    words = glossary()
    text = (PROJECT.snippets / "terms.md").read_text()
    lines = text.splitlines()
    shown = dict(re.findall(r"^\*\[(.+)\]: (.+)$", text, re.MULTILINE))
    assert len(shown) == len(lines)
    assert shown == {form: words[singular(form, words)].replace("`", "") for form in shown}
    assert lines == sorted(lines, key=str.lower)
    assert {singular(form, words) for form in shown} | set(EVERYDAY.split(", ")) == words.keys()


def test_entries_are_in_order_and_one_sentence() -> None:
    words = glossary()
    assert list(words) == sorted(words, key=str.lower)
    assert all(
        re.fullmatch(r"[A-Z][^.]+\.", sentence.replace("jax.vmap", "").replace(".at", ""))
        for sentence in words.values()
    )
