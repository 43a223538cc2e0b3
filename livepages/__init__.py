"""Executable documentation: a page is a program, run in a fresh process, shown and tested as one."""

from typing import TYPE_CHECKING

__all__ = [
    "Block",
    "BlockResult",
    "Engine",
    "Failure",
    "Outcome",
    "Page",
    "PageError",
    "Project",
    "ProjectError",
    "Records",
    "Run",
    "find_project",
    "read_page",
]

if TYPE_CHECKING:
    from livepages.execution import BlockResult, Engine, Failure, Outcome, Run
    from livepages.records import Records
    from livepages.source import Block, Page, PageError, Project, ProjectError, find_project, read_page
else:

    def __getattr__(name: str) -> object:
        """A public name, imported on first access, because a page's process imports this package and needs none."""
        if name in __all__:
            from livepages import execution, records, source

            for package in (source, execution, records):
                if name in package.__all__:
                    return getattr(package, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
