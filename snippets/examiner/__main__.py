"""Examines a file of answers each time it is saved: python -m examiner FILE."""

import argparse
from pathlib import Path

from examiner.watch import examine_from, start, watch


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m examiner", description=__doc__)
    parser.add_argument("file", type=Path, help="your answers; it is written with all stubs if it does not exist")
    parser.add_argument("--from", dest="first", metavar="EXERCISE", default="", help="the exercise to begin with")
    parser.add_argument("--once", metavar="REPORT", type=Path, help=argparse.SUPPRESS)  # what the watcher runs
    options = parser.parse_args()
    if options.once:
        examine_from(options.file, options.first, options.once)
        return
    if start(options.file):
        print(f"Wrote {options.file}, which has a stub for every exercise.")
    watch(options.file, options.first)


if __name__ == "__main__":
    main()
