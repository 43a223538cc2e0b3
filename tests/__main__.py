"""``python -m tests``: every check there is, one after the other, whatever fails; then what failed, in a few lines.

What one step runs, the next do not run again: `pytest docs` keeps the run of every page, from which the site is built,
and with which scripts and notebooks are compared. The last step, much the longest, is left out where it has passed with
the same files, packages and settings.
"""

import hashlib
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
WORKERS = (os.cpu_count() or 1) + 1  # one more than processors, as tests also wait for a browser that waits
STEPS = {
    "the style of the code": "ruff check",
    "the layout of the code": "ruff format --check",
    "types": "mypy",
    "pages can be read, and are on record": "livepages check",
    "every block of every page": "pytest -rfE docs",
    "the engine, the snippets, downloads, the built site": f"pytest -rfE -n {WORKERS} --dist worksteal tests",
}
LAST = list(STEPS)[-1]
PASSED = ROOT / ".cache" / "passed"  # holds the state in which the last step passed
READ = ("CI", "LIVE_", "JAX_", "PYTEST_", "PYTHON", "XLA_")  # how the names begin of variables that tests may read
MOST = 15  # lines about a step that failed


def run(command: str) -> tuple[int, list[str]]:
    """The exit status of a command and the lines that it prints, which are shown as they come."""
    name, *arguments = command.split()
    process = subprocess.Popen(
        [BIN / name, *arguments],
        cwd=ROOT,
        env={"COLUMNS": "160", **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    )
    assert process.stdout
    said = b""
    while part := process.stdout.read(1 << 12):
        sys.stdout.buffer.write(part)
        sys.stdout.flush()
        said += part
    return process.wait(), said.decode("utf-8", errors="replace").splitlines()


def state() -> str:
    """A digest of what the outcome of a step rests on: the project's files, Python, its packages, the settings."""
    found = hashlib.sha256()
    made = re.compile(r"\.(?!ci$|github$)|(site|build)$|.*\.egg-info$")
    entries = [entry for entry in sorted(ROOT.iterdir()) if not made.match(entry.name)]
    for file in (file for entry in entries for file in sorted([entry, *entry.rglob("*")])):
        if file.is_file() and "__pycache__" not in file.parts:
            found.update(f"{file.relative_to(ROOT)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    packages = sorted(f"{package.name}=={package.version}" for package in distributions())
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(READ))
    found.update("\n".join([sys.version, platform.platform(), *packages, *settings]).encode())
    return found.hexdigest()


def causes(lines: list[str]) -> Iterable[str]:
    """The lines that say what failed: pytest's summary, else the last ones."""
    return [line for line in lines if line.startswith(("FAILED ", "ERROR "))] or lines[-5:]


def main() -> int:
    """Carry out all steps; the number of those that failed."""
    failed: dict[str, list[str]] = {}
    began = time.monotonic()
    for number, (what, command) in enumerate(STEPS.items(), 1):
        print(f"\n[{number}/{len(STEPS)}] {what}: {command}", flush=True)
        before = state() if what == LAST else ""
        if before and PASSED.exists() and PASSED.read_text() == before:
            print(
                f"passed before, with the same files, packages and settings (delete {PASSED.relative_to(ROOT)} to repeat)"
            )
            continue
        status, lines = run(command)
        if status:
            failed[f"{what}: {command}"] = list(causes(lines))
        elif before and state() == before:  # nothing was edited in the meantime
            PASSED.parent.mkdir(exist_ok=True)
            PASSED.write_text(before)
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    print(f"\n{len(STEPS) - len(failed)} of {len(STEPS)} steps passed in {minutes} min {seconds} s")
    for what, lines in failed.items():
        print(f"\nfailed: {what}")
        print("\n".join(f"    {line}" for line in lines[:MOST]))
        if len(lines) > MOST:
            print(f"    and {len(lines) - MOST} more, above")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
