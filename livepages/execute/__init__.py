"""A `Page` to a `Run`: a fresh process for each page, limits, the cache, and what is wrong with an outcome.

Knows nothing of MkDocs, nor of how a page is rendered.
"""

from livepages.execute import distributions
from livepages.execute.attempts import Attempts
from livepages.execute.engine import Engine, engine_digest
from livepages.execute.outcome import Failure, Run, count, failures, judge
from livepages.execute.processes import FIXED, WorkerError
from livepages.execute.runner import Runner, turn
from livepages.execute.shortened import shortened
from livepages.execute.sizes import beginning
from livepages.worker import ERR, OUT, Outcome, Raised

__all__ = [
    "Attempts",
    "ERR",
    "Engine",
    "FIXED",
    "Failure",
    "OUT",
    "Outcome",
    "Raised",
    "Run",
    "Runner",
    "WorkerError",
    "beginning",
    "count",
    "distributions",
    "engine_digest",
    "failures",
    "judge",
    "shortened",
    "turn",
]
