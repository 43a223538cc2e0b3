"""However a build ends, and whatever becomes of its disk: no process and no folder is left, and the next build works."""

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from livepages.execution import Engine, Runner, WorkerError
from livepages.execution.cache import Cache
from tests.conftest import HANG, Site, process_ends

pytestmark = pytest.mark.slow

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")
PYTHON = '[tool.livepages]\nruntime = "python"\n'
# A page with a child, one in a session of its own, and a child of that one, which never ends.
ENDLESS = """import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
apart = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True, start_new_session=True)
pids = [os.getppid(), os.getpid(), child.pid, apart.pid, int(apart.stdout.readline())]
with open({file!r} + "-new", "w") as file:
    print(*pids, file=file)
os.rename({file!r} + "-new", {file!r})
while True:
    pass
"""


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + HANG
    while not what() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert what()


@dataclass
class Building:
    """`livepages run` of one endless page."""

    process: subprocess.Popen[str]
    noted: Path
    temporary: Path

    def pids(self) -> list[str]:
        """The server of the page, the page, and what it began, as soon as they are known; to be asked once a run."""
        wait_for(self.noted.exists)
        pids = self.noted.read_text().split()
        self.noted.unlink()
        return pids


def _as_in_a_terminal() -> None:
    """Heed the signals that tests run in the background, or by nohup, are started without."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def building(site: Site) -> Iterator[Building]:
    site.write("pyproject.toml", PYTHON + "timeout = 600\n")
    noted, temporary = site.root / "pids", site.root / "temporary"
    temporary.mkdir()
    site.page(ENDLESS.format(file=str(noted)))
    process = subprocess.Popen(
        [sys.executable, "-m", "livepages", "run"],
        cwd=site.root,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=_as_in_a_terminal,  # noqa: PLW1509
    )
    yield Building(process, noted, temporary)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def parent(pid: str) -> str:
    return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[1]


def _kill_keeper_too(building: Building, server: str) -> None:
    os.kill(int(parent(server)), signal.SIGKILL)
    building.process.kill()


ENDS: dict[str, Callable[[Building, str], object]] = {
    "Ctrl-C": lambda building, server: os.killpg(building.process.pid, signal.SIGINT),
    "an interrupt of the build alone": lambda building, server: building.process.send_signal(signal.SIGINT),
    "a terminal that is closed": lambda building, server: os.killpg(building.process.pid, signal.SIGHUP),
    "SIGTERM": lambda building, server: building.process.terminate(),
    "SIGKILL": lambda building, server: building.process.kill(),
    "SIGKILL of all its group": lambda building, server: os.killpg(building.process.pid, signal.SIGKILL),
    "SIGKILL of what looks after the server, then of the build": _kill_keeper_too,
}


@LINUX
@pytest.mark.parametrize("how", ENDS)
def test_a_build_that_is_ended_leaves_no_process_and_no_folder(building: Building, how: str) -> None:
    server, *pids = building.pids()
    ENDS[how](building, server)
    building.process.wait(HANG)
    assert all(map(process_ends, [server, *pids]))
    wait_for(lambda: not list(building.temporary.iterdir()))


@LINUX
def test_a_page_runs_again_when_the_process_that_forked_it_is_killed_and_the_second_time_it_fails(
    building: Building,
) -> None:
    everything = []
    for _ in range(2):
        server, *pids = building.pids()
        everything += [server, *pids]
        os.kill(int(server), signal.SIGKILL)
    output, _ = building.process.communicate(timeout=HANG)
    assert building.process.returncode == 1
    assert "docs/page.md:3: block of line 3: ended the process that pages are forked from" in output
    assert all(map(process_ends, everything))
    wait_for(lambda: not list(building.temporary.iterdir()))


@LINUX
def test_a_page_that_kills_its_parent_fails_alone(site: Site) -> None:
    site.write("pyproject.toml", PYTHON)
    guilty = site.page("print('before')", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass")
    others = [site.page("import time\ntime.sleep(0.2)\nprint('fine')", name=f"other-{n}") for n in range(3)]
    engine = Engine(site.project, Runner(4))
    try:
        runs = engine.run([guilty, *others])
    finally:
        engine.close()
    (failure,) = runs[guilty.path].failures
    assert "ended the process that pages are forked from" in failure.message and failure.block == 7
    assert [runs[other.path].outcomes[0].stdout for other in others] == ["fine\n"] * 3


@LINUX
def test_folders_of_a_build_whose_processes_were_all_killed_are_deleted_by_the_next(
    building: Building, site: Site
) -> None:
    server, page, *_ = building.pids()
    building.process.send_signal(signal.SIGSTOP)
    for pid in (parent(server), server, page, str(building.process.pid)):
        os.kill(int(pid), signal.SIGKILL)
    building.process.wait(HANG)
    assert process_ends(page) and list(building.temporary.iterdir())
    alien = building.temporary / "livepages-of-somebody-else"
    alien.mkdir()
    site.page("print('fine')")
    command = [sys.executable, "-m", "livepages", "run"]
    environment = {**os.environ, "TMPDIR": str(building.temporary)}
    subprocess.run(command, cwd=site.root, env=environment, check=True, timeout=HANG, stdout=subprocess.DEVNULL)
    wait_for(lambda: list(building.temporary.iterdir()) == [alien])


@LINUX
def test_folders_of_a_build_that_still_runs_are_left_alone(building: Building, site: Site) -> None:
    _, page, *_ = building.pids()
    there = set(building.temporary.iterdir())
    (site.root / "docs/page.md").unlink()
    site.page("print('fine')", name="other")
    command = [sys.executable, "-m", "livepages", "run"]
    environment = {**os.environ, "TMPDIR": str(building.temporary)}
    subprocess.run(command, cwd=site.root, env=environment, check=True, timeout=HANG, stdout=subprocess.DEVNULL)
    assert there <= set(building.temporary.iterdir()) and Path("/proc", page).exists()


# --- the disk ----------------------------------------------------------------------------------------------------


@pytest.fixture
def plain(site: Site) -> Site:
    site.write("pyproject.toml", PYTHON)
    return site


def test_a_page_runs_where_its_run_cannot_be_kept_and_the_build_says_so_once(
    plain: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Cache, key: str, value: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Cache, "put", full)
    pages = [plain.page("print('fine')", name=name) for name in ("a", "b")]
    with caplog.at_level(logging.WARNING):
        runs = plain.engine.run(pages)
    assert [run.outcomes[0].stdout for run in runs.values()] == ["fine\n"] * 2
    assert [record.getMessage() for record in caplog.records] == [
        f"{plain.project.cache}: runs are not kept: No space left on device; pages run every time"
    ]


def _no_cache(site: Site) -> None:
    site.write(".cache", "no folder")


def _read_only(site: Site) -> None:
    site.project.cache.mkdir(parents=True)
    subprocess.run(["mount", "--bind", site.project.cache, site.project.cache], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["mount", "-o", "remount,ro,bind", site.project.cache], check=True, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("spoil", [_no_cache, _read_only])
def test_a_cache_that_cannot_be_written_is_done_without(plain: Site, spoil: Callable[[Site], None]) -> None:
    page, alone = (
        plain.page("print('fine')"),
        plain.page("print('timed')", name="b", head="---\nexclusive: true\n---\n"),
    )
    try:
        spoil(plain)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing can be mounted here")
    try:
        runs = plain.engine.run([page, alone])
        assert [run.outcomes[0].stdout for run in runs.values()] == ["fine\n", "timed\n"]
        assert not plain.engine.kept([page])
        plain.engine.close()
    finally:
        if spoil is _read_only:
            subprocess.run(["umount", plain.project.cache], check=False)


def _folder(file: Path) -> None:
    file.unlink()
    (file / "inside").mkdir(parents=True)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-20]),
    "empty": lambda file: file.write_bytes(b""),
    "garbage": lambda file: file.write_bytes(os.urandom(1000)),
    "a list": lambda file: file.write_text("[1, 2]"),
    "deep": lambda file: file.write_text("[" * 100_000),
    "another shape": lambda file: file.write_text(
        json.dumps({"run": 3, "answers": {}, "versions": {}, "failed": False})
    ),
    "no question": lambda file: file.write_text(
        json.dumps({"run": {}, "answers": {"?": 1}, "versions": {}, "failed": False})
    ),
    "no outcomes": lambda file: file.write_text(
        json.dumps({"run": {"outcomes": []}, "answers": {}, "versions": {}, "failed": False})
    ),
    "a folder": _folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_in_the_cache_is_none_and_is_replaced(plain: Site, damage: str) -> None:
    page, run = plain.run("print('fine')")
    (file,) = (plain.project.cache / "runs").rglob("*.json")
    DAMAGES[damage](file)
    assert not plain.engine.kept([page])
    plain.engine.run([page])
    assert plain.engine.kept([page])[page.path].outcomes[0].stdout == run.outcomes[0].stdout


def test_no_room_for_temporary_files_is_reported(plain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(plain.root / "absent"))
    with pytest.raises(WorkerError, match="no folder can be made there: No such file.*TMPDIR"):
        Engine(plain.project, Runner()).run([plain.page("x = 1")])


@LINUX
def test_a_disk_that_is_full_is_a_failure_of_the_block_that_fills_it(plain: Site, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted: list[str | Path] = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]
    if shutil.which("mount") is None or subprocess.run(mounted, check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        # One after the other: a page that would begin while the disk is full could not.
        site = [sys.executable, "-m", "livepages", "run", "-j", "1"]
        plain.page("print('before')", "print('x' * 900_000)", "print('after')")
        plain.page("print('fine')", name="other")
        done = subprocess.run(
            site,
            cwd=plain.root,
            env={**os.environ, "TMPDIR": str(disk)},
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert done.returncode == 1 and "Traceback (most recent call last)" not in done.stderr
        assert "docs/page.md:7: block of line 7: " in done.stdout
        wait_for(lambda: not list(disk.iterdir()))
    finally:
        subprocess.run(["umount", disk], check=False)


def test_output_that_a_limit_on_files_cuts_off_is_a_failure_of_its_block(plain: Site) -> None:
    page, run = plain.run(
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))",
        "print('x' * 100_000)",
    )
    found = run.failures
    assert found and found[-1].block == 9
