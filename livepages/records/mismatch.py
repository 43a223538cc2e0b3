"""An outcome compared with the records of the same code: one of the same kind decides, any other only informs.

The kind is that of the device and, for a processor, of the computer, and the release of the runtime.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from livepages.execution import Outcome, Run
from livepages.records.differences import Difference, differ
from livepages.records.store import Host, RecordedOutcome, entry
from livepages.source import Block
from livepages.worker import Runtime


@dataclass(frozen=True)
class Mismatch:
    """How a block's outcome differs from the nearest record of the same code."""

    host: Host  # of the record
    difference: Difference
    same_kind: bool  # whether it ran on the kind of the record, where it must not differ

    def __str__(self) -> str:
        return f"the record of {self.host.name} ({self.host.label}) differs; {self.difference}"


def mismatch(
    block: Block, outcome: Outcome, run: Run, seen: Iterable[RecordedOutcome], runtime: Runtime
) -> Mismatch | None:
    """How a block's outcome differs from the nearest records of the same code; None if it equals one of them.

    The nearest are those of the same kind; if there are none, those of the same device and release; else all.

    Args:
        block: the block.
        outcome: the result of running it here.
        run: of its page.
        seen: what hosts saw of the block.
        runtime: what ran it here.
    """
    here = entry(block, outcome)
    known = [other for other in seen if other.entry.good]
    same = [other for other in known if same_kind(other, run, runtime)]
    alike = [other for other in known if _is_alike(other, run, runtime)]
    found = []
    for other in same or alike or known:
        difference = differ(other.entry, here, block.options.tolerance, block.options.volatile, runtime.noise_patterns)
        if difference is None:
            return None
        found.append(Mismatch(other.host, difference, bool(same)))
    return found[0] if found else None


def same_kind(other: RecordedOutcome, run: Run, runtime: Runtime) -> bool:
    """Whether a record and a run are of the same kind of device and computer and of the same release.

    On an accelerator, the kind of computer doesn't matter.
    """
    if not _is_alike(other, run, runtime):
        return False
    return other.host.computer == run.computer or not runtime.is_processor(run.device)


def _is_alike(other: RecordedOutcome, run: Run, runtime: Runtime) -> bool:
    return (other.device, other.host.release) == (run.device, runtime.release)
