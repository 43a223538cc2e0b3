"""The key of a run covers all that decides it: whatever is new must be here as one thing or the other."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from livepages.execution.jobs import job
from livepages.execution.keys import run_key, surroundings
from livepages.execution.running import Task
from livepages.source import Page, Project
from livepages.source.front_matter import KNOWN
from livepages.source.options import TABLE
from livepages.worker import BlockSpec, Job, find_runtime
from tests.conftest import Site

# A value of each other than the usual one.
SETTINGS = {
    "exclusive": "true",
    "depends_on": "[data]",
    **{"x64": "true", "devices": "2", "jax": "{jax_enable_x64: true}", "needs": "gpu"},
}
UNCOVERED_SETTINGS = {"timeout", "title", "description", "before", "redirect_from", "requires", "tags"}
PROJECT: dict[str, Any] = {
    "snippets": Path("/other"),
    "preload": ("yaml",),
    "fences": "exec",
    "runtime": find_runtime("python"),
    "options": {"jax_enable_x64": True},
}
# Where it lies is a probe of the runs that name it; what decides what is on a page is in that page.
UNCOVERED_PROJECT = {"root", "docs", "mkdocs", "inventories", "records", "cache", "reference", "timeout", "guide"}
UNCOVERED_PROJECT |= {"inline_expressions", "configuration"}
COMMENTS = [
    *("pytest.mark.skip", "pytest.mark.slow", "pytest.mark.xfail(raises=KeyError)", "pytest-codeblocks:expect-error"),
    *("pytest-codeblocks:importorskip(yaml)", 'pytest.mark.skipif(True, reason="")'),
]


def test_each_setting_of_a_page_is_covered_or_changes_nothing(site: Site) -> None:
    assert {*KNOWN, *site.project.runtime.settings({})} == SETTINGS.keys() | UNCOVERED_SETTINGS
    plain = run_key(site.page("x = 1"))
    for name, value in SETTINGS.items():
        assert run_key(site.page("x = 1", head=f"---\n{name}: {value}\n---\n\n")) != plain, name


def test_each_setting_of_a_project_is_covered_or_changes_nothing(site: Site) -> None:
    project = site.project
    assert {field.name for field in fields(Project)} == PROJECT.keys() | UNCOVERED_PROJECT
    for name, value in PROJECT.items():
        assert surroundings(replace(project, **{name: value})) != surroundings(project), name


def _given(page: Page, project: Project) -> Job:
    """The job of a page, without what differs from run to run, and without what the outcome is compared with."""

    def compared(block: BlockSpec) -> BlockSpec:
        figures = None if block.expected.figures is None else False
        return replace(
            block, line=0, expected=replace(block.expected, raises="", match="", figures=figures, output=None)
        )

    made = job(Task(page), Path("/run"), project, (0,), 0)
    return replace(made, requested=0.0, blocks=tuple(map(compared, made.blocks)))


@pytest.mark.parametrize("fences", ["all", "exec"])
def test_pages_with_the_same_key_are_the_same_for_their_process(site: Site, fences: str) -> None:
    """So what decides an option, a comment or whatever is new for the process cannot be left out of the key."""
    site.write("pyproject.toml", f'[tool.livepages]\nruntime = "jax"\nfences = "{fences}"\n')
    project = site.project
    exec_on = 'exec="on" ' if fences == "exec" else ""
    fence = "{above}```python {options}\nlr = 1\n```\n"
    texts = [fence.format(above="", options=exec_on + option) for option in ["", 'reason="a"', 'raises="KeyError"']]
    for name, row in TABLE.items():
        others = {"exec": ' reason="a"', "match": ' raises="KeyError"'}.get(name, "")
        own = "" if name == "exec" else exec_on
        texts.append(fence.format(above="", options=f'{own}{name}="{row.example}"{others}'))
    texts += [fence.format(above=f"<!--{comment}-->\n\n", options=exec_on) for comment in COMMENTS]
    texts.append(fence.format(above="# Prose\n\n", options=exec_on))
    jobs: dict[str, Job] = {}
    for text in texts:
        page = site.read(site.write("docs/page.md", text))
        assert jobs.setdefault(run_key(page), _given(page, project)) == _given(page, project), text
    assert 3 < len(jobs) < len(texts)
