"""What readers get: the built site in Chromium, against the bars that it has to clear.

    python -m benchmarks.audit [--runs 5] [--page basics/vmap/]...

Every page: requests to other hosts, axe in all views, bytes of the first load. Search: the time to show what a query
finds. Lighthouse (mobile) on every page, if Node is there: a page that misses a bar at first is run again, and the
median counts. The table goes to the terminal and to ``benchmarks/audit.md``; the exit status is 1 if a bar is missed.
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser import reader
from tests.browser.reader import CHROMIUM, FLAGS, VIEWS, Visit

LIGHTHOUSE = "lighthouse@12.8.2"  # the last that runs on Node 20
SCORES = {"performance": 95, "accessibility": 100, "best-practices": 100, "seo": 100}  # of 100, and the bar of each
QUERIES = (
    *("jax.vmap", "jit", "grad", "at", "block_until_ready", "scan", "cond", "while_loop", "fori_loop", "random.split"),
    *("key", "PRNGKey", "tree.map", "static_argnums", "donate_argnums", "shard_map", "NamedSharding", "make_mesh"),
    *("PartitionSpec", "float64", "nan", "checkpoint", "custom_vjp", "pytree", "tracer", "recompilation", "memory"),
    *("pmap", "hessian", "Attempted boolean conversion of traced array with shape bool[]"),
)

# Runs one query in the page, and gives the milliseconds until its results are in the list.
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
    """One measurement, and whether it clears its bar."""

    what: str
    where: str
    measured: str
    bar: str
    clears: bool

    def __str__(self) -> str:
        return f"| {self.what} | {self.where} | {self.measured} | {self.bar} | {'yes' if self.clears else '**no**'} |"


def pages(browser: Browser, base: str, urls: list[str]) -> Iterator[Line]:
    """What is asked of every page."""
    foreign, complaints = 0, 0
    text, everything = (0, ""), (0, "")
    for url in urls:
        seen = Visit(VIEWS[0].open(browser), base).go(url)
        foreign, complaints = foreign + len(seen.foreign), complaints + len(seen.complaints)
        text = max(text, (seen.size - seen.figures, url))
        everything = max(everything, (seen.size, url))
        seen.page.context.close()
    yield Line("requests to other hosts", f"{len(urls)} pages", str(foreign), "0", foreign == 0)
    yield Line("errors in the console", f"{len(urls)} pages", str(complaints), "0", complaints == 0)
    for what, (largest, url), limit in (("without figures", text, reader.TEXT), ("in all", everything, reader.ALL)):
        measured, bar = f"{largest / 1024:.0f} KiB", f"≤ {limit / 1024:.0f} KiB"
        yield Line(f"first load, {what}, at most", f"/{url}", measured, bar, largest <= limit)


def axe(base: str, urls: list[str]) -> Line:
    """Every page in every view, some side by side; what is found goes to the terminal."""
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
    """The time to show what a query finds, when the first one has been answered."""
    page = Visit(VIEWS[0].open(browser), base).go().page
    page.keyboard.press("/")
    page.evaluate(ASK, "warm")
    times = sorted(page.evaluate(ASK, query) for query in QUERIES)
    page.context.close()
    p95 = statistics.quantiles(times, n=20)[-1]
    measured = f"p50 {statistics.median(times):.0f} ms, p95 {p95:.0f} ms"
    return Line("search", f"{len(QUERIES)} queries", measured, "p95 ≤ 50 ms", p95 <= 50)


@dataclass(frozen=True)
class Result:
    """What one run of Lighthouse says of a page on a phone."""

    scores: dict[str, int]  # by category, of 100
    times: dict[str, float]  # milliseconds
    faults: list[str]

    @classmethod
    def of_run(cls, address: str) -> "Result":
        """Run it on the page at an address."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "result.json"
            command = ["npx", "--yes", LIGHTHOUSE, address, "--quiet", "--output=json", f"--output-path={out}"]
            flags = f"--chrome-flags={' '.join(('--headless=new', *FLAGS))}"
            subprocess.run([*command, flags], env={**os.environ, "CHROME_PATH": str(CHROMIUM)}, check=True)
            result = json.loads(out.read_text())
        audits = result["audits"]
        times = {
            "paint": audits["largest-contentful-paint"]["numericValue"],
            "blocked": audits["total-blocking-time"]["numericValue"],
        }
        weighed = {
            ref["id"] for category in result["categories"].values() for ref in category["auditRefs"] if ref["weight"]
        }
        faults = [
            audits[name]["title"]
            for name in sorted(weighed)
            if audits[name]["scoreDisplayMode"] == "binary" and not audits[name]["score"]
        ]
        return cls({name: round(100 * result["categories"][name]["score"]) for name in SCORES}, times, faults)


def lighthouse(base: str, urls: list[str], runs: int) -> Iterator[Line]:
    """The lowest scores of any page; those of each page go to the terminal."""
    medians = {}
    for url in urls:
        seen = [Result.of_run(base + url)]
        if any(seen[0].scores[name] < bar for name, bar in SCORES.items()):
            seen += [Result.of_run(base + url) for _ in range(runs - 1)]
        medians[url] = {name: statistics.median(one.scores[name] for one in seen) for name in SCORES}
        times = {name: round(statistics.median(one.times[name] for one in seen)) for name in seen[0].times}
        print(f"/{url}", [one.scores["performance"] for one in seen], times, *seen[0].faults, file=sys.stderr)
    for name, bar in SCORES.items():
        url = min(urls, key=lambda url: medians[url][name])
        score = medians[url][name]
        at = f"{len(urls)} pages; lowest: /{url}" if score < 100 else f"{len(urls)} pages"
        yield Line(f"Lighthouse: {name}", at, f"{score:.0f}", f"≥ {bar}", score >= bar)


def main() -> None:
    """Build, serve, look, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of Lighthouse if the first misses a bar")
    parser.add_argument("--page", action="append", metavar="URL", help="look at this page alone, and write no table")
    options = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("there is no Chromium: neither chromium, chromium-browser nor google-chrome is a command")
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Path(folder) / "site"
        if said := reader.build(site):
            sys.exit(f"the site was not built:\n{said}")
        urls = options.page or reader.urls(site)
        with reader.serve(site) as base:
            browser = reader.launch(playwright)
            version = browser.version
            lines += [*pages(browser, base, urls), axe(base, urls), search(browser, base)]
            browser.close()
            if shutil.which("npx"):
                lines += lighthouse(base, urls, options.runs)
            else:
                print("Lighthouse was left out: there is no Node (npx)", file=sys.stderr)
    head = (
        "# What readers get\n\n"
        f"The site of {len(urls)} pages in Chromium {version.partition('.')[0]}; {os.cpu_count()} cores, "
        f"{platform.system()}. Lighthouse on a phone: one run, or the median of {options.runs} if it missed a bar. "
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
