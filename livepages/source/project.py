"""Where a project keeps its pages, and the settings all of them share.

Settings stand in ``pyproject.toml``::

    [tool.livepages]
    docs = "docs"             # the pages
    snippets = "snippets"     # modules that pages include and import
    inventories = "inventories"  # where the reference of libraries is; need not be there
    records = "records"       # what hosts saw
    reference = "cpu"         # the host whose records must be up to date
    timeout = 60              # seconds a block may take, unless it says otherwise
    runtime = "python"        # what pages are programs of (`livepages.worker.runtimes`)

    [tool.livepages.NAME]     # how every page starts, as the runtime NAME has it
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from livepages.source.suggestions import closest
from livepages.worker import Runtime, find_runtime, runtimes


class ProjectError(Exception):
    """The project's settings cannot be used; the message names the file."""


@dataclass(frozen=True)
class Project:
    """The folders and shared settings of one site. All paths are absolute."""

    root: Path
    docs: Path
    snippets: Path
    inventories: Path
    records: Path
    reference: str = "cpu"
    timeout: float = 60.0
    runtime: Runtime = field(default_factory=lambda: find_runtime("python"))
    options: Mapping[str, object] = field(default_factory=dict)  # of the runtime

    @property
    def cache(self) -> Path:
        """The folder for everything that may be deleted at any time."""
        return self.root / ".cache" / "livepages"

    def page_paths(self) -> list[Path]:
        """Every page of the site, in a fixed order; what begins with a dot belongs to other programs."""
        files = (file.relative_to(self.docs) for file in self.docs.rglob("*.md") if file.is_file())
        return sorted(self.docs / file for file in files if not any(part.startswith(".") for part in file.parts))

    def name(self, path: Path) -> str:
        """A path as messages show it: relative to the root where it lies below it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def find_project(start: Path) -> Project:
    """The project that `start` (a file or folder) lies in.

    Raises:
        ProjectError: no ``pyproject.toml`` at or above `start` has a ``[tool.livepages]`` table, or the table
            holds a name or a value that is not understood.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("livepages")
            except tomllib.TOMLDecodeError as error:
                raise ProjectError(f"{file}: {error}") from None
            if table is not None:
                return _project(folder, table, file)
    raise ProjectError(f"{start}: no pyproject.toml with a [tool.livepages] table here or above")


def _project(root: Path, table: dict[str, object], file: Path) -> Project:
    kinds: dict[str, type | tuple[type, ...]] = {
        "docs": str,
        "snippets": str,
        "inventories": str,
        "records": str,
        "reference": str,
        "timeout": (int, float),
        "runtime": str,
    }
    try:
        runtime = find_runtime(str(table.get("runtime", "python")))
    except ValueError as error:
        raise ProjectError(f"{file}: [tool.livepages] runtime: {error}") from None
    kinds[runtime.name] = dict
    for name, value in table.items():
        if name in runtimes() and name != runtime.name:
            raise ProjectError(
                f'{file}: [tool.livepages.{name}] is read where runtime = "{name}"; it is "{runtime.name}"'
            )
        if name not in kinds:
            raise ProjectError(
                f"{file}: [tool.livepages] has no setting {name!r}{closest(name, kinds)}; it has {', '.join(kinds)}"
            )
        if not isinstance(value, kinds[name]) or isinstance(value, bool):
            raise ProjectError(f"{file}: [tool.livepages] {name} = {value!r} is not of the right kind")
    if not 0 < float(table.get("timeout", 1)) < float("inf"):  # type: ignore[arg-type]
        raise ProjectError(f"{file}: [tool.livepages] timeout = {table['timeout']!r} is not a number of seconds")
    rest = {name: value for name, value in table.items() if name in ("reference", "timeout")}
    return Project(
        root=root,
        docs=root / str(table.get("docs", "docs")),
        snippets=root / str(table.get("snippets", "snippets")),
        inventories=root / str(table.get("inventories", "inventories")),
        records=root / str(table.get("records", "records")),
        runtime=runtime,
        options=table.get(runtime.name, {}),  # type: ignore[arg-type]
        **rest,  # type: ignore[arg-type]
    )
