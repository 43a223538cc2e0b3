"""The packages of the engine: imports go down one declared order, and through what a package exports."""

import ast
import graphlib
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import livepages

ROOT = Path(livepages.__file__).parent
# Each package may import those that stand below it here. The highest first.
ORDER = ["integrations", "exporters", "rendering", "records", "course", "execution", "source", "worker"]
INTEGRATIONS = {"cli", "markdown_extension", "mkdocs_plugin", "pytest_plugin"}
MKDOCS = {"address", "materialx", "mkdocs_course", "mkdocs_plugin", "page_cache", "saves", "search"}
# Sent to readers' kernels with the modules that they import, not with packages.
KERNEL = {"exporters.kernel_bridge", "records.entries"}


def name_of(file: Path) -> str:
    """A module's name below the library's: ``source.page``."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


# What this site adds to the library, and takes from it as any other site may.
OURS = {file.name: ast.parse(file.read_text(encoding="utf-8")) for file in ROOT.with_name("course").glob("*.py")}
MODULES = {name_of(file): ast.parse(file.read_text(encoding="utf-8")) for file in ROOT.rglob("*.py")}


def package(module: str) -> str:
    return module.partition(".")[0]


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every module that is imported, anywhere in a file, and the name taken from it; empty if the module itself is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from ((node.module or "", alias.name) for alias in node.names)


def inner(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what is imported of the library itself: modules below it, and names."""
    for module, name in imports(tree):
        if module == "livepages" and (ROOT / name).is_dir():
            yield name, ""
        elif package(module) == "livepages":
            yield module.removeprefix("livepages").removeprefix("."), name


def taken(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a module takes from each package, by import or, of an imported package, as attributes."""
    for imported, name in inner(tree):
        if name:
            yield imported, name
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == imported:
                yield imported, node.attr


def test_every_module_belongs_to_a_package() -> None:
    assert {package(module) for module in MODULES} == {*ORDER, "__init__", "__main__"}
    assert len(ORDER) <= 8


@pytest.mark.parametrize("module", sorted(module for module in MODULES if package(module) in ORDER))
def test_imports_go_down(module: str) -> None:
    below = ORDER[ORDER.index(package(module)) :]
    assert {package(imported) for imported, _ in inner(MODULES[module])} <= set(below)


def test_modules_of_a_package_import_each_other_in_no_circle() -> None:
    graph = {}
    for module, tree in MODULES.items():
        used = {imported if imported in MODULES else f"{imported}.{name}" for imported, name in inner(tree)}
        graph[module] = used & MODULES.keys() - {module}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError otherwise


def picture() -> str:
    """The imports between packages, for Mermaid to draw: each arrow that does not follow from two others."""
    used = {
        name: {package(m) for module, tree in MODULES.items() if package(module) == name for m, _ in inner(tree)}
        for name in ORDER
    }
    below: dict[str, set[str]] = {}
    lines: list[str] = []
    for name in reversed(ORDER):
        direct = used[name] - {name}
        below[name] = direct | {far for near in direct for far in below[near]}
        shown = direct - {far for near in direct for far in below[near]}
        lines.insert(0, "".join(f"    {name} --> {other}\n" for other in ORDER if other in shown))
    return "```mermaid\ngraph TD\n" + "".join(lines) + "```\n"


def test_the_picture_of_the_imports_is_up_to_date() -> None:
    drawn = (ROOT / "README.md").read_text(encoding="utf-8")
    assert picture() in drawn, f"livepages/README.md wants this picture:\n{picture()}"


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"__main__", *KERNEL}))
def test_other_packages_are_imported_through_what_they_export(module: str) -> None:
    deeper = [f"{imported}.{name}" for imported, name in inner(MODULES[module]) if "." in imported]
    assert [name for name in deeper if package(name) != package(module)] == []
    for other, name in taken(MODULES[module]):
        if package(other) != package(module):
            assert name in importlib.import_module(f"livepages.{other}").__all__


@pytest.mark.parametrize("module", sorted(OURS))
def test_this_site_uses_public_names_and_the_library_does_not_import_the_site(module: str) -> None:
    assert [name for name, _ in inner(OURS[module]) if "." in name] == []
    for other, name in taken(OURS[module]):
        assert name in importlib.import_module(f"livepages.{other}").__all__
    assert [m for m, tree in MODULES.items() for name, _ in imports(tree) if package(name) == "course"] == []


@pytest.mark.parametrize("name", ORDER)
def test_a_package_exports_what_others_use_and_nothing_else(name: str) -> None:
    modules = MODULES.keys() - KERNEL
    users = [MODULES[module] for module in modules if package(module) != name] + list(OURS.values())
    wanted = {used for tree in users for other, used in taken(tree) if other == name}
    exported = importlib.import_module(f"livepages.{name}").__all__
    assert set(exported) == wanted - {"__all__"}


@pytest.mark.parametrize("name", sorted(INTEGRATIONS))
def test_integrations_do_not_import_each_other(name: str) -> None:
    used = {imported.partition(".")[2] for imported, _ in inner(MODULES[f"integrations.{name}"])}
    assert not used & (INTEGRATIONS - {name})


@pytest.mark.parametrize(
    ("library", "where"),
    [
        ("jax", {"worker.jax_runtime"}),
        ("matplotlib", {"worker.figures", "exporters.script_helpers"}),
        ("mkdocs", {f"integrations.{name}" for name in MKDOCS}),
        ("markdown_exec", {"integrations.markdown_exec", "rendering.pages", "source.project"}),
        ("latex2mathml", {"rendering.mathml"}),
        ("nbformat", set()),  # slow to import
        ("pytest", {"integrations.pytest_plugin"}),
        ("pytest_codeblocks", {"integrations.pytest_plugin"}),
    ],
)
def test_a_library_is_known_where_it_belongs(library: str, where: set[str]) -> None:
    assert {module for module, tree in MODULES.items() if library in {package(m) for m, _ in imports(tree)}} == where


JAX = re.compile(r"jax|\bxla|tracer|jaxpr|\bpjit\b|\bvmap\b|key_reuse", re.IGNORECASE)


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=name_of)
def test_only_its_runtime_mentions_jax(file: Path) -> None:
    """Nor its types or messages, in code or in comments: another runtime is one more module."""
    known = JAX.findall(file.read_text(encoding="utf-8"))
    assert bool(known) == (name_of(file) == "worker.jax_runtime"), known


@pytest.mark.parametrize(
    ("module", "ignorant_of"),
    [
        ("execution.runner", "execution.engine execution.cache"),
        ("execution.background", "execution.cache"),
        ("source.names", "source.fences source.options"),
        ("exporters.download", "exporters.notebook exporters.script exporters.publisher"),
        ("records.differences", "records.store records.entries source execution"),
    ],
)
def test_modules_import_only_what_their_layer_may(module: str, ignorant_of: str) -> None:
    assert not {imported for imported, _ in inner(MODULES[module])} & set(ignorant_of.split())


def test_a_page_finds_nothing_but_the_worker_in_its_process() -> None:
    """Every module that the process imports is there for all pages, and delays the first."""
    code = (
        "import sys; import livepages.worker.__main__\n"
        "assert not {'markdown', 'yaml', 'pytest', 'pygments', 'jax'} & sys.modules.keys(), sys.modules.keys()\n"
        "found = {name for name in sys.modules if name.startswith('livepages.')}\n"
        "assert all(name.startswith('livepages.worker') for name in found), found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_processes_that_tests_start_find_the_engine_where_the_tests_do() -> None:
    """A test that replaces the variable for modules tests whichever engine is installed."""
    replaced = re.compile(r'\s.*"PYTHONPATH"(: str|, str)\((?!.*(parents\[1\]|prepend=)).*')
    files = Path(__file__).parent.glob("*.py")
    lines = [f"{file.name}: {line}" for file in files for line in file.read_text("utf-8").splitlines()]
    assert not [line for line in lines if replaced.search(line)]


def test_tests_and_the_command_line_need_no_mkdocs() -> None:
    blocked = (
        "import sys\nfor name in ('mkdocs', 'material', 'markdown_exec', 'latex2mathml', 'nbformat'):\n"
        "    sys.modules[name] = None\n"
    )
    used = "import livepages.integrations.cli, livepages.integrations.pytest_plugin"
    subprocess.run([sys.executable, "-c", blocked + used], check=True)


def test_importing_the_engine_does_not_import_jax() -> None:
    names = ", ".join(
        f"livepages.{module}" for module in sorted(MODULES) if not module.endswith(("__init__", "__main__"))
    )
    subprocess.run([sys.executable, "-c", f"import sys, {names}\nassert 'jax' not in sys.modules"], check=True)


def test_a_build_imports_neither_what_tests_nor_what_serves() -> None:
    """Importing them takes a tenth of a build in which nothing has changed."""
    code = (
        "import sys, mkdocs.__main__, livepages.integrations.mkdocs_plugin\n"
        "assert not {'pytest', 'watchdog', 'mkdocs.livereload', 'nbformat', 'jax'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
