"""The key of a run: everything that decides its outcomes besides its probes. Keys are composed in this module alone.

`Page.key` covers everything in the page that its blocks depend on, and the options that `Affects` names. The engine
is part of the key, so a run that was cached by another version of it is never used.
"""

import hashlib
import json
from functools import cache
from pathlib import Path

from livepages.source import Page, Project


def run_key(page: Page, surroundings: str = "") -> str:
    """Return the key of the run of a page in its `surroundings`; without them, of its runs under the same ones."""
    settings = page.settings
    blocks = [(block.namespace, block.marks, block.importorskip, block.shows_figures) for block in page.program]
    parts = [page.name, page.key, settings.exclusive, settings.depends_on, blocks, surroundings]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def surroundings(project: Project) -> str:
    """Return everything that decides the runs of all pages of a project, looked up again: host, engine and settings."""
    settings = [dict(project.options), project.preload, project.name(project.snippets), project.fences]
    return json.dumps([project.runtime.fingerprint(), engine_digest(), settings], sort_keys=True, default=str)


@cache
def engine_digest() -> str:
    """Return a digest of the source of the whole library."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        source = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()
