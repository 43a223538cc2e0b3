"""The downloads of every page run in an empty folder, with what they install by pip, and print what the page printed.

Both hold the very same program and set-up, so that is compared. Of the script is run what is its own: the set-up, the files
that it brings, and every import, where nothing is installed but what it names. A notebook is run to its end if a block of the
page has names of its own and binds one that another block reads, or if its output names places in the code.
"""

import ast
import importlib.metadata
import io
import json
import re
import tokenize
import tomllib
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from livepages.course import read_course
from livepages.exporters.publisher import programs
from livepages.source import Page, find_project
from livepages.source.parser import read_page
from livepages.worker.names import bound_names, needed_names
from tests.conftest import Course, Reader

PROJECT = find_project(Path(__file__))
COURSE = read_course(PROJECT)
PAGES = [path for part in COURSE.parts for path in part.pages if "```python" in path.read_text()]


def runs_otherwise(path: Path) -> bool:
    """Return whether the notebook of a page may not print what the page's blocks print.

    There all blocks share a namespace: one that has its own on the page may bind a name that another reads. Of an answer's
    notebook, each cell is a program that tests/site/test_answers.py runs by itself.
    """
    text = path.read_text()  # reading all pages takes seconds, in each process that collects the tests
    maybe = path.parent.name != "answers" and ("session=" in text or "isolated=" in text or "vary=" in text)
    return path.relative_to(PROJECT.docs).as_posix() in NAME_PLACES or (maybe and meet(read_page(path, PROJECT)))


def meet(page: Page) -> bool:
    """Return whether a block binds a name, not by an import, that a block with another namespace reads."""
    bound: dict[str, set[str]] = {}
    read: dict[str, set[str]] = {}
    for block in page.program:
        own = bound_names(block.code)  # none where Python refuses the code
        own -= bound_names(imports(block.code)) if own else set()
        bound[block.namespace] = bound.get(block.namespace, set()) | own
        read[block.namespace] = read.get(block.namespace, set()) | needed_names(block.code)
    return any(bound[one] & read[other] for one in bound if one for other in read if other != one)


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
    return without(line[1] if line else "")


@cache  # looking through all distributions takes longer than most of these programs
def without(needs: str) -> list[str]:
    installed = set().union(*(closure(need.partition("==")[0]) for need in needs.split()))
    extras = tomllib.loads((PROJECT.root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["pages"]
    missing = {Requirement(need).name for need in extras} - installed
    return ["livepages", *(name for name, given in distributions().items() if missing.issuperset(given))]


@cache
def distributions() -> Mapping[str, list[str]]:
    """The distributions that each module comes from."""
    return importlib.metadata.packages_distributions()


# Their output says where in the code something is, or what the compiler notes of it, which is another place in a notebook.
NAME_PLACES = {
    "lookup/errors-devices.md",
    "debug/inside.md",
    "lookup/message-to-cause.md",
    "practice/scale.md",
    "scale/pmap.md",
}
# The compiler's notes on these are of whichever program it compiled first. That they run to their end is shown.
NOTES_OF_THE_COMPILER = {"speed/memory.md", "speed/read-the-compiler.md"}


def reported(output: str) -> str:
    """Output without places in the code: the lines of a page have other numbers in the files made from it."""
    return re.sub(r"\S+\.py:\d+(:\d+)?", "PLACE", output)


def sections(script: str) -> list[tuple[str, str]]:
    """The parts of a script: what the line that begins each says, and its code; not of the files in it."""
    tokens = tokenize.generate_tokens(io.StringIO(script).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT and token.start[1] == 0]
    starts = [token.start[0] for token in comments if token.string.startswith("# %%")]
    lines = script.split("\n")
    parts = [lines[start - 1 : end - 1] for start, end in pairwise([*starts, len(lines) + 1])]
    found = [(part[0].removeprefix("# %%").strip(), "\n".join([*part[1:], ""])) for part in parts]
    return [(title, code) for title, code in found if "[markdown]" not in title]


def unwrapped(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements without what a script puts around those of a page (`MustRaise`, conditions) and after (figures)."""
    found: list[ast.stmt] = []
    for node in body:
        match node:
            case ast.With(items=[ast.withitem(ast.Call(ast.Name("MustRaise")))], body=inner):
                found += unwrapped(inner)
            case ast.If(
                body=[ast.Expr(ast.Call(ast.Name("print"), [ast.Constant("Not run here:"), *_]))], orelse=inner
            ):
                found += unwrapped(inner)
            case ast.Expr(ast.Call(ast.Name("show_figures"))):
                pass
            case ast.Expr(ast.Call(ast.Name("exec"), [ast.Constant(str(code))])):
                found.append(ast.Expr(ast.Constant(code)))
            case _:
                found.append(node)
    return found


def program(code: str) -> str:
    """Return what code does, whatever its layout, without what only belongs to the head of a file; code that Python refuses
    stands for itself."""
    try:
        body = ast.parse(code).body
    except SyntaxError:
        body = [ast.Expr(ast.Constant(code.rstrip("\n")))]
    body = [node for node in body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    return "\n".join(ast.dump(node) for node in unwrapped(body) if not isinstance(node, ast.Pass))


def imports(code: str) -> str:
    """The imports of code that always runs, one a line."""
    nodes = ast.parse(code).body
    return "\n".join(ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def set_up(page: Page) -> list[str]:
    """Assertions that JAX is as the page's front matter says."""
    settings: dict[str, Any] = dict(page.settings.runtime)
    values = {**settings["jax"], **({"jax_enable_x64": True} if settings["x64"] else {})}
    found = [f"assert getattr(jax.config, {name!r}) == {value!r}" for name, value in values.items()]
    found += [f"assert jax.device_count() == {settings['devices']}"] if settings["devices"] > 1 else []
    return ["import jax", *found] if found else []


NOTEBOOKS = [path for path in PAGES if runs_otherwise(path)]


def parts_of(text: str) -> tuple[list[str], list[str]]:
    """The code that a script has of its own, and that of its page's blocks, without those that it only shows."""
    parts = sections(text)
    own = [code for title, code in parts if title in ("set up", "files that come with the page")]
    blocks = [code for title, code in parts if title not in ("set up", "files that come with the page")]
    return own, [code for code in blocks if not code.startswith("# ") or ast.parse(code).body]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(PROJECT.docs).as_posix())
def test_a_script_and_a_notebook_hold_the_program(course: Course, path: Path) -> None:
    page, run = course.ran(path)
    made = programs(page, run, PROJECT, "", str)
    compile(made["script"], "script.py", "exec")
    expected = [program(block.code) for block in page.program]
    own, blocks = parts_of(made["script"])
    assert [program(code) for code in blocks] == expected
    about = [
        (cell["metadata"].get("live", {}), "".join(cell["source"])) for cell in json.loads(made["notebook"])["cells"]
    ]
    assert [program(code) for live, code in about if "key" in live] == expected
    own_to_script = [ast.dump(node) for code in own for node in ast.parse(code).body]
    prepared = [ast.dump(node) for live, code in about if "prepares" in live for node in ast.parse(code).body]
    assert [node for node in own_to_script if node in prepared] == prepared
    assert bool(prepared) >= bool(set_up(page))


@pytest.mark.slow
def test_scripts_bring_what_they_import(course: Course, reader: Reader) -> None:
    """Scripts that are set up alike, with the same installed, run in one process."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for path in PAGES:
        page, run = course.ran(path)
        text = programs(page, run, PROJECT, "", str)["script"]
        own, blocks = parts_of(text)
        begin = ast.unparse(ast.parse("\n".join([text.partition("\n# %%")[0], *own, *set_up(page)])))
        alike.setdefault((begin, *absent(text)), []).extend(map(imports, blocks))
    for (begin, *missing), rest in alike.items():
        status, out, err = reader.run("script.py", "\n".join([begin, *dict.fromkeys(rest)]) + "\n", missing)
        assert status == 0, out[-2000:] + err[-4000:]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.relative_to(PROJECT.docs).as_posix())
def test_a_notebook_has_the_outputs_of_its_page(course: Course, reader: Reader, path: Path) -> None:
    page, run = course.ran(path)
    made = programs(page, run, PROJECT, "", str)
    text = made["notebook"]
    wanted = {  # of a block that varies, the first value
        result.block.line: reported(result.outcome.stdout)
        for result in run.on_page
        if result.block.runs and not result.block.options.volatile and not result.outcome.skipped
    }
    name = path.relative_to(PROJECT.docs).as_posix()
    if name in NOTES_OF_THE_COMPILER:
        wanted = {}
    status, out, err = reader.run(Path(COURSE.place(path).notebook).name, text, absent(text))
    assert status == 0, out[-2000:] + err[-4000:]  # errors are those that the cells' tags name
    if name in NAME_PLACES:
        status, out, err = reader.run(Path(COURSE.place(path).script).name, made["script"], absent(made["script"]))
        assert status == 0, out[-2000:] + err[-4000:]
    lines = set(reported(out).split("\n"))  # a notebook also writes the values of last lines
    for line, output in wanted.items():
        assert set(output.split("\n")) <= lines, line
