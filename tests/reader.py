"""A reader's machine: runs scripts and notebooks, each in a process of its own that has imported JAX and nothing else.

``python -m tests.reader`` reads jobs from standard input, a line of JSON each: ``file`` (.py or .ipynb), ``folder`` (to
run it in), ``out`` and ``err`` (files for what it writes), ``absent`` (modules that this machine does not have). It
answers each with a line: the exit status.
"""

import gc
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any


def run_script(file: str) -> None:
    """Run a script as ``python FILE`` does."""
    sys.argv = [file]
    runpy.run_path(file, run_name="__main__")


def run_notebook(file: str) -> None:
    """Every cell in order, as a kernel does; an error, or its absence, must be what the cell's tag says."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    # What an error says is compared; its frames, laid out with their source, would take most of the time.
    settings = Config({"InteractiveShell": {"xmode": "Minimal"}, "HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(colors="nocolor", config=settings)
    for number, cell in enumerate(json.loads(Path(file).read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            result = shell.run_cell("".join(cell["source"]), store_history=True)
            wanted = [output["ename"] for output in cell["outputs"] if output["output_type"] == "error"]
            error = result.error_before_exec or result.error_in_exec
            tagged = "raises-exception" in cell["metadata"].get("tags", ())
            if bool(error) != tagged or (error and type(error).__name__ != wanted[0].rpartition(".")[2]):
                sys.exit(f"cell {number}: {error!r}, wanted {wanted}")
            sys.modules.get("matplotlib.pyplot") and sys.modules["matplotlib.pyplot"].close(
                "all"
            )  # as inline plots are


def become(job: dict[str, Any]) -> None:
    """Go on as the job."""
    os.dup2(os.open(job["out"], os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(job["err"], os.O_WRONLY | os.O_CREAT), 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(job["folder"])
    sys.path[0] = os.path.dirname(job["file"])
    sys.modules.update(dict.fromkeys(job["absent"]))
    (run_script if job["file"].endswith(".py") else run_notebook)(job["file"])


def main() -> None:
    """Serve jobs, one after the other."""
    import IPython.core.interactiveshell  # noqa: F401
    import matplotlib.pyplot  # noqa: F401

    from livepages.worker import find_runtime

    find_runtime("jax").preload()  # as the pages' processes have it; it is slow to import, and touches no device
    gc.collect()
    gc.freeze()

    for line in sys.stdin:
        job = json.loads(line)
        if (pid := os.fork()) == 0:
            become(job)
            return
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
