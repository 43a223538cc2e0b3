"""How much of a text is shown and kept; of a longer one a part, with a note of how much is left out."""

# In characters.
LINE = 2_000
OUTPUT = 50_000  # of a block
MESSAGE = 10_000
TRACEBACK = 10_000
FIGURE = 1_000_000


def head(text: str, limit: int, length: int = 0) -> str:
    """The beginning of a text and of each of its lines; the whole text if it is short enough.

    Args:
        text: the text.
        limit: how many characters of it may be left.
        length: how many there are in all, if the text is only the beginning of what is meant.
    """
    rest = max(len(text), length) - limit
    kept = "\n".join(_line(line) for line in text[:limit].split("\n"))
    return kept if rest <= 0 else f"{kept}\n{_note(rest)}"


def head_tail(text: str, limit: int) -> str:
    """The beginning and the end of a text, with a note between them; the whole text if it is short enough."""
    if len(text) <= limit:
        return head(text, limit)
    half = limit // 2
    return f"{head(text[:half], half)}\n{_note(len(text) - 2 * half)}\n{head(text[-half:], half)}"


def _line(line: str) -> str:
    return line if len(line) <= LINE else f"{line[:LINE]} {_note(len(line) - LINE)}"


def _note(characters: int) -> str:
    return f"[… {characters:,} more characters are left out]"
