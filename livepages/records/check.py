"""Check the result of a block: against what its page expects, and against the records of the same code.

A difference from a record of the same kind of host is a failure, from any other a mismatch. The kind is
that of the device and, for a processor, of the computer, and the release of the runtime.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from livepages.execution import BlockResult, Failure, Run
from livepages.records.differences import Difference, differ
from livepages.records.model import Host, RecordedOutcome, entry
from livepages.records.store import Records
from livepages.source import Page
from livepages.worker import Runtime


@dataclass(frozen=True)
class Mismatch:
    """The difference between a block's outcome and the nearest record of the same code."""

    host: Host  # of the record
    difference: Difference

    def __str__(self) -> str:
        return f"the record of {self.host.name} ({self.host.label}) differs; {self.difference}"


def check_block(
    result: BlockResult, run: Run, seen: Sequence[RecordedOutcome], runtime: Runtime
) -> Failure | Mismatch | None:
    """Check a block: the one function that the build, the tests and the command line call.

    Args:
        result: of the block.
        run: of its page.
        seen: the recorded outcomes of the block.
        runtime: that ran it here.

    Returns:
        a failure if the block did not do what its page expects, or differs from the record of the same kind of host;
        if there is none of the same kind, a mismatch if the block differs from the nearest records: those of the same
        device and release, else all; None if nothing is wrong.
    """
    if result.failure or result.outcome.pending or result.outcome.skipped:
        return result.failure
    known = [other for other in seen if other.entry.good]
    same = [other for other in known if same_kind(other, run, runtime)]
    alike = [other for other in known if _is_alike(other, run, runtime)]
    found = _mismatch(result, same or alike or known, runtime)
    if found is None or not same:
        return found
    block = result.block
    message = block.describe("the output differs from the record; if it is right, record it with `livepages record`")
    return Failure(block.page, block.line, block.fence_line, message, str(found))


def check_page(page: Page, run: Run, records: Records) -> list[Failure]:
    """Check every block of a page, as `check_block`."""
    return list(check_blocks(page, run, records).values())


def check_blocks(page: Page, run: Run, records: Records) -> dict[int, Failure]:
    """Check every block of a page, as `check_block`; the failures by the index of their block, in order."""
    seen = records.seen(page)
    checked = {
        result.block.index: check_block(result, run, seen(result.block), records.runtime) for result in run.results
    }
    return {index: found for index, found in checked.items() if isinstance(found, Failure)}


def _mismatch(result: BlockResult, records: Sequence[RecordedOutcome], runtime: Runtime) -> Mismatch | None:
    """Compare a result with records; None if it equals one of them, or if there are none."""
    options = result.block.options
    found = []
    for record in records:
        difference = differ(record.entry, entry(result), options.tolerance, options.volatile, runtime.noise_patterns)
        if difference is None:
            return None
        found.append(Mismatch(record.host, difference))
    return found[0] if found else None


def same_kind(other: RecordedOutcome, run: Run, runtime: Runtime) -> bool:
    """Return whether a record and a run are of the same kind of device and computer and of the same release.

    On an accelerator, the kind of computer doesn't matter.
    """
    if not _is_alike(other, run, runtime):
        return False
    return other.host.computer == run.computer or not runtime.is_processor(run.device)


def _is_alike(other: RecordedOutcome, run: Run, runtime: Runtime) -> bool:
    return (other.device, other.host.release) == (run.device, runtime.release)
