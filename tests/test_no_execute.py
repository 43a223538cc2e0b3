"""Publishing what was tested: builds that run nothing, runs kept in another clone, and pages run in shards."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from livepages.integrations.build import NO_EXECUTE
from livepages.integrations.shards import Shard
from livepages.source import ProjectError
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
SCARCE = r"no run is cached of this code under these settings, this livepages and Python [\d.]+"
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
        """The id that the first page shows, which is different each time it runs."""
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
    status, output = here("livepages", "build", program, "--no-execute")
    found = re.findall(r"(docs/\S+?\.md:\d+): (.*)", output)
    assert status == 1 and [place for place, _ in found] == ["docs/three.md:1", "docs/two.md:1"]
    assert re.fullmatch(SCARCE + re.escape(BRING), found[0][1])
    assert found[1][1] == f"its cached run is no longer valid: content snippets/helper.py has changed{BRING}"
    assert not (here.root / "site").exists()
    assert len([*here.root.glob(".cache/livepages/runs/*/*.json")]) == 2


def test_a_build_that_runs_nothing_fails_for_a_kept_run_with_a_failure(clone: Callable[[str], Clone]) -> None:
    here = clone("here")
    here.write("docs/three.md", "# Three\n\n```python\n1 / 0\n```\n")
    assert here("livepages", "run")[0] == 1
    for command in (["livepages", "build", "mkdocs"], ["mkdocs", "build"]):
        status, output = here(*command, environment={NO_EXECUTE: "1"})
        assert status == 1 and re.findall(r"docs/\S+:.*", output) == [
            "docs/three.md:4: block of line 3: raised ZeroDivisionError: division by zero"
        ]


def test_what_one_clone_has_run_another_publishes_as_it_is(clone: Callable[[str], Clone]) -> None:
    tested, published = clone("tested"), clone("published")
    assert tested("livepages", "run")[0] == 0
    published.take(tested)
    for here, option in ((tested, []), (published, ["--no-execute"])):
        status, output = here("livepages", "build", "mkdocs", *option)
        assert status == 0 and "4 pages, 3 Python blocks: 0 run now, 3 unchanged" in output, output
    assert published.id == tested.id
    published.write("snippets/helper.py", "NAME = 'changed'\n")
    status, output = published("livepages", "build", "mkdocs", "--no-execute")
    assert status == 1 and "docs/two.md:1: its cached run is no longer valid" in output


@pytest.mark.parametrize("command", [["pytest", "-p", "no:cacheprovider", "docs"], ["livepages", "run"]], ids=" ".join)
def test_shards_run_each_page_once_and_merging_them_is_a_copy(
    clone: Callable[[str], Clone], command: list[str]
) -> None:
    ran = []
    published = clone("published")
    for index in (1, 2):
        here = clone(f"shard-{index}")
        status, output = here(*command, "--shard", f"{index}/2")
        assert status == 0, output
        ran.append(len([*here.root.glob(".cache/livepages/runs/*/*.json")]))
        published.take(here)
    assert sorted(ran) == [1, 2]
    status, output = published("livepages", "build", "mkdocs", "--no-execute")
    assert status == 0 and "0 run now, 3 unchanged" in output, output


def test_a_shard_has_the_pages_that_cannot_be_read_too(clone: Callable[[str], Clone]) -> None:
    here = clone("here")
    here.write("docs/three.md", "# Three\n\n```python colour='red'\n```\n")
    for command in (["pytest", "-p", "no:cacheprovider", "docs"], ["livepages", "run"]):
        both = [here(*command, "--shard", f"{index}/2") for index in (1, 2)]
        assert sorted(status for status, _ in both) == [0, 1]
        assert sum("docs/three.md:3: unknown option 'colour'" in output for _, output in both) == 1


@pytest.mark.parametrize("text", ["9/8", "0/8", "x", "2", "1/0", "-1/2", "1/2/3", ""])
def test_a_shard_that_there_is_not_is_refused(clone: Callable[[str], Clone], text: str) -> None:
    here = clone("here")
    for command, refused in ((["livepages", "run"], 2), (["pytest", "docs"], 4)):
        status, output = here(*command, f"--shard={text}")
        assert status == refused
        assert f"argument --shard: {text!r} is not INDEX/COUNT with an INDEX from 1 to COUNT, such as 2/8" in output


def test_more_shards_than_pages_are_refused(clone: Callable[[str], Clone]) -> None:
    here = clone("here")
    for command, refused in ((["livepages", "run"], 2), (["pytest", "docs"], 4)):
        status, output = here(*command, "--shard", "1/9")
        assert status == refused and "--shard 1/9: COUNT may be " in output


# Seconds, of made-up pages.
TIMES = {
    "equal": dict.fromkeys("abcdefghij", 1.0),
    "one long": {"a": 100.0, **dict.fromkeys("bcdefghij", 1.0)},
    "growing": {name: float(number) for number, name in enumerate("abcdefghijklmnop")},
    "nothing known": dict.fromkeys("abcdefgh", 0.0),
}


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_every_page_is_in_exactly_one_shard_and_shards_take_about_equally_long(times: str, count: int) -> None:
    took = {Path(name): seconds for name, seconds in TIMES[times].items()}
    shards = [Shard(index, count).of(took) for index in range(1, count + 1)]
    assert sorted(path for shard in shards for path in shard) == sorted(took)
    assert shards == [Shard(index, count).of(dict(reversed(took.items()))) for index in range(1, count + 1)]
    loads = [sum(took[path] for path in shard) for shard in shards]
    assert max(loads) - min(loads) <= max(took.values())


def test_long_pages_are_shared_out_first() -> None:
    took = {Path("a"): 1.0, Path("b"): 1.0, Path("c"): 2.0}
    assert [Shard(index, 2).of(took) for index in (1, 2)] == [{Path("c")}, {Path("a"), Path("b")}]
    with pytest.raises(ProjectError, match="--shard 1/4: COUNT may be 3 at most"):
        Shard(1, 4).of(took)
