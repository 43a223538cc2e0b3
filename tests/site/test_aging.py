"""Statements that age are found, with their day and their source."""

import os
import subprocess
from datetime import date
from pathlib import Path

import pytest

from tests.site.aging import report, statements

PAGE = """\
---
description: "Since jax 0.1, front matter is no statement."
---

# A title of 2026

Arrays hold numbers. Since jax 0.9, a mesh is
Explicit. The [plugin](https://example.org/plugin) for Macs is old.

```python
print("jax 0.12.0")  # deprecated
```

<!-- asked
is jax 0.4 old
-->
<!-- jax 0.3 -->

$$x = 1$$

| You have | Use |
|---|---|
| Windows | WSL2 |
| numbers | arrays |

`jnp.x` is gone in 0.11.

- An item of a list.
- On jax 0.10, another.

The value 0.25 does not age, and neither does [a link](https://example.org/0.1.2).
"""


def test_statements_that_age_are_found_with_their_lines() -> None:
    found = [(one.line, one.text, one.source) for one in statements("page.md", PAGE)]
    assert found == [
        (7, "Since jax 0.9, a mesh is Explicit.", ""),
        (8, "The [plugin](https://example.org/plugin) for Macs is old.", "https://example.org/plugin"),
        (23, "| Windows | WSL2 |", ""),
        (26, "`jnp.x` is gone in 0.11.", ""),
        (29, "- On jax 0.10, another.", ""),
    ]


@pytest.mark.parametrize("text", ["Nothing ages here.", "Version numbers such as 0.5 may be learning rates.", ""])
def test_a_page_without_such_statements_has_none(text: str) -> None:
    assert not [*statements("page.md", text)]


def test_only_old_statements_are_reported_oldest_first(tmp_path: Path) -> None:
    page = tmp_path / "page.md"

    def commit(day: str) -> None:
        environment = {**os.environ, "GIT_AUTHOR_DATE": f"{day}T12:00:00Z", "GIT_COMMITTER_DATE": f"{day}T12:00:00Z"}
        identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]
        for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", day]):
            subprocess.run(["git", *command], cwd=tmp_path, env=environment, check=True)

    page.write_text("It is so in jax 0.7.\n\nIt is so in jax 0.8.\n")
    commit("2026-01-10")
    page.write_text("It is so in jax 0.9.\n\nIt is so in jax 0.8.\n")
    commit("2026-02-20")
    assert report(tmp_path, date(2026, 2, 1)).splitlines()[2:] == [
        "- 2026-01-10, `docs/page.md:3`: It is so in jax 0.8. (no source)"
    ]
    both = report(tmp_path, date(2026, 3, 1)).splitlines()
    assert both[0].startswith("2 statements") and ["0.8" in row for row in both[2:]] == [True, False]
    assert report(tmp_path, date(2026, 1, 1)).startswith("0 statements")
