"""The build that converted text is part of: that of the program which converts, or one made for the first page."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from livepages.course import read_course
from livepages.execution import Engine, Failure
from livepages.integrations.build import Build
from livepages.source import find_project
from livepages.worker import signature


class PageFailuresError(Exception):
    """Blocks that failed, or that would not be shown; the message names them, one to a line."""

    def __init__(self, failures: list[Failure]) -> None:
        super().__init__("\n" + "\n".join(map(str, failures)))
        if "zensical" in sys.modules:  # which ends with tracebacks, of which one quotes this message
            sys.excepthook = partial(_print_message, str(self).strip(), sys.excepthook)


def _print_message(message: str, otherwise: Callable[..., None], kind: Any, error: BaseException, at: Any) -> None:
    """Print an error that quotes a message as the message alone; leave any other to another hook."""
    if message in str(error):
        print(message, file=sys.stderr)
    else:
        otherwise(kind, error, at)


@dataclass
class Conversion:
    """The text that is being converted, as the program that converts it describes it to the Markdown extension.

    The program that passes one has brought the build up to date, and reports its failures.
    """

    build: Build
    path: Path | None = None  # of the page that is converted; None for any other text


_one_at_a_time = Lock()


def own_build() -> Build:
    """Return a build for programs that do not handle failures, which serves all pages until a file changes.

    Raises:
        PageFailuresError: something is wrong with a page.
    """
    project = find_project(Path.cwd())
    files = [
        *read_course(project).pages,
        *sorted(project.snippets.rglob("*")),
        *sorted(project.inventories.glob("*.txt")),
        *sorted(project.records.rglob("*.yml")),
        project.root / "pyproject.toml",
        project.mkdocs,
    ]
    with _one_at_a_time:
        return _built(project.root, tuple((file, signature(file)) for file in files if file.exists()))


@lru_cache(maxsize=1)
def _built(root: Path, files: tuple[tuple[Path, int], ...]) -> Build:
    project = find_project(root)
    build = Build(Engine(project))
    try:
        build.run(read_course(project), lambda pages: None, lambda page, run: None)
    finally:
        build.engine.close()
    if build.failures:
        raise PageFailuresError(build.failures)
    return build
