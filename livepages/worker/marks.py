"""The marks above a block that keep it from running, as in pytest and pytest-codeblocks.

They are evaluated in the page's process, where they can do no harm, right before the block would run.
"""

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any


class Mark:
    """A mark such as ``pytest.mark.name`` or ``pytest.mark.name(...)``: pytest itself takes long to import."""

    def __init__(self, name: str, conditions: tuple[object, ...] = (), reason: str = "") -> None:
        self.name, self.conditions, self.reason = name, conditions, reason

    def __call__(self, *conditions: object, reason: str = "", **_: object) -> "Mark":
        """Return the mark with a message about it."""
        return Mark(self.name, conditions, reason)


class _Marks:
    def __getattr__(self, name: str) -> Mark:
        return Mark(name)


# The names that a mark may use.
_NAMES: dict[str, Any] = {"os": os, "platform": platform, "shutil": shutil, "sys": sys}


def skipped(marks: Iterable[str], importorskip: str) -> str:
    """Return why a block must not run here; empty if nothing keeps it from running.

    Args:
        marks: as written above the block.
        importorskip: the module that it cannot do without, empty if there is none.

    Raises:
        BaseException: whatever a mark raises.
    """
    if importorskip and not _is_there(importorskip.strip("\"' ")):
        return f"needs the module {importorskip}"
    for text in marks:
        mark = eval(text, {**_NAMES, "pytest": SimpleNamespace(mark=_Marks())})  # noqa: S307
        if not isinstance(mark, Mark):
            raise TypeError(f"{text} is not a mark")
        if mark.name == "skip":
            return str(mark.reason or next(iter(mark.conditions), "skipped by its mark"))
        if mark.name == "skipif" and any(_holds(condition) for condition in mark.conditions):
            return str(mark.reason or "skipped by its mark")
    return ""


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package that it would be in
        return False


def _holds(condition: object) -> bool:
    if isinstance(condition, str):
        return bool(eval(condition, dict(_NAMES)))  # noqa: S307
    return bool(condition)
