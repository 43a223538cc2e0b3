"""The options of a fence, after its language: one table of them, and the parser that is made from it."""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from livepages.source.explorables import Varied, read_varied
from livepages.source.suggestions import closest
from livepages.worker import is_device


class Affects(Enum):
    """The effect of an option, which decides whether a block's result holds when the option gets another value."""

    PROGRAM = "which blocks run, and which others each depends on; a block's key covers those"
    RUN = "the outcome of the block; its value belongs to the block's key"
    CHECK = "the expected outcome and the time limit; no part of the key"
    PAGE = "how the page shows the block"


Read = Callable[[str], object]  # makes a value of text; raises ValueError with the kind of text that it takes


@dataclass(frozen=True)
class Option:
    """A row of the table."""

    read: Read
    affects: Affects
    example: str
    help: str  # in Markdown, for the README
    markdown_exec: str = ""  # markdown-exec's keyword for it; empty if there is none
    formerly: str = ""  # a name it had once


_SWITCHES = {"on": True, "yes": True, "true": True, "1": True, "off": False, "no": False, "false": False, "0": False}


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise ValueError("on or off")
    return _SWITCHES[text.lower()]


def _number(wanted: str) -> Read:
    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 < number < math.inf:
            raise ValueError(wanted)
        return number

    return read


def _number_of_columns(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError("a number of columns")
    return int(text)


def _text(wanted: str, is_right: Callable[[str], object]) -> Read:
    def read(text: str) -> str:
        if not is_right(text):
            raise ValueError(wanted)
        return text

    return read


def _one_of(*values: str) -> Read:
    return _text("one of " + ", ".join(values), lambda text: text in values)


_place = _one_of("above", "below", "block", "tabbed-left", "tabbed-right", "none")


def _source(text: str) -> object:
    return _place("block" if text == "material-block" else text)  # the name that markdown-exec had for it once


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text


def _is_language(name: str) -> bool:
    try:
        return name == "markdown" or bool(get_lexer_by_name(name))
    except ClassNotFound:
        return False


def _is_class(name: str) -> bool:
    return name.replace(".", "").isidentifier()


_RANGES = re.compile(r"\d+(-\d+)?(\s+\d+(-\d+)?)*")
_NAME = re.compile(r"[A-Za-z][\w.-]*")
_TABS = re.compile(r"[^|]+\|[^|]+")
_words = _text("text", str.strip)
_attribute = _text("without double quotes", lambda text: '"' not in text)


def _option(
    default: object,
    read: Read,
    affects: Affects,
    example: str,
    help: str,  # noqa: A002
    markdown_exec: str = "",
    formerly: str = "",
) -> Any:
    """Return a field of `Options`, with its row."""
    return field(default=default, metadata={"option": Option(read, affects, example, help, markdown_exec, formerly)})


@dataclass(frozen=True)
class Options:
    """The options of one block. Each field is a row of the table; its default is what a bare fence means."""

    # fmt: off
    exec: bool = _option(True, _switch, Affects.PROGRAM, "off",
        "the block is shown but does not run; it needs a `reason`", "exec")
    reason: str = _option("", _words, Affects.PAGE, "a cluster",
        "why the block does not run, as the page says it", formerly="why")
    isolated: bool = _option(False, _switch, Affects.PROGRAM, "on",
        "the block runs in a namespace of its own, as a reader runs it who copies nothing else; what it changes in the "
        "runtime's configuration is put back", formerly="fresh")
    needs: str = _option("", _text('a device such as "gpu" or "gpus>=2"', is_device), Affects.RUN, "gpus>=2",
        "the block runs only on hosts that have this, for example `gpu`")
    timeout: float = _option(0.0, _number("a number of seconds"), Affects.CHECK, "90",
        "the number of seconds the block may take")
    session: str = _option("", _words, Affects.PROGRAM, "tutorial",
        "the blocks of a page that name the same session share a namespace, which no other block sees", "session")
    workdir: str = _option("", _words, Affects.RUN, "examples",
        "the folder that the block runs in, as seen from the project's", "workdir")
    width: int = _option(0, _number_of_columns, Affects.RUN, "100",
        "the width of the terminal that the block finds, in columns", "width")
    vary: tuple[Varied, ...] = _option((), read_varied, Affects.PROGRAM, "lr=0.01, 0.1, 1.0",
        "the block runs once for each of these values, and the page shows a control that switches between "
        "their outputs; later blocks see the first. Two names (`a=1, 2; b=3, 4`) make a grid")
    raises: str = _option("", _text("the name of an exception class", _is_class), Affects.CHECK, "TypeError",
        "the block must raise this error, which the page shows")
    match: str = _option("", _pattern, Affects.CHECK, "shapes .* differ",
        "a regular expression that the message of this error must match")
    alt: str = _option("", _words, Affects.CHECK, "the loss falls",
        "describes the figure that the block leaves open; required for a figure")
    volatile: bool = _option(False, _switch, Affects.CHECK, "on",
        "the output differs from run to run, as measured times do, or is chaotic: it is shown, never compared")
    tolerance: float = _option(0.0, _number("a number above 0"), Affects.CHECK, "1e-3",
        "how much numbers may differ between hosts, relative to themselves (default 1e-5)")
    source: str = _option("above", _source, Affects.PAGE, "none",
        "where the code is shown: `above` (or `block`) or `below` the output, `tabbed-left` or `tabbed-right`, or "
        "`none`: the block runs and is tested, but the page shows only its output", "source")
    tabs: str = _option("Source|Result", _text("two titles, as in Source|Result", _TABS.fullmatch), Affects.PAGE,
        "Code|Plot", "the titles of the tabs that hold the code and the output", "tabs")
    result: str = _option("text", _text("markdown or a language that Pygments knows", _is_language),
        Affects.PAGE, "json",
        "the language that the output is highlighted as; `markdown` renders it", "result")
    html: bool = _option(False, _switch, Affects.PAGE, "on", "the output is HTML, shown as it is", "html")
    title: str = _option("", _attribute, Affects.PAGE, "train.py", "the title above the code", "title")
    hl_lines: str = _option("", _text("line numbers and ranges", _RANGES.fullmatch), Affects.PAGE, "1 3-4",
        "the lines of the code that are highlighted", "hl_lines")
    linenums: str = _option("", _attribute, Affects.PAGE, "1", "line numbers, from this one on", "linenums")
    id: str = _option("", _text("a letter, then letters, digits and . _ -", _NAME.fullmatch), Affects.PAGE, "loss",
        "the anchor of the block, for links", "id")
    # fmt: on

    def given(self, *affects: Affects) -> dict[str, Any]:
        """Return the options that affect one of these and are not at their defaults, by name."""
        values = {name: getattr(self, name) for name, option in TABLE.items() if option.affects in affects}
        return {name: value for name, value in values.items() if value != getattr(Options, name)}

    @property
    def key(self) -> str:
        """The options as part of the block's key, as text; empty if none of them changes its outcome."""
        given = self.given(Affects.RUN)
        return json.dumps(given, sort_keys=True) if given else ""


TABLE: dict[str, Option] = {row.name: row.metadata["option"] for row in fields(Options)}
_OF_MARKDOWN_EXEC = {  # what its other options are about
    "idprefix": "what a block prints is part of the page, and has the page's own anchors",
    "returncode": "a block that raises an error says so as raises",
    "updatetoc": "headings that a block prints are in the page's table of contents",
}
_FORMER = {option.formerly: name for name, option in TABLE.items() if option.formerly}
_OPTION = re.compile(r"""([A-Za-z_][\w-]*)=("[^"]*"|'[^']*')(?:\s+|$)""")


def parse_options(info: str) -> tuple[Options, list[str]]:
    """Return the options of a fence's info string, which begins with the language, as far as they can be read.

    Returns:
        the options, and a message for each that is left out: it is unknown, has a wrong value, or does not go with the
        others.
    """
    rest = info.strip().partition(" ")[2].strip()
    values: dict[str, Any] = {}
    faults: list[str] = []
    known = f"; known are {', '.join(TABLE)}"
    at = 0
    while at < len(rest):
        match = _OPTION.match(rest, at)
        if not match:
            faults.append(f'options are written name="value", not {rest[at:]!r}')
            break
        name, value = match[1], match[2][1:-1]
        at = match.end()
        if name in values:
            faults.append(f"option {name} is given twice")
        elif name in _FORMER:
            faults.append(f'option {name} is called {_FORMER[name]} now; write {_FORMER[name]}="{value}"')
        elif name in _OF_MARKDOWN_EXEC:
            faults.append(f'option {name} is read where fences = "exec"; here {_OF_MARKDOWN_EXEC[name]}: leave it out')
        elif name not in TABLE:
            faults.append(f"unknown option {name!r}{closest(name, TABLE) or known}")
        else:
            try:
                values[name] = read_option(name, value)
            except ValueError as error:
                faults.append(str(error))
    options = Options(**values)
    odd = [*_at_odds(options)]  # as they may be because one is left out
    return replace(options, **{name: getattr(Options, name) for name, _ in odd}), faults or [
        message for _, message in odd
    ]


def _at_odds(options: Options) -> Iterator[tuple[str, str]]:
    """Yield the options that do not go with the others, each with why."""
    if not options.exec and not options.reason:
        yield "reason", 'exec="off" needs a reason="…"'
    if options.vary and not options.exec:
        yield "vary", 'vary: the block does not run, as exec="off" says'
    if options.vary and options.result == "markdown":
        yield "vary", 'vary switches between text, figures and HTML; leave result="markdown" out'
    if options.match and not options.raises:
        yield "match", "match goes with raises"


def read_option(name: str, value: str) -> object:
    """Return the value of an option by its text.

    Raises:
        ValueError: it has a wrong value; the message says what is right.
    """
    option = TABLE[name]
    try:
        return option.read(value)
    except ValueError as wanted:
        if not value.strip():
            raise ValueError(f'option {name} is empty; write it as {name}="{option.example}"') from None
        raise ValueError(f"option {name} is {wanted}, not {value!r}") from None
