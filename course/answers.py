"""The search of the built site, from Python: its own script ranks, in a process of Deno's that reads only the site."""

import json
import re
import subprocess
import weakref
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from deno import find_deno_bin

from livepages.exporters import as_markdown

_SCRIPT = Path(__file__).with_name("answers.js")
_ALONE = ["--no-config", "--no-lock", "--no-remote", "--no-npm", "--no-prompt", "--quiet"]


@dataclass(frozen=True)
class Hit:
    """A section that the search found: its place in the site, its title, and what is shown of its text."""

    location: str
    title: str
    excerpt: str
    score: float  # the higher, the better


@dataclass(frozen=True)
class Found:
    """The results of a query, with a page before its sections, and a note about them."""

    hits: list[Hit]
    note: str

    @property
    def best(self) -> Hit | None:
        """The section that ranks first."""
        return max(self.hits, key=lambda hit: hit.score, default=None)


class Site:
    """A built site. One thread at a time may ask it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def entries(self) -> dict[str, dict[str, str]]:
        """The entries of the search index, by their places."""
        index = (self.folder / "search/search_index.json").read_text(encoding="utf-8")
        return {entry["location"]: entry for entry in json.loads(index)["docs"]}

    @cached_property
    def url(self) -> str:
        """The address that the site was built for; empty if it was for none."""
        home = (self.folder / "index.html").read_text(encoding="utf-8")
        found = re.search(r'<link rel="canonical" href="([^"]*)"', home)
        return found[1] if found else ""

    def address(self, location: str) -> str:
        """The address of a section, or its place where no address is known."""
        return self.url + location

    def section(self, location: str) -> str:
        """A section as Markdown, with its title and its address."""
        entry = self.entries[location]
        return f"## {_plain(entry['title'])}\n\n{as_markdown(entry['text'])}\n\n{self.address(location)}\n"

    def find(self, query: str) -> Found:
        """Return the results of the site's search for a query."""
        assert self._engine.stdin and self._engine.stdout
        self._engine.stdin.write(f"{json.dumps(query)}\n")
        self._engine.stdin.flush()
        found = json.loads(self._engine.stdout.readline() or '{"error": "Deno ended, see its message above"}')
        if "error" in found:
            raise RuntimeError(found["error"])
        return Found(
            [Hit(hit["location"], _plain(hit["title"]), _plain(hit["text"]), hit["score"]) for hit in found["hits"]],
            found["note"],
        )

    @cached_property
    def _engine(self) -> subprocess.Popen[str]:
        folder = self.folder.resolve()
        allowed = f"--allow-read={folder}".replace(",", ",,")  # a comma separates folders
        engine = subprocess.Popen(
            [find_deno_bin(), "run", *_ALONE, allowed, _SCRIPT, (folder / "javascripts/find.js").as_uri()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        weakref.finalize(self, engine.communicate)
        return engine


def _plain(html: str) -> str:
    return " ".join(as_markdown(html).split())
