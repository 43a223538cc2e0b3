"""Nothing stale: whatever an outcome depends on makes a kept run unusable when it changes; nothing else does."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

from livepages.execute import engine
from livepages.worker import runtime
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
    assert [o.output for o in after.outcomes] == [o.output for o in before.outcomes]


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
        lambda patch: patch.setattr("platform.python_version", lambda: "3.99.0"),
        lambda patch: patch.setattr(JaxRuntime, "accelerators", lambda _: ["NVIDIA H200"]),
        lambda patch: patch.setattr(JaxRuntime, "accelerators", lambda _: ["NVIDIA H200"] * 2),
        lambda patch: patch.setattr(runtime, "version", lambda name: "9.9"),
        lambda patch: patch.setattr(engine, "_engine", lambda: "another engine"),
    ],
    ids=["JAX_*", "XLA_FLAGS", "Python", "device kind", "device count", "jax and jaxlib", "engine"],
)
def test_the_host_is_covered(
    site: Site, page: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None]
) -> None:
    change(monkeypatch)
    assert not kept(site, page)


@pytest.mark.parametrize("name", ["jax", "jaxlib", "numpy", "PyYAML"])
def test_the_version_of_every_imported_distribution_is_covered(
    site: Site, page: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    real = importlib.metadata.version
    monkeypatch.setattr(runtime, "version", lambda one: "9.9" if one.lower() == name.lower() else real(one))
    assert not kept(site, page)


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
    assert not site.engine.kept([site.page("x = 1", head="---\nalone: true\n---\n\n")])


def test_a_file_that_changed_during_the_run_spoils_the_run(site: Site) -> None:
    site.write("snippets/helper.py", "x = 1\n")
    page, _ = site.run("import helper, os, time\ntime.sleep(0.01)\nos.utime(helper.__file__)")
    assert not site.engine.kept([page])


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
    lacking = "needs x, which the block of line 6 did not get to make"
    assert [outcome.skipped for outcome in outcomes] == ["too new", "needs the module no_such_module", "", lacking]
    assert outcomes[2].stdout == "on\n"
