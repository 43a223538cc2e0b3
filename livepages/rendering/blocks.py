"""Turn a block and its outcome into what the page shows: Markdown for the source, HTML for the outcome.

The layout of source and result is markdown-exec's (`add_source`), and so are the words for it; not its execution.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from livepages.execution import ERR, OUT, BlockResult, Failure, Outcome, Raised, Run, counted
from livepages.records import Entry, RecordedOutcome, Seen, differ, entry, newest, same_kind
from livepages.rendering.explorables import explorable
from livepages.rendering.failures import failure_shown, with_faults
from livepages.rendering.mime import PRE, folded, render
from livepages.rendering.values import value_html, values_left, with_values
from livepages.source import Block, Page
from livepages.worker import Runtime

_ID = re.compile(r"""<[^>]*\s(?:id|name)=["']?([^"'\s>]+)""")
# The fences that a site's Markdown shows as code: all that the engine writes; those without options; of those without
# options, the ones outside lists and quotes; or none.
FenceSupport = Literal["all", "bare", "outer", "none"]
_RECORDED = " live-recorded"  # the class of a result that shows a record, not an outcome of this build


def page_lines(
    page: Page, run: Run, runtime: Runtime, seen: Seen, stash: Callable[[str], str], fences: FenceSupport = "all"
) -> list[str]:
    """The page's text with every Python fence replaced by its source and its result, and every value by its text.

    Args:
        page: the page.
        run: the results of its blocks.
        runtime: what ran it.
        seen: returns what hosts recorded of a block.
        stash: takes HTML and returns a placeholder for it in Markdown.
        fences: those that the site's Markdown shows as code.
    """
    text = with_faults(page, with_values(page.shown, run, value_html(seen, stash)), stash)
    lines: list[str] = []
    at = 0
    found = anchors(page, run)
    for result in run.on_page:
        block = result.block
        lines += text[at : block.fence.start]
        notes, at = _notes(text, block)
        anchor = found[block.index]
        variants = tuple(
            (other, _Context(f"{anchor}.{number}", runtime, run, seen(other.block), stash, fences))
            for number, other in enumerate(run.variants(block), 1)
        )
        context = _Context(anchor, runtime, run, seen(block), stash, fences, variants)
        lines += _block_lines(result, notes, context)
    return "\n".join([*lines, *text[at:]]).split("\n")


@dataclass(frozen=True)
class _Context:
    anchor: str
    runtime: Runtime
    run: Run
    seen: Sequence[RecordedOutcome]
    stash: Callable[[str], str]
    fences: FenceSupport
    variants: tuple["tuple[BlockResult, _Context]", ...] = ()  # the block with its other values


def anchors(page: Page, run: Run) -> dict[int, str]:
    """For each block, by its index, what a link to it ends with: its own id, or its section and its place among those
    shown there; for one of which nothing is shown, and for a value in a sentence, its section."""
    places: Counter[str] = Counter()
    found = {}
    for result in run.on_page:
        block = result.block
        section = _section(page, block)
        hidden = result.hidden
        places[section] += not hidden
        found[block.index] = section if hidden else block.options.id or f"{section}.{places[section]}"
        found |= {variant.index: found[block.index] for variant in block.variants}
    return found | {value.index: _section(page, value) for value in page.values}


def _section(page: Page, block: Block) -> str:
    above = [section.anchor for section in page.sections if section.start < block.fence.start]
    return above[-1] if above else "start"


def anchors_made(page: Page, run: Run) -> set[str] | None:
    """The anchors that a page has by its run: those in output that is HTML, and while it runs, those that may come.

    None if output that is still missing may bring any anchors.
    """
    missing = [result for result in run.on_page if result.outcome.pending or result.failure or result.stopped_by]
    if any(result.block.options.result == "markdown" or result.block.options.html for result in missing):
        return None
    printed = (result.outcome.stdout for result in run.results if result.block.options.html)
    found = {html.unescape(name) for text in printed for name in _ID.findall(text)}
    if run.pending:
        blocks = Counter(_section(page, block) for block in page.blocks)
        found |= {f"{section}.{place}" for section, number in blocks.items() for place in range(1, number + 1)}
    return found


def _notes(text: Sequence[str], block: Block) -> tuple[list[str], int]:
    """The list that explains a block's ``# (1)!``, which the theme looks for right after the source; where it ends."""
    inside = [line[len(block.fence.prefix) :] for line in text[block.fence.end :]]  # of the list, quote … it is in
    blank = next((n for n, line in enumerate(inside) if line.strip()), 0)
    if not re.search(r"#.*\(1\)", block.code) or not inside or not inside[blank].startswith("1. "):
        return [], block.fence.end
    length = next((n for n, line in enumerate(inside[blank:]) if not re.match(r"\d+\. | {4}|\s*$", line)), len(inside))
    return inside[blank : blank + length], block.fence.end + blank + length


def missing(page: Page, content: str) -> list[Failure]:
    """The blocks and values that ought to be shown in a page's HTML and are not, or are only as code."""
    found = values_left(page, content)
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


def unmarked(content: str) -> str:
    """Return a page's HTML without the marks by which `missing` finds blocks."""
    return re.sub(r' data-live-block="\d+"', "", content)


def _marker(block: Block) -> str:
    return f'data-live-block="{block.index}"'


def _block_lines(result: BlockResult, notes: list[str], context: _Context) -> list[str]:
    block, outcome = result.block, result.outcome
    options = block.options
    if result.hidden:
        return []
    if outcome.pending and options.source == "none" and _is_silent(_nearest(context)):
        return []
    stash = context.stash
    shown = stash(_result(result, context))
    if options.result == "markdown" and not result.failure:
        shown = f"{outcome.stdout}\n\n{shown}"
    if notes:
        shown = "\n".join([*notes, "", shown])
    if options.source != "none" or not block.runs:
        shown = _with_source(block, shown, context)
    shown = stash(f'<div class="live-anchor" id="{html.escape(context.anchor)}"></div>') + "\n\n" + shown
    prefix = block.fence.prefix
    return [prefix + line if line or ">" in prefix else "" for line in ["", *shown.split("\n"), ""]]


def _with_source(block: Block, shown: str, context: _Context) -> str:
    """Return Markdown for the code of a block and its output, `shown`."""
    from markdown_exec import add_source  # installed where sites are built

    options, code = block.options, block.code.rstrip("\n")
    location = "above" if options.source in ("block", "none") else options.source
    title = ""
    if context.fences != "all" and options.title:
        title = context.stash(f"<p><code>{html.escape(options.title)}</code></p>") + "\n\n"
    if location in ("above", "below") and (
        context.fences == "none" or (context.fences == "outer" and block.fence.prefix)
    ):
        source = context.stash(f'<pre><code class="language-python">{html.escape(code, quote=False)}\n</code></pre>')
        return title + "\n\n".join([source, shown] if location == "above" else [shown, source])
    names = ("title", "hl_lines", "linenums") if context.fences == "all" else ()
    extra = {name: getattr(options, name) for name in names if getattr(options, name)}
    tabs = options.tabs.partition("|")[::2]
    return title + add_source(source=code, location=location, output=shown, language="python", tabs=tabs, **extra)


def _result(result: BlockResult, context: _Context) -> str:
    block, outcome, shown = result.block, result.outcome, result.shown
    options = block.options
    if result.failure:
        drawn = "".join(_figures(block, shown))  # whose author may have yet to describe it
        return f'<div class="live-result" {_marker(block)}>{failure_shown(result.failure)}{drawn}</div>'
    if not block.runs:
        return _not_run(block, outcome.skipped, never=" live-off")
    if outcome.pending:
        return _pending(block, _nearest(context))
    if result.stopped_by:
        return _not_run(block, outcome.skipped, where="Not run")
    if outcome.skipped:
        return _not_run(block, outcome.skipped, newest(context.seen))
    content = _content(result, context)
    if context.variants:
        content = explorable(block, [content, *(_value(*variant) for variant in context.variants)])
    volatile = " data-live-volatile" if options.volatile else ""
    silent = "" if content else " live-silent"
    small = _small_print(outcome, context)
    return f'<div class="live-result{silent}" {_marker(block)}{volatile}>{content}{small}</div>'


def _value(result: BlockResult, context: _Context) -> str:
    """Return the output of a block with other values than its first."""
    if result.failure:
        return failure_shown(result.failure)
    if result.outcome.pending or result.outcome.skipped:
        return not_shown(result)
    return _content(result, context)


def _content(result: BlockResult, context: _Context) -> str:
    """Return the output of a block, here and on other hosts; empty if there is none."""
    block, outcome, shown = result.block, result.outcome, result.shown
    options = block.options
    parts = []
    if options.html:
        parts.append(outcome.stdout)
    elif options.result != "markdown":
        parts += [_text(stream, text, block) for stream, text in shown.output if text.strip()]
    if shown.raised:
        parts.append(_raised(shown.raised))
    parts += [render(bundle, block) for bundle in shown.displays]
    parts += _figures(block, shown)
    return "".join([*parts, _other_hosts(result, context)])


def figures_shown(result: BlockResult) -> str:
    """Return the figures that a block left open, as HTML."""
    return "".join(_figures(result.block, result.shown))


def _figures(block: Block, shown: Outcome) -> list[str]:
    return [render({"image/svg+xml": svg}, block, number) for number, svg in enumerate(shown.figures)]


def not_shown(result: BlockResult) -> str:
    """Return why there is no output of a block, as HTML: it has not run yet, or does not run here."""
    if result.outcome.pending:
        return _pending(result.block, None)
    return _not_run(result.block, result.outcome.skipped, where="Not run" if result.stopped_by else "Not run here")


def _text(stream: str, text: str, block: Block) -> str:
    if stream == ERR:
        return folded("live-stderr", html.escape(text.rstrip("\n")))
    return render({"text/plain": text}, block)


def _raised(raised: Raised) -> str:
    return _error(raised.type, raised.message) + (
        f'<details class="live-traceback" data-search-exclude><summary>Traceback</summary>'
        f"{PRE}{html.escape(raised.traceback)}</code></pre></details>"
    )


def _error(kind: str, message: str) -> str:
    message = html.escape(message.strip())
    return folded("live-error", f"<strong>{html.escape(kind)}</strong>{': ' if message else ''}{message}")


def _small_print(outcome: Outcome, context: _Context) -> str:
    recorded = "; ".join(f"{_label(other)}, on {other.host.day}" for other in context.seen if other.entry.good)
    ran_on = ", ".join(filter(None, [context.runtime.version_label, context.run.device]))
    return (
        '<details class="live-small" data-search-exclude><summary>details</summary><span>Took '
        f"<span data-live-volatile>{_time(outcome.seconds)}</span>{_counts(outcome)}; {html.escape(ran_on)}. "
        + (f"Last recorded: {html.escape(recorded)}. " if recorded else "")
        + f'<a href="#{html.escape(context.anchor)}">Link to this block</a></span></details>'
    )


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{seconds * 1e3:.0f} ms"


def _counts(ran: Outcome | Entry) -> str:
    return "".join(f", {what}" for what in counted(ran.counts))


def _label(seen: RecordedOutcome) -> str:
    return f"{seen.device or seen.host.device}, {seen.host.release}"


def _other_hosts(result: BlockResult, context: _Context) -> str:
    """The outputs of other hosts, one open at a time: where they differ from this one, or where time is the point."""
    options, here = result.block.options, entry(result)
    if options.html or options.result == "markdown":
        return ""
    others = []
    for other in context.seen:
        if not other.entry.good or same_kind(other, context.run, context.runtime):
            continue
        differs = differ(here, other.entry, options.tolerance, noise_patterns=context.runtime.noise_patterns)
        if differs or (options.volatile and other.entry.text):
            label = html.escape(f"{other.host.release} ({other.device or other.host.device})")
            body = html.escape(other.entry.text)
            host = f"{other.host.name}, {other.host.computer}, {other.host.day}"
            cost = f"{_time(other.entry.seconds)}{_counts(other.entry)}; {host}"
            others.append(
                f'<details name="{html.escape(context.anchor)}"><summary>{label}</summary>'
                f"<pre><code>{body}</code></pre><p>{html.escape(cost)}</p></details>"
            )
    return f'<div class="live-elsewhere" data-search-exclude>{"".join(others)}</div>' if others else ""


def _nearest(context: _Context) -> RecordedOutcome | None:
    """The record of a block that its output here will most likely equal: of this release, on this kind of computer."""
    runtime = context.runtime

    def nearness(other: RecordedOutcome) -> tuple[bool, bool]:
        return other.host.release == runtime.release, other.host.computer == runtime.computer

    return max((other for other in context.seen if other.entry.good), key=nearness, default=None)


def _recorded(block: Block, seen: RecordedOutcome | None) -> tuple[str, str]:
    """The text of a record as HTML, after a sentence that introduces it; both empty if there is no text to show."""
    if seen is None or block.options.html or block.options.result == "markdown":
        return "", ""
    entry = seen.entry
    parts = [_text(stream, text, block) for stream, text in ((OUT, entry.stdout), (ERR, entry.stderr)) if text]
    if entry.error:
        kind, _, message = entry.error.partition(":")
        parts.append(_error(kind, message))
    introduction = f" This output was recorded on {_label(seen)}, on {seen.host.day}:" if parts else ""
    return introduction, "".join(parts)


def _is_silent(recorded: RecordedOutcome | None) -> bool:
    """Return whether there is a record and it holds no output."""
    return recorded is not None and not recorded.entry.text and not recorded.entry.figures


def _not_run(
    block: Block, why: str, recorded: RecordedOutcome | None = None, where: str = "Not run here", never: str = ""
) -> str:
    """Return why a block did not run, and the text of the newest record of it, if there is one."""
    introduced, body = _recorded(block, recorded)
    reason = f"{where}: {why}{'.' if introduced else ''}{introduced}"
    note = f'<p class="live-note">{html.escape(reason)}</p>'
    return f'<div class="live-result{never}{_RECORDED if body else ""}" {_marker(block)}>{note}{body}</div>'


def _pending(block: Block, recorded: RecordedOutcome | None) -> str:
    """The text of the nearest record of a block that has not run yet, if there is one, and what appears later."""
    introduced, body = _recorded(block, recorded)
    kind = _RECORDED if body else " live-silent" if _is_silent(recorded) else ""
    later = " The figure appears when the page has run." if recorded and recorded.entry.figures else ""
    waiting = html.escape(f"Running …{later}{introduced}")
    where = f"{html.escape(block.page)}:{block.line}"
    note = f'<p class="live-note" data-live-pending="{where}" data-search-exclude>{waiting}</p>'
    return f'<div class="live-result{kind}" {_marker(block)}>{note}{body}</div>'


def stamp(run: Run, versions: str, notebook: str, more: str = "") -> str:
    """Return the line that names the host of a page's run, as HTML.

    Args:
        run: the results of its blocks.
        versions: what ran it.
        notebook: the address of its notebook, from the page.
        more: what the line ends with, as HTML.
    """
    device = f" on {html.escape(run.device)}" if run.device else ""
    text = f"Every output on this page was produced by the code above it, with {html.escape(versions)}{device}."
    if run.pending:
        text = (
            f"This page is running, with {html.escape(versions)}. Until a block has run, its recorded output is shown."
        )
    where = f'data-live-notebook="{html.escape(notebook)}" data-search-exclude'
    return f'<p class="live-stamp" {where}>{text}{" " if more else ""}{more}</p>'
