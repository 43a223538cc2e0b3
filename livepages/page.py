"""Markdown text to a `Page`: its Python blocks in order, each with code, options, marks, line numbers and key.

This is the only parser. What it returns is what the site shows, what runs, and what is tested; a Python fence
that it cannot take is an error with page and line, never skipped.

Includes are expanded by ``pymdownx.snippets``; fences and marks are read by ``pytest_codeblocks``, from text in
which every fence has been brought to its plain form (`_plain`), because that parser knows neither tildes nor block
quotes nor nesting.
"""

import ast
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml
from markdown import Markdown
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound
from pymdownx.snippets import SnippetExtension, SnippetMissingError, SnippetPreprocessor
from pytest_codeblocks import extract_from_buffer

KEY_VERSION = "1"  # raise it when the same code, run by a newer engine, would give another outcome

PYTHON = ("python", "py")
LOOKS_LIKE_PYTHON = ("python3", "py3", "python2", "pycon", "ipython", "ipython3", "pyodide")
SOURCES = ("above", "below", "block", "tabbed-left", "tabbed-right", "none")
NEEDS = re.compile(r"(cpu|gpu|tpu)(?:s>=([1-9]\d*))?")


class PageError(Exception):
    """A page that cannot be read as a program."""

    def __init__(self, page: str, line: int, message: str) -> None:
        super().__init__(f"{page}:{line}: {message}")
        self.page, self.line, self.message = page, line, message


@dataclass(frozen=True)
class Options:
    """What a fence says about its block, after the language. Defaults are what a bare fence means."""

    exec: bool = True
    why: str = ""
    raises: str = ""
    match: str = ""
    source: str = "above"
    result: str = "text"
    html: bool = False
    title: str = ""
    hl_lines: str = ""
    linenums: str = ""
    id: str = ""
    alt: str = ""
    volatile: bool = False
    needs: str = ""
    timeout: float = 0.0


@dataclass(frozen=True)
class Settings:
    """What a page's front matter says about its process."""

    devices: int = 1
    x64: bool = False
    needs: str = ""
    timeout: float = 0.0
    jax: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Fence:
    """Where a fence stands in the expanded text: line numbers from 0, `end` past the closing fence."""

    start: int
    end: int
    prefix: str


@dataclass(frozen=True)
class Block:
    """One Python fence of a page."""

    page: str
    line: int  # of the opening fence, in the page
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

    @property
    def runs(self) -> bool:
        """Whether the block is part of the page's program."""
        return self.options.exec

    def page_line(self, script_line: int | None) -> int:
        """The line of the page for a line of the page's script; the fence's own where it lies outside the block."""
        if script_line is None or not 0 <= script_line - self.start < len(self.lines):
            return self.line
        return self.lines[script_line - self.start]

    @cached_property
    def binds(self) -> frozenset[str]:
        """The names the code may bind at its top level, none where it does not parse."""
        try:
            tree = ast.parse(self.code)
        except SyntaxError:
            return frozenset()
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        return frozenset(names)


@dataclass(frozen=True)
class Page:
    """One Markdown file, read as a program."""

    path: Path
    name: str  # as messages show it
    text: tuple[str, ...]  # the lines after includes; front matter is blank lines
    blocks: tuple[Block, ...]
    settings: Settings

    @property
    def body(self) -> str:
        """The text as a Markdown renderer gets it: without front matter."""
        return "\n".join(self.text).strip("\n")

    @property
    def program(self) -> tuple[Block, ...]:
        """The blocks that run, in order."""
        return tuple(block for block in self.blocks if block.runs)

    @property
    def script(self) -> str:
        """The program as one file of Python."""
        return "\n".join(block.code for block in self.program)

    @property
    def script_name(self) -> str:
        """The file name tracebacks and warnings show for the page's own code."""
        return re.sub(r"\W", "_", self.path.stem) + ".py"

    @property
    def key(self) -> str:
        """The key of the last block, which covers the whole program."""
        program = self.program
        return program[-1].key if program else ""


def read_page(path: Path, snippets: Path, name: str) -> Page:
    """The page in a file.

    Args:
        path: the Markdown file.
        snippets: the folder that includes are relative to.
        name: the page's name for messages.

    Raises:
        PageError: the page is not UTF-8, an include or the front matter cannot be read, or a fence cannot be taken.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise PageError(name, line, f"the page is not UTF-8: {error.reason}") from None
    return parse(text, path, snippets, name)


def parse(text: str, path: Path, snippets: Path, name: str) -> Page:
    """`read_page` for text at hand."""
    lines = re.sub(r"\r\n?", "\n", text).split("\n")
    if lines[0].strip() == "<!--pytest-codeblocks:skipfile-->":
        raise PageError(name, 1, 'skipfile would hide the whole page from its tests; give blocks exec="off" why="…"')
    settings, lines = _front_matter(lines, name)
    expanded = list(_expand(lines, snippets, name))
    text_lines = tuple(line for line, _ in expanded)
    origin = [number for _, number in expanded]
    return Page(path, name, text_lines, tuple(_blocks(text_lines, origin, name, settings)), settings)


# --- front matter ------------------------------------------------------------------------------------------------


def _front_matter(lines: list[str], name: str) -> tuple[Settings, list[str]]:
    if lines[0].rstrip() != "---":
        return Settings(), lines
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise PageError(name, 1, "the front matter is not closed with ---")
    try:
        meta = yaml.safe_load("\n".join(lines[1:end])) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise PageError(name, mark.line + 2 if mark else 1, f"the front matter is not YAML: {error}") from None
    if not isinstance(meta, dict):
        raise PageError(name, 1, "the front matter is not a mapping")

    def refuse(key: str, wanted: str) -> PageError:
        line = next((n for n, text in enumerate(lines, 1) if text.startswith(f"{key}:")), 1)
        return PageError(name, line, f"{key}: {meta[key]!r} is not {wanted}")

    given = {key: meta[key] for key in ("devices", "x64", "needs", "timeout", "jax") if key in meta}
    if not isinstance(given.get("x64", False), bool):
        raise refuse("x64", "true or false")
    if type(given.get("devices", 1)) is not int or not 1 <= given.get("devices", 1) <= 512:
        raise refuse("devices", "a whole number from 1 to 512")
    if not NEEDS.fullmatch(str(given.get("needs", "cpu"))):
        raise refuse("needs", 'a device such as "gpu" or "gpus>=2"')
    if type(given.get("timeout", 1)) not in (int, float) or given.get("timeout", 1) <= 0:
        raise refuse("timeout", "a number of seconds")
    if not isinstance(given.get("jax", {}), dict):
        raise refuse("jax", "a mapping of jax configuration names to values")
    return Settings(**given), [""] * (end + 1) + lines[end + 1 :]


# --- includes ----------------------------------------------------------------------------------------------------


def _expand(lines: list[str], snippets: Path, name: str) -> Iterator[tuple[str, int]]:
    """The lines after includes, each with its line number (from 1) in the page."""
    preprocessor: SnippetPreprocessor | None = None
    for number, directive in _directives(lines, name):
        if "8<-" not in directive[0]:
            yield directive[0], number
            continue
        if preprocessor is None:
            extension = SnippetExtension(base_path=[str(snippets)], check_paths=True, dedent_subsections=True)
            preprocessor = SnippetPreprocessor(extension.getConfigs(), Markdown())
        try:
            for line in preprocessor.run(directive):
                yield line, number
        except (SnippetMissingError, OSError, ValueError) as error:
            raise PageError(name, number, f"include: {error}") from None


def _directives(lines: list[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Each line on its own, except that a ``--8<--`` block of several paths comes as one, with its first line."""
    several: list[str] = []
    first = 0
    for number, line in enumerate(lines, 1):
        marker = re.fullmatch(r"[ \t]*-+8<-+[ \t]*", line)
        if several:
            several.append(line)
            if marker:
                yield first, several
                several = []
        elif marker:
            several, first = [line], number
        else:
            yield number, [line]
    if several:
        raise PageError(name, first, "include: the --8<-- block is not closed")


# --- fences ------------------------------------------------------------------------------------------------------

# As pymdownx.superfences has it: any mix of quote marks and blanks, then the fence.
_OPENING = re.compile(r"""(?P<prefix>[> \t]*)(?P<fence>`{3,}|~{3,})(?P<info>(?:[^`"'\n]|"[^"\n]*"|'[^'\n]*')*)""")
_CONTAINER = re.compile(r"(?:!!!|\?\?\?\+?|===[!+]*|///|[-*+]|\d+[.)]|\[\^[^\]]+\]:|:)(?:\s|$)")


@dataclass
class _Open:
    fence: Fence
    marker: str
    info: str


def _fences(lines: tuple[str, ...], origin: list[int], name: str) -> Iterator[tuple[Fence, str, list[str]]]:
    """Each fence with its info string and its content, dedented; refuses what a renderer would not take as one."""
    number, comment = 0, 0
    while number < len(lines):
        line = lines[number]
        if comment:
            comment = 0 if "-->" in line else comment
        elif re.match(r"\s*<!--(?!.*-->)", line):
            comment = origin[number]
        match = _OPENING.fullmatch(line)
        if not match:
            if re.match(r"[> \t]*(`{3,}|~{3,})\s*(python|py)\b", line):
                raise PageError(name, origin[number], f"not a fence as Markdown has them: {line.strip()}")
            number += 1
            continue
        start, prefix, marker, info = number, match["prefix"], match["fence"], match["info"].strip()
        width = len(prefix.expandtabs(4))
        content: list[str] = []
        for end in range(start + 1, len(lines)):
            inner = lines[end].expandtabs(4) if "\t" in lines[end][:width] else lines[end]
            head, tail = inner[:width], inner[width:]
            if tail.rstrip() == marker and not head.strip("> "):
                break
            if head.strip("> ") or (inner.strip("> ") and len(head) < width):
                raise PageError(
                    name, origin[end], f"the fence of line {origin[start]} ends here: indented less than it"
                )
            content.append(tail)
        else:
            raise PageError(name, origin[start], "the fence is not closed")
        if comment and _language(info) in PYTHON:
            raise PageError(name, origin[start], f"a block inside the comment of line {comment} would run unseen")
        if _language(info) in PYTHON:
            _check_container(lines, start, len(prefix.expandtabs(4)), origin, name)
        yield Fence(start, end + 1, prefix), info, content
        number = end + 1


def _check_container(lines: tuple[str, ...], number: int, width: int, origin: list[int], name: str) -> None:
    """An indented fence must stand in something that is indented; elsewhere Markdown shows it as text."""
    start, indent = number, width
    if ">" in lines[number].partition("`")[0].partition("~")[0]:
        return
    while indent >= 4 and number > 0:
        number -= 1
        if not lines[number].strip() or _indent(lines[number]) >= indent:
            continue
        # What a list item says may go on in lines that are indented less.
        while not _CONTAINER.match(lines[number].lstrip()):
            number -= 1
            if number < 0 or not lines[number].strip():
                raise PageError(
                    name, origin[start], "an indented fence outside a list, tab or admonition is shown as text"
                )
        indent = _indent(lines[number])


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def _language(info: str) -> str:
    return re.split(r"[\s{]", info, maxsplit=1)[0].lower().lstrip(".")


def _plain(lines: tuple[str, ...], fences: list[tuple[Fence, str, list[str]]]) -> str:
    """The text with fences at column 0, in backticks longer than any inside, and nothing else but comments."""
    plain = [line.strip() if line.lstrip("> \t").startswith("<!--") else "" for line in lines]
    for fence, info, content in fences:
        runs = re.findall(r"^\s*(`{3,})", "\n".join(content), flags=re.MULTILINE)
        marker = "`" * max([3, *(len(run) + 1 for run in runs)])
        plain[fence.start : fence.end] = [marker + info, *content, marker]
    return "\n".join(plain) + "\n"


def _blocks(lines: tuple[str, ...], origin: list[int], name: str, settings: Settings) -> Iterator[Block]:
    fences = list(_fences(lines, origin, name))
    by_start = {fence.start: fence for fence, _, _ in fences}
    for fence, info, _ in fences:
        _refuse_lookalikes(info, name, origin[fence.start])
    for number, text in enumerate(lines):
        if re.match(r"<!--[-\s]*pytest-codeblocks:\s*cont\b", text.strip()):
            raise PageError(name, origin[number], "cont: the blocks of a page share one namespace as it is")
    try:
        found = extract_from_buffer(io.StringIO(_plain(lines, fences)), max_num_lines=len(lines) + 2)
    except RuntimeError as error:
        raise PageError(name, 1, str(error)) from None
    python = {fence.start for fence, info, _ in fences if _language(info) in PYTHON}
    missed = python - {block.lineno - 1 for block in found}
    if missed:
        raise PageError(name, origin[min(missed)], "an expected output is not Python; fence it as text")

    digest = _digest(
        KEY_VERSION, json.dumps([settings.devices, settings.x64, settings.needs, settings.jax], sort_keys=True)
    )
    start = 1
    for raw in found:
        if raw.lineno - 1 not in python:
            continue
        fence, line = by_start[raw.lineno - 1], origin[raw.lineno - 1]
        options = _options(raw.syntax or "", name, line)
        if "markdown-exec: hide" in raw.code or "`" * 8 in raw.code:
            raise PageError(
                name, line, 'hidden lines and runs of 8 backticks are not taken; hide a block with source="none"'
            )
        if any(re.match(r"pytest\.mark\.(skip|xfail)\b(?!if)", mark) for mark in raw.marks):
            raise PageError(name, line, 'skip and xfail hide a block; use exec="off" why="…", raises="…" or skipif')
        if options.exec:
            digest = _digest(digest, raw.code, options.needs)
        yield Block(
            page=name,
            line=line,
            code=raw.code,
            lines=tuple(origin[fence.start + 1 : fence.end - 1]),
            start=start,
            options=options,
            fence=fence,
            marks=tuple(raw.marks),
            importorskip=raw.importorskip or "",
            expected_output=raw.expected_output,
            expected_output_ignore_whitespace=raw.expected_output_ignore_whitespace,
            key=digest if options.exec else "",
        )
        if options.exec:
            start += raw.code.count("\n") + 1


def _refuse_lookalikes(info: str, name: str, line: int) -> None:
    language = _language(info)
    if language in PYTHON and not re.match(r"(python|py)(\s|$)", info):
        raise PageError(name, line, f"write the fence as ```python, not ```{info}")
    if "{" in info and re.search(r"[{\s.](python|py)\d?\b", info):
        raise PageError(name, line, 'options stand on the fence as name="value", without braces')
    if language in LOOKS_LIKE_PYTHON and not re.search(r"exec=[\"']?off[\"']?.*\bwhy=", info):
        raise PageError(name, line, f'a {language} fence is not run; write ```python, or add exec="off" why="…"')


# --- options -----------------------------------------------------------------------------------------------------

_OPTION = re.compile(r"""([A-Za-z_][\w-]*)=("[^"]*"|'[^']*')(?:\s+|$)""")
_SWITCHES = {"on": True, "yes": True, "true": True, "1": True, "off": False, "no": False, "false": False, "0": False}


def _options(info: str, name: str, line: int) -> Options:
    """The options of a fence's info string; an unknown one, or one with a wrong value, is an error."""
    rest = info.strip().partition(" ")[2].strip()
    values: dict[str, object] = {}
    at = 0
    while at < len(rest):
        match = _OPTION.match(rest, at)
        if not match:
            raise PageError(name, line, f'options are written name="value", not {rest[at:]!r}')
        option, value = match[1], match[2][1:-1]
        if option in values:
            raise PageError(name, line, f"option {option} is given twice")
        values[option] = _value(option, value, name, line)
        at = match.end()
    options = Options(**values)  # type: ignore[arg-type]
    if not options.exec and not options.why:
        raise PageError(name, line, 'exec="off" needs a why="…"')
    if options.match and not options.raises:
        raise PageError(name, line, "match goes with raises")
    if options.raises and not options.raises.replace(".", "").isidentifier():
        raise PageError(name, line, f"raises names one exception class, not {options.raises!r}")
    return options


def _value(option: str, value: str, name: str, line: int) -> object:
    def refuse(wanted: str) -> PageError:
        return PageError(name, line, f"option {option} is {wanted}, not {value!r}")

    if option not in Options.__dataclass_fields__:
        raise PageError(name, line, f"unknown option {option!r}; known are {', '.join(Options.__dataclass_fields__)}")
    if option in ("exec", "html", "volatile"):
        if value.lower() not in _SWITCHES:
            raise refuse("on or off")
        return _SWITCHES[value.lower()]
    if option == "timeout":
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1.0
        if not seconds > 0:
            raise refuse("a number of seconds")
        return seconds
    if option == "source" and value not in SOURCES:
        raise refuse("one of " + ", ".join(SOURCES))
    if option == "result" and value != "markdown" and not _has_lexer(value):
        raise refuse("markdown or a language that Pygments knows")
    if option == "needs" and not NEEDS.fullmatch(value):
        raise refuse('a device such as "gpu" or "gpus>=2"')
    if option == "match":
        try:
            re.compile(value)
        except re.error as error:
            raise refuse(f"a regular expression ({error})") from None
    if option == "hl_lines" and not re.fullmatch(r"\d+(-\d+)?(\s+\d+(-\d+)?)*", value):
        raise refuse("line numbers and ranges")
    if option in ("why", "alt", "raises") and not value.strip():
        raise refuse("not empty")
    if option in ("title", "linenums") and '"' in value:
        raise refuse("without double quotes")
    return value


def _has_lexer(language: str) -> bool:
    try:
        get_lexer_by_name(language)
    except ClassNotFound:
        return False
    return True


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
