"""The page that a text belongs to, where the program that converts the text does not say so; or why it has none."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from markdown import Markdown

from livepages.execution import Failure, Run
from livepages.integrations.build import Build
from livepages.integrations.conversion import PageFailuresError
from livepages.integrations.site_markdown import lacking
from livepages.records import Seen
from livepages.source import Page


def normal(text: str) -> str:
    """Text as Python-Markdown has normalized it when extensions get to see it."""
    return re.sub(r"(?m)^ +$", "", text.replace("\r\n", "\n").expandtabs(4)).strip("\n")


def find_page(build: Build, text: str) -> Path | None:
    """Return the file of the page that a text begins with, of several the longest; None if there is none.

    Raises:
        PageFailuresError: there are several that are equally long.
    """
    bodies = [(normal(page.body), path) for path, page in build.pages.items()]
    longest = max((body for body, _ in bodies if text.startswith(body)), key=len, default="")
    found = [path for body, path in bodies if body == longest] if longest else []
    if len(found) > 1:
        names = " and ".join(build.pages[path].name for path in found)
        raise PageFailuresError([Failure(names, 1, 0, "have the same text, so it is unknown which of them is shown")])
    return found[0] if found else None


def excerpt(build: Build, text: str) -> tuple[Page, Run, Seen] | None:
    """Return the part of the page that begins with this text: a blog shows the beginning of posts."""
    for page in build.pages.values() if text else ():
        if page.blocks and f"{normal(page.body)}\n".startswith(f"{text}\n"):
            run = build.run_of(page)
            end = next(number for number, line in enumerate(page.text) if line.strip()) + text.count("\n") + 1
            results = tuple(result for result in run.results if result.block.fence.end <= end)
            part = replace(run, results=results)
            blocks, inline = (
                tuple(result.block for result in some) for some in (part.on_page, part.inline_expressions)
            )
            return (
                replace(page, text=page.text[:end], blocks=blocks, inline_expressions=inline),
                part,
                build.records.seen(page),
            )
    return None


def not_of_page(build: Build, path: Path | None, lines: Sequence[str], md: Markdown) -> Failure:
    """Return the failure of a text with blocks that differs from the page in its file."""
    name = build.engine.project.name(path or build.engine.project.docs)
    page = build.pages.get(path) if path else None
    if page is None:
        title = next(line for line in lines if line.strip())
        message = f"the text that begins {title!r} has blocks that have not run, as it is not that of a page's file"
        return Failure(name, 1, 0, message)
    before, after = (normal(text).split("\n") for text in (page.body, "\n".join(lines)))
    at = next(n for n, line in enumerate(before) if line != "".join(after[n : n + 1]))
    above = next(n for n, line in enumerate(page.text) if line.strip())  # front matter, and blank lines
    line = page.origin[min(at + above, len(page.origin) - 1)]
    found, include = after[at] if at < len(after) else "", page.source.split("\n")[line - 1].strip()
    if "8<-" in include and (lack := lacking(md, build.engine.project, include, before[at], found)):
        return Failure(name, line, 0, f"the site's Markdown does not {lack}")
    became = repr(after[at]) if at < len(after) else "nothing"
    message = f"a plugin or hook of the site changed {before[at]!r} to {became} after the blocks had run"
    return Failure(name, line, 0, f"{message}; change the file instead, or add only to the end of the page's text")
