"""Imports that pages begin with, made before the pages are forked where that makes no difference to them."""

import json
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from livepages.worker.capture import streams
from livepages.worker.dependencies import Dependencies
from livepages.worker.figures import house_style
from livepages.worker.imports import import_from_source
from livepages.worker.probes import is_local
from livepages.worker.protocol import Job
from livepages.worker.runtime import Runtime

READY = "ready "  # the beginning of the last line of progress of a process that pages may be forked from


def not_loaded(imports: Iterable[tuple[str, str]], unsafe: set[str]) -> list[tuple[str, str]]:
    """Return those of a page's first imports that this process does not hold, down to the first that is unsafe."""
    found = []
    for module, name in imports:
        if module in unsafe:
            break  # later ones may depend on it
        loaded = sys.modules.get(module)
        if loaded is None or (name and name not in vars(loaded) and f"{module}.{name}" not in sys.modules):
            found.append((module, name))
    return found


def import_modules(
    modules: Sequence[tuple[str, str]], job: Job, runtime: Runtime, folder: Path, progress_fd: int
) -> Dependencies | None:
    """Set up this process as a page's, and import modules as its first statements would.

    Args:
        modules: each with the name that is taken from it, empty if none is.
        job: a page that begins with them.
        runtime: of the page.
        folder: holds the folders of all runs.
        progress_fd: a descriptor, to which the name of each module is written before it is imported, and in the end
            `READY` with everything that the imports have looked up.

    Returns:
        The object that notes what this process looks up; None if no page must be forked from it.
    """
    scratch = folder / f"template-{os.getpid()}"
    scratch.mkdir()
    os.chdir(scratch)
    output = os.open(scratch / "output", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for standard in (1, 2):
        os.dup2(output, standard)
    sys.stdout, sys.stderr = streams()
    before, tasks = (_open_descriptors(), runtime.backend_initialized()), _threads_and_children()
    dependencies = set_up(job, runtime, folder)
    for module, name in modules:
        os.write(progress_fd, f"{module}\n".encode())
        __import__(module, fromlist=[name] if name else [])
        changed = (_open_descriptors(), runtime.backend_initialized()) != before
        local = any(is_local(file, job.root) for file in _files())
        started = _threads_and_children() - tasks
        if changed or local or os.fstat(output).st_size or (started and module not in job.preload):
            return None
        tasks |= started
    probes = ["distribution", *(f"content {name}" for name in dependencies.files()), *dependencies.probes()]
    answers = {one: dependencies.answer(one) for one in probes if not one.startswith("variable ")}
    os.write(progress_fd, (READY + json.dumps(answers)).encode())
    return dependencies


def set_up(job: Job, runtime: Runtime, folder: Path) -> Dependencies:
    """Set up this process as a page's; return the object that notes what it looks up from now on.

    Raises:
        Exception: the runtime refuses a name or a value of the settings.
    """
    sys.path[:0] = job.path
    import_from_source(job.root)
    house_style.install()
    runtime.configure(job.settings, job.options, job.cache, job.root)
    return Dependencies(job.root, [os.path.realpath(folder), job.cache], runtime.distributions)


def _files() -> list[str]:
    return [file for module in list(sys.modules.values()) if isinstance(file := getattr(module, "__file__", None), str)]


def _open_descriptors() -> set[tuple[str, str]]:
    """Return the descriptors of this process and their files; none on systems that do not list them."""
    found = set()
    for descriptor in Path("/proc/self/fd").glob("*"):
        try:
            found.add((descriptor.name, os.readlink(descriptor)))
        except OSError:  # the one that the folder is read by
            continue
    return found


def _threads_and_children() -> set[str]:
    """The threads and children that a fork would leave behind; some libraries stop their threads for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return {str(thread.ident) for thread in threading.enumerate()}
    return {*os.listdir(tasks), *(tasks / f"{os.getpid()}/children").read_text("ascii").split()}
