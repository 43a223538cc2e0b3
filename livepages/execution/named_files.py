"""The files of a project that code names, also if a library in another language or another program opens them.

A name is any text in the code that could be one: a whole string, or a word in it, with or without folders, or a pattern
such as ``data/*.csv``; in an f-string, what is computed may be anything. Where the code looks for it does not matter:
it means each file of the project whose path ends with it, and all in a folder of that name that lies beside the pages,
the modules or the settings.
"""

import ast
import contextlib
import hashlib
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from livepages.source import MARKDOWN, Project
from livepages.worker import content, signature, syntax_tree

_TICK = 2_000_000_000  # nanoseconds, which no file system's clock takes longer
_LONGEST = 1_000  # characters of a string that is taken for one name, besides its words
# Any text with an asterisk could be a pattern; one that names files ends with what they are.
_PATTERN = re.compile(r"[\w./*?\[\]-]*[*?][\w./*?\[\]-]*\.[A-Za-z]\w*|[\w.-]+/[\w./*?\[\]-]*[*?][\w./*?\[\]-]*")


@lru_cache(maxsize=1_000)
def names_in(code: str) -> frozenset[str]:
    """Return the texts in code that could name a file, or with a slash at their end a folder; none if it is no code."""
    found: set[str] = set()
    for text in {*filter(None, map(_text, ast.walk(syntax_tree(code))))}:
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


@dataclass
class Listing:
    """The names in a folder, without those of hidden folders."""

    signature: tuple[int, ...] | None
    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)  # to folders
    folders: list[str] = field(default_factory=list)


class NamedFiles:
    """The files of a project by their names, as they were when this was made."""

    def __init__(self, project: Project, listings: dict[Path, "Listing"]) -> None:
        """Look for the files.

        Args:
            project: the project.
            listings: those of folders that were listed earlier, to be passed again the next time.
        """
        self._root, self._listings = project.root, listings
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
        self._paths.sort()

    def _walk(self, records: Path) -> Iterator[tuple[str, list[str]]]:
        """Find the files that could be data: no pages, not hidden, and of neither a build nor an installation.

        Yields:
            The path of each folder, as seen from the root, and the names of such files in it.
        """
        left_out = {str(records), str(self._root / "site")}
        below = [""]
        for start in below:
            listing = self._list(self._root / start)
            if start and "pyvenv.cfg" in listing.files:
                continue
            folders, links = (
                [name for name in names if str(self._root / start / name) not in left_out]
                for names in (listing.folders, listing.links)
            )
            in_docs = start.startswith(self._docs)
            yield start, [name for name in (*listing.files, *links) if not (in_docs and name.endswith(MARKDOWN))]
            below += (f"{start}{name}/" for name in folders)

    def _list(self, folder: Path) -> "Listing":
        """List a folder, unless it was listed before and nothing was added or removed since."""
        now = signature(folder)
        listing = self._listings.get(folder)
        if listing is None or listing.signature != now:
            listing = Listing(now)
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if not (os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()):
                        listing.files.append(entry.name)
                    elif not entry.name.startswith((".", "__pycache__", "node_modules")):
                        (listing.links if entry.is_symlink() else listing.folders).append(entry.name)
            # Two changes within one tick of the system's clock have one change time.
            if now and time.time_ns() - now[-1] > _TICK:
                self._listings[folder] = listing
        return listing

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
