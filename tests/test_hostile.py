"""Pages and sites that do what no page should, and what must come of each: the files in ``hostile`` say so themselves.

All pages run together, as those of one site: none may harm another, or the build.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from livepages.course import read_course
from livepages.execution import Engine, Failure, Run, Runner
from livepages.source import Page, ProjectError, find_project
from tests.conftest import Site

pytestmark = pytest.mark.slow

HERE = Path(__file__).with_name("hostile")
PAGES = sorted(file.stem for file in (HERE / "pages").glob("*.md"))
SITES = sorted(folder.name for folder in (HERE / "sites").iterdir())
EXPECT = re.compile(r'(failure|refused|output|skipped|error)(?: at line (\d+),)? "(.*?)"(?: -->|\r?$)', re.MULTILINE)

Ran = tuple[dict[str, tuple[Page, Run]], list[Failure]]


def expected(text: str) -> list[tuple[str, int, str]]:
    """Return the failures that a page or a site must have: the kind, the line, and words."""
    return [(kind, int(line or 0), words) for kind, line, words in EXPECT.findall(text)]


def check(wanted: list[tuple[str, int, str]], page: Page | None, run: Run, unread: list[Failure]) -> None:
    """Compare what came of a page with what must: every failure, one of the outputs, one of the reasons for a skip."""
    failed = run.failures if page else unread
    assert len(failed) == sum(kind in ("failure", "refused") for kind, _, _ in wanted), failed
    for kind, line, words in wanted:
        if kind == "refused":
            assert page is None
        if kind in ("failure", "refused"):
            assert [line] == [one.line for one in failed] and words in failed[0].message, failed
        output = [one.stdout for one in run.outcomes] if kind == "output" else [one.skipped for one in run.outcomes]
        assert kind not in ("output", "skipped") or any(words in text for text in output), output
    for one in failed:
        assert one.message.strip() and "Traceback (most recent call last)" not in one.message
        assert "livepages/worker" not in str(one), "the engine's own frames"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All pages in one build, in which as many run at a time as there are processors, and one that does no harm."""
    root = tmp_path_factory.mktemp("hostile")
    shutil.copytree(HERE / "pages", root / "docs")
    (root / "pyproject.toml").write_text('[tool.livepages]\nruntime = "jax"\n')
    (root / "docs" / "bystander.md").write_text("# T\n\n```python\nprint('untouched')\n```\n")
    project = find_project(root)
    engine = Engine(project, Runner())
    try:
        pages, unread = engine.read(read_course(project).pages)
        runs = engine.run(pages)
    finally:
        engine.close()
    return {page.path.stem: (page, runs[page.path]) for page in pages}, unread


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_does_is_its_own_affair(ran: Ran, name: str) -> None:
    pages, unread = ran
    text = (HERE / "pages" / f"{name}.md").read_bytes().decode(errors="replace")
    page, run = pages.get(name, (None, Run(())))
    check(expected(text), page, run, [one for one in unread if Path(one.page).stem == name])


def test_what_pages_do_harms_no_other(ran: Ran) -> None:
    assert ran[0]["bystander"][1].outcomes[0].stdout == "untouched\n"
    assert len(PAGES) + len(SITES) >= 60 and all(
        expected((HERE / "pages" / f"{name}.md").read_bytes().decode(errors="replace")) or name == "nothing"
        for name in PAGES
    )


@pytest.mark.parametrize("name", SITES)
def test_what_is_wrong_with_a_site_is_reported(sites: Callable[[str], Site], name: str) -> None:
    site = sites(name)
    shutil.copytree(HERE / "sites" / name, site.root, dirs_exist_ok=True)
    shutil.move(site.root / "project.toml", site.root / "pyproject.toml")
    ((kind, line, words),) = expected((site.root / "expect").read_text())
    if kind == "error":
        with pytest.raises(ProjectError) as error:
            read_course(find_project(site.root))
        assert words in str(error.value) and str(site.root) in str(error.value)
        return
    pages, unread = site.engine.read(read_course(site.project).pages)
    runs = site.engine.run(pages)
    for page in pages:
        check([(kind, line, words)], page, runs[page.path], [])
    if not pages:
        check([("refused", line, words)], None, Run(()), unread)
