"""The lines that commands print: failures, runs, numbers of blocks, and advice."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from livepages.execution import (
    ERR,
    BlockResult,
    Failure,
    Run,
    State,
    block_states,
    count,
    count_wrong,
    counted,
    inline_states,
)
from livepages.source import Block, Page, Project


def by_page(blocks: list[Block]) -> list[list[Block]]:
    """Return the blocks of each page; those of one follow each other."""
    return [list(of_page) for _, of_page in groupby(blocks, key=attrgetter("page"))]


def and_more(blocks: list[Block]) -> str:
    """Return in parentheses how many blocks of a page there are besides the first; nothing if there are none."""
    more = number_of(blocks, besides=blocks[0])
    return f" (and {more} of the page)" if more else ""


def number_of(blocks: Iterable[Block], besides: Block | None = None) -> str:
    """Say how many blocks and inline expressions there are; a block and its variants count once."""
    parts = {(block.page, block.is_inline, _index(block)) for block in blocks}
    if besides:
        parts.discard((besides.page, besides.is_inline, _index(besides)))
    inline = sum(is_inline for _, is_inline, _ in parts)
    more = "more " if besides else ""
    found = [(len(parts) - inline, f"{more}block"), (inline, f"{more}inline expression")]
    return " and ".join(count(number, what) for number, what in found if number)


def _index(block: Block) -> int:
    return block.index if block.variant_of is None else block.variant_of


def stopped(page: Page, run: Run) -> Iterator[str]:
    """A line for the blocks of a page that did not run because another one failed."""
    if run.stopped:
        first = run.stopped[0]
        what = number_of(result.block for result in run.stopped)
        yield f"{page.name}:{first.block.line}: {what} not run: {first.outcome.skipped}"


def summary(
    pages: int, ran: Iterable[tuple[Page, Run]], failed: Mapping[str, Container[int]], new: Container[str]
) -> str:
    """Return a line that sums up a build.

    Args:
        pages: how many the site has.
        ran: those that count, each with its run.
        failed: the indexes of the blocks that failed, by the name of the page.
        new: the names of the pages that ran in this build.
    """
    total: Counter[State] = Counter()
    inline: Counter[State] = Counter()
    unchanged = 0
    for page, run in ran:
        states = block_states(run, failed[page.name])
        total += states
        inline += inline_states(run, failed[page.name])
        unchanged += states[State.RAN] * (page.name not in new and not run.pending)
    parts = [
        f"{total[State.RAN] - unchanged} run now",
        f"{unchanged} unchanged",
        f"{total[State.OFF]} not run",
        *(f"{number} failed" for number in [total[State.FAILED]] if number),
        *(f"{number} not run because of a failure" for number in [total[State.STOPPED]] if number),
        *(f"{number} still running" for number in [total[State.PENDING]] if number),
    ]
    counts = f"{count(pages, 'page')}, {count(total.total(), 'Python block')}: {', '.join(parts)}"
    return "; ".join(filter(None, [counts, count_wrong(inline, "inline expression")]))


def hint(project: Project, pages: Iterable[Page]) -> str:
    """Return a hint for the author of these pages if they have Python fences and none runs; empty otherwise."""
    pages = [*pages]
    if project.fences == "all" or any(page.blocks for page in pages):
        return ""
    fences = sum(project.scanner.count_not_executed(page.text) for page in pages)
    if not fences:
        return ""
    return (
        f'0 of {count(fences, "Python fence")} run; write exec="on" on those that should, or fences = "all" under '
        "[tool.livepages] in pyproject.toml to run them all"
    )


def renewal(host: str, pages: Iterable[str]) -> str:
    """Return how to renew the records of a host for these pages, by name; empty if there are none."""
    names = sorted(set(pages))
    if not names:
        return ""
    few = names if len(names) < 6 else []
    which = " ".join(few) if few else f"{names[0]} and {len(names) - 1} more"
    command = " ".join(["livepages record", *few, "--host", host])
    return f"The records of {count(len(names), 'page')} are out of date, {which}: `{command}` renews them"


def print_failures(failed: list[Failure]) -> int:
    """Print failures and their number; return the exit status."""
    for failure in failed:
        print(failure)
    if failed:
        print(f"{len(failed)} failed")
    return 1 if failed else 0


def print_line(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def print_run(run: Run) -> None:
    """Print what each block of a page wrote, showed and raised, and how long it took."""
    for result in run.program:
        outcome = result.outcome
        print(f"--- {result.block.page}:{result.block.where}  {_cost(result)}")
        for stream, text in outcome.streams:
            print(text if stream != ERR else "".join(f"! {line}\n" for line in text.splitlines()), end="")
        for bundle in outcome.displays:
            print(bundle["text/plain"])
        if outcome.figures:
            print(f"[{count(len(outcome.figures), 'figure')}]")
        if outcome.raised:
            print(outcome.raised.traceback)


def _cost(result: BlockResult) -> str:
    outcome = result.outcome
    if outcome.skipped:
        return f"not run: {outcome.skipped}"
    return ", ".join([f"{outcome.seconds:.2f} s", *counted(outcome.counts)])
