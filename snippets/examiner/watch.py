"""Watch a file of answers, and show the first exercise that is not right yet."""

import argparse
import inspect
import os
import re
import runpy
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from examiner import verdict
from examiner.limit import limited
from examiner.tools import NotWritten, Refused

PAGES = {
    "basics": "Practice: the basics",
    "speed": "Practice: speed",
    "debug": "Practice: debugging",
    "scale": "Practice: several devices",
    "train": "Practice: training",
}
HEAD = '''\
"""Your answers. Save the file, and the watcher examines the exercise that you are at."""

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
'''


def main() -> None:
    """Run what the command line asks for."""
    about = "Examines a file of answers each time it is saved."
    parser = argparse.ArgumentParser(prog="python -m examiner", description=about)
    parser.add_argument("file", type=Path, help="your answers; it is written with all stubs if it does not exist")
    where = "where to begin: a part, a page of the course, or an exercise, such as train, basics/vmap or fit"
    parser.add_argument("--from", dest="first", metavar="PLACE", default="", help=where)
    parser.add_argument("--once", metavar="REPORT", type=Path, help=argparse.SUPPRESS)  # what the watcher runs
    options = parser.parse_args()
    if options.once:
        examine_from(options.file, options.first, options.once)
        return
    first = _first(options.first)  # before anything is written
    if start(options.file):
        print(f"Wrote {options.file}, which has a stub for every exercise.")
    watch(options.file, first)


def start(file: Path) -> bool:
    """Write a file of stubs unless the file exists, and return whether it did."""
    if file.exists():
        return False
    stubs = Path(__file__).parent.with_name("exercises.py")
    if not stubs.exists():
        sys.exit(f"{file} does not exist. Download live-practice.py from the page of all exercises, and name it here.")
    text = re.sub(r"# --8<-- .*\n\n*", "", stubs.read_text(encoding="utf-8")).partition('"""\n\n')[2]
    text = HEAD + "\n" + re.sub(r"(?m)^import jax$", "import jax.numpy as jnp", text, count=1)
    file.write_text(re.sub(r"\n{3,}", "\n\n\n", text).rstrip("\n") + "\n", encoding="utf-8")
    return True


def watch(file: str | Path, first: str = "") -> None:
    """Show the first exercise of the file that is not right, again each time the file is saved, until all are right.

    Args:
        file: the answers.
        first: where to begin: a part, a page of the course, or an exercise; by default at the first of all.
    """
    file, now = Path(file), _first(first)
    try:
        for text in _versions(file):
            if sys.stdout.isatty():
                print("\033[2J\033[H", end="")
            print(f"Examining {file.name} …", flush=True)
            now, message = _examined(file, now)
            if now == "":
                print(message, flush=True)
                return
            print(message + _about(now, text, file), flush=True)
    except KeyboardInterrupt:
        print()


def examine_from(file: Path, first: str, report: Path) -> None:
    """Run the file, examine its answers from the first one on until one is not right, and write a report.

    The report's first line is the name of that exercise, or empty; the rest is the verdict.
    """
    sys.argv = [str(file)]
    sys.path.insert(0, str(file.parent.resolve()))
    verdict.silent = True
    report.write_text(f"{first}\n", encoding="utf-8")
    try:
        found: dict[str, Any] = {}
        limited(file.name, lambda: found.update(runpy.run_path(str(file), run_name="answers")))
    except (Exception, SystemExit) as error:
        error = error.with_traceback(_inside(file, error))
        text = str(error) if isinstance(error, Refused) else "".join(traceback.format_exception(error)).rstrip()
        report.write_text(f"{first}\n{file.name} does not run:\n\n{text}\n", encoding="utf-8")
        return
    names = verdict.exercises()
    for name in names[names.index(first) :]:
        report.write_text(f"{name}\n", encoding="utf-8")
        try:
            verdict.judge(found.get(name, verdict._nothing), name)
        except NotWritten:
            return
        except Refused as refusal:
            text = verdict.wrapped(f"{name}: {refusal}")
            report.write_text(f"{name}\n{text}\n", encoding="utf-8")
            return
        print(f"{name}: right", flush=True)
    report.write_text("\n", encoding="utf-8")


def _first(place: str) -> str:
    """The exercise to begin with; ends the program with a message where there is no such place."""
    try:
        return verdict.first_at(place) if place else verdict.exercises()[0]
    except KeyError as error:
        sys.exit(error.args[0])


def _examined(file: Path, first: str) -> tuple[str, str]:
    """The exercise that is not right yet, empty if there is none; and the message about it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        path = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        run = "from examiner.watch import main; main()"
        command = [sys.executable, "-c", run, str(file), "--from", first, "--once", str(report)]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False)
        name, _, message = report.read_text(encoding="utf-8").partition("\n") if report.exists() else (first, "", "")
    if done.returncode and not message:
        message = f"The examination of {name} ended early, with exit status {done.returncode}.\n"
    names = verdict.exercises()
    if not name and first != names[0]:  # what was right may have been changed since
        return _examined(file, names[0])
    return name, message if name else f"All {len(names)} exercises are right."


def _about(name: str, text: str, file: Path) -> str:
    """The exercise as the reader sees it."""
    exercise, names = verdict.CHECKS[name], verdict.exercises()
    line = re.search(rf"^(def|class) {name}\b", text, re.MULTILINE)
    place = f"{file}:{text.count(chr(10), 0, line.start()) + 1}" if line else f"{file} has no {name}"
    task = re.search(rf'^(?:def|class) {name}\b.*?"""(.*?)"""', text, re.MULTILINE | re.DOTALL)
    return (
        f"\nExercise {names.index(name) + 1} of {len(names)}: {name} ({exercise.level})\n{place}\n\n"
        + (textwrap.indent(inspect.cleandoc(task[1]), "    ") + "\n\n" if task else "")
        + f'Hints and a solution: "{PAGES[exercise.part]}". Save the file to examine it again; Ctrl-C stops.'
    )


def _versions(file: Path) -> Iterator[str]:
    """The text of the file, now and each time it changes."""
    last = None
    while True:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # some editors delete and write anew
            text = None
        if text is not None and text != last:
            last = text
            yield text
        time.sleep(0.2)


def _inside(file: Path, error: BaseException) -> Any:
    """The error's traceback from the first frame in the file on."""
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != str(file):
        frames = frames.tb_next
    return frames
