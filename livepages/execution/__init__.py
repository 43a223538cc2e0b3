"""A `Page` to its `BlockResult`s: a fresh process for each page, limits, the cache.

Knows nothing of MkDocs, nor of how a page is rendered.
"""

from livepages.execution import distributions
from livepages.execution.background import BackgroundRuns
from livepages.execution.cache import replace_text
from livepages.execution.counts import State, block_states, count, count_wrong, counted, inline_states
from livepages.execution.engine import Engine
from livepages.execution.environment import FIXED
from livepages.execution.keys import engine_digest
from livepages.execution.processes import WorkerError
from livepages.execution.results import BlockResult, Failure, Run, as_failures, pair_results
from livepages.execution.runner import Runner
from livepages.execution.running import start_order
from livepages.worker import ERR, OUT, Outcome, Raised

__all__ = [
    "ERR",
    "FIXED",
    "OUT",
    "BackgroundRuns",
    "BlockResult",
    "Engine",
    "Failure",
    "Outcome",
    "Raised",
    "Run",
    "Runner",
    "State",
    "WorkerError",
    "as_failures",
    "block_states",
    "count",
    "count_wrong",
    "counted",
    "distributions",
    "engine_digest",
    "inline_states",
    "pair_results",
    "replace_text",
    "start_order",
]
