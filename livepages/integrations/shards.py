"""Parts of the pages, for computers that share them: every page is in exactly one part, the same on each computer."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from livepages.records import Records
from livepages.source import Page, ProjectError

START = 0.1  # seconds that any page takes, as its process has to start
BLOCK = 0.5  # seconds that a block is taken to need on a page that has no record


@dataclass(frozen=True)
class Shard:
    """Part `index`, counted from 1, of `count` parts."""

    index: int
    count: int

    def of(self, seconds: Mapping[Path, float]) -> set[Path]:
        """Return the pages of this part, by the seconds that each takes; the parts take about equally long.

        Raises:
            ProjectError: there are fewer pages than parts.
        """
        if len(seconds) < self.count:
            raise ProjectError(
                f"--shard {self.index}/{self.count}: COUNT may be {len(seconds)} at most, the number of pages"
            )
        parts: list[set[Path]] = [set() for _ in range(self.count)]
        sums = [0.0] * self.count
        for path in sorted(seconds, key=lambda path: (-seconds[path], path)):
            least = sums.index(min(sums))
            parts[least].add(path)
            sums[least] += seconds[path]
        return parts[self.index - 1]


def shard(text: str) -> Shard:
    """The part that an option names, such as ``2/8``.

    Raises:
        argparse.ArgumentTypeError: it names none.
    """
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not INDEX/COUNT with an INDEX from 1 to COUNT, such as 2/8")
    return Shard(int(found[1]), int(found[2]))


def seconds(page: Page, records: Records) -> float:
    """Return how many seconds a page takes, by the first host that has a record of it."""
    took = (sum(entry.seconds for entry in record.entries.values()) for record in records.of(page))
    return START + next(took, BLOCK * len(page.program))
