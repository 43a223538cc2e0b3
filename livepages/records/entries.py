"""The entry of a block in a record, and the text of the file. The source of this module goes to kernels, too."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from livepages.worker.text import stripped

RAN, RAISED, FAILED, NOT_RUN = "ran", "raised", "failed", "not run"


@dataclass(frozen=True)
class Entry:
    """The record of one block."""

    key: str
    code: str  # its first line, for people who read the file
    outcome: str  # how it ended: RAN, RAISED (as it must), FAILED or NOT_RUN
    seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)  # in the file, each is a value of its own
    figures: int = 0
    shown: str = ""  # the representation of its last expression as text
    stdout: str = ""
    stderr: str = ""
    error: str = ""  # the class and the message of what it raised; or the reason why it failed or did not run

    @property
    def text(self) -> str:
        """Everything that the block printed."""
        return "\n".join(part for part in (self.stdout, self.stderr, self.shown, self.error) if part)

    @property
    def good(self) -> bool:
        """Return whether the block ran, and did what its page expects."""
        return self.outcome in (RAN, RAISED)


def make_entry(code: str, seconds: float, **about: Any) -> Entry:
    """Return the entry of a block, with all fields as records have them.

    Args:
        code: of the block.
        seconds: that it took.
        about: the other fields, texts as they were printed.
    """
    line = next((line.strip() for line in code.splitlines() if line.strip()), "")
    texts = {name: stripped(about[name]) for name in ("shown", "stdout", "stderr", "error")}
    return Entry(code=line, seconds=float(f"{seconds:.2g}"), **about | texts)


def entry_data(entry: Entry) -> dict[str, Any]:
    """Return an entry for its file: without empty values, and with each count as a value of its own."""
    found: dict[str, Any] = {}
    for name, value in asdict(entry).items():
        found |= value if name == "counts" else {name: value}
    return {name: value for name, value in found.items() if value not in ("", 0) or name == "seconds"}


def dump(data: Mapping[str, Any]) -> str:
    """Return the text of a file: YAML, with text of several lines as such; JSON where nothing can write YAML."""
    try:
        import yaml
    except ImportError:  # in a reader's kernel
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    dumper: Any = type("Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})  # C is faster
    dumper.add_representer(
        str,
        lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None),
    )
    return str(yaml.dump(dict(data), Dumper=dumper, sort_keys=False, allow_unicode=True, width=1 << 20))
