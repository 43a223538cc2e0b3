"""Every page's script and notebook, run to its end as a reader runs it: in an empty folder, with what it tells pip."""

import importlib.metadata
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from livepages.course import read_course
from livepages.export.publication import programs
from livepages.source import find_project
from tests.conftest import Course, Proofs, Reader

PROJECT = find_project(Path(__file__))
COURSE = read_course(PROJECT)
PAGES = [path for part in COURSE.parts for path in part.pages if "```python" in path.read_text()]


@cache
def closure(distribution: str) -> frozenset[str]:
    """A distribution and all that it requires."""
    try:
        required = [Requirement(text) for text in importlib.metadata.requires(distribution) or ()]
    except importlib.metadata.PackageNotFoundError:
        return frozenset()
    names = [need.name for need in required if not need.marker or need.marker.evaluate({"extra": ""})]
    return frozenset({distribution}.union(*map(closure, names)))


def absent(text: str) -> list[str]:
    """The modules that pages use and that a reader does not have who did what the text says about pip."""
    line = re.search(r"pip install (.*?)(\\n|\n|\")", text)
    installed = set().union(*(closure(need.partition("==")[0]) for need in (line[1] if line else "").split()))
    extras = tomllib.loads((PROJECT.root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["pages"]
    missing = {Requirement(need).name for need in extras} - installed
    modules = importlib.metadata.packages_distributions()
    return ["livepages", *(name for name, distributions in modules.items() if missing.issuperset(distributions))]


def told(output: str) -> str:
    """Output without places in the code: lines of a page have other numbers in the files made from it."""
    return re.sub(r"\S+\.py:\d+(:\d+)?", "PLACE", output)


@pytest.mark.parametrize("form", ["script", "notebook"])
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(PROJECT.docs).as_posix())
def test_a_reader_can_run_it(course: Course, reader: Reader, proofs: Proofs, path: Path, form: str) -> None:
    page, run = course.ran(path)
    text = programs(page, run, PROJECT, "", str)[form]
    wanted = {
        block.index: told(outcome.stdout)
        for block, outcome in zip(page.program, run.outcomes, strict=True)
        # A notebook also writes values, and has other names for its own modules.
        if form == "script" and not block.options.volatile and not outcome.skipped
    }
    rests_on = (text, str(wanted), *absent(text), Path(__file__).read_text(), reader.source)
    if proofs.known(*rests_on):
        return
    status, out, err = reader.run(getattr(COURSE.place(path), form).rpartition("/")[2], text, absent(text))
    assert status == 0, out[-2000:] + err[-4000:]
    lines = set(told(out).split("\n"))
    for index, output in wanted.items():
        assert set(output.split("\n")) <= lines, index
    proofs.keep(*rests_on)
