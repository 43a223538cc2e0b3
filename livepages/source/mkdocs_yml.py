"""A site's MkDocs configuration: what its file says or inherits, without the values that only MkDocs can read."""

import os.path
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml_env_tag import construct_env_tag


class ProjectError(Exception):
    """The settings of a project or of its site cannot be used; the message names the file."""


class _Loader(yaml.SafeLoader):
    """A loader that reads ``!ENV`` as MkDocs does, ``!relative`` as a path with a variable, other tags as nothing."""


def _relative(_: _Loader, node: yaml.Node) -> str:
    return str(node.value) or "$page_dir"


_Loader.add_constructor("!ENV", construct_env_tag)
_Loader.add_constructor("!relative", _relative)
_Loader.add_multi_constructor("", lambda loader, suffix, node: None)


def read_configuration(file: Path, children: tuple[Path, ...] = ()) -> dict[str, object]:
    """Return the configuration of a file, with the defaults of the file that it inherits from, as MkDocs does.

    Raises:
        ProjectError: one of them cannot be read.
    """
    if file in children:
        raise ProjectError(f"{file}: INHERIT leads back to this file")
    try:
        found = yaml.load(file.read_text(encoding="utf-8"), _Loader) or {}  # noqa: S506  (a SafeLoader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ProjectError(f"{file}: {error}") from None
    if not isinstance(found, dict):
        raise ProjectError(f"{file}: is not a mapping; write it as name: value")
    if "INHERIT" not in found:
        return found
    parent = Path(os.path.normpath(file.parent / str(found.pop("INHERIT"))))
    return _merged(read_configuration(parent, (*children, file)), found)


def named(entries: object) -> dict[str, Mapping[str, Any]]:
    """Return the plugins or extensions that a configuration lists, in order, each with its options."""
    found: dict[str, Mapping[str, Any]] = {}
    if isinstance(entries, Mapping):
        entries = [{name: options} for name, options in entries.items()]
    for entry in entries if isinstance(entries, list) else ():
        pairs = entry.items() if isinstance(entry, Mapping) else [(entry, {})]
        found |= {str(name): options if isinstance(options, Mapping) else {} for name, options in pairs}
    return found


def _merged(parent: dict[str, object], child: dict[str, object]) -> dict[str, object]:
    """Two mappings as one. What both have is the child's, except for mappings, which are merged themselves."""
    merged = parent | child
    for name, value in child.items():
        inherited = parent.get(name)
        if isinstance(value, dict) and isinstance(inherited, dict):
            merged[name] = _merged(inherited, value)
    return merged
