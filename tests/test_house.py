"""The rooms of the engine: imports point one way, and each outside library is known in few rooms; the census."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

import livepages
from livepages.engine import Engine
from livepages.project import find_project

ROOMS = Path(livepages.__file__).parent
DOORS = {"cli", "markdown_extension", "mkdocs_plugin", "pytest_plugin"}


def imports(file: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms() -> dict[str, set[str]]:
    """For each room, the rooms it imports."""
    names = {file.stem for file in ROOMS.glob("*.py")}
    return {
        file.stem: {name.split(".")[1] for name in imports(file) if name.startswith("livepages.")} & names
        for file in ROOMS.glob("*.py")
    }


def test_imports_point_one_way() -> None:
    list(graphlib.TopologicalSorter(rooms()).static_order())  # raises CycleError otherwise


def test_no_room_needs_a_door() -> None:
    assert {room: used & DOORS for room, used in rooms().items() if used & DOORS} == {"__main__": {"cli"}}


@pytest.mark.parametrize(
    ("library", "where"),
    [
        ("jax", {"jaxhost"}),
        ("matplotlib", {"figures", "script"}),  # what a script holds to show figures is written there
        ("mkdocs", {"mkdocs_plugin"}),
        ("markdown_exec", {"render"}),
        ("nbformat", {"notebook"}),
        ("pytest", {"marks", "pytest_plugin"}),
    ],
)
def test_a_library_is_known_where_it_belongs(library: str, where: set[str]) -> None:
    assert {f.stem for f in ROOMS.glob("*.py") if any(n.partition(".")[0] == library for n in imports(f))} == where


@pytest.mark.parametrize(
    ("room", "ignorant_of"),
    [
        ("page", "run worker cache"),
        ("run", "render worker"),
        ("attempts", "render build cache"),
        ("worker", "page run"),
        ("names", "links run engine"),
        ("links", "render run engine build"),
        ("download", "engine render"),
        ("publish", "engine render"),
        ("compare", "records page run"),
        ("records", "render run engine build"),
        ("status", "render run engine build"),
    ],
)
def test_rooms_do_not_know_what_they_must_not(room: str, ignorant_of: str) -> None:
    assert not rooms()[room] & set(ignorant_of.split())


def test_tests_and_the_command_line_need_no_mkdocs() -> None:
    blocked = (
        "import sys\nfor name in ('mkdocs', 'material', 'markdown_exec', 'nbformat'):\n    sys.modules[name] = None\n"
    )
    subprocess.run([sys.executable, "-c", blocked + "import livepages.cli, livepages.pytest_plugin"], check=True)


def test_importing_the_engine_does_not_import_jax() -> None:
    code = "import sys, livepages.cli, livepages.markdown_extension, livepages.mkdocs_plugin\nassert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_census_what_the_site_runs_is_what_the_tests_run() -> None:
    """That it is also what the site shows is checked by every build (`livepages.render.missing`)."""
    project = find_project(Path(__file__))
    pages, failed = Engine(project).read(project.page_paths())
    assert not failed
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "docs"]
    listed = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True).stdout
    tested = [line for line in listed.splitlines() if "::" in line]
    assert sorted(tested) == sorted(f"{page.name}::line {block.line}" for page in pages for block in page.program)
