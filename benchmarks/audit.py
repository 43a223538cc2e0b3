"""What readers get: the built site in Chromium, against the bars that it has to clear.

    python -m benchmarks.audit [--runs 5] [--page express/vmap/]...

Every page: requests to other hosts, axe in all views, bytes of the first load. Search: the time to show what a query
finds. Lighthouse (mobile, the median of the runs) for a few pages, if Node is there. The table goes to the terminal
and to ``benchmarks/audit.md``; the exit status is 1 if a bar is missed.
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
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser import reader
from tests.browser.reader import CHROMIUM, FLAGS, VIEWS, Visit

LIGHTHOUSE = "lighthouse@12.8.2"  # the last that runs on Node 20
PAGES = ("", "express/vmap/", "build/diffusion/")  # the first, a page of text, and one of many figures
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


def axe(browser: Browser, base: str, urls: list[str]) -> Line:
    """Every page in every view; what is found goes to the terminal."""
    count = 0
    for url in urls:
        for view in VIEWS:
            seen = Visit(view.open(browser), base).go(url)
            found = seen.violations()
            seen.page.context.close()
            count += len(found)
            if found:
                print(f"/{url} in {view}:", *found, sep="\n", file=sys.stderr)
    return Line("axe violations", f"{len(urls)} pages, {len(VIEWS)} views", str(count), "0", count == 0)


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


def lighthouse(base: str, url: str, runs: int) -> Iterator[Line]:
    """The scores of a page on a phone."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = ["npx", "--yes", LIGHTHOUSE, base + url, "--quiet", "--output=json", f"--output-path={out}"]
        for _ in range(runs):
            subprocess.run(
                [*command, f"--chrome-flags={' '.join(('--headless=new', *FLAGS))}"],
                env={**os.environ, "CHROME_PATH": str(CHROMIUM)},
                check=True,
            )
            results.append(json.loads(out.read_text()))
    for name, category in results[0]["categories"].items():
        score = statistics.median(round(100 * result["categories"][name]["score"]) for result in results)
        bar = 95 if name == "performance" else 100
        measured = f"{score:.0f}"
        if name == "performance":
            first, largest, blocked = (
                statistics.median(result["audits"][audit]["numericValue"] for result in results)
                for audit in ("first-contentful-paint", "largest-contentful-paint", "total-blocking-time")
            )
            measured += f" (paint {first:.0f} ms, largest {largest:.0f} ms, blocked {blocked:.0f} ms)"
        yield Line(f"Lighthouse: {category['title']}", f"/{url}", measured, f"≥ {bar}", score >= bar)
        for audit in category["auditRefs"]:
            result = results[0]["audits"][audit["id"]]
            if audit["weight"] and name != "performance" and (result["score"] or 1) < 1:
                print(f"/{url}: {result['title']}", file=sys.stderr)


def main() -> None:
    """Build, serve, look, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of Lighthouse for each page")
    parser.add_argument("--page", action="append", metavar="URL", help="a page for Lighthouse, below the root")
    options = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("there is no Chromium: neither chromium, chromium-browser nor google-chrome is a command")
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Path(folder) / "site"
        reader.build(site)
        urls = reader.urls(site)
        with reader.serve(site) as base:
            browser = reader.launch(playwright)
            version = browser.version
            lines += [*pages(browser, base, urls), axe(browser, base, urls), search(browser, base)]
            browser.close()
            if shutil.which("npx"):
                for url in options.page or PAGES:
                    lines += lighthouse(base, url, options.runs)
            else:
                print("Lighthouse was left out: there is no Node (npx)", file=sys.stderr)
    head = (
        "# What readers get\n\n"
        f"The site of {len(urls)} pages in Chromium {version.partition('.')[0]}; {os.cpu_count()} cores, "
        f"{platform.system()}. Lighthouse on a phone, the median of {options.runs} runs. Made by `make audit`.\n\n"
        "| what | where | measured | bar | clears it |\n|---|---|---|---|---|\n"
    )
    report = head + "\n".join(map(str, lines)) + "\n"
    print(report)
    (Path(__file__).parent / "audit.md").write_text(report, encoding="utf-8")
    sys.exit(not all(line.clears for line in lines))


if __name__ == "__main__":
    main()
