"""Other processes make from the last page on what the build makes from the first on, and it looks the same."""

import os
import time
from pathlib import Path

import pytest

from livepages.integrations.build_cache import BuildCache
from livepages.integrations.prerender import Prerenderer
from tests.conftest import HANG, Site, process_ends
from tests.prepared import Commands

CONFIG = """
site_name: Ahead
markdown_extensions: [livepages]
plugins: [livepages, search]
"""


def wait_for(file: Path) -> str:
    """The text of a file that another process writes."""
    deadline = time.monotonic() + HANG
    while not file.exists() or not file.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return file.read_text()


def test_the_last_come_first_and_what_fails_is_left_to_the_build(tmp_path: Path) -> None:
    ahead, order = Prerenderer(1), tmp_path / "order"

    def note(task: int) -> None:
        print("nobody reads this")
        if task == 2:
            raise ValueError(task)
        with order.open("a") as file:
            file.write(f"{task} {os.getpid()}\n" if task else "end")

    ahead.begin(range(4), note)
    deadline = time.monotonic() + HANG
    while not wait_for(order).endswith("end"):
        assert time.monotonic() < deadline
    ahead.end()
    lines = [line.split() for line in order.read_text().splitlines()]
    assert [line[0] for line in lines] == ["3", "1", "end"]
    assert str(os.getpid()) not in (lines[0][1], lines[1][1])


def test_several_share_the_tasks(tmp_path: Path) -> None:
    ahead = Prerenderer(2)
    ahead.begin(range(4), lambda task: (tmp_path / str(task)).write_text(str(os.getpid())))
    pids = [wait_for(tmp_path / str(task)) for task in range(4)]
    ahead.end()
    assert pids[0] == pids[2] != pids[1] == pids[3]


def test_one_that_waits_for_ever_is_ended(tmp_path: Path) -> None:
    ahead = Prerenderer(1)

    def wait(task: int) -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(HANG)

    ahead.begin([1], wait)
    pid = wait_for(tmp_path / "pid")
    assert ahead.end() == [int(pid)]
    assert process_ends(pid) and ahead.end() == []


def test_what_was_half_written_when_its_process_was_ended_goes(tmp_path: Path) -> None:
    kept = BuildCache(tmp_path)
    kept.put("pages", "page.md", "key", "whole")
    for name in (".half.json.123-1", ".half.json.1234-1"):
        (tmp_path / "pages" / name).touch()
    kept.drop_unfinished(123)
    assert not (tmp_path / "pages/.half.json.123-1").exists() and (tmp_path / "pages/.half.json.1234-1").exists()
    assert BuildCache(tmp_path).get("pages", "page.md", "key") == "whole"


def test_what_another_process_has_kept_since_is_found(tmp_path: Path) -> None:
    kept, other = BuildCache(tmp_path), BuildCache(tmp_path)
    kept.put("pages", "page.md", "before", "old")
    other.put("pages", "page.md", "after", "new")
    assert kept.get("pages", "page.md", "after") == "new"


@pytest.mark.parametrize("processes", [0, 3])
def test_a_site_is_the_same_whoever_converts_its_pages(site: Site, commands: Commands, processes: int) -> None:
    names = [f"page{number}" for number in range(8)]
    for name in names:
        site.write(f"docs/{name}.md", f"# {name}\n\n```python\nprint('made by {name}')\n```\n\n[next](page0.md)\n")
    site.write("mkdocs.yml", CONFIG)
    code = (
        "import livepages.integrations.mkdocs_plugin as plugin, mkdocs.__main__, sys\n"
        f"plugin.os.cpu_count = lambda: {processes + 1}\n"
        "sys.argv = ['mkdocs', 'build', '--strict']\n"
        "mkdocs.__main__.cli()\n"
    )
    site.write("build_it.py", code)
    done = commands.run("build_it", folder=site.root, environment={"NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stderr
    for name in names:
        assert f"made by {name}" in (site.root / f"site/{name}/index.html").read_text()
        assert f"made by {name}" in (site.root / f"site/{name}/live-{name}.py").read_text()
