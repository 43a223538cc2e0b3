"""The progress of the pages: a bar on a terminal, a line for each page in a log."""

import sys
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

from livepages.execution import Run, State, block_states, count, count_wrong, inline_states
from livepages.source import Page


class Progress:
    """The progress of the pages of one build; pass its methods to `Build.run`."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._bar: tqdm[Any] | None = None

    def started(self, pages: list[Page]) -> None:
        """Say which pages are about to run."""
        if pages and sys.stderr.isatty():
            self._bar = tqdm(total=len(pages), desc="running pages", unit="page", leave=False)

    def done(self, page: Page, run: Run) -> None:
        """Say that a page has run."""
        blocks = block_states(run)
        wrong = [count_wrong(blocks, "block"), count_wrong(inline_states(run), "inline expression")]
        result = "; ".join(filter(None, wrong)) or count(blocks.total() - blocks[State.OFF], "block")
        if self._bar is None:
            self._write(f"ran {page.name}: {result}, {run.seconds:.1f} s")
            return
        self._bar.set_postfix_str(page.name, refresh=False)
        self._bar.update()
        if self._bar.n == self._bar.total:
            self._bar.close()
            self._bar = None
