"""Every answer has its form, and its program gives alone, under JAX's defaults, what the page shows."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from livepages.course import read_course
from livepages.execution import Engine, Outcome, Runner
from livepages.source import Block, Page, find_project
from livepages.source.parser import parse
from tests.conftest import Course

PROJECT = find_project(Path(__file__))
PAGES = [path for part in read_course(PROJECT).parts for path in part.pages if path.parent.name == "answers"]
PAGES = [path for path in PAGES if path.stem != "index"]
QUESTION = re.compile(
    r"^## (?P<text>[^\n]+\?) { #(?P<id>[a-z0-9-]+) \}\n\n<!-- asked\n(?P<asked>.+?)\n-->\n", re.M | re.S
)
# What all programs of a process share: settings, caches, modules, devices, what is registered, the process itself. What a
# `with` changes, it puts back.
SHARED = re.compile(
    r"^(?!\s*with ).*(config\.|environ|logging|warnings\.|mesh|register|cache|sys\.|setattr|patch|subprocess|threading"
    r"|np\.random\.[a-z]+\(|debug_|checking_leaks|transfer_guard|matmul_precision|enable_|profiler|monitoring)",
    re.M,
)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def names(path: Path) -> str:
    return path.stem


def test_there_are_enough_questions_and_none_twice() -> None:
    questions = [match["text"] for path in PAGES for match in QUESTION.finditer(path.read_text())]
    assert len(questions) >= 300
    assert len(set(questions)) == len(questions)


@pytest.mark.parametrize("path", PAGES, ids=names)
def test_an_answer_has_its_form(path: Path) -> None:
    parts = re.split(r"(?=^## )", path.read_text(), flags=re.M)[1:]
    assert parts
    for part in parts:
        heading, question = part.partition("\n")[0], QUESTION.match(part)
        assert question, f"{heading}: wants the form `## Question? {{ #id }}` with a comment <!-- asked below it"
        wordings = question["asked"].splitlines()
        assert len(wordings) >= 5 and len(set(wordings)) == len(wordings), heading
        answer = part[question.end() :]
        words = re.sub(r"`\{python\}[^`]*`", "value", FENCE.sub("", answer)).split()  # each value is read as one word
        assert len(words) < 150, heading
        assert re.search(r"^More: \[", answer, re.M), heading
        for fence in FENCE.findall(answer):
            opening, *code, _ = fence.splitlines()
            assert opening.startswith("```python ") and ("isolated=" in opening or "exec=" in opening), heading
            assert len(code) <= 20 and all(len(line) <= 80 for line in code), heading


def alone(page: Page, block: Block) -> Page:
    """A page that consists of one block, with as many devices as the page says that the reader needs."""
    lines = [""] * len(page.text)
    lines[block.fence.start : block.fence.end] = page.text[block.fence.start : block.fence.end]
    # The cache that a page turns off is the site's own, which a reader does not have.
    settings = {name: page.meta[name] for name in ("devices", "jax") if name in page.meta}
    assert settings.get("jax", {}) in ({}, {"jax_enable_compilation_cache": False})
    if settings:
        lines[:3] = ["---", json.dumps(settings), "---"]
    return parse("\n".join(lines), page.path.with_name(f"{page.path.stem}-{block.index}.md"), PROJECT)


def may_change_others(path: Path) -> bool:
    """Return whether a program of a page reads or changes what all programs of a process share.

    Each runs in a namespace of its own, so that one which does not is alone on the page as well.
    """
    return any(SHARED.search(fence) for fence in FENCE.findall(path.read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("path", [*filter(may_change_others, PAGES)], ids=names)
def test_its_program_has_the_output_of_the_page_when_it_runs_alone(course: Course, runner: Runner, path: Path) -> None:
    page, run = course.ran(path)
    shown = [block for block in page.program if block.options.source != "none"]
    pages = [(alone(page, block), block) for block in shown if not run.results[block.index].outcome.skipped]
    engine = Engine(replace(PROJECT, options={}), runner)
    singles = [single for single, _ in pages]
    kept = engine.kept(singles)
    runs = kept | engine.run([single for single in singles if single.path not in kept])
    wrong = {
        f"{page.name}:{case.where}": (text_of(outcome), text_of(run.results[case.index].outcome))
        for single, block in pages
        for case, outcome in zip((block, *block.variants), runs[single.path].outcomes, strict=True)
        if runs[single.path].failures
        or not block.options.volatile
        and text_of(outcome) != text_of(run.results[case.index].outcome)
    }
    assert not wrong


def text_of(outcome: Outcome) -> tuple[str, str]:
    """Return what a block printed, without what differs from run to run, and what it raised."""
    text = outcome.stdout
    for pattern, meaning in PROJECT.runtime.noise_patterns:
        text = pattern.sub(meaning, text)
    return text, outcome.raised.type if outcome.raised else outcome.skipped


def test_a_program_that_needs_what_stands_before_it_is_found(course: Course) -> None:
    path = PROJECT.docs / "answers" / "loops.md"
    text = '# Page\n\n```python\na = 1\n```\n\n```python isolated="on"\nprint(a)\n```\n'
    page = parse(text, path, PROJECT)
    [single] = [alone(page, block) for block in page.program if block.options.isolated]
    assert [block.code.strip() for block in single.program] == ["print(a)"]
    assert course.engine.run([single])[single.path].failures
