"""The cheat sheet: runs the lines of `cheat_sheet_lines`, checks each against its comment, and shows them."""

import contextlib
import html
import io
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from rosetta import highlighted, run_code

LINES = Path(__file__).with_name("cheat_sheet_lines.py")


@dataclass(frozen=True)
class Line:
    """A line of code and its result as text, which is empty if the line only prepares for others."""

    group: str
    code: str
    expected: str = ""
    result: str = ""

    @property
    def anchor(self) -> str:
        """Return what a link to the line ends with."""
        return "line-" + re.sub(r"[^\w.]+", "-", self.code).strip("-")


def read_lines(text: str) -> list[Line]:
    """The lines of a file like `cheat_sheet_lines`."""
    group, lines = "", []
    for line in text.splitlines():
        if line.startswith("# ---- "):
            group = line.removeprefix("# ---- ")
        elif group and line:
            code, _, expected = line.partition("  # ")
            lines.append(Line(group, code, expected))
    return lines


def sheet() -> list[Line]:
    """Every line with its result.

    Raises:
        AssertionError: a result differs from the comment of its line.
    """
    names: dict[str, Any] = {}
    done = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for line in read_lines(LINES.read_text(encoding="utf-8")):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                result = run_code(line.code, names)
                jax.effects_barrier()
            shown = result.error or (printed.getvalue().strip() if result.value is None else result.text)
            assert shown == line.expected, f"{line.code}: the result is {shown!r}, the comment says {line.expected!r}"
            done.append(Line(line.group, line.code, line.expected, shown))
    return done


def as_html(lines: list[Line], group: str) -> str:
    """The lines of a group as HTML."""
    rows = "".join(
        f'<div id="{line.anchor}"><code>{highlighted(line.code)}</code><samp>{html.escape(line.result)}</samp>'
        f'<a class="headerlink" href="#{line.anchor}" aria-label="Link to this line">¶</a></div>'
        for line in lines
        if line.group == group
    )
    return f'<div class="live-lines highlight">{rows}</div>'
