"""Failures as HTML: in the place of a block's result, of a page, or above what is wrong in a page's text."""

import html
import re
from collections.abc import Callable, Sequence

from livepages.execution import Failure, faults_of
from livepages.source import Page
from livepages.worker import escaped


def failure_shown(failure: Failure) -> str:
    """Return a failure as HTML."""
    detail = f"<pre><code>{html.escape(escaped(failure.detail))}</code></pre>" if failure.detail else ""
    where = f"{failure.page}:{failure.line}"
    return (
        f'<div class="admonition failure live-failure"><p class="admonition-title">{html.escape(where)}</p>'
        f"<p>{html.escape(escaped(failure.message))}</p>{detail}</div>"
    )


def failures_shown(failures: Sequence[Failure]) -> str:
    """Return failures as HTML, for a page that cannot be shown otherwise."""
    return f'<div class="live-result">{"".join(map(failure_shown, failures))}</div>'


def with_faults(page: Page, lines: Sequence[str], stash: Callable[[str], str]) -> list[str]:
    """Return the lines of a page, each with the faults above it that are to be shown there.

    Args:
        page: the page.
        lines: those of its text.
        stash: takes HTML and returns a placeholder for it in Markdown.
    """
    found = list(lines)
    for fault, failure in zip(page.faults, faults_of(page), strict=True):
        at = fault.at
        while at and page.text[at - 1].strip():  # a paragraph, list or table stays whole
            at -= 1
        if not any(line.strip() for line in page.text[: at + 1]):  # it is in the front matter
            at = below_title(page.text)
        prefix = re.match(r"[> \t]*", page.text[at])
        found[at] = f"{prefix[0] if prefix else ''}{stash(failures_shown([failure]))}\n\n{found[at]}"
    return found


def below_title(lines: Sequence[str]) -> int:
    """Return the number of the line below the title of a page, whose place in the page Markdown's readers rely on."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    return min(first + lines[first].startswith("# "), len(lines) - 1)
