"""Failures as HTML: instead of a block's result or of a page, or above the wrong lines of a page's text."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from livepages.course import Stash
from livepages.execution import Failure, as_failures, count
from livepages.source import Page
from livepages.worker import escaped


def failure_html(failure: Failure) -> str:
    """Return a failure as HTML."""
    detail = f"<pre><code>{html.escape(escaped(failure.detail))}</code></pre>" if failure.detail else ""
    where = f"{failure.page}:{failure.line}"
    return (
        f'<div class="admonition failure live-failure"><p class="admonition-title">{html.escape(where)}</p>'
        f"<p>{html.escape(escaped(failure.message))}</p>{detail}</div>"
    )


def failures_html(failures: Sequence[Failure]) -> str:
    """Return failures as HTML, for a page that cannot be shown otherwise."""
    return f'<div class="live-result">{"".join(map(failure_html, failures))}</div>'


@dataclass(frozen=True)
class Failing:
    """A place of a page at which something fails."""

    line: int
    what: str  # is there: a block, an inline expression, or a line
    anchor: str = ""  # of the block
    why: str = ""  # if the page does not show it


def with_failing(content: str, failing: Iterable[Failing]) -> str:
    """Return the HTML of a page with a line below its title that counts what fails, and links the blocks."""
    places = sorted({(place.line, place.what): place for place in failing}.values(), key=lambda place: place.line)
    if not places:
        return content
    numbers = Counter(place.what for place in places)
    counts = ", ".join(count(number, what) for what, number in sorted(numbers.items()))
    lines = ", ".join(_linked(place, content) for place in places)
    text = f"{counts} of this page {'fails' if len(places) == 1 else 'fail'}: {lines}"
    at = content.find("</h1>") + len("</h1>") if "</h1>" in content else 0
    return f'{content[:at]}<p class="live-failing" data-search-exclude>{text}</p>{content[at:]}'


def _linked(place: Failing, content: str) -> str:
    anchor, text = html.escape(place.anchor), f"line {place.line}"
    if anchor and f'id="{anchor}"' in content:
        text = f'<a href="#{anchor}">{text}</a>'
    return f"{text} ({html.escape(place.why)})" if place.why else text


def with_faults(page: Page, lines: Sequence[str], stash: Stash) -> list[str]:
    """Return the lines of a page's text, each with the faults above it that are to be shown there."""
    found = list(lines)
    for fault, failure in zip(page.faults, as_failures(page.name, page.faults), strict=True):
        at = fault.at
        while at and page.text[at - 1].strip():  # a paragraph, list or table stays whole
            at -= 1
        if not any(line.strip() for line in page.text[: at + 1]):  # it is in the front matter
            at = below_title(page.text)
        prefix = re.match(r"[> \t]*", page.text[at])
        found[at] = f"{prefix[0] if prefix else ''}{stash(failures_html([failure]))}\n\n{found[at]}"
    return found


def below_title(lines: Sequence[str]) -> int:
    """Return the number of the line below the title of a page, which must stay the first."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    return min(first + lines[first].startswith("# "), len(lines) - 1)
