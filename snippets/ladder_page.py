"""The ladder as readers see it: a row per idiom, with what to write, what it does today, and what it did before."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import groupby

from ladder import Behavior, Column, Idiom, Record, Seen, behaviors, differences, idioms, number

WORDS = {
    "runs": "runs",
    "warns": "runs, with a warning",
    "hints": "fails, and names a way out",
    "fails": "fails",
    "absent": "did not exist yet",
}
CELLS = {"runs": "▇", "warns": "▅", "hints": "▃", "fails": "▁", "absent": "·"}  # a release in a row's strip

WAY_OUT = """\
If the record is wrong, run `python snippets/ladder.py` and commit what it changes in ladder.json.
If what to write fails, correct it in idioms.toml."""


@dataclass(frozen=True)
class End:
    """The releases that saw an idiom's end; an empty text where there was none."""

    name: str
    warned: str  # the first one that warned, of those before it failed
    gone: str  # the first one on which it failed
    hinted: str  # the last one whose message names the replacement


class Ladder:
    """The recorded releases, and after them the installed one.

    Args:
        record: what is recorded.
        live: what the installed JAX does.
        release: its version.

    Raises:
        AssertionError: the installed release is recorded and does something different, or what to write in an idiom's
            place fails.
    """

    def __init__(self, record: Record, live: Column, release: str) -> None:
        self.live, self.release, self.stored = live, release, release in record.columns
        if self.stored:
            wrong = differences(record.columns[release], live)
            wrong += [f"{name}: what to write fails: {s.text}" for name, s in live.new.items() if s.end == "fails"]
            assert not wrong, "\n".join([f"jax {release} differs from its record:", *wrong, WAY_OUT])
        self.columns = dict(sorted({**record.columns, release: live}.items(), key=lambda item: number(item[0])))
        self.releases = list(self.columns)

    def verdicts(self, name: str) -> list[str]:
        """Return what an idiom did on each release that knows of it: "absent" before the first that ran it."""
        found = [column.old[name].verdict for column in self.columns.values() if name in column.old]
        ran = [n for n, verdict in enumerate(found) if verdict in ("runs", "warns")]
        return ["absent"] * ran[0] + found[ran[0] :] if ran else found

    def spans(self, name: str) -> list[tuple[str, str, str, str]]:
        """Consecutive releases in which an idiom did the same: the verdict, the first, the last, and the message."""
        found = []
        rows = zip(self.verdicts(name), self.columns.items())
        for verdict, group in groupby(rows, key=lambda row: row[0]):
            releases = [(release, column.old[name].text) for _, (release, column) in group]
            found.append((verdict, releases[0][0], releases[-1][0], releases[-1][1]))
        return found

    def fate(self, name: str) -> str:
        """An idiom's life in words that claim no more than the sampled releases show."""
        spans = [span for span in self.spans(name) if span[0] != "absent"]
        lives = [(alive, list(group)) for alive, group in groupby(spans, key=lambda span: span[0] in ("runs", "warns"))]
        if len(lives) == 1 and not lives[0][0]:
            return f"Fails on every sampled release, from {self.releases[0]} on"
        parts = []
        for n, (alive, group) in enumerate(lives):
            first, last, newest = group[0][1], group[-1][2], group[-1][2] == self.releases[-1]
            if not alive:
                parts.append(f"gone by {first}")
            elif n:
                parts.append(f"back by {first}")
            elif newest:
                since = "" if group[-1][1] == self.releases[0] else f" since {group[-1][1]} or earlier"
                parts.append("runs" if group[-1][0] == "runs" else f"runs, with a warning{since}")
            else:
                parts.append(f"{'' if first == self.releases[0] else f'first seen in {first}, '}last seen in {last}")
        return ", ".join(parts).capitalize()

    def filter(self) -> str:
        """Return where a script puts the filter, as HTML: what it needs to know is in the rows and here."""
        return f'<div data-live-filter="Name or message" data-releases="{" ".join(self.releases)}"></div>'

    def legend(self) -> str:
        """Return what the cells under a name mean, as HTML."""
        cells = "; ".join(f"{CELLS[verdict]} {words}" for verdict, words in WORDS.items())
        return f"<p>Below a name, for each release: {cells}.</p>"

    def rows(self, module: str) -> str:
        """The rows of a module's idioms, as HTML."""
        return "\n".join(self._row(idiom) for idiom in idioms() if idiom.module == module)

    def _row(self, idiom: Idiom) -> str:
        # A page of all rows has few bytes to spare: a style sheet shows the cells, and a script adds the link to a row.
        says = _outcome(self.live.old[idiom.name])
        cells = "".join(CELLS[verdict] for verdict in self.verdicts(idiom.name))
        parts = [
            f'<div class="live-then"><h3 id="{idiom.anchor}" data-seen="{cells}"><code>{_text(idiom.name)}</code></h3>',
            f"<p>{self.boundaries(idiom)}.{_note(idiom)}{self._write(idiom)}</p>",
            f"<div>{self._new(idiom)}",
            f"<p>{says}</p>"
            if _shows_all(idiom)
            else f"<details><summary>{says}</summary><pre><code>{_text(idiom.old)}</code></pre></details>",
            "</div></div>",
        ]
        return "".join(parts)

    def boundaries(self, idiom: Idiom) -> str:
        """The end of an idiom: by the release that is known to have done it, else between which sampled releases."""
        removed = f"{'removed' if _is_name(idiom.name) else 'stopped working'} in {idiom.removed}"
        warned = f"deprecated in {idiom.deprecated}"
        if idiom.removed:
            text = f"{warned}, {removed}" if idiom.deprecated else removed
        elif idiom.deprecated:
            text = f"{warned}; {self.fate(idiom.name)[0].lower()}{self.fate(idiom.name)[1:]}"
        else:
            text = self.fate(idiom.name)
        return text[0].upper() + text[1:]

    def _write(self, idiom: Idiom) -> str:
        since = self.new_since(idiom.name)
        if idiom.added:
            return f" Write, on {idiom.added} or newer:"
        if since not in ("", self.releases[0]):
            return f" Write (first seen to run on {since}):"
        return " Write:" if idiom.new else ""

    def _new(self, idiom: Idiom) -> str:
        if not idiom.new:
            return ""
        seen = self.live.new[idiom.name]
        broken = f"<p>On this release that gives {_outcome(seen)}</p>" if seen.end == "fails" else ""
        return f"<pre><code>{_text(idiom.new)}</code></pre>{broken}"

    def new_since(self, name: str) -> str:
        """The oldest release from which on what to write in an idiom's place has not failed; empty if there is none."""
        since = ""
        for release, column in reversed(self.columns.items()):
            if column.new.get(name, Seen("fails")).end == "fails" and column.new:
                break
            since = release if column.new else since
        return since

    def helps(self, name: str) -> bool:
        """Return whether the message of an idiom that fails says what to write."""
        return self.live.old[name].verdict == "hints"

    def ends(self) -> list["End"]:
        """Return how the idioms ended that ran on some release and fail on the newest."""
        found = []
        for name in self.live.old:
            spans = [span for span in self.spans(name) if span[0] != "absent"]
            lives = [n for n, span in enumerate(spans) if span[0] in ("runs", "warns")]
            if not lives or lives[-1] == len(spans) - 1:
                continue
            verdict, first, *_ = spans[lives[-1]]
            after = spans[lives[-1] + 1 :]
            hinted = next((last for stage, _, last, _ in reversed(after) if stage == "hints"), "")
            found.append(End(name, first if verdict == "warns" else "", after[0][1], hinted))
        return found

    def changes(self, behavior: Behavior) -> list[tuple[str, str]]:
        """The releases from which on a behavior showed something else, and what; the first is the first that ran it."""
        found: list[tuple[str, str]] = []
        for release, column in self.columns.items():
            seen = column.behaviors.get(behavior.name)
            if not seen or (seen.end == "fails" and not found):
                continue
            text = seen.text.partition(":")[0] if seen.end == "fails" else seen.text
            if not found or found[-1][1] != text:
                found.append((release, text))
        return found

    def changed(self, kind: str) -> str:
        """A Markdown list of a kind's behaviors that changed: the first value, then each later one and its release."""
        lines = []
        for behavior in behaviors():
            (_, first), *later = self.changes(behavior)
            if behavior.kind == kind and later:
                since = (f"by {release} {_code(text)}" for release, text in later)
                lines.append(f"- {_code(behavior.name)}: {', '.join([_code(first), *since])}")
        return "\n".join(lines)


def _shows_all(idiom: Idiom) -> bool:
    """Return whether the old code is no more than the name: the name itself, or its import."""
    module, _, name = idiom.name.rpartition(".")
    return idiom.old in (idiom.name, f"import {idiom.name}", f"from {module} import {name}")


def _is_name(text: str) -> bool:
    """Return whether an idiom is a name, or the use of an argument by its name: something that can be removed."""
    return bool(re.fullmatch(r"[\w.]+(\((?!None)\w*\)|\((\w+=\w*,?)+\))?", text))


def _text(text: str) -> str:
    return escape(text, quote=False)


def _note(idiom: Idiom) -> str:
    return " " + re.sub(r"`(.*?)`", r"<code>\1</code>", _text(idiom.note)) if idiom.note else ""


def _outcome(seen: Seen) -> str:
    if seen.end == "runs":
        return "Runs"
    kind, _, message = seen.text.partition(": ")
    return f'<strong class="live-{seen.end}">{_text(kind)}</strong>: {_text(_short(message, 120))}'


def _code(text: str) -> str:
    return f"`{_short(text, 80)}`"


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def modules() -> Iterable[str]:
    """The modules that idioms are grouped by, in order."""
    return dict.fromkeys(idiom.module for idiom in idioms())
