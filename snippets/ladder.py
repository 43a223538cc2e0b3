"""The outcomes of old idioms on each release of JAX: recorded for a sample of releases, run for the installed one.

``python snippets/ladder.py`` runs everything on the installed JAX, prints what differs from the record, and writes the
release's column into ladder.json. It works with JAX 0.4.13 or newer, and Python 3.11 or newer. Releases
before 0.6 need absl-py and flatbuffers for `jax.export`:

    uv run --no-project --python 3.12 --with jax==0.11.2 snippets/ladder.py --released 2026-09-18

Every idiom runs in a process of its own, forked before JAX has started a backend, on the CPU, with JAX's default
settings, so nothing that one imports, sets or warns about reaches the next. The replacements of a module's idioms have
to work in one program anyway, so they share a process.
"""

import argparse
import ast
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).parent
RECORD = HERE / "ladder.json"
LIMIT = 60  # seconds for one piece of code
SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",  # what several pieces of code compile is compiled once
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
PARTS = ("old", "new", "behaviors")
PRELUDE = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"

# What a message says when it names a way out. Guesses of Python's own ("Did you mean") are not JAX's to give.
HINT = re.compile(r"\b(use|using|instead|replace\w*|in favor of|to recover|should remove)\b", re.IGNORECASE)
NO_HINT = re.compile(r"This typically means that a jit-wrapped function")  # about something else


@dataclass(frozen=True)
class Idiom:
    """Something that old material says.

    `write` is what `upgrade_jax` says in place of `new`, where that is no pattern. The last three are releases: the
    one that deprecated the old code, the one on which it stopped working, and the one that brought what the new
    code uses. They are from JAX's change log, or where it is silent from the record of public names
    (public_names.py), and empty where both are.
    """

    name: str
    module: str
    old: str
    new: str = ""
    note: str = ""
    write: str = ""
    deprecated: str = ""
    removed: str = ""
    added: str = ""

    @property
    def anchor(self) -> str:
        """Return what a link to its row ends with."""
        return "old-" + re.sub(r"[^\w.]+", "-", self.name).strip("-")


@dataclass(frozen=True)
class Behavior:
    """Code that runs on every release, and ends with an expression whose value is a text: what it shows."""

    name: str
    kind: str
    code: str
    note: str = ""


@dataclass(frozen=True)
class Seen:
    """The end of a piece of code: with an error's message, its first warning, or the value if that is a text."""

    end: str  # "runs", "warns" or "fails"
    text: str = ""

    @property
    def verdict(self) -> str:
        """The end, where "hints" is a failure whose message names a way out."""
        helps = self.end == "fails" and HINT.search(self.text) and not NO_HINT.search(self.text)
        return "hints" if helps else self.end


@dataclass(frozen=True)
class Column:
    """The outcomes on one release, by the names of idioms and behaviors."""

    old: dict[str, Seen]
    new: dict[str, Seen]  # of idioms for which there is something to write
    behaviors: dict[str, Seen]


def idioms() -> list[Idiom]:
    """All idioms, grouped by module."""
    tables = tomllib.loads((HERE / "idioms.toml").read_text(encoding="utf-8"))
    return [
        Idiom(**{**entry, "module": module, "old": entry["old"].strip("\n"), "new": entry.get("new", "").strip("\n")})
        for module, entries in tables.items()
        for entry in entries
    ]


def behaviors() -> list[Behavior]:
    """All behaviors, grouped by kind."""
    tables = tomllib.loads((HERE / "behaviors.toml").read_text(encoding="utf-8"))
    return [
        Behavior(entry["name"], kind, entry["code"].strip("\n"), entry.get("note", ""))
        for kind, entries in tables.items()
        for entry in entries
    ]


# --- the record -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Release:
    """A release whose column is recorded."""

    name: str
    released: str  # a date, as is the next
    recorded: str
    python: str


def number(release: str) -> tuple[int, ...]:
    """Return what releases are ordered by."""
    return tuple(map(int, re.findall(r"\d+", release)))


class Record:
    """The recorded columns, oldest release first."""

    def __init__(self) -> None:
        kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"releases": {}}
        self.releases = [Release(name, **facts) for name, facts in kept["releases"].items()]
        self.columns = {release.name: Column({}, {}, {}) for release in self.releases}
        for part in PARTS:
            for name, changes in kept.get(part, {}).items():
                seen = None
                for release, column in self.columns.items():
                    seen = Seen(*changes[release]) if release in changes else seen
                    if seen:
                        getattr(column, part)[name] = seen

    def put(self, release: Release, column: Column) -> None:
        """Add a column, or replace it."""
        columns = {**self.columns, release.name: column}
        releases = {**{other.name: other for other in self.releases}, release.name: release}
        self.releases = sorted(releases.values(), key=lambda release: number(release.name))
        self.columns = {release.name: columns[release.name] for release in self.releases}

    def save(self) -> None:
        """Write the file: an idiom a line, with the releases in which something changed."""
        parts: dict[str, dict[str, object]] = {
            "releases": {
                r.name: {"released": r.released, "recorded": r.recorded, "python": r.python} for r in self.releases
            }
        }
        for part in PARTS:
            names = [entry.name for entry in (behaviors() if part == "behaviors" else idioms())]
            parts[part] = {name: changes for name in names if (changes := self._changes(part, name))}
        text = ",\n".join(
            f"  {json.dumps(part)}: {{\n"
            + ",\n".join(
                f"    {json.dumps(n)}: {json.dumps(entry, ensure_ascii=False)}" for n, entry in entries.items()
            )
            + "\n  }"
            for part, entries in parts.items()
        )
        RECORD.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")

    def _changes(self, part: str, name: str) -> dict[str, list[str]]:
        found = {}
        before = None
        for release, column in self.columns.items():
            seen = getattr(column, part).get(name)
            if seen and seen != before:
                found[release] = [seen.end, seen.text]
            before = seen or before
        return found


def differences(stored: Column, live: Column) -> list[str]:
    """Return where a recorded column and a run, of all or some, differ: in idioms' verdicts and behaviors' values."""
    found = []
    for part in PARTS:
        recorded, now = getattr(stored, part), getattr(live, part)
        for name, seen in now.items():
            before, after = _identity(part, recorded.get(name)), _identity(part, seen)
            if before != after:
                found.append(f"{name} ({part}): recorded {before}, now {after}")
    return found


def _identity(part: str, seen: Seen | None) -> str:
    return "nothing" if seen is None else seen.text if part == "behaviors" else seen.verdict


# --- running ----------------------------------------------------------------------------------------------------------


def live_column(parts: Iterable[str] = PARTS, modules: Iterable[str] = ()) -> Column:
    """Return what the installed JAX does: only of these parts and modules; no module means all."""
    chosen = [idiom for idiom in idioms() if not modules or idiom.module in modules]
    programs: dict[tuple[str, str], dict[str, str]] = {}  # by part and name of the program: codes by name
    for behavior in behaviors():
        programs.setdefault(("behaviors", behavior.kind), {})[behavior.name] = behavior.code
    for idiom in chosen:
        if idiom.new:
            programs.setdefault(("new", idiom.module), {})[idiom.name] = idiom.new
    for idiom in chosen:
        programs["old", idiom.name] = {idiom.name: idiom.old}
    column = Column({}, {}, {})
    programs = {key: codes for key, codes in programs.items() if key[0] in parts}
    ran = run([list(codes.values()) for codes in programs.values()])
    for ((part, _), codes), seen in zip(programs.items(), ran, strict=True):
        getattr(column, part).update(zip(codes, seen, strict=True))
    return column


def run(programs: list[list[str]]) -> list[list[Seen]]:
    """Run pieces of code on the installed JAX, each list in a process of its own, each piece with names of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "PYTHONWARN"))}
    with tempfile.TemporaryDirectory() as compiled:
        settings = {**SETTINGS, "JAX_COMPILATION_CACHE_DIR": compiled}
        done = subprocess.run(
            [sys.executable, __file__, "--run"],
            input=json.dumps(programs),
            env=kept | settings,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{Path(__file__).name} --run ended with {done.returncode}:\n{done.stderr}")
    return [[Seen(*seen) for seen in program] for program in json.loads(done.stdout)]


def _run_all(programs: list[list[str]]) -> list[list[Seen]]:
    """Run programs in children of this process, a few at a time."""
    waiting = list(enumerate(programs))[::-1]
    running: dict[int, tuple[int, int]] = {}
    found = {}
    while waiting or running:
        while waiting and len(running) < min(4, os.cpu_count() or 1):
            place, codes = waiting.pop()
            receive, send = os.pipe()
            pid = os.fork()
            if pid == 0:
                _be_child(codes, send)
            os.close(send)
            running[pid] = place, receive
        pid, status = os.wait()
        place, receive = running.pop(pid)
        with os.fdopen(receive, encoding="utf-8") as pipe:
            seen = [Seen(*json.loads(line)) for line in pipe]
        lost = Seen("fails", f"the process ended with {os.waitstatus_to_exitcode(status)}")
        found[place] = seen + [lost] * (len(programs[place]) - len(seen))
    return [found[place] for place in range(len(programs))]


def _be_child(codes: list[str], send: int) -> NoReturn:
    """Run pieces of code and send what came of each."""
    signal.alarm(LIMIT)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    try:
        for code in codes:
            seen = _see(code)
            os.write(send, json.dumps([seen.end, seen.text]).encode() + b"\n")
    finally:
        os._exit(0)


def _see(code: str) -> Seen:
    """Run a piece of code, as a script of its own would."""
    *body, last = ast.parse(code).body
    names: dict[str, object] = {"__name__": "__main__"}
    exec(PRELUDE, names)
    value = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if isinstance(last, ast.Expr):
                exec(compile(ast.Module(body, []), "<idiom>", "exec"), names)
                value = eval(compile(ast.Expression(last.value), "<idiom>", "eval"), names)
            else:
                exec(compile(code, "<idiom>", "exec"), names)
        except Exception as error:  # whatever it raises is the result
            return Seen("fails", _plain(f"{type(error).__name__}: {error}"))
    first = f"{caught[0].category.__name__}: {caught[0].message}" if caught else ""
    return Seen("warns" if caught else "runs", _plain(value if isinstance(value, str) else first))


def _plain(text: str) -> str:
    """A message on one line, without what differs from host to host or from one Python to the next."""
    text = re.sub(r"Traceback \(most recent call last\):.*\n(?=\w+: )", "… ", text, flags=re.DOTALL)
    text = re.sub(r"\.? Did you mean:? '[^']*'\??", "", text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r" ?\((?:unknown location|[^()]*[/\\][^()]*\.(?:py|so))\)", "", text)
    text = " ".join(text.split())
    return text if len(text) <= 320 else text[:319].rsplit(" ", 1)[0] + " …"


# --- the command line -------------------------------------------------------------------------------------------------


def main() -> None:
    """Record the installed JAX."""
    about = (__doc__ or "").replace("``", "")
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--released", default="", help="the day the release appeared, such as 2026-07-16")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)  # the programs on standard input
    given = parser.parse_args()
    if given.run:
        warnings.simplefilter("ignore")  # Python and JAX warn of forks
        import jax.numpy  # noqa: F401  (so that the children have it)

        with suppress(ImportError):  # which JAX loads when it first compiles: a fifth of what that costs a child
            import jaxlib.mlir.dialects.mhlo  # noqa: F401
        seen = _run_all(json.loads(sys.stdin.read()))
        print(json.dumps([[[each.end, each.text] for each in program] for program in seen]))
        return
    record, name = Record(), version("jax")
    column = live_column()
    if name in record.columns:
        print("\n".join(differences(record.columns[name], column)) or "as recorded")
    released = {release.name: release.released for release in record.releases}.get(name, "")
    today = date.today().isoformat()
    record.put(Release(name, given.released or released, today, platform.python_version()), column)
    record.save()
    print(f"jax {name} is recorded in {RECORD.name}")


if __name__ == "__main__":
    main()
