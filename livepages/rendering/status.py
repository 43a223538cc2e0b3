"""The status of all pages, from the records of all hosts: the status page, the badge.

A page shows the status of all pages where it says ``<!-- live: status -->``.
"""

import html
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from posixpath import relpath

from livepages.execution import count
from livepages.records import FAILED, NOT_RUN, Comparison, Host, PageBlock, RecordedOutcome, Records, compare
from livepages.source import Block, Page, Project

STATUS = "<!-- live: status -->"
SLOWEST = 10


def lines(
    here: Page,
    text: Sequence[str],
    pages: Sequence[Page],
    records: Records,
    built: str,
    anchor: Callable[[Page, Block], str],
) -> list[str]:
    """A page's lines, with the status of all pages where the page wants it.

    `built` names the commit that the site is built from, and `anchor` returns the fragment of a link to a block.
    """
    made = [built, "", *_Status(here, [page for page in pages if page.program], records, anchor).lines()]
    return [new for line in text for new in (made if line == STATUS else [line])]


class _Status:
    def __init__(
        self, here: Page, pages: Sequence[Page], records: Records, anchor: Callable[[Page, Block], str]
    ) -> None:
        self._here, self._pages, self._anchor = here, pages, anchor
        self._hosts = records.hosts
        self._seen = {page.path: records.seen(page) for page in pages}
        self._others = [compare(pages, (self._hosts[0], records), (host, records)) for host in self._hosts[1:]]

    def lines(self) -> list[str]:
        """The sections of the page."""
        if not self._hosts:
            return ["No host has been recorded yet."]
        found = ["## Recorded hosts", "", *self._host_table(), "", "## Pages", "", *self._page_table(), ""]
        for other in self._others:
            found += self._differences(other)
        return [*found, "## Slowest blocks", "", *self._slowest(), ""]

    def _host_table(self) -> list[str]:
        rows: dict[str, list[str]] = defaultdict(list)
        total = sum(len(page.cases) for page in self._pages)
        for host, other in zip(self._hosts, [None, *self._others], strict=True):
            entries = [seen.entry for place in self._places() for seen in self._at(*place) if seen.host == host]
            rows["device"].append(host.device if host.count == 1 else f"{host.count} × {host.device}")
            rows["processor"].append(host.processor)
            rows["system"].append("; ".join(filter(None, [host.computer, host.driver])))
            rows[", ".join(self._hosts[0].versions) or "runtime"].append(", ".join(host.versions.values()))
            rows["Python"].append(host.python)
            rows["recorded on"].append(host.day)
            rows["commit"].append(f"`{host.commit}`" if host.commit else "")
            rows["blocks with an up-to-date record"].append(f"{sum(e.good for e in entries)} of {total}")
            rows["blocks that did not run"].append(f"{sum(e.outcome == NOT_RUN for e in entries)}")
            rows["blocks whose output differs"].append(f"{len(other.differing)}" if other else "")
        return self._table("host", rows)

    def _page_table(self) -> list[str]:
        cells = {self._link(page): [self._cell(page, host) for host in self._hosts] for page in self._pages}
        return self._table("page", cells)

    def _table(self, corner: str, rows: Mapping[str, Sequence[str]]) -> list[str]:
        """Return a table with a column for each host."""
        names = " | ".join(host.name for host in self._hosts)
        head = [f"| {corner} | {names} |", "|---" * (len(self._hosts) + 1) + "|"]
        return head + [f"| {what} | {' | '.join(cells)} |" for what, cells in rows.items()]

    def _cell(self, page: Page, host: Host) -> str:
        seen = [one for block in page.cases for one in self._at(page, block) if one.host == host]
        good = sum(one.entry.good for one in seen)
        # By color: everything ran, something has changed since, something failed.
        state = "failed" if any(one.entry.outcome == FAILED for one in seen) else "outdated"
        state = "good" if good == len(page.cases) else state
        words = [f'<span class="live-{state}">{good} of {len(page.cases)}</span>']
        if failed := sum(one.entry.outcome == FAILED for one in seen):
            words.append(f"{failed} failed")
        other = next((other for other in self._others if other.new == host), None)
        if other and (differing := sum(place[0] == page for place, _ in other.differing)):
            words.append(f"{differing} differ" + ("s" if differing == 1 else ""))
        if seen and seen[0].device not in (host.device, f"{host.count} × {host.device}"):
            words.append(f"on {seen[0].device}")
        return ", ".join(words)

    def _differences(self, other: Comparison) -> list[str]:
        if not other.differing:
            return []
        title = f"Differences on {other.new.name}"
        reference = f"Blocks whose output on {other.new.label} differs from that on {other.old.label}, by what differs."
        found = [f"## {title}", "", reference, ""]
        for cause, places in other.causes.items():
            links = ", ".join(self._link(page, block) for (page, block), _ in places)
            found.append(f"- {html.escape(cause)}: {links}")
        return [*found, ""]

    def _slowest(self) -> list[str]:
        def seconds(place: PageBlock, host: Host) -> float:
            return next((seen.entry.seconds for seen in self._at(*place) if seen.host == host), 0.0)

        slowest = sorted(self._places(), key=lambda place: -seconds(place, self._hosts[0]))[:SLOWEST]
        cells = {self._link(*place): [f"{seconds(place, host):.1f}" for host in self._hosts] for place in slowest}
        return self._table("seconds", cells)

    def _places(self) -> list[PageBlock]:
        return [(page, block) for page in self._pages for block in page.cases]

    def _at(self, page: Page, block: Block) -> Sequence[RecordedOutcome]:
        return self._seen[page.path](block)

    def _link(self, page: Page, block: Block | None = None) -> str:
        target = relpath(page.path.as_posix(), self._here.path.parent.as_posix())
        if block is None:
            return f"[{page.title}]({target})"
        return f"[{page.path.stem}:{block.where}]({target}#{self._anchor(page, block)})"


def badge(project: Project, pages: Sequence[Page]) -> str:
    """Return a badge as SVG: how many blocks have an up-to-date record on every host."""
    records = Records(project)
    outdated = records.outdated(pages)
    total = sum(len(page.cases) for page in pages)
    worst = max((len(blocks) for blocks in outdated.values()), default=total)
    devices, releases = ({host.device for host in records.hosts}, {host.release for host in records.hosts})
    left, right = "blocks checked", f"{total - worst} of {total}"
    if records.hosts:
        device = count(len(devices), "device") if len(devices) > 1 else records.hosts[0].device
        right += f" on {device}, {count(len(releases), 'version')}"
    color = "#2e7d32" if not worst else "#b26a00"
    return _SVG.format(
        left=left, right=right, color=color, middle=7 * len(left) + 10, width=7 * (len(left) + len(right)) + 20
    )


_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{left}: {right}">
<rect width="{width}" height="20" rx="3" fill="#444"/>
<path d="M{middle} 0H{width}v20H{middle}z" fill="{color}"/>
<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">
<text x="6" y="14">{left}</text>
<text x="{middle}" dx="6" y="14">{right}</text>
</g>
</svg>
"""
