"""Fixtures that the tests share: a project in a temporary folder, and one process to fork pages from."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import livepages
from livepages.course import read_course
from livepages.execution import Engine, Failure, Outcome, Run, Runner
from livepages.source import Page, Project, find_project
from tests.prepared import Commands

pytest_plugins = ["pytester"]
HANG = 600.0  # seconds that only what hangs takes, however busy the machine is
_OPTION = r"""\w+=["']"""


def pytest_configure() -> None:
    """Refuse to test another checkout's engine, which may be the one that is installed."""
    here, tested = (Path(file).resolve().parents[1] for file in (__file__, livepages.__file__))
    if tested != here:
        raise pytest.UsageError(f"these tests would test {tested}; run them with PYTHONPATH={here}")


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    """One runner for all tests: importing JAX takes longer than most of them."""
    runner = Runner()
    yield runner
    runner.close()


class Course:
    """The pages of this site and their runs: those that `pytest docs` has just kept, failed ones too, and no second."""

    def __init__(self, runner: Runner) -> None:
        self.project = find_project(Path(__file__))
        self.engine = Engine(self.project, runner)

    def page(self, path: Path) -> Page:
        pages, failed = self.engine.read([path])
        if failed:
            pytest.skip(f"{failed[0]} (which fails where the page is checked)")
        return pages[0]

    def failing(self) -> list[str]:
        """The names of the pages that cannot be read, or whose run failed."""
        pages, unread = self.engine.read(read_course(self.project).pages)
        kept = self.engine.kept(pages, failed=True)
        return [failure.page for failure in unread] + [
            page.name for page in pages if page.path in kept and kept[page.path].failures
        ]

    def ran(self, path: Path) -> tuple[Page, Run]:
        """A page that does what it says, and its run."""
        page = self.page(path)
        run = (self.engine.kept([page], failed=True) or self.engine.run([page]))[path]
        if failed := run.failures:
            pytest.skip(f"{failed[0].page}:{failed[0].line} fails, which its own test tells")
        return page, run


@pytest.fixture(scope="session")
def course(runner: Runner) -> Course:
    """The pages of this site."""
    return Course(runner)


def compiled_before(project: Project) -> dict[str, str]:
    """The environment variables with which a process need not compile again what the pages compiled when they ran."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(project.cache / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


class Reader:
    """A reader who runs scripts and notebooks, each in a fresh process and an empty folder."""

    def __init__(self, root: Path) -> None:
        self._root, self._count = root, 0
        project = find_project(Path(__file__))
        environment = {
            **os.environ,
            **compiled_before(project),
            "COLUMNS": "80",
            "MPLBACKEND": "agg",
            "PYTHONHASHSEED": "0",
        }
        command = [sys.executable, "-m", "tests.reader"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=project.root
        )

    def run(self, name: str, text: str, absent: Iterable[str] = ()) -> tuple[int, str, str]:
        """The exit status, standard output and standard error of a file of this name and text."""
        self._count += 1
        folder = self._root / str(self._count)
        (folder / "empty").mkdir(parents=True)
        (folder / name).write_text(text, encoding="utf-8")
        job = {"file": str(folder / name), "folder": str(folder / "empty"), "absent": list(absent)}
        out, err = folder / "out", folder / "err"
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({**job, "out": str(out), "err": str(err)}) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        return status, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader's machine, with JAX already imported."""
    reader = Reader(tmp_path_factory.mktemp("reader"))
    yield reader
    assert reader.process.stdin
    reader.process.stdin.close()
    reader.process.wait()


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """A process that carries out commands, so that they need not import MkDocs, pytest and JAX once more."""
    commands = Commands(tmp_path_factory.mktemp("commands"))
    yield commands
    commands.close()


class Site:
    """A project of a test's own."""

    def __init__(self, root: Path, runner: Runner) -> None:
        self.root, self.runner = root, runner
        self.write("pyproject.toml", '[tool.livepages]\nruntime = "jax"\ntimeout = 30\n')
        (root / "docs").mkdir(exist_ok=True)

    @property
    def project(self) -> Project:
        return find_project(self.root)

    @property
    def engine(self) -> Engine:
        return Engine(self.project, self.runner)

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
        return self.run(*blocks, head=head)[1].failures


def process_ends(pid: str) -> bool:
    """Wait for a process to end, and return whether it did; on Linux only."""
    deadline = time.monotonic() + HANG
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _runs(pid)


def _runs(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text(encoding="utf-8").split()[2] != "Z"
    except OSError:
        return False


class Event:
    """An event, as of `threading`, that pages wait for until it is set."""

    def __init__(self, site: Site) -> None:
        # Not in the project, where the page would depend on it.
        self._file = site.root.with_name(f"{site.root.name}-event")
        self.file = str(self._file)
        self.wait = f"import os, time\nwhile not os.path.exists({self.file!r}):\n    time.sleep(0.01)"

    def set(self) -> None:
        """Let the pages go on."""
        self._file.touch()

    def clear(self) -> None:
        """Make the pages that come wait again."""
        self._file.unlink()


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
