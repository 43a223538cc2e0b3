"""A count of the public projects that used each old name of JAX, from their histories, as data in old_uses.json.

``python snippets/old_uses.py CLONES`` takes a folder of git repositories, each at CLONES/OWNER+NAME. It reads
the Python files of each project as they were on some days, and never runs them. A project counts once for a name,
however often it used it.
"""

import argparse
import io
import json
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import upgrade_jax
from upgrade_script import known

RECORD = Path(__file__).with_name("old_uses.json")
DAYS = ("2021-01-01", "2022-01-01", "2023-01-01", "2024-01-01", "2025-01-01")
LIMIT = 600  # seconds for a command of git


def sources(clone: Path, day: str) -> Iterator[str]:
    """Yield the Python files of a project that name JAX, as they were on a day; none if it did not exist yet."""

    def git(*command: str, none: tuple[int, ...] = (0,)) -> bytes:
        done = subprocess.run(["git", "-C", clone, *command], capture_output=True, timeout=LIMIT, check=False)
        if done.returncode not in none:
            raise RuntimeError(f"{clone}: git {command[0]} failed:\n{done.stderr.decode()}")
        return done.stdout

    commit = git("rev-list", "-1", f"--before={day}", "HEAD").decode().strip()
    found = git("grep", "-lz", "jax", commit, "--", "*.py", none=(0, 1)) if commit else b""
    paths = [path.removeprefix(f"{commit}:") for path in found.decode().split("\0") if path]
    if not paths:
        return
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "--", *paths))) as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)):
                yield file.read().decode(errors="replace")


def old_names(source: str) -> set[str]:
    """Return the old names in a file, as the script that upgrades files finds them; none if it is not Python 3."""
    try:
        return {finding.name for finding in upgrade_jax.upgrade(source, marks=False).findings}
    except (SyntaxError, ValueError, RecursionError):
        return set()


def main() -> None:
    """Count, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").replace("``", ""))
    parser.add_argument("clones", type=Path)
    clones = sorted(each for each in parser.parse_args().clones.iterdir() if each.is_dir())
    upgrade_jax.KNOWN = known()
    uses: Counter[str] = Counter()
    projects = []
    for clone in clones:
        found = {name for day in DAYS for source in sources(clone, day) for name in old_names(source)}
        print(clone.name, len(found))
        uses.update(found)
        projects.append(clone.name.replace("+", "/", 1))
    record = {"projects": projects, "days": DAYS, "uses": dict(sorted(uses.items(), key=lambda use: (-use[1], use[0])))}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
