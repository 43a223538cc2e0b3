"""What the tests share: a project in a temporary folder, and one process to fork pages from."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from livepages.engine import Engine
from livepages.outcome import Failure, Outcome, Run, failures
from livepages.page import Page
from livepages.project import Project, find_project
from livepages.run import Runner

pytest_plugins = ["pytester"]
_OPTION = r'\w+="'


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    """One runner for all tests: importing JAX takes longer than most of them."""
    runner = Runner()
    yield runner
    runner.close()


class Site:
    """A project of a test's own."""

    def __init__(self, root: Path, runner: Runner) -> None:
        self.root = root
        self._runner = runner
        self.write("pyproject.toml", "[tool.livepages]\ntimeout = 30\n")
        (root / "docs").mkdir()

    @property
    def project(self) -> Project:
        return find_project(self.root)

    @property
    def engine(self) -> Engine:
        return Engine(self.project, self._runner)

    def write(self, name: str, text: str) -> Path:
        """A file of the project."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def page(self, *blocks: str, name: str = "page", head: str = "") -> Page:
        """A page of these blocks: code, after a line of options if it begins with one."""
        fences = [f"```python{' ' if re.match(_OPTION, block) else chr(10)}{block}\n```\n" for block in blocks]
        return self.read(self.write(f"docs/{name}.md", head + "# Page\n\n" + "\n".join(fences)))

    def read(self, path: Path) -> Page:
        pages, failed = self.engine.read([path])
        assert not failed, failed
        return pages[0]

    def run(self, *blocks: str, name: str = "page", head: str = "") -> tuple[Page, Run]:
        """`page`, and its run."""
        page = self.page(*blocks, name=name, head=head)
        return page, self.engine.run([page])[page.path]

    def outcomes(self, *blocks: str, head: str = "") -> tuple[Outcome, ...]:
        return self.run(*blocks, head=head)[1].outcomes

    def failures(self, *blocks: str, head: str = "") -> list[Failure]:
        return failures(*self.run(*blocks, head=head))


@pytest.fixture
def site(tmp_path: Path, runner: Runner) -> Site:
    """An empty project."""
    return Site(tmp_path, runner)


@pytest.fixture
def sites(tmp_path: Path, runner: Runner) -> Callable[[str], Site]:
    """Empty projects by name."""

    def make(name: str) -> Site:
        (tmp_path / name).mkdir()
        return Site(tmp_path / name, runner)

    return make
