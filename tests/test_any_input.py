"""Made-up input of authors: the engine accepts it, or reports in a message of its own what is wrong and where.

`EXAMPLES=4000 pytest tests/test_any_input.py` tries more of each.
"""

import itertools
import json
import os
import string
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from livepages.execution import Outcome, Raised, Run, pair_results
from livepages.exporters.download import Download
from livepages.integrations import pytest_plugin
from livepages.records import Records, compare
from livepages.records.recording import record
from livepages.rendering import status
from livepages.source import Page, PageError, Project, ProjectError, find_project
from livepages.source.options import TABLE
from livepages.source.parser import parse

many = settings(
    max_examples=int(os.environ.get("EXAMPLES", "300")),
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

# --- what authors write ------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(string.printable, max_size=12)
ODD = st.sampled_from(
    ["", " ", "\0", "\x85", "\u2028", "\ufeff", "é", "null", "~", "on", "1e400", "-1", "nan", ".inf", "2024-13-45", "2024-01-02",
     "1:30", "0x", "{", "}", "[", "]", "---", "...", "&a", "*a", "!!python/object:os.system", "!!binary x", "<<", "%", "@", "`", "|", ">", "'", '"', "\t", "#"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.dates() | st.datetimes() | WORDS | ODD
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.integers(), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["timeout", "exclusive", "depends_on", "title", "description", "before", "requires", "tags", "devices", "x64", "needs", "jax", "device", "timeot"]
) | WORDS  # fmt: skip
PIECES = st.one_of(NAMES.map(lambda name: f"{name}: "), ODD, WORDS, st.just("\n"), st.just("\n  "), st.just("- "))
YAML = st.lists(PIECES, max_size=12).map("".join) | st.dictionaries(NAMES, VALUES, max_size=4).map(
    lambda values: yaml.safe_dump(values, allow_unicode=True)
)


@cache
def project(root: Path) -> Project:
    return find_project(root)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of plain pages under JAX, whose settings are the most."""
    root = tmp_path_factory.mktemp("project")
    (root / "docs").mkdir()
    (root / "pyproject.toml").write_text('[tool.livepages]\nruntime = "jax"\n')
    return root


def read(text: str, root: Path) -> Page | None:
    """The page of a text, None if it is refused; then where and what must be said."""
    try:
        return parse(text, root / "docs" / "page.md", project(root))
    except PageError as error:
        assert error.page == "docs/page.md" and error.message.strip()
        assert 1 <= error.line <= len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
        return None


def used(page: Page, root: Path) -> None:
    """Ask of a page what its readers ask."""
    assert (
        page.title is not None and page.description is not None and page.key is not None and page.sections is not None
    )
    json.dumps([page.settings.runtime, page.settings.depends_on, page.settings.timeout], default=str)


@many
@given(YAML)
def test_front_matter(root: Path, text: str) -> None:
    if page := read(f"---\n{text}\n---\n\n# T\n\n```python\nx = 1\n```\n", root):
        used(page, root)


OPTION = st.tuples(
    st.sampled_from(list(TABLE)) | st.text(string.ascii_letters + "_-=1", max_size=9),
    st.sampled_from(["=", "= ", ""]),
    st.sampled_from(['"', "'", ""]),
    WORDS | ODD | st.sampled_from(["on", "off", "10", "1e-3", "gpu", "gpus>=2", "KeyError", "(", "a{99999999999}", "above", "3-4", "json", "\\1"]),
).map(lambda one: f"{one[0]}{one[1]}{one[2]}{one[3]}{one[2]}")  # fmt: skip


@many
@given(st.lists(OPTION, max_size=4).map(" ".join), st.sampled_from(["```", "~~~~", "> ```", "    ```"]))
def test_fence_options(root: Path, options: str, fence: str) -> None:
    prefix = fence.rstrip("`~")
    if page := read(f"# T\n\n{fence}python {options}\n{prefix}x = 1\n{fence}\n", root):
        used(page, root)


ARGUMENTS = st.lists(
    st.sampled_from(["True", "sys.platform", "'sys.exit(0)'", "reason='x'", "reason=", "1/0", "*a", "**a", "lambda: 0", "(", ")", "f'{'", "x := 1", "\\"]) | WORDS,
    max_size=3,
).map(", ".join)  # fmt: skip
MARKS = st.tuples(
    st.sampled_from(["pytest.mark.skipif", "pytest.mark.skip", "pytest.mark.xfail", "pytest.mark.slow", "pytest.mark.parametrize", "pytest.mark", "pytest-codeblocks:importorskip", "pytest-codeblocks:expected-output", "pytest-codeblocks:cont", "pytest.mark.usefixtures", "pytest.mark.filterwarnings", "pytest"]),
    st.sampled_from(["(", "", ".name("]),
    ARGUMENTS,
    st.sampled_from([")", ""]),
).map("".join)  # fmt: skip


@many
@given(MARKS)
def test_marks(root: Path, mark: str) -> None:
    page = read(f"# T\n\n<!--{mark}-->\n```python\nx = 1\n```\n", root)
    if page and page.program:
        used(page, root)
        added: list[object] = []
        item: Any = SimpleNamespace(add_marker=added.append)
        for text in page.program[0].marks:
            try:
                pytest_plugin.add(item, text)
            except pytest.fail.Exception as error:
                assert str(error)
        Download(page, Run(pair_results(page)), project(root), "")


# --- the project -------------------------------------------------------------------------------------------------

TOML = st.one_of(
    st.booleans().map(lambda value: str(value).lower()),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats().map(repr),
    st.dates().map(str),
    (WORDS | ODD | st.sampled_from(["docs", "..", "/", "jax", "python", "mkdocs.yml"])).map(json.dumps),
    st.just("[1, {a = 2}]"),
    st.just("{x = 1979-05-27T07:32:00Z}"),
    ODD,
)
TABLES = st.dictionaries(
    st.sampled_from(["docs", "mkdocs", "snippets", "inventories", "records", "reference", "timeout", "runtime", "jax", "python", "doc", '"a b"', "jax.jax_debug_nans"]),
    TOML,
    max_size=4,
).map(lambda table: "".join(f"{name} = {value}\n" for name, value in table.items()))  # fmt: skip
NUMBERS = itertools.count()


@many
@given(st.sampled_from(["[tool.livepages]\n", "tool.livepages = ", "[tool]\nlivepages = ", '[tool.livepages]\nruntime = "jax"\n[tool.livepages.jax]\n']), TABLES | TOML)  # fmt: skip
def test_settings_of_the_project(tmp_path_factory: pytest.TempPathFactory, head: str, table: str) -> None:
    root = tmp_path_factory.getbasetemp() / "settings"
    (root / "docs").mkdir(parents=True, exist_ok=True)
    file = root / "pyproject.toml"
    file.write_text(head + table, encoding="utf-8", errors="surrogatepass")
    try:
        found = find_project(root)
    except ProjectError as error:
        assert str(error).startswith((str(file), str(root))) and len(str(error)) > len(str(file)) + 3
        return
    json.dumps(dict(found.options), default=str)
    assert found.name(found.records) and found.timeout > 0
    setup = found.runtime.setup(found.runtime.settings({}), found.options)
    compile(setup, "setup", "exec")
    Records(found)


# --- records -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(root: Path) -> tuple[Path, Page, dict[str, str]]:
    """A page, and the texts of the files that record it."""
    page = read("# T\n\n```python\nx = 1\n```\n\n```python raises='KeyError'\n{}['k']\n```\n", root)
    assert page
    raised = Raised("KeyError", ("KeyError",), "'k'", "KeyError: 'k'", 1)
    outcomes = Outcome(streams=(("out", "a\nb\n"),), counts={"traces": 1}), Outcome(raised=raised)
    run = Run(pair_results(page, outcomes), "cpu")
    record(project(root), "cpu", [(page, run)])
    records = root / "records"
    return root, page, {str(file.relative_to(records)): file.read_text() for file in records.rglob("*.yml")}


def edited(texts: dict[str, str]) -> st.SearchStrategy[tuple[str, str]]:
    """One of the files, with a line of it changed, lost or doubled, a value replaced, or another text altogether."""

    def of(name: str) -> st.SearchStrategy[str]:
        lines = texts[name].splitlines()

        def change(at: int, what: str, how: str) -> str:
            line = lines[at]
            head = line.partition(":")[0]
            new = {"lose": [], "double": [line, line], "value": [f"{head}: {what}"], "name": [line.replace(head.strip(" -"), what or "x", 1)], "indent": [f" {line}"]}  # fmt: skip
            return "\n".join([*lines[:at], *new[how], *lines[at + 1 :]]) + "\n"

        values = ODD | WORDS | VALUES.map(lambda value: json.dumps(value, default=str))
        return st.builds(
            change,
            st.integers(0, len(lines) - 1),
            values,
            st.sampled_from(["lose", "double", "value", "value", "name", "indent"]),
        ) | VALUES.map(yaml.safe_dump)

    return st.sampled_from(sorted(texts)).flatmap(lambda name: st.tuples(st.just(name), of(name)))


@many
@given(st.data())
def test_records_edited_by_hand(recorded: tuple[Path, Page, dict[str, str]], data: st.DataObject) -> None:
    root, page, texts = recorded
    name, text = data.draw(edited(texts))
    file = root / "records" / name
    for other, whole in texts.items():
        (root / "records" / other).write_text(whole, encoding="utf-8")
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    number = next(NUMBERS)
    os.utime(file, ns=(number, number))
    records = Records(project(root))
    for failure in records.problems([page]):
        assert failure.page == f"records/{name}" and "livepages record --host" in failure.message
        assert 1 <= failure.line <= text.count("\n") + 1
    records.seen(page), records.outdated([page]), records.unrecorded([page]), records.orphans([page])
    for host in records.hosts:
        assert compare([page], (host, records), (host, records)).report
    anchor: Callable[..., str] = lambda page, block: "a"  # noqa: E731
    assert status.lines(page, [status.STATUS], [page], records, "", anchor)
    assert status.badge(project(root), [page])
