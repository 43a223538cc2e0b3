"""Two hosts compared: the blocks whose code is the same and whose output differs."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from livepages.execution import count
from livepages.records.differences import Difference, differ
from livepages.records.entries import NOT_RUN
from livepages.records.model import Host
from livepages.records.store import Records
from livepages.source import Block, Page, fenced

PageBlock = tuple[Page, Block]
MOST = 20  # lines that differ, of a block in a report that is to be short


@dataclass(frozen=True)
class Comparison:
    """The blocks of the same code that two hosts ran, and those of them whose output differs."""

    old: Host
    new: Host
    equal: int
    differing: tuple[tuple[PageBlock, Difference], ...]
    apart: int  # blocks that only one of the two ran

    @property
    def causes(self) -> dict[str, list[tuple[PageBlock, Difference]]]:
        """The differing blocks by what differs, the most frequent cause first."""
        found = defaultdict(list)
        for place, difference in self.differing:
            found[difference.cause].append((place, difference))
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))

    @property
    def summary(self) -> str:
        """The hosts, and how many blocks differ, in a line."""
        return (
            f"{self.old.name} ({self.old.label}) and {self.new.name} ({self.new.label}): "
            f"{count(len(self.differing) + self.equal, 'block')} ran on both, "
            f"{len(self.differing)} differ, {self.apart} ran on one alone"
        )

    @property
    def report(self) -> str:
        """All of it as text, cause by cause."""
        lines = [self.summary]
        for cause, found in self.causes.items():
            lines += ["", f"{cause}: {count(len(found), 'block')}"]
            for (page, block), difference in found:
                lines.append(f"  {page.name}:{block.where}{difference.size}")
                lines += ["    " + line for line in difference.diff.splitlines()]
        return "\n".join(lines)

    @property
    def markdown(self) -> str:
        """All of it as Markdown, page by page, with the lines that differ folded away."""
        parts = [self.summary]
        for page, found in groupby(self.differing, lambda one: one[0][0].name):
            differing = list(found)
            diff = "\n".join(_hunk(place, difference) for place, difference in differing)
            title = f"<summary><code>{page}</code>: {count(len(differing), 'block')}</summary>"
            parts.append(f"<details>{title}\n\n{fenced(diff, 'diff')}\n\n</details>")
        return "\n\n".join(parts)


def _hunk(place: PageBlock, difference: Difference) -> str:
    """A difference as a part of a diff, with where it is and what its cause is as the header."""
    page, block = place
    lines = difference.diff.splitlines()
    more = [f" and {count(len(lines) - MOST, 'more line')}"] if len(lines) > MOST else []
    return "\n".join([f"@@ {page.name}:{block.where}: {difference.cause}{difference.size} @@", *lines[:MOST], *more])


def compare(pages: Sequence[Page], old: tuple[Host, Records], new: tuple[Host, Records]) -> Comparison:
    """Two hosts compared, each given with the records that it is in."""
    equal, apart, differing = 0, 0, []
    records = new[1]
    for page in pages:
        known = [(host, records.seen(page)) for host, records in (old, new)]
        for block in page.cases:
            before, after = (next((one for one in seen(block) if one.host == host), None) for host, seen in known)
            ran = [seen for seen in (before, after) if seen and seen.entry.outcome != NOT_RUN]
            apart += len(ran) == 1
            if before is None or after is None or len(ran) < 2:
                continue
            options = block.options
            difference = differ(
                before.entry, after.entry, options.tolerance, options.volatile, records.runtime.noise_patterns
            )
            equal += difference is None
            differing += [((page, block), difference)] if difference else []
    return Comparison(old[0], new[0], equal, tuple(differing), apart)
