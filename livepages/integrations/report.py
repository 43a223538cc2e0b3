"""The failures that a program which converts pages reports to the one that started it."""

import json
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path

from livepages.execution import Failure

REPORT = "LIVEPAGES_REPORT"  # the environment variable that names a `Report` to a program that converts pages


class Report:
    """A file in which a program that converts pages reports failures to the one that started it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, failures: Iterable[Failure]) -> None:
        """Append failures."""
        with self._file.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(astuple(failure)) + "\n" for failure in failures)

    def read(self) -> list[Failure]:
        """Return the failures that were reported, each once."""
        lines = self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []
        return [Failure(*json.loads(line)) for line in dict.fromkeys(lines)]
