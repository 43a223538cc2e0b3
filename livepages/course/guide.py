"""The guide, which adds a site's own to its pages; ``guide = "module:Class"`` in `[tool.livepages]` names it."""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

from livepages.course.navigation import Course
from livepages.execution import Failure
from livepages.source import Inventory, Page, Project, ProjectError

Stash = Callable[[str], str]  # takes HTML and returns a placeholder for it in Markdown


@dataclass(frozen=True)
class Guide:
    """The pages of a site, and its additions to them: none here, any in a class derived from this one."""

    course: Course
    pages: Mapping[Path, Page]
    inventory: Inventory

    def problems(self) -> list[Failure]:
        """Return a failure for everything that the guide cannot use."""
        return []

    def cache_key(self, page: Page) -> object:
        """Return the data of other pages that the page shows: two guides show the same on it if these are equal."""
        return None

    def lines(self, page: Page, lines: list[str], updated: str, stash: Stash) -> list[str]:
        """Return a page's lines with what the guide adds.

        Args:
            page: the page, whose `text` up to its first block is the beginning of `lines`.
            lines: what is shown of the page so far.
            updated: the day of its last change, in ISO form; empty if it is not known.
        """
        return lines

    def more_downloads(self, page: Page) -> str:
        """Return what follows the links to a page's script, notebook and Markdown at its end, as HTML."""
        return ""

    def tree(self, root: Element) -> None:
        """Change a page as an element tree, before its links are resolved."""

    def html(self, html: str) -> str:
        """Return a page's HTML with what the guide changes."""
        return html

    def files(self) -> dict[str, str]:
        """Return the texts of files that the site has besides its pages, by their names in it."""
        return {}


def find_guide(project: Project) -> type[Guide]:
    """Return the class that a project names.

    Raises:
        ProjectError: it cannot be imported, or is no guide.
    """
    if not project.guide:
        return Guide
    module, _, name = project.guide.partition(":")
    sys.path.insert(0, str(project.root))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _unusable(project, str(error)) from None
    finally:
        sys.path.remove(str(project.root))
    if not (isinstance(found, type) and issubclass(found, Guide)):
        raise _unusable(project, f"{name} is not derived from livepages.course.Guide")
    return found


def sources(guide: type[Guide]) -> list[bytes]:
    """Return the source of the modules beside a guide, which decides what it adds."""
    file = inspect.getsourcefile(guide)
    return [path.read_bytes() for path in sorted(Path(file).parent.glob("*.py"))] if file else []


def _unusable(project: Project, why: str) -> ProjectError:
    where = f'{project.root / "pyproject.toml"}: [tool.livepages] guide = "{project.guide}"'
    return ProjectError(f'{where}: {why}; write "module:Class", below {project.root}')
