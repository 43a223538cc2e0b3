"""The Git repository of a project: when its pages changed, its last commit, and the files that it ignores."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from livepages.execution import Run
from livepages.source import Page, Project, includes


def days(project: Project) -> dict[Path, str]:
    """The day of the last commit of each page and module, as ``2026-11-21``.

    Empty where the history cannot be read: no Git, no repository, or a shallow clone, which has only the end of it.
    """
    if _git(project, "rev-parse", "--is-shallow-repository") != "false\n":
        return {}
    folders = [str(project.docs), str(project.snippets)]
    log = _git(project, "log", "--format=%x01%cs", "--name-only", "-z", "--no-renames", "--relative", "--", *folders)
    found: dict[Path, str] = {}
    for commit in log.split("\x01")[1:]:
        day, *names = commit.replace("\n", "\0").split("\0")
        for name in filter(None, names):
            found.setdefault(project.root / name, day)
    return found


def last_change(page: Page, run: Run, project: Project, changed: Mapping[Path, str]) -> str:
    """The day on which a page, or a file that it includes or uses, last changed; empty if `changed` lacks the page."""
    used = (project.root / name for name in run.files)
    files = [page.path, *(project.snippets / name for name in includes(page.source)), *used]
    return max((changed.get(file, "") for file in files), default="") if page.path in changed else ""


def commit(project: Project) -> str:
    """The last commit that changed the pages, their modules or the engine, in short; empty if unknown."""
    folders = [str(project.docs), str(project.snippets), str(Path(__file__).parents[1])]
    return _git(project, "log", "-1", "--format=%h", "--", *folders).strip()


def ignored(project: Project) -> frozenset[str]:
    """Return the names of the modules and data of a project that git ignores; none where there is no repository."""
    names = _git(project, "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", str(project.snippets))
    return frozenset(names.split("\0"))


def _git(project: Project, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=project.root, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
