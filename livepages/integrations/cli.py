"""The command line."""

import argparse
import io
import os
import shutil
import signal
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from livepages.course import clashes, find_guide, read_course
from livepages.execution import Engine, Failure, Run, Runner, WorkerError, count, pair_results
from livepages.integrations.build import NO_EXECUTE
from livepages.integrations.builders import BUILDERS, MATERIALX, PROPERDOCS, build_site, export_site
from livepages.integrations.listing import (
    and_more,
    by_page,
    hint,
    number_of,
    print_failures,
    print_line,
    print_run,
    renewal,
    stopped,
)
from livepages.integrations.progress import Progress
from livepages.integrations.shards import START, seconds, shard
from livepages.records import Host, Records, check_host_name, check_page, compare, former_records, record, write
from livepages.rendering import status
from livepages.source import MARKDOWN, Page, Project, ProjectError, closest, find_project, read_inventories

_DESCRIPTION = """\
Run the Python blocks of Markdown pages as programs: each page in a fresh process, top to bottom.
Failures are listed as PAGE:LINE; the exit status is 1 if there is one, 2 if the command cannot be carried out."""


def main(arguments: list[str] | None = None) -> None:
    """Carry out a command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # of terminals that have no UTF-8
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as it is while modules are imported
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = options.act(options, find_project(options.pages[0] if getattr(options, "pages", None) else Path.cwd()))
        sys.stdout.flush()
    except (ProjectError, WorkerError) as error:
        parser.exit(2, f"livepages: error: {error}\n")
    except KeyboardInterrupt:
        _interrupted()
    except BrokenPipeError as error:
        code = _closed_output_status(error)
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, whose result has the function to carry out as ``act``."""
    parser = argparse.ArgumentParser(
        "livepages", description=_DESCRIPTION, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"livepages {version('livepages')}")
    jobs = argparse.ArgumentParser(add_help=False)
    jobs.add_argument("-j", "--jobs", type=_jobs, metavar="N", help="pages run at a time (default: one a core)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run_command = commands.add_parser(
        "run", parents=[jobs], help="run pages that have changed, or that are named, and list what fails"
    )
    run_command.add_argument(
        "pages",
        nargs="*",
        type=Path,
        metavar="PAGE",
        help="Markdown files, or folders of them, to run now, changed or not; all stale ones if none",
    )
    run_command.add_argument("--all", action="store_true", help="run every page, changed or not")
    run_command.add_argument("-v", "--verbose", action="store_true", help="print the output of every block")
    run_command.add_argument(
        "--shard", type=shard, metavar="INDEX/COUNT", help="run only this part of the pages, as 2/8"
    )
    run_command.set_defaults(act=_run)

    new_command = commands.add_parser("new", help="write a first version of a page, and list the next steps")
    new_command.add_argument("page", type=Path, metavar="PAGE", help="the Markdown file, as docs/basics/my-page.md")
    new_command.set_defaults(act=_new)

    check_command = commands.add_parser(
        "check",
        help="read every page and run nothing; list what cannot be read, what is not run, and what is not recorded",
    )
    check_command.set_defaults(act=_check)

    record_command = commands.add_parser(
        "record", parents=[jobs], help="run every page, or those named, and record the outputs of this host"
    )
    record_command.add_argument(
        "pages", nargs="*", type=Path, metavar="PAGE", help="Markdown files, or folders; all if none"
    )
    record_command.add_argument("--host", metavar="NAME", required=True, help="the name of this host among the records")
    record_command.add_argument(
        "--into", type=Path, metavar="FOLDER", help="where records are kept (default: the project's)"
    )
    record_command.set_defaults(act=_record)

    compare_command = commands.add_parser("compare", help="list the blocks whose output differs between two hosts")
    compare_command.add_argument("old", metavar="HOST", help="a name among the records, or the path of a host's record")
    compare_command.add_argument("new", metavar="HOST", help="the other")
    compare_command.add_argument(
        "--markdown", action="store_true", help="as Markdown, page by page, with the outputs folded"
    )
    compare_command.set_defaults(act=_compare)

    build_command = commands.add_parser(
        "build", help="build the site with the named builder; the pages are the same with each"
    )
    build_command.add_argument(
        "builder",
        choices=BUILDERS,
        help=f"the builder, which must be installed; {MATERIALX} is {PROPERDOCS} with that theme",
    )
    build_command.add_argument(
        "--no-execute",
        action="store_true",
        help=f"run nothing, and fail if the run of a page is not kept; as the variable {NO_EXECUTE} does everywhere",
    )
    build_command.set_defaults(act=lambda options, project: build_site(options.builder, options.no_execute, project))

    export_command = commands.add_parser(
        "export", help="write the pages' other forms into a built site: scripts, notebooks, Markdown, llms.txt, feed"
    )
    export_command.add_argument("site", type=Path, metavar="SITE", help="the folder that holds the built site")
    export_command.add_argument(
        "-f",
        "--config-file",
        type=Path,
        metavar="FILE",
        help="the configuration that it was built with (default: the project's)",
    )
    export_command.set_defaults(act=lambda options, project: export_site(options.site, options.config_file, project))

    clean_command = commands.add_parser("clean", help="delete the cached results and compiled programs of earlier runs")
    clean_command.set_defaults(act=_clean)
    return parser


def _interrupted() -> NoReturn:
    """End with the signal of Ctrl-C, so that a loop of the shell ends as well."""
    print("livepages: interrupted; the runs of pages that had ended are kept", file=sys.stderr, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    raise SystemExit(128 + signal.SIGINT)  # where the signal is blocked


def _closed_output_status(error: BrokenPipeError) -> int:
    """Return the status of a program whose output is no longer read, as by `head`; raise any other error."""
    try:
        print(flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
        return 128 + signal.SIGPIPE
    raise error


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of pages, from 1")
    return int(text)


def _run(options: argparse.Namespace, project: Project) -> int:
    named = _named(options.pages, project)
    engine = Engine(project, Runner(options.jobs))
    paths = named or read_course(project).pages
    pages, failed = engine.read(paths)
    records = Records(project)
    if options.shard:
        part = options.shard.of(dict.fromkeys(paths, START) | {page.path: seconds(page, records) for page in pages})
        pages = [page for page in pages if page.path in part]
        failed = [failure for failure in failed if project.root / failure.page in part]
    programs = [page for page in pages if page.program]
    runs = {} if options.all or options.pages else engine.kept(programs)
    stale = [page for page in programs if page.path not in runs]
    runs |= _run_pages(engine, stale)
    failed += records.problems(programs)
    for page in programs:
        failed += check_page(page, runs[page.path], records)
        if options.verbose:
            print_run(runs[page.path])
        for line in stopped(page, runs[page.path]):
            print(line)
    if pages or not failed:
        print(f"{count(len(pages), 'page')}: {len(stale)} run, {len(programs) - len(stale)} unchanged")
    for page in pages:
        if not page.program and page.path in map(project.own, options.pages):
            print(f"{page.name} has no block that runs")
    failing = {failure.page for failure in failed}
    outdated = {block.page for block in records.outdated(programs).get(project.reference, [])} - failing
    for advice in filter(None, (hint(project, pages), renewal(project.reference, outdated))):
        print(advice)
    return print_failures(failed)


def _run_pages(engine: Engine, pages: list[Page]) -> dict[Path, Run]:
    """Return the runs of pages, all of which run now, with their progress shown; nothing runs after that."""
    progress = Progress(print_line)
    try:
        progress.started(pages)
        return engine.run(pages, progress.done)
    finally:
        engine.close()


_PAGE = """\
---
description: "What a reader gets from this page, in one sentence."
---

# {title}

The problem, and what you will be able to do about it, in a sentence or two.

```python{options}
print(1 + 1)
```
"""
_OPTIONS_TO_RUN = ' exec="on" source="above" result="text"'  # where a bare fence is only shown


def _new(options: argparse.Namespace, project: Project) -> int:
    file = project.own(options.page)
    if file.suffix != ".md" or not file.is_relative_to(project.docs):
        raise ProjectError(f"{options.page}: name a Markdown file in {project.docs}, as {project.docs}/my-page.md")
    title = file.stem.replace("-", " ").replace("_", " ").capitalize()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(_PAGE.format(title=title, options=_OPTIONS_TO_RUN if project.fences == "exec" else ""))
    except OSError as error:
        why = "there is such a page already" if file.exists() else f"cannot be written: {error.strerror}"
        raise ProjectError(f"{options.page}: {why}") from None
    name = file.relative_to(project.docs).as_posix()
    print(f"{project.name(file)} is written. Add it to nav in the site's configuration: - {name}")
    print(f"To run it: livepages run {options.page} -v")
    return 0


def _named(files: list[Path], project: Project) -> list[Path]:
    """Return the files of pages, and of those in folders, by the paths that the project uses."""
    named: list[Path] = []
    for file in files:
        own = project.own(file)
        if own.is_dir() and own.is_relative_to(project.docs):
            found = [page for page in read_course(project).pages if page.is_relative_to(own)]
            if not found:
                raise ProjectError(f"{file}: there is no page in this folder")
            named += found
        elif not own.is_relative_to(project.docs) or not own.is_file():
            names = (project.name(path) for path in project.docs.rglob("*.md"))
            raise ProjectError(f"{file}: no such page in {project.docs}{closest(str(file), names)}")
        elif own.suffix not in MARKDOWN:
            raise ProjectError(f"{file}: not a Markdown file, whose name ends in {', '.join(MARKDOWN)}")
        else:
            named.append(own)
    return named


def _check(_: argparse.Namespace, project: Project) -> int:
    course = read_course(project)
    pages, failed = Engine(project).read(course.pages)
    failed += clashes(course, project)
    failed += find_guide(project)(course, {page.path: page for page in pages}, read_inventories(project)).problems()
    blocks = [block for page in pages for block in page.blocks]
    off = [block for block in blocks if not block.runs]
    for of_page in by_page(off):
        first = of_page[0]
        print(f"{first.page}:{first.line}: not run: {first.options.reason}{and_more(of_page)}")
    print(f"{count(len(pages), 'page')}, {count(len(blocks), 'Python block')}, {len(off)} of them not run")
    records = Records(project)
    failed += records.problems(pages)
    for of_page in by_page(records.unrecorded(pages)):
        first, more = of_page[0], and_more(of_page)
        print(f"{first.page}:{first.line}: runs only on some hosts, and none of them has recorded it{more}")
    for host, outdated in records.outdated(pages).items():
        where = f", the first {outdated[0].page}:{outdated[0].line}" if outdated else ""
        print(f"{host}: {number_of(outdated) or '0 blocks'} without an up-to-date record{where}")
        if host == project.reference:
            for of_page in by_page(outdated):
                what = f"has no up-to-date record on {host}{and_more(of_page)}; run `livepages record --host {host}`"
                failed.append(Failure(of_page[0].page, of_page[0].line, of_page[0].line, what))
    renamed = {file: page.name for page in pages if page.program for file in former_records(project, page)}
    for file in records.orphans(pages):
        if file.is_relative_to(project.records / project.reference):
            new = renamed.get(file)
            what = f"a name that {new} had" if new else "no page"
            how = f"livepages record {f'{new} ' if new else ''}--host {project.reference}"
            message = f"is the record of {what}; `{how}` {'renames' if new else 'deletes'} it"
            failed.append(Failure(project.name(file), 1, 0, message))
    return print_failures(failed)


def _record(options: argparse.Namespace, project: Project) -> int:
    check_host_name(options.host)
    if options.into:
        project = replace(project, records=options.into.resolve())
    engine = Engine(project, Runner(options.jobs))
    named = _named(options.pages, project)
    every, failed = engine.read(read_course(project).pages)
    pages = [page for page in every if page.path in named] if named else every
    failed = [failure for failure in failed if not named or project.root / failure.page in named]
    programs = [page for page in pages if page.program]
    runs = _run_pages(engine, programs)
    for page in programs:
        failed += runs[page.path].failures
    ran = [(page, runs.get(page.path) or Run(pair_results(page))) for page in pages]
    changed = record(project, options.host, ran, bool(named))
    write(project.records / "status.svg", status.badge(project, [page for page in every if page.program]))
    print(f"{count(len(programs), 'page')}: {count(len(changed), 'file')} of {project.name(project.records)} changed")
    return print_failures(failed)


def _compare(options: argparse.Namespace, project: Project) -> int:
    pages, failed = Engine(project).read(read_course(project).pages)
    old, new = (_host(project, name) for name in (options.old, options.new))
    failed += dict.fromkeys([*old[1].problems(pages), *new[1].problems(pages)])
    comparison = compare(pages, old, new)
    print(comparison.markdown if options.markdown else comparison.report)
    return print_failures(failed)


def _host(project: Project, name: str) -> tuple[Host, Records]:
    path = Path(name)
    if path.parent != Path():
        project = replace(project, records=path.resolve().parent)
    records = Records(project)
    return records.host(path.name), records


def _clean(_: argparse.Namespace, project: Project) -> int:
    try:
        shutil.rmtree(project.cache)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ProjectError(f"{error.filename}: cannot be deleted: {error.strerror}") from None
    return 0
