"""A check that a page still shows the code that a test copies from it, because it is an expression or a single line."""

import re
from functools import cache

from tests.site.recommended.attack import PROJECT


@cache
def _sections(page: str) -> dict[str, str]:
    parts = re.split(r"^(?=## )", (PROJECT.docs / page).read_text(encoding="utf-8"), flags=re.M)
    headed = [(re.search(r"\{ ?#([\w.-]+) ?\}", part), part) for part in parts]
    return {anchor[1]: " ".join(part.split()) for anchor, part in headed if anchor}


def shows(name: str, *codes: str) -> None:
    """Check that a section of a page ("answers/numpy.md#mixing") contains each code, however it is broken into lines.

    Raises:
        AssertionError: it does not.
    """
    page, _, anchor = name.partition("#")
    for code in codes:
        assert " ".join(code.split()) in _sections(page)[anchor], f"{name} does not show {code!r}"
