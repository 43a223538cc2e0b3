"""``python -m tests``: every check there is, one after the other, whatever fails; then what failed, in a few lines.

What one step runs, the next do not run again: `pytest docs` keeps the run of every page, from which the site is built,
and with which scripts and notebooks are compared.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
STEPS = {
    "the style of the code": "ruff check",
    "the layout of the code": "ruff format --check",
    "types": "mypy",
    "pages can be read, and are on record": "livepages check",
    "every block of every page": "pytest -rfE docs",
    "the engine, the snippets, downloads, the built site": "pytest -rfE -n auto --dist worksteal tests",
}
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


def causes(lines: list[str]) -> Iterable[str]:
    """The lines that say what failed: pytest's summary, else the last ones."""
    return [line for line in lines if line.startswith(("FAILED ", "ERROR "))] or lines[-5:]


def main() -> int:
    """Carry out all steps; the number of those that failed."""
    failed: dict[str, list[str]] = {}
    began = time.monotonic()
    for number, (what, command) in enumerate(STEPS.items(), 1):
        print(f"\n[{number}/{len(STEPS)}] {what}: {command}", flush=True)
        status, lines = run(command)
        if status:
            failed[f"{what}: {command}"] = list(causes(lines))
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
