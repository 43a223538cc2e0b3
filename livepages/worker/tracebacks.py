"""Stacks as a script would see them: without the frames of the engine that runs the page's code."""

import inspect
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from types import CodeType, FrameType

from livepages.worker.probes import ENGINE

OUTSIDE = ("<frozen runpy>",)  # the frames above the engine's
# As `faulthandler` writes them, by no means of Python's.
ENGINE_FRAMES = re.compile(rf'  File "(?:{re.escape(ENGINE)}/[^"\n]*|<frozen runpy>)", line \d+ in \S+\n'.encode())


def hide_frames(runs: CodeType) -> None:
    """Hide the frames of the engine from stacks that this process prints or inspects.

    Args:
        runs: the code of the function that runs the page's code, below which stacks end.
    """
    around, formatted = inspect.getouterframes, warnings.formatwarning

    def page_frames(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
        while frame and frame.f_code is not runs:
            yield frame, frame.f_lineno
            frame = frame.f_back

    def walk_stack(f: FrameType | None) -> Iterator[tuple[FrameType, int]]:
        return page_frames(f or sys._getframe(1))

    def getouterframes(frame: FrameType, context: int = 1) -> list[inspect.FrameInfo]:
        found = around(frame, context)
        return found[: next((at for at, info in enumerate(found) if info.frame.f_code is runs), None)]

    def formatwarning(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if filename in OUTSIDE or filename.startswith(f"{ENGINE}/"):  # a stacklevel that leads out of the script
            filename, lineno, line = "sys", 1, ""
        return formatted(message, category, filename, lineno, line)

    traceback.walk_stack = walk_stack
    inspect.getouterframes = getouterframes
    warnings.formatwarning = formatwarning
