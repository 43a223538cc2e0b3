"""The states of a page's blocks, and how many there are of each, in words."""

from collections import Counter
from collections.abc import Container, Mapping
from enum import IntEnum, auto

from livepages.execution.results import BlockResult, Run


class State(IntEnum):
    """The state of a block; of one that varies, the first of these that holds with any of its parameters."""

    FAILED = auto()
    STOPPED = auto()  # it did not run because another block failed
    PENDING = auto()
    RAN = auto()
    OFF = auto()  # it does not run, or not on this host


def _state(result: BlockResult, also_failed: Container[int] = ()) -> State:
    if result.failure or result.block.index in also_failed:
        return State.FAILED
    if result.stopped_by:
        return State.STOPPED
    if result.block.runs and result.outcome.pending:
        return State.PENDING
    return State.OFF if result.outcome.skipped or not result.block.runs else State.RAN


def block_states(run: Run, also_failed: Container[int] = ()) -> Counter[State]:
    """Count a page's blocks by their state: a block that varies counts once, and inline expressions do not.

    Args:
        run: the results of the page's blocks.
        also_failed: the indexes of blocks that are wrong for another reason than their outcome.
    """
    blocks = ((result, *run.variants(result.block)) for result in run.on_page)
    return Counter(min(_state(one, also_failed) for one in results) for results in blocks)


def inline_states(run: Run, also_failed: Container[int] = ()) -> Counter[State]:
    """Count a page's inline expressions by their state, as `block_states` its blocks."""
    return Counter(_state(result, also_failed) for result in run.inline_expressions)


def count_wrong(states: Counter[State], what: str) -> str:
    """Say how many blocks or inline expressions failed or did not run because of that; empty if none."""
    of = f" of {count(states.total() - states[State.OFF], what)}"
    parts = []
    for number, how in ((states[State.FAILED], "failed"), (states[State.STOPPED], "not run")):
        if number:
            parts.append(f"{number}{of} {how}")
            of = ""
    return ", ".join(parts)


def count(number: int, what: str) -> str:
    """Say how many things there are: ``1 block``, ``2 blocks``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def counted(counts: Mapping[str, int]) -> list[str]:
    """Say what the runtime has counted: ``2 traces``, ``1 compile``."""
    return [count(number, what.removesuffix("s")) for what, number in counts.items()]
