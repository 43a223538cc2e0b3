"""``python -m benchmarks.run_here ADDRESS [PAGE ...]``: whole pages of a served site, run as a reader does.

Start `make serve`, wait until its pages have run, and pass the address that it says. Without pages, all of the site's
run, one after the other. Each line says what the page says at the end; those that follow name the blocks whose output
is not the published one, and why. It takes as long as the course does, so `make test` does not do it.
"""

import re
import sys
import urllib.request

from playwright.sync_api import sync_playwright

from tests.browser import reader
from tests.browser.reader import View

LONGEST = 20 * 60 * 1000  # milliseconds that a page may take
ENDED = re.compile(r"All ran|Stopped|cannot|could not|lost|died|refused")


def main(base: str, *pages: str) -> int:
    """Print what came of each page; the number of pages that did not give what is published."""
    base = base.rstrip("/") + "/"
    with urllib.request.urlopen(f"{base}sitemap.xml") as answer:
        found = re.findall(r"<loc>(.*?)</loc>", answer.read().decode())
    wrong = 0
    with sync_playwright() as playwright:
        page = View("light", 1280).open(reader.launch(playwright)).new_page()
        for url in [base + name for name in pages] or found:
            page.goto(url, wait_until="domcontentloaded", timeout=LONGEST)
            start = page.get_by_role("button", name="run it here")
            if not start.count():
                continue
            start.click()
            bar = page.get_by_role("region", name="Run it here").get_by_role("status")
            bar.filter(has_text=ENDED).wait_for(timeout=LONGEST)
            summary = bar.inner_text().partition(". ")[0]
            lines = page.locator(".live-yours .live-note").all_inner_texts()
            differing = [line for line in lines if "Not what is published" in line]
            wrong += bool(differing) or not summary.startswith("All ran")
            print(f"{url.removeprefix(base)}: {summary}", *differing, sep="\n    ", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
