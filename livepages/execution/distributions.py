"""The installed distributions that modules come from, and their versions."""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, distributions

from livepages.worker import installed


def versions(modules: Iterable[str]) -> dict[str, str]:
    """Return the version of each distribution that provides one of these top-level modules."""
    names: set[str] = set()
    for module in modules:
        # Most distributions have the name of their module.
        names.update([module] if installed(module) else _holding(module))
    return {name: installed(name) for name in sorted(names)}


@cache
def _holding(module: str) -> list[str]:
    """The distributions that hold a top-level module.

    `importlib.metadata.packages_distributions` lists all modules at once, and takes a third of a second or more:
    it sees whether every installed file is there.
    """
    heads = [f"\n{module}{end}" for end in ("/", ".", "\n")]
    return [distribution.name for distribution, files in _files() if any(head in files for head in heads)]


@cache
def _files() -> list[tuple[Distribution, str]]:
    """The installed distributions, each with its modules, or with all its files; a line for each."""
    found = []
    for distribution in distributions():
        listed = distribution.read_text("top_level.txt") or distribution.read_text("RECORD") or ""
        found.append((distribution, f"\n{listed}\n"))
    return found
