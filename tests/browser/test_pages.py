"""What holds for every page of the built site, in a real browser."""

import hashlib
import re
import runpy
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from livepages.source import find_project
from tests.browser import reader
from tests.browser.conftest import Built
from tests.browser.reader import VIEWS, View, Visit
from tests.conftest import OLDEST, Proofs

DOCS = find_project(Path(__file__)).docs
PAGES = sorted(
    [file.relative_to(DOCS).as_posix().removesuffix("index.md").replace(".md", "/") for file in DOCS.rglob("*.md")]
    + ["404.html"]
)
SAMPLE = ("", "basics/vmap/", "scale/eight-devices/")
# Each page in one view, in turn; a sample in all of them. Colors are compared on pages that represent all, in both
# schemes. With the oldest Python, whose HTML differs in outputs and versions alone, the sample.
LOOKS = sorted(
    {(url, VIEWS[n % len(VIEWS)]) for n, url in enumerate(PAGES) if not OLDEST}
    | {(url, view) for url in SAMPLE for view in VIEWS},
    key=str,
)


def test_the_site_is_built_strictly(built: Built) -> None:
    if built.failing:
        pytest.skip(f"not tried, as these fail: {', '.join(built.failing)}")
    assert not built.problem, built.problem


def test_these_are_all_pages(folder: Path) -> None:
    assert reader.urls(folder) == PAGES


@cache
def around(folder: Path) -> str:
    """All that decides how a page looks besides its own HTML: styles, scripts, the browser, and what is checked."""
    files = [file for file in sorted(folder.rglob("*")) if file.suffix in (".css", ".js", ".svg", ".woff2")]
    checks = [file for file in Path(__file__).parent.glob("*.py")]
    version = subprocess.run([str(reader.CHROMIUM), "--version"], capture_output=True, check=True).stdout
    return hashlib.sha256(version + b"".join(file.read_bytes() for file in [*files, *checks])).hexdigest()


@cache
def representatives(folder: Path) -> frozenset[str]:
    """Pages that together hold an element of every kind, by its tag and classes: on these rest its color, and whether it
    is visible."""
    kinds: dict[str, set[tuple[str, str]]] = {}
    for url in PAGES:
        elements = re.findall(r"<([a-z][a-z0-9-]*)((?:\s[^<>]*)?)>", source(folder, url))
        classes = ((tag, re.search(r'\sclass="([^"]*)"', attributes)) for tag, attributes in elements)
        kinds[url] = {(tag, " ".join(sorted(found[1].split())) if found else "") for tag, found in classes}
    chosen = set(SAMPLE)
    missing = set().union(*kinds.values()) - set().union(*(kinds[url] for url in SAMPLE))
    while missing:
        chosen.add(best := max(PAGES, key=lambda url: len(kinds[url] & missing)))
        missing -= kinds[best]
    return frozenset(chosen)


def source(folder: Path, url: str) -> str:
    """The HTML of a page."""
    file = folder / url
    return (file / "index.html" if file.is_dir() else file).read_text(encoding="utf-8")


def rests_on(folder: Path, url: str, *check: object) -> list[str]:
    """What decides whether a check of a page passes."""
    return [around(folder), source(folder, url), url, *map(str, check)]


@pytest.mark.parametrize(("url", "view"), LOOKS, ids=str)
def test_a_page_is_light_fits_and_is_open_to_all(
    url: str, view: View, look: Callable[..., Visit], folder: Path, proofs: Proofs
) -> None:
    closely = url in representatives(folder)
    texts = rests_on(folder, url, "looks", view, closely)
    if proofs.known(*texts):
        return
    seen = look(url, view)
    seen.settle()
    policy = seen.page.locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content")
    assert policy and policy.startswith("default-src 'self'")
    assert seen.size - seen.figures <= reader.TEXT
    assert seen.size <= reader.ALL

    found = seen.violations(colors=closely)
    if closely:
        found += seen.colors_of("light" if view.scheme == "dark" else "dark")
        seen.page.emulate_media(color_scheme=view.scheme)
    assert not found, f"/{url} in {view}:\n" + "\n".join(found)

    for width in (320, 390, 768):
        seen.page.set_viewport_size({"width": width, "height": 800})
        assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert not seen.foreign and not seen.complaints
    proofs.keep(*texts)


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


def test_pages_need_no_javascript(look: Callable[..., Visit], folder: Path, proofs: Proofs) -> None:
    for url in sorted(representatives(folder)):
        texts = rests_on(folder, url, "no JavaScript")
        if proofs.known(*texts):
            continue
        seen = look(url, VIEWS[0], java_script_enabled=False)
        page = seen.page
        page.locator("article details").evaluate_all("all => all.forEach(details => details.open = true)")
        shown = page.locator("article :is(h1, h2, p, pre > code, .live-result:not(.live-silent), .live-figure svg)")
        hidden = shown.evaluate_all(
            "found => found.filter(part => !part.checkVisibility()).map(part => part.outerHTML)"
        )
        assert shown.count() and not hidden
        seen.settle()
        assert not seen.foreign and not seen.complaints
        proofs.keep(*texts)
