"""The command line: what it says, what it exits with, and that nothing is lost."""

import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from livepages.integrations.cli import main
from livepages.source import ProjectError, find_project
from tests.conftest import HANG, Site
from tests.prepared import finding


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    captured = capsys.readouterr()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code, captured.out + captured.err


@pytest.fixture
def page(site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(site.root)
    return site.write("docs/page.md", "# T\n\n```python\nprint('hello')\n```\n")


def test_run_runs_stale_pages_and_lists_them(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    status, output = command(capsys, "run")
    assert status == 0
    assert re.fullmatch(r"ran docs/page\.md: 1 block, \d\.\d s\n1 page: 1 run, 0 unchanged\n", output)
    assert command(capsys, "run") == (0, "1 page: 0 run, 1 unchanged\n")


def test_run_runs_a_named_page_and_prints_its_output(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    status, output = command(capsys, "run", "-v", str(page))
    assert status == 0 and "--- docs/page.md:3  " in output and "hello\n" in output


def test_a_misspelled_page_name_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    for name in ("page.md", "docs/pages.md"):
        status, output = command(capsys, "run", name)
        assert status == 2 and f"{name}: no such page in {page.parent}; did you mean 'docs/page.md'?" in output


def test_run_names_outdated_records_and_the_command_that_renews_them(
    capsys: pytest.CaptureFixture[str], page: Path, site: Site
) -> None:
    for number in range(6):
        site.write(f"docs/more/{number}.md", "```python\nprint(1)\n```\n")
    command(capsys, "record", "--host", "cpu")
    assert "out of date" not in command(capsys, "run")[1]
    page.write_text(page.read_text().replace("hello", "hi"))
    reported = (
        "The records of 1 page are out of date, docs/page.md: `livepages record docs/page.md --host cpu` renews them\n"
    )
    assert command(capsys, "run")[1].endswith(f"1 run, 6 unchanged\n{reported}")
    for file in site.root.glob("docs/more/*.md"):
        file.write_text("```python\nprint(2)\n```\n")
    reported = "7 pages are out of date, docs/more/0.md and 6 more: `livepages record --host cpu` renews them\n"
    assert command(capsys, "run")[1].endswith(reported)


def test_run_counts_no_pages_where_none_can_be_read(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    page.write_text('```python colour="red"\n```\n')
    status, output = command(capsys, "run")
    assert status == 1 and output.startswith("docs/page.md:1: unknown option") and "0 pages" not in output


def test_failures_are_listed_with_line_and_exit_status_1(
    capsys: pytest.CaptureFixture[str], page: Path, site: Site
) -> None:
    page.write_text(
        "# T\n\n```python\nx = 1\n1 / 0\n```\n\n```python isolated='on'\n{}['k']\n```\n\n```python\nx\n```\n"
    )
    site.write("docs/other.md", "```python\n[][0]\n```\n")
    site.write("docs/third.md", '```python colour="red"\n```\n')
    status, output = command(capsys, "run")
    assert status == 1
    for line in (
        "docs/page.md:5: block of line 3",
        "docs/page.md:9: block",
        "docs/page.md:12: 1 block not run: the block on line 3 failed",
        "ran docs/page.md: 2 of 3 blocks failed, 1 not run",
        "docs/other.md:2: block",
        "docs/third.md:1: unknown option",
    ):
        assert line in output
    assert output.endswith("4 failed\n")


def test_a_block_counts_once_with_whichever_of_its_values_it_failed(
    capsys: pytest.CaptureFixture[str], page: Path
) -> None:
    blocks = ('vary="a=1, 2, 3"\nassert a == 1', "\n1 / 0", 'vary="b=1, 2"\nb', "\nx = 1")
    page.write_text("# T\n\n" + "".join(f"```python {block}\n```\n\n" for block in blocks) + "It is `{python} x`.\n")
    _, output = command(capsys, "run")
    assert "ran docs/page.md: 2 of 4 blocks failed, 2 not run; 1 of 1 inline expression not run, " in output
    assert "\ndocs/page.md:11: 2 blocks and 1 inline expression not run: the block on line 7 failed\n" in output
    _, output = command(capsys, "record", "--host", "cpu")
    page.write_text(page.read_text().replace("a == 1", "a").replace("1 / 0", "y = 1"))
    _, output = command(capsys, "check")
    assert (
        "1 page, 4 Python blocks, 0 of them not run\ncpu: 4 blocks and 1 inline expression without an up-to-date record"
        in output
    )
    assert "has no up-to-date record on cpu (and 3 more blocks and 1 more inline expression of the page)" in output


def test_check_reads_everything_and_runs_nothing(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    page.write_text('# T\n\n```python\n1 / 0\n```\n\n```python exec="off" reason="a cluster"\nx\n```\n')
    assert command(capsys, "check") == (
        0,
        "docs/page.md:7: not run: a cluster\n1 page, 2 Python blocks, 1 of them not run\n",
    )
    page.write_text("```python\nnever closed\n")
    status, output = command(capsys, "check")
    assert status == 1 and "docs/page.md:1: " in output


def test_check_prints_one_line_for_a_page(capsys: pytest.CaptureFixture[str], page: Path, site: Site) -> None:
    off = '```python exec="off" reason="a cluster"\nx\n```\n\n'
    page.write_text("# T\n\n" + 3 * off + 3 * '```python needs="gpu"\nx = 1\n```\n\n' + 2 * "```python\ny = 1\n```\n\n")
    command(capsys, "record", "--host", "cpu")
    page.write_text(page.read_text().replace("x = 1", "x = 2"))
    status, output = command(capsys, "check")
    assert status == 1 and output.splitlines() == [
        "docs/page.md:3: not run: a cluster (and 2 more blocks of the page)",
        "1 page, 8 Python blocks, 3 of them not run",
        "docs/page.md:15: runs only on some hosts, and none of them has recorded it (and 2 more blocks of the page)",
        "cpu: 5 blocks without an up-to-date record, the first docs/page.md:15",
        "docs/page.md:15: block of line 15: has no up-to-date record on cpu (and 4 more blocks of the page); "
        "run `livepages record --host cpu`",
        "1 failed",
    ]


def test_clean_deletes_what_runs_left_and_no_more(capsys: pytest.CaptureFixture[str], page: Path, site: Site) -> None:
    command(capsys, "run")
    assert site.project.cache.exists()
    assert command(capsys, "clean") == (0, "")
    assert not site.project.cache.exists() and page.exists()
    assert command(capsys, "clean") == (0, "")


def test_a_missing_page_is_an_error(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    assert command(capsys, "run", "docs/absent.md")[0] == 2


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["check", "--help"], ["clean", "--help"]])
def test_help_is_printed(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    status, output = command(capsys, *arguments)
    assert status == 0 and "usage: livepages" in output


def test_outside_a_project_commands_fail_with_a_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, output = command(capsys, "check")
    assert status == 2 and "no pyproject.toml" in output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.livepages\n", "line 1"),
        ('[tool.livepages]\ndocz = "d"\n', "docz"),
        ("[tool.livepages]\ndocs = 3\n", "docs"),
        ("[tool.livepages]\ntimeout = true\n", "timeout"),
        ("[tool.livepages]\ntimeout = nan\n", "timeout"),
        ("[tool.livepages]\ntimeout = -1\n", "timeout"),
        ('[tool.livepages]\nruntime = "ruby"\n', "there is no runtime 'ruby'; there are jax, python"),
        ("[tool.livepages.jax]\nx = 1\n", 'is read where runtime = "jax"'),
        ("[tool.livepages]\nsnipets = 'x'\n", "did you mean 'snippets'?"),
        ("[tool.livepages]\ndocs = 'dcos'\n", "there is no .*dcos; did you mean 'docs'?"),
        ("[tool.livepages]\nsnippets = 'parts'\n", "snippets: there is no"),
        ("[tool.livepages]\nmkdocs = 'other.yml'\n", "mkdocs: there is no"),
        ("[tool.livepages]\ntimeout = -1\n", "timeout = -1 is not a number of seconds above 0"),
        ("[tool.livepages]\ntimeout = nan\n", "timeout = nan is not"),
        ("[tool]\nlivepages = 3\n", "write \\[tool.livepages\\]"),
    ],
)
def test_settings_that_are_not_understood_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ProjectError, match=words) as error:
        find_project(tmp_path)
    assert "pyproject.toml" in str(error.value)


@pytest.mark.parametrize("table", ["", "[tool.livepages]\n"])
def test_a_folder_of_pages_that_is_not_there_is_reported_as_the_file_has_it(tmp_path: Path, table: str) -> None:
    (tmp_path / "pyproject.toml").write_text(table)
    (tmp_path / "mkdocs.yml").write_text("site_name: T\ndocs_dir: text\nplugins: [livepages]\n")
    with pytest.raises(ProjectError, match=r"mkdocs\.yml: docs_dir: there is no .*text$"):
        find_project(tmp_path)


def test_all_wrong_settings_are_reported_at_once(tmp_path: Path) -> None:
    text = "[tool.livepages]\ndocs = 3\nsnipets = 'x'\nsnippets = 'y'\ntimeout = -1\nfences = 'some'\n"
    (tmp_path / "pyproject.toml").write_text(f"{text}runtime = 'python'\n[tool.livepages.python]\nx = [1]\n")
    with pytest.raises(ProjectError) as error:
        find_project(tmp_path)
    reported = str(error.value).splitlines()
    assert all(line.startswith(f"{tmp_path / 'pyproject.toml'}: [tool.livepages") for line in reported)
    for words in ("docs = 3 ", "'snipets'", "no .*/y", "timeout = -1", "fences = 'some'", r"python\] x = \[1\]"):
        assert len([line for line in reported if re.search(words, line)]) == 1, (words, reported)
    assert len(reported) == 6


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "1.5"])
def test_a_number_of_pages_at_a_time_is_one_or_more(capsys: pytest.CaptureFixture[str], page: Path, jobs: str) -> None:
    for arguments in (["run"], ["record", "--host", "cpu"]):
        status, output = command(capsys, *arguments, f"-j{jobs}")
        assert status == 2 and f"argument -j/--jobs: '{jobs}' is not a number of pages, from 1" in output


def test_check_names_a_page_to_read_first_that_is_none(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    page.write_text("---\nbefore: [pages.md]\n---\n\n# T\n")
    (page.parents[1] / "pyproject.toml").write_text('[tool.livepages]\nguide = "course.guide:CourseGuide"\n')
    status, output = command(capsys, "check")
    assert status == 1 and "docs/page.md:2: before: pages.md is not a page of docs; did you mean 'page.md'?" in output


def test_a_new_page_passes_and_none_is_overwritten(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    new = page.parent / "basics" / "my-page.md"
    status, output = command(capsys, "new", str(new))
    assert status == 0 and "docs/basics/my-page.md is written" in output and "- basics/my-page.md" in output
    assert "\n# My page\n" in new.read_text()
    status, output = command(capsys, "run", str(new), "-v")
    assert status == 0 and "\n2\n" in output
    status, output = command(capsys, "new", str(new))
    assert status == 2 and "there is such a page already" in output
    status, output = command(capsys, "new", "elsewhere.txt")
    assert status == 2 and "name a Markdown file in" in output


def test_a_new_page_runs_where_only_fences_for_markdown_exec_do(
    capsys: pytest.CaptureFixture[str], page: Path, site: Site
) -> None:
    site.write("pyproject.toml", '[tool.livepages]\nfences = "exec"\n')
    site.write("mkdocs.yml", "site_name: T\nplugins: [markdown-exec, livepages]\n")
    command(capsys, "new", "docs/new.md")
    status, output = command(capsys, "run", "docs/new.md", "-v")
    assert status == 0 and "\n2\n" in output


def test_a_folder_stands_for_its_pages(capsys: pytest.CaptureFixture[str], page: Path, site: Site) -> None:
    site.write("docs/part/one.md", "# One\n\n```python\nprint(1)\n```\n")
    site.write("docs/part/words.md", "# Words\n")
    site.write("docs/empty/data.csv", "1\n")
    status, output = command(capsys, "run", "docs/part")
    assert status == 0 and "ran docs/part/one.md" in output and "docs/page.md" not in output
    assert "2 pages: 1 run" in output and "no block" not in output
    command(capsys, "record", "docs/part", "--host", "cpu")
    assert [file.name for file in (site.root / "records/cpu").rglob("*.yml")] == ["one.yml"]
    status, output = command(capsys, "run", "docs/empty")
    assert status == 2 and "docs/empty: there is no page in this folder" in output


def test_a_named_file_that_runs_nothing_is_not_passed_over(
    capsys: pytest.CaptureFixture[str], page: Path, site: Site
) -> None:
    site.write("docs/words.md", "# Words\n")
    assert "docs/words.md has no block that runs" in command(capsys, "run", "docs/words.md")[1]
    site.write("docs/code.py", "print(1)\n")
    status, output = command(capsys, "run", "docs/code.py")
    assert status == 2 and "docs/code.py: not a Markdown file" in output


def test_what_cannot_be_done_is_said_before_pages_run(
    capsys: pytest.CaptureFixture[str], page: Path, site: Site
) -> None:
    status, output = command(capsys, "record", "--host", "a/b")
    assert status == 2 and "'a/b' cannot be the name of a host" in output and "ran " not in output
    for folder in ("nowhere", "docs"):
        status, output = command(capsys, "export", folder)
        assert status == 2 and f"{folder}: holds no HTML of docs/page.md; build the site there first" in output
        assert "ran " not in output and not Path(folder, "assets").exists()


def test_what_cannot_be_written_or_deleted_is_named(capsys: pytest.CaptureFixture[str], page: Path, site: Site) -> None:
    site.write("docs/file", "")
    status, output = command(capsys, "new", "docs/file/new.md")
    assert status == 2 and "docs/file/new.md: cannot be written: " in output
    site.project.cache.parent.mkdir()
    site.project.cache.write_text("")
    status, output = command(capsys, "clean")
    assert status == 2 and f"{site.project.cache}: cannot be deleted: " in output


def test_a_failing_page_is_not_said_to_need_a_record(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    command(capsys, "record", "--host", "cpu")
    page.write_text(page.read_text().replace("print('hello')", "1 / 0"))
    status, output = command(capsys, "run")
    assert status == 1 and "ZeroDivisionError" in output and "out of date" not in output


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(capsys, "--version") == (0, f"livepages {version('livepages')}\n")


def test_output_that_is_no_longer_read_ends_a_command_without_a_traceback(page: Path) -> None:
    command = [sys.executable, "-m", "livepages", "run", "-v", str(page)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=HANG, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_an_interruption_of_a_command_that_begins_is_no_traceback(site: Site) -> None:
    slow = site.write("slow/argparse.py", "import time\nprint('importing', flush=True)\ntime.sleep(600)\n").parent
    with subprocess.Popen(
        [sys.executable, "-m", "livepages", "run"],
        cwd=site.root,
        env={**os.environ, **finding(slow)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  (a shell's & ignores it)
    ) as run:
        assert run.stdout and run.stdout.readline() == "importing\n"
        run.send_signal(signal.SIGINT)
        reported = run.communicate(timeout=HANG)[1]
    assert (run.returncode, reported) == (-signal.SIGINT, "")


def test_an_interrupted_run_keeps_what_has_ended_and_dies_of_the_signal(site: Site, page: Path) -> None:
    endless = site.write("docs/then.md", "# T\n\n```python\nwhile True:\n    pass\n```\n")
    command = [sys.executable, "-u", "-m", "livepages", "run", "-j1"]
    with subprocess.Popen(
        command,
        cwd=site.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  (a shell's & ignores it)
    ) as run:
        assert run.stdout and "ran docs/page.md" in run.stdout.readline()
        run.send_signal(signal.SIGINT)
        reported = run.communicate(timeout=HANG)[1]
    assert run.returncode == -signal.SIGINT
    assert reported == "livepages: interrupted; the runs of pages that had ended are kept\n"
    pages, _ = site.engine.read([page, endless])
    assert [path.name for path in site.engine.kept(pages)] == ["page.md"]
