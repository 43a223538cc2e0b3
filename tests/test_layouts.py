"""Sites laid out in other ways than this one: which files are pages, where they are in the site, what MkDocs was given."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mkdocs.config import load_config
from mkdocs.structure.files import get_files

from course.guide import CourseGuide
from livepages.course import Course, read_course
from livepages.integrations.cli import main
from livepages.source import Inventory, NoProjectError, ProjectError, find_project
from tests.conftest import Site
from tests.prepared import Commands

BASE = """\
site_name: Base
site_url: !ENV [NO_SUCH_VARIABLE, "https://example.org/base/"]
theme: {name: mkdocs, locale: en, icon: !!python/name:os.path.join ""}
use_directory_urls: false
plugins: [livepages]
markdown_extensions: [pymdownx.superfences, livepages]
exclude_docs: |
  old/
  *.tmp.md
  !.well-known.md
draft_docs: draft-*.md
extra: {repository: owner/base, other: 1}
"""
OTHER = """\
INHERIT: ../base.yml
site_name: Other
docs_dir: ../docs
site_dir: ../site
extra: {repository: owner/other}
nav:
  - Home: README.md
  - Deep:
      - deep/one.markdown
      - Deeper:
          - deep/er/two.md
          - Elsewhere: https://example.org/
      - linked/three.md
  - random.md
"""
FILES = (
    "README.md",
    "random.md",
    "a & b.mkd",
    "deep/README.md",
    "deep/index.md",
    "deep/one.markdown",
    "deep/er/two.md",
    "deep/er/README.mdown",
    "old/gone.md",
    "x.tmp.md",
    "draft-y.md",
    "deep/draft-z.md",
    "notes.txt",
    ".well-known.md",
    ".#random.md",
    ".obsidian/note.md",
    "deep/.ipynb_checkpoints/one-checkpoint.md",
    "templates/t.md",
    "deep/templates/u.md",
)


def page(name: str) -> str:
    return f"# {Path(name).stem}\n\nHello.\n\n```python\nprint('the page', {name!r})\n```\n"


@pytest.fixture
def layout(site: Site) -> Site:
    """A site with every kind of file, among them a linked page and a linked folder, and two configurations."""
    site.write("base.yml", BASE)
    site.write("config/other.yml", OTHER)
    for name in FILES:
        site.write(f"docs/{name}", page(name))
    site.write("common/three.md", page("linked/three.md") + "\n[first](../deep/one.markdown)\n")
    (site.root / "docs/linked").symlink_to("../common")
    (site.root / "docs/again.md").symlink_to("random.md")
    return site


def course(site: Site, name: str) -> Course:
    site.write("pyproject.toml", f'[tool.livepages]\nmkdocs = "{name}"\n')
    return read_course(site.project)


@contextlib.contextmanager
def mkdocs_config(site: Site, name: str) -> Iterator[object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(site.root)
        yield load_config(str(site.root / name), plugins=[])


@pytest.mark.parametrize("name", ["base.yml", "config/other.yml"])
def test_pages_are_the_files_that_mkdocs_takes_and_stand_where_it_puts_them(layout: Site, name: str) -> None:
    found = course(layout, name)
    with mkdocs_config(layout, name) as config:
        wanted = {
            file.src_uri: (file.dest_uri, file.url.removeprefix("./"))
            for file in get_files(config).documentation_pages()  # type: ignore[arg-type]
        }
    places = {path.relative_to(found.docs).as_posix(): found.place(path) for path in found.pages}
    assert {name: (place.html, place.url.replace(" ", "%20")) for name, place in places.items()} == {
        name: (html, url.replace("%26", "&")) for name, (html, url) in wanted.items()
    }
    assert {"linked/three.md", "again.md", "deep/index.md", ".well-known.md", "a & b.mkd"} <= places.keys()
    assert not {"draft-y.md", "deep/README.md", "old/gone.md"} & places.keys()


def test_a_configuration_that_inherits_says_what_mkdocs_reads_in_it(layout: Site) -> None:
    found = course(layout, "config/other.yml")
    with mkdocs_config(layout, "config/other.yml") as config:
        assert found.name == config["site_name"] == "Other"  # type: ignore[index]
        assert found.url == config["site_url"] == "https://example.org/base/"  # type: ignore[index]
        assert found.repository == config["extra"]["repository"] == "owner/other"  # type: ignore[index]
        assert found.directory_urls is config["use_directory_urls"] is False  # type: ignore[index]
    assert [(part.title, [path.name for path in part.pages]) for part in found.parts] == [
        ("", ["README.md"]),
        ("Deep", ["one.markdown", "two.md", "example.org", "three.md"]),
        ("", ["random.md"]),
    ]


def test_a_site_is_built_from_the_configuration_that_mkdocs_is_given(
    layout: Site, commands: Commands, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forms are beside the pages, every link to them leads to a file, and `livepages export` writes the same."""
    layout.write("docs/draft-y.md", "# Draft\n\n```python\n1 / 0\n```\n")
    layout.write("docs/old/a.css", "a { color: red }")
    done = commands.run("mkdocs", "build", "-f", "config/other.yml", folder=layout.root)
    assert done.returncode == 0, done.stderr
    built = layout.root / "site"
    forms = {file.relative_to(built).as_posix() for file in built.rglob("*") if file.suffix in (".md", ".py", ".ipynb")}
    stems = ["", "deep/", "linked/", "deep/er/", ""]
    names = ["index", "one", "three", "two", "random"]
    assert forms == {f"{s}{n}.md" for s, n in zip(stems, names, strict=True)} | {
        f"{s}live-{n}.{ending}" for s, n in zip(stems, names, strict=True) for ending in ("py", "ipynb")
    } | {"live-kernel.py"}
    html = (built / "deep/one.html").read_text()
    for form in ("live-one.py", "live-one.ipynb", "one.md"):
        assert f'href="{form}"' in html
    assert "the page deep/one.markdown" in html and "live-masthead" not in (built / "random.html").read_text()
    assert "](../deep/one.md)" in (built / "linked/three.md").read_text()
    assert "(https://example.org/base/deep/er/two.md)" in (built / "llms.txt").read_text()
    assert "text/markdown" in html
    assert "text/markdown" not in (built / "deep/index.html").read_text()  # which is in no navigation
    assert not (built / "old").exists() and not (built / "draft-y.html").exists()

    before = {name: (built / name).read_bytes() for name in [*forms, "llms.txt", "llms-full.txt"]}
    for name in before:
        (built / name).unlink()
    monkeypatch.chdir(layout.root)
    with pytest.raises(SystemExit) as ended:
        main(["export", "-f", "config/other.yml", "site"])
    assert ended.value.code == 0, capsys.readouterr().out
    assert {name: (built / name).read_bytes() for name in before} == before


def test_without_a_navigation_every_page_is_in_the_course(site: Site) -> None:
    site.write("docs/b.md", page("b"))
    site.write("docs/a/index.md", page("a"))
    for text in ("site_name: S\n", ""):
        site.write("mkdocs.yml", text)
        assert [path.name for part in read_course(site.project).parts for path in part.pages] == ["index.md", "b.md"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nav: [", "mkdocs.yml"),
        ("- a\n", "is not a mapping"),
        ("nav: 5\n", "nav: 5 is not a list"),
        ("nav: [{A: 5}]\n", "nav: 5 is neither a page nor a section"),
        ("site_name: [a]\n", "site_name: ['a'] is not text"),
        ("extra: [a]\n", "extra: ['a'] is not a mapping"),
        ("extra: {repository: 5}\n", "repository: 5 is not text"),
        ("exclude_docs: [a]\n", "exclude_docs: ['a'] is not text"),
        ("INHERIT: mkdocs.yml\n", "INHERIT leads back to this file"),
        ("INHERIT: nowhere.yml\n", "nowhere.yml"),
        ("a: 2026-13-01\n", "month must be in 1..12"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_an_error_that_names_it(site: Site, text: str, words: str) -> None:
    site.write("mkdocs.yml", text)
    with pytest.raises(ProjectError) as error:
        read_course(site.project)
    assert words in str(error.value) and ".yml" in str(error.value)


def test_a_page_is_the_same_page_however_its_file_is_reached(
    layout: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(layout.root)
    project = find_project(link / "docs/linked/three.md")
    assert project == layout.project
    assert project.own(link / "docs/linked/three.md") == layout.root / "docs/linked/three.md"
    assert project.own(link / "docs/again.md") == layout.root / "docs/again.md"
    (layout.root / "docs").rename(link.parent / "moved")
    (layout.root / "docs").symlink_to(link.parent / "moved")
    assert find_project(layout.root / "docs/again.md") == project
    with pytest.raises(NoProjectError):
        find_project(link.parent / "moved/again.md")


def test_the_command_line_runs_a_linked_page(
    layout: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(layout.root)
    for name, status in (("docs/linked/three.md", 0), ("docs/absent.md", 2), ("common/three.md", 2)):
        with pytest.raises(SystemExit) as ended:
            main(["run", "-v", name])
        output = capsys.readouterr()
        assert ended.value.code == status, output
        assert ("the page linked/three.md" if status == 0 else "no such page in") in output.out + output.err


def test_a_page_that_leads_nowhere_is_reported(layout: Site) -> None:
    (layout.root / "docs/gone.md").symlink_to("nowhere.md")
    _, failed = layout.engine.read(course(layout, "base.yml").pages)
    assert [str(failure) for failure in failed] == [
        "docs/gone.md:1: the page cannot be read: No such file or directory"
    ]


def test_pages_that_the_site_leaves_out_are_tested_only_when_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.livepages]\n")
    (pytester.path / "mkdocs.yml").write_text("exclude_docs: old/\ndraft_docs: draft.md\n")
    for name in ("in/page.md", "in/other.markdown", "in/old/page.md", "draft.md"):
        file = pytester.path / "docs" / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text("```python\nassert True\n```\n")
    os.symlink(pytester.path / "docs/in/page.md", pytester.path / "docs/in/link.md")

    collect = ("-p", "no:cacheprovider", "--collect-only", "-q", "docs/in")
    result = pytester.runpytest_inprocess(*collect, "docs/draft.md")
    found = {line.partition("::")[0] for line in result.outlines if "::" in line}
    assert found == {f"docs/{name}" for name in ("in/link.md", "in/page.md", "in/other.markdown", "draft.md")}
    (pytester.path / "pyproject.toml").write_text("[tool.livepages]\nsnipets = 's'\n")
    result = pytester.runpytest_inprocess(*collect)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*pyproject.toml: * has no setting 'snipets'; did you mean 'snippets'*"])


def test_navigation_and_indexes_have_all_pages(layout: Site) -> None:
    found = course(layout, "config/other.yml")
    text = "---\nbefore: [deep/one.md, deep/one.markdown]\n---\n# R\n"
    read = layout.read(layout.write("docs/random.md", text))
    guide = CourseGuide(found, {read.path: read}, Inventory())
    assert [str(failure) for failure in guide.problems()] == [
        "docs/random.md:2: before: deep/one.md is not a page of docs; did you mean 'deep/index.md'?"
    ]
