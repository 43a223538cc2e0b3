"""Marks that keep a block from running on this host, as users of pytest and pytest-codeblocks know them."""

import importlib.util
import os
import platform
import shutil
import sys

import pytest

from livepages.source import Block, PageError

_NAMES = {"os": os, "platform": platform, "shutil": shutil, "sys": sys}  # what a mark's condition may ask


def marks_of(block: Block) -> list[pytest.MarkDecorator]:
    """The pytest marks written above a block.

    Raises:
        PageError: a mark is not valid Python, or not a mark.
    """
    found = []
    for text in block.marks:
        try:
            mark = eval(text, {**_NAMES, "pytest": pytest})  # noqa: S307
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  (an unknown mark fails under strict pytest)
            raise PageError(block.page, block.line, f"mark {text}: {type(error).__name__}: {error}") from None
        if not isinstance(mark, pytest.MarkDecorator):
            raise PageError(block.page, block.line, f"{text} is not a mark")
        found.append(mark)
    return found


def skipped(block: Block) -> str:
    """Why marks keep a block from running on this host; empty if nothing does."""
    if block.importorskip and importlib.util.find_spec(block.importorskip.strip("\"' ")) is None:
        return f"needs the module {block.importorskip}"
    for mark in marks_of(block):
        if mark.name == "skipif" and any(_holds(condition) for condition in mark.args):
            return str(mark.kwargs.get("reason") or "skipped by its mark")
    return ""


def _holds(condition: object) -> bool:
    if isinstance(condition, str):
        return bool(eval(condition, dict(_NAMES)))  # noqa: S307
    return bool(condition)
