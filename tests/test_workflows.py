"""The workflows: only what passed the tests, on every supported Python, is published. Nothing stray is at the root."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from livepages.integrations.build import NO_EXECUTE
from livepages.source import find_project

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


def step(steps: list[dict[str, Any]], action: str, name: str) -> dict[str, Any]:
    """The step of a job that carries out an action of actions/ on the artifact of a name."""
    [found] = [one for one in steps if f"actions/{action}@" in one.get("uses", "") and one["with"].get("name") == name]
    return found


def test_the_runs_that_are_published_are_those_of_the_job_that_passed() -> None:
    tested, build = workflow("test")["jobs"]["test"]["steps"], workflow("publish")["jobs"]["build"]
    upload, download = step(tested, "upload-artifact", "runs"), step(build["steps"], "download-artifact", "runs")
    runs, python = (Path(path) for path in upload["with"]["path"].split())
    cache = find_project(ROOT).cache.relative_to(ROOT)
    assert runs == cache / "runs" and upload["with"]["include-hidden-files"] is True
    at = [number for number, one in enumerate(tested) if "make test" in one.get("run", "")]
    assert at and tested.index(upload) > at[0]
    # What several paths have in common is where they are in the artifact.
    assert Path(download["with"].pop("path")) == cache == runs.parent == python.parent
    assert download["with"] == {
        "name": "runs",
        "run-id": "${{ github.event.workflow_run.id }}",
        "github-token": "${{ github.token }}",
    }
    assert build["permissions"]["actions"] == "read"
    [version] = [one["run"] for one in tested if one.get("run", "").endswith(f">{python}")]
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-c", version.rpartition(">")[0]], env=path, capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"3\.\d+\.\d+\S*\n", done.stdout)
    [setup] = [one for one in build["steps"] if "actions/setup-python@" in one.get("uses", "")]
    assert setup["with"] == {"python-version-file": str(python)}


def test_nothing_runs_when_the_site_is_published() -> None:
    commands = [one for one in workflow("publish")["jobs"]["build"]["steps"] if "run" in one]
    assert [one["run"].partition(" PYTHON=")[0] for one in commands] == ["make site"]
    assert all(one.get("env", {}).get(NO_EXECUTE) for one in commands)


def test_the_example_of_shards_is_right() -> None:
    text = (ROOT / "livepages/README.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```yaml\n(jobs:.*?)```", text, re.DOTALL)
    pinned = {action for file in WORKFLOWS for action in re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))}
    assert {*re.findall(r"uses: (.*)", example)} <= pinned
    run, build = yaml.safe_load(example)["jobs"].values()
    shards = run["strategy"]["matrix"]["shard"]
    assert shards == [*range(1, len(shards) + 1)]
    assert f"pytest docs --shard ${{{{ matrix.shard }}}}/{len(shards)}" in [one.get("run") for one in run["steps"]]
    upload = step(run["steps"], "upload-artifact", "runs-${{ matrix.shard }}")["with"]
    [download] = [one["with"] for one in build["steps"] if "download-artifact" in one.get("uses", "")]
    assert download == {"pattern": "runs-*", "path": upload["path"], "merge-multiple": True}
    assert Path(upload["path"]) == find_project(ROOT).cache.relative_to(ROOT) / "runs"
    assert upload["include-hidden-files"] is True
    assert build["steps"][-1]["run"] == "livepages build mkdocs --no-execute"


def test_every_supported_python_is_tested() -> None:
    pythons = workflow("test")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert pythons == ["3.11", "3.12", "3.13", "3.14"]
    assert f'requires-python = ">={pythons[0]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_every_page_runs_on_other_processors_and_systems_too() -> None:
    job = workflow("test")["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    newest = matrix["python"][-1]
    assert matrix["include"] == [{"os": os, "python": newest} for os in ("ubuntu-24.04-arm", "macos-15")]
    first, others = (step for step in job["steps"] if "matrix.os" in step.get("if", ""))
    (everything,) = matrix["os"]
    assert (first["if"], others["if"]) == (f"matrix.os == '{everything}'", f"matrix.os != '{everything}'")
    tested = others["run"].partition("pytest -rfE ")[2].split()
    assert "docs" in tested and all((ROOT / path).exists() for path in tested)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_by_hash(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
    assert used and [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", action)] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_only_named_jobs_may_write(file: Path) -> None:
    found = workflow(file.stem)
    writing = {
        (name, what)
        for name, job in found["jobs"].items()
        for what, access in job.get("permissions", found["permissions"]).items()
        if access != "read"
    }
    assert found["permissions"] in ({}, {"contents": "read"})
    assert writing == {
        "publish": {("notebooks", "contents"), ("deploy", "pages"), ("deploy", "id-token")},
        "weekly": {("issue", "issues")},
    }.get(file.stem, set())


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_what_is_made_can_be_made(file: Path) -> None:
    """Each command of make names a target, and variables that the Makefile reads."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(
        r"(?:run: |^ +)make (\S+)((?: \w+=\S+| \$\{\{.*?\}\}\S*)*)", file.read_text(encoding="utf-8"), re.M
    )
    for target, variables in commands:
        assert re.search(rf"^{target}:", makefile, re.M), target
        assert [name for name in re.findall(r"(\w+)=", variables) if f"$({name})" not in makefile] == []
    assert commands


@pytest.mark.parametrize("open_already", [True, False])
def test_the_weekly_run_opens_one_issue_and_brings_it_up_to_date(tmp_path: Path, open_already: bool) -> None:
    """The step is carried out with a `gh` that writes down what it is asked for."""
    step = workflow("weekly")["jobs"]["issue"]["steps"][-1]
    gh = tmp_path / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text('#!/bin/sh\nif [ "$2" = list ]; then echo "$NUMBER"; else printf "%s\\n" "$@" > asked; fi\n')
    gh.chmod(0o755)
    reports = {
        "versions": "new: ä",
        "pages-newest": "docs/page.md:3",
        "pages-pre": "docs/page.md:3",
        "elsewhere": "none",
        "aging": "0 statements that may have aged:",
    }
    for name, text in reports.items():
        (tmp_path / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
    environment = {
        "PATH": f"{gh.parent}:{os.environ['PATH']}",
        "NUMBER": "7" if open_already else "",
        "RUN": "https://example.org/run",
        "TITLE": step["env"]["TITLE"],
    }
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, check=True)
    which = ["edit", "7"] if open_already else ["create", "--title", step["env"]["TITLE"]]
    assert (tmp_path / "asked").read_text().splitlines() == ["issue", *which, "--body-file", "body.md"]
    assert (tmp_path / "body.md").read_text(encoding="utf-8").split("\n\n") == [
        "[The last run](https://example.org/run) took the newest version of every package, as `make lock UPGRADE=1` does.",
        "new: ä",
        "docs/page.md:3",
        "PyPI has no pre-release of JAX that is newer.",
        "none",
        "The run ended before it could write `tests.md`.",
        "0 statements that may have aged:\n",
    ]


def test_nothing_stray_is_at_the_root() -> None:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no checkout of git")
    files = {name for name in done.stdout.splitlines() if "/" not in name}
    assert {name for name in files if not name.endswith((".md", ".toml", ".yml"))} == {
        ".gitignore",
        ".pre-commit-config.yaml",
        "LICENSE",
        "Makefile",
        "deno.json",
    }


def test_what_runs_before_a_commit_has_the_versions_of_the_lock() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    lock = (ROOT / "requirements/python-3.12.txt").read_text(encoding="utf-8")
    versions = {name: hook["rev"].removeprefix("v") for name, hook in zip(("ruff", "codespell"), hooks, strict=False)}
    for each in hooks[2]["hooks"]:
        (versions["deno"],) = (package.removeprefix("deno==") for package in each["additional_dependencies"])
        for name, version in versions.items():
            assert f"\n{name}=={version} " in lock, "bring .pre-commit-config.yaml up to date"
