"""``names.json``: what a reader's browser fetches when it first has to tell of a name of JAX.

It is made of the record of the releases (``snippets/public_names.py``), the inventory, and the index of names.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from livepages.source import Inventory

sys.path.append(str(Path(__file__).parents[1] / "snippets"))  # where pages import it from, too

from public_names import History, Record  # noqa: E402

LIMIT = 240  # characters of a warning or error


def names_json(inventory: Inventory, explained: Mapping[str, tuple[str, str]]) -> str:
    """Return the text of the file.

    Args:
        inventory: the official reference.
        explained: the address in the site and the title of the page that uses a name first.
    """
    record = Record()
    names = {}
    for name, history in record.histories.items():
        facts = _facts(history, record.releases[0])
        if not facts:
            continue
        facts["reference"] = inventory.addresses.get(name, "")
        facts["page"], facts["title"] = explained.get(name, ("", ""))
        names[name] = {fact: said for fact, said in facts.items() if said}
    content = {"releases": record.releases, "names": names}
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
        "says": history.farewell[:LIMIT] if history.deprecated or history.gone else "",
        "takes": history.takes,
        "does": history.sentence,
    }
