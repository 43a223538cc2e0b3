"""The visible blocks of a page run, alone and in order, in a session without the page's settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from livepages.course import read_course
from livepages.execution import Engine, Runner
from livepages.source import Page, find_project
from livepages.source.page import parse
from tests.conftest import Course

PROJECT = find_project(Path(__file__))
# The programs of answers run each by itself: tests/site/test_answers.py.
PAGES = [
    path
    for part in read_course(PROJECT).parts
    for path in part.pages
    if path.parent.name != "answers" and "```python" in path.read_text()
]


def visible(page: Page) -> Page:
    """The page without its settings, values and blocks whose code it does not show; lines stay where they are."""
    lines = list(page.text)
    for value in page.values:  # it may be of what a hidden block has made
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


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(PROJECT.docs).as_posix())
def test_what_is_visible_runs(course: Course, runner: Runner, path: Path) -> None:
    page, _ = course.ran(path)
    shown = visible(page)
    engine = Engine(replace(PROJECT, options={}), runner)
    run = (engine.kept([shown]) or engine.run([shown]))[path]
    # A figure may be drawn by a hidden block from what visible ones made.
    failed = [str(failure) for failure in run.failures if "alt describes a figure" not in failure.message]
    assert not failed, "\n".join(failed)
