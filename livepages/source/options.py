"""What a fence says about its block: the options after its language, read once, and refused where they are wrong."""

import math
import re
from dataclasses import dataclass

from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from livepages.source.suggestions import closest
from livepages.worker import is_device

SOURCES = ("above", "below", "block", "tabbed-left", "tabbed-right", "none")


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
    tolerance: float = 0.0
    needs: str = ""
    timeout: float = 0.0
    fresh: bool = False


_OPTION = re.compile(r"""([A-Za-z_][\w-]*)=("[^"]*"|'[^']*')(?:\s+|$)""")
_SWITCHES = {"on": True, "yes": True, "true": True, "1": True, "off": False, "no": False, "false": False, "0": False}


def parse_options(info: str) -> Options:
    """The options of a fence's info string, which begins with the language.

    Raises:
        ValueError: an option is unknown, has a wrong value, or does not go with the others; the message says which.
    """
    rest = info.strip().partition(" ")[2].strip()
    values: dict[str, object] = {}
    at = 0
    while at < len(rest):
        match = _OPTION.match(rest, at)
        if not match:
            raise ValueError(f'options are written name="value", not {rest[at:]!r}')
        option, value = match[1], match[2][1:-1]
        if option in values:
            raise ValueError(f"option {option} is given twice")
        values[option] = _value(option, value)
        at = match.end()
    options = Options(**values)  # type: ignore[arg-type]
    if not options.exec and not options.why:
        raise ValueError('exec="off" needs a why="…"')
    if options.match and not options.raises:
        raise ValueError("match goes with raises")
    if options.raises and not options.raises.replace(".", "").isidentifier():
        raise ValueError(f"raises names one exception class, not {options.raises!r}")
    return options


def _value(option: str, value: str) -> object:
    def refuse(wanted: str) -> ValueError:
        return ValueError(f"option {option} is {wanted}, not {value!r}")

    if option not in Options.__dataclass_fields__:
        known = Options.__dataclass_fields__
        raise ValueError(f"unknown option {option!r}{closest(option, known)}; known are {', '.join(known)}")
    if option in ("exec", "html", "volatile", "fresh"):
        if value.lower() not in _SWITCHES:
            raise refuse("on or off")
        return _SWITCHES[value.lower()]
    if option in ("timeout", "tolerance"):
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 < number < math.inf:
            raise refuse("a number of seconds" if option == "timeout" else "a number above 0")
        return number
    if option == "source" and value not in SOURCES:
        raise refuse("one of " + ", ".join(SOURCES))
    if option == "result" and value != "markdown" and not _has_lexer(value):
        raise refuse("markdown or a language that Pygments knows")
    if option == "id" and not re.fullmatch(r"[A-Za-z][\w.-]*", value):
        raise refuse("a letter, then letters, digits and . _ -")
    if option == "needs" and not is_device(value):
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
