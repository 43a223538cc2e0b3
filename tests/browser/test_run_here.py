"""Blocks run on the reader's own machine: with a real Jupyter server, on a small site, served and published."""

import contextlib
import http.client
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, WebSocketRoute, expect

from livepages.records import Records
from livepages.source import find_project, read_page
from tests.browser import reader
from tests.browser.reader import ROOT, View, Visit
from tests.conftest import HANG

pytest.importorskip("jupyter_server")
pytest.importorskip("ipykernel")
pytestmark = pytest.mark.skipif(not os.path.exists("/proc"), reason="processes are looked for as Linux lists them")

WIDE, PHONE = View("light", 1280), View("dark", 390)
PAGES = {
    "index.md": """
        # Home

        ```python
        print("home")
        ```
        """,
    "basics/light.md": """
        # Light

        Text.

        ## First

        ```python
        import warnings

        import jax
        import jax.numpy as jnp

        x = jnp.arange(3.0)
        warnings.warn("be warned")
        print(x.sum())  # (1)!
        ```

        1. A note.

        ```python source="none"
        hidden = 5.0
        ```

        ## Second

        ```python
        jax.debug.print("{}", jax.jit(lambda v: v * hidden)(x))
        ```

        ```python exec="off" reason="it is only shown"
        never = 1
        ```

        ## Error

        ```python raises="TypeError" match="incompatible"
        x + jnp.arange(2.0)
        ```

        ## Fresh

        ```python isolated="on"
        from jax import monitoring

        seen = []  # what it registers is called by blocks that come after it
        monitoring.register_event_duration_secs_listener(lambda *_, **__: seen.append(1))
        import io, sys
        sys.stdin = io.StringIO("a line\\n")
        print("hidden" in globals(), input("> "), {*"abcdef"})
        sys.stdin = sys.__stdin__
        ```

        ## Figure

        ```python alt="A line that rises"
        import matplotlib.pyplot as plt

        plt.plot([1, 2])
        ```

        ## Other

        ```python volatile="on"
        import time

        jax.jit(lambda: 2)()
        print(time.time())
        ```

        ## As in the page's process: folder, colors, lengths

        ```python
        from pathlib import Path

        print(*Path().iterdir(), Path("written.txt").write_text("gone with the page"))
        print("\\x1b" in f"{jax.make_jaxpr(jnp.sin)(1.0)}")
        print("a line that is kept in part " * 100)
        print("much " * 5_000 + "\\n", *("is left out\\n" for _ in range(3_000)))
        ```
        """,
    "basics/eight.md": """
        ---
        devices: 8
        ---
        # Eight

        ```python
        import jax

        print(len(jax.devices()))
        ```
        """,
    "basics/own.md": """
        # Own

        ```python
        import jax.numpy as jnp

        rate = 0.3
        ```

        ```python title="tax: warm-up"
        from jax.typing import ArrayLike

        def tax(income: ArrayLike):
            return NotImplemented
        ```
        """,
    "kept.md": """
        # Kept

        <div data-live-edits></div>
        """,
    "basics/checked.md": """
        # Checked

        ```python
        x = 6.0
        print(x)
        ```

        ```python source="none"
        assert x == 6.0
        ```

        ```python
        print("then", x + 1)
        ```
        """,
    "practice/speed.md": """
        # Practice

        ```python
        import jax
        import jax.numpy as jnp
        from examiner import examine

        rate = 0.2
        ```

        ## Tax { #tax }

        ```python
        def tax(income):
            return NotImplemented
        ```

        ## Largest { #gcd }

        ```python
        def gcd(a, b):
            return NotImplemented
        ```

        ## Scaler { #Scaler }

        ```python
        class Scaler:
            \"""A class to write.\"""
        ```

        ## Last

        ```python
        print("rate", rate)
        ```

        ## Score

        ```python
        from examiner import grade

        score = grade(globals(), "tax", "gcd", "Scaler")
        ```
        """,
}
SCALER = """class Scaler:
    def __init__(self, factor):
        self.factor = factor
        self.multiply = jax.jit(jnp.multiply)

    def __call__(self, x):
        return self.multiply(self.factor, x)
"""
MAPPED = "() => performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/sitemap.xml'))"
PROGRAM = "**/live-kernel.py"
TAX = """def tax(income):
    return 0.2 * jnp.maximum(income - 10.0, 0.0) + 0.2 * jnp.maximum(income - 50.0, 0.0)
"""
GCD = "def gcd(a, b):\n    return jnp.gcd(a, b)\n"
SAID = """() => {  // what the box of block 3 says, each time that it changes
  const status = document.querySelector('[aria-label="Your output of block 3"] > .live-note');
  window.said = [];
  new MutationObserver(() => said.push(status.textContent)).observe(status, { childList: true });
}"""
CONFIG = f"""
INHERIT: {ROOT}/mkdocs.yml
site_name: Small
nav: [index.md, kept.md, {{Basics: [basics/light.md, basics/eight.md, basics/own.md, basics/checked.md]}}, {{Practice: [practice/speed.md]}}]
theme: {{custom_dir: {ROOT}/course/theme}}
hooks: [{ROOT}/course/slim.py]  # the scripts as the site has them
not_in_nav: ""
markdown_extensions:
  - admonition
  - attr_list
  - toc: {{permalink: true, toc_depth: 2}}
  - pymdownx.details
  - pymdownx.highlight: {{pygments_lang_class: true}}
  - pymdownx.superfences
  - livepages
  - livepages.mathml
"""


class Served:
    """`mkdocs serve` of a small site with the scripts and styles of this one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT / "docs" / "assets", root / "docs" / "assets")
        shutil.copytree(ROOT / "snippets" / "examiner", root / "snippets" / "examiner")
        for name, text in PAGES.items():
            file = root / "docs" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(textwrap.dedent(text).lstrip())
        (root / "mkdocs.yml").write_text(CONFIG)
        (root / "pyproject.toml").write_text(
            '[project]\nname = "small"\n\n[tool.livepages]\nruntime = "jax"\nfences = "all"\n'
            'guide = "course.guide:CourseGuide"\n'
        )
        self.environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}/"
        self.build()  # so that nothing changes while the tests look at it
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", "serve", "-q", "-a", f"127.0.0.1:{port}"],
            cwd=root,
            env=self.environment,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        until(lambda: self._answers(port))

    def build(self) -> None:
        """Build it as it is published."""
        command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
        subprocess.run(command, cwd=self.root, env=self.environment, check=True)

    @staticmethod
    def _answers(port: int) -> bool:
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG)
            connection.request("GET", "/basics/light/")
            return b"live-result" in connection.getresponse().read()
        return False

    @property
    def jupyter(self) -> int:
        """The process of its Jupyter server."""
        [found] = [process for process in children(self._process.pid) if b"integrations.jupyter" in command_of(process)]
        return found

    @property
    def process(self) -> int:
        return self._process.pid

    def end(self) -> None:
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(HANG)


def until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + HANG
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.05)


def children(parent: int) -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(file.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(file.parent.name))
    return found


def command_of(process: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("small"))
    yield served
    served.end()


@pytest.fixture
def open_(browser: Browser, served: Served) -> Iterator[Callable[..., Visit]]:
    """Open a page of the served site."""
    visits = []

    def go(url: str = "basics/light/", view: View = WIDE, base: str = served.base) -> Visit:
        visits.append(Visit(view.open(browser), base))
        visits[-1].page.goto(base + url)
        return visits[-1]

    yield go
    for visit in visits:
        visit.page.context.close()
    assert not [url for visit in visits for url in visit.foreign if not re.match(r"(http|ws)://127\.0\.0\.1:", url)]
    assert not [output for visit in visits for output in visit.complaints if "ERR_CONNECTION_REFUSED" not in output]


def run(page: Page, number: int) -> None:
    page.get_by_role("button", name=f"Run block {number}", exact=True).click()


def yours(page: Page, number: int) -> Locator:
    return page.get_by_role("group", name=f"Your output of block {number}", exact=True)


def code(page: Page, number: int) -> Locator:
    return page.get_by_role("textbox", name=f"Code of block {number}.")


def typed(page: Page, number: int, text: str) -> None:
    """Write this in the place of the code of a block, and run it."""
    code(page, number).fill(text)
    code(page, number).press("Control+Enter")


def test_a_block_runs_after_all_before_it_is_edited_and_put_back(open_: Callable[..., Visit]) -> None:
    visit = open_()
    page = visit.page
    page.get_by_role("button", name="Run block 1", exact=True).wait_for(state="attached")
    assert not [url for request in visit.requests if "/run" in (url := request.url) or "kernel" in url]
    assert page.get_by_role("button", name="Run block").count() == 7
    run(page, 2)
    expect(code(page, 2)).to_be_focused()
    expect(yours(page, 2)).to_contain_text("Equal to the published output.")
    expect(yours(page, 2)).to_contain_text(re.compile(r"Yours: cpu, jax [\d.]+, [\d.]+ m?s"))
    expect(yours(page, 2).locator(".live-stdout")).to_have_text("[ 0.  5. 10.]")
    expect(yours(page, 1)).to_have_count(0)

    typed(page, 2, 'print("<img src=x onerror=alert(1)>\\x1b[31m red", x * 3)')
    expect(yours(page, 2)).to_contain_text("Edited.")
    expect(yours(page, 2).locator(".live-stdout")).to_have_text("<img src=x onerror=alert(1)> red [0. 3. 6.]")
    expect(page.locator(".live-editor, .live-yours").locator("img")).to_have_count(0)  # the code is text, too
    typed(page, 2, "from IPython.display import HTML\nHTML('<b id=planted>bold</b>')")
    expect(yours(page, 2).locator(".live-stdout")).to_have_text("<IPython.core.display.HTML object>")
    expect(page.locator("#planted")).to_have_count(0)
    typed(page, 2, "1 / 0")
    expect(yours(page, 2).locator(".live-error")).to_have_text("ZeroDivisionError: division by zero")
    page.get_by_role("button", name="Put back the original of block 2").click()
    expect(yours(page, 2)).to_have_count(0)
    page.get_by_role("button", name="Run block 2").click()
    expect(yours(page, 2)).to_contain_text("Equal to the published output.")

    run(page, 3)  # an error that the page shows
    expect(yours(page, 3).locator(".live-error")).to_contain_text("incompatible shapes")
    expect(yours(page, 3)).to_contain_text("Equal to the published output.")
    run(page, 5)
    expect(yours(page, 5).get_by_role("img", name="A line that rises")).to_be_visible()
    assert yours(page, 5).get_by_role("img").evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    expect(yours(page, 5)).to_contain_text("Equal to the published output.")

    run(page, 1)  # what is run again changes what comes after it
    expect(yours(page, 1).locator(".live-stderr")).to_contain_text("block-1.py:7: UserWarning: be warned")
    expect(yours(page, 1)).to_contain_text("Equal to the published output.")
    typed(page, 1, "import jax, jax.numpy as jnp\nx = jnp.ones(2)")
    expect(yours(page, 1)).to_contain_text("Edited.")
    page.get_by_role("button", name="Run block 2").click()
    expect(yours(page, 2).locator(".live-stdout")).to_have_text("[5. 5.]")
    expect(yours(page, 2)).to_contain_text("Not what is published after your edits above")

    typed(page, 2, "print('on')\nwhile True: pass")
    expect(yours(page, 2).locator(".live-stdout")).to_have_text("on")
    page.get_by_role("button", name="Stop").click()
    expect(yours(page, 2).locator(".live-error")).to_contain_text("KeyboardInterrupt")
    typed(page, 2, "kept = 1")
    expect(yours(page, 2)).to_contain_text("Edited.")
    page.get_by_role("button", name="Restart").click()
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("Run starts a new one")
    typed(page, 2, "print('kept' in globals(), 'x' in globals())")
    expect(yours(page, 2).locator(".live-stdout")).to_have_text("False True")


def test_errors_and_warnings_name_the_line_that_is_seen(open_: Callable[..., Visit]) -> None:
    page = open_().page
    run(page, 2)
    expect(yours(page, 2)).to_contain_text("Equal to the published output.")
    typed(page, 2, "import warnings\n\nwarnings.warn('careful')\n\ndef f(x):\n    return x / 0\n\nf(1)")
    expect(yours(page, 2).locator(".live-stderr")).to_contain_text("block-2.py:3: UserWarning: careful")
    expect(yours(page, 2).locator(".live-traceback")).to_contain_text(re.compile(r"block-2.py:6.*in f\("))
    typed(page, 2, "x = 1\ny = = 2")
    expect(yours(page, 2).locator(".live-error")).to_contain_text("(block-2.py, line 2)")
    page.get_by_role("button", name="Run block 1", exact=True).click()
    expect(yours(page, 1)).to_contain_text("Equal to the published output.")  # which names a line of the script


def test_a_jump_within_a_page_scrolls_and_ends_nothing(open_: Callable[..., Visit]) -> None:
    visit = open_()
    page = visit.page
    run(page, 1)
    expect(yours(page, 1)).to_contain_text("Equal")
    page.wait_for_function(MAPPED)  # until then the browser itself follows links
    page.evaluate(
        """() => {
          for (const [name, href] of [["whole", location.href + "#error"], ["found", "?h=some#second"], ["top", "./"]]) {
            const link = Object.assign(document.createElement("a"), { href, textContent: name });
            document.querySelector(".md-header").append(link);
          }
        }"""
    )
    visit.requests.clear()
    contents = page.locator(".md-nav--secondary")
    for link, end, heading in (
        (contents.get_by_role("link", name="Figure"), "light/#figure", "Figure"),
        (page.locator("#other .headerlink"), "light/#other", "Other"),
        (page.get_by_role("link", name="whole"), "light/#error", "Error"),
        (page.get_by_role("link", name="found"), "light/?h=some#second", "Second"),
        (page.get_by_role("link", name="top"), "light/", "Light"),
        (page.get_by_role("link", name="whole"), "light/#error", "Error"),
    ):
        link.click()
        expect(page).to_have_url(re.compile(re.escape(end) + "$"))
        place = page.get_by_role("heading", name=heading)
        expect(place).to_be_in_viewport()
        if "#" in end:
            assert place.evaluate("heading => heading.matches(':target')")
    for end in ("light/", "light/?h=some#second", "light/#error", "light/#other", "light/#figure", "light/"):
        page.go_back()
        expect(page).to_have_url(re.compile(re.escape(end) + "$"))
    page.go_forward()
    expect(page.get_by_role("heading", name="Figure")).to_be_in_viewport()
    expect(yours(page, 1)).to_contain_text("Equal")
    typed(page, 1, "print(x.sum() + 1)")
    expect(yours(page, 1).locator(".live-stdout")).to_have_text("4.0")  # in the same kernel
    assert not [r.url for r in visit.requests if r.method == "DELETE" or "/basics/light/" in r.url]
    page.get_by_role("link", name="Kept", exact=True).first.click()  # another page comes in place, as ever
    expect(page.locator("h1")).to_contain_text("Kept")
    page.go_back()
    expect(page.locator("h1")).to_contain_text("Light")


def test_long_output_is_followed_until_its_reader_scrolls_up(open_: Callable[..., Visit], tmp_path: Path) -> None:
    page = open_("").page
    page.get_by_role("button", name="Edit block 1").click()
    typed(
        page,
        1,
        f"""
import pathlib, time

for part in range(3):
    for line in range(60):
        print(part, line, flush=True)
    while not pathlib.Path({str(tmp_path)!r}, str(part)).exists():
        time.sleep(0.05)
""",
    )
    shown = yours(page, 1).locator(".live-stdout code")
    ends = "code => code.scrollTop > 0 && code.scrollTop + code.clientHeight >= code.scrollHeight - 2"
    for part, follows in enumerate((True, True, False)):
        expect(shown).to_contain_text(f"{part} 59")
        assert shown.evaluate(ends) == follows, part
        if part == 1:
            shown.evaluate("code => new Promise((done) => { code.onscroll = done; code.scrollTop = 100; })")
        (tmp_path / str(part)).touch()
    assert shown.evaluate("code => code.scrollTop") == 100


def test_nothing_moves_under_the_pointer_at_home_when_output_comes(open_: Callable[..., Visit]) -> None:
    page = open_("").page
    page.add_style_tag(path=ROOT / "course/theme/stylesheets/home.css")
    page.evaluate(
        """() => {
          const article = document.querySelector("article");
          const column = (...parts) => { const made = document.createElement("div"); made.append(...parts); return made; };
          const hero = column(column(article.querySelector("h1")), column(...article.children));
          hero.className = "live-hero";
          article.append(hero);
        }"""
    )
    before = page.locator("h1").bounding_box()
    page.get_by_role("button", name="Edit block 1").click()
    typed(page, 1, "print('much\\n' * 60)")
    expect(yours(page, 1)).to_contain_text("Edited")
    assert page.locator("h1").bounding_box() == before


def test_the_list_of_edits_returns_to_where_its_reader_was(open_: Callable[..., Visit]) -> None:
    page = open_().page
    page.get_by_role("button", name="Edit block 2").click()
    page.evaluate("scrollTo(0, 300)")
    mine = page.get_by_role("button", name="Your edits")
    mine.click()
    panel = page.get_by_role("region", name="Your edits")
    expect(panel).to_be_in_viewport()
    assert page.evaluate("scrollY") > 600
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_have_count(0)
    assert page.evaluate("scrollY") == 300
    expect(mine).to_be_focused()


def test_what_a_page_checks_unseen_does_not_stop_who_has_changed_its_code(open_: Callable[..., Visit]) -> None:
    page = open_("basics/checked/").page
    run(page, 1)
    expect(yours(page, 1)).to_contain_text("6.0")
    typed(page, 1, "x = 9.0\nprint(x)")
    expect(yours(page, 1)).to_contain_text("9.0")
    run(page, 2)
    expect(yours(page, 2)).to_contain_text("then 10.0")


@pytest.mark.parametrize("view", [WIDE, PHONE], ids=str)
def test_what_runs_and_edits_a_block_is_seen_before_it_is_pointed_at(open_: Callable[..., Visit], view: View) -> None:
    page = open_(view=view).page
    for act in ("Run", "Edit"):
        button = page.get_by_role("button", name=f"{act} block 2", exact=True)
        assert button.evaluate("button => button.checkVisibility({ opacityProperty: true })")
    button.click()
    expect(code(page, 2)).to_be_focused()
    expect(page.get_by_role("region", name="Run it here")).not_to_contain_text("kernel")


def test_a_kernel_starts_while_its_reader_writes_and_ends_with_the_page(
    open_: Callable[..., Visit], served: Served
) -> None:
    before = {kernel for process in children(served.process) for kernel in children(process)}  # of other tests

    def kernels() -> set[int]:
        return {*children(served.jupyter)} - before

    visit = open_("practice/speed/")
    page = visit.page
    bar = page.get_by_role("region", name="Run it here")
    sent: list[object] = []  # to kernels

    def note(frame: object) -> None:
        sent.append(frame)

    page.on("websocket", lambda socket: socket.on("framesent", note))

    def edit() -> None:
        page.get_by_role("button", name="Edit block 2").click()
        while not sent:  # what runs beside the page
            page.wait_for_timeout(50)
        sent.clear()
        expect(bar).not_to_contain_text("kernel")
        expect(yours(page, 2)).to_have_count(0)

    edit()
    code(page, 2).fill(TAX)
    page.get_by_role("button", name="Check tax").click()
    expect(yours(page, 2).locator(".live-verdict")).to_contain_text("tax: right")
    requests = [request for request in visit.requests if request.url.endswith("/api/kernels")]
    assert len([request for request in requests if request.method == "POST"]) == 1
    page.goto(f"{served.base}basics/light/")
    until(lambda: not kernels())
    sent.clear()
    edit()
    assert len(kernels()) == 1
    page.get_by_role("link", name="Own", exact=True).first.click()  # in place
    until(lambda: not kernels())


def test_a_click_into_the_code_edits_it_there(open_: Callable[..., Visit]) -> None:
    page = open_().page
    shown = page.locator(".live-editable pre > code").first
    shown.get_by_text("be warned").click()
    expect(code(page, 1)).to_be_focused()
    page.keyboard.type("!")
    expect(code(page, 1)).to_have_value(re.compile(r'warn\("[be warned]*![be warned]*"\)'))
    page.locator(".live-editable pre > code").nth(1).dblclick()
    expect(code(page, 2)).to_be_focused()


COMPILED_LOOP = """
import jax
count = jax.jit(lambda end: jax.lax.while_loop(lambda i: i < end, lambda i: (i + 1) % 1000, 0))
print(count(500), flush=True)
count(2000)
"""  # compiled before it prints: an interrupt ends Python's code, and so the tracing, but not the loop


def test_a_compiled_loop_is_ended_by_a_restart(open_: Callable[..., Visit], served: Served) -> None:
    page = open_().page
    bar = page.get_by_role("region", name="Run it here")
    run(page, 1)
    expect(yours(page, 1)).to_contain_text("Equal")
    before = len(children(served.jupyter))
    typed(page, 1, COMPILED_LOOP)
    expect(yours(page, 1).locator(".live-stdout")).to_have_text("500")
    bar.get_by_role("button", name="Stop").click()
    expect(bar).to_contain_text("This has not stopped yet")
    expect(bar.get_by_role("button", name="Restart")).to_be_focused()
    page.keyboard.press("Enter")
    expect(yours(page, 1)).to_contain_text("Stopped: The kernel has ended.")
    expect(page.get_by_text("Running …")).to_have_count(0)
    until(lambda: len(children(served.jupyter)) < before)
    typed(page, 1, "print('anew')")
    expect(yours(page, 1).locator(".live-stdout")).to_have_text("anew")


@pytest.mark.slow
def test_an_interruption_that_comes_late_does_not_end_what_runs_next(open_: Callable[..., Visit]) -> None:
    page = open_().page
    run(page, 1)
    expect(yours(page, 1)).to_contain_text("Equal")
    held = reader.hold(page, "**/interrupt")
    typed(page, 1, "print('begun', flush=True)\nwhile True: pass")
    expect(yours(page, 1).locator(".live-stdout")).to_have_text("begun")
    page.get_by_role("button", name="Stop").click()
    while len(held) < 2:
        page.wait_for_timeout(50)
    held[1].continue_()
    expect(yours(page, 1)).to_contain_text("KeyboardInterrupt")
    typed(page, 1, "import time\n\nprint('anew', flush=True)\ntime.sleep(2)\nprint('ended')")
    page.wait_for_timeout(1000)
    held[0].continue_()
    expect(yours(page, 1).locator(".live-stdout")).to_have_text(re.compile("anew\\s+ended"))
    expect(yours(page, 1)).not_to_contain_text("KeyboardInterrupt")


@pytest.mark.slow
def test_what_is_interrupted_before_it_begins_has_ended(open_: Callable[..., Visit]) -> None:
    page = open_().page
    dropped: list[object] = []  # replies: a kernel that is interrupted before it runs the code of a request sends none

    def connect(socket: WebSocketRoute) -> None:
        def take(message: str | bytes) -> None:
            lost = '"KeyboardInterrupt"' in str(message) and '"execute_reply"' in str(message)
            dropped.append(message) if lost else socket.send(message)

        socket.connect_to_server().on_message(take)

    page.route_web_socket("**/channels*", connect)
    run(page, 1)
    expect(yours(page, 1)).to_contain_text("Equal")
    typed(page, 1, "print('begun', flush=True)\nwhile True: pass")
    expect(yours(page, 1).locator(".live-stdout")).to_have_text("begun")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("Stopped.")
    assert dropped
    typed(page, 1, "print('anew')")
    expect(yours(page, 1).locator(".live-stdout")).to_have_text("anew")


def test_edits_and_verdicts_come_back(open_: Callable[..., Visit], served: Served) -> None:
    page = open_("practice/speed/").page
    page.get_by_role("button", name="Edit block 2").click()
    answer = "def tax(income):\n    return 0.3 * income\n"
    code(page, 2).fill(answer)
    page.get_by_role("button", name="Check tax").click()
    expect(yours(page, 2).locator(".live-verdict")).to_contain_text("tax: ")
    page.reload()
    expect(code(page, 2)).to_have_value(answer)
    expect(yours(page, 2)).to_contain_text("Checked before:")
    expect(page.get_by_text("Your edit, as you left it")).to_be_visible()
    page.get_by_role("link", name="Home", exact=True).first.click()  # in place
    expect(page).to_have_title(re.compile("^Home|^Small"))
    page.go_back()
    expect(code(page, 2)).to_have_value(answer)

    other = page.context.new_page()
    other.goto(page.url)
    expect(code(other, 2)).to_have_value(answer)
    code(page, 2).fill("def tax(income):\n    return 1.0\n")
    expect(code(other, 2)).to_have_value(re.compile("1.0"))
    other.close()

    page.get_by_role("button", name="Put back the original of block 2").click()
    page.get_by_role("button", name="Undo").click()
    expect(code(page, 2)).to_have_value(re.compile("1.0"))
    page.get_by_role("button", name="Your edits", exact=True).click()
    panel = page.get_by_role("region", name="Your edits")
    expect(panel.get_by_role("link", name="Practice")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.dismiss())
    panel.get_by_role("button", name="Clear your edits of Practice").click()
    expect(panel.get_by_role("link", name="Practice")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    panel.get_by_role("button", name="Clear your edits of Practice").click()
    expect(panel).to_contain_text("This browser keeps no edits of yours.")
    expect(code(page, 2)).to_have_value(re.compile("NotImplemented"))
    expect(page.get_by_text("Cleared. Undo")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Edit block 2").wait_for()
    expect(code(page, 2)).to_have_count(0)


def test_what_is_kept_is_reached_from_every_page_and_cleared_by_buttons(open_: Callable[..., Visit]) -> None:
    page = open_("").page
    mine = page.get_by_role("button", name="your edits", exact=True)
    expect(page.get_by_role("button", name="run it here")).to_be_visible()
    expect(mine).to_have_count(0)  # nothing is kept
    page.evaluate(
        """localStorage.setItem("live-edits:/basics/light/", JSON.stringify(
          { title: "Light", blocks: { "block-1": { code: "x = 1", original: "0", section: "First" } } }))"""
    )
    page.reload()
    mine.click()
    panel = page.get_by_role("region", name="Your edits")
    expect(panel.get_by_role("link", name="Light", exact=True)).to_be_visible()
    expect(page.locator(".live-editor")).to_have_count(0)
    page.get_by_role("link", name="Kept", exact=True).first.click()  # in place
    kept = page.locator("[data-live-edits]")
    for name in ("Clear your edits of Light", "Clear all"):
        button = kept.get_by_role("button", name=name)
        expect(button).to_have_css("border-top-style", "solid")
        expect(button).to_have_css("cursor", "pointer")
    page.reload()
    expect(kept.get_by_role("button", name="Clear all")).to_have_css("border-top-style", "solid")
    page.once("dialog", lambda dialog: dialog.accept())
    kept.get_by_role("button", name="Clear all").click()
    expect(kept).to_have_text("This browser keeps no edits of yours.")


def test_what_two_tabs_write_into_one_block_is_lost_in_neither(open_: Callable[..., Visit]) -> None:
    one = open_("practice/speed/").page
    two = one.context.new_page()
    two.goto(one.url)
    for page, text in ((one, "one = 1"), (two, "two = 2")):
        page.get_by_role("button", name="Edit block 2").click()
        code(page, 2).fill(text)
    expect(one.get_by_text("Another tab has changed this block")).to_be_visible()
    expect(code(one, 2)).to_have_value("one = 1")
    one.get_by_role("button", name="Take that").click()
    expect(code(one, 2)).to_have_value("two = 2")
    one.get_by_role("button", name="Edit block 3").click()
    code(two, 2).fill("two = 3")
    expect(code(one, 2)).to_have_value("two = 3")
    expect(one.get_by_text("As another tab has changed it.")).to_be_visible()
    one.get_by_role("button", name="Undo").click()
    expect(code(one, 2)).to_have_value("two = 2")


def test_a_browser_that_keeps_nothing_says_so_and_still_judges(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError'); }; }")
    page.get_by_role("button", name="Edit block 2").click()
    code(page, 2).fill("def tax(income): return 1.0")
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("has no room for your edits")
    page.evaluate("import('/javascripts/exercises.js').then(({ solved }) => solved('tax'))")
    page.evaluate("import('/assets/livepages/run/access.js').then(({ cut, panel }) => { panel([], () => {}); cut(); })")


def test_blocks_that_cannot_be_loaded_say_so_and_run_when_the_site_answers(open_: Callable[..., Visit]) -> None:
    page = open_().page
    note = page.get_by_text("Running and editing could not be loaded")
    page.route("**/run/page.js", lambda route: route.abort("connectionrefused"))
    page.get_by_role("button", name="Edit block 1", exact=True).click()
    expect(note).to_be_visible()
    page.unroute("**/run/page.js")
    page.route("**/*.ipynb", lambda route: route.abort("connectionrefused"))
    page.reload()
    page.get_by_role("button", name="Edit block 1", exact=True).click()
    expect(note).to_be_visible()
    page.unroute("**/*.ipynb")
    page.get_by_role("button", name="Edit block 1", exact=True).click()
    expect(code(page, 1)).to_be_focused()
    expect(note).to_have_count(0)


def test_a_page_that_is_older_than_its_program_asks_to_be_loaded_again(open_: Callable[..., Visit]) -> None:
    page = open_().page
    page.locator(".live-anchor").first.evaluate("anchor => { anchor.id = 'older'; }")
    page.get_by_role("button", name="Edit block 1", exact=True).click()
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("Reload the page to run it")


def test_what_goes_back_to_the_kernel_is_no_longer_than_a_server_takes(open_: Callable[..., Visit]) -> None:
    length = """import('/assets/livepages/run/output.js').then(({ Output }) => {
      const output = new Output(document.createElement("div"));
      for (let i = 0; i < 3; i++) output.take("stream", { name: "stdout", text: "x".repeat(700_000) });
      return output.stdout.length;
    })"""
    assert open_().page.evaluate(length) == 1_000_000


@pytest.mark.slow
def test_a_kernel_that_does_not_start_is_given_up(open_: Callable[..., Visit]) -> None:
    page = open_("").page
    bar = page.get_by_role("region", name="Run it here")
    held = reader.hold(page, "**/api/kernels")
    with page.expect_request("**/api/kernels", timeout=reader.HANG):  # the server may take long to start
        run(page, 1)
    expect(bar).to_contain_text("Starting a kernel")
    bar.get_by_role("button", name="Stop").click()
    expect(bar).to_contain_text("has not started a kernel yet")
    bar.get_by_role("button", name="Restart").click()
    page.unroute("**/api/kernels")
    page.get_by_role("button", name="Run block 1", exact=True).click()
    expect(yours(page, 1)).to_contain_text("Equal to the published output.")
    assert held


def test_an_edit_follows_its_code_and_says_that_the_published_one_changed(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    for number in (2, 3):
        page.get_by_role("button", name=f"Edit block {number}").click()
        code(page, number).fill(f"mine = {number}")
    key = "live-edits:/practice/speed/"
    page.evaluate(
        """key => {
          const kept = JSON.parse(localStorage[key]);
          const [[first, one], [second, two]] = Object.entries(kept.blocks);
          kept.blocks = { gone: one, [second]: { ...two, original: "another" } };
          localStorage[key] = JSON.stringify(kept);
        }""",
        key,
    )
    page.reload()
    expect(code(page, 2)).to_have_value("mine = 2")
    expect(code(page, 3)).to_have_value("mine = 3")
    expect(page.get_by_text("The published code has changed since you edited it")).to_have_count(1)


@pytest.mark.slow
def test_two_tabs_have_kernels_of_their_own_which_end_with_them(open_: Callable[..., Visit], served: Served) -> None:
    one, two = open_("basics/eight/").page, open_("").page
    for page in (one, two):
        run(page, 1)
        expect(yours(page, 1)).to_contain_text("Equal")
    expect(yours(one, 1).locator(".live-stdout")).to_have_text("8")
    expect(yours(one, 1)).to_contain_text("8 × cpu")
    typed(two, 1, "print('jnp' in globals())")
    expect(yours(two, 1).locator(".live-stdout")).to_have_text("False")
    before = len(children(served.jupyter))
    two.goto(served.base + "basics/light/")
    until(lambda: len(children(served.jupyter)) < before)
    one.get_by_role("link", name="Light", exact=True).first.click()  # in place
    expect(one.get_by_role("heading", name="Light")).to_be_visible()
    until(lambda: len(children(served.jupyter)) == before - 2)


def test_with_the_keyboard_alone_on_a_phone_and_with_what_axe_asks_for(open_: Callable[..., Visit]) -> None:
    visit = open_(view=PHONE)
    page = visit.page
    page.get_by_role("button", name="Run block 1", exact=True).focus()
    page.keyboard.press("Enter")
    expect(code(page, 1)).to_be_focused()
    expect(yours(page, 1)).to_contain_text("Equal to the published output.")
    page.keyboard.press("Control+Home")
    page.keyboard.press("Tab")
    expect(code(page, 1)).to_have_value(re.compile("^    import warnings"))
    page.keyboard.press("Shift+Tab")
    expect(code(page, 1)).to_have_value(re.compile("^import warnings"))
    page.keyboard.press("Shift+Enter")
    expect(code(page, 2)).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(yours(page, 2)).to_contain_text("Equal to the published output.")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Run block 2", exact=True)).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE.width

    run(page, 3)
    expect(yours(page, 3)).to_contain_text("Equal to the published output.")
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert visit._axe({"runOnly": list(reader.WCAG)}) == []


@pytest.mark.slow
def test_all_runs_and_the_record_is_one_of_the_project(open_: Callable[..., Visit], served: Served) -> None:
    page = open_().page
    page.get_by_role("button", name="run it here").click()
    bar = page.get_by_role("region", name="Run it here")
    expect(bar).to_contain_text("All ran: 8 of 8 blocks gave what is published.")
    expect(yours(page, 4).locator(".live-stdout")).to_have_text(re.compile(r"^> False a line \{"))
    expect(yours(page, 6)).to_contain_text("It ended as published")
    with page.expect_download() as loading:
        bar.get_by_role("button", name="Download this host's record").click()
    with zipfile.ZipFile(loading.value.path()) as archive:
        archive.extractall(served.root)
    try:
        project = find_project(served.root)
        read = read_page(project.docs / "basics" / "light.md", project)
        records = Records(project)
        assert not records.problems([read])
        assert records.hosts[0].computer == project.runtime.computer
        seen = records.seen(read)
        assert [seen(block)[0].entry.outcome for block in read.program] == ["ran"] * 3 + ["raised"] + ["ran"] * 4
        assert seen(read.blocks[2])[0].entry.stdout == "[ 0.  5. 10.]" and seen(read.blocks[2])[0].device == "cpu"
        assert seen(read.blocks[4])[0].entry.error.startswith("TypeError: ")
        assert [len(seen(block)) for block in read.program] == [1] * 8
    finally:
        shutil.rmtree(served.root / "records")


def test_exercises_are_solved_in_the_page(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    run(page, 2)
    expect(yours(page, 2)).to_contain_text("Equal")
    verdict = yours(page, 2).locator(".live-verdict")
    check = page.get_by_role("button", name="Check tax")
    check.click()
    expect(verdict).to_have_text("tax: not written yet")
    code(page, 2).fill("def tax(income):\n    return 0.2 * income\n")
    check.click()
    expect(verdict).to_contain_text("tax: ")
    expect(verdict).to_contain_text("expected")
    code(page, 2).fill("def tax(income):\n    while True: pass\n")
    check.click()
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("Examining tax")
    page.get_by_role("button", name="Stop").click()
    expect(verdict).to_contain_text("Stopped.")
    code(page, 2).fill("return 0.2 * income\n")  # one verdict on it, not one more on the stub
    check.click()
    expect(yours(page, 2).locator(".live-error")).to_contain_text("outside function")
    expect(verdict).to_have_text("tax: not examined, because its code raises an error")
    code(page, 2).fill(TAX)
    check.click()
    expect(verdict).to_contain_text("tax: right")
    expect(verdict.get_by_role("link", name="Next: gcd")).to_be_visible()
    heading = page.get_by_role("heading", name="Tax")
    expect(heading).to_have_class("live-solved")
    output = heading.evaluate("heading => getComputedStyle(heading, '::after').content")
    assert output == '" \N{CHECK MARK}\N{NO-BREAK SPACE}solved"'
    code(page, 2).fill("def tax(income):\n    return 0.0\n")
    expect(heading).not_to_have_class("live-solved")
    code(page, 2).fill(TAX)
    check.click()
    expect(heading).to_have_class("live-solved")
    code(page, 2).fill("def tax(income):\n    return 0.0\n")
    solve(page, 3, "gcd", GCD)
    expect(yours(page, 3).get_by_role("link", name="Next: Scaler")).to_be_visible()  # not back to the first
    solve(page, 4, "Scaler", SCALER)
    expect(yours(page, 4).get_by_role("link", name="Next: tax")).to_be_visible()
    code(page, 4).fill("class Scaler: pass\n")
    code(page, 2).fill(TAX)
    check.click()
    expect(heading).to_have_class("live-solved")
    page.reload()
    expect(page.get_by_role("heading", name="Tax")).to_have_class("live-solved")
    expect(page.get_by_role("heading", name="Largest")).to_have_class("live-solved")
    expect(page.get_by_role("heading", name="Scaler")).not_to_have_class("live-solved")
    expect(code(page, 4)).to_have_value("class Scaler: pass\n")  # with a Run of its own
    solve(page, 4, "Scaler", SCALER)
    expect(yours(page, 4).get_by_role("link", name="All exercises")).to_have_attribute(
        "href", re.compile("/practice/practice/$")
    )
    expect(page.get_by_role("heading", name="Scaler")).to_have_class("live-solved")


def test_a_verdict_is_on_the_code_that_is_seen(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    solve(page, 3, "gcd", GCD)
    verdict = yours(page, 3).locator(".live-verdict")
    pasted = GCD.replace("gcd(a, b)", "solution(a, b)", 1) + '\nexamine(solution, "gcd")\n'
    for other in ("def gcd_new(a, b): return 12345", pasted):
        code(page, 3).fill(other)
        page.get_by_role("button", name="Check gcd").click()
        expect(verdict).to_have_text("gcd: this code does not define gcd; your answer must have that name")
    expect(page.get_by_role("heading", name="Largest")).not_to_have_class("live-solved")


def test_what_is_solved_is_shown_at_the_top_and_in_the_contents(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    progress, contents = page.locator(".live-progress"), page.locator(".md-nav--secondary .live-solved:visible")

    def do(act: str) -> None:
        page.evaluate(f"import('/javascripts/exercises.js').then(exercises => exercises.{act})")

    page.get_by_role("button", name="Check tax").wait_for()
    expect(progress).to_have_count(0)
    do("solved('tax', 'place')")
    for _ in range(2):
        expect(progress).to_have_text("1 of 3 solved; next: gcd")
        expect(progress.get_by_role("link")).to_have_attribute("href", "#gcd")
        expect(contents).to_have_text("Tax")
        mark = "link => getComputedStyle(link.querySelector('.md-ellipsis'), '::after').content"
        assert contents.evaluate(mark) == '" \N{CHECK MARK}"'
        page.reload()
    do("solved('gcd', 'place')")
    do("solved('Scaler', 'place')")
    expect(progress).to_have_text("3 of 3 solved")
    do("changed('tax', 'place')")
    expect(progress).to_have_text("2 of 3 solved; next: tax")
    do("forget()")
    expect(progress).to_have_count(0)
    expect(contents).to_have_count(0)


def test_check_is_offered_whichever_script_comes_last(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    held = reader.hold(page, "**/livepages/live.js")
    page.reload(wait_until="domcontentloaded")
    page.evaluate("import('/javascripts/exercises.js').then(() => new Promise(requestAnimationFrame))")
    expect(page.locator(".live-check")).to_have_count(0)
    for route in held:
        route.continue_()
    expect(page.get_by_role("button", name="Check tax")).to_be_visible()


@pytest.mark.slow
def test_a_score_counts_the_answers_and_runs_nothing_else(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    solve(page, 3, "gcd", GCD)
    page.get_by_role("button", name="Edit block 5").click()
    code(page, 5).fill("raise ValueError")
    page.reload()
    code(page, 5).wait_for()
    run(page, 6)
    score, status = yours(page, 6).locator(".live-stdout"), yours(page, 6).locator(":scope > .live-note")
    expect(score).to_contain_text("1 of 3 right, 2 not written yet")
    expect(status).to_have_text(re.compile(r"^Yours: .* s\. 1 of 3 solved in this browser\.$"))
    page.get_by_role("button", name="Put back the original of block 3").click()
    run(page, 6)
    expect(score).to_contain_text("0 of 3 right")
    expect(status).to_contain_text("0 of 3 solved")


@pytest.mark.slow
def test_one_check_at_a_time_says_what_it_does_until_its_verdict(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    solve(page, 3, "gcd", GCD)
    box, check = yours(page, 3), page.get_by_role("button", name="Check gcd")
    verdict, status = box.locator(".live-verdict"), box.locator(":scope > .live-note")
    page.evaluate(SAID)
    code(page, 3).fill("print('once')\ndef gcd(a, b):\n    while True: pass\n")
    check.evaluate("check => { for (let press = 0; press < 3; press += 1) check.click(); }")
    expect(check).to_be_disabled()
    assert page.evaluate("said")[0] == "Checking …"  # in the place of the verdict on other code
    expect(status).to_have_text("Examining … (it ends after 60 seconds of computing; Stop ends it now)")
    expect(verdict).to_have_count(0)
    code(page, 3).fill(GCD)  # while the loop is judged
    page.get_by_role("button", name="Stop").click()
    expect(verdict).to_have_text("Stopped. This is on what stood here when you pressed Check.")
    expect(status).to_contain_text("Yours: ")
    expect(check).to_be_enabled()
    output = page.evaluate("said")
    assert [words for words in output if "Yours: " in words] == output[-1:] and output.count("Checking …") == len(
        output
    ) - 2
    expect(page.get_by_role("heading", name="Largest")).not_to_have_class("live-solved")
    check.click()
    expect(verdict).to_contain_text("gcd: right")
    expect(page.get_by_role("heading", name="Largest")).to_have_class("live-solved")

    page.get_by_role("button", name="Edit block 4").click()
    code(page, 4).fill("class Scaler:\n    def __init__(self, factor):\n        while True: pass\n")
    page.get_by_role("button", name="Check Scaler").click()
    expect(yours(page, 4)).to_contain_text("Examining …")
    page.get_by_role("button", name="Restart").click()
    expect(page.get_by_role("button", name="Check Scaler")).to_be_enabled()
    expect(page.get_by_text("Checking …")).to_have_count(0)
    expect(verdict).to_contain_text("gcd: right")


def test_an_exercise_is_solved_on_a_page_of_the_course_which_does_not_carry_the_examiner(
    open_: Callable[..., Visit],
) -> None:
    page = open_("basics/own/").page
    page.get_by_role("button", name="Check tax").click()  # without Edit before
    verdict = yours(page, 2).locator(".live-verdict")
    expect(verdict).to_have_text("tax: not written yet")
    code(page, 2).fill(TAX)
    page.get_by_role("button", name="Check tax").click()
    expect(verdict).to_contain_text("tax: right")
    expect(verdict.get_by_role("link", name="All exercises")).to_be_visible()
    expect(page.locator(".filename.live-solved")).to_have_text("tax: warm-up")
    page.goto(page.url.replace("basics/own", "practice/speed"))  # where there is a stub still
    expect(page.get_by_role("heading", name="Tax")).to_have_class("live-solved")
    page.get_by_text("You solved it on").get_by_role("link").click()
    expect(code(page, 2)).to_have_value(TAX)
    page.get_by_role("button", name="Your edits", exact=True).click()
    expect(page.get_by_role("region", name="Your edits").locator("summary")).to_have_text("Own")


@pytest.mark.slow
def test_an_answer_that_ends_its_process_is_wrong(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    page.get_by_role("button", name="Check gcd").click()
    verdict = yours(page, 3).locator(".live-verdict")
    expect(verdict).to_have_text("gcd: not written yet")
    loop = "jax.lax.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, 0)"
    # As if the interruption came while the loop runs, which before would end Python's code.
    soon = "import types\n\nimport examiner.limit as it\n\nit.SECONDS, it.GRACE = 0.1, 0.1\n"
    soon += "it._thread = types.SimpleNamespace(interrupt_main=lambda: None)\n"
    code(page, 3).fill(f"{soon}\ndef gcd(a, b):\n    return {loop}\n")
    page.get_by_role("button", name="Check gcd").click()
    expect(verdict).to_contain_text("Does the condition of its while_loop ever become false?")
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("The kernel has died")


@pytest.mark.slow
def test_an_exercise_runs_with_imports_and_what_its_code_reads(open_: Callable[..., Visit]) -> None:
    page = open_("practice/speed/").page
    bar = page.get_by_role("region", name="Run it here")
    run(page, 3)
    expect(yours(page, 3)).to_contain_text("Equal")
    names = 'print([name in globals() for name in ("jnp", "rate", "tax")])'
    typed(page, 3, f"{names}; used = jnp")
    expect(yours(page, 3).locator(".live-stdout")).to_contain_text("[True, False, False]")
    typed(page, 3, f"{names}; rated = lambda: rate")
    expect(yours(page, 3).locator(".live-stdout")).to_contain_text("[True, True, False]")
    run(page, 5)  # which is no exercise
    expect(yours(page, 5).locator(".live-stdout")).to_have_text("rate 0.2")
    page.get_by_role("button", name="Run block 3").click()
    expect(yours(page, 3).locator(".live-stdout")).to_contain_text("[True, True, True]")
    expect(bar).to_contain_text("Connected")


def solve(page: Page, number: int, name: str, answer: str) -> None:
    """Write a right answer in the place of a stub, and have it checked."""
    run(page, number)
    code(page, number).fill(answer)
    page.get_by_role("button", name=f"Check {name}").click()
    expect(yours(page, number).locator(".live-verdict")).to_contain_text(f"{name}: right")


@pytest.mark.slow
def test_a_server_that_is_gone_is_reported_and_the_next_run_starts_another(
    open_: Callable[..., Visit], served: Served
) -> None:
    page = open_("").page
    run(page, 1)
    expect(yours(page, 1)).to_contain_text("Equal")
    typed(page, 1, "import os; os._exit(3)")
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("The kernel has died")
    typed(page, 1, "import sys; del sys.modules['_live_kernel_bridge']")
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("Restart ends it")
    page.get_by_role("button", name="Restart").click()
    typed(page, 1, "print('on')\nwhile True: pass")
    expect(yours(page, 1).locator(".live-stdout")).to_have_text("on")
    os.kill(served.jupyter, signal.SIGKILL)
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("connection to the Jupyter server is lost")
    expect(yours(page, 1)).to_contain_text("Stopped: The connection")
    typed(page, 1, "print('anew')")
    expect(yours(page, 1).locator(".live-stdout")).to_have_text("anew")
    os.kill(served.jupyter, signal.SIGKILL)  # while nothing runs
    expect(page.get_by_role("region", name="Run it here")).to_contain_text("connection to the Jupyter server is lost")


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_reported(open_: Callable[..., Visit], served: Served) -> None:
    page = open_("").page
    bar = page.get_by_role("region", name="Run it here")
    run(page, 1)
    expect(yours(page, 1)).to_contain_text("Equal")
    restart = page.get_by_role("button", name="Restart")
    for starts in (False, True):
        os.kill(served.jupyter, signal.SIGSTOP)
        try:
            restart.click() if starts else code(page, 1).fill("import time; time.sleep(1)")
            page.get_by_role("button", name="Run block 1").click()
            expect(bar).to_contain_text("does not answer")
        finally:
            os.kill(served.jupyter, signal.SIGCONT)
        expect(bar).to_contain_text("Connected")


@pytest.mark.parametrize("view", [WIDE, PHONE], ids=str)
def test_how_to_start_a_server_is_in_view_from_its_beginning(
    open_: Callable[..., Visit], served: Served, view: View
) -> None:
    with reader.serve(served.root / "site") as base:
        page = open_(view=view, base=base).page
        run(page, 2)
        panel = page.get_by_role("region", name="Run on your own machine")
        expect(panel.get_by_role("button", name="Copy")).to_be_focused()
        header = page.locator(".md-header").bounding_box()
        expect(panel.get_by_text("Paste this into a terminal")).to_be_in_viewport()
        box = panel.bounding_box()
        assert header and box and box["y"] >= header["y"] + header["height"]


@pytest.mark.slow
def test_a_published_page_runs_on_a_server_that_the_reader_starts(
    open_: Callable[..., Visit], served: Served, tmp_path: Path
) -> None:
    site = served.root / "site"
    texts = [file.read_bytes() for file in site.rglob("*.html")]
    assert not [text for text in texts if b"live-kernels" in text]
    with reader.serve(site) as base:
        visit = open_(base=base)
        page = visit.page
        run(page, 2)
        bar = page.get_by_role("region", name="Run it here")
        for name, count in (("Disconnect", 0), ("Stop", 0), ("Hide", 1)):  # there is no server yet
            expect(bar.get_by_role("button", name=name)).to_have_count(count)
        bar.get_by_role("button", name="Hide").click()
        expect(bar).to_have_count(0)
        panel = page.get_by_role("region", name="Run on your own machine")
        shown = panel.locator("code")
        expect(shown).to_contain_text("PYTHONHASHSEED=0 uv run")
        command = shown.text_content() or ""
        assert "uv run --no-project --with jupyter-server --with ipykernel --with jax==" in command
        panel.get_by_label("Device").select_option("cuda13")
        expect(shown).to_contain_text('"jax[cuda13]==')
        panel.get_by_label("Install with").select_option("pip")
        expect(shown).to_contain_text("python -m pip install")
        panel.get_by_role("button", name="Connect").click()
        expect(panel.get_by_role("status")).to_contain_text("Nothing answers at http://127.0.0.1:")

        token = re.search(r"JUPYTER_TOKEN=(\S+)", command)
        assert token
        server = shlex.split(command[command.index("jupyter-server --no-browser") :])[1:]
        assert f"--ServerApp.allow_origin={base.rstrip('/')}" in server
        log = (tmp_path / "log").open("w")
        for right in (False, True):
            process = subprocess.Popen(
                [sys.executable, "-m", "jupyter_server", "--allow-root", *server],
                cwd=tmp_path,
                env={**os.environ, "JUPYTER_TOKEN": token[1] if right else "wrong", "JUPYTER_NO_CONFIG": "1"},
                stderr=log,
                stdout=log,
            )
            try:
                port = next(int(part.partition("=")[2]) for part in server if ".port=" in part)
                until(lambda port=port: listens(port))  # type: ignore[misc]
                program = reader.hold(page, PROGRAM)
                panel.get_by_role("button", name="Connect").click()
                if not right:
                    expect(panel.get_by_role("status")).to_contain_text("refuses this page: another command started it")
                    continue
                expect(panel).to_have_count(0)
                expect(bar.get_by_role("status")).to_have_text("Starting a kernel …")
                while not program:
                    page.wait_for_timeout(50)
                program[0].continue_()
                page.unroute(PROGRAM)
                expect(yours(page, 2)).to_contain_text("Equal to the published output.")
                page.reload()
                visit.settle()  # until the page has returned to the text that was in view, a click may miss its button
                run(page, 1)  # the tab remembers
                expect(yours(page, 1)).to_contain_text("Equal to the published output.")
                page.get_by_role("button", name="Disconnect").click()
                expect(page.get_by_role("region", name="Run it here")).to_contain_text("Disconnected")
                page.get_by_role("button", name="Run block 1", exact=True).click()
                expect(panel).to_be_visible()
                expect(shown).to_contain_text(token[1])  # so that the same command will do
            finally:
                process.terminate()
                process.wait(HANG)
        log.close()
        assert token[1] not in (tmp_path / "log").read_text()
        assert not [request.url for request in visit.requests if token[1] in request.url]
        assert token[1] not in page.url and not [c for c in page.context.cookies(base) if token[1] in str(c)]
        visit.complaints.clear()  # refused connections


def listens(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0
