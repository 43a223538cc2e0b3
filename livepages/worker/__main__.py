"""The process of a page: run its blocks one after another and report all that a reader would see.

``python -m livepages.worker RUNTIME FOLDER`` imports the runtime of this name once, then forks a process for each job
that it reads from standard input; the folders of their runs are in this one. The messages between them are defined
in `protocol`.
"""

import contextlib
import gc
import os
import sys
import time
from pathlib import Path

from livepages.worker.blocks import Blocks
from livepages.worker.capture import Capture
from livepages.worker.dependencies import Dependencies
from livepages.worker.fork_server import supervise
from livepages.worker.guard import Guard
from livepages.worker.interpreter import Interpreter
from livepages.worker.protocol import (
    MESSAGES,
    OUTPUTS,
    DependenciesReported,
    Finished,
    Job,
    Message,
    Ready,
    SettingsRejected,
    encode,
)
from livepages.worker.runtime import Runtime
from livepages.worker.runtimes import find_runtime
from livepages.worker.scrub import rename_known, scrub_paths
from livepages.worker.templates import set_up


def run_job(job: Job, runtime: Runtime, dependencies: Dependencies | None) -> None:
    """Run a page in this process, which must be its own, and write down the outcomes.

    Args:
        job: the page.
        runtime: has been imported.
        dependencies: notes what this process looks up; None if the process is yet to be set up for the page.
    """
    folder = Path(job.folder)

    def report(message: Message) -> None:
        # No descriptor stays open: the page might close it, or open another file with its number.
        messages = os.open(folder / MESSAGES, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(messages, encode(message))
        finally:
            os.close(messages)

    _prefer_oom_kill()
    renamed = rename_known(job.root, job.folder)
    capture = Capture(folder / OUTPUTS, scrub_paths(renamed))
    capture.begin(job.only[0])
    guard = Guard(folder)
    work = os.path.realpath(job.work or folder / "work")
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    gc.unfreeze()
    try:
        dependencies = dependencies or set_up(job, runtime, folder.parent)
    except Exception as refusal:  # noqa: BLE001  (whatever the runtime raises for a name or a value)
        report(SettingsRejected(f"{type(refusal).__name__}: {refusal}"))
        return
    interpreter = Interpreter(job, runtime, renamed)
    dependencies.go_on(lambda files, probes, seen: report(DependenciesReported(files, probes, seen)))
    blocks = Blocks(job, runtime, interpreter, capture, guard, "" if job.work else work)
    began = time.perf_counter()
    report(Ready(time.monotonic() - job.requested))
    for number in job.only:
        for message in blocks.run(number):
            report(message)
    for message in blocks.end():
        report(message)
    device = runtime.device()
    seconds = time.perf_counter() - began
    files = dependencies.files()  # first, as it notes the modules
    looked_up = dependencies.probes(), dependencies.contents(), dependencies.written(), dependencies.modules()
    report(Finished(device, files, *looked_up, seconds))


def _prefer_oom_kill() -> None:
    """Let the system end this process before any other when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


if __name__ == "__main__":
    sys.exit(supervise(find_runtime(sys.argv[1]), Path(sys.argv[2]), run_job))
