"""A process that has imported what commands need, and forks one for each that it is to carry out.

``python -m tests.prepared`` reads jobs from standard input, a line of JSON each: ``command`` (a module and its
arguments, as after ``python -m``), ``folder`` (to run it in), ``out`` and ``err`` (files for what it writes),
``environment`` (what it has more). It answers each with a line: the exit status. Each command is a process of its own;
what is saved is to import MkDocs and pytest again and again.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

IMPORTED = """
livepages.integrations.cli livepages.integrations.markdown_extension livepages.integrations.mkdocs_plugin livepages.exporters
mkdocs.__main__ mkdocs.commands.build mkdocs.commands.serve markdown_exec pygments.formatters.html
pygments.lexers.python markdown.extensions.admonition pymdownx.arithmatex pymdownx.highlight pymdownx.superfences
hypothesis pytest xdist.plugin
"""


def finding(folder: Path) -> dict[str, str]:
    """The variable with which a process finds modules in a folder first, and the engine where this process does."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))}


def become(job: dict[str, Any]) -> None:
    """Go on as the job."""
    os.dup2(os.open(job["out"], os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(job["err"], os.O_WRONLY | os.O_CREAT), 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(job["folder"])
    os.environ.update(job["environment"])
    sys.path[:1] = [job["folder"], *filter(None, job["environment"].get("PYTHONPATH", "").split(os.pathsep))]
    module, *arguments = job["command"]
    sys.modules.pop(f"{module}.__main__", None)  # it begins anew
    sys.argv = ["", *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        leave(ended.code)
    leave(0)


def leave(code: object) -> NoReturn:
    """End this process as Python does, but do not take all that it has imported apart: that takes as long as a build."""
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else bool(code))


def main() -> None:
    """Serve jobs, one after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in IMPORTED.split():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            become(json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


class Commands:
    """A process that carries out commands, each in a process forked from one that has imported what they need."""

    def __init__(self, root: Path) -> None:
        self._root, self._count = root, 0
        environment = {**os.environ, "PYTHONHASHSEED": "0"}  # which is how the pages' processes begin
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.prepared"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=Path(__file__).parents[1],
        )

    def run(
        self, *command: str, folder: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Carry out ``python -m COMMAND`` in a folder."""
        self._count += 1
        out, err = (self._root / f"{self._count}-{stream}" for stream in ("out", "err"))
        job = {"command": command, "folder": str(folder), "out": str(out), "err": str(err)}
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({**job, "environment": dict(environment or {})}) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        return subprocess.CompletedProcess(command, status, out.read_text("utf-8"), err.read_text("utf-8"))

    def close(self) -> None:
        """End the process that they are forked from."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


if __name__ == "__main__":
    main()
