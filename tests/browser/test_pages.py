"""Checks of every page of the built site, in a real browser."""

import html
import re
import runpy
import unicodedata
from collections.abc import Callable, Iterable
from itertools import cycle, groupby
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

from livepages.source import find_project
from tests.browser import reader
from tests.browser.chosen import rarely
from tests.browser.conftest import Built
from tests.browser.reader import VIEWS, View, Visit

DOCS = find_project(Path(__file__)).docs
PAGES = sorted(
    [file.relative_to(DOCS).as_posix().removesuffix("index.md").replace(".md", "/") for file in DOCS.rglob("*.md")]
    + ["404.html"]
)
# Pages that together hold most kinds of elements: outputs, figures, formulas, tables, questions, exercises, filters.
CHOSEN = (
    *("", "answers/loops/", "basics/vmap/", "lookup/then-and-now/", "practice/basics/", "scale/eight-devices/"),
    *("start/pytorch/", "train/diffusion/"),
)


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


def check(url: str, look: Callable[..., Visit], views: Iterable[View], colors: bool) -> None:
    """Assert that a page is light, fits, asks and complains about nothing, and passes axe in some views.

    Args:
        url: the page.
        look: opens it.
        views: the ways to look at it.
        colors: whether axe compares colors, which takes most of its time.
    """
    found = []
    for width, group in groupby(sorted(views, key=lambda view: -view.width), lambda view: view.width):
        visit = look(url, View("light", width))  # the theme measures what scrolls when a page comes
        page = visit.page
        visit.settle()
        policy = page.locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content")
        assert policy and policy.startswith("default-src 'self'")
        assert visit.size - visit.figures <= reader.TEXT
        assert visit.size <= reader.ALL
        for view in group:
            page.emulate_media(color_scheme=view.scheme)
            found += [f"{page.url} in {view}: {violation}" for violation in visit.violations(colors=colors)]
        for narrow in (320, 390, 768):
            page.set_viewport_size({"width": narrow, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == narrow
        assert not visit.foreign and not visit.complaints
    assert not found, "\n".join(found)


@pytest.mark.brief
@pytest.mark.parametrize(("url", "view"), [*zip(CHOSEN, cycle(VIEWS[:2]), strict=False)], ids=str)
def test_a_chosen_page_is_light_fits_and_is_open_to_all(url: str, view: View, look: Callable[..., Visit]) -> None:
    check(url, look, [view], colors=True)


@pytest.mark.slow
@pytest.mark.parametrize("url", CHOSEN)
def test_a_chosen_page_is_open_to_all_on_a_screen_and_a_phone(url: str, look: Callable[..., Visit]) -> None:
    check(url, look, VIEWS[:2], colors=True)


SHIFTS = """new PerformanceObserver(list => {
  window.shifted = (window.shifted ?? 0) + list.getEntries().reduce((sum, { value }) => sum + value, 0);
}).observe({ type: "layout-shift", buffered: true })"""


@pytest.mark.parametrize("url", [*CHOSEN[:2], *map(rarely, CHOSEN[2:]), "debug/checkify/", "lookup/claims/"])
def test_next_to_nothing_moves_while_a_page_loads(url: str, visit: Callable[..., Visit]) -> None:
    # As the Layout Instability API counts it: 0.1 is what Lighthouse warns of, and 0.04 takes its 100 points away.
    page = visit(url, VIEWS[1]).page
    page.evaluate(SHIFTS)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate("window.shifted ?? 0") < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("url", CHOSEN)
def test_a_chosen_page_is_open_to_all_in_the_other_scheme(url: str, look: Callable[..., Visit]) -> None:
    check(url, look, VIEWS[2:], colors=True)


@pytest.mark.slow
@pytest.mark.parametrize("url", PAGES)
def test_every_page_is_light_fits_and_is_open_to_all(url: str, look: Callable[..., Visit]) -> None:
    # Without colors, a scheme finds what the other does; what only a wide page shows is on the chosen pages, too.
    check(url, look, VIEWS[1:2], colors=False)


def test_formulas_have_a_font_that_comes_with_them(visit: Callable[..., Visit]) -> None:
    seen = visit("science/equations/", VIEWS[1])
    fonts = [request.url.rpartition("/")[2] for request in seen.requests if request.resource_type == "font"]
    assert fonts == ["measures.woff"]
    with seen.page.expect_response(re.compile(r"/fonts/formulas\.woff$")):
        seen.page.locator("math").first.scroll_into_view_if_needed()
    assert "formulas" in seen.page.locator("math").first.evaluate("math => getComputedStyle(math).fontFamily")


def test_subscripts_are_lowered_before_the_font_of_formulas_has_come(visit: Callable[..., Visit]) -> None:
    """Make measures.woff again from formulas.woff: pyftsubset formulas.woff --text=" " --layout-features= --flavor=woff."""
    seen = visit("science/kalman/", VIEWS[1])
    assert "live-formulas" not in (seen.page.locator("html").get_attribute("class") or "")
    script = "part => [...part.children].map(child => child.getBoundingClientRect().bottom)"
    letter, index = seen.page.locator("math msub").first.evaluate(script)
    assert index > letter + 1


def test_the_font_of_formulas_has_their_characters(folder: Path) -> None:
    """Make it again otherwise: pyftsubset STIXTwoMath-Regular.otf --text=... --layout-features= --flavor=woff --with-zopfli."""
    known = TTFont(folder / "fonts/formulas.woff").getBestCmap().keys()
    letters: set[str] = set()
    for file in folder.rglob("*.html"):
        for formula in re.findall("<math.*?</math>", file.read_text(encoding="utf-8"), re.DOTALL):
            for kind, text in re.findall("<(m[ino])[^>]*>([^<]+)</", formula):
                letters.update(drawn(kind, html.unescape(text).strip()))
            letters.update("\N{SQUARE ROOT}" if re.search("<(msqrt|mroot)", formula) else "")  # no text of the formula
    assert len(letters) > 60
    assert not [letter for letter in letters if ord(letter) not in known]


def drawn(kind: str, text: str) -> str:
    """Return the characters that browsers draw for a token of a formula: a letter alone is in italics."""
    codes = (*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C))
    output = {code: unicodedata.decomposition(chr(code)).split() for code in codes}  # "<font>" and the plain letter
    italics = {chr(int(parts[1], 16)): chr(code) for code, parts in output.items() if parts} | {"h": "\u210e"}
    return italics.get(text, text) if kind == "mi" else text


def test_the_themes_script_comes_last_and_has_no_tooltips_to_make_for_headings(folder: Path) -> None:
    """Both made phones slow: what a script after it holds up, and a tooltip for each link."""
    for file in folder.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert "/bundle." in re.findall('<script src="([^"]*)">', text)[-1]  # those with `async` hold nothing up
        links = re.findall('<a [^>]*class="headerlink"[^>]*>', text)
        assert not [link for link in links if "title=" in link]
    assert 'aria-label="Link to this section"' in (folder / "basics/vmap/index.html").read_text(encoding="utf-8")


def test_every_page_links_its_markdown(folder: Path) -> None:
    for url in PAGES:
        links = re.findall('<link rel="alternate ?" type="text/markdown" href="([^"]+)">', source(folder, url))
        assert len(links) == (url not in ("404.html", "status/")), url  # which are in no navigation
        assert all((folder / url / link).is_file() for link in links), url


def test_what_the_style_sheet_leaves_out_is_on_no_page(folder: Path) -> None:
    absent = runpy.run_path(str(reader.ROOT / "course/slim.py"))["ABSENT"]
    for file in folder.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        classes = " ".join(re.findall(r'\sclass="([^"]*)"', text)).split()
        assert not [name for name in set(classes) if absent.search(f".{name}")], file
        assert not [tag for tag in set(re.findall(r"<([a-z]\w*)", text)) if absent.search(tag)], file


@pytest.mark.parametrize("url", CHOSEN)
def test_a_page_needs_no_javascript(url: str, look: Callable[..., Visit]) -> None:
    seen = look(url, VIEWS[0], java_script_enabled=False)
    page = seen.page
    page.locator("article details").evaluate_all(
        "all => all.forEach(details => Object.assign(details, { name: '', open: true }))"
    )
    shown = page.locator("article :is(h1, h2, p, pre > code, .live-result:not(.live-silent), .live-figure svg)")
    hidden = shown.evaluate_all("found => found.filter(part => !part.checkVisibility()).map(part => part.outerHTML)")
    assert shown.count() and not hidden
    seen.settle()
    assert not seen.foreign and not seen.complaints
