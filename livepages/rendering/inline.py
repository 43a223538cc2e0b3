"""Inline expressions: a page's prose with the value of each in its place."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from livepages.course import Stash
from livepages.execution import BlockResult, Failure, Run
from livepages.records import RecordedOutcome, Seen, newest
from livepages.source import Page

LEFT = re.compile(r"<code>\{python\}\s")  # what Markdown makes of an inline expression that is still there


def fill_inline(lines: Sequence[str], run: Run, text_of: Callable[[BlockResult], str]) -> list[str]:
    """Return the lines of a page's text with what `text_of` returns of each inline expression in its place."""
    found = list(lines)
    for result in reversed(run.inline_expressions):  # so that the columns of those before it stay as they are
        at, (start, end) = result.block.fence.start, result.block.columns or (0, 0)
        found[at] = found[at][:start] + text_of(result) + found[at][end:]
    return found


def fill_inline_as_markdown(page: Page, run: Run) -> Page:
    """Return a page whose text has values in the places of inline expressions, in Markdown that any program reads."""
    return replace(page, text=tuple(fill_inline(page.text, run, _markdown))) if page.inline_expressions else page


def inline_html(seen: Seen, stash: Stash) -> Callable[[BlockResult], str]:
    """Return a function from the result of an inline expression to its HTML: its value, as it is or was recorded, its
    failure, or its code with the reason why there is no value.
    """

    def text_of(result: BlockResult) -> str:
        if result.failure:
            message = html.escape(result.failure.message)
            return stash(f'<strong class="live-inline live-failed">{message}</strong>')
        text, why = _text(result, seen(result.block)), ""
        if not text:
            text, why = result.block.code, result.outcome.skipped or "Running …"
        title = f' title="{html.escape(why)}"' if why else ""
        tag = "code" if why else "span"
        return stash(f'<{tag} class="live-inline"{title}>{html.escape(text)}</{tag}>')

    return text_of


def _markdown(result: BlockResult) -> str:
    text = _text(result, ())
    return re.sub(r"([\\`*_<\[|$])", r"\\\1", text) if text else f"`{result.block.code}`"


def _text(result: BlockResult, seen: Sequence[RecordedOutcome]) -> str:
    """The value in one line, from the newest record where it has not run; empty if there is none."""
    text = result.truncated.stdout
    if result.failure or result.outcome.pending or result.outcome.skipped:
        recorded = newest(seen)
        text = recorded.entry.stdout if recorded else ""
    return " ".join(text.split())


def unfilled_inline(page: Page, content: str) -> list[Failure]:
    """Return a failure if the HTML of a page shows an expression as code that the page does not know."""
    message = "the Markdown around an inline expression keeps it from being shown; put it into a paragraph of its own"
    for rest in LEFT.split(content)[1:]:
        expression = html.unescape(rest.partition("</code>")[0])
        line = next((number for number, text in enumerate(page.source.split("\n"), 1) if expression in text), 1)
        if all(expression not in fault.message for fault in page.faults):  # reported already
            return [Failure(page.name, line, 0, f"`{{python}} {expression}`: {message}")]
    return []
