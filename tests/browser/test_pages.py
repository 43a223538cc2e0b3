"""What holds for every page of the built site, in a real browser."""

import re
import runpy
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from livepages.source import find_project
from tests.browser import reader
from tests.browser.conftest import Built
from tests.browser.reader import VIEWS, View, Visit

DOCS = find_project(Path(__file__)).docs
PAGES = sorted(
    [file.relative_to(DOCS).as_posix().removesuffix("index.md").replace(".md", "/") for file in DOCS.rglob("*.md")]
    + ["404.html"]
)
# Pages that together hold an element of every kind, by its tag and classes: what can be wrong with one is wrong here.
CHOSEN = ("", "basics/vmap/", "scale/eight-devices/")


def test_the_site_is_built_strictly(built: Built) -> None:
    if built.failing:
        pytest.skip(f"not tried, as these fail: {', '.join(built.failing)}")
    assert not built.problem, built.problem


def test_these_are_all_pages(folder: Path) -> None:
    assert reader.urls(folder) == PAGES


def source(folder: Path, url: str) -> str:
    """The HTML of a page."""
    file = folder / url
    return (file / "index.html" if file.is_dir() else file).read_text(encoding="utf-8")


def kinds(folder: Path, url: str) -> set[str]:
    """The kinds of elements of a page: each with its tag and classes."""
    elements = re.findall(r"<([a-z][a-z0-9-]*)((?:\s[^<>]*)?)>", source(folder, url))
    classes = ((tag, re.search(r'\sclass="([^"]*)"', attributes)) for tag, attributes in elements)
    return {".".join([tag, *sorted(found[1].split() if found else [])]) for tag, found in classes}


def test_the_chosen_pages_hold_an_element_of_every_kind(folder: Path) -> None:
    missing = {url: kinds(folder, url) for url in PAGES}
    chosen = set().union(*(missing[url] for url in CHOSEN))
    wanted = []
    while any(missing[url] - chosen for url in PAGES):
        wanted.append(best := max(PAGES, key=lambda url: len(missing[url] - chosen)))
        chosen |= missing[best]
    assert not wanted, f"choose {', '.join(wanted)} as well: no chosen page has elements as there"


def check(visit: Visit, views: Iterable[View]) -> None:
    """Assert that a page is light, fits, asks and complains about nothing, and passes axe in some views."""
    page = visit.page
    visit.settle()
    policy = page.locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content")
    assert policy and policy.startswith("default-src 'self'")
    assert visit.size - visit.figures <= reader.TEXT
    assert visit.size <= reader.ALL
    found = []
    for view in views:
        page.set_viewport_size(view.viewport)
        page.emulate_media(color_scheme=view.scheme)
        # Colors, which take axe most of the time, depend on the scheme alone.
        found += [f"{page.url} in {view}: {violation}" for violation in visit.violations(colors=view in VIEWS[:2])]
    assert not found, "\n".join(found)
    for width in (320, 390, 768):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert not visit.foreign and not visit.complaints


@pytest.mark.parametrize("url", CHOSEN)
def test_a_chosen_page_is_light_fits_and_is_open_to_all(url: str, look: Callable[..., Visit]) -> None:
    check(look(url, VIEWS[0]), VIEWS[:2])


@pytest.mark.slow
@pytest.mark.parametrize("url", PAGES)
def test_every_page_is_light_fits_and_is_open_to_all(url: str, look: Callable[..., Visit]) -> None:
    check(look(url, VIEWS[0]), VIEWS)


def test_the_themes_script_comes_last_and_has_no_tooltips_to_make_for_headings(folder: Path) -> None:
    """Both made phones slow: what a script after it holds up, and a tooltip for each link."""
    for file in folder.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert "/bundle." in re.findall('<script src="(.*?)"', text)[-1]
        links = re.findall('<a [^>]*class="headerlink"[^>]*>', text)
        assert not [link for link in links if "title=" in link]
    assert 'aria-label="Link to this section"' in (folder / "basics/vmap/index.html").read_text(encoding="utf-8")


def test_what_the_style_sheet_leaves_out_is_on_no_page(folder: Path) -> None:
    absent = runpy.run_path(str(reader.ROOT / "overrides/slim.py"))["ABSENT"]
    for file in folder.rglob("*.html"):
        classes = " ".join(re.findall(r'\sclass="([^"]*)"', file.read_text(encoding="utf-8"))).split()
        assert not [name for name in set(classes) if absent.search(f".{name}")], file


@pytest.mark.parametrize("url", CHOSEN)
def test_a_page_needs_no_javascript(url: str, look: Callable[..., Visit]) -> None:
    seen = look(url, VIEWS[0], java_script_enabled=False)
    page = seen.page
    page.locator("article details").evaluate_all("all => all.forEach(details => details.open = true)")
    shown = page.locator("article :is(h1, h2, p, pre > code, .live-result:not(.live-silent), .live-figure svg)")
    hidden = shown.evaluate_all("found => found.filter(part => !part.checkVisibility()).map(part => part.outerHTML)")
    assert shown.count() and not hidden
    seen.settle()
    assert not seen.foreign and not seen.complaints
