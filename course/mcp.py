"""Answer programs from the built site over the Model Context Protocol, on standard input and output.

    python -m course.mcp [SITE]    # the folder of the built site; by default: site

It opens no other file and no connection, and runs no code but the site's own search.
"""

import argparse
import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from course.answers import Hit, Site

SHOWN = 5
ROWS = "lookup/then-and-now/#old-"
EXPLAINED = ("lookup/", "answers/")  # where errors have entries; elsewhere, a section that names the error is one
_CLASS = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning)\b")
NAME = "lookup/names/?filter="  # a public name that no section is about, of any release
ABOUT = (
    "What is known here of JAX was run on the release that the site names. Look up an error before you explain it, and "
    "an old name before you write it."
)


def server(site: Site) -> MCPServer:
    """Return the server of a built site."""
    made = MCPServer(
        "live-jax", title="Live JAX", instructions=ABOUT, website_url=site.url or None, log_level="WARNING"
    )
    thread = ThreadPoolExecutor(1)
    thread.submit(site.find, "jax")  # the first query reads the index, which takes a second or two
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    async def answered(answer: Callable[[Site, str], str], given: str) -> str:
        return await asyncio.get_running_loop().run_in_executor(thread, answer, site, given)

    @made.tool(annotations=reads)
    async def search(query: str) -> str:
        """Find sections of the site that answer a question, in any words, or that are about a name."""
        return await answered(searched, query)

    @made.tool(annotations=reads)
    async def explain_error(traceback: str) -> str:
        """Say what an error of JAX means and how to repair it, by its message or by all of its traceback."""
        return await answered(explained, traceback)

    @made.tool(annotations=reads)
    async def replace(name: str) -> str:
        """Say what to write in place of an old name, module or import of JAX, and since when it is gone."""
        return await answered(replaced, name)

    return made


def searched(site: Site, query: str) -> str:
    """Return what the search of the site shows, as Markdown."""
    found = site.find(query)
    lines = [found.note] if found.note else []
    lines += [_line(site, hit) for hit in found.hits[:SHOWN]]
    return "\n\n".join(lines) or "The site has nothing on that."


def explained(site: Site, traceback: str) -> str:
    """Return the entry of the error, and what else is near; or that there is none."""
    found = site.find(traceback)
    entry = found.best
    if entry is not None and not found.note and not _explains(site, entry.location, traceback):
        return f"This is no error that has an entry here. The nearest sections are:\n\n{searched(site, traceback)}"
    if entry is None or found.note or entry.location not in site.entries:
        return searched(site, traceback)
    near = [_line(site, hit) for hit in found.hits[:SHOWN] if hit is not entry]
    return "\n".join([site.section(entry.location), "Near it:\n", *near])


def _explains(site: Site, location: str, traceback: str) -> bool:
    """Return whether a section is an entry of the error, and not only near what was pasted."""
    if location.startswith(EXPLAINED):
        return True
    return location in site.entries and any(name in site.section(location) for name in _CLASS.findall(traceback))


def replaced(site: Site, code: str) -> str:
    """Return the rows of an old name or its end, of a module's names, or of what is imported; or that there is none."""
    return "\n".join(_replaced(site, name) for name in _names(code))


def _names(code: str) -> list[str]:
    """Return the names that a statement imports, or the name of a call."""
    code = code.strip()
    if found := re.match(r"from\s+([\w.]+)\s+import\s+\(?([\w\s,]+)", code):
        return [f"{found[1]}.{each.split()[0]}" for each in found[2].split(",") if each.strip()]
    if found := re.match(r"import\s+([\w.]+)", code):
        return [found[1]]
    return [re.sub(r"^\w+\s*=\s*|\(.*", "", code, flags=re.DOTALL).strip()]


def _replaced(site: Site, name: str) -> str:
    row = site.find(name).best
    if row is not None and row.location.startswith(NAME):
        return f"**{row.title}** {row.excerpt}\n\n{site.address(row.location)}"
    if row is not None and _is_row(row.location, name):
        return site.section(row.location)
    rows = [place for place in site.entries if place.startswith(ROWS)]
    within = [place for place in rows if place.startswith(f"{ROWS}{name}.")]
    if found := within or [place for place in rows if place.lower().endswith(f".{name.lower()}")]:
        return "\n".join(site.section(place) for place in found[:SHOWN])
    every = site.address(ROWS.partition("#")[0])
    return f"No row for {name}: it is no old name that this site knows. All of them: {every}"


def _is_row(location: str, name: str) -> bool:
    """Return whether a location is the row of a name, or of a call by this name with certain arguments."""
    own = location.removeprefix(ROWS).lower()
    full = re.sub(r"^(jnp|np)\b", lambda found: {"jnp": "jax.numpy", "np": "numpy"}[found[0]], name).lower()
    written = {name.lower(), full}
    return location.startswith(ROWS) and (
        own in written or own.endswith(f".{full}") or any(own.startswith(f"{each}-") for each in written)
    )


def _line(site: Site, hit: Hit) -> str:
    return f"- **{hit.title}** {site.address(hit.location)}\n  {hit.excerpt}".rstrip()


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m course.mcp", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", nargs="?", type=Path, default=Path("site"), help="the built site (default: site)")
    folder: Path = parser.parse_args().site
    if not (folder / "search/search_index.json").is_file():
        parser.error(f"{folder}: holds no built site; `make site` builds it")
    server(Site(folder)).run("stdio")


if __name__ == "__main__":
    main()
