"""The limits of outcomes that are shown and kept: longer texts are cut, with a note of how much is left out.

A page, its notebook and its record all use `truncated`, so that they agree; checks use the whole output. The source of
this module goes to readers' kernels, too (`livepages.exporters.kernel_bundle`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a kernel does without
    from livepages.worker import Outcome

# In characters.
LINE = 2_000
OUTPUT = 50_000  # of a block
MESSAGE = 10_000
TRACEBACK = 10_000
FIGURE = 1_000_000


def truncated(outcome: "Outcome") -> "Outcome":
    """Return the outcome with notes in place of output, lines, messages, tracebacks and figures that are too long."""
    raised = outcome.raised and replace(
        outcome.raised,
        message=head(outcome.raised.message, MESSAGE),
        traceback=head_tail(outcome.raised.traceback, TRACEBACK),
    )
    return replace(
        outcome,
        streams=truncated_streams(outcome.streams),
        raised=raised,
        displays=tuple(map(_display, outcome.displays)),
        figures=tuple(map(_figure, outcome.figures)),
    )


def truncated_streams(streams: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the text of each stream, in order, cut off where a block's output is too long."""
    streams = list(streams)
    rest, length = OUTPUT, sum(len(text) for _, text in streams)
    kept: list[tuple[str, str]] = []
    for stream, text in streams:
        if len(text) > rest:
            return *kept, (stream, head(text, rest, length))
        kept.append((stream, head(text, rest)))
        rest, length = rest - len(text), length - len(text)
    return tuple(kept)


def _display(bundle: Mapping[str, str]) -> Mapping[str, str]:
    """Return a display without the representations that are too long; text is always among them."""
    short = {mime: data for mime, data in bundle.items() if len(data) <= FIGURE}
    return {**short, "text/plain": head(bundle["text/plain"], OUTPUT)}


def _figure(svg: str) -> str:
    if len(svg) <= FIGURE:
        return svg
    note = f"This figure is left out: its {len(svg):,} characters would take too long to load."
    style = 'style="fill: var(--live-figure-text, currentColor)"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 32"><text y="20" {style}>{note}</text></svg>'


def head(text: str, limit: int, length: int = 0) -> str:
    """Return the beginning of a text and of each of its lines; the whole text if it is short enough.

    Args:
        text: the text.
        limit: how many characters of it may be left.
        length: how many there are in all, if the text is only the beginning of what is meant.
    """
    rest = max(len(text), length) - limit
    kept = "\n".join(_line(line) for line in text[:limit].split("\n"))
    return kept if rest <= 0 else f"{kept}\n{_note(rest)}"


def head_tail(text: str, limit: int) -> str:
    """Return the beginning and the end of a text, with a note between them; the whole text if it is short enough."""
    if len(text) <= limit:
        return head(text, limit)
    half = limit // 2
    return f"{head(text[:half], half)}\n{_note(len(text) - 2 * half)}\n{head(text[-half:], half)}"


def _line(line: str) -> str:
    return line if len(line) <= LINE else f"{line[:LINE]} {_note(len(line) - LINE)}"


def _note(characters: int) -> str:
    return f"[… {characters:,} more characters are left out]"
