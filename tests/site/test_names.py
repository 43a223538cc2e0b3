"""The names in this site's code have their reference, and exist in the versions that are installed."""

import importlib
from collections import Counter
from pathlib import Path

import pytest

from inventories.make import JAX_WITHOUT
from livepages.course import read_course
from livepages.execution import Engine
from livepages.source import Page, PageNames, find_project, read_inventories
from livepages.worker.marks import skipped


@pytest.fixture(scope="module")
def pages() -> list[tuple[Page, PageNames]]:
    """The pages of this repository with their names."""
    project = find_project(Path(__file__))
    inventory = read_inventories(project)
    return [(page, PageNames(page, inventory)) for page in Engine(project).read(read_course(project).pages)[0]]


def test_nearly_every_name_of_the_site_has_its_reference(pages: list[tuple[Page, PageNames]]) -> None:
    pageless = tuple(f"{owner}.{name}" for owner, names in JAX_WITHOUT.items() for name in names.split())
    uses = [
        use
        for _, names in pages
        for _, uses in names.blocks
        for use in uses
        if "__" not in use.name and "._" not in use.name
    ]
    for part in ("jax", "numpy", "others"):
        used = Counter(use.name for use in uses if of(use.name) == part)
        missing = Counter({name: used[name] for name in {use.name for use in uses if not use.address} & used.keys()})
        assert len(used) > 50
        unlinked = [name for name in missing if not name.startswith(pageless)]
        assert len(unlinked) <= 0.05 * len(used), f"without their reference: {unlinked}"
        assert missing.total() <= 0.05 * used.total(), f"without a reference: {missing}"


def of(name: str) -> str:
    """Return which of three parts of the libraries a name is of."""
    library = name.partition(".")[0]
    return library if library in ("jax", "numpy") else "others"


def test_every_linked_name_of_code_that_runs_exists(pages: list[tuple[Page, PageNames]]) -> None:
    """In the versions that are installed, which are those that the pages run on."""
    names = {
        use.name: f"{block.page}:{block.lines[use.line - 1]}"
        for _, names in pages
        for block, uses in names.blocks
        for use in uses
        if use.address and block.runs and not block.options.raises and not skipped(block.marks, block.importorskip)
    }
    assert len(names) > 300
    assert {name: where for name, where in names.items() if not exists(name)} == {}


def exists(name: str) -> bool:
    """Return whether an installed package has this name."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False
