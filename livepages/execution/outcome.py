"""What running a page gave: plain data that the cache keeps, and the integrations show and judge."""

from dataclasses import dataclass

from livepages.execution.truncate import MESSAGE, TRACEBACK, head, head_tail
from livepages.source import Block, Page
from livepages.worker import Outcome, check_outcome


@dataclass(frozen=True)
class Run:
    """The outcomes of a page's program, block by block, and what they rest on besides the page."""

    outcomes: tuple[Outcome, ...]
    device: str = ""
    computer: str = ""  # the kind, as `Runtime.computer` names it
    files: tuple[str, ...] = ()  # and folders, whose content they rest on; as seen from the project's root
    probes: tuple[str, ...] = ()  # all else that the page asked about its surroundings
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
    found = check_outcome(block.expected, outcome)
    if found is None:
        return None
    if outcome.line:
        return Failure(block.page, outcome.line, 0, found[0])
    line = block.page_line(outcome.raised.line if outcome.raised else None)
    message, detail = found
    return Failure(block.page, line, block.line, head(message, MESSAGE), head_tail(detail, TRACEBACK))


def count(number: int, what: str) -> str:
    """A number of things, in words: ``1 block``, ``2 blocks``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.rstrip().splitlines())
