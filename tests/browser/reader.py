"""A reader's side of the site: built, served as static hosts do, opened in Chromium, looked at by axe."""

import gzip
import mimetypes
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Request, Route, ViewportSize

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1/"  # that the site is built for
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox",  # which Chromium has none of for root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
# The last three are popups of the address bar: two pages more in each window that is opened, and half of the processor time of
# a visit. The others are what Playwright turns off, whose own switch has no effect beside this one.
UNUSED = (
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
    *("ThirdPartyStoragePartitioning", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxPopup"),
)
HANG = 60_000  # milliseconds that only what never comes takes, on a machine that is very busy too
TEXT, ALL = 82 * 1024, 160 * 1024  # bytes that the first load of a page may take, without and with its figures
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
COLORS = ("color-contrast", "link-in-text-block")  # the rules that compare colors


@dataclass(frozen=True)
class View:
    """One way to look at a page."""

    scheme: Literal["light", "dark"]
    width: int

    def __str__(self) -> str:
        return f"{self.scheme}, {self.width} px"

    @property
    def viewport(self) -> ViewportSize:
        """The size of its window."""
        return {"width": self.width, "height": 844 if self.width < 600 else 900}

    def open(self, browser: Browser, **options: Any) -> BrowserContext:
        """A fresh profile of the browser that looks at pages this way."""
        context = browser.new_context(
            color_scheme=self.scheme, viewport=self.viewport, reduced_motion="reduce", **options
        )
        context.set_default_timeout(HANG)
        return context


VIEWS = (View("light", 1280), View("dark", 390), View("dark", 1280), View("light", 390))


# --- the site, and a host for it ----------------------------------------------------------------------------------


def build(folder: Path, strictly: bool = True) -> str:
    """Build the site into a folder; return the output of the build if it failed.

    Args:
        folder: where to.
        strictly: as it is published. Otherwise a page that fails is shown with its failure, as while serving, and none
            runs whose run is known.
    """
    arguments = ["mkdocs", "build", "--strict", "--site-dir"] if strictly else ["tests.browser.build_anyway"]
    done = subprocess.run(
        [sys.executable, "-m", *arguments, str(folder)],
        cwd=ROOT,
        env={**os.environ, "SITE_URL": ADDRESS, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
    return "\n".join(output) if done.returncode else ""  # with --quiet MkDocs would not count warnings


def urls(folder: Path) -> list[str]:
    """Every page of a built site, as its address below the root."""
    files = (file.relative_to(folder).as_posix() for file in folder.rglob("*.html"))
    return sorted(name.removesuffix("index.html") for name in files)


def hold(page: Page, address: str) -> list[Route]:
    """Hold back the requests for this address, and return them; `continue_` sends one on."""
    held: list[Route] = []

    def keep(route: Route) -> None:
        held.append(route)

    page.route(address, keep)
    return held


@cache
def _compressed(file: Path, address: str) -> bytes:
    content = file.read_bytes()
    if file.name == "sitemap.xml":  # by which the theme knows which addresses it may go to without a reload
        content = content.replace(ADDRESS.encode(), address.encode())
    return gzip.compress(content, mtime=0)


class _Host(ThreadingHTTPServer):
    """A server of a folder on any free port."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.folder, self.address = folder, f"http://127.0.0.1:{self.server_port}/"


class _Answer(BaseHTTPRequestHandler):
    """Answers as static hosts send them: text compressed, kept for ten minutes, and a page for what is not there."""

    protocol_version = "HTTP/1.1"
    server: _Host

    def do_GET(self) -> None:  # noqa: N802  (the name is http.server's)
        folder = self.server.folder
        file = folder / self.path.partition("?")[0].strip("/")
        if file.is_dir():
            file /= "index.html"
        found = file.is_file()
        if not found:
            file = folder / "404.html"
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        text = kind.startswith("text/") or kind.rpartition("/")[2] in ("javascript", "json", "xml")
        content = _compressed(file, self.server.address) if text else file.read_bytes()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        if text:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a built site, and return its address, which ends with a slash."""
    server = _Host(folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.address
    finally:
        server.shutdown()
        server.server_close()


# --- the browser --------------------------------------------------------------------------------------------------


def launch(playwright: Playwright) -> Browser:
    """The Chromium of this machine."""
    unused = f"--disable-features={','.join(UNUSED)}"
    return playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, unused])


class Visit:
    """A page of the site in a browser; keeps the browser's complaints and requests."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.page: Page = context.new_page()
        self._window = context.new_cdp_session(self.page)
        self.base = base
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        self._sizes: dict[str, int] = {}  # of what may be kept, when it came over the wire
        self.page.on("request", self._requested)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on(
            "console",
            lambda message: self.complaints.append(f"console: {message.text}") if message.type == "error" else None,
        )

    def _requested(self, request: Request) -> None:
        self.requests.append(request)

    @property
    def foreign(self) -> list[str]:
        """The requests to anybody but the site's own host."""
        return [r.url for r in self.requests if not r.url.startswith((self.base, "data:", "blob:"))]

    @property
    def size(self) -> int:
        """The bytes received over the wire so far, without the search indexes and the worker that reads them."""
        by_url: dict[str, list[Request]] = {}
        for request in self.requests:
            if not re.search(r"/search/\w+\.json$|/workers/search\.", request.url):
                by_url.setdefault(request.url, []).append(request)
        for url in by_url.keys() - self._sizes.keys():
            sizes = [request.sizes() for request in by_url[url]]
            self._sizes[url] = sum(size["responseHeadersSize"] + size["responseBodySize"] for size in sizes)
        return sum(self._sizes[url] for url in by_url)

    @property
    def figures(self) -> int:
        """The part of `size` that is drawn in the page."""
        answer = self.requests[0].response()
        assert answer
        whole = answer.text()
        sizes = [len(gzip.compress(text.encode())) for text in (whole, re.sub("<svg.*?</svg>", "", whole, flags=re.S))]
        return sizes[0] - sizes[1]

    def go(self, url: str = "") -> "Visit":
        """Open a page of the site, and wait until everything that it asks for has come."""
        self.page.goto(self.base + url)
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until everything that has been asked for has come."""
        self.page.wait_for_load_state("networkidle")

    def again(self, url: str, view: View) -> "Visit":
        """Open another page of the site in the same profile, and take note of what it alone asks and complains about.

        What the pages share, the browser has by now, so `size` counts what it took when it came.
        """
        self.page.goto("about:blank")  # whatever the last page still waits for ends here
        self.page.set_viewport_size(view.viewport)
        self.requests.clear()
        self.complaints.clear()
        self.page.goto(self.base + url)
        return self

    def unfold(self) -> None:
        """Open everything that is folded, and let the theme see all code, which it sets up when it is in view."""
        page = self.page
        # The table of contents follows the text. Where it then stops, part of a link may be out of sight, and so too small.
        page.evaluate(
            "document.querySelectorAll('.md-sidebar__scrollwrap').forEach("
            "side => { side.scrollTo(0, 0); side.scrollTo = () => {}; })"
        )
        page.evaluate(
            "document.querySelectorAll('details').forEach(details => Object.assign(details, { name: '', open: true }))"
        )
        before = page.viewport_size
        assert before
        height = page.evaluate("document.documentElement.scrollHeight")
        for size in ({**before, "height": height}, before):
            # `set_viewport_size` would wait until all of it is painted, for more than a second.
            self._window.send("Emulation.setDeviceMetricsOverride", {**size, "deviceScaleFactor": 1, "mobile": False})
            page.locator("pre:not(:has(> nav)) > code").last.wait_for(state="detached")

    def violations(self, colors: bool = True) -> list[str]:
        """Return what axe finds wrong in the page, with every fold open: rule, and for each element its selector and why.

        Args:
            colors: whether to compare the color of every text with what is around it, which takes most of the time.
        """
        self.unfold()
        return self._axe({"runOnly": list(WCAG), "rules": {rule: {"enabled": colors} for rule in COLORS}})

    def _axe(self, options: dict[str, object]) -> list[str]:
        options |= {"resultTypes": ["violations"], "reporter": "no-passes", "preload": False}
        return [
            f"{violation['id']} ({violation['impact']}): {violation['help']}\n"
            + "\n".join(f"  {' '.join(map(str, node['target']))}\n    {_why(node)}" for node in violation["nodes"])
            for violation in Axe().run(self.page, options=options).response["violations"]
        ]


def _why(node: dict[str, Any]) -> str:
    return "; ".join(check["message"] for check in [*node["any"], *node["all"], *node["none"]])
