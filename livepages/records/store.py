"""The records of a project, each page's read on first access; and the entries that are up to date.

A block is known by its key, which covers the code of its page up to it; the files of the project that the page used
are named with their content. Where either has changed since, the record is outdated for the block.
"""

import os
from collections.abc import Iterable
from dataclasses import replace
from glob import escape
from pathlib import Path

from livepages.execution import Failure
from livepages.records.entries import FAILED
from livepages.records.files import RecordError
from livepages.records.formats import read_host, read_page
from livepages.records.model import Host, PageRecord, RecordedOutcome, Seen, short_content, short_key
from livepages.source import MARKDOWN, Block, Page, Project, ProjectError
from livepages.worker import signature


class Records:
    """All records of a project, each page's read on first access."""

    def __init__(self, project: Project) -> None:
        """Read which hosts there are."""
        self._project, self.runtime = project, project.runtime
        self._unreadable: list[Failure] = []  # of hosts
        files = sorted(project.records.glob("*.yml"))
        hosts = [host for file in files if (host := self._host(file, self._unreadable))]
        # The reference first, then the newest.
        hosts.sort(key=lambda host: (host.day, host.name), reverse=True)
        self.hosts = sorted(hosts, key=lambda host: host.name != project.reference)

    def problems(self, pages: Iterable[Page]) -> list[Failure]:
        """A failure for each file that cannot be read: of a host, or of one of these pages on a host.

        Elsewhere such a file counts as if it were not there.
        """
        found = [*self._unreadable]
        for page in pages:
            for host in self.hosts:
                self._page(host, page, found)
        return found

    def host(self, name: str) -> Host:
        """The host of a name.

        Raises:
            ProjectError: there is none, or its file cannot be read.
        """
        for host in self.hosts:
            if host.name == name:
                return host
        for failure in self._unreadable:
            if Path(failure.page).stem == name:
                raise ProjectError(str(failure))
        names = ", ".join(host.name for host in self.hosts)
        others = f"there are those of {names}" if names else "`livepages record --host NAME` makes one"
        raise ProjectError(f"{self._project.records}: holds no record of {name!r}; {others}")

    def of(self, page: Page) -> list[PageRecord]:
        """Return the records of a page, whatever its code was when they were made."""
        return [record for host in self.hosts if (record := self._page(host, page, []))]

    def valid_for(self, page: Page) -> list[PageRecord]:
        """Return the records of a page whose files are unchanged, with the entries whose code is unchanged."""
        keys = {short_key(block) for block in page.cases}
        return [
            replace(record, entries={key: entry for key, entry in record.entries.items() if key in keys})
            for record in self.of(page)
            if all(short_content(self._project.root / name) == was for name, was in record.files.items())
        ]

    def seen(self, page: Page) -> Seen:
        """Return a function from a block of a page to its recorded outcomes that are up to date."""
        records = self.valid_for(page)

        def seen(block: Block) -> list[RecordedOutcome]:
            known = ((record, record.entries.get(short_key(block))) for record in records)
            return [RecordedOutcome(record.host, record.device, entry) for record, entry in known if entry]

        return seen

    def outdated(self, pages: Iterable[Page]) -> dict[str, list[Block]]:
        """For each host, the blocks of these pages that it has no valid record of, or one of a failure."""
        found: dict[str, list[Block]] = {host.name: [] for host in self.hosts}
        for page in pages:
            seen = self.seen(page)
            for block in page.cases:
                hosts = {one.host.name for one in seen(block) if one.entry.outcome != FAILED}
                for name in found:
                    found[name] += [] if name in hosts else [block]
        return found

    def unrecorded(self, pages: Iterable[Page]) -> list[Block]:
        """The blocks that need a device, and of which no host has a valid record."""
        found = []
        for page in pages:
            seen = self.seen(page)
            needing = (block for block in page.cases if block.options.needs or page.settings.needs)
            found += [block for block in needing if not any(one.entry.good for one in seen(block))]
        return found

    def orphans(self, pages: Iterable[Page]) -> list[Path]:
        """The records of no page: its file is gone, or it has no blocks any more.

        Args:
            pages: those that could be read. A page whose file is there, and which is none of them, keeps its records.
        """
        empty = {page.path for page in pages if not page.program}
        files = sorted(self._project.records.glob("*/**/*.yml"))
        return [file for file in files if all(path in empty for path in _pages_of(self._project, file))]

    def _host(self, file: Path, unreadable: list[Failure]) -> Host | None:
        try:
            return read_host(file, signature(file))
        except RecordError as error:
            unreadable.append(self._failure(file, file.stem, error))
            return None

    def _page(self, host: Host, page: Page, unreadable: list[Failure]) -> PageRecord | None:
        file = page_file(self._project, host.name, page)
        if not file.is_file():
            return None
        try:
            about = {**read_page(file, signature(file))}
            instruction_set = about.pop("instruction_set") or host.instruction_set
            return PageRecord(replace(host, instruction_set=instruction_set), **about)
        except RecordError as error:
            unreadable.append(self._failure(file, host.name, error))
            return None

    def _failure(self, file: Path, host: str, error: RecordError) -> Failure:
        what = f"the record cannot be read: {error}; write it anew with `livepages record --host {host}`"
        return Failure(self._project.name(file), error.line, 0, what)


def former_records(project: Project, page: Page) -> list[Path]:
    """The records, of any host, under a name that a page had (``redirect_from``) and no page has now."""
    found = [file for name in page.redirect_from for file in records_named(project, project.docs / name)]
    return [file for file in found if not _pages_of(project, file)]


def records_named(project: Project, path: Path) -> list[Path]:
    """The records, of any host, under the name of a page that need not be there."""
    path = Path(os.path.normpath(path))
    if path.suffix not in MARKDOWN or not path.is_relative_to(project.docs):
        return []
    name = path.relative_to(project.docs).with_suffix(".yml").as_posix()
    return [file for file in sorted(project.records.glob(f"*/{escape(name)}")) if file.is_file()]


def _pages_of(project: Project, file: Path) -> list[Path]:
    """The files of pages that a record may be of; none if all are gone."""
    _, *name = file.relative_to(project.records).with_suffix("").parts
    page = str(project.docs.joinpath(*name))
    return [Path(page + ending) for ending in MARKDOWN if os.path.lexists(page + ending)]


def page_file(project: Project, host: str, page: Page) -> Path:
    """Return the file of a page's record on a host, which need not be there."""
    return project.records / host / page.path.relative_to(project.docs).with_suffix(".yml")
