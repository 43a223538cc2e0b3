"""What is published has passed the tests, on every Python that is supported; nothing stray is at the root."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def workflow(name: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))
    return found


def test_only_commits_that_passed_the_tests_are_published() -> None:
    publish = workflow("publish")
    begins = publish[True]  # "on" is a truth value in YAML
    assert begins == {
        "workflow_run": {"workflows": [workflow("test")["name"]], "types": ["completed"], "branches": ["main"]}
    }
    build = publish["jobs"]["build"]
    assert "github.event.workflow_run.conclusion == 'success'" in build["if"]
    assert build["steps"][0]["with"]["ref"] == "${{ github.event.workflow_run.head_sha }}"
    assert all(job["needs"] == "build" for name, job in publish["jobs"].items() if name != "build")


def test_every_supported_python_is_tested() -> None:
    pythons = workflow("test")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert pythons == ["3.11", "3.12", "3.13", "3.14"]
    assert f'requires-python = ">={pythons[0]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_every_page_runs_on_other_processors_and_systems_too() -> None:
    job = workflow("test")["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    newest = matrix["python"][-1]
    assert matrix["include"] == [{"os": os, "python": newest} for os in ("ubuntu-24.04-arm", "macos-15")]
    first, others = job["steps"][-2:]
    (everything,) = matrix["os"]
    assert (first["if"], others["if"]) == (f"matrix.os == '{everything}'", f"matrix.os != '{everything}'")
    tested = others["run"].partition("pytest -rfE ")[2].split()
    assert "docs" in tested and all((ROOT / path).exists() for path in tested)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_by_hash(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
    assert used and [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", action)] == []


def test_nothing_stray_is_at_the_root() -> None:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no checkout of git")
    files = {name for name in done.stdout.splitlines() if "/" not in name}
    assert {name for name in files if not name.endswith((".md", ".toml", ".yml"))} == {
        ".gitignore",
        "LICENSE",
        "Makefile",
    }
