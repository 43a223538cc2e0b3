"""The files for programs that write JAX: they are small, every line of them runs, and their digests are right."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from ladder import PRELUDE, Record, behaviors, number

from course import jax_now
from livepages.course import read_course
from livepages.execution import Engine
from livepages.source import Page, find_project
from tests.conftest import HANG

RUN = """
import json, sys, traceback
for code in json.load(sys.stdin):
    try:
        exec(code, {"__name__": "__main__"})
    except Exception:
        sys.exit(f"{code}\\n{traceback.format_exc()}")
"""


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    project = find_project(Path(__file__))
    paths = [path for path in read_course(project).pages if path.parent.name == "lookup"]
    return Engine(project).read(paths)[0]


@pytest.fixture(scope="module")
def text(pages: list[Page]) -> str:
    return jax_now.jax_now(pages, "https://jax.example/")


def test_it_is_small_and_says_what_it_is_of(text: str, pages: list[Page]) -> None:
    assert len(text.encode()) <= 8000
    assert len(jax_now.jax_now(pages).encode()) <= 8000
    assert f"ran on jax {max(Record().columns, key=number)}." in text
    assert "https://jax.example/lookup/then-and-now/index.md" in text
    assert all(f"\n{name}: " in text for name in jax_now.ERRORS)
    assert all(f"- `{name}`: " in text for name in jax_now.FIRST)


def test_every_line_of_code_runs(text: str, tmp_path: Path) -> None:
    code = jax_now.code(text)
    assert len(code) > 80
    silent = [line for line in text.splitlines() if line.startswith("- `") and not any(piece in line for piece in code)]
    assert len(silent) <= 3, silent  # where a note says what to write
    by_name = {behavior.name: behavior.code for behavior in behaviors()}
    before = (
        f"{PRELUDE}import functools, jax.example_libraries.optimizers, jax.example_libraries.stax, jax.scipy.linalg\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([before + by_name.get(piece, piece) for piece in code]),
        cwd=tmp_path,  # one of the programs names a folder to keep compiled functions in
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_changed_is_what_the_installed_release_gives(text: str) -> None:
    column = Record().columns[max(Record().columns, key=number)]
    changed = [line for line in text.splitlines() if " is now `" in line]
    assert len(changed) >= 4
    for line in changed:
        name, _, said = line.removeprefix("- `").partition("` is now `")
        assert said.partition("`")[0] == column.behaviors[name].text
        code = next(behavior.code for behavior in behaviors() if behavior.name == name)
        if jax.__version__ == max(Record().columns, key=number):
            given = eval(code, {"jax": jax, "jnp": jax.numpy})
            assert " ".join(given.split()) == column.behaviors[name].text


def test_the_skill_holds_the_same_and_its_digest_is_right(pages: list[Page]) -> None:
    files = jax_now.files(pages, "https://jax.example/")
    (skill,) = json.loads(files[".well-known/agent-skills/index.json"])["skills"]
    assert skill["url"] == "https://jax.example/.well-known/agent-skills/jax-now/SKILL.md"
    held = files[skill["url"].removeprefix("https://jax.example/")]
    assert skill["digest"] == f"sha256:{hashlib.sha256(held.encode()).hexdigest()}"
    assert held.startswith("---\nname: jax-now\ndescription: ") and held.endswith(files["jax-now.md"])
