"""The files that are pages, by the rules of MkDocs."""

import os
from pathlib import Path

from pathspec import GitIgnoreSpec

from livepages.course.site_paths import INDEX, README
from livepages.source import MARKDOWN

_OF_OTHERS = GitIgnoreSpec.from_lines([".*", "/templates/"])  # what other programs keep beside the pages


def find_pages(docs: Path, excluded: GitIgnoreSpec, drafts: GitIgnoreSpec) -> list[Path]:
    """The files of the pages in a folder and in those below it, links to folders included, in a fixed order."""
    files = [Path(folder, name) for folder, _, names in os.walk(docs, followlinks=True) for name in names]
    names = {file: file.relative_to(docs).as_posix() for file in files if file.suffix in MARKDOWN}
    unwanted = (_OF_OTHERS + excluded, drafts)
    pages = [file for file, name in names.items() if not any(spec.match_file(name) for spec in unwanted)]
    indexed = {page.parent for page in pages if page.stem == INDEX}
    return sorted(page for page in pages if page.stem != README or page.parent not in indexed)
