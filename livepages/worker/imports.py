"""Imports of the project's modules, from their source whatever bytecode there is; and those from ``__future__``."""

import ast
import os
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import CodeType
from typing import TYPE_CHECKING

from livepages.worker.names import syntax_tree
from livepages.worker.probes import is_local

if TYPE_CHECKING:
    from _typeshed.importlib import PathEntryFinderProtocol


class _SourceLoader(SourceFileLoader):
    """Compiles the source: bytecode is taken for that of any source of the same size and second."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def import_from_source(root: str) -> None:
    """Keep this process from reading and writing bytecode of modules below the root of the project."""
    finder = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (_SourceLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )

    def find_local(path: str) -> "PathEntryFinderProtocol":
        if not is_local(os.path.join(os.path.realpath(path), ""), root):
            raise ImportError
        return finder(path)

    sys.path_hooks.insert(0, find_local)
    for path in [*sys.path_importer_cache]:
        if is_local(os.path.join(path, ""), root):
            del sys.path_importer_cache[path]


def split_futures(code: str) -> tuple[list[str], str]:
    """Return the names that code imports from ``__future__``, sorted, and the code with these lines blank."""
    body = syntax_tree(code).body if "__future__" in code else []
    found = [node for node in body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    cut = {line for node in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = ["" if number in cut else line for number, line in enumerate(code.split("\n"), 1)]
    return sorted({alias.name for node in found for alias in node.names}), "\n".join(lines)
