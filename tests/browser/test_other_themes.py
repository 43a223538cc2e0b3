"""Sites that have nothing of this one, in three themes: all that livepages shows is styled and works, and no more."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import reader
from tests.browser.reader import View, Visit
from tests.conftest import HANG

LIGHT = View("light", 1280)
CONFIG = """\
site_name: Kettle
theme: {theme}
plugins: [search, livepages]
markdown_extensions: [admonition, toc: {{permalink: true}}, pymdownx.highlight, pymdownx.superfences, livepages]
nav: [Home: index.md, Tea: [black.md]]
"""
PAGES = {
    "index.md": "# Kettle\n\nBoils water.\n",
    "black.md": (
        "# Black tea\n\n## Brew\n\n```python\ndegrees = 96\nprint(f'{degrees} degrees')\n```\n\n"
        "```python raises=\"ValueError\"\nint('hot')\n```\n\n"
        '```python needs="gpu"\nprint(degrees + 1)\n```\n\n'
        '```python exec="off" reason="it is only shown"\nnever = 1\n```\n\n'
        "```python\ndef tea(leaves):\n    return NotImplemented\n```\n\n"
        '```python source="none"\nprint("a line\\n" * 40)\n\n\nclass Table:\n    def _repr_html_(self):\n'
        '        return \'<table border="1" class="dataframe"><tr><th>cups</th><td>3</td></tr></table>\'\n\n\nTable()\n```\n'
    ),
}
THEMES = {
    "mkdocs": "{name: mkdocs, highlightjs: false}",
    "material": "{name: material, font: false}",
    "zensical": "{font: false}",
}
OF_THIS_SITE = re.compile(r"\bjax\b|\bcourse\b|question|masthead|practice|exercise|examin", re.IGNORECASE)


def write(root: Path, theme: str) -> None:
    """Write the project of a site."""
    files = {f"docs/{name}": text for name, text in PAGES.items()}
    files |= {"mkdocs.yml": CONFIG.format(theme=theme), "pyproject.toml": "[tool.livepages]\n"}
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module", params=THEMES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site in one theme."""
    root = tmp_path_factory.mktemp(request.param)
    write(root, THEMES[request.param])
    program = "zensical" if request.param == "zensical" else "mkdocs"
    command = [sys.executable, "-m", "livepages", "build", program]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "site"


@pytest.fixture
def page(site: Path, browser: Browser) -> Iterator[Page]:
    """Its page with blocks, in a browser that complains of nothing and asks nobody else."""
    with reader.serve(site) as base:
        visit = Visit(LIGHT.open(browser), base).go("black/")
        yield visit.page
        visit.page.context.close()
        assert not [*visit.complaints, *visit.foreign]


def style(page: Page, selector: str, name: str) -> str:
    found = page.locator(selector).first.evaluate(f"element => getComputedStyle(element)['{name}']")
    return str(found)


def test_outputs_errors_notes_and_details_are_styled(page: Page) -> None:
    for result, color in (
        (".live-result:has(.live-stdout)", "rgb(208, 138, 46)"),
        (".live-result:has(.live-error)", "rgb(179, 38, 30)"),
    ):
        assert style(page, result, "border-left-color") == color
        assert style(page, result, "border-left-style") == "solid"
    assert style(page, ".live-stdout code", "background-color") == "rgba(0, 0, 0, 0)"
    assert style(page, ".live-error code", "background-color") == "rgb(253, 243, 241)"
    for folded in (".live-small", ".live-traceback", ".live-more"):
        assert style(page, folded, "border-top-width") == "0px"
        assert float(style(page, folded, "font-size").removesuffix("px")) < 14
        expect(page.locator(folded).first).not_to_have_attribute("open", "")
    assert style(page, ".live-small", "position") == "absolute"
    expect(page.locator(".live-note").first).to_contain_text("Not run here: needs gpu")


def test_cells_of_a_table_as_pandas_writes_it_keep_apart(page: Page) -> None:
    assert style(page, ".live-html table", "border-collapse") == "collapse"
    for cell in ("th", "td"):
        assert float(style(page, f".live-html {cell}", "padding-left").removesuffix("px")) > 4
        assert style(page, f".live-html {cell}", "text-align") == "right"


def test_downloads_are_there(page: Page, site: Path) -> None:
    links = page.locator(".live-downloads a").evaluate_all("all => all.map(link => link.getAttribute('href'))")
    assert links == ["live-black.py", "live-black.ipynb", "index.md"]
    assert all((site / "black" / name).is_file() for name in links)


def test_programs_find_the_markdown_and_the_contents_in_the_head(page: Page, site: Path) -> None:
    links = "links => links.map(link => [link.type, new URL(link.href).pathname])"
    found = page.locator("link[rel~=alternate][type], link[rel=describedby]").evaluate_all(links)
    assert found == [["text/markdown", "/black/index.md"], ["text/plain", "/llms.txt"]]
    assert all((site / address.strip("/")).is_file() for _, address in found)


def test_a_page_is_copied_as_markdown(page: Page, site: Path) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator(".live-take")
    expect(button).to_have_accessible_name("copy as Markdown")
    button.click()
    expect(button).to_have_text("(copied)")
    assert page.evaluate("navigator.clipboard.readText()") == (site / "black/index.md").read_text()
    page.evaluate("() => { navigator.clipboard.write = () => Promise.reject(); }")
    expect(button).to_have_text("(copy)")
    button.click()
    expect(button).to_have_text("(could not be copied)")


def test_run_is_offered_for_what_can_run(page: Page) -> None:
    expect(page.get_by_role("button", name=re.compile("^Run block"))).to_have_count(4)
    expect(page.get_by_role("button", name="run it here")).to_be_visible()
    page.get_by_role("button", name="Run block 1", exact=True).click()
    expect(page.locator(".live-panel")).to_contain_text("jupyter-server --no-browser")
    assert "ipykernel" in page.locator(".live-panel code").inner_text()
    page.get_by_role("button", name="Edit block 4", exact=True).click()
    expect(page.get_by_role("textbox", name="Code of block 4.")).to_have_value(re.compile("NotImplemented"))
    expect(page.get_by_role("button", name=re.compile("^Check"))).to_have_count(0)


def test_run_is_not_offered_without_the_script(page: Page) -> None:
    page.context.route("**/assets/livepages/*", lambda route: route.fulfill())
    page.goto(page.url)
    expect(page.locator(".live-downloads")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^run", re.IGNORECASE))).to_have_count(0)


def test_nothing_is_of_this_site(site: Path) -> None:
    own = [site / "assets/livepages/live.css", site / "assets/livepages/live.js", site / "black/index.html"]
    assert {file: OF_THIS_SITE.findall(file.read_text("utf-8")) for file in own} == {file: [] for file in own}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Serve the site in a theme, and yield its address."""
    started = []

    def serve(theme: str) -> str:
        write(tmp_path, THEMES[theme])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  (a shell's & ignores it)
        )
        started.append(process)
        assert process.stderr and any("Serving on" in line for line in process.stderr)
        return f"http://127.0.0.1:{port}/"

    yield serve
    for process in started:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(HANG)


def test_a_block_runs_in_a_served_site_of_the_plain_theme(served: Callable[[str], str], browser: Browser) -> None:
    pytest.importorskip("jupyter_server")
    pytest.importorskip("ipykernel")
    visit = Visit(LIGHT.open(browser), served("mkdocs"))
    visit.page.goto(f"{visit.base}black/")
    visit.page.get_by_role("button", name="Run block 1", exact=True).click()
    mine = visit.page.get_by_role("group", name="Your output of block 1", exact=True)
    expect(mine).to_contain_text("Equal to the published output.")
    expect(mine.locator(".live-stdout")).to_have_text("96 degrees")
    assert json.loads(style(visit.page, ".live-yours", "border-left-width").removesuffix("px")) > 1
    visit.page.context.close()
    assert all(url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:")) for url in visit.foreign)
