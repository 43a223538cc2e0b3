"""The fences that markdown-exec executes, as pymdownx.superfences finds them, and those that look so but are not."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from markdown import Markdown

from livepages.source.fences import Fence, FenceFinder
from livepages.source.suggestions import closest

EXECUTED = ("python", "py", "pycon")
NESTED = ("md", "markdown")  # languages of fences whose content markdown-exec converts as Markdown

# A line that looks like the beginning of a fence with options: its language, and these.
_LOOKS_LIKE_A_FENCE = re.compile(r"[> \t]*(?:`{3,}|~{3,})\s*\{?\s*\.?(\w+)\s([^`]*=[^`]*)")
_OPTION = re.compile(r"""([\w-]+)=("[^"]*"|'[^']*'|\w*)""")

_OFF = ("", "no", "off", "false", "0")  # values of exec

Validator = Callable[[str, dict[str, str], dict[str, Any], dict[str, Any], Markdown], bool]


@dataclass(frozen=True)
class ExecutedFence:
    """A fence that markdown-exec executes."""

    fence: Fence
    language: str
    options: Mapping[str, Any]  # as markdown-exec's `validator` sorts them

    def program(self, origin: Sequence[int]) -> tuple[str, tuple[int, ...]]:
        """Return its Python code, and for each line of that the line of the page, by the `origin` of the text."""
        lines = list(enumerate(self.fence.content, self.fence.start + 1))
        if self.language == "pycon":  # markdown-exec runs what follows a prompt
            lines = [(number, line[4:]) for number, line in lines if line.startswith((">>> ", "... "))]
        return "\n".join(line for _, line in lines), tuple(origin[number] for number, _ in lines)


class Scanner:
    """Finds the fences that markdown-exec executes, in any number of texts of a site.

    Args:
        languages: those that markdown-exec is enabled for.
        validator: markdown-exec's, which decides whether a fence is executed.
        config: the site's, of superfences.
    """

    def __init__(self, languages: Sequence[str], validator: Validator, config: Mapping[str, Any]) -> None:
        self._languages = languages
        fences = [{"name": name, "class": name, "validator": validator} for name in languages]
        self._md = Markdown(
            extensions=["pymdownx.superfences"],
            extension_configs={"pymdownx.superfences": {**config, "custom_fences": fences}},
        )

    def scan(self, lines: Sequence[str], first: int = 0) -> Iterator[ExecutedFence]:
        """Yield the fences of these lines that are executed, in order; `first` is added to its numbers."""
        for fence, language, options in FenceFinder(self._md).find(self._normal(lines)):
            if "extra" not in options:  # which the validator sets of a fence that is executed
                continue
            if language not in NESTED:
                moved = replace(fence, start=first + fence.start, end=first + fence.end, info=language)
                yield ExecutedFence(moved, language, options)
            elif not (options["html"] or options["result"] or options["source"] == "console"):
                yield from self.scan(fence.content, first + fence.start + 1)

    def _normal(self, lines: Sequence[str]) -> list[str]:
        """Return the lines as Markdown has made them by the time that superfences sees them."""
        return [line.expandtabs(self._md.tab_length) if line.strip(" \t") else "" for line in lines]

    def fences(self, lines: Sequence[str]) -> list[Fence]:
        """Return all fences of these lines, in whatever language."""
        return [fence for fence, _, _ in FenceFinder(self._md).find(lines)]

    def ignored(self, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield the number, from 0, of each line that looks like an executed Python fence and is none, and why."""
        found = ((number, _LOOKS_LIKE_A_FENCE.match(line)) for number, line in enumerate(lines))
        executed = {number: (line[1].lower(), name) for number, line in found if line and (name := _exec_in(line[2]))}
        if not executed:
            return
        finder = FenceFinder(self._md)
        fences = finder.find(self._normal(lines))
        inside = {number for fence, _, _ in fences for number in range(fence.start, fence.end)}
        not_executed = {fence.start for fence, _, options in fences if "extra" not in options}
        for number, (language, name) in executed.items():
            if number in inside and number not in not_executed:
                continue
            if language not in EXECUTED:
                if suggestion := closest(language, EXECUTED, 0.8):
                    yield number, f"the {language} fence is not run{suggestion}"
            elif name != "exec":
                yield number, f"the fence is not run: unknown option {name!r}; did you mean 'exec'?"
            elif number in not_executed:
                if language in self._languages:  # which markdown-exec has failed to read
                    yield number, "the fence is not run: options width and returncode are whole numbers"
            elif finder.abandoned.get(number, 0) is None:
                yield number, "the fence is not closed"
            else:
                yield number, f"not a fence as Markdown has them: {lines[number].strip()}"

    def count_not_executed(self, lines: Sequence[str]) -> int:
        """Return how many Python fences of these lines markdown-exec does not execute."""
        found = FenceFinder(self._md).find(lines)
        return sum(fence.language in EXECUTED and "extra" not in options for fence, _, options in found)


def _exec_in(options: str) -> str:
    """Return the name by which the options of a fence switch on that it runs, misspelled or not; empty if none does."""
    names = {name for name, value in _OPTION.findall(options) if value.strip("\"'").lower() not in _OFF}
    # With a letter more or less, a wrong one, or two swapped; or the whole word.
    short = (name for name in names if 3 <= len(name) <= 5 and closest(name.lower(), ["exec"], 0.75))
    whole = (name for name in names if closest(name.lower(), ["execute"], 0.9))
    return "exec" if "exec" in names else next(chain(short, whole), "")
