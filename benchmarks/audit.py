"""Audit of the built site: measure in Chromium what its readers get, against the bars that it has to clear.

    python -m benchmarks.audit [--runs 5] [--page basics/vmap/]...

Every page: requests to other hosts, errors in the console, bytes of the first load, axe in all views. Search: the time
to show the results of a query, and the first ones on a slow phone. Lighthouse, as on a phone, on every page, if npm is
there: a page that misses a bar at first is run again, and the median counts. The table goes to the terminal and to
``benchmarks/audit.md``, the details of what misses a bar to the terminal; the exit status is 1 if a bar is missed.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tests.browser import reader
from tests.browser.reader import CHROMIUM, FLAGS, VIEWS, Visit

LIGHTHOUSE = Path(__file__).parent / "lighthouse"
INSTALLED = reader.ROOT / ".cache" / "lighthouse"
# The categories of Lighthouse, and the bar of each, of 100.
SCORES = {"performance": 95, "accessibility": 100, "best-practices": 100, "seo": 100, "agentic-browsing": 100}
QUERIES = (
    *("jax.vmap", "jit", "grad", "at", "block_until_ready", "scan", "cond", "while_loop", "fori_loop", "random.split"),
    *("key", "PRNGKey", "tree.map", "static_argnums", "donate_argnums", "shard_map", "NamedSharding", "make_mesh"),
    *("PartitionSpec", "float64", "nan", "checkpoint", "custom_vjp", "pytree", "tracer", "recompilation", "memory"),
    *("pmap", "hessian", "Attempted boolean conversion of traced array with shape bool[]"),
)

# What Lighthouse takes for a slow line: 1.6 Mbit/s with 150 ms to the host, as the browser has to be told them.
SLOW_LINE = {"offline": False, "latency": 562.5, "downloadThroughput": 180_000, "uploadThroughput": 84_375}

# Runs one query in the page; resolves to the milliseconds until its results are in the list.
ASK = """query => new Promise(resolve => {
  const field = document.querySelector(".md-search__input"), list = document.querySelector(".md-search-result__list");
  const start = performance.now();
  const seen = new MutationObserver(() => {
    if (list.children.length) { seen.disconnect(); resolve(performance.now() - start); }
  });
  seen.observe(list, { childList: true });
  field.value = query;
  field.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
})"""


@dataclass(frozen=True)
class Line:
    """A row of the table: one measurement, its bar, and whether it clears the bar."""

    what: str
    where: str
    measured: str
    bar: str
    clears: bool

    def __str__(self) -> str:
        return f"| {self.what} | {self.where} | {self.measured} | {self.bar} | {'yes' if self.clears else '**no**'} |"


def pages(browser: Browser, base: str, urls: list[str]) -> Iterator[Line]:
    """Measure the first load of every page."""
    foreign, complaints = 0, 0
    limits = {"without figures": reader.TEXT, "in all": reader.ALL}
    largest = dict.fromkeys(limits, (0, ""))
    for url in urls:
        seen = Visit(VIEWS[0].open(browser), base).go(url)
        foreign, complaints = foreign + len(seen.foreign), complaints + len(seen.complaints)
        for what, size in zip(limits, (seen.size - seen.figures, seen.size), strict=True):
            largest[what] = max(largest[what], (size, url))
            if size > limits[what]:
                print(f"/{url}: {size / 1024:.1f} KiB {what}", file=sys.stderr)
        for found in (*seen.foreign, *seen.complaints):
            print(f"/{url}: {found}", file=sys.stderr)
        seen.page.context.close()
    yield Line("requests to other hosts", f"{len(urls)} pages", str(foreign), "0", foreign == 0)
    yield Line("errors in the console", f"{len(urls)} pages", str(complaints), "0", complaints == 0)
    for what, limit in limits.items():
        size, url = largest[what]
        measured, bar = f"{size / 1024:.0f} KiB", f"≤ {limit / 1024:.0f} KiB"
        yield Line(f"first load, {what}, at most", f"/{url}", measured, bar, size <= limit)


def axe(base: str, urls: list[str]) -> Line:
    """Count the violations that axe finds on every page in every view, several pages at a time."""
    side_by_side = os.cpu_count() or 1

    def count(urls: list[str]) -> int:
        total = 0
        with sync_playwright() as playwright:
            browser = reader.launch(playwright)
            for url in urls:
                for view in VIEWS:
                    seen = Visit(view.open(browser), base).go(url)
                    found = seen.violations()
                    seen.page.context.close()
                    total += len(found)
                    if found:
                        print(f"/{url} in {view}:", *found, sep="\n", file=sys.stderr)
        return total

    with ThreadPoolExecutor(side_by_side) as pool:
        total = sum(pool.map(count, [urls[n::side_by_side] for n in range(side_by_side)]))
    return Line("axe violations", f"{len(urls)} pages, {len(VIEWS)} views", str(total), "0", total == 0)


def search(browser: Browser, base: str) -> Line:
    """Measure the time to show the results of a query, once the index has been read."""
    page = Visit(VIEWS[0].open(browser), base).go().page
    page.keyboard.press("/")
    page.evaluate(ASK, "warm")
    times = sorted(page.evaluate(ASK, query) for query in QUERIES)
    page.context.close()
    p95 = statistics.quantiles(times, n=20)[-1]
    measured = f"p50 {statistics.median(times):.0f} ms, p95 {p95:.0f} ms"
    return Line("search", f"{len(QUERIES)} queries", measured, "p95 ≤ 50 ms", p95 <= 50)


def first_search(browser: Browser, base: str) -> Line:
    """Measure the time from entering the search to its first results, as on a slow phone with a slow line."""
    page = Visit(VIEWS[1].open(browser), base).go("basics/vmap/").page
    session = page.context.new_cdp_session(page)
    session.send("Network.emulateNetworkConditions", SLOW_LINE)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    start = time.monotonic()
    page.locator("label.md-header__button[for=__search]").click()
    page.locator(".md-search__input").fill("how do I stop a loop early")
    page.locator(".md-search-result__item a[href*='#']:has(h2)").first.wait_for()
    took = time.monotonic() - start
    page.context.close()
    return Line("search, first results", "slow phone, slow 4G", f"{took:.1f} s", "≤ 4 s", took <= 4)


@dataclass(frozen=True)
class Result:
    """The result of running Lighthouse once on a page; a run that failed has a score of 0 in every category."""

    scores: dict[str, int]  # by category, of 100
    details: dict[str, int]  # milliseconds, and the speed of the machine during the run
    faults: list[str]

    @classmethod
    def of(cls, result: dict[str, Any]) -> "Result":
        """Take what is needed from Lighthouse's own result."""
        if error := result.get("runtimeError"):
            return cls(dict.fromkeys(SCORES, 0), {}, [error["message"]])
        audits, categories = result["audits"], result["categories"]
        details = {
            "paint": audits["largest-contentful-paint"].get("numericValue", 0),
            "blocked": audits["total-blocking-time"].get("numericValue", 0),
            "benchmark index": result["environment"]["benchmarkIndex"],
        }
        counted = [ref["id"] for name in SCORES for ref in categories[name]["auditRefs"] if ref["weight"]]
        verdicts = [audits[name] for name in sorted({*counted}) if audits[name]["scoreDisplayMode"] == "binary"]
        return cls(
            {name: round(100 * (categories[name]["score"] or 0)) for name in SCORES},
            {name: round(value) for name, value in details.items()},
            [audit["title"] for audit in verdicts if not audit["score"]],
        )


def install() -> None:
    """Install Lighthouse, and the Node that it needs, where they are not installed yet."""
    shutil.copytree(LIGHTHOUSE, INSTALLED, dirs_exist_ok=True)
    command = ["npm", "install", "--no-package-lock", "--loglevel=error"]
    if subprocess.run(command, cwd=INSTALLED, stdout=subprocess.DEVNULL, check=False).returncode:
        sys.exit(f"{INSTALLED}: npm could not install Lighthouse; it needs a registry of npm packages the first time")


@contextmanager
def started() -> Iterator[Callable[[str], Result]]:
    """Start Lighthouse; yield the function that runs it on the page at an address."""
    process = subprocess.Popen(
        [f"{INSTALLED}/node_modules/.bin/node", "run.js", "--headless=new", *FLAGS],
        cwd=INSTALLED,
        env={**os.environ, "CHROME_PATH": str(CHROMIUM)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin and stdout

        def run(address: str) -> Result:
            print(address, file=stdin, flush=True)
            if not (line := stdout.readline()):
                sys.exit(f"{address}: Lighthouse ended without a result; its message is above")
            return Result.of(json.loads(line))

        yield run


def lighthouse(base: str, urls: list[str], runs: int) -> Iterator[Line]:
    """Measure the lowest scores of any page; those of each page go to the terminal."""
    medians = {}
    with started() as run:
        for url in urls:
            seen = [run(base + url)]
            if any(seen[0].scores[name] < bar for name, bar in SCORES.items()):
                seen += [run(base + url) for _ in range(runs - 1)]
            medians[url] = {name: statistics.median(one.scores[name] for one in seen) for name in SCORES}
            for one in seen:
                print(f"/{url}", *one.scores.values(), one.details, *one.faults, file=sys.stderr)
    for name, bar in SCORES.items():
        url = min(urls, key=lambda url: medians[url][name])
        score = medians[url][name]
        at = f"{len(urls)} pages; lowest: /{url}" if score < 100 else f"{len(urls)} pages"
        yield Line(f"Lighthouse: {name}", at, f"{score:.0f}", f"≥ {bar}", score >= bar)


def main() -> None:
    """Build the site, serve it, measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of Lighthouse if the first misses a bar")
    parser.add_argument("--page", action="append", metavar="URL", help="look at this page alone, and write no table")
    options = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("there is no Chromium: neither chromium, chromium-browser nor google-chrome is a command")
    npm = shutil.which("npm")
    if npm:
        install()
        version = json.loads((LIGHTHOUSE / "package.json").read_text())["dependencies"]["lighthouse"]
        how = f"Lighthouse {version} as on a phone: one run, or the median of {options.runs} if it missed a bar."
    else:
        how = "Lighthouse was left out: there is no npm, which comes with Node."
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Path(folder) / "site"
        if report := reader.build(site):
            sys.exit(f"the site was not built:\n{report}")
        urls = options.page or reader.urls(site)
        with reader.serve(site) as base:
            browser = reader.launch(playwright)
            chromium = browser.version.partition(".")[0]
            lines += [*pages(browser, base, urls), axe(base, urls), search(browser, base)]
            lines.append(first_search(browser, base))
            browser.close()
            if npm:
                lines += lighthouse(base, urls, options.runs)
    head = (
        "# What readers get\n\n"
        f"The site of {len(urls)} pages in Chromium {chromium}; {os.cpu_count()} cores, {platform.system()}. {how} "
        "Made by `make audit`.\n\n"
        "| what | where | measured | bar | clears it |\n|---|---|---|---|---|\n"
    )
    report = head + "\n".join(map(str, lines)) + "\n"
    print(report)
    if not options.page:
        (Path(__file__).parent / "audit.md").write_text(report, encoding="utf-8")
    sys.exit(not all(line.clears for line in lines))


if __name__ == "__main__":
    main()
