"""The front matter of a page: how its process is set up, and what the page says about itself."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from livepages.source.fences import LineError
from livepages.source.options import NEEDS
from livepages.source.suggestions import closest


@dataclass(frozen=True)
class Settings:
    """What a page's front matter says about its process."""

    devices: int = 1
    x64: bool = False
    needs: str = ""
    timeout: float = 0.0
    alone: bool = False  # the page measures time: it runs while no other page does
    jax: Mapping[str, object] = field(default_factory=dict)


def front_matter_length(lines: list[str]) -> int:
    """How many lines of a page its front matter takes; 0 unless the first one is ``---``.

    Raises:
        LineError: it is not closed.
    """
    if lines[0].rstrip() != "---":
        return 0
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise LineError(1, "the front matter is not closed; end it with a line ---")
    return end + 1


def read_front_matter(lines: Sequence[str]) -> tuple[Settings, dict[str, object]]:
    """What the lines of a front matter say: the settings, and all values by name.

    Raises:
        LineError: it is not YAML, or holds a value that cannot be used.
    """
    values, where = _values("\n".join(lines[1:-1]))
    for name, value in values.items():
        if name not in _FORMS:
            if meant := closest(name, _FORMS, 0.8):  # other programs have names of their own
                raise LineError(where[name], f"{name}: nothing has this name{meant}")
            continue
        wanted, right = _FORMS[name]
        if not right(value):
            raise LineError(where[name], f"{name}: {value!r} is not {wanted}")
    settings = {name: value for name, value in values.items() if name in Settings.__dataclass_fields__}
    return Settings(**settings), values  # type: ignore[arg-type]


def _values(text: str) -> tuple[dict[str, object], dict[str, int]]:
    """The values in a text of YAML by name, without those that are empty, and the lines of the page they are on."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        found = {} if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise LineError(mark.line + 2 if mark else 1, f"the front matter is not YAML: {error}") from None
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


def _is_setting(value: object) -> bool:
    """Whether JAX's configuration may hold such a value."""
    return isinstance(value, bool | str) or (isinstance(value, int | float) and math.isfinite(value))


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


_FORMS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "devices": ("a whole number from 1 to 512", lambda value: isinstance(value, int) and _is_number(value, 1, 512)),
    "x64": ("true or false", lambda value: isinstance(value, bool)),
    "alone": ("true or false", lambda value: isinstance(value, bool)),
    "needs": (
        'a device such as "gpu" or "gpus>=2"',
        lambda value: isinstance(value, str) and bool(NEEDS.fullmatch(value)),
    ),
    "timeout": ("a number of seconds up to 86400", lambda value: value != 0 and _is_number(value, 0, 86400)),
    "jax": (
        "a mapping of jax configuration names to true, false, numbers or text",
        lambda value: isinstance(value, dict) and all(map(_is_text, value)) and all(map(_is_setting, value.values())),
    ),
    "title": ("text; put it in quotes", _is_text),
    "description": ("text; put it in quotes", _is_text),
    "before": ("a list of pages, as [basics/arrays.md]", _are_texts),
    "requires": ("a list of distributions, as [rich]", _are_texts),
    "tags": ("a list of texts", _are_texts),
}
