"""Explorables in a browser: on a site that has nothing of this one, by keyboard, without the script, on paper."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import reader
from tests.browser.chosen import rarely
from tests.browser.reader import VIEWS, WCAG, View, Visit
from tests.conftest import HANG

LIGHT = View("light", 1280)
LIMIT = 300 * 1024  # bytes of a page that has them
FILES = {
    "mkdocs.yml": """\
site_name: Kettle
theme: {theme}
plugins: [search, {plugins}livepages]
markdown_extensions: [md_in_html, pymdownx.highlight, pymdownx.superfences]
nav: [Tea: tea.md, Cup: cup.md]
""",
    "docs/cup.md": "# Cup\n\n```python {run}\nprint('plain')\n```\n",
    "docs/tea.md": """\
# Tea

## Degrees

```python {run} vary="degrees=90, 70, 80, 100"
print(degrees, "degrees")
for minute in range(degrees - 90):
    print("and", minute)
```

## Leaves and minutes

```python {run} vary="leaf='black', 'green'; minutes=2, 4" alt="a cup"
import matplotlib.pyplot as plt

plt.plot([0, minutes])
print(leaf, minutes)
```
""",
}
KINDS = {
    "mkdocs": ("{name: mkdocs, highlightjs: false}", "", ""),
    "material": ("{name: material, font: false}", "", ""),
    "markdown-exec": ("{name: material, font: false}", "markdown-exec, ", 'exec="on" source="above" result="text"'),
}


# Material is also what this site has.
@pytest.fixture(scope="module", params=["mkdocs", rarely("material"), rarely("markdown-exec")])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, of one kind."""
    root = tmp_path_factory.mktemp("explorables")
    theme, plugins, run = KINDS[request.param]
    files = {**FILES, **({} if plugins else {"pyproject.toml": "[tool.livepages]\n"})}
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(exist_ok=True)
        made = text.replace("{theme}", theme).replace("{plugins}", plugins).replace(" {run}", f" {run}".rstrip())
        file.write_text(made, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "site"


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    with reader.serve(site) as base:
        yield base


@pytest.fixture
def visit(address: str, browser: Browser) -> Iterator[Visit]:
    """The page with explorables, in a browser that complains of nothing and asks nobody else."""
    visit = Visit(LIGHT.open(browser), address).go("tea/")
    expect(visit.page.locator(".live-controls")).to_have_count(2)
    yield visit
    visit.page.context.close()
    assert not [*visit.complaints, *visit.foreign]


def shown(page: Page, number: int) -> str:
    """The first line of what an explorable shows."""
    visible = page.locator(".live-vary").nth(number).locator(".live-value").filter(visible=True)
    expect(visible).to_have_count(1)
    return visible.locator("code").first.inner_text().partition("\n")[0]


def test_a_slider_begins_at_the_page_s_value_and_moves_by_keyboard(visit: Visit) -> None:
    page = visit.page
    before = len(visit.requests)
    slider = page.get_by_role("slider", name="degrees")
    output = []
    for key in ("", "ArrowRight", "Home", "ArrowUp", "End"):
        if key:
            slider.press(key)
        output.append((slider.get_attribute("aria-valuetext"), shown(page, 0)))
    assert output == [(value, f"{value} degrees") for value in ("90", "100", "70", "80", "100")]
    expect(page.locator(".live-controls output").first).to_have_text("100")
    assert len(visit.requests) == before


def test_choices_and_a_slider_make_a_grid(visit: Visit) -> None:
    page = visit.page
    assert shown(page, 1) == "black 2"
    group = page.get_by_role("group", name="leaf")
    group.get_by_role("radio", name="'black'").focus()
    page.keyboard.press("ArrowDown")
    assert shown(page, 1) == "green 2"
    page.get_by_role("slider", name="minutes").press("ArrowRight")
    assert shown(page, 1) == "green 4"
    figure = page.get_by_role("img", name="a cup, with leaf='green', minutes=4")
    expect(figure).to_be_visible()


def test_what_follows_stays_where_it_is(visit: Visit) -> None:
    page = visit.page
    below = page.get_by_role("heading", name="Leaves")
    before = below.bounding_box()
    page.get_by_role("slider", name="degrees").press("End")
    assert below.bounding_box() == before


def test_a_value_is_beside_its_slider_on_a_phone(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 320, "height": 800})
    slider = visit.page.get_by_role("slider", name="degrees").bounding_box()
    output = visit.page.locator(".live-controls output").first.bounding_box()
    assert slider and output
    assert slider["x"] + slider["width"] <= output["x"]
    assert slider["y"] < output["y"] + output["height"] / 2 < slider["y"] + slider["height"]


def test_a_change_is_announced_to_screen_readers(visit: Visit) -> None:
    expect(visit.page.locator(".live-values").first).to_have_attribute("aria-live", "polite")
    hidden = visit.page.locator(".live-values").first.aria_snapshot()
    assert hidden.count("degrees") == 1


def test_paper_has_the_first_value(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("slider", name="degrees").press("Home")
    page.emulate_media(media="print")
    assert shown(page, 0) == "90 degrees"
    expect(page.locator(".live-controls").first).to_be_hidden()


def test_without_javascript_the_other_values_are_folded(address: str, browser: Browser) -> None:
    visit = Visit(LIGHT.open(browser, java_script_enabled=False), address).go("tea/")
    page = visit.page
    first = page.locator(".live-vary").first
    expect(first.locator(".live-value").first).to_contain_text("90 degrees")
    folds = first.locator("details.live-value")
    assert [text.strip() for text in folds.locator("summary").all_inner_texts()] == [
        f"with degrees = {value}" for value in (70, 80, 100)
    ]
    expect(folds.last.locator("pre").first).to_be_hidden()
    folds.last.locator("summary").click()
    expect(folds.last.locator("pre").first).to_contain_text("100 degrees")
    page.emulate_media(media="print")
    expect(folds.first).to_be_hidden()
    page.context.close()


def test_the_script_comes_only_where_it_is_needed_and_the_page_is_light(visit: Visit) -> None:
    parts = [request.url for request in visit.requests if "/livepages/vary." in request.url]
    assert sorted(re.sub(".*/", "", url) for url in parts) == ["vary.css", "vary.js"]
    assert visit.size < LIMIT
    visit.go("cup/")
    assert not [request.url for request in visit.requests[1:] if "/livepages/vary." in request.url][len(parts) :]


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_nothing_is_wrong_and_nothing_sticks_out(address: str, browser: Browser, view: View) -> None:
    visit = Visit(view.open(browser), address).go("tea/")
    page = visit.page
    expect(page.locator(".live-controls")).to_have_count(2)
    found = Axe().run(page, ".live-vary", {"runOnly": list(WCAG), "resultTypes": ["violations"]}).response["violations"]
    assert not found, found
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.context.close()
