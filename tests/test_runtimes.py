"""The choice of a runtime: by the project's settings, else by what pages import; one may come from another distribution."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from livepages.execution import Engine, Runner
from livepages.source import PageError, ProjectError, find_project, read_page
from livepages.worker import find_runtime, runtimes
from tests.conftest import Site

FENCE = "```python{}\n{}\n```\n"


@pytest.mark.parametrize(
    ("name", "text", "runtime"),
    [
        ("docs/a.md", FENCE.format("", "import jax.numpy as jnp"), "jax"),
        ("docs/deep/a.markdown", FENCE.format("", "def f():\n    from jax import jit"), "jax"),
        ("docs/a.md", "- list\n\n    " + FENCE.format("", "import jax").replace("\n", "\n    "), "jax"),
        ("docs/a.md", FENCE.format("", '--8<-- "helper.txt"'), "jax"),
        ("snippets/helper.py", "import os, jax", "jax"),
        ("docs/a.md", FENCE.format("", "import numpy, ajax"), "python"),
        ("docs/a.md", FENCE.format(' exec="off" reason="no"', "import jax"), "python"),
        ("docs/a.md", FENCE.replace("python", "text").format("", "import jax"), "python"),
        ("docs/a.md", "    import jax\n\nimport jax, they say\n", "python"),
        ("docs/a.md", FENCE.format("", "print('''\nimport jax\n''')"), "python"),
        ("docs/a.txt", FENCE.format("", "import jax"), "python"),
    ],
)
def test_the_runtime_follows_from_what_pages_import(tmp_path: Path, name: str, text: str, runtime: str) -> None:
    for file, content in {
        "pyproject.toml": "[tool.livepages]\n",
        "snippets/helper.txt": "import jax",
        name: text,
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    (tmp_path / "docs").mkdir(exist_ok=True)
    assert find_project(tmp_path).runtime.name == runtime


def test_a_project_that_names_its_runtime_has_it_whatever_pages_import(site: Site) -> None:
    site.page("import jax")
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "python"\n')
    assert site.project.runtime.name == "python"


@pytest.mark.parametrize("setting", ["x64: true", "devices: 8", "jax: {jax_debug_nans: true}"])
def test_front_matter_that_the_runtime_would_ignore_is_refused(site: Site, setting: str) -> None:
    site.write("pyproject.toml", "[tool.livepages]\n")
    page = site.write("docs/page.md", f"---\ntitle: T\n{setting}\n---\n\n# T\n\n```python\n1\n```\n")
    with pytest.raises(PageError) as error:
        read_page(page, site.project)
    reported = f'{setting.partition(":")[0]}: is read where runtime = "jax" in [tool.livepages]; here it is "python"'
    assert (error.value.line, error.value.message) == (3, reported)


RUNTIME = """
from livepages.worker import Runtime

class Shouting(Runtime):
    name = "shouting"

    def settings(self, given):
        return {**super().settings(given), "loud": given.get("loud", False)}

    def configure(self, settings, options, cache, root):
        if settings["loud"]:
            import builtins
            builtins.print = lambda text, quiet=print: quiet(text.upper())
"""


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a distribution that is not the engine's, to write entry points into."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "shouting-1.0.dist-info").mkdir()
    (folder / "shouting-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (folder / "shouting.py").write_text(RUNTIME)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)  # of the process that pages are forked from
    forget()
    yield folder
    forget()


def forget() -> None:
    runtimes.cache_clear()
    find_runtime.cache_clear()


def entry_point(folder: Path, value: str) -> None:
    file = folder / "shouting-1.0.dist-info" / "entry_points.txt"
    file.write_text(f"[livepages.runtimes]\nshouting = {value}\n")


def test_a_runtime_from_another_distribution_runs_pages(site: Site, outside: Path) -> None:
    entry_point(outside, "shouting:Shouting")
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "shouting"\n')
    page = site.page("print('quiet')", head="---\nloud: true\n---\n\n")
    runner = Runner()
    try:
        run = Engine(site.project, runner).run([page])[page.path]
    finally:
        runner.close()
    assert [outcome.stdout for outcome in run.outcomes] == ["QUIET\n"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("shouting:Whispering", "cannot be imported: .*Whispering"),
        ("pathlib:Path", "pathlib:Path is not a subclass of livepages.worker.Runtime with the name 'shouting'"),
    ],
)
def test_a_runtime_that_is_none_is_refused(site: Site, outside: Path, value: str, words: str) -> None:
    entry_point(outside, value)
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "shouting"\n')
    with pytest.raises(ProjectError, match=words):
        find_project(site.root)
