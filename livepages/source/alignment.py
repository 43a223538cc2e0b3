"""The lines of a text that a plugin has changed, by those of the text before."""

from collections.abc import Sequence
from difflib import SequenceMatcher


def align(lines: Sequence[str], before: Sequence[str], origin: Sequence[int]) -> list[int]:
    """Return the best line number there is for each line of a text that a plugin has changed.

    Args:
        lines: the text as it is now.
        before: the text as it was.
        origin: the line number of each of its lines.
    """
    numbers: list[int] = []
    for kind, i, j, start, end in SequenceMatcher(None, before, lines, autojunk=False).get_opcodes():
        if kind == "equal":
            numbers += origin[i:j]
        else:
            numbers += [origin[min(i, len(origin) - 1)]] * (end - start)
    return numbers
