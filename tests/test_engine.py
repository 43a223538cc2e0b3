"""Nothing stale: whatever an outcome depends on makes a kept run unusable when it changes; nothing else does."""

import importlib.metadata
import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from livepages.execution import keys
from livepages.execution.named_files import Listing, NamedFiles
from livepages.worker import probes, runtime
from livepages.worker.jax_runtime import JaxRuntime
from tests.conftest import Site


def kept(site: Site, path: Path) -> bool:
    page = site.read(path)
    return page.path in site.engine.kept([page])


@pytest.fixture
def page(site: Site) -> Path:
    """A page that has run, and that uses a module, which reads a file, and one of the installed distributions."""
    site.write(
        "snippets/helper.py", "from pathlib import Path\nDATA = (Path(__file__).parent / 'data.txt').read_text()\n"
    )
    site.write("snippets/part.py", "part = 1\n")
    site.write("snippets/data.txt", "data")
    site.write("hosts/one.txt", "")
    page, run = site.run(
        "import helper, yaml\nhosts = [*helper.Path(helper.__file__).parents[1].glob('hosts/*')]",
        '--8<-- "part.py"',
        "try:\n    open(helper.__file__ + '.missing')\nexcept OSError:\n    pass",
    )
    assert page.path in site.engine.kept([page]), run
    return page.path


def test_a_run_is_kept_and_is_the_same(site: Site, page: Path) -> None:
    read = site.read(page)
    before = site.engine.kept([read])[page]
    site.engine.run([read])
    after = site.engine.kept([read])[page]
    assert [o.streams for o in after.outcomes] == [o.streams for o in before.outcomes]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("docs/page.md", "# Page\n\n```python\nimport helper\n```\n"),
        ("snippets/part.py", "part = 2\n"),
        ("snippets/helper.py", "DATA = 2\n"),
        ("snippets/data.txt", "other data"),
        ("snippets/helper.py.missing", "no longer missing"),
        ("hosts/two.txt", "one more that is looked for"),
    ],
)
def test_code_includes_modules_and_data_are_covered(site: Site, page: Path, file: str, text: str) -> None:
    site.write(file, text)
    assert not kept(site, page)


def test_a_deleted_data_file_is_covered(site: Site, page: Path) -> None:
    (site.root / "snippets/data.txt").unlink()
    assert not kept(site, page)


def test_prose_titles_and_other_files_are_not(site: Site, page: Path) -> None:
    page.write_text(
        page.read_text()
        .replace("# Page", "# Title\n\nProse.")
        .replace("```python\nimport", '```python title="T"\nimport')
    )
    site.write("snippets/other.py", "x = 1\n")
    site.write("docs/stylesheets/a.css", "a {}")
    assert kept(site, page)


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setenv("JAX_ENABLE_X64", "1"),
        lambda patch: patch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true"),
        lambda patch: patch.setenv("LIBTPU_INIT_ARGS", "--x"),
        lambda patch: patch.setenv("PYTHONPATH", "modules"),
        lambda patch: patch.setattr("platform.python_version", lambda: "3.99.0"),
        lambda patch: patch.setattr(JaxRuntime, "accelerators", lambda _: ["NVIDIA H200"]),
        lambda patch: patch.setattr(JaxRuntime, "accelerators", lambda _: ["NVIDIA H200"] * 2),
        lambda patch: patch.setattr(runtime, "version", lambda name: "9.9"),
        lambda patch: patch.setattr(keys, "engine_digest", lambda: "another engine"),
    ],
    ids=[
        "JAX_*",
        "XLA_FLAGS",
        "LIBTPU_*",
        "PYTHONPATH",
        "Python",
        "device kind",
        "device count",
        "jax and jaxlib",
        "engine",
    ],
)
def test_the_host_is_covered(
    site: Site, page: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None]
) -> None:
    change(monkeypatch)
    assert not kept(site, page)


def test_it_is_the_same_host_after_jax_was_imported() -> None:
    """Importing JAX sets variables; the tests that build the site do so in processes that have imported it."""
    code = (
        "from livepages.worker.jax_runtime import JaxRuntime\n"
        "import os\n"
        "before, had = JaxRuntime().fingerprint(), {*os.environ}\n"
        "import jax\n"
        "print(sorted({*os.environ} - had))\n"
        "assert JaxRuntime().fingerprint() == before"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TPU_")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "TPU_" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["jax", "jaxlib", "numpy", "PyYAML"])
def test_the_version_of_every_imported_distribution_is_covered(
    site: Site, page: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    real = importlib.metadata.version
    monkeypatch.setattr(runtime, "version", lambda one: "9.9" if one.lower() == name.lower() else real(one))
    assert not kept(site, page)


def _change_and_set_back(file: Path) -> None:
    """Change a file, but neither its size nor the time that it shows."""
    before = file.stat()
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


ASKS: dict[str, tuple[str, Callable[[Site], object]]] = {
    "a module that is not installed": (
        "import importlib.util\nprint(importlib.util.find_spec('live_absent'))",
        lambda site: site.write("snippets/live_absent.py", ""),
    ),
    "an import that failed": (
        "try:\n    import live_absent\nexcept ImportError:\n    pass",
        lambda site: site.write("snippets/live_absent/__init__.py", ""),
    ),
    "a module that now hides one": (
        "import this_one as _",
        lambda site: site.write("snippets/this_one/__init__.py", ""),
    ),
    "a module of Python that is now hidden": (
        "import colorsys",
        lambda site: site.write("snippets/colorsys.py", ""),
    ),
    "a part of a package": (
        "try:\n    import package.part\nexcept ImportError:\n    pass",
        lambda site: site.write("snippets/package/part.py", ""),
    ),
    "whether a file exists": ("import os\nprint(os.path.exists(ROOT + '/new'))", lambda site: site.write("new", "")),
    "a file that exists": (
        "from pathlib import Path\nprint(Path(ROOT, 'data.txt').stat().st_size)",
        lambda site: site.write("data.txt", "more"),
    ),
    "whether a folder exists": (
        "import os\nprint(os.path.isdir(ROOT + '/sub'))",
        lambda site: (site.root / "sub").rmdir(),
    ),
    "what is in a folder": ("import os\nprint(os.listdir(ROOT + '/sub'))", lambda site: site.write("sub/new", "")),
    "a glob": ("import glob\nprint(glob.glob(ROOT + '/sub/new.t[x]t'))", lambda site: site.write("sub/new.txt", "")),
    "a file that may be written": (
        "print(open(ROOT + '/data.txt', 'r+').read())",
        lambda site: site.write("data.txt", "b"),
    ),
    "a file in memory": (
        "import numpy as np\nprint(np.memmap(ROOT + '/data.txt', dtype='u1'))",
        lambda site: site.write("data.txt", "b"),
    ),
    "a database": (
        "import sqlite3\nprint(sqlite3.connect(ROOT + '/data.txt'))",
        lambda site: site.write("data.txt", "b"),
    ),
    "a link out of the project": ("print(open(ROOT + '/link').read())", lambda site: site.write("../outside", "b")),
    "a file out of the project": (
        "print(open(ROOT + '/../outside').read())",
        lambda site: site.write("../outside", "b"),
    ),
    "an argument of a program": (
        "import subprocess\nsubprocess.run(['cat', ROOT + '/data.txt'])",
        lambda site: site.write("data.txt", "b"),
    ),
    "what is named in an argument": (
        "import subprocess\nsubprocess.run(['sh', '-c', 'cat <' + ROOT + '/data.txt'])",
        lambda site: site.write("data.txt", "b"),
    ),
    "what a forked process reads": (
        "import os\nif not (pid := os.fork()):\n    open(ROOT + '/data.txt').read()\n    os._exit(0)\n_ = os.waitpid(pid, 0)",
        lambda site: site.write("data.txt", "b"),
    ),
    "a file that a library opens without Python": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.fopen.restype = ctypes.c_void_p\n"
        "assert libc.fopen(ROOT.encode() + b'/data.txt', b'r')",
        lambda site: site.write("data.txt", "b"),
    ),
    "a pattern that a library opens without Python": (
        "root, number = ROOT, 2\nprint(f'{root}/sub/{number}.csv')",
        lambda site: site.write("sub/2.csv", "b"),
    ),
    "a new file in a folder that a library opens without Python": (
        "scan = print\nscan('declared/deep')",
        lambda site: site.write("declared/deep/more.txt", "b"),
    ),
    "what a module names": (
        "import naming",
        lambda site: site.write("data.txt", "b"),
    ),
    "what a program reads in a folder that it starts in": (
        "import subprocess\nsubprocess.run(['cat', 'data.txt'], cwd=ROOT, check=True)",
        lambda site: site.write("data.txt", "b"),
    ),
    "what a variable of a program names": (
        "import subprocess\nsubprocess.run(['sh', '-c', 'cat $FILE'], env={'FILE': ROOT + '/data.txt'}, check=True)",
        lambda site: site.write("data.txt", "b"),
    ),
    "what a spawned process reads": (
        "import multiprocessing\ndef read(_):\n    return open(where + '/data.txt').read()\nwhere = ROOT\n"
        "if __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(read, [1]))",
        lambda site: site.write("data.txt", "b"),
    ),
    "a file beside an open folder": (
        "import os\nfolder = os.open(ROOT, os.O_RDONLY)\nfile = os.open('data.txt', os.O_RDONLY, dir_fd=folder)\n"
        "os.close(file), os.close(folder);",
        lambda site: site.write("data.txt", "b"),
    ),
    "where a link leads": (
        "import os\nprint(os.readlink(ROOT + '/link'))",
        lambda site: os.replace(site.root / "other", site.root / "link"),
    ),
    "a large file": (
        "print(len(open(ROOT + '/large').read()))",
        lambda site: _change_and_set_back(site.root / "large"),
    ),
    "a file whose time is set back": (
        "print(open(ROOT + '/data.txt').read())",
        lambda site: _change_and_set_back(site.root / "data.txt"),
    ),
    "what the page declares": ("x = 1", lambda site: site.write("declared/deep/data.txt", "b")),
}


@pytest.fixture
def asking(sites: Callable[[str], Site]) -> Site:
    """A project with data in it and outside."""
    site = sites("project")
    site.write("data.txt", "a")
    site.write("../outside", "a")
    site.write("declared/deep/data.txt", "a")
    site.write("snippets/naming.py", "def read(native):\n    native.read('data.txt')\n")
    site.write("large", "a" * (1 << 24) + "a")
    site.write("../beside", "a")
    site.write("snippets/package/__init__.py", "")
    site.write("snippets/this_one.py", "")
    (site.root / "sub").mkdir()
    (site.root / "link").symlink_to(site.root / "../outside")
    (site.root / "other").symlink_to(site.root / "../beside")
    return site


@pytest.mark.parametrize("what", ASKS)
def test_what_a_page_asks_is_covered(asking: Site, what: str) -> None:
    code, change = ASKS[what]
    page, run = asking.run(code.replace("ROOT", repr(str(asking.root))), head="---\ndepends_on: [declared]\n---\n\n")
    assert not run.failures
    asking.write("unasked", "")
    assert asking.engine.kept([page]), run
    change(asking)
    assert not asking.engine.kept([page])


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import os\nprint(os.environ.get('LIVE_ASKED'))", "LIVE_ASKED"),
        ("import os\nprint('LIVE_ASKED' in os.environ)", "LIVE_ASKED"),
        ("from os import getenv\nprint(getenv('LIVE_ASKED'))", "LIVE_ASKED"),
        ("import os\nos.environ['LIVE_ASKED'] = 'own'\nprint(os.environ['LIVE_ASKED'])", ""),
        ("import os\n_ = {**os.environ}, os.environ.copy(), dict(os.environ)", ""),
        ("import os\nprint(os.environ['COLUMNS'])", ""),  # which every page finds as it is
    ],
)
def test_the_variables_that_a_page_reads_are_covered(
    site: Site, monkeypatch: pytest.MonkeyPatch, code: str, name: str
) -> None:
    page, _ = site.run(code)
    monkeypatch.setenv("LIVE_UNASKED", "1")
    monkeypatch.setenv("COLUMNS", "200")
    assert site.engine.kept([page])
    monkeypatch.setenv("LIVE_ASKED", "1")
    assert bool(site.engine.kept([page])) == (not name)


@pytest.mark.parametrize(
    ("code", "package"),
    [
        ("from importlib import metadata\nprint(metadata.version('Markdown'))", "Markdown"),
        ("from importlib import metadata\nprint(len([*metadata.distributions()]))", ""),
    ],
)
def test_the_versions_that_a_page_asks_for_are_covered(
    site: Site, monkeypatch: pytest.MonkeyPatch, code: str, package: str
) -> None:
    page, _ = site.run(code)
    assert site.engine.kept([page])
    monkeypatch.setattr(runtime, "version", lambda name: "9.9") if package else monkeypatch.setattr(
        probes, "_distributions", lambda: []
    )
    assert not site.engine.kept([page])


def test_what_is_installed_where_it_is_written_is_covered(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An editable install has one version, whatever its modules become."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "live_elsewhere.py").write_text("A = 1\n")
    metadata = folder / "live_elsewhere-1.0.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Name: live_elsewhere\nVersion: 1.0\n")
    page, _ = site.run(f"import sys\nsys.path.append({str(folder)!r})\nimport live_elsewhere")
    assert site.engine.kept([page])
    (folder / "live_elsewhere.py").write_text("A = 2\n")
    assert not site.engine.kept([page])


def copied(site: Site, name: str) -> Site:
    """A copy of a project with all that it keeps, in another folder."""
    folder = site.root.parent / "elsewhere" / name
    shutil.copytree(site.root, folder)
    return Site(folder, site.runner)


def test_a_run_is_kept_wherever_the_project_lies(site: Site, page: Path) -> None:
    """Continuous integration publishes what another of its machines has run."""
    [run] = site.engine.kept([site.read(page)]).values()
    copy = copied(site, "copy")
    there = copy.read(copy.root / "docs/page.md")
    assert copy.engine.kept([there]) == {there.path: run}
    assert {"snippets/helper.py", "snippets/data.txt", "hosts"} <= {*run.files}
    copy.write("snippets/data.txt", "other data")
    assert not copy.engine.kept([there])
    assert "content snippets/data.txt has changed" in copy.engine.why_stale(there)


@pytest.mark.parametrize(
    ("code", "tied"),
    [
        ("import helper\nprint(helper.__file__)", True),
        ("import helper, pathlib\nprint(pathlib.Path(helper.__file__).parents[2].joinpath('beside').exists())", True),
        ("import helper, os\nprint(os.path.realpath(os.__file__) != os.path.realpath(helper.__file__))", False),
        ("import helper, warnings\nwarnings.warn_explicit('w', UserWarning, helper.__file__, 1)", False),
        ("import helper\nraise ValueError(helper.__file__)", False),
    ],
    ids=["output", "a file beside the project", "folders above it and Python", "a warning", "an error"],
)
def test_a_run_that_names_the_folder_of_the_project_is_kept_in_this_folder_alone(
    sites: Callable[[str], Site], code: str, tied: bool
) -> None:
    site = sites("project")
    site.write("../beside", "")
    site.write("snippets/helper.py", "")
    page, run = site.run(code)
    assert site.engine.kept([page], failed=True)
    assert not [question for question in run.probes if question.startswith(f"folder {os.sep}")]
    copy = copied(site, "copy")
    assert bool(copy.engine.kept([copy.read(copy.root / "docs/page.md")], failed=True)) != tied


def test_another_folder_of_modules_is_covered(site: Site, page: Path) -> None:
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "jax"\nsnippets = "other"\n')
    (site.root / "snippets").rename(site.root / "other")
    assert not kept(site, page)


def test_a_project_may_lie_below_the_folder_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", "/opt")
    probes._installed.cache_clear()
    try:
        assert probes.is_local("/opt/site/snippets/a.py", "/opt/site")
        assert not probes.is_local("/opt/site/a.py", "/srv")
        assert not probes.is_local("/opt/site/.venv/lib/site-packages/a.py", "/opt/site")
    finally:
        probes._installed.cache_clear()


def test_settings_of_the_project_are_covered(site: Site, page: Path) -> None:
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "jax"\n[tool.livepages.jax]\njax_debug_nans = true\n')
    assert not kept(site, page)


def test_marks_are_covered(site: Site, page: Path) -> None:
    page.write_text(page.read_text().replace("```python\nimport", "<!--pytest.mark.slow-->\n```python\nimport"))
    assert not kept(site, page)


def test_a_page_with_a_failure_runs_again_but_its_run_can_be_reported(site: Site) -> None:
    page, run = site.run("1 / 0")
    assert not site.engine.kept([page])
    assert site.engine.kept([page], failed=True) == {page.path: run}


def test_a_page_that_comes_to_measure_time_runs_again(site: Site) -> None:
    site.run("x = 1")
    assert site.engine.kept([site.page("x = 1")])
    assert not site.engine.kept([site.page("x = 1", head="---\nexclusive: true\n---\n\n")])


@pytest.mark.parametrize(
    "code",
    ["import helper", "print(open(ROOT + '/snippets/helper.py').read())", "native = print\nnative('helper.py')"],
    ids=["a module", "a file", "a file that only the code names"],
)
def test_a_file_that_changes_during_the_run_spoils_the_run(site: Site, code: str) -> None:
    """Nobody knows which content the page saw, so it has to run once more, whatever the time that the file shows."""
    file = site.write("snippets/helper.py", "x = 1\n")
    during = f"\nimport os\nos.system('echo x = 2 >{file}; touch -d 2001-01-01 {file}')"
    page, run = site.run(code.replace("ROOT", repr(str(site.root))) + during)
    assert not run.failures and not site.engine.kept([page])


def test_a_file_that_the_page_writes_itself_does_not_spoil_the_run(site: Site) -> None:
    page, _ = site.run(f"open({str(site.root)!r} + '/made.csv', 'w').write('1')")
    assert site.engine.kept([page])


def test_a_file_that_a_page_looks_for_and_then_writes_is_there_from_then_on(site: Site) -> None:
    file = site.root / "made.csv"
    code = f"import os\nos.path.exists({str(file)!r})\nopen({str(file)!r}, 'w').write('1')"
    page, _ = site.run(code)
    assert site.engine.kept([page])
    file.write_text("2")
    assert not site.engine.kept([page])


def test_files_are_found_anew_though_folders_are_listed_once(site: Site) -> None:
    for number in range(3):
        site.write(f"data/{number}/a.txt", "")
    site.write("data/env/pyvenv.cfg", "")
    (site.root / "data/linked").symlink_to("0", target_is_directory=True)
    listings: dict[Path, Listing] = {}

    def found() -> set[str]:
        return {path for path in NamedFiles(site.project, listings).signatures() if path.startswith("data/")}

    first = {"data/0/a.txt", "data/1/a.txt", "data/2/a.txt", "data/linked"}
    assert found() == first and not any("data" in folder.parts for folder in listings)  # they have just changed
    with pytest.MonkeyPatch.context() as patch:
        later = time.time_ns() + 10**10
        patch.setattr(time, "time_ns", lambda: later)
        assert found() == first and site.root / "data/0" in listings
    (site.root / "data/0/a.txt").rename(site.root / "data/0/b.txt")
    site.write("data/1/more/c.txt", "")
    (site.root / "data/2/a.txt").unlink()
    assert found() == {"data/0/b.txt", "data/1/a.txt", "data/1/more/c.txt", "data/linked"}


def test_a_page_that_writes_the_same_without_python_runs_once_more(site: Site) -> None:
    file = site.root / "made.csv"
    code = f"import os\nos.system('echo 1 >{file}')\nprint(open({str(file)!r}).read())"
    page, _ = site.run(code)
    assert not site.engine.kept([page])
    site.run(code)
    assert site.engine.kept([page])
    file.write_text("2")
    assert not site.engine.kept([page])


@pytest.mark.parametrize(
    "write", ["import os\nos.system('cd {0}; echo {1} >made.csv')", "open('{0}/made.csv', 'w').write('{1}')"]
)
def test_pages_that_write_one_file_in_turn_come_to_rest(site: Site, write: str) -> None:
    pages = [site.page(write.format(site.root, number), name=f"page{number}") for number in range(2)]
    for _ in range(3):
        for page in pages:
            if not site.engine.kept([page]):
                site.engine.run([page])
    assert len(site.engine.kept(pages)) == 2


@pytest.mark.parametrize("name", ["snippets/helper.py", "data.txt"])
def test_a_file_from_the_future_is_like_any_other(site: Site, name: str) -> None:
    file = site.write(name, "x = 1\n")
    os.utime(file, (2**32, 2**32))
    page, _ = site.run(
        f"import helper\nprint(open({str(file)!r}).read())" if "helper" in name else f"open({str(file)!r})"
    )
    assert site.engine.kept([page])
    file.write_text("x = 2\n")
    os.utime(file, (2**32, 2**32))
    assert not site.engine.kept([page])


def test_a_module_runs_as_it_is_whatever_bytecode_there_is(site: Site) -> None:
    """Bytecode is taken for that of any source with the same size and time."""
    file = site.write("snippets/helper.py", "x = 1\n")
    py_compile.compile(str(file))
    before = file.stat().st_mtime_ns
    file.write_text("x = 2\n")
    os.utime(file, ns=(before, before))
    assert site.outcomes("import helper\nprint(helper.x)")[0].stdout == "2\n"


def test_words_of_sentences_and_folders_of_pages_are_not_followed(site: Site) -> None:
    site.write("tests/other.py", "")
    page, _ = site.run("print('the tests and docs')\nprint({'docs': 1}, 'page.md')")
    assert site.engine.kept([page])
    site.write("tests/other.py", "x = 1")
    site.write("docs/other.md", "# Other\n")
    assert site.engine.kept([page])


def test_the_cache_may_be_deleted_at_any_time(site: Site, page: Path) -> None:
    for file in sorted(site.project.cache.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    assert not kept(site, page)
    site.engine.run([site.read(page)])
    assert kept(site, page)


def test_marks_skip_a_block_on_this_host(site: Site) -> None:
    text = "<!--pytest.mark.skipif(sys.version_info > (3,), reason='too new')-->\n```python\n1 / 0\n```\n"
    text += (
        "<!--pytest-codeblocks:importorskip(no_such_module)-->\n```python\nx = 1\n```\n"
        "```python\nprint('on')\n```\n```python\nprint(x)\n```\n"
    )
    page = site.read(site.write("docs/page.md", text))
    outcomes = site.engine.run([page])[page.path].outcomes
    lacking = "needs x from the block on line 6, which did not run"
    assert [outcome.skipped for outcome in outcomes] == ["too new", "needs the module no_such_module", "", lacking]
    assert outcomes[2].stdout == "on\n"
