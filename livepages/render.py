"""A block and its outcome to what stands in the page: Markdown for the source, HTML for what running it gave.

The layout of source and result is markdown-exec's (`add_source`), and so are the words for it; not its execution.
"""

import html
import re
from collections.abc import Callable

from markdown_exec import add_source
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from livepages.outcome import ERR, Failure, Outcome, Raised, Run, count, judge
from livepages.page import Block, Page


def page_lines(page: Page, run: Run, stash: Callable[[str], str]) -> list[str]:
    """The page's text with every Python fence replaced by its source and its result.

    Args:
        page: the page.
        run: what running it gave.
        stash: takes HTML, gives the text that stands for it in Markdown.
    """
    outcomes = dict(zip((block.line for block in page.program), run.outcomes, strict=True))
    lines: list[str] = []
    at = 0
    for block in page.blocks:
        lines += page.text[at : block.fence.start]
        lines += _block_lines(block, outcomes.get(block.line), stash)
        at = block.fence.end
    return [*lines, *page.text[at:]]


def missing(page: Page, content: str) -> list[Failure]:
    """The blocks that ought to be shown in a page's HTML and are not, or are only as the text of a fence."""
    found = []
    for block in page.blocks:
        at = content.find(_marker(block))
        if at < 0 and (block.options.source != "none" or not block.runs):
            what = "keeps this block from being shown"
        elif content.rfind("<code", 0, at) > content.rfind("</code>", 0, at):
            what = "makes this block text, not code"
        else:
            continue
        found.append(Failure(page.name, block.line, block.line, f"the Markdown around it {what}"))
    return found


def _marker(block: Block) -> str:
    return f'data-live-line="{block.line}"'


def _block_lines(block: Block, outcome: Outcome | None, stash: Callable[[str], str]) -> list[str]:
    options = block.options
    if outcome and options.source == "none" and not (outcome.output or outcome.figures or judge(block, outcome)):
        return []
    shown = stash(_result(block, outcome)) if outcome else stash(_not_run(block, options.why))
    if outcome and options.result == "markdown" and not judge(block, outcome):
        shown = f"{outcome.stdout}\n\n{shown}"
    if options.source != "none" or not block.runs:
        extra = {name: getattr(options, name) for name in ("title", "hl_lines", "linenums") if getattr(options, name)}
        shown = add_source(
            source=block.code.rstrip("\n"),
            location="above" if options.source in ("block", "none") else options.source,
            output=shown,
            language="python",
            tabs=("Source", "Result"),
            **extra,
        )
    prefix = block.fence.prefix
    return [prefix + line if line or ">" in prefix else "" for line in ["", *shown.split("\n"), ""]]


def _result(block: Block, outcome: Outcome) -> str:
    options = block.options
    anchor = f' id="{html.escape(options.id)}"' if options.id else ""
    if failure := judge(block, outcome):
        return f'<div class="live-result"{anchor} {_marker(block)}>{_failure(failure)}</div>'
    if outcome.skipped:
        return _not_run(block, outcome.skipped)
    parts = []
    if options.html:
        parts.append(outcome.stdout)
    elif options.result != "markdown":
        parts += [_text(stream, text, block) for stream, text in outcome.output if text.strip()]
    if outcome.raised:
        parts.append(_raised(outcome.raised))
    alt = html.escape(options.alt)
    parts += [
        f'<div class="live-figure" role="img" aria-label="{alt}" data-search-exclude>{svg}</div>'
        for svg in _own_ids(block, outcome)
    ]
    content = "".join(parts)
    volatile = " data-live-volatile" if options.volatile else ""
    silent = "" if content else " live-silent"
    return f'<div class="live-result{silent}"{anchor} {_marker(block)}{volatile}>{content}{_small_print(outcome)}</div>'


def _text(stream: str, text: str, block: Block) -> str:
    text = text.rstrip("\n")
    body = html.escape(text)
    if stream != ERR and block.options.result != "text":
        lexer = get_lexer_by_name(block.options.result, stripnl=False)
        body = highlight(text, lexer, HtmlFormatter(nowrap=True)).rstrip("\n")
    kind = "live-stderr" if stream == ERR else "live-stdout"
    return f'<div class="highlight {kind}"><pre><code>{body}</code></pre></div>'


def _raised(raised: Raised) -> str:
    lead = html.escape(raised.type)
    message = html.escape(raised.message.strip())
    text = f"<strong>{lead}</strong>{': ' if message else ''}{message}"
    return (
        f'<div class="highlight live-error"><pre><code>{text}</code></pre></div>'
        f'<details class="live-traceback"><summary>Traceback</summary>'
        f"<pre><code>{html.escape(raised.traceback)}</code></pre></details>"
    )


def _small_print(outcome: Outcome) -> str:
    time = f"{outcome.seconds:.1f} s" if outcome.seconds >= 0.1 else f"{outcome.seconds * 1e3:.0f} ms"
    counts = f"{count(outcome.traces, 'trace')}, {count(outcome.compiles, 'compile')}"
    return (
        '<details class="live-small" data-search-exclude><summary>ran</summary>'
        f"<span><span data-live-volatile>{time}</span>, {counts}</span></details>"
    )


def _not_run(block: Block, why: str) -> str:
    return f'<div class="live-result" {_marker(block)}><p class="live-note">Not run here: {html.escape(why)}</p></div>'


def _failure(failure: Failure) -> str:
    detail = f"<pre><code>{html.escape(_visible(failure.detail))}</code></pre>" if failure.detail else ""
    where = f"{failure.page}:{failure.line}"
    return (
        f'<div class="admonition failure live-failure"><p class="admonition-title">{html.escape(where)}</p>'
        f"<p>{html.escape(_visible(failure.message))}</p>{detail}</div>"
    )


def failures_shown(failures: list[Failure]) -> str:
    """Failures as HTML, for a page that cannot be shown otherwise."""
    return f'<div class="live-result">{"".join(map(_failure, failures))}</div>'


def _visible(text: str) -> str:
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda match: repr(match[0])[1:-1], text)


def _own_ids(block: Block, outcome: Outcome) -> list[str]:
    """The figures with ids that no other block of the page has."""
    return [
        re.sub(r'(\bid="|href="#|url\(#)', rf"\1b{block.line}-{number}-", svg)
        for number, svg in enumerate(outcome.figures)
    ]


def stamp(run: Run, versions: str) -> str:
    """The line that says on what a page ran, as HTML."""
    device = f" on {html.escape(run.device)}" if run.device else ""
    text = f"Every output on this page was produced by the code above it: {html.escape(versions)}{device}."
    return f'<p class="live-stamp" data-search-exclude>{text}</p>'
