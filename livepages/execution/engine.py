"""The engine, which every integration calls: pages to runs, through the cache."""

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from livepages.execution import distributions
from livepages.execution.cache import Cache, prune
from livepages.execution.environment import is_inherited
from livepages.execution.keys import run_key, surroundings
from livepages.execution.named_files import Listing, NamedFiles, names_in
from livepages.execution.results import Failure, Run, as_failures, pair_results
from livepages.execution.runner import Runner
from livepages.execution.running import Running, Task
from livepages.source import Page, PageError, Project, read_page
from livepages.worker import Outcome, from_json, installed, run_probe, signature

# Errors raised by reading an entry of the cache that is missing, damaged or of another form.
_DAMAGED = (LookupError, TypeError, ValueError, AttributeError, StopIteration)
log = logging.getLogger(__name__)

CacheEntry = Mapping[str, Any]  # what the cache holds of a run
Keep = Callable[[Page, Run], CacheEntry]


class Engine:
    """The runs of a project's pages: made when they are needed, read from the cache while they are valid."""

    def __init__(self, project: Project, runner: Runner | None = None) -> None:
        self.project = project
        self._runner = runner or Runner()
        self._cache = Cache(project.cache / "runs")
        self._has_kept = False
        self._warned: set[str] = set()
        self._answers: dict[str, str | None] = {}
        self._files: NamedFiles | None = None
        self._listings: dict[Path, Listing] = {}
        self._loaded: dict[Path, tuple[Page, CacheEntry, Run]] = {}  # by `kept`, which loads each once

    def read(
        self, paths: Iterable[Path], texts: Mapping[Path, bytes] | None = None, with_faults: bool = False
    ) -> tuple[list[Page], list[Failure]]:
        """Read the pages of these files, or of the texts given instead.

        Args:
            paths: the files.
            texts: the bytes to read instead of a file.
            with_faults: whether a page with faults is read as far as it can be.

        Returns:
            the pages, and a failure for each fault but those of a block, which are in its result.
        """
        pages: list[Page] = []
        failed: list[Failure] = []
        for path in paths:
            try:
                page = read_page(path, self.project, (texts or {}).get(path), with_faults)
                pages.append(page)
                failed += as_failures(page.name, page.faults)
            except PageError as error:
                failed += as_failures(error.page, error.faults)
        return pages, failed

    def kept(self, pages: Iterable[Page], failed: bool = False) -> dict[Path, Run]:
        """Return the runs that the cache holds and that nothing has made stale.

        Args:
            pages: the pages.
            failed: whether to return runs with a failure, too. They are for reports on a run that has just been made:
                running such a page again may have another outcome.
        """
        here = self._look_around()
        found = {}
        for page in pages:
            entry = self._cache.get(run_key(page, here))
            with contextlib.suppress(*_DAMAGED):
                if entry and (failed or not entry["failed"]) and not any(self._changes(entry)):
                    loaded = self._loaded.get(page.path)
                    if loaded is None or loaded[0] is not page or loaded[1] is not entry:
                        loaded = self._loaded[page.path] = page, entry, _load_run(page, entry)
                    found[page.path] = loaded[2]
        return found

    def why_stale(self, page: Page) -> str:
        """Return why `kept` does not return the run of a page, in words."""
        entry = self._cache.get(run_key(page, self._look_around()))
        with contextlib.suppress(*_DAMAGED):
            return f"its cached run is no longer valid: {next(self._changes(entry))}"
        versions = f"this livepages and {self.project.runtime.version_label}"
        return f"no run is cached of this code under these settings, {versions}"

    def run(
        self,
        pages: Iterable[Page],
        done: Callable[[Page, Run], None] = lambda page, run: None,
        last: Mapping[Path, int] | None = None,
    ) -> dict[Path, Run]:
        """Run pages now, whatever the cache holds, and keep their runs.

        Args:
            pages: the pages.
            done: called for each when it has run.
            last: for pages that are to be run in part, the index of the last block; such a run is not kept.
        """
        pages, last = [*pages], last or {}
        keep = self._cache_writer(pages)

        def kept(page: Page, run: Run) -> None:
            keep(page, run)
            done(page, run)

        tasks = [Task(page, last.get(page.path)) for page in pages]
        return self._runner.run(self.project, tasks, kept)

    def start(self, pages: Iterable[Page], urgent: bool = False) -> tuple[list[Running], Keep]:
        """Begin to run pages, and return at once: the pages under way, and what keeps a finished run, as `run` does.

        If they are `urgent`, they come before all pages in the background.
        """
        pages = [*pages]
        keep = self._cache_writer(pages)
        return self._runner.start(self.project, [Task(page) for page in pages], urgent), keep

    def prioritize(self, path: Path) -> None:
        """Run the page of a file at once, before all pages in the background."""
        self._runner.prioritize(self.project, path)

    def pause(self) -> None:
        """Let no page begin until `resume` is called, except by `prioritize`."""
        self._runner.pause()

    def resume(self) -> None:
        """Let pages begin to run again."""
        self._runner.resume()

    def prepare(self) -> None:
        """Start ahead of time the process that the first page would wait for."""
        self._runner.prepare(self.project)

    def close(self) -> None:
        """End what is under way, and the processes that wait for more pages."""
        self._runner.close()
        if self._has_kept:
            prune(self.project.cache / "runs")
            prune(self.project.cache / "compiled")

    def _warn_once(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            log.warning(message)

    def holds(self, entry: CacheEntry) -> bool:
        """Return whether a run is still valid: nothing has changed that it depends on."""
        self._forget()
        return not any(self._changes(entry))

    def _cache_writer(self, pages: Iterable[Page]) -> Keep:
        """Return what keeps the runs of pages that begin now."""
        here, files = self._look_around(), NamedFiles(self.project, self._listings)
        before = files.signatures()
        declared = {page.path: {one: self._answer(one) for one in self._declared(page)} for page in pages}
        named = frozenset().union(*(names_in(page.script) for page in pages))
        held = {f"named {name}": files.digest(name) for name in named}

        def keep(page: Page, run: Run) -> CacheEntry:
            probes = {probe for probe in run.probes if _is_open(probe)}
            probes |= {"root"} if _is_tied_to(self.project.root, run) else set()
            answers = {probe: run_probe(probe, str(self.project.root)) for probe in probes}
            match self._cache.get(run_key(page, here)):  # which may be damaged
                case {"answers": dict(earlier)}:
                    pass
                case _:
                    earlier = {}
            answers |= self._named(page, run, before, held, earlier)
            answers |= {**declared.get(page.path, {}), **run.contents}
            # A file that was not there before the page wrote it is there from then on.
            made = {probe for name in run.written if run.contents.get(probe := f"content {name}", "") is None}
            answers |= {probe: run_probe(probe, str(self.project.root)) for probe in made}
            entry = {
                **_dump_run(run),
                "answers": dict(sorted(answers.items())),
                "versions": distributions.versions(run.modules),
                "failed": bool(run.failures),
            }
            if not run.pending:
                try:
                    self._cache.put(run_key(page, here), entry)
                    self._has_kept = True
                except OSError as error:
                    self._warn_once(
                        f"{self.project.cache}: runs are not cached: {error.strerror}; pages run every time"
                    )
            return entry

        return keep

    def _named(
        self,
        page: Page,
        run: Run,
        before: Mapping[str, object],
        held: Mapping[str, str | None],
        earlier: Mapping[str, str | None],
    ) -> dict[str, str | None]:
        """Return the probes of the files that the code of a page and of its modules names, with their answers.

        Args:
            page: the page.
            run: its run, which has just ended.
            before: the signatures of all files when it began.
            held: the answers when it began, to probes about what the pages name.
            earlier: the answers with which its run before this one was kept.
        """
        files, root = NamedFiles(self.project, self._listings), self.project.root
        modules = (root / name for name in run.files if name.endswith(".py") and (root / name).is_file())
        codes = [page.script, *(module.read_text(encoding="utf-8", errors="replace") for module in modules)]
        answers = {}
        for name in filter(files.matter, frozenset().union(*map(names_in, codes))):
            found = [path for path in files.find(name) if path not in run.written]
            if not found and files.is_one(name):
                continue  # what Python has seen of it before the page wrote it is known
            probe, now = f"named {name}", files.digest(name)
            if any(signature(root / path) != before.get(path) for path in found) and held.get(probe) != now:
                # The page may have read the file as it was before. One that twice left the same, and found something
                # else, writes the file itself.
                now = f"changed to {now} while the page ran"
                if files.is_one(name) and earlier.get(probe) == now:
                    continue
            answers[probe] = now
        return answers

    def _declared(self, page: Page) -> Iterator[str]:
        """Return the probes of what the page declares in `depends_on`: files, and folders with all that is in them."""
        for name in page.settings.depends_on:
            path = self.project.root / name
            yield from (f"content {self.project.name(file)}" for file in (path, *path.rglob("*")))

    def _answer(self, probe: str) -> str | None:
        """Return the answer to a probe, which is looked up once for all pages of a build."""
        if probe not in self._answers:
            kind, _, subject = probe.partition(" ")
            if kind == "named":
                self._files = self._files or NamedFiles(self.project, self._listings)
                self._answers[probe] = self._files.digest(subject)
            else:
                self._answers[probe] = run_probe(probe, str(self.project.root))
        return self._answers[probe]

    def _forget(self) -> None:
        """Forget the answers to probes and the versions that are known, so that they are looked up again."""
        installed.cache_clear()
        self._answers, self._files = dict[str, str | None](), None

    def _look_around(self) -> str:
        """Look up again everything that all runs depend on, and return it for `run_key`."""
        self._forget()
        return surroundings(self.project)

    def _changes(self, entry: CacheEntry) -> Iterator[str]:
        """Yield each change of something that a kept run depends on, in words."""
        for probe, was in entry["answers"].items():
            if self._answer(probe) != was:
                yield f"{probe} has changed"
        for name, number in entry["versions"].items():
            if (now := installed(name)) != number:
                yield f"{name} was {number or 'not installed'} and is {now or 'not installed'}"


def _is_open(probe: str) -> bool:
    """Return whether a probe can have another answer in the next build."""
    kind, _, name = probe.partition(" ")
    return kind != "variable" or is_inherited(name)


def _dump_run(run: Run) -> dict[str, Any]:
    """Return what the cache keeps of a run: all but the blocks, which the page has."""
    about = {field.name: getattr(run, field.name) for field in fields(run) if field.name != "results"}
    return {"about": about, "outcomes": [asdict(outcome) for outcome in run.outcomes]}


def _load_run(page: Page, entry: Mapping[str, Any]) -> Run:
    """Return the run of a page that the cache has kept."""
    outcomes = [from_json(Outcome, outcome) for outcome in entry["outcomes"]]
    if len(outcomes) != len(page.cases):
        raise ValueError("an outcome is missing")
    return replace(from_json(Run, entry["about"] | {"results": ()}), results=pair_results(page, outcomes))


def _is_tied_to(root: Path, run: Run) -> bool:
    """Return whether a run holds for this folder alone: it names the folder, or has looked up something beside it."""
    looked_up = {*run.files, *(probe.partition(" ")[2] for probe in run.probes)}
    beside = os.path.join(root.parent, "")
    named = json.dumps(str(root))[1:-1] in json.dumps([asdict(outcome) for outcome in run.outcomes])
    return named or any(name.startswith(beside) for name in looked_up)
