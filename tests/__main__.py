"""Run every check, one after the other, whatever fails, and list what failed at the end.

    python -m tests         # what somebody wants to know who has changed something: `make test`
    python -m tests --all   # and the tests that are marked as slow, of what changes rarely: `make test-all`
    python -m tests --core  # only the part that depends on the versions of Python and JAX: `make test-core`

With `--all`, the tests that are marked as brief are left out: a slow test does the same with more inputs.
Each step uses what an earlier one has made: `pytest docs` keeps the run of every page, from which the site is built, and
with which scripts and notebooks are compared. A step of tests that has passed with the same files, packages and settings
is left out.
"""

import argparse
import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PASSED = ROOT / ".cache" / "passed"  # a file for each step that has passed, with the state in which it did
READ = ("CI", "LIVE_", "JAX_", "PYTEST_", "PYTHON", "XLA_")  # how the names begin of variables that tests may read
SITE = ("docs", "records", "snippets", "tests/site", "tests/browser")  # on which the tests of the engine do not rest
MOST = 15  # lines about a step that failed
WORKERS = (os.cpu_count() or 1) + 1  # one more than processors, as tests also wait for a browser that waits


@dataclass(frozen=True)
class Step:
    """A command that checks something."""

    name: str
    command: str
    once: bool = False  # leave it out where it has passed in the same state
    apart: tuple[str, ...] = ()  # files and folders that are no part of that state

    @property
    def state(self) -> str:
        """A digest of everything that the outcome depends on: the project's files, Python, its packages, the settings."""
        digest = hashlib.sha256(f"{self.command}\n{sys.version}\n{platform.platform()}\n".encode())
        made = re.compile(r"\.(?!ci$|github$)|(site|build)$|.*\.egg-info$")
        entries = [entry for entry in sorted(ROOT.iterdir()) if not made.match(entry.name)]
        for file in (file for entry in entries for file in sorted([entry, *entry.rglob("*")])):
            name = file.relative_to(ROOT)
            if file.is_file() and "__pycache__" not in file.parts and not any(map(name.is_relative_to, self.apart)):
                digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        packages = sorted(f"{package.name}=={package.version}" for package in distributions())
        settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(READ))
        digest.update("\n".join([*packages, *settings]).encode())
        return digest.hexdigest()

    @property
    def note(self) -> Path:
        """The file that holds the state in which it passed."""
        return PASSED / hashlib.sha256(self.command.encode()).hexdigest()[:16]


def _tests(name: str, paths: str, which: str, apart: tuple[str, ...] = ()) -> Step:
    command = f"pytest -rfE -n {WORKERS} --dist worksteal -m '{which}' {paths}"
    return Step(name, command, once=True, apart=apart)


_ENGINE = "tests --ignore tests/site --ignore tests/browser"
_SITE = "tests/site tests/browser"
CORE = [
    Step("types", "mypy"),
    Step("pages can be read, and are on record", "livepages check"),
    Step("every block of every page", "pytest -rfE docs"),
    _tests("the engine", _ENGINE, "not slow", SITE),
]
_FIRST = [
    Step("style of the code", "ruff check"),
    Step("layout of the code", "ruff format --check"),
    Step("style of the scripts", "deno lint"),
    Step("layout of the scripts", "deno fmt --check"),
    Step("spelling", "codespell"),
    *CORE,
]
STEPS = [*_FIRST, _tests("this site", _SITE, "not slow")]
ALL = [
    *_FIRST,
    _tests("the engine, slow tests", _ENGINE, "slow", SITE),
    _tests("this site, slow tests too", _SITE, "not brief"),
]


def run(command: str) -> tuple[int, list[str]]:
    """The exit status of a command and the lines that it prints, which are shown as they come."""
    name, *arguments = shlex.split(command)
    process = subprocess.Popen(
        [BIN / name, *arguments],
        cwd=ROOT,
        env={"COLUMNS": "160", **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    )
    assert process.stdout
    output = b""
    while part := process.stdout.read(1 << 12):
        sys.stdout.buffer.write(part)
        sys.stdout.flush()
        output += part
    return process.wait(), output.decode("utf-8", errors="replace").splitlines()


def causes(lines: list[str]) -> Iterable[str]:
    """The lines that say what failed: pytest's summary, else the last ones."""
    return [line for line in lines if line.startswith(("FAILED ", "ERROR "))] or lines[-5:]


def main(steps: list[Step]) -> int:
    """Carry out the steps, and return the number of those that failed."""
    failed: dict[str, list[str]] = {}
    began = time.monotonic()
    for number, step in enumerate(steps, 1):
        print(f"\n[{number}/{len(steps)}] {step.name}: {step.command}", flush=True)
        before = step.state if step.once else ""
        if step.once and step.note.exists() and step.note.read_text() == before:
            note = step.note.relative_to(ROOT)
            print(f"passed before, with the same files, packages and settings (delete {note} to repeat)")
            continue
        status, lines = run(step.command)
        if status:
            failed[f"{step.name}: {step.command}"] = list(causes(lines))
        elif step.once and step.state == before:  # nothing was edited in the meantime
            PASSED.mkdir(parents=True, exist_ok=True)
            step.note.write_text(before)
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    print(f"\n{len(steps) - len(failed)} of {len(steps)} steps passed in {minutes} min {seconds} s")
    for name, lines in failed.items():
        print(f"\nfailed: {name}")
        print("\n".join(f"    {line}" for line in lines[:MOST]))
        if len(lines) > MOST:
            print(f"    and {len(lines) - MOST} more, above")
    return len(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests", description=(__doc__ or "").partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.set_defaults(steps=STEPS)
    which.add_argument("--all", dest="steps", action="store_const", const=ALL, help="run the slow tests as well")
    which.add_argument("--core", dest="steps", action="store_const", const=CORE, help="run types, pages and engine")
    sys.exit(main(parser.parse_args().steps))
