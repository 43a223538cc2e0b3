"""The options of a block whose fence markdown-exec executes: its own, and those that only this library knows."""

from collections.abc import Mapping
from typing import Any

from livepages.source.options import TABLE, Options, read_option
from livepages.source.suggestions import closest


def block_options(given: Mapping[str, Any]) -> tuple[Options, list[str]]:
    """Return the options of a block by those of markdown-exec, among which ours are extra ones.

    Returns:
        the options, and a message for each of ours that is left out.
    """
    values: dict[str, Any] = {
        name: given[name] for name in ("source", "result", "html", "session", "width") if given[name]
    }
    values |= {"workdir": given["workdir"] or "", "isolated": not given["session"]}
    values = {"source": "none", "result": "markdown", **values}
    texts = {name: given["extra"][name] for name in sorted(own_options(given))}
    texts |= {"source": given["source"]} if given["source"] not in ("", "console") else {}
    faults: list[str] = []
    for name, text in texts.items():
        try:
            values[name] = read_option(name, text)
        except ValueError as error:
            faults.append(str(error))
    for name in sorted(given["extra"].keys() - TABLE.keys()):  # any other may be for another program
        if meant := closest(name, TABLE, 0.8):
            faults.append(f"unknown option {name!r}{meant}")
    return Options(**values), faults


def own_options(given: Mapping[str, Any]) -> set[str]:
    """Return the names of the extra options that are ours and mean nothing to markdown-exec or Pygments."""
    return {name for name in given["extra"] if name in TABLE and not TABLE[name].markdown_exec}
