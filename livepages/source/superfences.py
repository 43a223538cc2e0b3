"""The fences that markdown-exec executes, as the extensions of the site find them: by their own code.

``pymdownx.snippets`` expands includes, and ``pymdownx.superfences`` decides what is a fence.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from string import Template
from typing import Any

from markdown import Markdown
from pymdownx.snippets import SnippetExtension, SnippetMissingError, SnippetPreprocessor

from livepages.source.fences import Fence, LineError, Recorder, directives
from livepages.source.options import TABLE, Options, read_option
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
        """Return the Python in it, and for each line of that the line of the page, as `origin` has it for the text."""
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
        for fence, language, options in Recorder(self._md).record(self._normal(lines)):
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
        return [fence for fence, _, _ in Recorder(self._md).record(lines)]

    def ignored(self, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield the number, from 0, of each line that looks like an executed Python fence and is none, and why."""
        found = ((number, _LOOKS_LIKE_A_FENCE.match(line)) for number, line in enumerate(lines))
        executed = {number: (line[1].lower(), name) for number, line in found if line and (name := _exec_in(line[2]))}
        if not executed:
            return
        recorder = Recorder(self._md)
        fences = recorder.record(self._normal(lines))
        inside = {number for fence, _, _ in fences for number in range(fence.start, fence.end)}
        shown = {fence.start for fence, _, options in fences if "extra" not in options}
        for number, (language, name) in executed.items():
            if number in inside and number not in shown:
                continue
            if language not in EXECUTED:
                if suggestion := closest(language, EXECUTED, 0.8):
                    yield number, f"the {language} fence is not run{suggestion}"
            elif name != "exec":
                yield number, f"the fence is not run: unknown option {name!r}; did you mean 'exec'?"
            elif number in shown:
                if language in self._languages:  # which markdown-exec has failed to read
                    yield number, "the fence is not run: options width and returncode are whole numbers"
            elif recorder.abandoned.get(number, 0) is None:
                yield number, "the fence is not closed"
            else:
                yield number, f"not a fence as Markdown has them: {lines[number].strip()}"

    def count_shown(self, lines: Sequence[str]) -> int:
        """Return how many Python fences of these lines are only shown."""
        found = Recorder(self._md).record(lines)
        return sum(fence.language in EXECUTED and "extra" not in options for fence, _, options in found)


def _exec_in(options: str) -> str:
    """Return the name by which the options of a fence switch on that it runs, misspelled or not; empty if none does."""
    names = {name for name, value in _OPTION.findall(options) if value.strip("\"'").lower() not in _OFF}
    # With a letter more or less, a wrong one, or two swapped.
    like = (name for name in names if 3 <= len(name) <= 5 and closest(name.lower(), ["exec"], 0.75))
    return "exec" if "exec" in names else next(like, "")


def block_options(given: Mapping[str, Any]) -> tuple[Options, list[str]]:
    """Return the options of a block by those of markdown-exec, among which ours are extra ones.

    Returns:
        the options, and what is wrong with those of ours that are left out.
    """
    values: dict[str, Any] = {
        name: given[name] for name in ("source", "result", "html", "session", "width") if given[name]
    }
    values |= {"workdir": given["workdir"] or "", "isolated": not given["session"]}
    values = {"source": "none", "result": "markdown", **values}
    texts = {name: given["extra"][name] for name in sorted(own_options(given))}
    texts |= {"source": given["source"]} if given["source"] not in ("", "console") else {}
    faults: list[str] = []
    for name, text in texts.items():
        try:
            values[name] = read_option(name, text)
        except ValueError as error:
            faults.append(str(error))
    for name in sorted(given["extra"].keys() - TABLE.keys()):  # any other may be for another program
        if meant := closest(name, TABLE, 0.8):
            faults.append(f"unknown option {name!r}{meant}")
    return Options(**values), faults


def own_options(given: Mapping[str, Any]) -> set[str]:
    """Return the names of the extra options that are ours and mean nothing to markdown-exec or Pygments."""
    return {name for name in given["extra"] if name in TABLE and not TABLE[name].markdown_exec}


class _FoundSnippets(SnippetPreprocessor):  # type: ignore[misc]  # (pymdownx has no types)
    """The preprocessor of pymdownx, which notes the files that it finds."""

    def __init__(self, options: Mapping[str, Any], found: set[Path]) -> None:
        super().__init__(options, Markdown())
        self._found = found

    def get_snippet_path(self, path: str) -> str | None:
        """Return the path of the file that an include names."""
        found: str | None = super().get_snippet_path(path)
        self._found |= {Path(found)} if found else set()
        return found


def include(
    lines: Sequence[str], config: Mapping[str, Any], folders: Mapping[str, Path], files: set[Path]
) -> Iterator[tuple[str, int]]:
    """Yield the lines after includes, each with its line number (from 1) before them.

    An include that is not understood, such as one with the name of a variable of another plugin, stays as it is.

    Args:
        lines: of the page.
        config: the site's, of ``pymdownx.snippets``.
        folders: those that its paths may start from, as MkDocs names them; ``config_dir`` is the usual one.
        files: to which the included files are added.
    """
    options = {**SnippetExtension().getConfigs(), **config, "check_paths": True, "url_download": False}
    bases = options["base_path"]
    bases = [Template(base).safe_substitute(folders) for base in ([bases] if isinstance(bases, str) else bases)]
    options["base_path"] = [str(folders["config_dir"] / base) for base in bases]
    options["auto_append"] = []
    snippets = _FoundSnippets(options, files)
    try:
        found = list(directives(list(lines)))
    except LineError:
        found = [(number, [line]) for number, line in enumerate(lines, 1)]
    for number, directive in found:
        included = directive
        if "8<-" in directive[0]:
            try:
                included = snippets.run(list(directive))
            except (SnippetMissingError, OSError, ValueError):
                included = directive
        yield from ((line, number) for line in included)


def align(lines: Sequence[str], before: Sequence[str], origin: Sequence[int]) -> list[int]:
    """Return the best line number there is for each line of a text that a plugin has changed.

    Args:
        lines: the text as it is now.
        before: the text as it was.
        origin: the line number of each of its lines.
    """
    numbers: list[int] = []
    for kind, i, j, start, end in SequenceMatcher(None, before, lines, autojunk=False).get_opcodes():
        if kind == "equal":
            numbers += origin[i:j]
        else:
            numbers += [origin[min(i, len(origin) - 1)]] * (end - start)
    return numbers
