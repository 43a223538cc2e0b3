"""Build the site with another builder than MkDocs, or write the other forms of the pages into a site that is built."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from livepages.course import read_course
from livepages.execution import Engine
from livepages.integrations.build import NO_EXECUTE, Build
from livepages.integrations.listing import print_failures, print_line
from livepages.integrations.progress import Progress
from livepages.integrations.report import REPORT, Report
from livepages.source import Project, ProjectError, lists_extension

MKDOCS, ZENSICAL, PROPERDOCS, MATERIALX = "mkdocs", "zensical", "properdocs", "materialx"
BUILDERS = (MKDOCS, PROPERDOCS, MATERIALX, ZENSICAL)


def build_site(builder: str, no_execute: bool, project: Project) -> int:
    """Build the site with one of `BUILDERS`, strictly, and return the exit status.

    Raises:
        ProjectError: the builder is not installed, or cannot build this site.
    """
    if no_execute:
        os.environ[NO_EXECUTE] = "1"  # for the builder, too
    if builder == ZENSICAL:
        return _build_with_zensical(project)
    if builder == MATERIALX:
        from livepages.integrations.materialx import with_materialx

        with with_materialx(project.mkdocs) as file:
            return build_site(PROPERDOCS, no_execute, replace(project, mkdocs=file))
    return subprocess.run(_command(builder, project), cwd=project.root, check=False).returncode


def export_site(site: Path, config_file: Path | None, project: Project) -> int:
    """Write the other forms of the pages into a built site, list what fails, and return the exit status.

    Raises:
        ProjectError: this is not a site of the project, or a file cannot be read or written.
    """
    # What writes notebooks is installed where sites are built; hosts that run pages do without.
    from livepages.integrations.post_build import finish

    if config_file:
        project = replace(project, mkdocs=Path(os.path.abspath(config_file)))
        if not project.mkdocs.is_file():
            raise ProjectError(f"{config_file}: no such file")
    course = read_course(project)
    if course.pages and not any((site / course.place(page).html).is_file() for page in course.pages):
        first = project.name(course.pages[0])
        raise ProjectError(f"{site}: holds no HTML of {first}; build the site there first")
    build = _finished_build(project)
    try:
        return print_failures(build.failures or finish(build, site, print_line))
    except OSError as error:
        raise ProjectError(f"{error.filename}: cannot be written: {error.strerror}") from None


def _command(builder: str, project: Project) -> list[str]:
    found = find_spec(builder)
    if found is None or found.origin is None:  # a folder of that name is not it
        raise ProjectError(f"{builder} is not installed; `pip install {builder}` in this environment, and build again")
    return [sys.executable, "-m", builder, "build", "--strict", "--config-file", str(project.mkdocs)]


def _build_with_zensical(project: Project) -> int:
    """Build with Zensical, which runs no plugins: the steps of ours before and after a build are done here."""
    from livepages.integrations.post_build import finish, finish_zensical

    command = _command(ZENSICAL, project)
    if not lists_extension(project):
        raise ProjectError(f"{project.mkdocs}: Zensical runs no plugins; add livepages to markdown_extensions")
    build = _finished_build(project)
    if build.failures:
        return print_failures(build.failures)
    print(*filter(None, (build.summary, build.hint)), sep="\n", flush=True)
    _drop_pages_of_zensical(project)
    with tempfile.TemporaryDirectory(prefix="livepages-") as folder:
        report = Path(folder, "report")
        environment = {**os.environ, REPORT: str(report)}
        done = subprocess.run(command, cwd=project.root, env=environment, check=False)
        failed = Report(report).read()
    _drop_pages_of_zensical(project)  # alone, it shows them otherwise
    if failed or done.returncode:
        return print_failures(failed) or 1
    site = project.mkdocs.parent / build.guide.course.site
    finish_zensical(build, site)
    return print_failures(finish(build, site, print_line))


def _drop_pages_of_zensical(project: Project) -> None:
    """Delete the pages that Zensical keeps by their text alone, as the output of their blocks may have changed.

    Its option --clean would delete the whole folder, with the runs of the pages.
    """
    for kept in (project.mkdocs.parent / ".cache").glob("[0-9]*"):
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink()


def _finished_build(project: Project) -> Build:
    """A build of a project whose pages have all run."""
    progress = Progress(print_line)
    build = Build(Engine(project))
    try:
        build.run(read_course(project), progress.started, progress.done)
    finally:
        build.engine.close()
    return build
