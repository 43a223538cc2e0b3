"""The book: what paper shows of the pages, with links that lead inside it, as EPUB and as PDF."""

import re
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from course import book
from livepages.course import read_course
from livepages.source import find_project

PANDOC = Path(sys.prefix, "book/pypandoc/files/pandoc")  # where `make` installs it
COURSE = read_course(find_project(Path(__file__)))


def test_the_book_is_the_course_as_printed(folder: Path, browser: Browser, tmp_path: Path) -> None:
    found = book.chapters(COURSE, folder)
    assert len(found) > 70
    chosen = [chapter for chapter in found if chapter.key in ("start-ten-minutes", "basics-vmap", "basics-random")]
    page = book.open_page(browser)
    body = book.assemble(page, chosen, COURSE)
    assert [body.count(f"<{tag}") for tag in ("button", "script", "details", "form")] == [0] * 4
    assert body.count("<svg") >= 3 and "live-masthead" not in body and ">Solution<" not in body
    ids = re.findall(r' id="([^"]+)"', body)
    assert len(set(ids)) == len(ids)
    inside = set(re.findall(r'href="#([^"]+)"', body))
    assert {"basics-vmap", "basics-random"} <= inside <= set(ids)
    assert not re.findall(r'href="(?!#|https://)[^"]+"', body)
    book.write_pdf(page, body, COURSE.name, tmp_path / "book.pdf")
    page.context.close()
    printed = (tmp_path / "book.pdf").read_bytes()
    assert printed.startswith(b"%PDF") and printed.count(b"/Type /Page\n") >= 15
    if not PANDOC.exists():
        pytest.skip("pandoc is installed by `make test-all` or `make book`")
    book.write_epub(str(PANDOC), body, COURSE.name, tmp_path / "book.epub")
    with zipfile.ZipFile(tmp_path / "book.epub") as epub:
        names = epub.namelist()
        chapters = [epub.read(name).decode() for name in names if re.search(r"/ch\d+\.xhtml$", name)]
    assert len(chapters) == 5  # two parts and three pages
    assert sum(name.endswith(".svg") for name in names) == body.count("<svg")
    assert re.search(r'href="ch\d+\.xhtml#basics-random"', "".join(chapters))


def test_a_page_that_is_not_built_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert book.main([str(tmp_path), str(tmp_path / "book")]) == 1
    assert "is not there: build the site first, with `make site`" in capsys.readouterr().err
