"""Plugins and hooks that add, move and remove pages: the real ones where they are installed, and hooks of each kind."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from livepages.execution import Runner
from tests.conftest import Site
from tests.prepared import Commands

CONFIG = """\
site_name: Test
site_url: https://example.org/
markdown_extensions: [admonition, pymdownx.highlight, pymdownx.superfences, livepages]
"""


def page(start: str, end: str) -> str:
    """A page that prints a word which its text does not have."""
    return f"# Page\n\n[home](index.md)\n\n```python\nprint({start!r} + {end!r})\n```\n"


def need(distribution: str) -> None:
    """Skip the test where this is not installed."""
    try:
        version(distribution)
    except PackageNotFoundError:
        pytest.skip(f"{distribution} is not installed")


ENDLESS = "# Never\n\n```python\n1 / 0\n```\n\n```python\n"  # a block that fails, and one that has no end
MOVED = """\
def on_files(files, config):
    for file in files:
        if file.src_uri == "posts/one.md":
            file.dest_uri, file.url = "2024/one/index.html", "2024/one/"
            file.abs_dest_path = config.site_dir + "/" + file.dest_uri
"""
REMOVED = """\
from mkdocs.structure.files import Files

def on_files(files, config):
    return Files([file for file in files if not file.src_uri.startswith("old/")])
"""
MADE = """\
from mkdocs.structure.files import File

def on_files(files, config):
    files.append(File.generated(config, "ref/made.md", content=open("made.md").read()))
    home = files.get_file_from_path("index.md")
    home.content_string = home.content_string + "\\n```python\\nprint('app' + 'ended')\\n```\\n"
"""
MERGED = """\
import os, shutil

def on_config(config):
    shutil.copytree(config.docs_dir, "merged", dirs_exist_ok=True)
    shutil.copytree("packages/a/docs", "merged/a", dirs_exist_ok=True)
    config.docs_dir = os.path.abspath("merged")
"""
TRANSLATED = """\
from mkdocs.commands.build import build
from mkdocs.structure.files import Files
from mkdocs.utils import clean_directory
import mkdocs.utils

language = "en"

def on_files(files, config):
    kept = []
    for file in files:
        if not file.is_documentation_page():
            continue
        french = file.src_uri.endswith(".fr.md")
        if language == "fr" and french:
            file.dest_uri = "fr/" + file.dest_uri.replace("index.fr/index.html", "index.html")
            file.url = "fr/"
            file.abs_dest_path = config.site_dir + "/" + file.dest_uri
        if french == (language == "fr"):
            kept.append(file)
    return Files(kept)

def on_post_build(config):
    global language
    if language == "en":
        language = "fr"
        mkdocs.utils.clean_directory = lambda folder: None
        build(config)
        mkdocs.utils.clean_directory, language = clean_directory, "en"
"""
BLOG_POST = f"""\
---
date: 2024-01-31
---
{page("po", "st").replace("(index.md)", "(../../index.md)")}
<!-- more -->

```python
print('re' + 'st')
```
"""
I18N = "{docs_structure: suffix, languages: [{locale: en, default: true, name: E}, {locale: fr, name: F}]}"
GENERATE = """\
import mkdocs_gen_files

with mkdocs_gen_files.open("ref/made.md", "w") as file:
    file.write(open("made.md").read())
with mkdocs_gen_files.open("index.md", "a") as file:
    file.write("\\n```python\\nprint('app' + 'ended')\\n```\\n")
"""
DOCSTRING = 'def boil():\n    """Boil.\n\n    ```python\n    1 / 0\n    ```\n    """\n    return "boi" + "led"\n'
REFERENCE = "# Reference\n\n::: kettle\n\n```python\nimport kettle\nprint(kettle.boil())\n```\n"


class Pages(Site):
    """A site that a test writes, and what builds it."""

    commands: Commands

    def configure(self, *plugins: str, hook: str = "", more: str = "") -> None:
        if hook:
            self.write("hook.py", hook)
        hooks = "hooks: [hook.py]\n" if hook else ""
        self.write("mkdocs.yml", f"{CONFIG}plugins: [{', '.join([*plugins, 'livepages'])}]\n{hooks}{more}")

    def build(self, status: int = 0, *options: str) -> str:
        done = self.commands.run("mkdocs", "build", "--strict", *options, folder=self.root)
        assert done.returncode == status, done.stderr
        return done.stderr

    def shows(self, name: str, word: str) -> bool:
        """Return whether a page shows a word, and its script and notebook are beside it."""
        folder = self.root / "site" / name
        forms = {file.suffix for file in folder.iterdir() if file.name.startswith("live-")}
        return word in (folder / "index.html").read_text("utf-8") and forms >= {".py", ".ipynb"}


@pytest.fixture
def pages(tmp_path: Path, runner: Runner, commands: Commands) -> Pages:
    site = Pages(tmp_path, runner)
    site.commands = commands
    site.write("pyproject.toml", "[tool.livepages]\ntimeout = 30\n")
    site.write("docs/index.md", page("ho", "me"))
    return site


@pytest.mark.parametrize("real", [False, True])
def test_a_page_that_is_moved_is_shown_where_it_goes(pages: Pages, real: bool) -> None:
    """Material's blog gives posts addresses of their own."""
    if real:
        pages.configure("blog", more="theme: {name: material, font: false}\n")
        pages.write("docs/blog/index.md", "# Blog\n")
        pages.write("docs/blog/posts/one.md", BLOG_POST)
        pages.write("docs/blog/posts/two.md", f"---\ndate: 2024-01-31\ndraft: true\n---\n{ENDLESS}")
    else:
        pages.configure(hook=MOVED)
        pages.write("docs/posts/one.md", page("po", "st").replace("(index.md)", "(../index.md)"))
    pages.build()
    place = "blog/2024/01/31/page" if real else "2024/one"
    assert pages.shows(place, "post") and pages.shows("", "home")
    if real:  # the index of the blog shows the beginning of each post
        index = (pages.root / "site/blog/index.html").read_text()
        assert "post" in index and "rest" not in index
    assert f"https://example.org/{place}/index.md" in (pages.root / "site/llms.txt").read_text()


@pytest.mark.parametrize("real", [False, True])
def test_a_page_that_is_removed_does_not_run(pages: Pages, real: bool) -> None:
    """The plugin mkdocs-exclude removes pages."""
    if real:
        need("mkdocs-exclude")
        pages.configure("exclude: {glob: 'old/*'}")
    else:
        pages.configure(hook=REMOVED)
    pages.write("docs/old/old.md", ENDLESS)
    pages.build()
    assert pages.shows("", "home")


@pytest.mark.parametrize("real", [False, True])
def test_pages_that_are_made_run(pages: Pages, real: bool) -> None:
    """The plugin mkdocs-gen-files also adds to pages; a failure names the page, and the line of the text made."""
    if real:
        need("mkdocs-gen-files")
        pages.write("generate.py", GENERATE)
        pages.configure("gen-files: {scripts: [generate.py]}")
    else:
        pages.configure(hook=MADE)
    made = pages.write("made.md", page("ma", "de").replace("(index.md)", "(../index.md)"))
    pages.build()
    assert pages.shows("ref/made", "made") and pages.shows("", "home") and pages.shows("", "appended")
    made.write_text("# Made\n\n```python\n1 / 0\n```\n")
    assert "docs/ref/made.md:4: " in pages.build(1)


@pytest.mark.parametrize("real", [False, True])
def test_pages_of_several_folders_are_shown_as_one_site(pages: Pages, real: bool) -> None:
    """The monorepo plugin copies them into a folder that no pyproject.toml is above."""
    pages.write("packages/a/docs/index.md", page("pack", "age").replace("(index.md)", "(../index.md)"))
    if real:
        need("mkdocs-monorepo-plugin")
        pages.write("packages/a/mkdocs.yml", "site_name: a\nnav: [index.md]\n")
        pages.configure("monorepo", more="nav: [index.md, A: '!include packages/a/mkdocs.yml']\n")
    else:
        pages.configure(hook=MERGED)
    pages.build()
    assert pages.shows("", "home") and pages.shows("a", "package")


@pytest.mark.parametrize("real", [False, True])
def test_each_language_is_a_build_of_its_own(pages: Pages, real: bool) -> None:
    """The plugin mkdocs-static-i18n builds again, into the same folder, when a build has ended."""
    if real:
        need("mkdocs-static-i18n")
        pages.configure(f"i18n: {I18N}")
    else:
        pages.configure(hook=TRANSLATED)
    pages.write("docs/index.fr.md", page("mai", "son").replace("[home](index.md)", ""))
    pages.build()
    assert pages.shows("", "home") and pages.shows("fr", "maison")


def test_docstrings_that_are_shown_on_a_page_are_no_part_of_its_program(pages: Pages) -> None:
    need("mkdocstrings-python")
    pages.write("snippets/kettle.py", DOCSTRING)
    pages.write("docs/ref.md", REFERENCE)
    pages.configure("mkdocstrings: {handlers: {python: {paths: [snippets]}}}")
    pages.build()
    assert pages.shows("ref", "boiled") and pages.shows("ref", "Boil.")


def test_a_section_may_be_a_page(pages: Pages) -> None:
    need("mkdocs-section-index")
    pages.write("docs/more/index.md", page("sec", "tion"))
    pages.write("docs/more/two.md", page("tw", "o"))
    pages.configure(
        "section-index",
        more="theme: {name: material, font: false}\nnav: [index.md, More: [more/index.md, more/two.md]]\n",
    )
    pages.build()
    assert pages.shows("more", "section") and pages.shows("more/two", "two")


def test_a_version_is_built_under_an_address_of_its_own(pages: Pages) -> None:
    need("mike")
    pages.configure("mike")
    pages.build()
    assert pages.shows("", "home")
