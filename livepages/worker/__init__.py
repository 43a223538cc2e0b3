"""The code of a page's own process, the protocol between it and the engine, and the runtimes.

Imports no other package of the engine, nor any other library before it is needed, as every page finds
the imports in its process. ``python -m livepages.worker`` is that process.
"""

from livepages.worker.capture import OUTPUT_LIMIT
from livepages.worker.check import check_outcome
from livepages.worker.imports import split_futures
from livepages.worker.names import imported, syntax_tree
from livepages.worker.probes import content, run_probe, signature
from livepages.worker.protocol import (
    CRASH,
    ERR,
    EXIT_CANNOT_REPORT,
    MESSAGES,
    OUT,
    OUTPUTS,
    BlockFinished,
    BlockSpec,
    BlockStarted,
    DependenciesReported,
    Exited,
    Expected,
    Finished,
    Forked,
    Job,
    LateFailure,
    Message,
    Outcome,
    Raised,
    Ready,
    SettingsRejected,
    decode,
    encode,
    from_json,
    stopped_after,
)
from livepages.worker.runtime import MODULE_VARIABLES, Runtime, SettingError, installed, is_device
from livepages.worker.runtimes import built_in, find_runtime, runtimes
from livepages.worker.text import escaped
from livepages.worker.timer import LoadAdjustedTimer

__all__ = [
    "CRASH",
    "ERR",
    "EXIT_CANNOT_REPORT",
    "MESSAGES",
    "MODULE_VARIABLES",
    "OUT",
    "OUTPUTS",
    "OUTPUT_LIMIT",
    "BlockFinished",
    "BlockSpec",
    "BlockStarted",
    "DependenciesReported",
    "Exited",
    "Expected",
    "Finished",
    "Forked",
    "Job",
    "LateFailure",
    "LoadAdjustedTimer",
    "Message",
    "Outcome",
    "Raised",
    "Ready",
    "Runtime",
    "SettingError",
    "SettingsRejected",
    "built_in",
    "check_outcome",
    "content",
    "decode",
    "encode",
    "escaped",
    "find_runtime",
    "from_json",
    "imported",
    "installed",
    "is_device",
    "run_probe",
    "runtimes",
    "signature",
    "split_futures",
    "stopped_after",
    "syntax_tree",
]
