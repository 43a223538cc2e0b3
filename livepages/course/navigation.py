"""The order in which a reader meets the pages, from the `nav` of ``mkdocs.yml``."""

from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml_env_tag import construct_env_tag

from livepages.source import Project, ProjectError


@dataclass(frozen=True)
class Part:
    """A titled group of pages; the home page stands in a part of its own, of no title."""

    title: str
    pages: tuple[Path, ...]


@dataclass(frozen=True)
class Course:
    """The site as ``mkdocs.yml`` describes it."""

    name: str
    description: str
    url: str  # where the site is published; empty where nobody has said
    repository: str  # owner/name, on whose branch `notebooks` the built notebooks are; empty where there is none
    parts: tuple[Part, ...]


class _Loader(yaml.SafeLoader):
    """Reads ``!ENV`` as MkDocs does, and any other tag as nothing."""


_Loader.add_constructor("!ENV", construct_env_tag)
_Loader.add_multi_constructor("", lambda loader, suffix, node: None)


def read_course(project: Project) -> Course:
    """The course of a project.

    Raises:
        ProjectError: ``mkdocs.yml`` is not YAML, or its `nav` has more than two levels.
    """
    file = project.root / "mkdocs.yml"
    if not file.exists():
        return Course("", "", "", "", ())
    try:
        site = yaml.load(file.read_text(encoding="utf-8"), _Loader)  # noqa: S506  (a SafeLoader)
    except (OSError, yaml.YAMLError) as error:
        raise ProjectError(f"{file}: {error}") from None
    parts = []
    for entry in site.get("nav") or []:
        title, pages = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        if isinstance(pages, str):
            title, pages = "", [pages]
        names = [next(iter(page.values())) if isinstance(page, dict) else page for page in pages]
        if not all(isinstance(name, str) for name in names):
            raise ProjectError(f"{file}: nav: {title} has more than one level of pages")
        parts.append(Part(title, tuple(project.docs / name for name in names)))
    name, description, url = (str(site.get(key) or "") for key in ("site_name", "site_description", "site_url"))
    return Course(name, description, url, str((site.get("extra") or {}).get("repository") or ""), tuple(parts))
