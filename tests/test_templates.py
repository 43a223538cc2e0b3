"""The modules that pages import first are imported once before the fork, and no page can tell."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from livepages.execution import Runner
from livepages.execution.jobs import _imports
from livepages.execution.running import Task
from livepages.source import ProjectError
from livepages.source.imports import first_imports
from tests.conftest import Site


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        (["'''Doc.'''\nimport os, a.b as c\nfrom d.e import f, g as h\nx = 1\nimport i"], [("a.b", ""), ("d.e", "f"), ("d.e", "g")]),
        (["from __future__ import annotations\nfrom a import *", "import b"], [("a", ""), ("b", "")]),
        (["import a; import a", "print()", "import b"], [("a", "")]),
        (["import a", "if True:\n    import b"], [("a", "")]),
        (["import a", "not Python"], [("a", "")]),
        (["from .a import b\nimport c"], []),
    ],
)  # fmt: skip
def test_the_first_imports_of_a_program(codes: list[str], found: list[tuple[str, str]]) -> None:
    assert first_imports(codes) == tuple(found)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pages import from, as from installed packages; no two tests write a module of the same name."""
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="module")
def plain_runner(libraries: Path) -> Iterator[Runner]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(libraries), prepend=os.pathsep)
        patch.syspath_prepend(libraries)
        runner = Runner(2)
        yield runner
        runner.close()


@pytest.fixture
def plain(tmp_path: Path, plain_runner: Runner) -> Site:
    """A project of plain Python."""
    site = Site(tmp_path, plain_runner)
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\n')
    return site


def library(folder: Path, name: str, code: str = "") -> None:
    (folder / f"{name}.py").write_text(f"import os\nprocess = os.getpid()\n{code}\n")


def printed(site: Site, *codes: str, head: str = "") -> list[str]:
    """Return what pages of one block each print."""
    pages = [site.page(code, name=f"page{number}", head=head) for number, code in enumerate(codes)]
    runs = site.engine.run(pages)
    results = [result for page in pages for result in runs[page.path].results]
    assert not any(result.outcome.process_error or result.outcome.raised for result in results)
    return [result.outcome.stdout.strip() for result in results]


def test_pages_that_begin_alike_are_forked_from_a_process_that_has_imported_it(plain: Site, libraries: Path) -> None:
    library(libraries, "shared")
    first = "import os, shared\nprint(shared.process == os.getppid() != os.getpid())"
    assert printed(plain, first, f"x = 1\n{first}", first) == ["True", "False", "True"]


def test_a_page_holds_no_module_that_it_does_not_import(plain: Site, libraries: Path) -> None:
    library(libraries, "others")
    code = "import sys\nprint('others' in sys.modules)"
    assert printed(plain, f"import others\n{code}", code) == ["True", "False"]


UNSAFE = {
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "a descriptor": "kept = os.open(os.devnull, os.O_RDONLY)",
    "a child": "import subprocess\nkept = subprocess.Popen(['sleep', '60'])",
    "output": "print('hello', end=' ')",
}


@pytest.mark.parametrize("what", UNSAFE)
def test_a_module_whose_import_leaves_something_is_imported_by_each_page(
    plain: Site, libraries: Path, what: str
) -> None:
    name = "leaves_" + what.replace(" ", "_")
    library(libraries, name, UNSAFE[what])
    expected = "hello True" if what == "output" else "True"
    code = f"import os, {name}\nprint({name}.process == os.getpid())"
    assert printed(plain, code, code) == [expected, expected]


def test_a_module_that_cannot_be_imported_fails_in_the_page(plain: Site) -> None:
    page = plain.page("import nowhere_to_be_found")
    [result] = plain.engine.run([page])[page.path].results
    assert (
        result.outcome.raised
        and result.outcome.raised.type == "ModuleNotFoundError"
        and result.outcome.raised.line == 1
    )


def test_what_comes_before_an_import_is_done_before_it(plain: Site, libraries: Path) -> None:
    library(libraries, "reads_variable", "value = os.environ.get('MODE')")
    code = "import os\nos.environ['MODE'] = 'set'\nimport reads_variable\nprint(reads_variable.value)"
    assert printed(plain, code) == ["set"]


def test_what_a_module_has_asked_counts_for_each_page(plain: Site, libraries: Path) -> None:
    data = libraries / "settings.txt"
    data.write_text("old")
    library(libraries, "reads_file", f"value = open({str(data)!r}).read(), os.environ.get('MODE_OF_READS_FILE')")
    code = "import reads_file\nprint(reads_file.value[0])"
    pages = [plain.page(code, name=name) for name in ("a", "b")]
    runs = plain.engine.run(pages)
    assert [runs[page.path].results[0].outcome.stdout for page in pages] == ["old\n", "old\n"]
    for page in pages:
        assert any(name.endswith("settings.txt") for name in runs[page.path].files)
        assert any(name.endswith("reads_file.py") for name in runs[page.path].files)
        assert "variable MODE_OF_READS_FILE" in runs[page.path].probes
        assert "reads_file" in runs[page.path].modules
    data.write_text("new")
    assert printed(plain, code) == ["new"]


def test_a_page_does_not_depend_on_what_is_asked_of_such_a_process(plain: Site, libraries: Path) -> None:
    """The folders of modules are looked through to say what is installed."""
    library(libraries, "asks_nothing")
    page = plain.page("import asks_nothing\nprint(asks_nothing.process)")
    run = plain.engine.run([page])[page.path]
    assert [name for name in run.files if not name.endswith("asks_nothing.py")] == []
    assert not [probe for probe in run.probes if probe.startswith("distribution")]


def test_modules_of_the_project_are_imported_by_each_page(plain: Site, libraries: Path) -> None:
    library(libraries, "shadowed", "value = 'installed'")
    code = "import shadowed\nprint(shadowed.value)"
    assert printed(plain, code) == ["installed"]
    for value in ("own", "edited"):
        plain.write("snippets/shadowed.py", f"value = {value!r}\n")
        assert printed(plain, code) == [value]


def test_nothing_is_imported_before_the_fork_from_a_module_of_the_project_on(plain: Site) -> None:
    plain.write("snippets/local/__init__.py", "")
    page = plain.page("import one, local.part, two", "print()")
    assert _imports(Task(page), plain.project, (0, 1)) == (("one", ""),)
    assert _imports(Task(page), plain.project, (1,)) == ()  # an earlier block has ended its process


def test_a_page_that_ends_the_process_it_was_forked_from_fails_alone(plain: Site, libraries: Path) -> None:
    library(libraries, "mother")
    kill = "import mother\nimport os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nimport time\ntime.sleep(30)"
    pages = [plain.page(code, name=name) for name, code in {"a": kill, "b": "import mother\nprint('fine')"}.items()]
    runs = plain.engine.run(pages)
    first, second = (runs[page.path].results[0].outcome for page in pages)
    assert "ended the process that pages are forked from" in first.process_error and second.stdout == "fine\n"


def test_modules_of_the_project_s_choice_are_there_for_every_page(plain: Site, libraries: Path) -> None:
    library(libraries, "chosen")
    plain.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\npreload = ["chosen"]\n')
    code = "x = 1\nimport os, chosen\nprint(chosen.process == os.getppid())"
    assert printed(plain, code) == ["True"]
    page = plain.page(code, name="page0")
    assert plain.engine.kept([page])
    plain.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\n')
    assert not plain.engine.kept([page])
    plain.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\npreload = ["not_there"]\n')
    with pytest.raises(ProjectError, match="preload = .'not_there'. is not a list of installed modules"):
        plain.project  # noqa: B018


def test_modules_of_the_project_s_choice_may_start_threads_that_pages_do_not_have(plain: Site, libraries: Path) -> None:
    library(libraries, "chosen_threads", UNSAFE["a thread"])
    library(libraries, "other_threads", UNSAFE["a thread"])
    library(libraries, "after_threads")
    plain.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\npreload = ["chosen_threads"]\n')
    code = "import os, threading, chosen_threads, {0}\nprint({0}.process == os.getppid(), threading.active_count())"
    assert printed(plain, code.format("after_threads")) == ["True 1"]
    assert printed(plain, code.format("other_threads")) == ["False 2"]


def test_random_numbers_of_numpy_differ_from_page_to_page(plain: Site) -> None:
    code = "import numpy.random\nprint(numpy.random.rand())"
    assert len({*printed(plain, code, code)}) == 2


def test_a_module_finds_the_settings_of_the_page(site: Site, libraries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library(libraries, "reads_settings", "import jax\nvalue = jax.config.jax_enable_x64")
    monkeypatch.setenv("PYTHONPATH", str(libraries), prepend=os.pathsep)
    runner = Runner(2)
    try:
        mine = Site(site.root, runner)
        code = "import os, reads_settings\nprint(reads_settings.value, reads_settings.process == os.getppid())"
        assert printed(mine, code, head="---\nx64: true\n---\n\n") == ["True True"]
        assert printed(mine, code) == ["False True"]
    finally:
        runner.close()
