"""The result of a block as HTML: its output here, its recorded outputs, or the reason why there is none."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from livepages.execution import ERR, OUT, BlockResult, Outcome, Raised, Run, counted
from livepages.records import Entry, RecordedOutcome, differ, entry, newest, same_kind
from livepages.rendering.explorables import explorable
from livepages.rendering.failures import failure_html
from livepages.rendering.mime import PRE, folded, render
from livepages.rendering.missing import attribute
from livepages.source import Block
from livepages.worker import Runtime


@dataclass(frozen=True)
class ResultRenderer:
    """A renderer of one result of a run."""

    result: BlockResult
    run: Run
    runtime: Runtime
    seen: Sequence[RecordedOutcome]  # what hosts recorded of the block
    anchor: str  # the fragment of a link to it
    variants: tuple["ResultRenderer", ...] = ()  # of the block with its other parameters

    @property
    def is_silent(self) -> bool:
        """Return whether the page shows nothing of the block: it has not run, and will most likely print nothing."""
        options = self.result.block.options
        return self.result.outcome.pending and options.source == "none" and _is_silent(self._nearest())

    def html(self) -> str:
        """Return the result."""
        result, block, outcome = self.result, self.result.block, self.result.outcome
        if result.failure:
            figures = figures_html(result)  # whose author may have yet to describe them
            return f'<div class="live-result" {attribute(block)}>{failure_html(result.failure)}{figures}</div>'
        if not block.runs:
            return _not_run(block, outcome.skipped, never=" live-off")
        if outcome.pending:
            return _pending(block, self._nearest())
        if result.stopped_by:
            return _not_run(block, outcome.skipped, where="Not run")
        if outcome.skipped:
            return _not_run(block, outcome.skipped, newest(self.seen))
        content = self._content()
        if self.variants:
            content = explorable(block, [content, *(variant._variant() for variant in self.variants)])
        volatile = " data-live-volatile" if block.options.volatile else ""
        silent = "" if content else " live-silent"
        return f'<div class="live-result{silent}" {attribute(block)}{volatile}>{content}{self._small_print()}</div>'

    def _variant(self) -> str:
        """Return the output of a block with other parameters than its first."""
        if self.result.failure:
            return failure_html(self.result.failure)
        return absence_html(self.result) or self._content()

    def _content(self) -> str:
        """Return the output of a block, here and on other hosts; empty if there is none."""
        block, outcome = self.result.block, self.result.truncated
        parts = []
        if block.options.html:
            parts.append(self.result.outcome.stdout)  # all of it: a note in the middle of a tag would break the page
        elif block.options.result != "markdown":
            parts += [_text(stream, text, block) for stream, text in outcome.streams if text.strip()]
        if outcome.raised:
            parts.append(_raised(outcome.raised))
        parts += [render(bundle, block) for bundle in outcome.displays]
        return "".join([*parts, figures_html(self.result), self._other_hosts()])

    def _small_print(self) -> str:
        recorded = "; ".join(f"{_label(other)}, on {other.host.day}" for other in self.seen if other.entry.good)
        ran_on = ", ".join(filter(None, [self.runtime.version_label, self.run.device]))
        outcome = self.result.outcome
        return (
            '<details class="live-small" data-search-exclude><summary>details</summary><span>Took '
            f"<span data-live-volatile>{_time(outcome.seconds)}</span>{_counts(outcome)}; {html.escape(ran_on)}. "
            + (f"Last recorded: {html.escape(recorded)}. " if recorded else "")
            + f'<a href="#{html.escape(self.anchor)}">Link to this block</a></span></details>'
        )

    def _other_hosts(self) -> str:
        """The outputs of other hosts, one open at a time: where they differ from here, or where time is the point."""
        options, here = self.result.block.options, entry(self.result)
        if options.html or options.result == "markdown":
            return ""
        others = []
        for other in self.seen:
            if not other.entry.good or same_kind(other, self.run, self.runtime):
                continue
            differs = differ(here, other.entry, options.tolerance, noise_patterns=self.runtime.noise_patterns)
            if differs or (options.volatile and other.entry.text):
                label = html.escape(f"{other.host.release} ({other.device or other.host.device})")
                body = html.escape(other.entry.text)
                host = f"{other.host.name}, {other.host.computer}, {other.host.day}"
                cost = f"{_time(other.entry.seconds)}{_counts(other.entry)}; {host}"
                others.append(
                    f'<details name="{html.escape(self.anchor)}"><summary>{label}</summary>'
                    f"<pre><code>{body}</code></pre><p>{html.escape(cost)}</p></details>"
                )
        return f'<div class="live-elsewhere" data-search-exclude>{"".join(others)}</div>' if others else ""

    def _nearest(self) -> RecordedOutcome | None:
        """The record that the output here will most likely equal: of this release, on this kind of computer."""

        def nearness(other: RecordedOutcome) -> tuple[bool, bool]:
            return other.host.release == self.runtime.release, other.host.computer == self.runtime.computer

        return max((other for other in self.seen if other.entry.good), key=nearness, default=None)


def figures_html(result: BlockResult) -> str:
    """Return the figures that a block left open."""
    figures = enumerate(result.truncated.figures)
    return "".join(render({"image/svg+xml": svg}, result.block, number) for number, svg in figures)


def absence_html(result: BlockResult) -> str:
    """Return why there is no output of a block: it has not run yet, or does not run here; empty if it has run."""
    if result.outcome.pending:
        return _pending(result.block, None)
    if not result.outcome.skipped:
        return ""
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


def _recorded(block: Block, seen: RecordedOutcome | None) -> tuple[str, str]:
    """The text of a record, after a sentence that introduces it; both empty if there is no text to show."""
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
    return f'<div class="live-result{never}{" live-recorded" if body else ""}" {attribute(block)}>{note}{body}</div>'


def _pending(block: Block, recorded: RecordedOutcome | None) -> str:
    """The text of the nearest record of a block that has not run yet, if there is one, and what appears later."""
    introduced, body = _recorded(block, recorded)
    kind = " live-recorded" if body else " live-silent" if _is_silent(recorded) else ""
    later = " The figure appears when the page has run." if recorded and recorded.entry.figures else ""
    waiting = html.escape(f"Running …{later}{introduced}")
    where = f"{html.escape(block.page)}:{block.line}"
    note = f'<p class="live-note" data-live-pending="{where}" data-search-exclude>{waiting}</p>'
    return f'<div class="live-result{kind}" {attribute(block)}>{note}{body}</div>'


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{seconds * 1e3:.0f} ms"


def _counts(ran: Outcome | Entry) -> str:
    return "".join(f", {what}" for what in counted(ran.counts))


def _label(seen: RecordedOutcome) -> str:
    return f"{seen.device or seen.host.device}, {seen.host.release}"
