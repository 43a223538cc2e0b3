"""The pages of the course as one EPUB and one PDF, made of the built site.

    python -m course.book site build/book --pandoc pandoc

Chromium opens each page as for print, and what paper does not show is left out. Links between the pages lead inside the
book.
Chromium prints the PDF, and pandoc makes the EPUB.
"""

import argparse
import shutil
import subprocess
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from livepages.course import Course, read_course
from livepages.source import find_project

PARTS = ("Get started", "Learn")
PREPARE = (Path(__file__).parent / "book.js").read_text(encoding="utf-8")
STYLE = """
body { font-family: sans-serif; line-height: 1.5; }
pre, code { font-family: monospace; font-size: 0.85em; }
pre { background: #f5f5f5; overflow-wrap: anywhere; padding: 0.6em; white-space: pre-wrap; }
.live-result pre { background: none; border-left: 3px solid #bbb; }
svg, img { height: auto; max-width: 100%; }
a { color: inherit; } pre a, code a { text-decoration: none; }
table { border-collapse: collapse; } td, th { border: 1px solid #ccc; padding: 0.2em 0.5em; }
"""
PRINTED = """
@page { margin: 18mm 16mm; size: A4; }
h1, h2 { break-before: page; } h1 + h2 { break-before: auto; } pre, figure, .live-figure { break-inside: avoid-page; }
"""


@dataclass(frozen=True)
class Chapter:
    """A page of the course: its part, its path in the site, and its file."""

    part: str
    address: str
    file: Path

    @property
    def key(self) -> str:
        """The id of the page in the book, with which all of its ids begin."""
        return self.address.removesuffix("index.html").removesuffix(".html").strip("/").replace("/", "-")

    @property
    def uri(self) -> str:
        """The address of the file."""
        return self.file.resolve().as_uri()


def chapters(course: Course, site: Path) -> list[Chapter]:
    """Return the pages of the course, in order.

    Raises:
        FileNotFoundError: the site does not have one of them.
    """
    found = []
    for part in course.parts:
        for page in part.pages if part.title in PARTS else ():
            place = course.place(page)
            chapter = Chapter(part.title, place.html, site / place.html)
            if not chapter.file.exists():
                raise FileNotFoundError(f"{chapter.file} is not there: build the site first, with `make site`")
            found.append(chapter)
    return found


def open_page(browser: Browser) -> Page:
    """Return a page that sees what paper shows, and runs no script of the site."""
    page = browser.new_context(java_script_enabled=False, color_scheme="light").new_page()
    page.emulate_media(media="print")
    return page


def assemble(page: Page, found: list[Chapter], course: Course) -> str:
    """Return the chapters as one document of XHTML, without a head."""
    keys = {chapter.uri: chapter.key for chapter in found}
    parts: list[str] = []
    above = ""
    for chapter in found:
        page.goto(chapter.uri)
        about = {"key": chapter.key, "root": chapter.uri.removesuffix(chapter.address)}
        text = page.evaluate(PREPARE, {**about, "keys": keys, "url": course.url})
        if chapter.part != above:
            above = chapter.part
            parts.append(f'<h1 class="part" id="part-{len(parts)}">{escape(above)}</h1>')
        parts.append(text)
    return "\n".join(parts)


def document(body: str, title: str, style: str) -> str:
    """Return a whole document."""
    head = f'<meta charset="utf-8"/><title>{escape(title)}</title><style>{style}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def chromium() -> str:
    """Return the path of the browser.

    Raises:
        FileNotFoundError: none is found.
    """
    if path := next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None):
        return path
    raise FileNotFoundError("Chromium was not found: neither chromium, chromium-browser nor google-chrome is a command")


def write_pdf(page: Page, body: str, title: str, path: Path) -> None:
    """Print a document; beside the PDF stays the HTML that was printed."""
    source = path.with_suffix(".html")
    source.write_text(document(f"<h1>{escape(title)}</h1>{body}", title, STYLE + PRINTED), encoding="utf-8")
    page.goto(source.resolve().as_uri())
    page.pdf(path=path, prefer_css_page_size=True, print_background=True, outline=True, tagged=True)


def write_epub(pandoc: str, body: str, title: str, path: Path) -> None:
    """Make an EPUB of a document, with a chapter for each heading of the first two levels.

    Raises:
        FileNotFoundError: there is no such command.
        CalledProcessError: it fails.
    """
    options = ["--from", "html", "--to", "epub3", "--toc", "--toc-depth", "2", "--split-level", "2", "--mathml"]
    about = ["--metadata", f"title={title}", "--metadata", "lang=en"]
    text = document(body, title, STYLE)
    subprocess.run([pandoc, *options, *about, "--output", str(path)], input=text, text=True, check=True)


def make(site: Path, folder: Path, pandoc: str) -> list[Path]:
    """Write the EPUB and the PDF into a folder, and return their paths."""
    course = read_course(find_project(Path(__file__)))
    found = chapters(course, site)
    folder.mkdir(parents=True, exist_ok=True)
    epub, pdf = (folder / f"live-jax.{ending}" for ending in ("epub", "pdf"))
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium()) as browser:
        page = open_page(browser)
        body = assemble(page, found, course)
        write_pdf(page, body, course.name, pdf)
    write_epub(pandoc, body, course.name, epub)
    return [epub, pdf]


def main(arguments: list[str] | None = None) -> int:
    """Carry out the command, and return its exit status."""
    parser = argparse.ArgumentParser("python -m course.book", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", type=Path, help="the folder of the built site")
    parser.add_argument("folder", type=Path, help="where the two files are written")
    parser.add_argument("--pandoc", default="pandoc", help="the command of pandoc")
    given = parser.parse_args(arguments)
    try:
        for path in make(given.site, given.folder, given.pandoc):
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
