"""A page as Markdown with its outputs, for people and programs that read no HTML."""

import re
import sys
from collections.abc import Iterable

import yaml

from livepages.execution import Run
from livepages.exporters.cells import Code, Prose
from livepages.exporters.html_to_markdown import as_markdown
from livepages.source import Page, fenced
from livepages.worker import Runtime


def plain(page: Page, run: Run, runtime: Runtime, found: Iterable[Prose | Code]) -> str:
    """The text of the Markdown file.

    Args:
        page: the page.
        run: the results of its blocks.
        runtime: that ran it.
        found: the page's prose and blocks, in order.
    """
    parts = []
    for piece in found:
        if isinstance(piece, Prose):
            parts.append(_without_layout(piece.text))
            continue
        for part in _block(piece):
            parts.append("\n".join(f"{piece.prefix}{line}".rstrip() for line in part.split("\n")))
    if page.program:
        device = f" on {run.device}" if run.device else ""
        parts.append(
            f"*Every output on this page was produced by the code above it, with {runtime.version_label}{device}.*"
        )
    return "\n\n".join(parts) + "\n"


def front_matter(page: Page, run: Run, runtime: Runtime, url: str, day: str) -> str:
    """Return the front matter of the Markdown file: title, address and so on, versions, and the device it ran on.

    Args:
        page: the page.
        run: the results of its blocks.
        runtime: that ran it.
        url: where the page is published; empty if unknown.
        day: of its last change, empty if unknown.
    """
    program = {"versions": runtime.version_label, "device": run.device} if page.program else {}
    facts = {"title": page.title, "description": page.description, "url": url, "changed": day, **program}
    known = {name: value for name, value in facts.items() if value}
    text: str = yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return f"---\n{text}---\n\n"


# Code, which stays as it is; or what only a theme reads: other wordings, buttons, elements, the classes of a link.
_LAYOUT = re.compile(
    r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence)[ \t]*$|(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"
    r"|(?P<layout><!-- *asked\b.*?-->|<button\b.*?</button>|</?(?:div|kbd|span)\b[^>]*>|\{ *\.[^}\n]*\})",
    re.DOTALL | re.MULTILINE,
)


def _without_layout(prose: str) -> str:
    """Return prose as it reads without a theme."""
    text = _LAYOUT.sub(lambda found: "" if found["layout"] else found[0], prose)
    return re.sub(r"\n(?:[ \t]*\n){2,}", "\n\n", text).strip("\n")


def _block(code: Code) -> list[str]:
    """Return the block's source and its outcome, each as Markdown."""
    result = code.result
    block, outcome, truncated = result.block, result.outcome, result.truncated
    options = block.options
    if result.hidden:
        return []
    parts = []
    if options.source != "none" or not block.runs:
        title = f' title="{options.title}"' if options.title else ""
        parts.append(fenced(block.code, f"python{title}"))
    if outcome.skipped:
        where = "Not run" if result.stopped_by or not block.runs else "Not run here"
        return [*parts, f"*{where}: {outcome.skipped}*"]
    text = "".join(text for _, text in truncated.streams)
    if options.html:
        parts += filter(None, [as_markdown(outcome.stdout)])
        text = ""
    elif options.result == "markdown" and text.strip():
        parts.append(code.printed.strip("\n"))
        text = ""
    if truncated.raised:
        text += "" if text.endswith("\n") or not text else "\n"
        text += f"{truncated.raised.type}: {truncated.raised.message}"
    if text.strip():
        parts.append(fenced(text, "text"))
    for bundle in truncated.displays:
        rich = bundle.get("text/html")
        parts.append(as_markdown(rich) if rich else fenced(bundle["text/plain"], "text"))
    return parts + [f"*Figure: {options.alt}*" for _ in outcome.figures]
