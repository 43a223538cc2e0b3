"""The folders of a project, and the settings that all its pages share.

Settings are in ``pyproject.toml``::

    [tool.livepages]
    docs = "docs"             # the pages; unless named, the folder that the site's configuration names
    mkdocs = "mkdocs.yml"     # the site's configuration; need not be there
    snippets = "snippets"     # modules that pages include and import
    inventories = "inventories"  # of the reference of libraries; need not be there
    records = "records"       # of each host
    reference = "cpu"         # the host whose records must be up to date
    timeout = 60              # seconds a block may take, unless its own option or its page's differs
    runtime = "python"        # of the pages (`find_runtime`); unless named, their imports decide
    guide = "module:Class"    # adds to pages (`livepages.course.Guide`); need not be there
    preload = []              # modules that every page finds imported; those it imports first are so anyway
    fences = "all"            # which Python fences run; "exec": those with exec="on", as markdown-exec has it
    inline_expressions = true  # whether prose shows the value of `{python} x`; unless named, false for fences = "exec"

    [tool.livepages.NAME]     # how every page starts, as the runtime NAME has it

Without the table, the project is that of a ``mkdocs.yml`` which lists the plugin or the extension. Unless ``fences``
says otherwise, the fences of a site that lists markdown-exec are read as markdown-exec reads them.
"""

import math
import os.path
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from livepages.source.imports import any_imports
from livepages.source.mkdocs_yml import ProjectError, named, read_configuration
from livepages.source.snippets import include
from livepages.source.suggestions import closest
from livepages.source.superfences import Scanner
from livepages.worker import Runtime, built_in, find_runtime, runtimes

MARKDOWN = (".md", ".markdown", ".mdown", ".mkdn", ".mkd")  # the endings of pages, as MkDocs has them


class NoProjectError(ProjectError):
    """Raised for a folder that belongs to no project."""


@dataclass(frozen=True)
class Project:
    """The folders and shared settings of one site. All paths are absolute."""

    root: Path
    docs: Path
    mkdocs: Path
    snippets: Path
    inventories: Path
    records: Path
    cache: Path  # for everything that may be deleted at any time
    reference: str = "cpu"
    timeout: float = 60.0
    guide: str = ""
    preload: tuple[str, ...] = ()
    fences: str = "all"  # or "exec"
    inline_expressions: bool = True  # whether prose shows their values
    configuration: Mapping[str, object] = field(default_factory=dict)  # the site's, where `fences` is "exec"
    runtime: Runtime = field(default_factory=lambda: find_runtime("python"))
    options: Mapping[str, object] = field(default_factory=dict)  # of the runtime

    @cached_property
    def scanner(self) -> Scanner:
        """The scanner of the fences that markdown-exec executes on this site.

        Raises:
            ProjectError: markdown-exec is not installed.
        """
        try:
            import markdown_exec
        except ImportError:
            raise ProjectError(f'{self.mkdocs}: fences = "exec" needs markdown-exec; install it') from None
        languages = named(self.configuration.get("plugins")).get("markdown-exec", {}).get("languages")
        config = self._extension("pymdownx.superfences") or {}
        return Scanner(languages or list(markdown_exec.formatters), markdown_exec.validator, config)

    def include(self, page: Path, lines: Sequence[str], files: set[Path] | None = None) -> list[tuple[str, int]]:
        """Return the lines of a page after the site's includes, each with its line number (from 1) before them.

        Args:
            page: its file.
            lines: those before.
            files: to which the included files are added.
        """
        config = self._extension("pymdownx.snippets")
        if config is None:
            return [(line, number) for number, line in enumerate(lines, 1)]
        folders = {"config_dir": self.mkdocs.parent, "docs_dir": self.docs, "page_dir": page.parent}
        return list(include(lines, config, folders, set() if files is None else files))

    def _extension(self, name: str) -> Mapping[str, object] | None:
        return named(self.configuration.get("markdown_extensions")).get(name)

    def own(self, path: Path) -> Path:
        """Return the path that this project uses for a file of its own, however the file was reached.

        Links inside the project are left as they are: a page that is one is a page of its own.
        """
        path = Path(os.path.abspath(path))
        for folder in path.parents:
            if folder.resolve() == self.root:
                return self.root / path.relative_to(folder)
        return path

    def name(self, path: Path) -> str:
        """A path as messages show it: relative to the root where it lies below it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def lists_extension(project: Project) -> bool:
    """Return whether the site lists our Markdown extension, without which no builder but MkDocs shows an output."""
    return "livepages" in named(read_configuration(project.mkdocs).get("markdown_extensions"))


_LISTS = ("plugins", "markdown_extensions")  # in which mkdocs.yml may name us


def find_project(start: Path) -> Project:
    """The project that `start` (a file or folder) lies in.

    Raises:
        NoProjectError: no ``pyproject.toml`` at or above `start` has a ``[tool.livepages]`` table, and no
            ``mkdocs.yml`` names us.
        ProjectError: a file cannot be read, or the table holds a name or a value that cannot be used.
    """
    start = Path(os.path.abspath(start))  # not resolved: pages may be links to files outside
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool")
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
                raise ProjectError(f"{file}: {error}") from None
            table = tool.get("livepages") if isinstance(tool, dict) else None
            if table is not None:
                return _project(folder.resolve(), table, file)
    for folder in (start, *start.parents):
        file = folder / "mkdocs.yml"
        if file.is_file() and any("livepages" in named(read_configuration(file).get(kind)) for kind in _LISTS):
            return site_project(file)
    raise NoProjectError(
        f"{start}: no pyproject.toml with a [tool.livepages] table here or above, and no mkdocs.yml with livepages "
        f"among its {' or '.join(_LISTS)}"
    )


def site_project(mkdocs: Path) -> Project:
    """Return the project of a site that has no ``[tool.livepages]`` table, by the file of its configuration.

    Raises:
        ProjectError: as for `find_project`.
    """
    return _project(mkdocs.parent.resolve(), {"mkdocs": mkdocs.name}, mkdocs)


_PATHS = {
    "docs": "docs",
    "mkdocs": "mkdocs.yml",
    "snippets": "snippets",
    "inventories": "inventories",
    "records": "records",
}
_KINDS: dict[str, tuple[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(_PATHS, ("a path, as text", str)),
    "reference": ("text", str),
    "timeout": ("a number of seconds above 0", (int, float)),
    "runtime": ("the name of a runtime", str),
    "fences": ('"all" or "exec"', str),
    "inline_expressions": ("true or false", bool),
    "guide": ("text", str),
    "preload": ("a list of installed modules", list),
}


def _imported_runtime(root: Path, table: Mapping[str, object]) -> Runtime:
    """Return the runtime of a library that the pages import and that is installed; plain Python if there is none."""
    docs, snippets = (root / str(table.get(name, _PATHS[name])) for name in ("docs", "snippets"))
    files = [*(file for file in sorted(docs.rglob("*")) if file.suffix in MARKDOWN), *sorted(snippets.rglob("*.py"))]
    for runtime in map(find_runtime, built_in()):
        if runtime.versions() and any_imports(files, runtime.libraries, snippets):
            return runtime
    return find_runtime("python")


def _are_there(modules: Iterable[object]) -> bool:
    """Return whether these are names of modules whose packages are installed."""
    names = [name.partition(".")[0] if isinstance(name, str) else "" for name in modules]
    return all(name.isidentifier() and PathFinder.find_spec(name) for name in names)


def _faults(root: Path, table: Mapping[str, object], runtime: Runtime) -> Iterator[str]:
    """Yield what is wrong with each setting of the table."""
    kinds = {**_KINDS, runtime.name: ("a table", dict)}
    for name, value in table.items():
        if name not in kinds and name in runtimes():
            yield f'[tool.livepages.{name}] is read where runtime = "{name}"; it is "{runtime.name}"'
        elif name not in kinds:
            yield f"[tool.livepages] has no setting {name!r}{closest(name, kinds)}; it has {', '.join(kinds)}"
        elif not _is_right(name, value, kinds[name][1]):
            yield f"[tool.livepages] {name} = {value!r} is not {kinds[name][0]}"
    for name in ("docs", "mkdocs", "snippets", "inventories"):
        value = table.get(name, _PATHS[name] if name == "docs" else None)
        path = root / str(value)
        if isinstance(value, str) and not (path.is_file() if name == "mkdocs" else path.is_dir()):
            meant = closest(path.name, (other.name for other in root.iterdir()))
            yield f"[tool.livepages] {name}: there is no {path}{meant}"
    options = table.get(runtime.name, {})
    for name, value in options.items() if isinstance(options, dict) else ():
        if not isinstance(value, bool | int | float | str):
            yield f"[tool.livepages.{runtime.name}] {name} = {value!r} is not true, false, a number or text"


def _is_right(name: str, value: Any, kind: Any) -> bool:
    right: bool = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if right and name == "timeout":
        right = 0 < value < math.inf
    elif right and name == "preload":
        right = _are_there(value)
    elif right and name == "fences":
        right = value in ("all", "exec")
    return right


def _project(root: Path, table: object, file: Path) -> Project:
    if not isinstance(table, dict):
        raise ProjectError(f"{file}: tool.livepages = {table!r} is not a table; write [tool.livepages]")
    mkdocs = root / str(table.get("mkdocs", _PATHS["mkdocs"]))
    if "docs" not in table and mkdocs.is_file() and (docs := read_configuration(mkdocs).get("docs_dir")):
        table = {**table, "docs": os.path.normpath(mkdocs.parent / str(docs))}
        if not Path(root, str(table["docs"])).is_dir():
            raise ProjectError(f"{mkdocs}: docs_dir: there is no {table['docs']}")
    try:
        runtime = find_runtime(str(table["runtime"])) if "runtime" in table else _imported_runtime(root, table)
    except ValueError as error:
        raise ProjectError(f"{file}: [tool.livepages] runtime: {error}") from None
    if faults := list(_faults(root, table, runtime)):
        raise ProjectError("\n".join(f"{file}: {fault}" for fault in faults))
    paths = {name: root / str(table.get(name, usual)) for name, usual in _PATHS.items()}
    rest = {name: value for name, value in table.items() if name in ("reference", "timeout", "guide")}
    rest["preload"] = tuple(table.get("preload", ()))
    cache = root / ".cache" / "livepages"
    configuration: Mapping[str, object] = {}
    if table.get("fences") != "all" and paths["mkdocs"].exists():
        configuration = read_configuration(paths["mkdocs"])
    of_markdown_exec = "markdown-exec" in named(configuration.get("plugins"))
    fences = table.get("fences", "exec" if of_markdown_exec else "all")
    return Project(
        root=root,
        **paths,  # type: ignore[arg-type]
        cache=cache,
        **rest,
        fences=fences,
        inline_expressions=table.get("inline_expressions", fences == "all"),
        configuration=configuration if fences == "exec" else {},
        runtime=runtime,
        options=table.get(runtime.name, {}),
    )
