"""Record the outcomes of pages on this host."""

import datetime
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from livepages.course import history
from livepages.execution import BlockResult, Run, distributions
from livepages.records.differences import differ
from livepages.records.entries import Entry
from livepages.records.files import write
from livepages.records.formats import host_text, page_text
from livepages.records.model import Host, PageRecord, entry, short_content
from livepages.records.store import Records, former_records, page_file
from livepages.source import Page, Project, ProjectError
from livepages.worker import Runtime


def used_files(project: Project, run: Run) -> dict[str, str | None]:
    """Return the digests of the project's files that a run depends on, by name, for its record."""
    return {
        name: short_content(project.root / name)
        for name in sorted(run.files)
        # A page may show the records of other hosts, and files outside differ from host to host.
        if not Path(name).is_absolute() and not (project.root / name).is_relative_to(project.records)
    }


def check_host_name(name: str) -> None:
    """Check that a name can be that of a host.

    Raises:
        ProjectError: it cannot.
    """
    if not re.fullmatch(r"[\w.-]+", name):
        raise ProjectError(f"{name!r} cannot be the name of a host, which has only letters, digits, dots and dashes")


def record(project: Project, name: str, ran: Iterable[tuple[Page, Run]], partial: bool = False) -> list[Path]:
    """Write the records of this host for the project's pages. An entry that equals the recorded one stays as it is.

    The records of a page that was renamed, those of other hosts too, get its new name.

    Args:
        project: the project.
        name: of this host.
        ran: every page that could be read, and its run here.
        partial: whether `ran` holds only some of the pages; records of others are left as they are. Their computer may
            have another instruction set than that of these pages.

    Returns:
        the files that changed.

    Raises:
        ProjectError: the name is that of a host of another kind, or with a newer release, or, for some of the pages,
            with another release; or a file cannot be written.
    """
    check_host_name(name)
    ran = list(ran)
    host = _this_host(project, name, [module for _, run in ran for module in run.modules])
    known = Records(project)
    before = next((other for other in known.hosts if other.name == name), None)
    if before:
        _check_release(before, host, project.runtime, partial)
    changed, replaced = [], []
    other = host.instruction_set if partial and before and before.instruction_set != host.instruction_set else ""
    for page, run in ran:
        if not page.program:
            continue
        for file in former_records(project, page):
            of = file.relative_to(project.records).parts[0]
            if not (new := page_file(project, of, page)).exists():
                changed += _move(file, new)
            elif of == name:
                replaced.append(file)  # by the one that is written below
        old = {record.host.name: record for record in known.of(page)}.get(name, PageRecord(host, ""))
        # A block that did not run because another one failed has no outcome of its own.
        kept = [_entry_to_keep(old, result, project.runtime) for result in run.program if not result.stopped_by]
        text = page_text(run.device, other, used_files(project, run), kept)
        changed += _written(page_file(project, name, page), text)
    changed += _written(project.records / f"{name}.yml", host_text(_merged(before, host, partial)))
    orphans = [] if partial else known.orphans(page for page, _ in ran)
    for file in dict.fromkeys([*replaced, *orphans]):
        if file.is_relative_to(project.records / name):
            file.unlink()
            changed.append(file)
    return list(dict.fromkeys(changed))


def _check_release(before: Host, here: Host, runtime: Runtime, partial: bool) -> None:
    """Check that this host can record under the name of the one that did before.

    Raises:
        ProjectError: it cannot.
    """
    newer = _number(before.release) > _number(here.release)
    if newer or _is_another_kind(before, here, runtime, partial):
        what = "record it under another name"
    elif partial and before.release != here.release:
        what = "record all pages, not only some"
    else:
        return
    raise ProjectError(f"{before.name} is {before.label}, and this is {here.label}: {what}")


def _merged(before: Host | None, here: Host, partial: bool) -> Host:
    """Return the description of a host after some or all of its pages have run again."""
    if partial and before:
        return replace(before, distributions={**before.distributions, **here.distributions})
    return replace(here, commit=here.commit or (before.commit if before else ""))


def _is_another_kind(before: Host, here: Host, runtime: Runtime, partial: bool) -> bool:
    """Return whether a record was made on another kind of device, or for a processor, on another kind of computer.

    Some of the pages may be recorded with another instruction set, which their files then name.
    """
    if before.device != here.device or not runtime.is_processor(here.device):
        return before.device != here.device
    if before.system != here.system:
        return True
    return not partial and before.instruction_set not in ("", here.instruction_set)


def _entry_to_keep(record: PageRecord, result: BlockResult, runtime: Runtime) -> Entry:
    """Return the old entry if the new one equals it but for times and `volatile` outputs, which always differ."""
    new, options = entry(result), result.block.options
    old = record.entries.get(new.key)
    if old is None or differ(old, new, options.tolerance, options.volatile, runtime.noise_patterns):
        return new
    return replace(old, code=new.code, counts=new.counts)


def _this_host(project: Project, name: str, modules: Iterable[str]) -> Host:
    runtime = project.runtime
    here = {
        **runtime.host(),
        "versions": runtime.versions(),
        "environment": runtime.variables(),
    }
    versions = distributions.versions(modules)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Host(name=name, distributions=versions, commit=history.commit(project), day=day, **here)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _move(file: Path, new: Path) -> list[Path]:
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        file.rename(new)
    except OSError as error:
        raise ProjectError(f"{file}: cannot be renamed to {new}: {error.strerror}") from None
    return [file, new]


def _written(file: Path, text: str) -> list[Path]:
    """The file if writing this text into it changes it."""
    return [file] if write(file, text) else []
