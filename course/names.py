"""``names.json``: what a reader's browser fetches when it first explains a name of JAX; and ``libraries.json``.

It is made of the record of the releases (``snippets/public_names.py``), the inventory, and the index of names. What it
is for JAX, ``libraries.json`` is for the other libraries of the inventory (``inventories/library_names.py``).
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any

from livepages.source import Inventory

ROOT = Path(__file__).parents[1]

sys.path.append(str(ROOT / "snippets"))  # where pages import it from, too

from ladder import idioms  # noqa: E402
from public_names import History, Record  # noqa: E402
from upgrade_script import full_name  # noqa: E402

LIBRARIES = ROOT / "inventories" / "library_names.json"
LIMIT = 240  # characters of a warning or error


def names_json(inventory: Inventory, explained: Mapping[str, tuple[str, str]]) -> str:
    """Return the text of the file; `explained` has where the site uses a name first: an address and a page's title."""
    record = Record()
    rows = {full_name(idiom.name): idiom.anchor for idiom in idioms()}
    names = {}
    for name, history in record.histories.items():
        facts = _facts(history, record.releases[0])
        if not facts:
            continue
        row = {"row": rows.get(name, "")} if facts["gone"] or facts["deprecated"] else {}
        names[name] = _known(facts | row | _places(name, inventory, explained))
    return _written({"releases": record.releases, "names": names})


def libraries_json(inventory: Inventory, explained: Mapping[str, tuple[str, str]]) -> str:
    """Return the text of the file of the other libraries; the arguments are those of `names_json`."""
    record = json.loads(LIBRARIES.read_text(encoding="utf-8"))
    names = {
        name: _known({"takes": takes, "does": does} | _places(name, inventory, explained))
        for name, (takes, does) in record["names"].items()
    }
    return _written({"versions": record["versions"], "names": names})


def _places(name: str, inventory: Inventory, explained: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return where a name's reference is, and which page of the site uses it first."""
    page, title = explained.get(name, ("", ""))
    return {"reference": inventory.addresses.get(name, ""), "page": page, "title": title}


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    return {fact: text for fact, text in facts.items() if text}


def _written(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def _facts(history: History, oldest: str) -> dict[str, Any]:
    """Return what the record says of a name; nothing if no release of the record has it."""
    if not history.since:
        return {}
    return {
        "earlier": history.spans[:-1],
        "since": "" if history.since == oldest else history.since,
        "changed": history.changed,
        "deprecated": history.deprecated,
        "gone": history.gone,
        "says": shorten(history.farewell, LIMIT, placeholder=" …") if history.deprecated or history.gone else "",
        "takes": history.takes,
        "does": history.sentence,
    }
