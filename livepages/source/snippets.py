"""The includes of a page, expanded by pymdownx.snippets: as this library sets it up, or as a site does."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

from markdown import Markdown
from pymdownx.snippets import SnippetExtension, SnippetMissingError, SnippetPreprocessor

from livepages.source.fences import LineError


class _Snippets(SnippetPreprocessor):  # type: ignore[misc]  # (pymdownx has no types)
    """The preprocessor of pymdownx, which leaves out a file that is included in itself; here that is an error."""

    @property
    def seen(self) -> set[str]:
        """The files that are being included, each inside the one before."""
        return self._seen

    @seen.setter
    def seen(self, files: set[str]) -> None:
        self._seen = _Stack(files)


class _Stack(set[str]):
    def __contains__(self, file: object) -> bool:
        if super().__contains__(file):
            raise ValueError(f"{file} includes itself, directly or through a file that it includes")
        return False


def expand(lines: list[str], snippets: Path) -> Iterator[tuple[str, int]]:
    """The lines after includes, each with its line number (from 1) in the page."""
    preprocessor: _Snippets | None = None
    for number, directive in directives(lines):
        if "8<-" not in directive[0]:
            yield directive[0], number
            continue
        if preprocessor is None:
            extension = SnippetExtension(base_path=[str(snippets)], check_paths=True, dedent_subsections=True)
            preprocessor = _Snippets(extension.getConfigs(), Markdown())
        try:
            for line in preprocessor.run(directive):
                yield line, number
        except SnippetMissingError as error:
            where = f"{snippets.name}, the folder that [tool.livepages] snippets names"
            raise LineError(number, f"include: {error} in {where}") from None
        except (OSError, ValueError) as error:
            raise LineError(number, f"include: {error}") from None


@lru_cache(maxsize=512)  # while serving, most pages stay unchanged
def includes(text: str) -> frozenset[str]:
    """The names of the files that a page includes, without their sections."""
    found: set[str] = set()
    for _, directive in directives(text.splitlines()):
        names = directive[1:-1] or re.findall(r"-+8<-+\s+[\"']([^\"']+)", directive[0])
        found |= {name.strip().partition(":")[0] for name in names}
    return frozenset(found)


def directives(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield each line on its own, except that a ``--8<--`` block of several paths comes as one, with its first line."""
    several: list[str] = []
    first = 0
    for number, line in enumerate(lines, 1):
        marker = "8<" in line and re.fullmatch(r"[ \t]*-+8<-+[ \t]*", line)
        if several:
            several.append(line)
            if marker:
                yield first, several
                several = []
        elif marker:
            several, first = [line], number
        else:
            yield number, [line]
    if several:
        raise LineError(first, "include: the --8<-- block is not closed")


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
            with suppress(SnippetMissingError, OSError, ValueError):
                included = snippets.run(list(directive))
        yield from ((line, number) for line in included)
