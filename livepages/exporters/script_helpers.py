"""The helpers of scripts and notebooks, besides the code of their page. Readers get their source (`source`).

Each class and function uses no other name of this module, and imports what it needs.
"""

import inspect
from collections.abc import Callable
from typing import Any


def source(piece: type | Callable[..., Any]) -> str:
    """The code of a class or function of this module, as a reader gets it."""
    return inspect.getsource(piece).rstrip("\n")


class MustRaise:
    """The lines below it must raise this error, which it shows; then the script goes on."""

    def __init__(self, name: str, match: str = "") -> None:
        self.name, self.match = name, match

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        import re

        bases = kind.__mro__ if kind else ()
        names = {name for base in bases for name in (base.__name__, f"{base.__module__}.{base.__qualname__}")}
        if kind is None or self.name not in names or not re.search(self.match, str(error)):
            raise AssertionError(f"expected {self.name} here, with a message that matches {self.match!r}") from error
        print(f"{kind.__name__}: {error}")
        return True


def show_figures() -> None:
    """Show the figures of the lines above."""
    import matplotlib.pyplot as plt

    plt.show()
    plt.close("all")


class SiteFiles:
    """Files of the site that this page uses, in a folder that Python searches for modules; it goes with the process."""

    def __init__(self) -> None:
        import sys
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        sys.path.insert(0, self.folder.name)

    def bring(self, name: str, text: str) -> None:
        """Make a file of this name, which may have folders in it."""
        from pathlib import Path

        file = Path(self.folder.name, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
