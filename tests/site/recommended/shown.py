"""The text of a page's programs: check that it contains what a test copies, or run the first program of an answer."""

import contextlib
import io
import linecache
import re
from functools import cache
from typing import Any

from tests.site.recommended.attack import PROJECT


@cache
def _sections(page: str) -> dict[str, str]:
    parts = re.split(r"^(?=## )", (PROJECT.docs / page).read_text(encoding="utf-8"), flags=re.M)
    headed = [(re.search(r"\{ ?#([\w.-]+) ?\}", part), part) for part in parts]
    return {anchor[1]: part for anchor, part in headed if anchor}


def shows(name: str, *codes: str) -> None:
    """Check that a section of a page ("answers/numpy.md#mixing") contains each code, however it is broken into lines.

    Raises:
        AssertionError: it does not.
    """
    page, _, anchor = name.partition("#")
    text = " ".join(_sections(page)[anchor].split())
    for code in codes:
        assert " ".join(code.split()) in text, f"{name} does not show {code!r}"


@cache
def visible(name: str) -> dict[str, Any]:
    """The names that the first program of an answer defines, run once and without the hidden programs.

    An error that the page shows ends it.
    """
    page, _, anchor = name.partition("#")
    options, code = re.findall(r"^```python([^\n]*)\n(.*?)^```", _sections(page)[anchor], re.M | re.S)[0]
    names: dict[str, Any] = {}
    linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name  # for who asks for its source
    error = contextlib.suppress(Exception) if "raises=" in options else contextlib.nullcontext()
    with contextlib.redirect_stdout(io.StringIO()), error:
        exec(compile(code, name, "exec"), names)
    return names
