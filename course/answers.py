"""The search of the built site, from Python: its own script ranks, in an embedded JavaScript engine."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import quickjs

from livepages.exporters import as_markdown

_IMPORT = re.compile(r'^import (?P<what>[\w{}, ]+) from "(?P<module>[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |class )", re.MULTILINE)
_LIST = re.compile(r"^export \{ *(?P<names>[^}]*?) *\};$", re.MULTILINE)
# What the script asks of a browser: its own address, the index, and the record of names.
_BROWSER = """
const URL = class { constructor(place) { this.place = place; } };
const fetch = async ({ place }) => ({ json: async () => JSON.parse(place.endsWith("/names.json") ? NAMES : INDEX) });
"""
_ASK = """
globalThis.ask = (query) => {
  let found;
  site.find(query).then(
    ({ items, note }) => {
      const own = ([page, ...sections]) => (page.score || !sections.length ? [page, ...sections] : sections);
      const shown = items.flatMap(own);
      found = { note, sections: shown.map(({ terms, ...hit }) => hit) };
    },
    (error) => { found = { error: `${error}` }; },
  );
  return () => JSON.stringify(found);
};
"""


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
    """A built site. One thread has to ask it everything, the one that asked first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def entries(self) -> dict[str, dict[str, str]]:
        """The entries of the search index, by their places."""
        return {entry["location"]: entry for entry in json.loads(self._index)["docs"]}

    @cached_property
    def _index(self) -> str:
        return (self.folder / "search/search_index.json").read_text(encoding="utf-8")

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
        done = self._engine.get("ask")(query)
        while self._engine.execute_pending_job():
            pass
        found = json.loads(done())
        if "error" in found:
            raise RuntimeError(found["error"])
        hits = found["sections"]
        return Found(
            [Hit(hit["location"], _plain(hit["title"]), _plain(hit["text"]), hit["score"]) for hit in hits],
            found["note"],
        )

    @cached_property
    def _engine(self) -> quickjs.Context:
        engine = quickjs.Context()
        engine.set_max_stack_size(16 << 20)
        engine.set("INDEX", self._index)
        names = self.folder / "names.json"  # which a site of other pages has not
        engine.set("NAMES", names.read_text(encoding="utf-8") if names.exists() else "")
        engine.eval(f"{_BROWSER}const site = {self._function('find.js')};\n{_ASK}")
        return engine

    def _function(self, name: str) -> str:
        """A module of the site as an expression whose value holds what it exports, its imports first."""
        text = (self.folder / "javascripts" / name).read_text(encoding="utf-8")
        exported = re.findall(r"^export (?:const|function|class) (\w+)", text, re.MULTILINE)
        names = [f"{each}: {each}" for each in exported]
        if listed := _LIST.search(text):
            names += [": ".join(reversed(each.split(" as "))) for each in listed["names"].split(", ")]
        imports = ""
        for found in _IMPORT.finditer(text):
            what = found["what"] if "{" in found["what"] else f"{{ default: {found['what']} }}"
            imports += f"const {what} = {self._function(found['module'].removeprefix('./'))};\n"
        body = _EXPORT.sub("", _LIST.sub("", _IMPORT.sub("", text))).replace("import.meta.url", '""')
        return f"(() => {{\n{imports}{body}\nreturn {{ {', '.join(names)} }};\n}})()"


def _plain(html: str) -> str:
    return " ".join(as_markdown(html).split())
