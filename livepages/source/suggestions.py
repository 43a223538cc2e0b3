"""Suggestions for names that do not exist."""

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[str], similarity: float = 0.6) -> str:
    """The end of a message about an unknown name: a question, empty if no known name resembles it.

    Args:
        word: the name.
        known: the names that exist.
        similarity: from 0 to 1, how much alike the two must be.
    """
    found = difflib.get_close_matches(word, list(known), 1, similarity)
    return f"; did you mean {found[0]!r}?" if found else ""
