"""MkDocs, ProperDocs, MaterialX and Zensical build the same site by one command each; what differs is listed here."""

import html
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from course.slim import COMMENT, bare
from livepages.execution import Runner
from tests.conftest import Site
from tests.prepared import Commands, finding

pytestmark = pytest.mark.slow

OTHERS = ["properdocs", "materialx", "zensical"]
MATERIALX = Path(sys.prefix, "materialx")  # where `make` installs it
# Of the theme, which is Zensical's own, and what MkDocs's plugins write: search, tags and a second site map.
DIFFERENT = {
    "properdocs": (set(), set()),
    "materialx": (set(), set()),
    "zensical": (
        {"search/search_index.json", "sitemap.xml.gz", "tags.json"},
        {"search.json"},
    ),
}
UNSEARCHED = {"properdocs": set(), "materialx": set(), "zensical": {"x2"}}  # Zensical's search reads no formulas
CONFIG = """\
site_name: Test
site_url: https://example.org/t/
site_description: A site.
theme: {name: material, custom_dir: course/theme, font: false}
hooks: [course/slim.py]
plugins: [search: {separator: '[ .]+'}, livepages, tags]
markdown_extensions: [attr_list, md_in_html, pymdownx.highlight, pymdownx.superfences, livepages, livepages.mathml,
  pymdownx.arithmatex: {generic: true}]
nav:
  - Home: index.md
  - Part: [part/one.md, two.md]
"""
PAGES = {
    "index.md": "---\ntags: [topic]\n---\n# Home\n\nTo [one](part/one.md).\n\n```python\nimport place\nprint('at', place.NAME)\n```\n",
    "part/one.md": (
        "# One\n\n## How do I add? { #add }\n\n<!-- asked\nsum of two <numbers>\nplus\n-->\n\n"
        "Use `+`, as [two](../two.md#error) does not.\n\n```python\nx = 1 + 1\nx\nprint(x, 'and', x)\n```\n\n$x^2$\n"
    ),
    "two.md": (
        "---\nbefore: [part/one.md]\n---\n# Two\n\n## An error { #error }\n\n"
        "```python raises=\"ValueError\"\nint('no')\n```\n\n```python source=\"none\"\nprint('hidden', 'source')\n```\n"
    ),
    "javascripts/a.js": "// For authors.\nconst a = 1;\n",
    "stylesheets/a.css": "/* For authors. */\na { b: c; }\n",
}


WRONG = {"index.md": "print(undefined)", "part/one.md": "1 / 0"}
PLACE = "NAME = 'home'\n"


@dataclass(frozen=True)
class Built:
    """A site that a program built: its files, by their names."""

    files: dict[str, Path]

    def text(self, name: str) -> str:
        return self.files[name].read_text(encoding="utf-8")

    def outputs(self, name: str) -> list[str]:
        """The blocks and results of a page, in order, as readers see them."""
        found = re.findall(r"<pre\b[^>]*>(.*?)</pre>", self.text(name), re.DOTALL)
        return [html.unescape(re.sub(r"<[^>]*>", "", code)).strip() for code in found]

    def entries(self) -> dict[str, tuple[str, set[str]]]:
        """The title and the words of each entry of the search, by its address."""
        index = json.loads(self.text("search.json" if "search.json" in self.files else "search/search_index.json"))
        return {
            entry["location"]: (
                entry["title"],
                set(re.findall(r"\w+", html.unescape(re.sub(r"<[^>]*>", " ", entry["text"]))))
                | {word for wording in entry.get("wordings", ()) for word in re.findall(r"\w+", wording)},
            )
            for entry in index.get("items") or index["docs"]
        }


class Book:
    """One site, and what each program makes of it."""

    def __init__(self, site: Site, commands: Commands) -> None:
        self.site, self._commands = site, commands
        self._built: dict[str, Built] = {}
        self._failures: dict[str, list[str]] = {}
        site.write("pyproject.toml", '[tool.livepages]\ntimeout = 30\nguide = "course.guide:CourseGuide"\n')
        site.write("mkdocs.yml", CONFIG)
        for name, text in PAGES.items():
            site.write(f"docs/{name}", text)
        site.write("snippets/place.py", PLACE)
        shutil.copytree(Path(__file__).parents[1] / "course", site.root / "course")

    def build(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run the command that builds the site."""
        if not (MATERIALX.exists() if program == "materialx" else find_spec(program)):
            pytest.skip(f"{program} is not installed")
        command = ["mkdocs", "build", "--strict"] if program == "mkdocs" else ["livepages", "build", program]
        environment = finding(MATERIALX) if program == "materialx" else {}
        return self._commands.run(*command, folder=self.site.root, environment=environment)

    def built(self, program: str) -> Built:
        """The site, built once."""
        if program not in self._built:
            done = self.build(program)
            assert done.returncode == 0, done.stdout + done.stderr
            folder = (self.site.root / "site").rename(self.site.root / program)
            files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
            self._built[program] = Built(files)
        return self._built[program]

    def failures(self, program: str) -> list[str]:
        """Return the failures that the command reports for the same site with failing blocks, each with its indented lines."""
        if program not in self._failures:
            for name, code in WRONG.items():
                self.site.write(f"docs/{name}", PAGES[name].replace("```python\n", f"```python\n{code}\n"))
            try:
                done = self.build(program)
            finally:
                for name in WRONG:
                    self.site.write(f"docs/{name}", PAGES[name])
            assert done.returncode == 1, done.stdout + done.stderr
            self._failures[program] = re.findall(r"docs/\S+\.md:\d+: .*(?:\n    .*)*", done.stdout + done.stderr)
        return self._failures[program]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory, runner: Runner, commands: Commands) -> Book:
    return Book(Site(tmp_path_factory.mktemp("book"), runner), commands)


def ours(built: Built) -> set[str]:
    """The files that are not of the theme."""
    return {name for name in built.files if not name.startswith("assets/")}


@pytest.mark.parametrize("program", OTHERS)
def test_it_writes_the_same_files(book: Book, program: str) -> None:
    expected, found = book.built("mkdocs"), book.built(program)
    assert (ours(expected) - ours(found), ours(found) - ours(expected)) == DIFFERENT[program]
    same_theme = [name for name in expected.files if name.startswith("assets/") and name not in found.files] == []
    assert same_theme == (program == "properdocs")


def test_materialx_leaves_no_configuration_behind(book: Book) -> None:
    book.built("materialx")
    assert [path.name for path in book.site.root.glob("*.yml")] == ["mkdocs.yml"]  # those that begin with a dot, too


def test_a_theme_that_is_not_installed_is_reported(book: Book, commands: Commands) -> None:
    if entry_points(group="mkdocs.themes", name="materialx"):
        pytest.skip("it is installed")
    done = commands.run("livepages", "build", "materialx", folder=book.site.root)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "materialx is not installed; `pip install mkdocs-materialx` in an environment without" in done.stderr


@pytest.mark.parametrize("program", OTHERS)
def test_downloads_feed_and_contents_are_the_same(book: Book, program: str) -> None:
    expected, found = book.built("mkdocs"), book.built(program)
    names = {name for name in ours(expected) if name.endswith((".py", ".ipynb", ".md", ".txt", "feed.xml", ".css"))}
    names |= {"javascripts/a.js"}
    assert {"feed.xml", "llms.txt", "part/one/live-one.ipynb", "stylesheets/a.css", "two/index.md"} <= names

    def text(built: Built, name: str) -> str:
        suffix = Path(name).suffix
        return bare(built.text(name), suffix) if suffix in COMMENT else built.text(name)  # Zensical calls no hooks

    assert [name for name in sorted(names) if text(expected, name) != text(found, name)] == []


@pytest.mark.parametrize("program", OTHERS)
def test_pages_show_the_same_outputs(book: Book, program: str) -> None:
    expected, found = book.built("mkdocs"), book.built(program)
    for name in ("index.html", "part/one/index.html", "two/index.html"):
        assert found.outputs(name) == expected.outputs(name)
        assert ("live-masthead" in found.text(name)) == ("live-masthead" in expected.text(name))
        assert "live-stamp" in found.text(name)
    assert "hidden source" in found.outputs("two/index.html")
    assert "<math" in found.text("part/one/index.html")


@pytest.mark.parametrize("program", OTHERS)
def test_questions_are_found_by_their_wordings(book: Book, program: str) -> None:
    expected, found = book.built("mkdocs"), book.built(program)
    there, here = expected.entries(), found.entries()
    assert {place: title for place, (title, _) in here.items()} == {place: title for place, (title, _) in there.items()}
    assert {word for place in there for word in there[place][1] ^ here[place][1]} == UNSEARCHED[program]
    assert here["part/one/#add"][1] >= {"sum", "plus"}
    data = [
        re.findall(r'"application/ld\+json">(.*?)</script>', one.text("part/one/index.html"))
        for one in (expected, found)
    ]
    assert data[0] == data[1] and len(data[0]) == 1
    assert "<!-- asked" not in found.text("part/one/index.html")


def test_zensical_shows_the_output_of_a_changed_module(book: Book) -> None:
    """Zensical keeps what it made of a page under the page's text alone."""
    assert "at home" in book.built("zensical").outputs("index.html")
    book.site.write("snippets/place.py", PLACE.replace("home", "sea"))
    try:
        done = book.build("zensical")
        shown = (book.site.root / "site/index.html").read_text(encoding="utf-8")
        again = book.build("zensical")
    finally:
        book.site.write("snippets/place.py", PLACE)
        shutil.rmtree(book.site.root / "site", ignore_errors=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "at sea" in shown and "at home" not in shown
    assert "0 run now, 4 unchanged" in again.stdout


def test_properdocs_warns_again_of_a_page_that_is_as_it_was(book: Book) -> None:
    book.site.write("docs/index.md", "# Home\n\n[gone](nowhere.md)\n")
    try:
        done = [book.build("properdocs") for _ in range(2)]
    finally:
        book.site.write("docs/index.md", PAGES["index.md"])
        shutil.rmtree(book.site.root / "site", ignore_errors=True)
    assert [one.returncode for one in done] == [1, 1]
    assert all("'nowhere.md'" in one.stderr for one in done)


@pytest.mark.parametrize("program", ["mkdocs", *OTHERS])
def test_faults_of_a_converted_page_are_reported_with_their_line(book: Book, program: str) -> None:
    """Zensical converts pages in a process of its own, in which an exception would end with a traceback."""
    book.site.write(
        "docs/two.md", "# Two, $x_$ { #error }\n\n[^1]:\n\n    ```python\n    x = 1\n    ```\n\n$$\n\\nosuch\n$$\n"
    )
    try:
        done = book.build(program)
    finally:
        book.site.write("docs/two.md", PAGES["two.md"])
        shutil.rmtree(book.site.root / "site", ignore_errors=True)
    output = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in output
    assert re.findall(r"docs/\S+\.md:\d+: .*", output) == [
        "docs/two.md:1: the formula 'x_' cannot be set: MissingSuperScriptOrSubscriptError",
        r"docs/two.md:10: the formula '\\nosuch' has a command that is not known: \nosuch",
        "docs/two.md:5: block of line 5: the Markdown around it makes this block text, not code",
    ]


@pytest.mark.parametrize("program", OTHERS)
def test_the_same_failures_end_the_build_before_anything_is_written(book: Book, program: str) -> None:
    expected, found = book.failures("mkdocs"), book.failures(program)
    assert found == expected and len(found) == 2
    assert "docs/index.md:9: block of line 8: raised NameError" in found[0]
    assert not (book.site.root / "site").exists()
