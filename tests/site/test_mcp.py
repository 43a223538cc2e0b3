"""Programs ask the built site over the Model Context Protocol; here by the client of its SDK, of a small site."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from course import search_files
from course.answers import Site
from course.mcp import explained, replaced
from tests.conftest import HANG

ROOT = Path(__file__).parents[2]
ENTRIES: list[dict[str, Any]] = [
    {"location": "speed/loops/", "title": "Loops", "text": "<p>About loops.</p>"},
    {
        "location": "speed/loops/#early-exit",
        "title": "How do I stop a loop early?",
        "text": "<p>Use <code>jax.lax.while_loop</code>.</p><pre><code>jax.lax.while_loop(f, g, 0)\n</code></pre>",
        "asked": ["break out of a loop"],
    },
    {
        "location": "speed/loops/#sharding",
        "title": "Loops over shards",
        "text": "<p>ShardingTypeError: got incompatible shardings for broadcasting.</p><p>Reshard one.</p>",
    },
    {
        "location": "lookup/errors/#jnp",
        "title": "Loops of names",
        "text": "<p>NameError: name 'jnp' is not defined</p><p>The float is in a list out of range of KeyError.</p>",
    },
    {"location": "speed/loops/#tree_map", "title": "tree_map", "text": "<p>A loop over leaves.</p>"},
    {"location": "lookup/errors/", "title": "Errors", "text": ""},
    {
        "location": "lookup/errors/#TracerBoolConversionError",
        "title": "TracerBoolConversionError",
        "text": "<p>Attempted boolean conversion of traced array with shape bool[].</p><p>Write <code>jnp.where</code>.</p>",
    },
    {"location": "lookup/then-and-now/", "title": "Then and now", "text": ""},
    {
        "location": "lookup/then-and-now/#old-jax.tree_map",
        "title": "<code>jax.tree_map</code>",
        "text": "<p>Removed in 0.6.0. Write:</p><pre><code>jax.tree.map(f, x)\n</code></pre>",
    },
    {
        "location": "lookup/then-and-now/#old-jax.experimental.maps.xmap",
        "title": "<code>jax.experimental.maps.xmap</code>",
        "text": "<p>Removed in 0.4.36. Write:</p><pre><code>jax.shard_map\n</code></pre>",
    },
    {
        "location": "lookup/then-and-now/#old-arr.device",
        "title": "<code>arr.device()</code>",
        "text": "<p>Removed in 0.4.27.</p><p>TypeError: 'jaxlib._jax.Device' object is not callable</p>",
    },
]
TRACEBACK = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 3, in <module>
    f(1.0)
jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with the scripts of this one, and few sections."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "course/theme/javascripts", site / "javascripts")
    (site / "search").mkdir()
    (site / "search/search_index.json").write_text(json.dumps({"docs": ENTRIES}))
    search_files.write(site / "search", ENTRIES)
    names = {
        "jax.gone": {"gone": "0.9.0", "says": "jax.gone was removed; use jax.come."},
        "jax.come": {"since": "0.9.0"},
    }
    (site / "names.json").write_text(json.dumps({"releases": ["0.8.0", "0.9.0"], "names": names}))
    (site / "index.html").write_text('<link rel="canonical" href="https://jax.example/">')
    return site


def ask(folder: Path, *calls: tuple[str, dict[str, str]]) -> list[str]:
    """Return the names of the tools, and then their answers."""

    async def call_all() -> list[str]:
        server = StdioServerParameters(command=sys.executable, args=["-m", "course.mcp", str(folder)], cwd=ROOT)
        async with Client(server, read_timeout_seconds=HANG) as client:
            tools = (await client.list_tools()).tools
            output = [" ".join(sorted(tool.name for tool in tools))]
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result
                output.append("".join(getattr(part, "text", "") for part in result.content))
            return output

    return asyncio.run(call_all())


def test_the_client_of_the_sdk_gets_answers(folder: Path) -> None:
    names, found, entry, row, unknown = ask(
        folder,
        ("search", {"query": "break out of a loop"}),
        ("explain_error", {"traceback": TRACEBACK}),
        ("replace", {"name": "jax.tree_map(f, x)"}),
        ("replace", {"name": "jax.numpy.sin"}),
    )
    assert names == "explain_error replace search"
    assert "- **How do I stop a loop early?** https://jax.example/speed/loops/#early-exit\n" in found
    assert entry.startswith("## TracerBoolConversionError\n\nAttempted boolean")
    assert "Write `jnp.where`." in entry and "https://jax.example/lookup/errors/#TracerBool" in entry
    assert "```text\njax.tree.map(f, x)\n```\n\nhttps://jax.example/lookup/then-and-now/#old-jax.tree_map" in row
    assert unknown.startswith("No row for jax.numpy.sin")


def test_a_name_without_a_section_has_its_history(folder: Path) -> None:
    site = Site(folder)
    history = "jax: since 0.8.0 or before, gone in 0.9.0. jax.gone was removed; use jax.come."
    place = "https://jax.example/lookup/names/?filter=jax.gone"
    assert replaced(site, "jax.gone(x)") == f"**jax.gone** {history}\n\n{place}"
    assert history in explained(site, "AttributeError: module 'jax' has no attribute 'gone'")


def test_a_message_that_a_row_shows_is_explained_by_it(folder: Path) -> None:
    found = explained(Site(folder), "TypeError: 'jaxlib.xla_extension.Device' object is not callable")
    assert found.startswith("## `arr.device()`\n\nRemoved in 0.4.27.")


@pytest.mark.parametrize(
    "code",
    [
        "jax.experimental.maps",
        "import jax.experimental.maps as maps",
        "from jax.experimental.maps import xmap",
        "y = jax.experimental.maps.xmap(f, in_axes)",
    ],
)
def test_modules_imports_and_calls_lead_to_the_rows_of_their_names(code: str, folder: Path) -> None:
    assert "#old-jax.experimental.maps.xmap" in replaced(Site(folder), code)


def test_a_name_without_its_module_leads_to_its_row(folder: Path) -> None:
    assert Site(folder).find("tree_map").hits[0].location == "speed/loops/#tree_map"  # another section is nearer
    assert "#old-jax.tree_map" in replaced(Site(folder), "tree_map(f, x)")


def test_each_name_of_an_import_is_answered(folder: Path) -> None:
    found = replaced(Site(folder), "from jax import (tree_map as tm,\n    vmap)")
    assert "#old-jax.tree_map" in found and "No row for jax.vmap" in found


def test_an_error_that_a_page_of_the_course_shows_is_explained_by_it(folder: Path) -> None:
    found = explained(Site(folder), "ShardingTypeError: got incompatible shardings for broadcasting")
    assert found.startswith("## Loops over shards\n\nShardingTypeError") and "Reshard one." in found


def test_text_that_is_no_error_is_answered_as_such(folder: Path) -> None:
    found = explained(Site(folder), "E stop a loop early")
    assert found.startswith("This is no error that has an entry here. The nearest sections are:\n\n- **")


@pytest.mark.parametrize("pasted", ["KeyError: 'loops'", "'float' object is not callable", "list index out of range"])
def test_a_message_of_python_about_any_code_has_no_entry(pasted: str, folder: Path) -> None:
    assert explained(Site(folder), pasted).startswith("This message has no entry here.")


def test_a_message_of_python_is_explained_where_it_is_shown(folder: Path) -> None:
    found = explained(Site(folder), "NameError: name 'jnp' is not defined. Did you mean: 'np'?")
    assert found.startswith("## Loops of names\n\nNameError: name 'jnp'")


def test_the_note_of_the_search_is_part_of_the_answer(folder: Path) -> None:
    site = Site(folder)
    assert "“football”" in site.find("football").note
    assert site.find("how do I stop a loop early").note == ""


def test_a_folder_without_a_site_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "course.mcp", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 2
    assert f"{tmp_path}: holds no built site; `make site` builds it" in done.stderr
