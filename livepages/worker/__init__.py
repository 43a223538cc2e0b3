"""What runs inside a page's own process, what is said to it and by it, and what the engine knows of the runtime.

Imports no other package of the engine, nor any other library before it is needed: whatever is imported here, every
page finds in its process. ``python -m livepages.worker`` is that process.
"""

from livepages.worker.capture import OUTPUT_LIMIT
from livepages.worker.load import IdleClock
from livepages.worker.protocol import (
    CRASH,
    ERR,
    MESSAGES,
    OUT,
    OUTPUTS,
    SILENCED,
    Asked,
    Begun,
    Code,
    Exited,
    Expected,
    Faulted,
    Finished,
    Forked,
    Gave,
    Job,
    Message,
    Outcome,
    Raised,
    Ready,
    Refused,
    decode,
    encode,
    from_json,
    stopped_after,
)
from livepages.worker.questions import answer, content
from livepages.worker.runtime import Runtime, SettingError, find_runtime, installed, is_device, runtimes
from livepages.worker.verdict import wrong

__all__ = [
    "Asked",
    "Begun",
    "CRASH",
    "Code",
    "ERR",
    "Exited",
    "Expected",
    "Faulted",
    "Finished",
    "Forked",
    "Gave",
    "IdleClock",
    "Job",
    "MESSAGES",
    "Message",
    "OUT",
    "OUTPUTS",
    "OUTPUT_LIMIT",
    "Outcome",
    "Raised",
    "Ready",
    "Refused",
    "Runtime",
    "SILENCED",
    "SettingError",
    "answer",
    "content",
    "decode",
    "encode",
    "find_runtime",
    "from_json",
    "installed",
    "is_device",
    "runtimes",
    "stopped_after",
    "wrong",
]
