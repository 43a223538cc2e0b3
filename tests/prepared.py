"""A process that has imported what commands need, and forks one for each that it is to carry out.

``python -m tests.prepared`` reads jobs from standard input, a line of JSON each: ``command`` (a module and its
arguments, as after ``python -m``), ``folder`` (to run it in), ``out`` and ``err`` (files for what it writes),
``environment`` (what it has more). It answers each with a line: the exit status. Each command is a process of its own,
and so is each page that it runs; what is saved is to import MkDocs, pytest and JAX again and again.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

# The last ones are what the runtime of pages imports; that it touches no device here is as in the engine's own process.
IMPORTED = """
livepages.integrations.cli livepages.integrations.markdown_extension livepages.integrations.mkdocs_plugin livepages.export
mkdocs.__main__ mkdocs.commands.build mkdocs.commands.serve markdown_exec nbformat pygments.formatters.html
pygments.lexers.python markdown.extensions.admonition pymdownx.arithmatex pymdownx.highlight pymdownx.superfences
hypothesis pytest xdist.plugin
jax jax.monitoring jax.numpy jaxlib.mlir.dialects.mhlo
"""


class Standby:
    """The process from which a command's pages are forked, in the place of ``python -m livepages.worker``.

    It is forked before the command begins, and so before it has threads; it waits until it is asked for.
    """

    PIPE = subprocess.PIPE

    def __init__(self) -> None:
        theirs, self._input = os.pipe()
        self._output, answers = os.pipe()
        self._free = True
        if (pid := os.fork()) == 0:
            os.close(self._input)
            os.close(self._output)
            _become_worker(theirs, answers)
        os.close(theirs)
        os.close(answers)
        self.pid = pid
        atexit.register(self._end)

    def Popen(  # noqa: N802  (the name is that of subprocess)
        self, command: Sequence[str], stdin: int, stdout: int, env: Mapping[str, str]
    ) -> "subprocess.Popen[bytes] | Worker":
        """Begin a worker: this process, or, if it has been given away, another."""
        if not self._free or command[1:] != ["-P", "-m", "livepages.worker", "jax"]:
            return subprocess.Popen(command, stdin=stdin, stdout=stdout, env=env)
        self._free = False
        os.write(self._input, json.dumps(dict(env)).encode() + b"\n")
        return Worker(self.pid, self._input, self._output)

    def _end(self) -> None:
        if self._free:
            os.close(self._input)
            os.waitpid(self.pid, 0)


class Worker:
    """As much of a `Popen` as the engine uses."""

    def __init__(self, pid: int, stdin: int, stdout: int) -> None:
        self.pid, self.stdin, self.stdout = pid, os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self._status: int | None = None

    def poll(self) -> int | None:
        """The exit status if it has ended."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        """The exit status."""
        return self._wait(0)

    def _wait(self, options: int) -> int | None:
        if self._status is None:
            done, status = os.waitpid(self.pid, options)
            if done:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status


def _become_worker(jobs: int, answers: int) -> None:
    told = b""
    while not told.endswith(b"\n"):
        if not (byte := os.read(jobs, 1)):
            os._exit(0)
        told += byte
    os.dup2(jobs, 0)
    os.dup2(answers, 1)
    os.environ.clear()
    os.environ.update(json.loads(told))
    del sys.path[0]  # as -P does
    sys.argv = ["", "jax"]
    status = 1
    try:
        runpy.run_module("livepages.worker", run_name="__main__", alter_sys=True)
        status = 0
    finally:
        os._exit(status)


def become(job: dict[str, Any]) -> None:
    """Go on as the job."""
    os.dup2(os.open(job["out"], os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(job["err"], os.O_WRONLY | os.O_CREAT), 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(job["folder"])
    os.environ.update(job["environment"])
    sys.path[0] = job["folder"]
    from livepages.execute import processes

    processes.subprocess = Standby()  # type: ignore[assignment, attr-defined]
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
    """Carries out commands, each in a process forked from one that has imported what they need."""

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
        """What ``python -m COMMAND`` does in a folder."""
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
