"""The tests run the blocks that the site shows."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from livepages.course import read_course
from livepages.execution import Engine
from livepages.source import find_project


def test_what_the_site_runs_is_what_the_tests_run() -> None:
    """Every build checks that it is also what the site shows."""
    project = find_project(Path(__file__))
    pages, failed = Engine(project).read(read_course(project).pages)
    assert not failed
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "docs"]
    listed = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True).stdout
    tested = [line for line in listed.splitlines() if "::" in line]
    expected = []
    for page in pages:
        on_line: Counter[str] = Counter()
        for block in page.cases:
            on_line[block.where] += 1
            which = f", block {on_line[block.where]}" if on_line[block.where] > 1 else ""
            expected.append(f"{page.name}::line {block.where}{which}")
    assert sorted(tested) == sorted(expected)
