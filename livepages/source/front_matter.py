"""The front matter of a page: the settings of its process, and its title, description and the like."""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from livepages.source.fences import LineError
from livepages.source.suggestions import closest
from livepages.worker import Runtime, SettingError, find_runtime, runtimes


@dataclass(frozen=True)
class Settings:
    """The settings of a page's process, from its front matter."""

    timeout: float = 0.0
    exclusive: bool = False  # the page measures time: it runs while no other page does
    depends_on: tuple[str, ...] = ()  # files and folders of the project that programs read which the page starts
    runtime: Mapping[str, object] = field(default_factory=dict)  # as `Runtime.settings` has them
    settings_summary: str = ""  # on them, in words
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)  # of the page, by what is named on each

    @property
    def line(self) -> int:
        """The line of the page on which the first setting of the runtime is."""
        return min((self.lines[name] for name in self.runtime if name in self.lines), default=1)

    @property
    def needs(self) -> str:
        """The device without which the page does not run; empty if any will do."""
        return str(self.runtime.get("needs", ""))


def front_matter_length(lines: list[str]) -> int:
    """Return how many lines of a page its front matter takes; 0 unless the first one is ``---``.

    Raises:
        LineError: it is not closed.
    """
    if lines[0].rstrip() != "---":
        return 0
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise LineError(1, "the front matter is not closed; end it with a line ---")
    return end + 1


def read_front_matter(lines: Sequence[str], runtime: Runtime) -> tuple[Settings, dict[str, object]]:
    """Read the lines of a front matter: the settings, and all values by name.

    Raises:
        LineError: it is not YAML, or holds a value that cannot be used.
    """
    values, where = _values("\n".join(lines[1:-1]))
    known = {*KNOWN, *runtime.settings({})}

    def refuse(name: str, wanted: str) -> LineError:
        return LineError(where[name], f"{name}: {values[name]!r} is not {wanted}")

    for name, value in values.items():
        if name not in known and (reader := _reader(name)):
            message = f'{name}: is read where runtime = "{reader}" in [tool.livepages]; here it is "{runtime.name}"'
            raise LineError(where[name], message)
        if name in _FORMER:
            raise LineError(where[name], f"{name}: is called {_FORMER[name]} now")
        if name not in known and (meant := closest(name, known, 0.8)):  # other programs have names of their own
            raise LineError(where[name], f"{name}: no setting has this name{meant}")
        if name in KNOWN and not KNOWN[name][1](value):
            raise refuse(name, KNOWN[name][0])
    try:
        of_runtime = runtime.settings(values)
    except SettingError as error:
        raise refuse(error.name, error.wanted) from None
    given: dict[str, Any] = values
    settings = Settings(
        timeout=given.get("timeout", 0.0),
        exclusive=given.get("exclusive", False),
        depends_on=tuple(given.get("depends_on", ())),
        runtime=of_runtime,
        settings_summary=runtime.settings_summary(of_runtime),
        lines=where,
    )
    return settings, values


@cache
def _reader(name: str) -> str:
    """Return the name of a runtime whose setting this is; empty if it is none's."""
    return next((runtime for runtime in runtimes() if name in find_runtime(runtime).settings({})), "")


def _values(text: str) -> tuple[dict[str, object], dict[str, int]]:
    """Return the values in a text of YAML by name, without empty ones, and the lines of the page they are on."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        found = {} if node is None else loader.construct_document(node)
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 2
        raise LineError(line, f"the front matter is not YAML: {error.reason}: {chr(error.character)!r}") from None
    except yaml.YAMLError as error:
        mark, lines = getattr(error, "problem_mark", None), text.splitlines()
        problem = getattr(error, "problem", None) or str(error)
        what = f"{problem}: {lines[mark.line].strip()}" if mark and mark.line < len(lines) else problem
        raise LineError(mark.line + 2 if mark else 1, f"the front matter is not YAML: {what}") from None
    except (ValueError, OverflowError, RecursionError) as error:  # a date of month 13, for one
        raise LineError(1, f"a value of the front matter cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise LineError(1, "the front matter is not a mapping; write it as name: value")
    where: dict[str, int] = {}
    for key, _ in node.value if node else ():
        name, line = str(key.value), key.start_mark.line + 2
        if name in where:
            raise LineError(line, f"{name}: is given twice, first on line {where[name]}")
        where[name] = line
    if odd := [name for name in found if not isinstance(name, str)]:
        raise LineError(where.get(str(odd[0]), 1), f"{odd[0]}: a name in the front matter is text; put it in quotes")
    return {name: value for name, value in found.items() if value is not None}, where


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "".join(value.split()).isprintable()


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_pages(value: object) -> bool:
    """Return whether these are names below the folder of pages, so that each has an address in the site."""
    names = [posixpath.normpath(name) for name in value] if isinstance(value, list) and _are_texts(value) else [".."]
    return not any(name.startswith("/") or name.split("/")[0] in (".", "..") for name in names)


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


_FORMER = {"alone": "exclusive", "reads": "depends_on"}
KNOWN: dict[str, tuple[str, Callable[[object], bool]]] = {
    "exclusive": ("true or false", lambda value: isinstance(value, bool)),
    "timeout": ("a number of seconds up to 86400", lambda value: value != 0 and _is_number(value, 0, 86400)),
    "depends_on": ("a list of files and folders of the project", _are_texts),
    "title": ("text; put it in quotes", _is_text),
    "description": ("text; put it in quotes", _is_text),
    "before": ("a list of pages, as [basics/arrays.md]", _are_texts),
    "redirect_from": ("a list of pages that this one replaces, as [basics/old-name.md]", _are_pages),
    "requires": ("a list of distributions, as [rich]", _are_texts),
    "tags": ("a list of texts", _are_texts),
}
