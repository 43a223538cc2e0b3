"""A site that has nothing of this one: its own theme, folders and configuration, plain Python, and no JAX anywhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANG, Site

PROJECT = """\
[project]
name = "kettle"
version = "1"

[tool.livepages]
docs = "handbook"
mkdocs = "site/shared.yml"
snippets = "programs"
records = "seen"
reference = "office"
"""
SHARED = """\
site_name: Kettle
docs_dir: ../handbook
theme: {name: null, custom_dir: ../looks}
plugins: [livepages]
markdown_extensions: [toc: {permalink: true}, abbr, fenced_code, pymdownx.snippets: {base_path: [programs]}, livepages]
hooks: [docstrings.py]
use_directory_urls: false
"""
OTHER = "INHERIT: shared.yml\nsite_url: https://kettle.example/\nsite_dir: ../out\nnav: [Tea: start.md, More: [water/hot.md]]\n"
# Words on lines of their own, between statements of the template: they must not become one.
LOOKS = """\
<title>{{ page.title }}</title>
<p>{% if page %}black{% endif %}
tea</p>
{{ page.content }}
"""
# A page may hold parts that a plugin converts by itself, as mkdocstrings does with docstrings.
DOCSTRINGS = """\
import markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

class Docstrings(Preprocessor):
    def run(self, lines):
        text = "Boils water.\\n\\n```python\\nkettle.boil()\\n```\\n"
        part = lambda: self.md.htmlStash.store(markdown.markdown(text, extensions=names, extension_configs=configs))
        return [part() if line == "::: kettle.boil" else line for line in lines]

class DocstringsExtension(Extension):
    def extendMarkdown(self, md):
        md.preprocessors.register(Docstrings(md), "docstrings", 20)

def on_config(config):
    global names, configs
    names, configs = list(config.markdown_extensions), config.mdx_configs
    config.markdown_extensions.append(DocstringsExtension())
"""
FILES = {
    "pyproject.toml": PROJECT,
    "site/shared.yml": SHARED,
    "site/other.yml": OTHER,
    "site/docstrings.py": DOCSTRINGS,
    "looks/main.html": LOOKS,
    "programs/kettle.py": "# --8<-- [start:boil]\ndef boil(degrees=100):\n    return f'{degrees} °C'\n# --8<-- [end:boil]\n",
    "handbook/start.md": "# Tea\n\nSee [hot water](water/hot.md).\n\n```python\nimport kettle\n\nprint(kettle.boil())\n```\n",
    "handbook/water/hot.md": (
        "# Hot water\n\nRFC, and RFC.\n\n*[RFC]: Request for Comments\n\n::: kettle.boil\n\n"
        '```python\n--8<-- "kettle.py:boil"\nprint(boil(80))\n```\n\n'
        "```python raises=\"TypeError\"\nboil(1, 2)\n```\n\n```console\n$ python -m kettle\n```\n"
    ),
    "handbook/water/cold.md": "# Cold\n\nNo program, `x = 1`, and RFC twice: RFC.\n\n*[RFC]: Request for Comments\n\n```js\nlet a = 1;\n```\n",
    "handbook/style.css": "/* For authors. */\np { color: red }\n",
    "trap/jax/__init__.py": "raise ImportError('jax was imported')\n",
}  # fmt: skip


@pytest.fixture
def kettle(site: Site) -> Site:
    (site.root / "docs").rmdir()
    for name, text in FILES.items():
        site.write(name, text)
    (site.root / "handbook/old.css").write_bytes("p::after { content: 'caf\u00e9' }".encode("latin-1"))
    return site


def run(site: Site, *command: str) -> subprocess.CompletedProcess[str]:
    """Run ``python COMMAND`` as on a machine without JAX."""
    path = os.pathsep.join([str(site.root / "trap"), str(Path(__file__).parents[1])])
    return subprocess.run(
        [sys.executable, *command],
        cwd=site.root,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def built(site: Site, *options: str) -> dict[str, bytes]:
    """The files of the site as MkDocs builds it; what changes with the day is left out."""
    done = run(site, "-m", "mkdocs", "build", "--strict", "-f", "site/other.yml", *options)
    assert done.returncode == 0, done.stderr
    files = [file for file in (site.root / "out").rglob("*") if file.is_file() and "sitemap" not in file.name]
    return {file.relative_to(site.root / "out").as_posix(): file.read_bytes() for file in files}


def test_it_is_built_from_the_configuration_that_is_named(kettle: Site) -> None:
    site = built(kettle)
    start, hot = (site[name].decode() for name in ("start.html", "water/hot.html"))
    assert "100 °C" in start and 'href="water/hot.html"' in start
    assert 'href="live-hot.py"' in hot and "80 °C" in hot and "TypeError" in hot and "kettle.boil()" in hot
    forms = {name for name in site if name.endswith((".py", ".ipynb", ".txt", ".xml")) or name.endswith("hot.md")}
    assert {"live-start.py", "water/live-hot.ipynb", "water/hot.md", "llms.txt"} <= forms
    assert b"(https://kettle.example/water/hot.md)" in site["llms.txt"]
    assert built(kettle) == site
    for program in ("live-start.py", "water/live-hot.py"):
        done = run(kettle, f"out/{program}")
        assert done.returncode == 0 and "°C" in done.stdout, done.stderr


def test_what_has_no_block_is_as_it_is_without_the_engine(kettle: Site) -> None:
    """Styles, scripts, the theme's HTML, and a page without a program."""
    site = built(kettle)
    config = kettle.write(
        "site/shared.yml", SHARED.replace("plugins: [livepages]", "plugins: []").replace(", livepages", "")
    )
    for name in ("start.md", "water/hot.md"):
        kettle.write(f"handbook/{name}", "# T\n")
    without = built(kettle, "--clean")
    config.write_text(SHARED)
    assert {name: site[name] for name in ("style.css", "old.css", "404.html") if name in without} == {
        name: without[name] for name in ("style.css", "old.css", "404.html") if name in without
    }
    assert site["water/cold.html"] == without["water/cold.html"]
    assert b"black\ntea" in site["start.html"]


def test_its_commands_and_tests_use_its_folders(kettle: Site) -> None:
    done = run(kettle, "-m", "livepages", "record", "--host", "office")
    assert done.returncode == 0, done.stdout
    assert (kettle.root / "seen/office/water/hot.yml").is_file()
    assert run(kettle, "-m", "livepages", "check").returncode == 0
    done = run(kettle, "-m", "pytest", "-q", "-p", "no:cacheprovider", "handbook")
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout
    kettle.write("programs/kettle.py", FILES["programs/kettle.py"].replace("°C", "°F"))
    done = run(kettle, "-m", "livepages", "check")
    assert done.returncode == 1 and "handbook/start.md:5: block of line 5: has no up-to-date record" in done.stdout
    done = run(kettle, "-m", "livepages", "export", "-f", "site/other.yml", "out")
    assert done.returncode == 2 and "build the site there first" in done.stderr


def test_an_include_that_the_site_does_not_read_is_named_in_the_failure(kettle: Site) -> None:
    kettle.write("site/shared.yml", SHARED.replace("pymdownx.snippets: {base_path: [programs]}, ", ""))
    done = run(kettle, "-m", "mkdocs", "build", "--strict", "-f", "site/other.yml")
    assert done.returncode == 1
    assert 'handbook/water/hot.md:10: the site\'s Markdown does not read --8<-- "kettle.py:boil"; add' in done.stderr
    assert "add pymdownx.snippets to markdown_extensions, with base_path: [programs]" in done.stderr


def test_an_include_that_the_site_does_not_find_is_named_in_the_failure(kettle: Site) -> None:
    kettle.write("site/shared.yml", SHARED.replace("base_path: [programs]", "base_path: [elsewhere]"))
    done = run(kettle, "-m", "mkdocs", "build", "--strict", "-f", "site/other.yml")
    assert done.returncode == 1
    reported = 'handbook/water/hot.md:10: the site\'s Markdown does not find --8<-- "kettle.py:boil"; add programs to base_path'
    assert reported in done.stderr


def test_a_section_that_the_site_does_not_dedent_is_named_in_the_failure(kettle: Site) -> None:
    section = "class Kettle:\n    # --8<-- [start:on]\n    on = 1\n    # --8<-- [end:on]\n"
    kettle.write("programs/kettle.py", FILES["programs/kettle.py"] + section)
    kettle.write("handbook/water/hot.md", '# Hot\n\n```python\nx = 1\n```\n\n```python\n--8<-- "kettle.py:on"\n```\n')
    done = run(kettle, "-m", "mkdocs", "build", "--strict", "-f", "site/other.yml")
    assert done.returncode == 1
    assert "handbook/water/hot.md:8: the site's Markdown does not take the indentation off --8<-- " in done.stderr
    assert "; add dedent_subsections: true to pymdownx.snippets" in done.stderr
