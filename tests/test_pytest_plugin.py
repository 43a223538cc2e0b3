"""Pages are files and blocks are items, whoever collects, and failures point at the Markdown line."""

import importlib.metadata
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import livepages
from tests.prepared import Commands

PAGE = """\
# Page

```python
a = 1
```

Words.

```python
print(a)
assert a == 1
```
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    pytester.makepyprojecttoml("[tool.livepages]\n")
    (pytester.path / "docs").mkdir()
    (pytester.path / "docs" / "page.md").write_text(PAGE)
    return pytester.path


Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(commands: Commands, pytester: pytest.Pytester) -> Run:
    """Run pytest in the project, in a process forked from one that has imported it."""

    def go(*arguments: str) -> pytest.RunResult:
        settings = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
        done = commands.run(
            "pytest",
            *settings,
            *arguments,
            folder=pytester.path,
            environment={"HOME": str(pytester.path), "PY_COLORS": "0"},
        )
        return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), 0.0)

    return go


@pytest.mark.parametrize("arguments", [("docs",), ("--codeblocks", "docs"), (), ("docs/page.md",)])
def test_every_block_is_an_item_once(run: Run, project: Path, arguments: tuple[str, ...]) -> None:
    result = run("--collect-only", "-q", *arguments)
    assert [line for line in result.outlines if "::" in line] == ["docs/page.md::line 3", "docs/page.md::line 9"]


def test_blocks_of_one_include_are_items_of_their_own(run: Run, project: Path) -> None:
    (project / "snippets").mkdir()
    (project / "snippets" / "two.md").write_text("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    (project / "docs" / "page.md").write_text('--8<-- "two.md"\n')
    result = run("-v", "docs")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["docs/page.md::line 1 PASSED*", "docs/page.md::line 1, block 2 FAILED*"])


def test_blocks_pass_in_their_order_and_alone(run: Run, project: Path) -> None:
    run("docs").assert_outcomes(passed=2)
    run("docs", "-k", "line and 9").assert_outcomes(passed=1, deselected=1)
    run("docs/page.md::line 9").assert_outcomes(passed=1)


def test_items_are_in_the_order_in_which_pages_run_and_the_number_of_runs_is_printed(run: Run, project: Path) -> None:
    (project / "docs" / "timed.md").write_text("---\nexclusive: true\n---\n\n" + PAGE * 3)
    (project / "docs" / "short.md").write_text("```python\nprint('short')\n```\n")
    (project / "test_more.py").write_text("def test_more():\n    pass\n")
    result = run(".")
    result.assert_outcomes(passed=10)
    names = ["test_more.py", "docs/page.md", "docs/short.md", "docs/timed.md"]
    result.stdout.fnmatch_lines(
        ["3 pages: 3 to run, 1 of them alone at the end; 0 unchanged", *(f"{name} *" for name in names[1:])]
    )
    shown = [line.partition(" ")[0] for line in result.outlines if line.partition(" ")[0] in names]
    assert list(dict.fromkeys(shown)) == names


def test_a_failure_points_at_the_line_and_the_other_blocks_count(run: Run, project: Path) -> None:
    (project / "docs" / "page.md").write_text(PAGE.replace("a == 1", "a == 2"))
    (project / "docs" / "other.md").write_text("```python\nprint('fine')\n```\n")
    result = run("docs")
    result.assert_outcomes(passed=2, failed=1)
    failure = "docs/page.md:11: block of line 9: raised Assert*"  # the summary is as wide as the terminal
    result.stdout.fnmatch_lines([failure, "*assert a == 2*", f"FAILED docs/page.md::line 9 - {failure}"])
    assert "livepages/" not in result.stdout.str()


def test_blocks_after_a_failed_one_are_skipped_if_it_is_tested_too(run: Run, project: Path) -> None:
    text = PAGE + "\n```python\nprint('last')\n```\n\n```python isolated='on'\nprint('fresh')\n```\n"
    (project / "docs" / "page.md").write_text(text.replace("a == 1", "a == 2"))
    result = run("docs", "-rs")
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*not run: the block on line 9 failed"])
    result = run("docs/page.md::line 14")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["docs/page.md:14: block of line 14: not run: docs/page.md:11: block of line 9: *"])


def test_a_page_that_cannot_be_read_fails_with_its_line_and_alone(run: Run, project: Path) -> None:
    wrong = "# T\n\n```python colour='red'\n```\n\n```python size='1'\n```\n"
    (project / "docs" / "other.md").write_text(wrong)
    result = run("docs")
    result.assert_outcomes(passed=2, failed=2)
    for line, option in ((3, "colour"), (6, "size")):
        result.stdout.fnmatch_lines(
            [f"FAILED docs/other.md::line {line} - docs/other.md:{line}: unknown option '{option}'*"]
        )


def test_a_page_runs_again_when_it_failed_or_has_changed(run: Run, project: Path) -> None:
    page, log = project / "docs" / "page.md", project.parent / "log"
    note = f"```python\nopen({str(log)!r}, 'a').write('x')\n"
    for text, ran in [(f"{note}```\n", 1), (f"Words.\n\n{note}```\n", 1), (f"{note}1 / 0\n```\n", 2), ("", 3)]:
        page.write_text(text or page.read_text())
        run("docs")
        assert len(log.read_text()) == ran


def test_pages_that_measure_time_come_last(run: Run, project: Path) -> None:
    (project / "docs" / "a.md").write_text("---\nexclusive: true\n---\n\n```python\n1\n```\n")
    result = run("--collect-only", "-q", "docs")
    assert [line for line in result.outlines if "::" in line][-1] == "docs/a.md::line 5"


def test_marks_and_skips_work_as_users_of_pytest_codeblocks_know_them(run: Run, project: Path) -> None:
    text = (
        "<!--pytest.mark.skipif(True, reason='not here')-->\n```python\n1 / 0\n```\n"
        "<!--pytest-codeblocks:importorskip(no_such_module)-->\n```python\n1 / 0\n```\n"
        "<!--pytest.mark.slow-->\n```python\nprint(1)\n```\n<!--pytest-codeblocks:expected-output-->\n```\n2\n```\n"
    )
    (project / "docs" / "page.md").write_text(text)
    (project / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes long\n")
    result = run("docs", "-rs")
    result.assert_outcomes(skipped=2, failed=1)
    result.stdout.fnmatch_lines(["*not here*", "*needs the module no_such_module*"])
    run("docs", "-m", "not slow").assert_outcomes(skipped=2, deselected=1)


README = str(importlib.metadata.metadata("pytest-codeblocks").json["description"])
EXAMPLES = [text for _, text in re.findall(r"(?ms)^(`{3,4})markdown\n(.*?)^\1$", README)]
RESULTS = {
    "pytest.mark.skip-->": "SKIPPED",
    "pytest.mark.skipif(sys.version_info": "PASSED",
    "importorskip(sympy)": "SKIPPED",
    "skipfile": "SKIPPED",
    "pytest.mark.xfail": "PASSED",  # as it raises what it says
    "cont-->": "PASSED",
    "expected-output": "FAILED",  # below a block of the shell, which does not run
}


def test_what_the_readme_of_pytest_codeblocks_shows_is_taken(run: Run, project: Path) -> None:
    for number, text in enumerate(EXAMPLES):
        block = "" if "```" in text else "\n```python\nx = 1\n```\n"
        (project / "docs" / f"{number}.md").write_text(text.replace("sympy", "no_such_module") + block)
    result = run("docs", "-v")
    for number, text in enumerate(EXAMPLES):
        wanted = next(outcome for words, outcome in RESULTS.items() if words in text)
        assert set(re.findall(rf"(?m)^docs/{number}\.md::.*? ([A-Z]+)", result.stdout.str())) == {wanted}, text
    result.stdout.fnmatch_lines(["*expected-output: goes below a block that runs, and above it is the one of line 3*"])


def test_blocks_that_are_not_run_are_no_items(run: Run, project: Path) -> None:
    (project / "docs" / "page.md").write_text('```python exec="off" reason="shown only"\nx\n```\n')
    assert run("--collect-only", "-q", "docs").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_pages_of_no_project_are_left_to_pytest_codeblocks(run: Run, project: Path) -> None:
    (project / "README.md").write_text("```python\nassert True\n```\n")
    run("README.md", "--codeblocks").assert_outcomes(passed=1)
    run("README.md").stdout.fnmatch_lines(["collected 0 items*"])


@pytest.fixture
def recorded_elsewhere(project: Path, commands: Commands) -> Path:
    """The project, with records of another kind of computer that saw other output."""
    done = commands.run("livepages", "record", "--host", "mine", folder=project)
    assert done.returncode == 0, done.stdout + done.stderr
    host, page = project / "records/mine.yml", project / "records/mine/page.yml"
    host.write_text(re.sub("system: .*", "system: Plan9 mips", host.read_text()))
    page.write_text(page.read_text().replace("stdout: '1'", "stdout: '2'"))
    return host


LISTED = [
    "*= outputs that differ from the records of another kind of host =*",
    "On *, 1 block without a record, compared with mine (*, Plan9 mips*):",
    "  docs/page.md:9: whole numbers, by 1 at most, relative 0.5",
    "If these outputs are right, record this kind of host: livepages record --host NAME",
]


def test_what_differs_from_records_of_other_computers_is_listed_and_passes(run: Run, recorded_elsewhere: Path) -> None:
    result = run("docs")
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    result.stdout.fnmatch_lines(LISTED, consecutive=True)
    record = recorded_elsewhere.with_name("mine") / "page.yml"
    record.write_text(record.read_text().replace("stdout: '2'", "stdout: '1'"))
    result = run("docs")
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*records of another kind*")


def test_it_is_listed_once_with_xdist(pytester: pytest.Pytester, recorded_elsewhere: Path) -> None:
    pytest.importorskip("xdist")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", "docs")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(LISTED, consecutive=True)
    assert result.stdout.str().count("docs/page.md:9: whole") == 1


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_pages_with_outdated_records_are_listed_once(
    pytester: pytest.Pytester,
    project: Path,
    commands: Commands,
    processes: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if processes:
        pytest.importorskip("xdist")
    monkeypatch.setenv("PYTHONPATH", str(Path(livepages.__file__).parents[1]))
    commands.run("livepages", "record", "--host", "cpu", folder=project)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *processes, "docs")
    result.stdout.no_fnmatch_line("*out of date*")
    (project / "docs" / "page.md").write_text(PAGE.replace("a = 1", "a = 2 - 1"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *processes, "docs")
    reported = (
        "The records of 1 page are out of date, docs/page.md: `livepages record docs/page.md --host cpu` renews them"
    )
    assert result.stdout.str().count(reported) == 1


def test_with_xdist_too(pytester: pytest.Pytester, project: Path) -> None:
    pytest.importorskip("xdist")
    (project / "docs" / "page.md").write_text(PAGE.replace("a == 1", "a == 2"))
    for number in range(3):
        (project / "docs" / f"other-{number}.md").write_text("```python\nprint('fine')\n```\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", "docs")
    result.assert_outcomes(passed=4, failed=1)
    assert re.search(r"docs/page\.md:11: block of line 9", result.stdout.str())
