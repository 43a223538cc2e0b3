"""The includes of a page as pymdownx.snippets expands them for a site that sets it up itself."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from markdown import Markdown
from pymdownx.snippets import SnippetExtension, SnippetMissingError, SnippetPreprocessor

from livepages.source.fences import LineError, directives


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
