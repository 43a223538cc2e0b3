"""The comparison of a block's outcome with what its page expects, in the page's process and in reports."""

import re

from livepages.worker.protocol import Expected, Outcome, Raised


def check_outcome(expected: Expected, outcome: Outcome) -> tuple[str, str] | None:
    """Return what is wrong with an outcome: a sentence, and details; None if it is as the page expects."""
    raised = outcome.raised
    if outcome.skipped or outcome.pending:
        return None
    if outcome.process_error:
        return outcome.process_error, outcome.stdout[-2000:]
    if expected.raises:
        if raised is None:
            return f"should raise {expected.raises}, but raised nothing", ""
        if expected.raises not in raised.bases:
            return f"should raise {expected.raises}, but raised {raised.type}", raised.traceback
        if not re.search(expected.match, raised.message):
            return f"the message of {raised.type} does not match {expected.match!r}", raised.traceback
    elif raised is not None:
        return f"raised {_summary(raised)}", raised.traceback
    if outcome.figures and expected.figures is False:
        return 'a figure needs alt="…" on the fence: what it shows, in words', ""
    if expected.figures and not outcome.figures:
        return "alt describes a figure, but the block leaves none open", ""
    if expected.output is not None:
        wanted, got = expected.output, outcome.stdout
        if expected.ignore_whitespace:
            wanted, got = re.sub(r"\s+", "", wanted), re.sub(r"\s+", "", got)
        if wanted != got:
            return "the output is not the expected one", f"expected:\n{wanted}\ngot:\n{got}"
    return None


def _summary(raised: Raised) -> str:
    first = raised.message.strip().splitlines()[0] if raised.message.strip() else ""
    return f"{raised.type}: {first}" if first else raised.type
