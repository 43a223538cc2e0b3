"""What is published is what was tested: builds that run nothing, and runs kept in another clone."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from livepages.integrations.build import NO_EXECUTE
from tests.prepared import Commands

CONFIG = """\
site_name: Test
theme: {name: material, font: false}
plugins: [livepages]
markdown_extensions: [attr_list, md_in_html, pymdownx.highlight, pymdownx.superfences, livepages]
"""
FILES = {
    "pyproject.toml": "[tool.livepages]\n",
    "mkdocs.yml": CONFIG,
    "snippets/helper.py": "NAME = 'helper'\n",
    "docs/index.md": "# One\n\n```python volatile='on'\nimport uuid\nprint('id', uuid.uuid4().hex)\n```\n",
    "docs/two.md": "# Two\n\n```python\nimport helper\nprint(helper.NAME)\n```\n",
    "docs/three.md": "# Three\n\n```python\nprint(3)\n```\n",
    "docs/prose.md": "# Prose\n",
}
SCARCE = r"no run is kept of this code under these settings, this livepages and Python [\d.]+"
BRING = "; this build runs nothing: run `livepages run`, or bring .cache/livepages/runs from where the page has run"


class Clone:
    """A clone of a repository, and what commands do in it."""

    def __init__(self, root: Path, commands: Commands) -> None:
        self.root, self._commands = root, commands

    def __call__(self, *command: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
        """The exit status of a command and all that it says."""
        done = self._commands.run(*command, folder=self.root, environment=environment)
        return done.returncode, done.stdout + done.stderr

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8")

    def take(self, other: "Clone") -> None:
        """Copy the runs that another clone has kept to those that are here."""
        runs = Path(".cache/livepages/runs")
        shutil.copytree(other.root / runs, self.root / runs, dirs_exist_ok=True)

    @property
    def id(self) -> str:
        """What the first page shows, which is different each time it runs."""
        [found] = re.findall(r"id [0-9a-f]{32}", (self.root / "site/index.html").read_text(encoding="utf-8"))
        return str(found)


@pytest.fixture
def clone(tmp_path: Path, commands: Commands) -> Callable[[str], Clone]:
    """Clones of one repository, by their names."""
    origin = tmp_path / "origin"
    for name, text in FILES.items():
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        (origin / name).write_text(text, encoding="utf-8")
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@localhost"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, *arguments], cwd=origin, check=True)

    def make(name: str) -> Clone:
        subprocess.run(["git", "clone", "-q", origin, tmp_path / name], check=True)
        return Clone(tmp_path / name, commands)

    return make


@pytest.mark.parametrize("program", ["mkdocs", "properdocs", "zensical"])
def test_a_build_that_runs_nothing_fails_for_each_page_whose_run_is_not_kept(
    clone: Callable[[str], Clone], program: str
) -> None:
    pytest.importorskip(program)
    here = clone("here")
    here("livepages", "run", "docs/index.md", "docs/two.md")
    here.write("snippets/helper.py", "NAME = 'changed'\n")
    status, said = here("livepages", "build", program, "--no-execute")
    found = re.findall(r"(docs/\S+?\.md:\d+): (.*)", said)
    assert status == 1 and [place for place, _ in found] == ["docs/three.md:1", "docs/two.md:1"]
    assert re.fullmatch(SCARCE + re.escape(BRING), found[0][1])
    assert found[1][1] == f"its kept run no longer holds: content snippets/helper.py has changed{BRING}"
    assert not (here.root / "site").exists()
    assert len([*here.root.glob(".cache/livepages/runs/*/*.json")]) == 2


def test_a_build_that_runs_nothing_fails_for_a_kept_run_with_a_failure(clone: Callable[[str], Clone]) -> None:
    here = clone("here")
    here.write("docs/three.md", "# Three\n\n```python\n1 / 0\n```\n")
    assert here("livepages", "run")[0] == 1
    for command in (["livepages", "build", "mkdocs"], ["mkdocs", "build"]):
        status, said = here(*command, environment={NO_EXECUTE: "1"})
        assert status == 1 and re.findall(r"docs/\S+:.*", said) == [
            "docs/three.md:4: block of line 3: raised ZeroDivisionError: division by zero"
        ]


def test_what_one_clone_has_run_another_publishes_as_it_is(clone: Callable[[str], Clone]) -> None:
    tested, published = clone("tested"), clone("published")
    assert tested("livepages", "run")[0] == 0
    published.take(tested)
    for here, option in ((tested, []), (published, ["--no-execute"])):
        status, said = here("livepages", "build", "mkdocs", *option)
        assert status == 0 and "4 pages, 3 Python blocks: 0 run now, 3 unchanged" in said, said
    assert published.id == tested.id
    published.write("snippets/helper.py", "NAME = 'changed'\n")
    status, said = published("livepages", "build", "mkdocs", "--no-execute")
    assert status == 1 and "docs/two.md:1: its kept run no longer holds" in said
