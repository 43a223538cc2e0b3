"""The files of records: read with every value checked, as people edit them, and replaced as a whole."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml

from livepages.execution import replace_text
from livepages.source import LineError, ProjectError

Made = TypeVar("Made")


class RecordError(LineError):
    """A record that cannot be read."""


def read(file: Path) -> str:
    """The text of a file.

    Raises:
        RecordError: it cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(1, str(error)) from None


def load(text: str) -> dict[str, Any]:
    """The mapping in the text of a file.

    Raises:
        RecordError: there is none.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            raise RecordError(number, "a merge has left both its versions here")
    try:
        data = yaml.load(text, yaml.CSafeLoader)  # noqa: S506  (a safe loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise RecordError(mark.line + 1 if mark else 1, getattr(error, "problem", "") or str(error)) from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise RecordError(1, str(error)) from None
    if not isinstance(data, dict):
        raise RecordError(1, "is not a mapping")
    return data


def make(kind: type[Made], values: object, **more: object) -> Made:
    """An object of a data class, from values by the names of its fields.

    Raises:
        RecordError: a value is missing, or is not of the kind of its field.
    """
    if not isinstance(values, Mapping):
        raise RecordError(1, f"{values!r} is not a mapping")
    values = {**values, **more}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in values and not _fits(values[field.name], field.type):
            raise RecordError(1, f"{field.name}: {values[field.name]!r} is of another kind than it should be")
    try:
        return kind(**values)
    except TypeError as error:
        raise RecordError(1, str(error).partition(" ")[2]) from None


def _fits(value: object, kind: Any) -> bool:
    if (get_origin(kind) or kind) is Mapping:
        _, inner = get_args(kind)
        return isinstance(value, dict) and all(_fits(held, inner) for held in value.values())
    return isinstance(value, (int, float) if kind is float else kind)


def write(file: Path, text: str) -> bool:
    """Put text into a file, as `replace_text` does, if it has another.

    Returns:
        whether the file changed.

    Raises:
        ProjectError: the file cannot be written; then it is as it was.
    """
    try:
        if file.is_file() and file.read_text(encoding="utf-8", errors="replace") == text:
            return False
        replace_text(file, text)
    except OSError as error:
        raise ProjectError(f"{file}: cannot be written: {error.strerror}") from None
    return True
