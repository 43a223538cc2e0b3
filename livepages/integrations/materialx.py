"""MaterialX, a theme that replaces Material for MkDocs: it has another name, and its search takes other options."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path

import yaml
from mkdocs.utils.yaml import yaml_load

from livepages.source import ProjectError, named

THEME = "materialx"


@contextmanager
def with_materialx(file: Path) -> Iterator[Path]:
    """A configuration that inherits from the one in a file and has this theme, as long as it is used.

    Raises:
        ProjectError: the theme is not installed.
    """
    if not entry_points(group="mkdocs.themes", name=THEME):
        raise ProjectError(
            f"{THEME} is not installed; `pip install mkdocs-{THEME}` in an environment without mkdocs-material, "
            "whose files have the same names, and build again"
        )
    with file.open(encoding="utf-8") as stream:
        plugins = named(yaml_load(stream).get("plugins", ["search"]))
    for name in plugins.keys() & {"search", "material/search"}:  # with the same index as Material's
        plugins[name] = {"provider": "lunr", "lunr": plugins[name]}
    changed = {"INHERIT": file.name, "theme": {"name": THEME}, "plugins": [{name: plugins[name]} for name in plugins]}
    # Its paths are relative to its folder, so it has to be in the same one.
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.stem}-", suffix=".yml") as stream:
        yaml.safe_dump(changed, stream)
        stream.flush()
        yield Path(stream.name)
