"""The results of running a page: each block paired with its outcome, once, for everything that shows or checks it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from livepages.execution.truncate import MESSAGE, TRACEBACK, head, head_tail, truncated
from livepages.source import Block, Fault, Page, PageError
from livepages.worker import Outcome, check_outcome, stopped_after


@dataclass(frozen=True)
class Failure:
    """Something that is wrong with a page, for people to read."""

    page: str
    line: int  # of the failing statement
    block: int  # of the block's fence; 0 where it is not about a block
    message: str
    detail: str = ""

    def __str__(self) -> str:
        block = f"block of line {self.block}: " if self.block else ""
        text = f"{self.page}:{self.line}: {block}{self.message}"
        return f"{text}\n{_indent(self.detail)}" if self.detail else text


@dataclass(frozen=True)
class BlockResult:
    """A block with its outcome; made by `pair_results` alone."""

    block: Block
    outcome: Outcome  # all of it; see `truncated`
    stopped_by: "BlockResult | None" = None  # the result of the failed block because of which this one did not run

    @cached_property
    def failure(self) -> Failure | None:
        """The failure of the block; None if its fence is right and its outcome as the page expects or still pending."""
        if fault := self.block.fault:  # of which anything else that is wrong may come
            return Failure(self.block.page, fault.line, 0, fault.message)
        found = check_outcome(self.block.expected, self.outcome)
        if found is None:
            return None
        message, detail = self.block.describe(found[0]), found[1]
        if self.outcome.line:
            return Failure(self.block.page, self.outcome.line, 0, message)
        line = self.block.page_line(self.outcome.raised.line if self.outcome.raised else None)
        return Failure(
            self.block.page, line, self.block.fence_line, head(message, MESSAGE), head_tail(detail, TRACEBACK)
        )

    @cached_property
    def truncated(self) -> Outcome:
        """The outcome as it is shown and kept, with notes instead of too long texts and figures."""
        return truncated(self.outcome)

    @property
    def hidden(self) -> bool:
        """Return whether nothing of the block is shown, neither its code nor its output."""
        if self.block.fence.comment:
            return True
        outcome = self.outcome
        visible = (
            not self.block.runs
            or outcome.pending
            or outcome.streams
            or outcome.displays
            or outcome.figures
            or self.failure
        )
        return self.block.options.source == "none" and not visible


@dataclass(frozen=True)
class Run:
    """The results of a page's blocks, in order, and everything else that they depend on."""

    # For each block and inline expression, also for those that do not run; then the variants.
    results: tuple[BlockResult, ...]
    device: str = ""
    computer: str = ""  # the kind, as `Runtime.computer` names it
    files: tuple[str, ...] = ()  # and folders, whose content they depend on; as seen from the project's root
    probes: tuple[str, ...] = ()  # everything else that the page looked up in its surroundings
    contents: Mapping[str, str | None] = field(default_factory=dict, compare=False)  # what files held, by probe
    written: tuple[str, ...] = ()  # files of the project that the page has written itself
    modules: tuple[str, ...] = ()  # top-level names imported from installed distributions
    seconds: float = 0.0
    ready: float = 0.0  # seconds until the fresh process could begin

    def of(self, page: Page) -> "Run":
        """The same run, for another text of the page that has the same program."""
        return replace(self, results=pair_results(page, self.outcomes))

    @property
    def program(self) -> tuple[BlockResult, ...]:
        """The results of the blocks and inline expressions that the page runs, then of the variants."""
        return tuple(result for result in self.results if result.block.runs)

    @property
    def on_page(self) -> tuple[BlockResult, ...]:
        """The results of the page's own blocks, in order, without variants and inline expressions."""
        blocks = (result for result in self.results if result.block.variant_of is None)
        return tuple(result for result in blocks if not result.block.is_inline)

    @property
    def inline_expressions(self) -> tuple[BlockResult, ...]:
        """The results of the inline expressions, in order."""
        return tuple(result for result in self.results if result.block.is_inline)

    def variants(self, block: Block) -> tuple[BlockResult, ...]:
        """Return the results of a block with its other parameters."""
        return tuple(result for result in self.results if result.block.variant_of == block.index)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes of the blocks that the page runs, without the blocks."""
        return tuple(result.outcome for result in self.program)

    @property
    def pending(self) -> bool:
        """Return whether a block has not run yet: the page still runs, or was run in part."""
        return any(result.outcome.pending for result in self.results)

    @property
    def stopped(self) -> list[BlockResult]:
        """The results of the blocks and inline expressions that did not run because a block failed."""
        return [result for result in self.results if result.stopped_by]

    @property
    def failures(self) -> list[Failure]:
        """Every block's failure, in order."""
        return [result.failure for result in self.results if result.failure]


def pair_results(page: Page, outcomes: Iterable[Outcome] = ()) -> tuple[BlockResult, ...]:
    """Pair each block and inline expression of a page with its outcome.

    Args:
        page: the page.
        outcomes: those of its cases, in order; those for which there is none are pending.
    """
    given = iter(outcomes)
    program: list[BlockResult] = []
    results = []
    for block in (*page.in_order, *page.variants):
        if block.runs:
            result = _pair(block, next(given, Outcome(pending=True)), program)
            program.append(result)
        else:
            result = BlockResult(block, Outcome(skipped=block.options.reason))
        results.append(result)
    return tuple(results)


def _pair(block: Block, outcome: Outcome, before: Sequence[BlockResult]) -> BlockResult:
    if outcome.stopped_by is None:
        return BlockResult(block, outcome)
    failed = before[outcome.stopped_by]  # its line may be another by now
    skipped = stopped_after(outcome.stopped_by, failed.block.line).skipped
    return BlockResult(block, replace(outcome, skipped=skipped), failed)


def as_failures(page: str, faults: Iterable[Fault | PageError]) -> list[Failure]:
    """Return faults in the text of a page as they are reported, about no block."""
    return [Failure(page, fault.line, 0, fault.message) for fault in faults]


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.rstrip().splitlines())
