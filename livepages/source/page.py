"""A page read as a program: its blocks and inline expressions, its sections and its settings."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from markdown.extensions.toc import slugify, unique

from livepages.source.explorables import Parameters, label
from livepages.source.fences import Fence, LineError, find_fences, with_bare_fences
from livepages.source.front_matter import Settings
from livepages.source.imports import first_imports
from livepages.source.inline import MARK
from livepages.source.options import Options
from livepages.worker import Expected

LOOKS_LIKE_PYTHON = ("python3", "py3", "python2", "pycon", "ipython", "ipython3", "pyodide")


@dataclass(frozen=True)
class Fault:
    """Something wrong in the text of a page, for which only a server shows the page at all."""

    line: int
    message: str
    at: int = 0  # the line of `Page.text`, from 0, above which it is shown


class PageError(Exception):
    """A page that cannot be read as a program: its first fault, and under ``faults`` each of them, the first too."""

    def __init__(self, page: str, line: int, message: str, others: tuple["PageError", ...] = ()) -> None:
        super().__init__(f"{page}:{line}: {message}")
        self.page, self.line, self.message = page, line, message
        self.faults = (self, *others)


@dataclass(frozen=True)
class Block:
    """A Python fence of a page; or an inline expression, which runs like one after the block above it."""

    page: str
    index: int  # among all of the page, from 0: what identifies it; variants come after all others
    line: int  # of the opening fence, in the page; for messages, as several blocks of an include share one
    code: str
    lines: tuple[int, ...]  # for each line of code: its line in the page (that of the include, if included)
    start: int  # line of the page's script on which the code begins, from 1
    options: Options
    fence: Fence
    marks: tuple[str, ...] = ()
    importorskip: str = ""
    expected_output: str | None = None
    expected_output_ignore_whitespace: bool = False
    key: str = ""
    shows_figures: bool = True  # whether the figures that it leaves open are part of its output
    parameters: Parameters = ()  # those that it runs with, if its fence varies any
    variants: tuple["Block", ...] = ()  # the block with its other parameters
    variant_of: int | None = None  # the index of the block that is this one with the first parameters
    fault: Fault | None = None  # what is wrong with its fence, which is shown in the place of its result
    # Of an inline expression: the columns of its code span in the line that is its `fence`, and the index of the block
    # above it, whose namespace it sees.
    columns: tuple[int, int] | None = None
    above: int | None = None

    @property
    def namespace(self) -> str:
        """The name of the namespace that the block runs in; empty for the page's."""
        if self.options.isolated:
            return f"{self.index if self.above is None else self.above}"
        return self.options.session and f"session {self.options.session}"

    @property
    def where(self) -> str:
        """The line of the block and its parameters, in words: ``14``, ``14[lr=0.1]``."""
        return f"{self.line}[{label(self.parameters)}]" if self.parameters else f"{self.line}"

    def describe(self, message: str) -> str:
        """Return a message about the block, with the parameters that it ran with, if any."""
        if self.is_inline:
            return f"`{MARK} {self.code}`: {message}"
        return f"with {label(self.parameters)}: {message}" if self.parameters else message

    @property
    def is_inline(self) -> bool:
        """Return whether this is an inline expression."""
        return self.columns is not None

    @property
    def fence_line(self) -> int:
        """The line of the fence, as failures name it; 0 for an inline expression, which has none."""
        return 0 if self.is_inline else self.line

    @property
    def runs(self) -> bool:
        """Return whether the block is part of the page's program."""
        return self.options.exec

    def page_line(self, script_line: int | None) -> int:
        """The line of the page for a line of the page's script; the fence's own where it lies outside the block."""
        if script_line is None or not 0 <= script_line - self.start < len(self.lines):
            return self.line
        return self.lines[script_line - self.start]

    @property
    def expected(self) -> Expected:
        """The outcome that the page expects of the block."""
        return Expected(
            raises=self.options.raises,
            match=self.options.match,
            figures=bool(self.options.alt) if self.shows_figures else None,
            output=self.expected_output,
            ignore_whitespace=self.expected_output_ignore_whitespace,
        )


@dataclass(frozen=True)
class Section:
    """A heading and the text below it."""

    start: int  # the heading's index in the page's text
    level: int
    title: str  # as Markdown
    anchor: str  # as Python-Markdown's table of contents makes it


@dataclass(frozen=True)
class Page:
    """One Markdown file, read as a program."""

    path: Path
    name: str  # as messages show it
    source: str  # the whole file, in lines that end as on Unix
    text: tuple[str, ...]  # the lines after includes; front matter is blank lines
    blocks: tuple[Block, ...]
    inline_expressions: tuple[Block, ...]
    settings: Settings
    meta: Mapping[str, object]  # the front matter
    origin: tuple[int, ...] = ()  # for each line of `text`, its line number in the file
    faults: tuple[Fault, ...] = ()  # those that are no block's

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The headings, in order."""
        found: list[Section] = []
        anchors: set[str] = set()
        fence = ""
        for number, line in enumerate(self.text):
            if marker := re.match(r"[> \t]*(`{3,}|~{3,})", line):
                fence = fence if fence and not marker[1].startswith(fence) else "" if fence else marker[1]
            heading = re.fullmatch(r"(#{1,6}) (.+?)\s*(?:\{([^}]*)\})?", line)
            if heading and not fence:
                title = heading[2].strip()
                own = re.search(r"#([\w.-]+)", heading[3] or "")
                anchor = own[1] if own else unique(slugify(re.sub(r"[`*]|\]\([^)]*\)", "", title), "-"), anchors)
                found.append(Section(number, len(heading[1]), title, anchor))
        return tuple(found)

    @property
    def title(self) -> str:
        """The title of the front matter, else the first heading, else the file's name."""
        headings = (section.title for section in self.sections if section.level == 1)
        return str(self.meta.get("title") or next(headings, self.path.stem))

    @property
    def description(self) -> str:
        """The subject of the page in a sentence, from the front matter; empty if it names none."""
        return " ".join(str(self.meta.get("description", "")).split())

    @property
    def redirect_from(self) -> tuple[str, ...]:
        """The names that the page had before, from whose addresses readers are led to it."""
        return tuple(self.meta.get("redirect_from", ()))  # type: ignore[arg-type]  # a list of texts

    @property
    def body(self) -> str:
        """The text as a Markdown renderer gets it: without front matter."""
        return "\n".join(self.text).strip("\n")

    @cached_property
    def markdown(self) -> tuple[str, ...]:
        """The lines for a Markdown renderer: fences that only look like Python have no options `exec` and `reason`.

        pymdownx.superfences would not take them for fences.
        """
        lines = list(self.text)
        errors: list[LineError] = []
        wrong = {fault.at for fault in self.faults}
        for fence in find_fences(self.text, range(len(self.text)), errors):
            if fence.start in wrong:
                lines[fence.start : fence.end] = with_bare_fences(lines[fence.start : fence.end])
            elif fence.language in LOOKS_LIKE_PYTHON:
                lines[fence.start] = re.sub(r"""\s+(exec|reason)=("[^"]*"|'[^']*'|\w+)""", "", lines[fence.start])
        for error in errors:
            lines[error.line :] = with_bare_fences(lines[error.line :])
        return tuple(lines)

    @property
    def program(self) -> tuple[Block, ...]:
        """The blocks that run, in order."""
        return tuple(block for block in self.blocks if block.runs)

    @property
    def variants(self) -> tuple[Block, ...]:
        """The blocks that run once more, each with other parameters."""
        return tuple(variant for block in self.program for variant in block.variants)

    @property
    def in_order(self) -> tuple[Block, ...]:
        """The blocks and the inline expressions, in order."""
        return tuple(sorted((*self.blocks, *self.inline_expressions), key=lambda block: block.index))

    @property
    def cases(self) -> tuple[Block, ...]:
        """All that has an outcome of its own: the program and the inline expressions in order, then the variants."""
        return (*(block for block in self.in_order if block.runs), *self.variants)

    def is_same_program(self, other: "Page") -> bool:
        """Return whether another page has the same blocks and inline expressions, wherever they are."""
        own, others = (
            [(block.fence.language, block.fence.content, block.options) for block in page.in_order if block.runs]
            for page in (self, other)
        )
        return own == others

    @property
    def script(self) -> str:
        """The program as one file of Python."""
        return "\n".join(block.code for block in self.program)

    @property
    def first_imports(self) -> tuple[tuple[str, str], ...]:
        """The imports of the page, wherever it runs, before it does anything else (`imports.first_imports`)."""

        def always_runs(block: Block) -> bool:
            return not (self.settings.needs or block.options.needs or block.marks or block.importorskip)

        return first_imports(block.code for block in takewhile(always_runs, self.program))

    @property
    def script_name(self) -> str:
        """The file name tracebacks and warnings show for the page's own code."""
        return re.sub(r"\W", "_", self.path.stem) + ".py"

    @property
    def key(self) -> str:
        """A key that covers the whole program; empty if there is none."""
        keys = [block.key for block in self.cases]
        return digest(*keys) if keys else ""


def digest(*parts: str) -> str:
    """Return a hash of texts, in hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
