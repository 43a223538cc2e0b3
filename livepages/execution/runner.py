"""The runner of pages: a fresh process for each, several at a time, none of which can harm the build."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from livepages.execution.page_process import mark_ended, run_in_child
from livepages.execution.processes import ForkServer, ServerLostError
from livepages.execution.results import Run, pair_results
from livepages.execution.running import Running, Task, finished, outcomes_of, start_order
from livepages.execution.turns import turn
from livepages.source import Page, Project
from livepages.worker import BlockFinished, DependenciesReported, Finished, Outcome, Ready


class Runner:
    """A runner of pages. It keeps the process that fresh ones are forked from between calls; `close` ends it.

    Args:
        workers: how many pages run at a time; as many as there are processors if None.
        nice: by how much the processes of pages in the background come after others when all want a processor, as
            in `os.nice`.
    """

    def __init__(self, workers: int | None = None, nice: int = 0) -> None:
        self._workers, self._nice = workers or os.cpu_count() or 1, nice
        self._servers: dict[str, ForkServer] = {}  # by the name of the runtime
        self._lock = threading.Lock()
        self._running: set[Running] = set()
        self._may_begin = threading.Event()
        self._may_begin.set()

    def run(
        self, project: Project, tasks: Iterable[Task], done: Callable[[Page, Run], None] = lambda page, run: None
    ) -> dict[Path, Run]:
        """Run each task's page in a process of its own.

        Args:
            project: the site the pages belong to.
            tasks: the pages; those with the most blocks are begun first, exclusive ones last.
            done: called in this thread as soon as a page is finished.

        Raises:
            WorkerError: the process that pages are forked from could not be started.
        """
        runs = {}
        started = self.start(project, tasks)
        try:
            for running in finished(started):
                page = running.task.page
                runs[page.path] = running.future.result()
                done(page, runs[page.path])
        except BaseException:
            for running in started:
                running.stop()
            raise
        return runs

    def start(self, project: Project, tasks: Iterable[Task], urgent: bool = False) -> list[Running]:
        """Begin to run each task's page, as `run` does, and return at once.

        The pages share the cores with one another, not with those that an earlier call began: a page that never ends
        keeps no later one from running. Pages that measure time come after the others, one by one, and wait until no
        page of the project runs in any process. Those that are `urgent` are begun as `prioritize` begins one.
        """
        started = [Running(task, urgent) for task in sorted(tasks, key=lambda task: start_order(task.page))]
        self._running.update(started)
        others = [running for running in started if not running.task.page.settings.exclusive]
        exclusive = [running for running in started if running.task.page.settings.exclusive]
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="livepages")
        for running in others:
            pool.submit(self._run, project, running)
        if exclusive:
            pool.submit(self._run_exclusive, project, exclusive, others)
        pool.shutdown(wait=False)
        return started

    def prioritize(self, project: Project, path: Path) -> None:
        """Run the page of a file at once, beside those that run already, and before all pages in the background.

        It does not wait for a page that measures time, whose times are then those of a busy machine.
        """
        for running in list(self._running):
            if running.task.page.path == path:
                running.urgent = True
                threading.Thread(target=self._run, args=(project, running), daemon=True).start()

    def pause(self) -> None:
        """Let no page in the background begin until `resume`: something else needs the processors first."""
        self._may_begin.clear()

    def resume(self) -> None:
        """Let pages begin again."""
        self._may_begin.set()

    def prepare(self, project: Project) -> None:
        """Start the process that fresh ones are forked from: its imports are most of what the first page waits for."""
        with self._lock:
            self._ready(project)

    def close(self) -> None:
        """End what is under way, and the processes that fresh ones are forked from."""
        under_way = list(self._running)
        for running in under_way:
            running.stop()
        self.resume()
        wait([running.future for running in under_way])
        with self._lock:
            while self._servers:
                self._servers.popitem()[1].close()

    def _run_exclusive(self, project: Project, exclusive: list[Running], others: list[Running]) -> None:
        wait([running.future for running in others])
        for running in exclusive:
            self._run(project, running)

    def _run(self, project: Project, running: Running) -> None:
        if not running.urgent:
            self._may_begin.wait()
        if not running.take():
            return
        if running.future.set_running_or_notify_cancel():
            try:
                running.future.set_result(self._run_page(project, running))
            except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
                running.future.set_exception(error)
        self._running.discard(running)

    def _run_page(self, project: Project, running: Running) -> Run:
        """Run the blocks of a page, then those that vary with each of their other parameters."""
        blocks = running.task.blocks
        # One in a namespace of its own depends on nothing, so it runs with the page.
        again = [at for at, block in enumerate(blocks) if block.variant_of is not None and not block.options.isolated]
        self._run_blocks(project, running, [at for at in range(len(blocks)) if at not in again])
        for at in again:
            self._run_variant(project, running, at)
        return _run_of(running, project.runtime.computer)

    def _run_variant(self, project: Project, running: Running, at: int) -> None:
        """Run a block with other parameters, after all that comes before it, in a process of its own.

        In the process of the page it would find what its first run left behind: objects that it changed, functions that
        it compiled. Nor can that be copied: a runtime that has computed has threads, which no fork takes along.
        """
        blocks, messages = running.task.blocks, running.messages
        first = next(number for number, block in enumerate(blocks) if block.index == blocks[at].variant_of)
        known = outcomes_of(running.task, messages.all)[first] or Outcome()
        if known.line:  # the settings of the page cannot be used
            return
        if known.skipped:
            messages.all.append(BlockFinished(at, known))
            return
        before = [
            number
            for number in range(first)
            if blocks[number].namespace == blocks[at].namespace and not blocks[number].is_inline
        ]
        begin = len(messages.all)
        self._process(project, running, (*before, at))
        outcome = outcomes_of(running.task, messages.all[begin:])[at] or Outcome()
        # What came before has been reported by the page's own process.
        messages.all[begin:] = [message for message in messages.all[begin:] if getattr(message, "block", at) == at]
        if outcome.stopped_by is not None:
            where = f"the block on line {blocks[outcome.stopped_by].line}"
            process_error = f"{where}, which comes before it, failed when it ran again for these values"
            messages.all.append(BlockFinished(at, Outcome(process_error=process_error)))

    def _run_blocks(self, project: Project, running: Running, only: list[int]) -> None:
        """Run some blocks of a page; where one ends the process, those that do not depend on it in another."""
        blocks = running.task.blocks
        while only:
            ended = self._process(project, running, tuple(only))
            if ended is None:
                break
            # Blocks of its namespace depend on the one that ended the process; others need what came before them again.
            rest = [at for at in only if at > ended and blocks[at].namespace != blocks[ended].namespace]
            shared = {blocks[at].namespace for at in rest if not blocks[at].options.isolated}
            only = [at for at in range(ended) if blocks[at].namespace in shared] + rest

    def _process(self, project: Project, running: Running, only: tuple[int, ...]) -> int | None:
        """Run some blocks of a page in a process of its own; return the one that ended the process early, if any."""
        messages, nice = running.messages, 0 if running.urgent else self._nice
        with turn(project, running):
            try:
                with self._lock:
                    server = self._ready(project)
                return run_in_child(server, project, running, only, nice)
            except ServerLostError:
                if not server.has_forked:
                    raise
                # It may be another page that has ended it. With a server of its own none can.
                del messages.all[messages.first :]
                server = ForkServer(project.runtime)
                try:
                    return run_in_child(server, project, running, only, nice)
                except ServerLostError:
                    if not server.has_forked:
                        raise
                    mark_ended(
                        running, max(messages.under_way, 0), Outcome(process_error=_KILLED_SERVER), all_after=True
                    )
                    return None
                finally:
                    server.close()

    def _ready(self, project: Project) -> ForkServer:
        name = project.runtime.name
        if name in self._servers and not self._servers[name].alive:
            self._servers.pop(name).close()
        if name not in self._servers:
            self._servers[name] = ForkServer(project.runtime)
        return self._servers[name]


_KILLED_SERVER = "ended the process that pages are forked from, its parent"


def _run_of(running: Running, computer: str) -> Run:
    """Return the run that the processes of a page have reported, on this kind of computer."""
    messages = running.messages.all
    finished = [message for message in messages if isinstance(message, Finished)]
    reports = [message for message in messages if isinstance(message, DependenciesReported | Finished)]
    return Run(
        results=pair_results(
            running.task.page, (outcome or Outcome() for outcome in outcomes_of(running.task, messages))
        ),
        device=next((one.device for one in finished), ""),
        computer=computer,
        files=_sorted(*(one.files for one in reports)),
        probes=_sorted(*(one.probes for one in reports)),
        contents={probe: answer for one in reversed(reports) for probe, answer in one.contents.items()},
        written=_sorted(*(one.written for one in finished)),
        modules=_sorted(*(one.modules for one in finished)),
        seconds=sum(one.seconds for one in finished),
        ready=next((message.seconds for message in messages if isinstance(message, Ready)), 0.0),
    )


def _sorted(*several: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*several)))
