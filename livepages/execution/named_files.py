"""The files of a project that code names, also if a library in another language or another program opens them.

A name is any text in the code that could be one: a whole string, or a word in it, with or without folders, or a pattern
such as ``data/*.csv``; in an f-string, what is computed may be anything. Where the code looks for it does not matter:
it means each file of the project whose path ends with it, and all in a folder of that name that lies beside the pages,
the modules or the settings.
"""

import ast
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from livepages.source import MARKDOWN, Project
from livepages.worker import content, signature

_LONGEST = 1_000  # characters of a string that is taken for one name, besides its words
# Any text with an asterisk could be a pattern; one that names files ends with what they are.
_PATTERN = re.compile(r"[\w./*?\[\]-]*[*?][\w./*?\[\]-]*\.[A-Za-z]\w*|[\w.-]+/[\w./*?\[\]-]*[*?][\w./*?\[\]-]*")


@lru_cache(maxsize=1_000)
def names_in(code: str) -> frozenset[str]:
    """Return the texts in code that could name a file, or with a slash at their end a folder; none if it is no code."""
    try:
        texts = {*filter(None, map(_text, ast.walk(ast.parse(code))))}
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    found: set[str] = set()
    for text in texts:
        words = {word for word in re.findall(r"[^\s'\"<>|;&(),=:]+", text)}
        whole = {text} if len(text) <= _LONGEST and "\n" not in text else set()
        found |= words | whole
        # A word of a sentence is no folder.
        found |= {f"{name.rstrip('/')}/" for name in words | whole if "/" in name or name in whole}
    return frozenset(name for name in found if re.search(r"\w", name))


def _text(node: ast.AST) -> str:
    """Return the text of a string, with ``*`` in place of what is computed; empty for other nodes."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bytes(data)):
            return data.decode(errors="replace")
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) or "*" for part in parts)
    return ""


def _is_pattern(name: str) -> bool:
    return bool(_PATTERN.fullmatch(name))


class NamedFiles:
    """The files of a project by their names, as they were when this was made."""

    def __init__(self, project: Project) -> None:
        self._root = project.root
        self._beside = ["", *(f"{project.name(folder)}/" for folder in (project.docs, project.snippets))]
        self._docs = f"{project.name(project.docs)}/"
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._folders: set[str] = set()  # that hold any
        self._paths: list[str] = []
        for below, names in self._walk(project.records):
            for name in names:
                self._by_name[name].append(f"{below}{name}")
            self._paths += (f"{below}{name}" for name in names)
            if names:
                self._folders |= {below[: found.end()] for found in re.finditer("/", below)}

    def _walk(self, records: Path) -> Iterator[tuple[str, list[str]]]:
        """Find the files that could be data: no pages, not hidden, and of neither a build nor an installation.

        Yields:
            The path of each folder, as seen from the root, and the names of such files in it.
        """
        left_out = {str(records), str(self._root / "site")}
        for folder, folders, files in os.walk(self._root):
            folders[:] = [
                name
                for name in folders
                if not name.startswith((".", "__pycache__", "node_modules"))
                and not {os.path.join(folder, name)} & left_out
                and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
            ]
            below = "" if folder == str(self._root) else f"{os.path.relpath(folder, self._root)}/".replace(os.sep, "/")
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            in_docs = below.startswith(self._docs)
            yield below, [name for name in (*files, *links) if not (in_docs and name.endswith(MARKDOWN))]

    def find(self, name: str) -> list[str]:
        """Return the paths of the files that a name means, as seen from the root of the project, sorted."""
        name = re.sub(r"^(?:[.*]{0,2}/)+", "", name.removeprefix(str(self._root)))
        if name.endswith("/"):
            folders = tuple(found for beside in self._beside if (found := f"{beside}{name}") in self._folders)
            if not folders or self._docs.startswith(folders):
                return []
            return sorted(path for path in self._paths if path.startswith(folders))
        if re.search(r"[*?]", name):
            return [path for path in self._paths if fnmatchcase(f"/{path}", f"*/{name}")] if _is_pattern(name) else []
        same = self._by_name.get(name.rpartition("/")[2], [])
        return sorted(path for path in same if f"/{path}".endswith(f"/{name}"))

    def matter(self, name: str) -> bool:
        """Return whether a name means files, or may come to mean some."""
        return _is_pattern(name) or bool(self.find(name))

    def is_one(self, name: str) -> bool:
        """Return whether a name means one file and cannot come to mean another, but by a new one of the same name."""
        return len(self.find(name)) == 1 and not name.endswith("/") and not _is_pattern(name)

    def digest(self, name: str) -> str | None:
        """Return a digest of the files that a name means: their paths, what they hold and where they link to."""
        digest = hashlib.sha256()
        for path in (found := self.find(name)):
            file = self._root / path
            link = os.readlink(file) if file.is_symlink() else ""
            digest.update(f"{path}\0{link}\0{content(file)}\0".encode(errors="surrogateescape"))
        return digest.hexdigest() if found else None

    def signatures(self) -> dict[str, object]:
        """Return the signature of each file (see `signature`)."""
        return {path: signature(self._root / path) for path in self._paths}
