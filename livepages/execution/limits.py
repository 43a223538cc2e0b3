"""An outcome as it is shown and kept, whatever its size.

All that shows or keeps one does so through `truncated`, so that a page, its notebook and its record say the same.
Whether a block did what its page says is judged by all that it gave.
"""

from collections.abc import Mapping
from dataclasses import replace

from livepages.execution.truncate import FIGURE, MESSAGE, OUTPUT, TRACEBACK, head, head_tail
from livepages.worker import Outcome


def truncated(outcome: Outcome) -> Outcome:
    """Return the outcome with notes in place of what is too long: output, lines of it, message, traceback, figures."""
    raised = outcome.raised and replace(
        outcome.raised,
        message=head(outcome.raised.message, MESSAGE),
        traceback=head_tail(outcome.raised.traceback, TRACEBACK),
    )
    return replace(
        outcome,
        output=_output(outcome),
        raised=raised,
        displays=tuple(map(_display, outcome.displays)),
        figures=tuple(map(_figure, outcome.figures)),
    )


def _output(outcome: Outcome) -> tuple[tuple[str, str], ...]:
    rest, length = OUTPUT, sum(len(text) for _, text in outcome.output)
    kept: list[tuple[str, str]] = []
    for stream, text in outcome.output:
        if len(text) > rest:
            return *kept, (stream, head(text, rest, length))
        kept.append((stream, head(text, rest)))
        rest, length = rest - len(text), length - len(text)
    return tuple(kept)


def _display(bundle: Mapping[str, str]) -> Mapping[str, str]:
    """What is shown, without the representations that are too long; text is always among them."""
    short = {mime: data for mime, data in bundle.items() if len(data) <= FIGURE}
    return {**short, "text/plain": head(bundle["text/plain"], OUTPUT)}


def _figure(svg: str) -> str:
    if len(svg) <= FIGURE:
        return svg
    note = f"This figure is left out: its {len(svg):,} characters would take too long to load."
    style = 'style="fill: var(--live-figure-text, currentColor)"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 32"><text y="20" {style}>{note}</text></svg>'
