"""The job that tells the process of a page what to run, and in which surroundings."""

import re
import time
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from livepages.execution.running import Task
from livepages.source import Block, Project
from livepages.worker import BlockSpec, Job


def job(task: Task, folder: Path, project: Project, only: tuple[int, ...], nice: int) -> Job:
    """Return the job to run some blocks of a page, by their places, in a folder, with this value of `nice`."""
    page = task.page
    names = _names(task.blocks) if project.fences == "exec" else {}
    return Job(
        folder=str(folder),
        name=page.script_name,
        blocks=tuple(
            BlockSpec(
                code=block.code,
                start=block.start,
                line=block.line,
                expected=block.expected,
                needs=block.options.needs or page.settings.needs,
                marks=block.marks,
                importorskip=block.importorskip,
                isolated=block.options.isolated,
                namespace=block.namespace,
                module=module,
                file=file,
                workdir=block.options.workdir,
                width=block.options.width,
                is_inline=block.is_inline,
            )
            for block in task.blocks
            for module, file in [names.get(block.index, ("__main__", ""))]
        ),
        only=only,
        uses=() if project.fences == "exec" else tuple(word for word in ("matplotlib",) if word in page.script),
        imports=_imports(task, project, only),
        preload=project.preload,
        settings=page.settings.runtime,
        options=project.options,
        path=(str(project.snippets),),
        root=str(project.root),
        # As markdown-exec has it for the blocks that it executes.
        work=str(project.root) if project.fences == "exec" else "",
        cache=str(project.cache / "compiled"),
        nice=nice,
        requested=time.monotonic(),
    )


def _names(blocks: Iterable[Block]) -> dict[int, tuple[str, str]]:
    """Return what markdown-exec would call the module that each block runs in, and its code in tracebacks, by index."""
    found: dict[int, tuple[str, str]] = {}
    counts: Counter[str] = Counter()
    for block in blocks:
        session, number, first = block.options.session, block.index + 1, block.index + 1
        if session:
            counts[session] += not block.is_inline
            number, first = counts[session], 1
        name = f"<code block: {f'session {session}; ' if session else ''}n{{}}>"
        module = re.sub(r"[^a-zA-Z\d]+", "_", name.format(first))
        found[block.index] = module, "" if block.is_inline else name.format(number)
    return found


def _imports(task: Task, project: Project, only: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    """Return the modules to import before the page runs: its first imports, down to the first module of its project."""

    def is_installed(pair: tuple[str, str]) -> bool:
        top = pair[0].partition(".")[0]
        return not ((project.snippets / top).exists() or (project.snippets / f"{top}.py").exists())

    first = takewhile(is_installed, task.page.first_imports) if only[:1] == (0,) else ()
    return (*first, *((module, "") for module in project.preload))
