"""The visible blocks of a page run, alone and in order, in a session without the page's settings.

On the page they run among hidden ones. They name nothing that only those define; and the pages that set JAX up run without
what is hidden.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from livepages.course import read_course
from livepages.execution import Engine, Runner
from livepages.source import Page, find_project
from livepages.source.parser import parse, read_page
from tests.conftest import Course

PROJECT = find_project(Path(__file__))
# The programs of answers run each by itself: tests/site/test_answers.py.
PAGES = [
    path
    for part in read_course(PROJECT).parts
    for path in part.pages
    if path.parent.name != "answers" and "```python" in path.read_text()
]
SETS_UP = re.compile(r"^(devices|x64|jax):|config\.update\(|environ\[", re.M)
NO_NAMES = {
    ("debug-testing", "batch"),  # an axis of jaxtyping, as the next
    ("lookup-errors-equinox", "n"),
    ("scale-many-hosts", "os"),  # modules that a function shown from a file imports there
    ("scale-many-hosts", "faulthandler"),
}


def visible(page: Page) -> Page:
    """The page without its settings, values and blocks whose code it does not show; lines stay where they are."""
    lines = list(page.text)
    for value in page.inline_expressions:  # it may be of what a hidden block has made
        lines[value.fence.start] = ""
    for block in page.blocks:
        if block.options.source == "none":
            lines[block.fence.start : block.fence.end] = [""] * (block.fence.end - block.fence.start)
    shown = parse("\n".join(lines), page.path, PROJECT)
    assert shown.settings == parse("", page.path, PROJECT).settings
    return shown


def test_hidden_blocks_and_settings_are_left_out(tmp_path: Path) -> None:
    text = (
        '---\nx64: true\n---\n\n```python\na = 1\n```\n\n```python source="none"\nb = 2\n```\n\n```python\na + b\n```\n'
    )
    shown = visible(parse(text, tmp_path / "page.md", PROJECT))
    assert [(block.line, block.code.strip()) for block in shown.program] == [(5, "a = 1"), (13, "a + b")]


def rests_on_settings(path: Path) -> bool:
    """Return whether what a page shows may fail where JAX is not set up as its front matter or a hidden block does.

    Without a cache of compiled programs, it is only slower.
    """
    text = path.read_text()  # reading all pages takes seconds, in each process that collects the tests
    if not SETS_UP.search(text):
        return False
    page = read_page(path, PROJECT)
    settings: dict[str, Any] = dict(page.settings.runtime)
    own = settings["devices"] > 1 or settings["x64"] or set(settings["jax"]) - {"jax_enable_compilation_cache"}
    return bool(own) or any(SETS_UP.search(block.code) for block in page.program if block.options.source == "none")


def undefined(pages: Iterable[Page], folder: Path) -> set[tuple[str, str]]:
    """Return each page with a name that one of its visible blocks reads and none defines before."""
    for page in pages:
        code = "\n".join(block.code for block in visible(page).program if is_python(block.code))
        (folder / f"{page.path.parent.name}-{page.path.stem}.py").write_text(code)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "--output-format", "concise"]
    done = subprocess.run([*command, folder], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {(match[1], match[2]) for match in re.finditer(r"([\w-]+)\.py:\S+ F821 Undefined name `(\w+)`", done.stdout)}


def is_python(code: str) -> bool:
    """Return whether Python compiles some code; blocks that show what it refuses do not."""
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def test_a_name_that_only_a_hidden_block_defines_is_found(tmp_path: Path) -> None:
    text = '```python\na = 1\n```\n\n```python source="none"\nb = 2\n```\n\n```python\na + b\n```\n'
    page = parse(text, tmp_path / "docs" / "page.md", PROJECT)
    assert undefined([page], tmp_path) == {("docs-page", "b")}


def test_visible_blocks_define_what_they_read(tmp_path: Path) -> None:
    assert undefined([read_page(path, PROJECT) for path in PAGES], tmp_path) == NO_NAMES


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [*filter(rests_on_settings, PAGES)], ids=lambda path: path.relative_to(PROJECT.docs).as_posix()
)
def test_what_is_visible_runs(course: Course, runner: Runner, path: Path) -> None:
    page, _ = course.ran(path)
    shown = visible(page)
    engine = Engine(replace(PROJECT, options={}), runner)
    run = (engine.kept([shown]) or engine.run([shown]))[path]
    # A figure may be drawn by a hidden block from what visible ones made.
    failed = [str(failure) for failure in run.failures if "alt describes a figure" not in failure.message]
    assert not failed, "\n".join(failed)
