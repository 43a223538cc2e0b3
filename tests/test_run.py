"""A page's own process: what it sees, what is captured, and that nothing it does harms anything else."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import pytest

import livepages
from livepages.execution import ERR, OUT, Engine, Run, Runner, WorkerError
from livepages.execution.processes import ForkServer
from livepages.execution.running import Running, Task, finished
from livepages.source import Page
from livepages.worker import Runtime
from tests.conftest import HANG, Event, Site, process_ends

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")


# --- one namespace, one script -----------------------------------------------------------------------------------


def test_blocks_share_one_namespace_as_a_script_does(site: Site) -> None:
    code = (
        "from __future__ import annotations\nimport dataclasses, inspect, pickle\nx = 1",
        "@dataclasses.dataclass\nclass Point:\n    x: Undefined = 0",
        "def f(a):\n    return a + x  # noted",
        "print(__name__, f(1), pickle.loads(pickle.dumps(Point(3))), Point.__module__)\nprint(inspect.getsource(f))",
    )
    outcomes = site.outcomes(*code)
    assert [outcome.raised for outcome in outcomes] == [None] * 4
    assert outcomes[3].stdout == "__main__ 2 Point(x=3) __main__\ndef f(a):\n    return a + x  # noted\n\n"


def test_multiprocessing_starts_children_from_the_blocks_run_so_far(site: Site) -> None:
    code = (
        "import multiprocessing\ndef double(x):\n    return 2 * x",
        'raises="ZeroDivisionError"\n1 / 0',
        'if __name__ == "__main__":\n    with multiprocessing.get_context("spawn").Pool(1) as pool:\n        print(pool.map(double, [1, 2]))',
    )
    page, run = site.run(*code)
    assert not run.failures
    assert run.outcomes[2].stdout == "[2, 4]\n"


def test_an_import_from_the_future_in_a_later_block_does_not_keep_children_from_starting(site: Site) -> None:
    code = (
        "x = 1",
        "from __future__ import annotations\nimport multiprocessing\ndef double(x: Undefined):\n    return 2 * x",
        'if __name__ == "__main__":\n    with multiprocessing.get_context("spawn").Pool(1) as pool:\n        print(pool.map(double, [x]))',
    )
    page, run = site.run(*code)
    assert not run.failures
    assert run.outcomes[2].stdout == "[2]\n"


def test_pages_in_the_background_come_after_what_else_wants_the_processor(site: Site) -> None:
    page, runner = site.page("import os\nprint(os.nice(0))"), Runner(nice=3)
    run = runner.run(site.project, [Task(page)])[page.path]
    runner.close()
    assert run.outcomes[0].stdout == f"{min(os.nice(0) + 3, 19)}\n"


@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="the system gives sessions no shares of their own"
)
def test_so_do_their_sessions_among_those_that_share_the_processor(site: Site) -> None:
    page, runner = site.page("print(open('/proc/self/autogroup').read().split()[-1])"), Runner(nice=3)
    run = runner.run(site.project, [Task(page)])[page.path]
    runner.close()
    assert run.outcomes[0].stdout == "3\n"


def test_pages_do_not_see_each_other(site: Site) -> None:
    writer = site.page(
        "import builtins, os, sys, jax\nbuiltins.leak = sys.leak = os.environ['LEAK'] = 'x'\njax.config.update('jax_enable_x64', True)",
        name="a",
    )
    reader = site.page(
        "import builtins, os, sys, jax.numpy as jnp\nprint(hasattr(builtins, 'leak'), hasattr(sys, 'leak'), 'LEAK' in os.environ, jnp.ones(1).dtype)",
        name="b",
    )
    for pages in ([writer, reader], [reader, writer], [reader]):
        assert site.engine.run(pages)[reader.path].outcomes[0].stdout == "False False False float32\n"


def test_alone_shuffled_or_in_parallel_pages_give_the_same(site: Site, runner: Runner) -> None:
    blocks = (
        "import jax, jax.numpy as jnp\nprint({i}, jax.jit(lambda x: x + {i})(1.0), set('abcdef'), hash('a'))",
        "print(jnp.arange({i} + 2))",
    )
    pages = [site.page(*(block.replace("{i}", str(i)) for block in blocks), name=f"p{i}") for i in range(4)]

    def outputs(pages: list[Page], runner: Runner) -> dict[Path, list[object]]:
        runs = runner.run(site.project, [Task(page) for page in pages])
        return {path: [(o.streams, o.counts) for o in run.outcomes] for path, run in runs.items()}

    together = outputs(pages, runner)
    assert outputs(pages[::-1], runner) == together
    assert {path: one for page in pages for path, one in outputs([page], runner).items()} == together


def test_front_matter_sets_up_the_process(site: Site) -> None:
    code = "import jax, jax.numpy as jnp\nprint(len(jax.devices()), jnp.ones(1).dtype, jax.config.jax_debug_nans)"
    head = "---\ndevices: 4\nx64: true\njax: {jax_debug_nans: true}\n---\n"
    page, run = site.run(code, head=head)
    assert run.outcomes[0].stdout == "4 float64 True\n"
    assert run.device == "4 × cpu"


def test_settings_that_jax_does_not_take_are_a_failure_of_the_page(site: Site) -> None:
    (failure,) = site.failures("x = 1", "y = 2", head="---\ntitle: T\njax: {jax_no_such_thing: 1}\n---\n")
    assert str(failure).startswith("docs/page.md:3: the settings of the page cannot be used: AttributeError: ")
    assert "jax_no_such_thing" in failure.message


def test_snippets_can_be_imported_and_are_remembered(site: Site) -> None:
    module = site.write(
        "snippets/helper.py", "from pathlib import Path\nVALUE = (Path(__file__).parent / 'data.txt').read_text()\n"
    )
    data = site.write("snippets/data.txt", "seven")
    _, run = site.run(
        "import helper\nprint(helper.VALUE)",
        "from pathlib import Path\nPath('own.txt').write_text('a')\nPath('own.txt').read_text()",
    )
    assert run.outcomes[0].stdout == "seven\n"
    assert {site.project.name(module), site.project.name(data)} <= set(run.files)
    assert not [name for name in run.files if "own.txt" in name]
    assert {"jax", "numpy"} <= set(run.modules)


def test_a_fresh_process_is_forked_from_one_that_has_imported_jax_once(site: Site, runner: Runner) -> None:
    page = site.page("import os, sys\nprint('jax' in sys.modules, os.getppid(), os.getpid())")
    printed = [runner.run(site.project, [Task(page)])[page.path].outcomes[0].stdout.split() for _ in range(3)]
    ready, parents, own = zip(*printed, strict=True)
    assert set(ready) == {"True"} and len(set(parents)) == 1 and len(set(own)) == 3


def test_where_there_is_no_fork_pages_do_not_run(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.fork")
    with pytest.raises(WorkerError, match="use Linux or macOS"):
        Runner().run(site.project, [Task(site.page("x = 1"))])


def test_assertions_are_checked_whatever_the_environment_says(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    page, runner = site.page("assert False"), Runner()
    outcome = runner.run(site.project, [Task(page)])[page.path].outcomes[0]
    runner.close()
    assert outcome.raised and outcome.raised.type == "AssertionError"


OF_WHO_RUNS_IT = {
    "DISPLAY": ":0",
    "WAYLAND_DISPLAY": "wayland-0",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "FORCE_COLOR": "1",
    "NO_COLOR": "1",
    "CLICOLOR_FORCE": "1",
    "PYTHON_COLORS": "1",
    "PYTHONWARNINGS": "error",
    "PYTHONIOENCODING": "latin-1",
    "PYTHONUTF8": "0",
    "LC_ALL": "C",
    "LANG": "de_DE",
    "TZ": "Asia/Tokyo",
    "COLUMNS": "200",
    "MPLBACKEND": "no such backend",
    "PYTEST_XDIST_WORKER": "gw7",  # with which NumPyro shows no progress
}
LOOKS_AROUND = """
import datetime, locale, os, subprocess, sys, traceback, warnings
import matplotlib.pyplot as plt
warnings.warn("warned")
print("ä", open.__name__, locale.getpreferredencoding(), sys.stdout.encoding, datetime.datetime(2026, 7, 1).astimezone())
print(sorted({name: os.environ.get(name) for name in %r}.items(), key=str))
plt.plot([1, 2])
plt.show()
_ = subprocess.run([sys.executable, "-c", "import warnings; warnings.warn('child'); print('ä'); 1 / 0"])
"""


def test_the_environment_of_a_terminal_a_desktop_or_a_test_changes_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    for name in {*OF_WHO_RUNS_IT, "XDG_CONFIG_HOME"} - {"LC_ALL"}:
        monkeypatch.delenv(name, raising=False)
    page = site.page(f'alt="a line" {LOOKS_AROUND % [*OF_WHO_RUNS_IT]}')
    settings = site.write("home/matplotlib/matplotlibrc", "lines.linewidth: 9\n")
    outcomes: list[object] = []
    for variables in ({}, {**OF_WHO_RUNS_IT, "XDG_CONFIG_HOME": str(settings.parents[1])}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert len(site.engine.kept([page])) == len(outcomes)
        engine = Engine(site.project, Runner())
        run = engine.run([page])[page.path]
        engine.close()
        assert not run.failures
        outcomes.append((run.outcomes[0].streams, run.outcomes[0].figures))
    assert outcomes[0] == outcomes[1]
    text = "".join(text for _, text in run.outcomes[0].streams)
    assert "2026-07-01 00:00:00+00:00" in text and "non-interactive" not in text and "\x1b" not in text


@pytest.mark.parametrize("name", ["PYTHONWARNINGS", "LC_ALL"])
def test_the_command_line_works_under_any_settings_of_python(site: Site, name: str) -> None:
    site.page("print('ä')")
    variables = {"PYTHONWARNINGS": {"PYTHONWARNINGS": "error"}, "LC_ALL": {"LC_ALL": "C", "PYTHONUTF8": "0"}}[name]
    done = subprocess.run(
        [sys.executable, "-m", "livepages", "run", "-v"],
        cwd=site.root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("\\xe4" if name == "LC_ALL" else "ä") in done.stdout


# --- what runs pages ---------------------------------------------------------------------------------------------


def test_a_page_runs_under_plain_python_where_there_is_no_jax(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = site.write("trap/jax/__init__.py", "raise ImportError('jax was imported')").parent.parent
    monkeypatch.setenv("PYTHONPATH", str(trap), prepend=os.pathsep)
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\n')
    page, runner = site.page("import sys\nprint('jax' in sys.modules)", 'needs="gpu"\nx = 1', "import jax"), Runner()
    run = runner.run(site.project, [Task(page)])[page.path]
    runner.close()
    first, second, third = run.outcomes
    assert first.stdout == "False\n" and not first.counts and not run.device
    assert second.skipped == "needs gpu; this host has no such device"
    assert third.raised and third.raised.message == "jax was imported"


# --- marks -------------------------------------------------------------------------------------------------------


def marked(site: Site, mark: str) -> tuple[Page, Run]:
    page = site.read(site.write("docs/page.md", f"# T\n\n<!--{mark}-->\n```python\nprint('ran')\n```\n"))
    return page, site.engine.run([page])[page.path]


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("pytest.mark.skipif(sys.exit(0))", "raised SystemExit: 0"),
        ("pytest.mark.skipif('sys.exit(0)', reason='a text')", "raised SystemExit: 0"),
        ("pytest.mark.skipif(nonsense)", "raised NameError: name 'nonsense' is not defined"),
        ("pytest.mark.slow.name", "is not a mark"),
        ("pytest.mark.skipif(os._exit(3))", "exit status 3"),
        ("pytest-codeblocks:importorskip(.odd)", "raised "),
    ],
)
def test_what_a_mark_raises_is_the_failure_of_its_block(site: Site, mark: str, message: str) -> None:
    (failure,) = marked(site, mark)[1].failures
    assert (failure.page, failure.line) == ("docs/page.md", 4) and message in failure.message


@pytest.mark.parametrize(
    ("mark", "skipped"),
    [
        ("pytest.mark.skipif(sys.version_info > (3,), reason='too new')", "too new"),
        ("pytest.mark.skipif('platform.system()')", "skipped by its mark"),
        ("pytest.mark.skipif(False, reason='never')", ""),
        ("pytest.mark.skip", "skipped by its mark"),
        ("pytest.mark.skip('no time')", "no time"),
        ("pytest-codeblocks:skip", "skipped by its mark"),
        ("pytest-codeblocks:skipif(1 < 2)", "skipped by its mark"),
        ("pytest.mark.slow", ""),
        ("pytest-codeblocks:importorskip(no_such_module)", "needs the module no_such_module"),
        ("pytest-codeblocks:importorskip(no_such_module.part)", "needs the module no_such_module.part"),
        ("pytest-codeblocks:importorskip(json)", ""),
    ],
)
def test_marks_keep_a_block_from_running(site: Site, mark: str, skipped: str) -> None:
    page, run = marked(site, mark)
    assert not run.failures
    assert (run.outcomes[0].skipped, run.outcomes[0].stdout) == (skipped, "" if skipped else "ran\n")


# --- pages that measure time -------------------------------------------------------------------------------------


@pytest.fixture
def noted(site: Site) -> Callable[..., Page]:
    """Pages that write down in one file when they begin and end."""
    log = str(site.root / "log")

    def make(name: str, *code: str, head: str = "") -> Page:
        printed = f"open({log!r}, 'a').write('{{}} {name}\\n')"
        return site.page(printed.format("begin"), *code, printed.format("end"), name=name, head=head)

    return make


ALONE = "---\nexclusive: true\n---\n\n"


def test_a_page_that_measures_time_runs_alone_after_the_others(site: Site, noted: Callable[..., Page]) -> None:
    timed = [noted(name, head=ALONE) for name in ("a", "b")]
    others = [noted(name) for name in ("c", "d", "e")]
    runner = Runner(3)
    runs = runner.run(site.project, [Task(page) for page in (*timed, *others)])
    runner.close()
    assert len(runs) == 5
    lines = (site.root / "log").read_text().splitlines()
    assert {line.split()[1] for line in lines[:6]} == {"c", "d", "e"}
    assert lines[6:] in (["begin a", "end a", "begin b", "end b"], ["begin b", "end b", "begin a", "end a"])


@pytest.mark.parametrize("heads", [("", ALONE), (ALONE, ""), (ALONE, ALONE)])
def test_it_shares_the_machine_with_no_page_of_another_build(
    site: Site, runner: Runner, noted: Callable[..., Page], heads: tuple[str, str]
) -> None:
    event, other = Event(site), Runner()
    first, second = noted("first", event.wait, head=heads[0]), noted("second", head=heads[1])
    (running,) = other.start(site.project, [Task(first)])
    first_output(running)  # the lock is held
    (waiting,) = runner.start(site.project, [Task(second)])
    event.set()
    running.future.result(HANG), waiting.future.result(HANG)
    other.close()
    assert (site.root / "log").read_text().split() == [
        "begin",
        "first",
        "end",
        "first",
        "begin",
        "second",
        "end",
        "second",
    ]


def test_a_page_that_waits_to_be_alone_can_be_stopped(site: Site, runner: Runner, noted: Callable[..., Page]) -> None:
    event = Event(site)
    (running,) = runner.start(site.project, [Task(noted("first", event.wait))])
    first_output(running)
    (waiting,) = runner.start(site.project, [Task(noted("second", head=ALONE))])
    waiting.stop()
    with pytest.raises(CancelledError):
        waiting.future.result(HANG)
    event.set()
    running.future.result(HANG)


def test_one_that_is_asked_for_comes_before_all_that_have_not_begun(site: Site, noted: Callable[..., Page]) -> None:
    event, runner = Event(site), Runner(1)
    first, second = noted("first", event.wait, "pass"), noted("second")
    alone = noted("alone", head=ALONE)
    started = runner.start(site.project, [Task(first), Task(second), Task(alone)])
    first_output(started[0])
    runner.prioritize(site.project, alone.path)
    held = site.project.cache / "waiting.lock"
    assert until(lambda: locked(held))
    event.set()
    for running in started:
        running.future.result(HANG)
    runner.close()
    assert (site.root / "log").read_text().split()[1::2] == ["first", "first", "alone", "alone", "second", "second"]


def test_one_that_is_asked_for_does_not_come_after_other_processes(site: Site) -> None:
    event, runner = Event(site), Runner(1, nice=3)
    pages = [site.page(event.wait, "pass", name="first"), site.page("import os\nprint(os.nice(0))", name="second")]
    first, second = runner.start(site.project, [Task(page) for page in pages])
    runner.prioritize(site.project, pages[1].path)
    assert second.future.result(HANG).outcomes[0].stdout == f"{os.nice(0)}\n"
    event.set()
    first.future.result(HANG)
    runner.close()


@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="the system gives sessions no shares of their own"
)
def test_one_that_runs_already_when_it_is_asked_for_comes_first_from_then_on(site: Site) -> None:
    event, runner = Event(site), Runner(1, nice=3)
    page = site.page("print('begun')", "import time", AWAIT_PROMOTION)
    (running,) = runner.start(site.project, [Task(page)])
    first_output(running)
    runner.prioritize(site.project, page.path)
    assert running.future.result(HANG).outcomes[2].stdout == "0\n"
    event.set()
    runner.close()


AWAIT_PROMOTION = """
while (nice := open("/proc/self/autogroup").read().split()[-1]) == "3":
    time.sleep(0.01)
print(nice)
"""


def test_urgent_ones_begin_although_others_are_held_or_measure_time(site: Site) -> None:
    event, runner = Event(site), Runner(1, nice=3)
    alone = site.page("print('begun')", event.wait, name="alone", head=ALONE)
    (measuring,) = runner.start(site.project, [Task(alone)])
    first_output(measuring)
    runner.pause()
    page = site.page("import os\nprint(os.nice(0))", name="saved")
    (saved,) = runner.start(site.project, [Task(page)], urgent=True)
    assert saved.future.result(HANG).outcomes[0].stdout == f"{os.nice(0)}\n"
    event.set()
    measuring.future.result(HANG)
    runner.close()


def test_of_pages_that_are_held_only_one_that_is_asked_for_begins(site: Site, noted: Callable[..., Page]) -> None:
    pages, runner = [noted("first"), noted("second"), noted("alone", head=ALONE)], Runner()
    runner.pause()
    started = runner.start(site.project, [Task(page) for page in pages])
    runner.prioritize(site.project, pages[1].path)
    next(running for running in started if running.task.page is pages[1]).future.result(HANG)
    assert (site.root / "log").read_text().split()[1::2] == ["second", "second"]
    runner.resume()
    for running in started:
        running.future.result(HANG)
    assert (site.root / "log").read_text().split()[5::2] == ["first", "first", "alone", "alone"]
    runner.pause()
    (held,) = runner.start(site.project, [Task(pages[0])])
    runner.close()
    assert held.future.cancelled()


def until(holds: Callable[[], bool]) -> bool:
    """Wait until something holds, and return whether it does before long."""
    deadline = time.monotonic() + HANG
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def locked(file: Path) -> bool:
    """Return whether anybody has locked a file."""
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


# --- pages under way ---------------------------------------------------------------------------------------------


def first_output(running: Running) -> str:
    """Return what the first block of a page under way printed, as soon as it is known."""
    deadline = time.monotonic() + HANG
    while running.so_far().outcomes[0].pending and time.monotonic() < deadline:
        time.sleep(0.01)
    return running.so_far().outcomes[0].stdout


def test_a_page_under_way_has_the_outcomes_so_far(site: Site, runner: Runner) -> None:
    event = Event(site)
    page = site.page("isolated='on'\nprint('first')\nundefined", event.wait, "print('last')")
    (running,) = runner.start(site.project, [Task(page)])
    assert first_output(running) == "first\n"
    so_far = running.so_far()
    assert [outcome.pending for outcome in so_far.outcomes] == [False, True, True] and so_far.pending
    assert [failure.block for failure in so_far.failures] == [3]
    assert not list(finished([running], 0.0))
    event.set()
    assert list(finished([running])) == [running]
    run = running.future.result()
    assert run.outcomes[2].stdout == "last\n" and not run.pending
    assert run.outcomes[0] == so_far.outcomes[0]


@LINUX
def test_a_page_that_is_stopped_ends_with_its_process(site: Site, runner: Runner) -> None:
    page = site.page("import os\nprint(os.getpid())", "while True: pass")
    (running,) = runner.start(site.project, [Task(page)])
    pid = first_output(running).strip()
    running.stop()
    with pytest.raises(CancelledError):
        running.future.result(HANG)
    assert process_ends(pid)


@LINUX
def test_a_page_that_is_stopped_while_its_process_begins_ends_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    here, event = site.root / "here", Event(site)
    slow = f"import os\nsetsid = os.setsid\ndef hold():\n    open({str(here)!r}, 'w')\n    {event.wait.replace(chr(10), chr(10) + '    ')}\n    setsid()\nos.setsid = hold\n"
    monkeypatch.setenv("PYTHONPATH", str(site.write("slow/sitecustomize.py", slow).parent), prepend=os.pathsep)
    runner = Runner()
    (running,) = runner.start(site.project, [Task(site.page("while True: pass"))])
    while not here.exists():
        time.sleep(0.01)
    running.stop()
    event.set()
    with pytest.raises(CancelledError):
        running.future.result(HANG)
    runner.close()


def test_the_time_of_a_block_begins_with_the_block(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = "import os, time\nsetsid = os.setsid\nos.setsid = lambda: (time.sleep(2), setsid())\n"
    monkeypatch.setenv("PYTHONPATH", str(site.write("slow/sitecustomize.py", slow).parent), prepend=os.pathsep)
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\n')
    page, runner = site.page('timeout="0.3"\nprint("in time")'), Runner()
    assert not runner.run(site.project, [Task(page)])[page.path].failures
    runner.close()


@LINUX
def test_pages_that_never_end_keep_none_from_running_that_come_later_and_end_with_the_runner(site: Site) -> None:
    endless = [site.page("import os\nprint(os.getpid())", "while True: pass", name=name) for name in ("a", "b")]
    runner = Runner(1)
    try:
        one, waiting = runner.start(site.project, [Task(page) for page in endless])
        quick = site.page("print('quick')", name="quick")
        assert runner.run(site.project, [Task(quick)])[quick.path].outcomes[0].stdout == "quick\n"
        pid = first_output(one).strip()
    finally:
        runner.close()
    assert process_ends(pid)
    assert one.future.done() and waiting.future.cancelled()
    assert waiting.so_far().outcomes[0].pending


def test_a_runner_can_be_ready_for_its_first_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[ForkServer] = []

    def start(runtime: Runtime) -> ForkServer:
        started.append(ForkServer(runtime))
        return started[-1]

    monkeypatch.setattr("livepages.execution.runner.ForkServer", start)
    runner = Runner()
    runner.prepare(site.project)
    try:
        assert started[0].alive
        runner.run(site.project, [Task(site.page("x = 1"))])
    finally:
        runner.close()
    assert len(started) == 1 and not started[0].alive


# --- what is captured --------------------------------------------------------------------------------------------


def test_output_is_captured_in_order_by_whatever_means_it_is_written(site: Site) -> None:
    code = """import ctypes, os, subprocess, sys, warnings
import jax
print("a", "b", sep="-", end=";\\n")
print("to stderr", file=sys.stderr)
print("printed", file=sys.stdout)
os.write(1, b"fd 1\\n")
sys.stdout.buffer.write(b"buffer\\n")
ctypes.CDLL(None).puts(b"C")
ctypes.CDLL(None).fflush(None)
subprocess.run(["echo", "child"])
warnings.warn("careful")
jax.debug.print("value {}", jax.jit(lambda x: x + 1)(1))
jax.jit(lambda x: jax.debug.callback(lambda y: print("called", y), x))(3)"""
    (outcome,) = site.outcomes(code)
    assert outcome.raised is None
    out, err = ([text for stream, text in outcome.streams if stream == wanted] for wanted in (OUT, ERR))
    assert "".join(out) == "a-b;\nprinted\nfd 1\nbuffer\nC\nchild\nvalue 2\ncalled 3\n"
    assert err == ["to stderr\n", 'page.py:11: UserWarning: careful\n  warnings.warn("careful")\n']
    assert [stream for stream, _ in outcome.streams] == [OUT, ERR, OUT, ERR, OUT]


def test_standard_error_does_not_say_where_files_lie_on_this_machine(site: Site) -> None:
    site.write("snippets/helper.py", "import warnings\ndef warn():\n    warnings.warn('of the project')\n")
    code = """import sys, warnings
import helper, json, numpy
helper.warn()
warnings.warn_explicit("of Python", UserWarning, json.__file__, 3)
warnings.warn_explicit("of a package", UserWarning, numpy.__file__, 4)
print(open("own", "w").name, __import__("os").path.abspath("own"), __file__, file=sys.stderr)
print("https://docs.jax.dev/en/latest/x.html /usr/lib/libx.so /dev/null and/or/not 1/2/3", file=sys.stderr)"""
    (outcome,) = site.outcomes(code)
    printed = "".join(text for stream, text in outcome.streams if stream == ERR)
    assert outcome.raised is None
    for line in (
        "snippets/helper.py:3: UserWarning: of the project",
        "/python/json/__init__.py:3: UserWarning: of Python",
        "/site-packages/numpy/__init__.py:4: UserWarning: of a package",
        "own own page.py",
        "https://docs.jax.dev/en/latest/x.html /…/libx.so /dev/null and/or/not 1/2/3",
    ):
        assert line in printed.splitlines()


def test_messages_do_not_say_where_the_page_runs_and_packages_lie(site: Site) -> None:
    code = """import os, json, numpy
places = [os.path.abspath("saved"), json.__file__, numpy.__file__, "/data/train.npy"]
raise ValueError(f"looked for {', '.join(places)}")"""
    page, run = site.run(f'raises="ValueError" match="looked for saved"\n{code}')
    raised = run.outcomes[0].raised
    assert not run.failures and raised is not None
    assert raised.message == (
        "looked for saved, /python/json/__init__.py, /site-packages/numpy/__init__.py, /data/train.npy"
    )
    assert raised.traceback.endswith(f"ValueError: {raised.message}")


def test_callbacks_are_waited_for(site: Site) -> None:
    code = "import jax, time\ndef slow(x):\n    time.sleep(0.2)\n    print('late', x)\njax.jit(lambda x: jax.debug.callback(slow, x))(1)"
    assert site.outcomes(code, "print('next')")[0].stdout == "late 1\n"


def test_progress_bars_end_up_as_a_terminal_shows_them(site: Site) -> None:
    (outcome,) = site.outcomes("for i in range(3):\n    print(f'\\r{i}/2', end='')\nprint()")
    assert outcome.stdout == "2/2\n"


def test_bytes_that_are_no_text_are_shown_escaped(site: Site) -> None:
    (outcome,) = site.outcomes("import os\nos.write(1, b'\\xff\\n')")
    assert outcome.stdout == "\\xff\n"


def test_control_characters_are_shown_escaped(site: Site) -> None:
    page, run = site.run("print('\\x1b[31mred\\0\\u202e')", 'raises="ValueError"\nraise ValueError("\\x1b[31mred")')
    assert not run.failures
    assert run.outcomes[0].stdout == "\\x1b[31mred\\x00\\u202e\n"
    assert run.outcomes[1].raised and run.outcomes[1].raised.message == "\\x1b[31mred"


def test_the_output_of_a_thread_after_the_last_block_belongs_to_it(site: Site) -> None:
    code = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()"
    page, run = site.run(code, "print('last')")
    assert not run.failures
    assert "".join(outcome.stdout for outcome in run.outcomes) == "last\nlate\n"


def test_compiled_programs_that_are_damaged_are_compiled_again_without_a_word(site: Site) -> None:
    code = "import jax\nprint(jax.jit(lambda x: x + 1)(1.0))"
    site.outcomes(code)
    programs = [*(site.project.cache / "compiled").glob("*-cache")]
    assert programs and not [*(site.project.cache / "compiled").glob("new-*")]
    for file in programs:
        file.write_bytes(file.read_bytes()[:-9])
    assert site.outcomes(code)[0].streams == ((OUT, "2.0\n"),)
    assert all(file.stat().st_size for file in programs)
    shutil.rmtree(site.project.cache / "compiled")
    (site.project.cache / "compiled").write_text("no folder")
    assert site.outcomes(code)[0].streams == ((OUT, "2.0\n"),)


def test_traces_and_compiles_are_counted_by_block(site: Site) -> None:
    first, again, other = site.outcomes(
        "import jax, numpy as np\nf = jax.jit(lambda x: x * 2)\nf(np.ones(3))", "f(np.zeros(3))", "f(np.ones(4))"
    )
    assert first.counts == {"traces": 1, "compiles": 1}
    assert again.counts == {"traces": 0, "compiles": 0}
    assert other.counts == {"traces": 1, "compiles": 1}
    assert first.seconds > 0


# --- exceptions --------------------------------------------------------------------------------------------------


def test_an_expected_error_is_kept_with_the_pages_own_lines(site: Site) -> None:
    page, run = site.run(
        "import jax",
        'raises="TracerBoolConversionError" match="traced array"\ndef f(x):\n    if x > 0:\n        return x\n\njax.jit(f)(1.0)',
    )
    assert not run.failures
    raised = run.outcomes[1].raised
    assert raised is not None
    assert raised.type == "TracerBoolConversionError"
    assert {"TracerBoolConversionError", "ConcretizationTypeError", "TypeError"} <= set(raised.bases)
    lines = raised.traceback.splitlines()
    assert lines[:5] == [
        "Traceback (most recent call last):",
        '  File "page.py", line 7, in <module>',
        "    jax.jit(f)(1.0)",
        '  File "page.py", line 4, in f',
        "    if x > 0:",
    ]
    assert "site-packages" not in raised.traceback and "internal frames" not in raised.traceback


def test_the_engines_own_frames_are_not_shown_where_it_is_part_of_the_project(site: Site, runner: Runner) -> None:
    page = site.page('raises="ZeroDivisionError"\n1 / 0')
    project = replace(site.project, root=Path(livepages.__file__).parents[1])
    raised = runner.run(project, [Task(page)])[page.path].outcomes[0].raised
    assert raised is not None and "worker.py" not in raised.traceback


STACKS = """
import faulthandler, inspect, logging, traceback, warnings
def show():
    traceback.print_stack()
    print([frame.filename for frame in inspect.stack()])
    warnings.warn("through all frames", stacklevel=9)
show()
print("".join(traceback.format_stack()))
warnings.warn("beside the page", stacklevel=2)
logging.error("with its stack", stack_info=True)
faulthandler.dump_traceback()
import helper, jax
lowered = jax.jit(helper.double).lower(1.0)
print(lowered.as_text(debug_info=True), lowered.compile().as_text())
"""


def test_the_engines_own_frames_are_in_no_stack_that_a_page_shows(site: Site) -> None:
    site.write("snippets/helper.py", "def double(x):\n    return 2 * x\n")
    page, run = site.run(STACKS)
    assert not run.failures
    text = "".join(text for _, text in run.outcomes[0].streams)
    assert "livepages" not in text and "runpy" not in text and "_execute" not in text and str(site.root) not in text
    assert text.startswith('  File "page.py", line 7, in <module>\n    show()\n  File "page.py", line 4, in show\n')
    assert "sys:1: UserWarning: through all frames\n" in text and "sys:1: UserWarning: beside the page\n" in text
    assert "['page.py', 'page.py']" in text and 'File "page.py", line 11 in <module>' in text
    assert 'loc("snippets/helper.py":2:' in text


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ('raises="ValueError"\nx = 1', "should raise ValueError, but raised nothing"),
        ('raises="ValueError"\n{}["k"]', "should raise ValueError, but raised KeyError"),
        ('raises="KeyError" match="other"\n{}["k"]', "does not match 'other'"),
        ("{}['k']", "raised KeyError: 'k'"),
        ("import sys\nsys.exit(3)", "raised SystemExit: 3"),
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
        ("def f(:\n    pass", "raised SyntaxError"),
    ],
)
def test_an_outcome_that_is_not_as_the_page_says_is_a_failure(site: Site, block: str, message: str) -> None:
    (failure,) = site.failures(block)
    assert message in failure.message


@pytest.mark.parametrize("name", ["KeyError", "LookupError", "builtins.KeyError", "Exception"])
def test_a_subclass_is_an_expected_error_too(site: Site, name: str) -> None:
    assert site.failures(f'raises="{name}"\n{{}}["k"]') == []


def test_the_members_of_a_group_of_errors_are_shown(site: Site) -> None:
    (failure,) = site.failures("raise ExceptionGroup('several', [ValueError('one'), KeyError('two')])")
    assert "  | ValueError: one" in failure.detail and "  | KeyError: 'two'" in failure.detail


def test_lines_end_where_python_ends_them(site: Site) -> None:
    code = "# a form feed \x0c and \u2028 are no ends of lines\nimport inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))\n1 / 0"
    page, run = site.run(code)
    assert run.outcomes[0].stdout == "def f():\n    return 1\n\n"
    assert run.outcomes[0].raised and "    1 / 0\n" in run.outcomes[0].raised.traceback


def test_a_traceback_counts_calls_that_repeat(site: Site) -> None:
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\n')
    (outcome,) = site.outcomes('raises="RecursionError"\ndef f():\n    f()\n\nf()')
    assert outcome.raised and outcome.raised.traceback.count("in f\n    f()\n") == 3
    assert re.search(r"\n  \[Previous line repeated 9\d\d more times\]\nRecursionError: ", outcome.raised.traceback)


def test_a_failure_names_the_line_of_the_statement(site: Site) -> None:
    (failure,) = site.failures("a = 1\nb = 2\n\nc = a / 0\n")
    assert (failure.page, failure.block, failure.line) == ("docs/page.md", 3, 7)
    assert str(failure).startswith("docs/page.md:7: block of line 3: raised ZeroDivisionError: division by zero\n")
    assert "c = a / 0" in failure.detail


def test_a_failure_in_a_function_of_an_earlier_block_names_the_failing_block(site: Site) -> None:
    (failure,) = site.failures("def f(x):\n    return 1 / x\n", "f(0)\n")
    assert (failure.block, failure.line) == (9, 9)


def test_a_failure_in_an_included_file_names_the_include(site: Site) -> None:
    site.write("snippets/part.py", "a = 1\nb = a / 0\n")
    (failure,) = site.failures('x = 1\n--8<-- "part.py"')
    assert failure.line == 5


STOPS = {
    "an error": ("1 / 0", "ZeroDivisionError"),
    "no error": ('raises="KeyError"\nx = 1', "raised nothing"),
    "a figure without words": ("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", 'needs alt="…"'),
    "a changed directory": ("import os\nos.chdir('/')", "changed the working directory"),
    "the end of its process": ("import os\nos._exit(3)", "exit status 3"),
}


@pytest.mark.parametrize("kind", STOPS)
def test_the_blocks_after_a_failed_one_do_not_run_but_those_that_rest_on_no_other(site: Site, kind: str) -> None:
    code, message = STOPS[kind]
    page, run = site.run("print('before')", code, "print('after')", "isolated='on'\nprint('fresh')", "print('last')")
    (failure,) = run.failures
    assert message in failure.message and failure.block == page.program[1].line
    assert [outcome.stdout for outcome in run.outcomes] == ["before\n", "", "", "fresh\n", ""]
    assert [outcome.stopped_by for outcome in run.outcomes] == [None, None, 1, None, 1]
    assert {run.outcomes[number].skipped for number in (2, 4)} == {f"the block on line {failure.block} failed"}


@pytest.mark.parametrize("code", ["1 / 0", "import os\nos._exit(3)", "timeout='0.5'\nwhile True: pass"])
def test_the_failure_of_a_fresh_block_stops_no_other(site: Site, code: str) -> None:
    fresh = f"isolated='on' {code}" if code.startswith("timeout") else f"isolated='on'\n{code}"
    page, run = site.run("x = 'set'", fresh, "print(x)", fresh, "print(x, 'again')")
    assert [failure.block for failure in run.failures] == [page.program[1].line, page.program[3].line]
    assert [outcome.stdout for outcome in run.outcomes] == ["", "", "set\n", "", "set again\n"]
    assert {"jax"} <= set(run.modules) and run.device


def test_settings_that_are_refused_stop_every_block(site: Site) -> None:
    head = "---\njax: {jax_no_such_thing: 1}\n---\n"
    outcomes = site.outcomes("x = 1", "isolated='on'\ny = 2", head=head)
    assert "settings of the page" in outcomes[0].process_error and outcomes[1].stopped_by == 0


def test_what_needs_a_name_of_a_block_that_does_not_run_here_is_not_run_either(site: Site) -> None:
    page, run = site.run('needs="tpus>=4096"\nx = 1', "y = x", "print(y)", "print('on')", "print(undefined)", "z = 1")
    (failure,) = run.failures
    assert "undefined" in failure.message
    assert run.outcomes[1].skipped == f"needs x from the block on line {page.program[0].line}, which did not run"
    assert run.outcomes[2].skipped.startswith("needs y") and run.outcomes[3].stdout == "on\n"
    assert run.outcomes[5].stopped_by == 4


SKIPPED = 'needs="tpus>=4096"\n'


@pytest.mark.parametrize(
    ("skipped", "reader", "name"),
    [
        ("x = 2", "print(x)", "x"),
        ("for x in range(3): pass", "print([x for _ in [1]])", "x"),
        ("x += 1", "x += 1", "x"),
        ("x['key'] = 2", "print(x)", "x"),
        ("def f(): return 2", "print(f())", "f"),
        ("x = 2", "print(f())", "x"),
        ("x = 2", "if 0:\n    x = 3\nprint(x)", "x"),
        ("x = 2", "x = 3\nprint(x)", ""),
        ("x = 2", "print([x for x in 'a'], (lambda x: x)(1))", ""),
        ("def g():\n    x = 2", "print(x)", ""),
        ("[x for x in range(3)]", "print(x)", ""),
        ("print(x)", "print(x)", ""),
    ],
)
def test_what_would_show_a_value_from_before_a_block_that_did_not_run_does_not_run(
    site: Site, skipped: str, reader: str, name: str
) -> None:
    before = "x = {'key': 1}\ndef f(): return x" if "key" in skipped else "x = 1\ndef f(): return x"
    page, run = site.run(before, SKIPPED + skipped, reader, "print('on')")
    assert not run.failures
    assert run.outcomes[2].skipped == (
        f"needs {name} from the block on line {page.program[1].line}, which did not run" if name else ""
    )
    assert run.outcomes[3].stdout == "on\n"


def test_a_name_that_is_bound_again_after_a_block_that_did_not_run_can_be_read(site: Site) -> None:
    outcomes = site.outcomes("x = 1", f"{SKIPPED}x = 2", "print(x)", "x = 3", "print(x)")
    assert [bool(outcome.skipped) for outcome in outcomes] == [False, True, True, False, False]
    assert outcomes[4].stdout == "3\n"


def test_a_missing_name_that_only_a_function_of_a_skipped_block_binds_is_a_failure(site: Site) -> None:
    (failure,) = site.failures(f"{SKIPPED}def f():\n    local = 1", "print(local)")
    assert "NameError" in failure.message


# --- processes that a block starts -------------------------------------------------------------------------------


def test_the_output_of_a_process_belongs_to_the_block_that_started_it(site: Site) -> None:
    """However late: the next block, which the process waits for, has begun and written by then."""
    late = "import os, time\nif not os.fork():\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
    late += "    print('late')\n    os._exit(0)\nprint('first')"
    program = "import subprocess\nsubprocess.Popen(['sh', '-c', 'while ! test -e go; do sleep 0.01; done; echo later; echo >&2 err']);"
    go = "print('third')\nopen('go', 'w').close()\nos.wait(), os.wait();\nprint('end')"
    page, run = site.run(late, program, go)
    assert not run.failures
    assert [outcome.stdout for outcome in run.outcomes] == ["first\nlate\n", "later\nerr\n", "third\nend\n"]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("XLA_FLAGS", "--xla_nonsense", "Unknown flag in XLA_FLAGS: --xla_nonsense"),
        ("JAX_PLATFORMS", "nonsense", "Unable to initialize backend 'nonsense'"),
    ],
)
def test_a_variable_that_jax_does_not_take_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    page, runner = site.page("import jax\njax.devices()"), Runner()
    (failure,) = runner.run(site.project, [Task(page)])[page.path].failures
    runner.close()
    assert message in str(failure)


# --- hostile pages -----------------------------------------------------------------------------------------------

HOSTILE = {
    "endless loop": ('timeout="0.5"\nwhile True: pass', "ran longer than 0.5 s"),
    "endless output": ("while True: print('x' * 1000)", "wrote more than 1,000,000 bytes"),
    "much output": ("print('x' * 1_500_000)", "wrote more than 1,000,000 bytes"),
    "sys.exit": ("import sys\nsys.exit()", "raised SystemExit"),
    "os._exit": ("import os\nos._exit(0)", "ended the process (exit status 0)"),
    "segfault": ("import ctypes\nctypes.string_at(0)", "killed by SIGSEGV"),
    "abort": ("import os\nos.abort()", "killed by SIGABRT"),
    "memory kill": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL (out of memory?)"),
    "closed stdout": ("import sys\nsys.stdout.close()", "closed standard output"),
    "closed descriptor": ("import os\nos.close(1)", "closed standard output"),
    "replaced stdout": ("import io, sys\nsys.stdout = io.StringIO()", "left sys.stdout or sys.stderr replaced"),
    "leftover thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
        "left the thread",
    ),
    "chdir": ("import os\nos.chdir('/')", "changed the working directory"),
    "removed directory": ("import os, shutil\nshutil.rmtree(os.getcwd())", "changed the working directory"),
    "all descriptors closed": ("import os\nos.closerange(3, 256)", "closed descriptors that it had not opened"),
    "message that raises": ("class E(Exception):\n    def __str__(self): return 1 / 0\nraise E", "its message raised"),
    "recursion": ("def f(): f()\nf()", "RecursionError"),
}


# A page that meddles with descriptors and files of the engine.
HOSTILE |= {
    "numbers used again": (
        "import os\nos.closerange(3, 100)\nfiles = [open(f'f{n}', 'w+') for n in range(50)]",
        "closed descriptors that it had not opened",
    ),
    "standard output on another file": (
        "import os\nos.dup2(os.open('other', os.O_CREAT | os.O_WRONLY), 1)",
        "left descriptor 1 or 2",
    ),
    "lines among the messages": (
        "open('../messages', 'ab').write(b'nonsense\\n{\"\": 3}\\nno end');",
        "wrote into a file of the engine",
    ),
    "a message of its own": (
        "open('../messages', 'a').write('\\n{\"\": \"Begun\", \"block\": 99}\\n');",
        "wrote into a file of the engine",
    ),
    "the end of a page": ("import os, shutil\nshutil.rmtree('..')", "broke the process that it ran in"),
}
FOUND_OUT_LATER = {
    "lines among the messages",
    "a message of its own",
    "leftover thread",
}  # when the other blocks have run


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_a_block_does_to_its_process_is_its_failure_and_no_one_elses(site: Site, kind: str) -> None:
    code, message = HOSTILE[kind]
    hostile = site.page("print('before')", code, "print('after')", name="hostile")
    bystander = site.page("print('untouched')", name="bystander")
    runs = site.engine.run([hostile, bystander])
    assert runs[bystander.path].outcomes[0].stdout == "untouched\n"
    (failure,) = runs[hostile.path].failures
    assert message in failure.message
    assert (failure.page, failure.block) == ("docs/hostile.md", 7)
    before, _, after = runs[hostile.path].outcomes
    assert before.stdout == "before\n"
    stopped = after.skipped == "the block on line 7 failed" and after.stopped_by == 1
    assert stopped != (after.stdout == "after\n") == (kind in FOUND_OUT_LATER)


def test_the_outcome_of_a_block_is_kept_whatever_it_writes_among_the_messages(site: Site) -> None:
    first, second = site.outcomes("print('kept')\nopen('../messages', 'a').write('no end');", "print('next')")
    assert (first.stdout, second.stdout) == ("kept\n", "next\n") and first.process_error


def test_output_may_hold_anything_that_is_text(site: Site) -> None:
    page, run = site.run("print('`' * 8 + '\\n~~~~\\n</div><script>{{ x }} &amp;')")
    assert not run.failures
    assert run.outcomes[0].stdout == "````````\n~~~~\n</div><script>{{ x }} &amp;\n"


@LINUX
def test_what_a_page_started_in_a_session_of_its_own_ends_with_it(site: Site) -> None:
    code = "import subprocess\nprint(subprocess.Popen(['setsid', 'sleep', '600'], start_new_session=True).pid)"
    _, run = site.run(code)
    assert process_ends(run.outcomes[0].stdout.strip())


@LINUX
def test_a_child_that_a_block_forks_does_not_run_the_rest_of_the_page(site: Site) -> None:
    first, second = site.outcomes("import os\nif pid := os.fork():\n    os.waitpid(pid, 0)", "print('once')")
    assert first.raised is None and second.stdout == "once\n"


@LINUX
def test_what_a_page_started_ends_with_it(site: Site) -> None:
    _, run = site.run("import subprocess\nprint(subprocess.Popen(['sleep', '60']).pid)")
    assert process_ends(run.outcomes[0].stdout.strip())


@LINUX
def test_pages_leave_no_folder_behind(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    site.outcomes("from pathlib import Path\nPath('file').write_text('x')", "import os\nos._exit(1)")
    assert not list(tmp_path.glob("livepages-*"))


def test_needs_that_the_host_lacks_are_no_failure(site: Site) -> None:
    page, run = site.run('needs="tpus>=4096"\nprint(1)', "print(2)")
    assert run.outcomes[0].skipped == "needs tpus>=4096; this host has no tpu"
    assert not run.failures


def test_expected_output_is_compared(site: Site) -> None:
    text = "```python\nprint('a  b')\n```\n\n<!--pytest-codeblocks:{}-->\n\n```text\n{}\n```\n"
    verdicts = []
    for kind, wanted in (
        ("expected-output", "a  b"),
        ("expected-output", "a b"),
        ("expected-output-ignore-whitespace", "a b"),
    ):
        page = site.read(site.write("docs/p.md", text.format(kind, wanted)))
        verdicts.append(not site.engine.run([page])[page.path].failures)
    assert verdicts == [True, False, True]


def test_an_error_says_the_same_wherever_its_objects_lie(site: Site) -> None:
    _, run = site.run('raises="TypeError"\nraise TypeError(f"no {object()} here, and not 0xff")')
    assert run.outcomes[0].raised
    assert run.outcomes[0].raised.message == "no <object object at 0x…> here, and not 0xff"
    assert "0x7" not in run.outcomes[0].raised.traceback


def test_a_fresh_block_has_a_namespace_of_its_own(site: Site) -> None:
    outcomes = site.outcomes(
        "import jax\nshared = 1",
        'isolated="on" raises="NameError"\nprint(shared)',
        'isolated="on"\nimport __main__\nshared = 3\nprint(__main__.shared, __name__)',
        "print(shared)",
    )
    assert [outcome.stdout for outcome in outcomes] == ["", "", "3 __main__\n", "1\n"]


@pytest.mark.parametrize("ending", ["", "\nraise ValueError"])
def test_settings_that_a_fresh_block_changes_are_put_back(site: Site, ending: str) -> None:
    raises = ' raises="ValueError"' if ending else ""
    change = 'import jax\njax.config.update("jax_enable_x64", True)\nprint(jax.numpy.ones(1).dtype)'
    outcomes = site.outcomes(f'isolated="on"{raises}\n{change}{ending}', "import jax\nprint(jax.numpy.ones(1).dtype)")
    assert [outcome.stdout for outcome in outcomes] == ["float64\n", "float32\n"]
