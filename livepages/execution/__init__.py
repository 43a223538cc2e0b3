"""A `Page` to a `Run`: a fresh process for each page, limits, the cache, and what is wrong with an outcome.

Knows nothing of MkDocs, nor of how a page is rendered.
"""

from livepages.execution import distributions
from livepages.execution.background import BackgroundRuns
from livepages.execution.engine import Engine, engine_digest
from livepages.execution.limits import truncated
from livepages.execution.outcome import Failure, Run, count, failures, judge
from livepages.execution.processes import FIXED, WorkerError
from livepages.execution.runner import Runner, turn
from livepages.execution.truncate import head
from livepages.worker import ERR, OUT, Outcome, Raised

__all__ = [
    "ERR",
    "FIXED",
    "OUT",
    "BackgroundRuns",
    "Engine",
    "Failure",
    "Outcome",
    "Raised",
    "Run",
    "Runner",
    "WorkerError",
    "count",
    "distributions",
    "engine_digest",
    "failures",
    "head",
    "judge",
    "truncated",
    "turn",
]
