"""Names that an upgrade from one release of JAX to another breaks, the most used first."""

import json
from pathlib import Path
from typing import Any

from ladder import Record, behaviors, idioms, number
from upgrade_script import full_name

USES: dict[str, Any] = json.loads(Path(__file__).with_name("old_uses.json").read_text(encoding="utf-8"))
RUN = ("runs", "warns")
SHOWN = 12


def broken(old: str, new: str) -> list[tuple[int, str]]:
    """Return the idioms that ran on one recorded release and fail on another, the most used first.

    Each has the number of counted projects that used it, and its name.
    """
    columns = Record().columns
    before, after = columns[old].old, columns[new].old
    found = [
        (_uses(idiom.name), idiom.name)
        for idiom in idioms()
        if before[idiom.name].end in RUN and after[idiom.name].end not in RUN
    ]
    return sorted(found, key=lambda row: (-row[0], row[1]))


def _uses(name: str) -> int:
    """Return how many of the projects used an idiom; of one with several keywords, the most used counts."""
    name, _, keywords = full_name(name).partition("(")
    each = [f"{name}({keyword})" for keyword in keywords.rstrip(")").split(",")] if keywords else [name]
    counted: dict[str, int] = USES["uses"]
    return max(counted.get(one, 0) for one in each)


def between(old: str, new: str) -> str:
    """Return what breaks, and whose results change, as lines of at most 80 columns."""
    if number(old) >= number(new):
        return f"{old} is not older than {new}."
    rows = broken(old, new)
    columns = Record().columns
    changed = [
        behavior.name
        for behavior in behaviors()
        if behavior.kind == "numbers" and columns[old].behaviors[behavior.name] != columns[new].behaviors[behavior.name]
    ]
    lines = [f"{len(rows)} old names fail on {new} that ran on {old}"]
    shown = [f"  {uses:2} of {len(USES['projects'])}  {name}" for uses, name in rows[:SHOWN]]
    lines += [*shown, f"  and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else shown
    lines += [f"{len(changed)} of the results on record changed", *(f"  {name}" for name in changed)]
    return "\n".join(line[:80] for line in lines)
