"""The cache of builds: a value is made again only if something that it was made from has changed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from livepages.course import Course
from livepages.execution import Runner
from livepages.integrations import build_cache
from livepages.integrations.build_cache import BuildCache, digest
from livepages.integrations.questions import linked_data, take_questions
from tests.conftest import Site
from tests.prepared import Commands, finding
from tests.test_mkdocs import Book, build, mkdocs

CONFIG = """\
site_name: Test
theme: {name: material, font: false}
plugins: [search, livepages]
hooks: [counting.py]
markdown_extensions: [pymdownx.highlight, pymdownx.superfences, livepages]
"""
COUNTING = """\
from mkdocs.structure.pages import Page

render = Page.render

def counted(page, config, files):
    with open("converted.txt", "a") as file:
        print(page.markdown.partition("\\n")[0].removeprefix("# "), file=file)
    render(page, config, files)

Page.render = counted
"""
READING = """\
from pathlib import Path

from markdown import Extension
from markdown.preprocessors import Preprocessor

class Reading(Preprocessor):
    def run(self, lines):
        return [*lines, "", Path("module.py").read_text()]

class ReadingExtension(Extension):
    def extendMarkdown(self, md):
        md.preprocessors.register(Reading(md), "reading", 20)

def makeExtension(**options):
    return ReadingExtension(**options)
"""


@pytest.fixture
def book(tmp_path: Path, runner: Runner, commands: Commands) -> Book:
    """Two pages, and a hook that writes down which page is converted; all of it was built once."""
    site = Book(tmp_path, runner)
    site.commands = commands
    site.write("pyproject.toml", "[tool.livepages]\n")
    site.write("mkdocs.yml", CONFIG)
    site.write("counting.py", COUNTING)
    site.write("docs/index.md", "# One\n\n[Two](two.md#asked)\n\n```python\nprint('one', 1 + 1)\n```\n")
    site.write(
        "docs/two.md", "# Two\n\n<!-- asked\nfor what\n-->\n\n## Asked?\n\n<!-- asked\nother words\n-->\n\nYes.\n"
    )
    converted(site)
    return site


def converted(site: Book, *arguments: str) -> list[str]:
    """The titles of the pages that a build converts, each once: two of its processes may come upon the same."""
    (site.root / "converted.txt").unlink(missing_ok=True)
    build(site, *arguments, environment=finding(site.root))
    file = site.root / "converted.txt"
    return sorted({*file.read_text().split()}) if file.exists() else []


def files(site: Book) -> dict[str, bytes]:
    folder = site.root / "site"
    dated = {"sitemap.xml", "sitemap.xml.gz"}
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name not in dated
    }


def test_nothing_changed_converts_nothing_and_gives_the_same_site(book: Book) -> None:
    first = files(book)
    assert converted(book) == []
    assert files(book) == first


@pytest.mark.parametrize(
    ("change", "pages"),
    [
        (lambda site: site.write("docs/two.md", "# Two\n\n## Asked?\n\nNo.\n"), ["Two"]),
        (lambda site: site.write("mkdocs.yml", CONFIG.replace("Test", "Other")), ["One", "Two"]),
        (lambda site: site.write("docs/three.md", "# Three\n"), ["One", "Three", "Two"]),
        (lambda site: [file.write_text("[") for file in (site.root / ".cache").rglob("made/*/*")], ["One", "Two"]),
    ],
    ids=["its text", "the configuration", "which files there are", "a damaged cache"],
)
def test_what_changed_is_converted(book: Book, change: Callable[[Book], object], pages: list[str]) -> None:
    change(book)
    assert converted(book) == pages


def test_pages_are_converted_again_whose_extensions_may_read_files(book: Book) -> None:
    """An example is mkdocstrings, which reads modules and passes what it finds to other plugins while a page is converted."""
    book.write("mkdocs.yml", CONFIG.replace("superfences, livepages", "superfences, livepages, reading"))
    book.write("reading.py", READING)
    for text in ("before", "after"):
        book.write("module.py", text)
        assert converted(book) == ["One", "Two"]
        assert f"<p>{text}</p>" in (book.root / "site/two/index.html").read_text()


def test_a_warning_is_given_again(book: Book) -> None:
    book.write("docs/two.md", "# Two\n\n## Asked?\n\n[Nowhere](three.md)\n")
    for _ in range(2):
        done = mkdocs(book, "build", "--strict", environment=finding(book.root))
        assert done.returncode == 1 and "'three.md'" in done.stderr


def test_a_warning_that_a_quiet_build_dropped_is_given(book: Book) -> None:
    book.write("docs/two.md", "# Two\n\n## Asked?\n\n[Nowhere](three.md)\n")
    assert mkdocs(book, "build", "--quiet", environment=finding(book.root)).returncode == 0
    done = mkdocs(book, "build", "--strict", environment=finding(book.root))
    assert done.returncode == 1 and "'three.md'" in done.stderr


def test_links_are_checked_without_a_conversion(book: Book) -> None:
    book.write("docs/two.md", "# Two\n\n## Asked? of others\n")
    book.write("mkdocs.yml", CONFIG + "validation: {anchors: warn}\n")
    for _ in range(2):
        done = mkdocs(book, "build", "--strict", environment=finding(book.root))
        assert done.returncode == 1 and "does not contain an anchor '#asked'" in done.stderr


def test_wordings_are_in_the_index_and_not_in_the_page(book: Book) -> None:
    for again in (False, True):
        if again:
            assert converted(book) == []
        index = json.loads((book.root / "site/search/search_index.json").read_text())
        wordings = {entry["location"]: entry["wordings"] for entry in index["docs"] if "wordings" in entry}
        assert wordings == {"two/": ["for what"], "two/#asked": ["other words"]}
        assert "other words" not in (book.root / "site/two/index.html").read_text()
        assert "other words" not in (book.root / "site/two/index.md").read_text()
    book.write("docs/two.md", "# Two\n\n## Asked?\n\n<!-- asked\nmore words\n-->\n\nYes.\n")
    converted(book)
    assert "more words" in (book.root / "site/search/search_index.json").read_text()


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "made").write_text("a file in the place of the folder")
    kept = BuildCache(tmp_path / "made")
    assert kept.get_or_make("pages", "index.md", 1, lambda: "once") == "once"
    assert kept.get_or_make("pages", "index.md", 1, lambda: "twice") == "once"
    assert BuildCache(tmp_path / "made").get_or_make("pages", "index.md", 1, lambda: "again") == "again"


@pytest.mark.parametrize(
    ("one", "other"),
    [("ab", ["a", "b"]), (1, True), (["ab", "c"], ["a", "bc"]), ({"a": 1}, {"a": "1"}), ([[1], 2], [[1, 2]])],
)
def test_different_values_have_different_digests(one: object, other: object) -> None:
    assert digest(one) != digest(other)
    assert digest({"a": 1, "b": {"x", "y"}}) == digest({"b": {"y", "x"}, "a": 1})


def test_another_folder_for_the_site_leaves_what_pages_are_made_from_as_it_is(tmp_path: Path) -> None:
    one, other = (Course(tmp_path, site=folder) for folder in ("/tmp/mkdocs_1", "/tmp/mkdocs_2"))
    assert one.text == other.text != Course(tmp_path, name="Other").text


def test_a_page_and_its_run_are_loaded_and_taken_apart_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    page, engine = site.page("print('a')"), site.engine
    engine.run([page])
    first = engine.kept([page])
    known = digest([page, first])
    monkeypatch.setattr(build_cache, "fields", None)
    again = engine.kept([site.read(page.path)])
    assert digest([site.read(page.path), again]) == known
    monkeypatch.undo()
    site.page("print('a')", head="Edited.\n\n")
    edited = site.read(page.path)
    assert digest([edited, engine.kept([edited])]) != known


def test_questions_are_read_from_html() -> None:
    content, [question] = take_questions(
        '<h2 id="q">Is <code>a</code> &lt; b?<a aria-label="Link" class="headerlink" href="#q">&para;</a></h2>\n'
        "<!-- asked\na &amp; b\n-->\n\n<p>Yes, <a href='x'>of</a> <code>b</code>.</p>\n<p>More.</p>"
    )
    assert "asked" not in content
    assert (question.id, question.text, question.wordings) == ("q", "Is a < b?", ("a & b",))
    data = linked_data([question], "http://127.0.0.1/two/")
    [entity] = json.loads(data)["mainEntity"]
    assert entity["name"] == "Is a < b?"
    assert entity["acceptedAnswer"] == {
        "@type": "Answer",
        "text": "Yes, of <code>b</code>.",
        "url": "http://127.0.0.1/two/#q",
    }
    assert "<" not in data
    _, named = take_questions('<h2 id="shape">Shape</h2>\n<!-- asked\nsize\n-->\n<p>One of rows.</p>')
    assert named and not linked_data(named, "")  # a heading that asks nothing
