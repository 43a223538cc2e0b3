"""Made-up Markdown: what our scanners find is what pymdownx.superfences finds on the site."""

from pathlib import Path
from typing import Any

import markdown_exec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown import Markdown
from markdown_exec import markdown_config

from livepages.source import PageError, find_project
from livepages.source.fences import PYTHON
from livepages.source.parser import parse
from livepages.source.superfences import Scanner

PROJECT = find_project(Path(__file__).parents[1])
PREFIXES = ["", "", "", "  ", "    ", "        ", "\t", "> ", ">", "> > ", ">     ", "- ", "1. "]
ALL = [
    "python",
    "py",
    'python title="a `b`"',
    "python raises='KeyError'",
    "{.python}",
    "python3",
    "python, x",
    "text",
    "",
]
EXECUTED = [
    "python",
    "py",
    'python exec="on"',
    'python exec="on" session="a" any="thing"',
    '{.python exec="on"}',
    '{ .py exec="yes" .more #id }',
    'py exec="off"',
    'python title="a `b`"',
    "python exec",
    'pycon exec="1"',
    'md exec="on"',
    'markdown exec="on" source="console"',
    "python, no_run",
    "python title",
    "text",
    "",
]
TEXTS = [
    "x = 1",
    "# a heading",
    "!!! note",
    '=== "Tab"',
    "- item",
    "1. item",
    "words",
    "<!-- a comment",
    "-->",
    "<div markdown>",
]

line = st.builds(str.__add__, st.sampled_from(PREFIXES), st.sampled_from([*TEXTS, "", ""]))
marker = st.sampled_from(["```", "```", "```", "````", "~~~", "~~~~"])


@st.composite
def fences(draw: st.DrawFn, infos: list[str]) -> list[str]:
    """A fence, whose closing line, prefix or content may be wrong."""
    prefix, mark = draw(st.sampled_from(PREFIXES)), draw(marker)
    inside = draw(st.lists(st.one_of(line, st.sampled_from(TEXTS).map(prefix.__add__), fences(infos)), max_size=4))
    content = [text for one in inside for text in ([one] if isinstance(one, str) else one)]
    end = draw(st.sampled_from([prefix + mark, prefix + mark, prefix + mark, "", mark, prefix + mark + "  "]))
    return [prefix + mark + draw(st.sampled_from(["", " "])) + draw(st.sampled_from(infos)), *content, end]


def texts(infos: list[str]) -> st.SearchStrategy[list[str]]:
    """The lines of a text."""
    parts = st.lists(st.one_of(line.map(lambda text: [text]), fences(infos)), max_size=8)
    return parts.map(lambda parts: [text for part in parts for text in part])


a_lot = settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def converted(lines: list[str], custom: list[dict[str, Any]]) -> None:
    extensions = ["attr_list", "md_in_html", "admonition", "pymdownx.tabbed", "pymdownx.superfences"]
    configs: dict[str, dict[str, Any]] = {"pymdownx.superfences": {"custom_fences": custom}}
    markdown_config.save(extensions, configs)
    try:
        Markdown(extensions=extensions, extension_configs=configs).convert("\n".join(lines))
    finally:
        markdown_config.reset()


@given(texts(EXECUTED))
@a_lot
def test_fences_that_markdown_exec_executes(lines: list[str]) -> None:
    seen: list[tuple[str, str]] = []

    def note(code: str, **options: Any) -> str:
        seen.append((code, options["session"]))
        return ""

    with pytest.MonkeyPatch.context() as patch:
        for language in ("python", "py", "pycon"):
            patch.setitem(markdown_exec.formatters, language, note)
        custom = [
            {"name": name, "class": name, "validator": markdown_exec.validator, "format": markdown_exec.formatter}
            for name in markdown_exec.formatters
        ]
        converted(lines, custom)
    scanner = Scanner(list(markdown_exec.formatters), markdown_exec.validator, {})
    assert [("\n".join(one.fence.content), one.options["session"]) for one in scanner.scan(lines)] == seen


@given(texts(ALL))
@a_lot
def test_fences_of_pages_on_which_all_run(lines: list[str]) -> None:
    seen: list[str] = []

    def note(source: str, *_: Any, **__: Any) -> str:
        seen.append(source)
        return ""

    try:
        page = parse("\n".join(["", *lines]), PROJECT.docs / "page.md", PROJECT)
    except PageError:
        return
    custom = [{"name": name, "class": name, "validator": lambda *_: True, "format": note} for name in PYTHON]
    converted(lines, custom)
    assert [block.code.rstrip("\n") for block in page.blocks] == [code.rstrip("\n") for code in seen]
