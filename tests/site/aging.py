"""Statements of the pages that age: those that name a version, a release, a plugin or a platform.

    python -m tests.site.aging             # each of them, with its source and the day on which it was written
    python -m tests.site.aging --days 183  # those that are older, as the weekly workflow reports them

The day is that of the commit that last changed the line. To confirm a statement, change it: say when it was last so.
"""

import argparse
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).parents[2]
AGES = re.compile(
    r"\b(?:jax|jaxlib|Python|CUDA|NumPy|since|until|in|by|before|from|on|and) v?\d+\.\d+(?:\.\d+)*\b"
    r"|\b\d+\.\d+\.\d+\b|\b(?:deprecated|experimental|plugins?|unmaintained|last release|maintain\w*)\b"
    r"|\b(?:ROCm|Windows|macOS|Apple|Macs?|AMD|Intel|Colab|Kaggle|Triton|Mosaic|CUDA \d+|TPU v\d\w*)\b"
    r"|\b20[23]\d\b"
)
_SOURCE = re.compile(r"\]\((https?://[^)\s]+)\)")
_CODE = re.compile(r"^ *(`{3,})|^<!--")
_ITEM = re.compile(r" *(?:-|\d+\.) ")
_END = re.compile(r"(?<=[.?!])(?:\)|\*\*)? +(?=[(*`\[]*[A-Z])")


@dataclass(frozen=True)
class Statement:
    """A sentence, or a row of a table, that ages."""

    page: str
    line: int  # on which it begins, from 1
    text: str

    @property
    def source(self) -> str:
        """The page on the web that it rests on, else nothing: then the page's own blocks are its source."""
        found = _SOURCE.search(self.text)
        return found[1] if found else ""


def statements(page: str, text: str) -> Iterator[Statement]:
    """The statements of a page that age, without code, comments and front matter."""
    body = text.split("\n---\n", 1)
    offset = body[0].count("\n") + 2 if text.startswith("---\n") and len(body) > 1 else 0
    lines, inside = text.splitlines(), ""
    paragraph: list[tuple[int, str]] = []
    for number, line in enumerate([*lines, ""], 1):
        code = bool(inside or _CODE.match(line))
        if inside:
            inside = "" if line.strip().startswith(inside) or inside == "-->" and "-->" in line else inside
        elif found := _CODE.match(line):
            inside = found[1] or ("" if "-->" in line else "-->")
        if number <= offset or code or not line.strip() or line.startswith(("|", "#")):
            yield from _of(page, paragraph)
            paragraph = []
            if number > offset and not code and line.startswith("|"):
                yield from _of(page, [(number, line)])
        else:
            if _ITEM.match(line):
                yield from _of(page, paragraph)
                paragraph = []
            paragraph.append((number, line.strip()))


def _of(page: str, paragraph: list[tuple[int, str]]) -> Iterator[Statement]:
    text, starts, place = " ".join(line for _, line in paragraph), [], 0
    for number, line in paragraph:
        starts.append((place, number))
        place += len(line) + 1
    begin = 0
    for sentence in _END.split(text) if not text.startswith("|") else [text]:
        begin = text.index(sentence, begin)
        if AGES.search(re.sub(r"\]\([^)]*\)", "]", sentence)):
            yield Statement(page, [number for at, number in starts if at <= begin][-1], sentence)


def days(path: Path) -> dict[int, date]:
    """For each line of a file, the day on which it was last changed; what is not committed is of today."""
    command = ["git", "blame", "--line-porcelain", "-w", "-M", "--", path.name]
    history = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=True).stdout
    found: dict[int, date] = {}
    for line in history.splitlines():
        if header := re.fullmatch(r"[0-9a-f]{40} \d+ (\d+)(?: \d+)?", line):
            number = int(header[1])
        elif line.startswith("author-time "):
            found[number] = datetime.fromtimestamp(int(line.split()[1]), UTC).date()
    return found


def report(docs: Path, older_than: date) -> str:
    """The statements that were last changed before a day, the oldest first, as a list in Markdown."""
    aged: list[tuple[date, Statement]] = []
    for path in sorted(docs.rglob("*.md")):
        if found := [*statements(path.relative_to(docs).as_posix(), path.read_text(encoding="utf-8"))]:
            changed = days(path)
            aged += [(changed[one.line], one) for one in found if changed[one.line] < older_than]
    aged.sort(key=lambda pair: (pair[0], pair[1].page, pair[1].line))
    rows = [f"- {day}, `docs/{one.page}:{one.line}`: {one.text} ({one.source or 'no source'})" for day, one in aged]
    return "\n".join([f"{len(rows)} statements that may have aged:", "", *rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="List the statements of the pages that age.")
    parser.add_argument("--days", type=int, default=-1, help="only those that were last changed more days ago")
    options = parser.parse_args()
    print(report(ROOT / "docs", datetime.now(UTC).date() - timedelta(days=options.days)))
