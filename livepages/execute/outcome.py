"""What running a page gave: plain data that the cache keeps, and the integrations show and judge."""

import re
from dataclasses import dataclass

from livepages.execute.sizes import MESSAGE, TRACEBACK, beginning, ends
from livepages.source import Block, Page
from livepages.worker import Outcome, Raised


@dataclass(frozen=True)
class Run:
    """The outcomes of a page's program, block by block, and what they rest on besides the page."""

    outcomes: tuple[Outcome, ...]
    device: str = ""
    files: tuple[str, ...] = ()  # and folders, whose content they rest on
    questions: tuple[str, ...] = ()  # all else that the page asked about its surroundings
    modules: tuple[str, ...] = ()  # top-level names imported from installed distributions
    seconds: float = 0.0
    ready: float = 0.0  # seconds until the fresh process could begin

    @property
    def pending(self) -> bool:
        """Whether the page still runs."""
        return any(outcome.pending for outcome in self.outcomes)

    def by_block(self, page: Page) -> dict[int, Outcome]:
        """The outcome of each block of the page that runs, by its index."""
        return {block.index: outcome for block, outcome in zip(page.program, self.outcomes, strict=True)}


@dataclass(frozen=True)
class Failure:
    """What a page says and does not do, for people to read."""

    page: str
    line: int  # of the failing statement
    block: int  # of the block's fence; 0 where it is not about a block
    message: str
    detail: str = ""

    def __str__(self) -> str:
        block = f"block of line {self.block}: " if self.block else ""
        text = f"{self.page}:{self.line}: {block}{self.message}"
        return f"{text}\n{_indent(self.detail)}" if self.detail else text


def failures(page: Page, run: Run) -> list[Failure]:
    """Every failure of a page's run, in order."""
    found = []
    for block, outcome in zip(page.program, run.outcomes, strict=True):
        if failure := judge(block, outcome):
            found.append(failure)
    return found


def judge(block: Block, outcome: Outcome) -> Failure | None:
    """What is wrong with a block's outcome, None if it is as the page says."""
    options, raised = block.options, outcome.raised

    def failure(message: str, detail: str = "") -> Failure:
        line = block.page_line(raised.line if raised else None)
        return Failure(block.page, line, block.line, beginning(message, MESSAGE), ends(detail, TRACEBACK))

    if outcome.skipped or outcome.pending:
        return None
    if outcome.fault:
        return failure(outcome.fault, outcome.stdout[-2000:])
    if options.raises:
        if raised is None:
            return failure(f"should raise {options.raises}, but raised nothing")
        if options.raises not in raised.bases:
            return failure(f"should raise {options.raises}, but raised {raised.type}", raised.traceback)
        if not re.search(options.match, raised.message):
            return failure(f"the message of {raised.type} does not match {options.match!r}", raised.traceback)
    elif raised is not None:
        return failure(f"raised {_summary(raised)}", raised.traceback)
    if outcome.figures and not options.alt:
        return failure('a figure needs alt="…" on the fence: what it shows, in words')
    if options.alt and not outcome.figures:
        return failure("alt describes a figure, but the block leaves none open")
    if block.expected_output is not None:
        wanted, got = block.expected_output, outcome.stdout
        if block.expected_output_ignore_whitespace:
            wanted, got = re.sub(r"\s+", "", wanted), re.sub(r"\s+", "", got)
        if wanted != got:
            return failure("the output is not the expected one", f"expected:\n{wanted}\ngot:\n{got}")
    return None


def count(number: int, what: str) -> str:
    """A number of things, in words: ``1 block``, ``2 blocks``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def _summary(raised: Raised) -> str:
    first = raised.message.strip().splitlines()[0] if raised.message.strip() else ""
    return f"{raised.type}: {first}" if first else raised.type


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.rstrip().splitlines())
