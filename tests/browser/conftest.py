"""Fixtures of the browser tests: the site, built once for all processes; a host for it; a browser."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser import reader
from tests.browser.reader import View, Visit
from tests.conftest import Course

expect.set_options(timeout=reader.HANG)

BEGIN = """() => {
  window.worker = new Worker(new URL("../../javascripts/find.js", location.href), { type: "module" });
}"""
ASK = """async (queries) => {
  const ask = (query) => new Promise((answer, fail) => {
    [worker.onmessage, worker.onerror] = [({ data }) => data.partial || answer(data), fail];
    worker.postMessage(query);
  });
  const found = {};
  for (const query of queries) {
    const { items, note } = await ask(query);
    const sections = items.flatMap(([page, ...sections]) => (page.score || !sections.length ? [page, ...sections] : sections));
    found[query] = { note, sections: sections.map(({ location }) => location) };
  }
  return found;
}"""


@dataclass(frozen=True)
class Found:
    """The results of a search: the addresses of sections, the best first, and the text that is shown of them."""

    sections: list[str]
    note: str


@dataclass(frozen=True)
class Built:
    """The built site, and what keeps it from being built strictly."""

    folder: Path
    failing: list[str]  # pages
    problem: str


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory, course: Course) -> Built:
    """The site, built once for all processes; strictly, unless a page fails, which its own test tells."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    site, notes = shared / "site", shared / "site.json"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not notes.exists():
            failing = course.failing()
            problem = "" if failing else reader.build(site)
            if failing or problem:
                assert not (output := reader.build(site, strictly=False)), output
            notes.write_text(json.dumps([failing, problem]))
    return Built(site, *json.loads(notes.read_text()))


@pytest.fixture(scope="package")
def folder(built: Built) -> Path:
    """The folder of the built site."""
    return built.folder


@pytest.fixture(scope="package")
def host(folder: Path) -> Iterator[str]:
    """The address of the site."""
    with reader.serve(folder) as base:
        yield base


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, which the variable LIVE_BROWSER says is "required", or "none" to leave out what needs it."""
    if os.environ.get("LIVE_BROWSER") == "none":
        pytest.skip("no browser is to be used")
    if reader.CHROMIUM is None:
        absent = "there is no Chromium: neither chromium, chromium-browser nor google-chrome is a command"
        pytest.fail(absent) if os.environ.get("LIVE_BROWSER") == "required" else pytest.skip(absent)
    with sync_playwright() as playwright:
        browser = reader.launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def look(browser: Browser, host: str) -> Iterator[Callable[..., Visit]]:
    """Open pages one after the other in one profile for each view: most of a first visit is what all pages share.

    The test has to check that the page made no other request and reported no error.
    """
    visits: dict[object, Visit] = {}

    def go(url: str, view: View, **options: Any) -> Visit:
        way = (view, *sorted(options.items()))
        if way not in visits:
            visits[way] = Visit(view.open(browser, **options), host)
        return visits[way].again(url, view)

    yield go
    for visit in visits.values():
        visit.page.context.close()


@pytest.fixture
def visit(browser: Browser, host: str) -> Iterator[Callable[..., Visit]]:
    """Open pages in fresh profiles; at the end, none of them may have asked another host or complained."""
    visits = []

    def go(url: str = "", view: View = reader.VIEWS[0], **options: Any) -> Visit:
        visits.append(Visit(view.open(browser, **options), host))
        return visits[-1].go(url)

    yield go
    for visit in visits:
        visit.page.context.close()
    assert not [url for visit in visits for url in visit.foreign]
    assert not [complaint for visit in visits for complaint in visit.complaints]


@pytest.fixture(scope="package")
def ask(browser: Browser, host: str) -> Iterator[Callable[[list[str]], dict[str, Found]]]:
    """Ask the site's search, as its input does, and return what it shows for each query."""
    seen = Visit(reader.VIEWS[0].open(browser), host).go("lookup/names/")
    seen.page.evaluate(BEGIN)
    yield lambda queries: {query: Found(**found) for query, found in seen.page.evaluate(ASK, queries).items()}
    seen.page.context.close()
    assert not seen.foreign and not seen.complaints
