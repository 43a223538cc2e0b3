"""The installed distributions that modules come from, and their versions."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import packages_distributions

from livepages.worker import installed


def version(distribution: str) -> str | None:
    """The version of an installed distribution, None if there is none."""
    return installed(distribution) or None


def versions(modules: Iterable[str]) -> dict[str, str | None]:
    """The version of each distribution that gave one of these top-level modules."""
    names: set[str] = set()
    for module in modules:
        # Most distributions have the name of their module; to ask which one has another takes a third of a second.
        names.update([module] if version(module) else _by_module().get(module, ()))
    return {name: version(name) for name in sorted(names)}


@cache
def _by_module() -> Mapping[str, list[str]]:
    return packages_distributions()
