"""Records: what they hold, when they stop holding, who compares with them, and what pages show of them."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
import yaml

from livepages import rendering
from livepages.course import read_course
from livepages.execution import Failure, Run, pair_results
from livepages.integrations.build import Build
from livepages.integrations.cli import main
from livepages.records import Comparison, Records, check_block, record
from livepages.records.check import Mismatch
from livepages.records.differences import Difference
from livepages.rendering import status
from livepages.source import Page, ProjectError
from livepages.worker import find_runtime, installed
from livepages.worker.processor import newest_instruction_set
from tests.conftest import Site

BLOCKS = (
    "x = 2.0\nprint('x is', x)",
    'raises="ValueError"\nraise ValueError("no such thing")',
    "import helper\nassert helper.y",
)
MANY = 'needs="gpus>=64"\nprint("many")'


@pytest.fixture(scope="module", autouse=True)
def described_once() -> Iterator[None]:
    """Describe this host once: it takes a process that imports JAX.

    The test at the end, whose record another process makes, asks again.
    """
    runtime = type(find_runtime("jax"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "describe", cache(runtime.describe))
        yield


@pytest.fixture
def recorded(site: Site) -> tuple[Site, Page, Run]:
    """A page of `BLOCKS`, recorded as ``cpu``."""
    site.write("snippets/helper.py", "y = 1\n")
    page, run = site.run(*BLOCKS)
    record(site.project, "cpu", [(page, run)])
    return site, page, run


def files(site: Site) -> dict[str, str]:
    return {file.name: file.read_text() for file in site.project.records.rglob("*.yml")}


def rename(site: Site, name: str, **about: object) -> None:
    """Make the record of cpu that of another host."""
    for file in [site.root / "records/cpu.yml", *(site.root / "records/cpu").rglob("*.yml")]:
        target = site.root / "records" / file.relative_to(site.root / "records").as_posix().replace("cpu", name, 1)
        target.parent.mkdir(exist_ok=True)
        file.rename(target)
    host = site.root / "records" / f"{name}.yml"
    host.write_text(yaml.safe_dump({**yaml.safe_load(host.read_text()), **about}))


def counts(records: Records, page: Page) -> list[int]:
    """Return how many hosts have a valid record of each block."""
    return [len(records.seen(page)(block)) for block in page.blocks]


def test_a_record_is_text_that_people_can_read(recorded: tuple[Site, Page, Run]) -> None:
    site, page, _ = recorded
    host, written = (yaml.safe_load(files(site)[name]) for name in ("cpu.yml", "page.yml"))
    assert (host["device"], host["count"], host["jax"]) == ("cpu", 1, installed("jax"))
    assert written["device"] == "cpu" and list(written["files"]) == ["snippets/helper.py"]
    first, second, third = written["blocks"]
    assert (first["outcome"], first["stdout"], first["code"]) == ("ran", "x is 2.0", "x = 2.0")
    assert (second["outcome"], second["error"]) == ("raised", "ValueError: no such thing")
    assert set(third) == {"key", "code", "outcome", "seconds"}
    assert [block["key"] for block in written["blocks"]] == [block.key[:16] for block in page.program]


def test_recording_again_changes_nothing(recorded: tuple[Site, Page, Run]) -> None:
    site, page, _ = recorded
    before = files(site)
    again = site.engine.run([page])[page.path]
    assert record(site.project, "cpu", [(page, again)]) == []
    assert files(site) == before


def test_what_is_volatile_stays_as_it_was_recorded(site: Site) -> None:
    page, run = site.run('volatile="on"\nimport os\nprint(os.getpid())')
    record(site.project, "cpu", [(page, run)])
    before = files(site)
    assert record(site.project, "cpu", [(page, site.engine.run([page])[page.path])]) == []
    assert files(site) == before


def test_one_changed_character_outdates_the_record_of_a_block_and_of_those_after_it(
    recorded: tuple[Site, Page, Run],
) -> None:
    site, page, _ = recorded
    changed = site.page(BLOCKS[0], BLOCKS[1].replace("no such", "no  such"), BLOCKS[2])
    records = Records(site.project)
    assert counts(records, page) == [1, 1, 1]
    assert counts(records, changed) == [1, 0, 0]
    assert records.outdated([changed])["cpu"] == list(changed.program[1:])
    moved = site.page(*BLOCKS, head="Other words.\n\n")
    assert counts(records, moved) == [1, 1, 1]


def test_a_changed_module_outdates_the_records_of_the_pages_that_import_it(
    recorded: tuple[Site, Page, Run],
) -> None:
    site, page, _ = recorded
    site.write("snippets/helper.py", "y = 2\n")
    assert counts(Records(site.project), page) == [0, 0, 0]


def test_a_failure_and_a_block_that_could_not_run_are_recorded_as_such(site: Site) -> None:
    page, run = site.run("print(1)", MANY, "1 / 0", "print(2)")
    record(site.project, "cpu", [(page, run)])
    first, third, second = yaml.safe_load(files(site)["page.yml"])["blocks"]
    assert first["outcome"] == "ran"
    assert (second["outcome"], second["error"]) == ("failed", "raised ZeroDivisionError: division by zero")
    assert third["outcome"] == "not run" and third["error"].startswith("needs gpus>=64; this host has")
    seen = [one for block in page.program for one in Records(site.project).seen(page)(block)]
    assert [one.entry.good for one in seen] == [True, False, False]
    # A block that did not run because another one failed has no record.
    assert Records(site.project).outdated([page])["cpu"] == [*page.program[2:]]


def test_a_host_keeps_its_name_for_itself(recorded: tuple[Site, Page, Run]) -> None:
    site, page, run = recorded
    here = Records(site.project).hosts[0]
    for other in ({"jax": "99.0"}, {"system": "Darwin arm64"}, {"instruction_set": "sve"}, {"device": "NVIDIA H200"}):
        rename(site, "new", **other)
        label = Records(site.project).host("new").label
        with pytest.raises(ProjectError, match=re.escape(f"new is {label}, and this is {here.label}: record it under")):
            record(site.project, "new", [(page, run)])
        record(site.project, "cpu", [(page, run)])
    with pytest.raises(ProjectError, match="cannot be the name of a host"):
        record(site.project, "../elsewhere", [(page, run)])


def test_records_of_pages_that_are_gone_are_orphans_until_the_next_recording(recorded: tuple[Site, Page, Run]) -> None:
    site, page, _ = recorded
    other, run = site.run("print(1)", name="other")
    page.path.unlink()
    assert Records(site.project).orphans([other]) == [site.root / "records/cpu/page.yml"]
    record(site.project, "cpu", [(other, run)])
    assert Records(site.project).orphans([other]) == []


def test_the_records_of_a_page_that_is_renamed_are_renamed_when_it_is_recorded(
    recorded: tuple[Site, Page, Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, page, _ = recorded
    monkeypatch.chdir(site.root)
    text = (site.root / "records/cpu/page.yml").read_text()
    for name, what in (
        ("gpu/page", text),
        ("gpu", (site.root / "records/cpu.yml").read_text()),
    ):
        site.write(f"records/{name}.yml", what)
    (site.root / "docs/part").mkdir()
    new = page.path.rename(site.root / "docs/part/new.md")
    names = "[page.md, nowhere.md, '[a].md']"
    new.write_text(f"---\nredirect_from: {names}\n---\n{new.read_text()}")

    def after_recording() -> list[str]:
        command(capsys, "record", "docs/part/new.md", "--host", "cpu")
        return sorted(
            file.relative_to(site.root / "records").as_posix() for file in site.root.glob("records/*/**/*.yml")
        )

    reported = "records/cpu/page.yml:1: is the record of a name that docs/part/new.md had; "
    assert f"{reported}`livepages record docs/part/new.md --host cpu` renames it" in command(capsys, "check")[1]
    site.write("docs/page.md", page.source)  # there is a page of the old name again
    assert after_recording() == ["cpu/page.yml", "cpu/part/new.yml", "gpu/page.yml"]
    (site.root / "docs/page.md").unlink()
    assert after_recording() == ["cpu/part/new.yml", "gpu/part/new.yml"]
    assert (site.root / "records/gpu/part/new.yml").read_text() == text
    assert Records(site.project).outdated([site.read(new)]) == {"cpu": [], "gpu": []}
    # Where both are there, the old one of another host may be the better one.
    for host in ("cpu", "gpu"):
        site.write(f"records/{host}/page.yml", text)
    assert after_recording() == ["cpu/part/new.yml", "gpu/page.yml", "gpu/part/new.yml"]


def test_a_page_recorded_alone_names_its_instruction_set_where_it_is_not_its_host_s(
    recorded: tuple[Site, Page, Run],
) -> None:
    site, page, run = recorded
    own = Records(site.project).hosts[0].instruction_set
    rename(site, "cpu", instruction_set="sve")
    record(site.project, "cpu", [(page, run)], partial=True)
    assert yaml.safe_load(files(site)["cpu.yml"])["instruction_set"] == "sve"
    assert yaml.safe_load(files(site)["page.yml"])["instruction_set"] == own
    records = Records(site.project)
    [seen] = records.seen(page)(page.blocks[0])
    assert (seen.host.instruction_set, seen.host) == (own, records.hosts[0])
    rename(site, "cpu", instruction_set=own)
    record(site.project, "cpu", [(page, run)], partial=True)
    assert "instruction_set" not in yaml.safe_load(files(site)["page.yml"])


def test_recording_again_adds_the_instruction_set_to_a_record_without_one(recorded: tuple[Site, Page, Run]) -> None:
    site, page, run = recorded
    before = files(site)
    rename(site, "cpu", instruction_set="")
    assert files(site) != before
    record(site.project, "cpu", [(page, run)])
    assert files(site) == before


CONFLICT = "<<<<<<< HEAD\ndevice: cpu\n=======\ndevice: gpu\n>>>>>>> other\n"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (CONFLICT, 1, "a merge has left both its versions here"),
        ("- 1\n", 1, "is not a mapping"),
        ("device: cpu\nfiles: [\n", 3, "did not find expected node content"),
        ("device: cpu\n", 1, ""),
        ("device: 2026-13-01\n", 1, "month must be in 1..12"),
        ("device: cpu\njax: 0.12\nfiles: []\nblocks: []\n", 1, ""),
        ("device: cpu\nfiles: {}\nblocks: [5]\n", 1, ""),
        ("device: cpu\nfiles: {}\nblocks: [{key: a, outcome: maybe}]\n", 1, ""),
        ("device: cpu\nfiles: {}\nblocks: [{key: a, outcome: ran, stdout: 5}]\n", 1, ""),
        ("device: cpu\nfiles: {}\nblocks: [{key: a, outcome: ran, stdin: a}]\n", 1, ""),
    ],
)
@pytest.mark.parametrize("name", ["cpu.yml", "cpu/page.yml"])
def test_a_record_that_cannot_be_read_is_one_failure_and_is_written_anew(
    name: str, text: str, line: int, why: str, recorded: tuple[Site, Page, Run]
) -> None:
    site, page, run = recorded
    before = files(site)
    site.write(f"records/{name}", text)
    records = Records(site.project)
    assert records.of(page) == [] and not any(counts(records, page))
    (failure,) = records.problems([page])
    assert str(failure).startswith(f"records/{name}:{line}: the record cannot be read: {why}")
    assert "write it anew with `livepages record --host cpu`" in failure.message
    record(site.project, "cpu", [(page, run)])
    assert files(site) == before and not Records(site.project).problems([page])


def test_everything_that_reads_records_names_the_one_it_cannot_read(
    recorded: tuple[Site, Page, Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = recorded[0]
    monkeypatch.chdir(site.root)
    site.write("records/cpu/page.yml", CONFLICT)
    build = Build(site.engine)
    build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
    (failure,) = build.failures
    assert str(failure).startswith("records/cpu/page.yml:1: ")
    for arguments in (["check"], ["compare", "cpu", "cpu"], ["run"]):
        status_, output = command(capsys, *arguments)
        assert status_ == 1 and output.count("records/cpu/page.yml:1: the record cannot be read") == 1
    site.write("records/cpu.yml", CONFLICT)
    with pytest.raises(SystemExit) as ended:
        main(["compare", "cpu", "cpu"])
    assert ended.value.code == 2 and "records/cpu.yml:1: the record cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("code", ["", "# Nothing.", "raise ValueError('\\ud800 \\x1b[1m \\x00')"])
def test_any_block_can_be_recorded(site: Site, code: str) -> None:
    page, run = site.run("x = 1", f'raises="ValueError"\n{code}' if "raise" in code else code)
    record(site.project, "cpu", [(page, run)])
    assert not Records(site.project).problems([page])
    assert counts(Records(site.project), page) == [1, 1]


def test_a_record_is_deleted_with_its_page_and_not_before(
    recorded: tuple[Site, Page, Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that cannot be read, is left out of the site, or is a link to nowhere, keeps its record."""
    site, page, _ = recorded
    monkeypatch.chdir(site.root)
    folder = site.root / "records/cpu"
    text = page.path.read_text()
    for name in ("typo", "left-out", "bytes", "gone", "v0.4", "emptied", "linked/page"):
        site.write(f"records/cpu/{name}.yml", (folder / "page.yml").read_text())
    site.write("docs/typo.md", '# T\n\n```python colour="red"\n```\n')
    site.write("docs/left-out.md", text)
    (site.root / "docs/bytes.md").write_bytes(b"# T\n\n\xff\n")
    site.write("docs/v0.4.markdown", "# T\n\n```python oops\n```\n")
    site.write("docs/emptied.md", "# T\n")
    site.write("elsewhere/page.md", "```python oops\n```\n")
    (site.root / "docs/linked").symlink_to("../elsewhere")
    site.write("mkdocs.yml", "exclude_docs: left-out.md\n")
    status_, output = command(capsys, "check")
    for name in ("gone", "emptied"):
        assert f"records/cpu/{name}.yml:1: is the record of no page" in output
    assert output.count("is the record of no page") == 2
    status_, output = command(capsys, "record", "--host", "cpu")
    assert status_ == 1 and "docs/typo.md:3: unknown option 'colour'" in output
    kept = {file.relative_to(folder).as_posix() for file in folder.rglob("*.yml")}
    assert kept == {f"{name}.yml" for name in ("page", "typo", "left-out", "bytes", "v0.4", "linked/page")}


def test_a_record_that_cannot_be_written_is_reported_and_stays_as_it_was(
    recorded: tuple[Site, Page, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, page, run = recorded
    site.write("records/cpu/page.yml", CONFLICT)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda old, new: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(ProjectError, match=r"page\.yml: cannot be written: No space left on device"):
            record(site.project, "cpu", [(page, run)])
    assert (site.root / "records/cpu/page.yml").read_text() == CONFLICT
    assert not list((site.root / "records").rglob(".*"))


def test_what_needs_a_device_that_no_host_has_shown_is_listed(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.root)
    page, run = site.run("print(1)", MANY)
    status_, output = command(capsys, "check")
    line = "docs/page.md:7: runs only on some hosts, and none of them has recorded it\n"
    assert status_ == 0 and line in output
    record(site.project, "cpu", [(page, run)])
    assert line in command(capsys, "check")[1]
    file = site.root / "records/cpu/page.yml"
    file.write_text(file.read_text().replace("not run", "ran"))
    assert line not in command(capsys, "check")[1]


def test_blocks_of_one_include_are_recorded_each_by_itself(site: Site) -> None:
    site.write("snippets/two.md", "```python\nprint('first')\n```\n\n```python\nprint('second')\n```\n")
    page = site.read(site.write("docs/page.md", '--8<-- "two.md"\n'))
    record(site.project, "cpu", [(page, site.engine.run([page])[page.path])])
    seen = Records(site.project).seen(page)
    assert [[one.entry.stdout for one in seen(block)] for block in page.program] == [["first"], ["second"]]


# --- compared ------------------------------------------------------------------------------------------------------


def test_an_outcome_must_equal_the_record_of_its_kind(recorded: tuple[Site, Page, Run]) -> None:
    site, page, run = recorded
    assert compared(site, page, run) is None
    edit(site, "x is 2.0", "x is 3.0")
    found = compared(site, page, run)
    assert isinstance(found, Failure) and found.line == page.blocks[0].line
    label = Records(site.project).hosts[0].label
    assert label == f"cpu, jax {installed('jax')}, {run.computer}"
    assert (
        found.detail
        == f"the record of cpu ({label}) differs; numbers, by 1 at most, relative 0.33:\n-x is 3.0\n+x is 2.0"
    )


@pytest.mark.parametrize(
    "about",
    [
        {"instruction_set": "avx1024"},
        {"instruction_set": ""},  # recorded before there was this field
        {"system": "Darwin arm64"},
        {"jax": "0.4.1"},
    ],
)
def test_a_difference_from_a_record_of_another_kind_only_informs(
    recorded: tuple[Site, Page, Run], about: dict[str, str]
) -> None:
    site, page, run = recorded
    rename(site, "other", **about)
    assert compared(site, page, run) is None
    edit(site, "x is 2.0", "x is 3.0", "other")
    found = compared(site, page, run)
    assert isinstance(found, Mismatch) and found.host.name == "other"
    record(site.project, "cpu", [(page, run)])  # and now there is one of this kind, which decides
    assert compared(site, page, run) is None


def test_the_nearest_record_is_of_the_same_device_and_release(recorded: tuple[Site, Page, Run]) -> None:
    site, page, run = recorded
    rename(site, "old", jax="0.4.1")
    record(site.project, "cpu", [(page, run)])
    rename(site, "near", instruction_set="avx1024")
    edit(site, "x is 2.0", "x is 3.0", "near")
    found = compared(site, page, run)
    assert isinstance(found, Mismatch) and found.host.name == "near"
    edit(site, "x is 2.0", "x is 3.0", "old")
    (site.root / "records/near.yml").unlink()
    found = compared(site, page, run)
    assert isinstance(found, Mismatch) and found.host.name == "old"


def test_of_an_accelerator_the_kind_of_computer_does_not_matter(recorded: tuple[Site, Page, Run]) -> None:
    site, page, run = recorded
    edit(site, "x is 2.0", "x is 3.0")
    edit(site, "device: cpu", "device: NVIDIA H200")
    for device, same in (("NVIDIA H200", True), ("NVIDIA H100", False), ("cpu", False)):
        found = compared(site, page, replace(run, device=device, computer="Linux aarch64 neon"))
        assert isinstance(found, Failure if same else Mismatch)


def compared(site: Site, page: Page, run: Run) -> Failure | Mismatch | None:
    """Return how the first block of a run differs from the records."""
    return check_block(run.results[0], run, Records(site.project).seen(page)(page.blocks[0]), find_runtime("jax"))


def edit(site: Site, old: str, new: str, host: str = "cpu") -> None:
    """Change what the record of a host says of the page."""
    file = site.root / f"records/{host}/page.yml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("listed", "newest"),
    [
        ("flags\t\t: fpu sse2 sse4_2 avx f16c avx2 fma avx512f avx512_bf16\nbugs\t\t: none\n" * 2, "avx512"),
        ("flags\t\t: fpu sse2 sse4_2 avx f16c avx2 fma\n", "avx2"),
        ("flags\t\t: fpu sse4_2 avx\nvmx flags\t: avx2\n", "avx"),
        ("flags\t\t: fpu sse2 sse4_1 sse4_2\n", "sse4.2"),
        ("flags\t\t: fpu sse2\n", ""),
        ("Features\t: fp asimd evtstrm sve sve2\n", "sve"),
        ("Features\t: fp asimd evtstrm\n", "neon"),
        ("isa\t\t: rv64imafdcv\n", ""),
        ("hw.optional.sse4_2: 1\nhw.optional.avx1_0: 1\nhw.optional.avx2_0: 1\nhw.optional.avx512f: 0\n", "avx2"),
        ("hw.optional.floatingpoint: 1\nhw.optional.neon: 1\nhw.optional.neon_hpfp: 1\n", "neon"),
        ("", ""),
    ],
)
def test_the_instruction_set_is_the_newest_that_the_system_lists(listed: str, newest: str) -> None:
    assert newest_instruction_set(listed) == newest


X86, ARM = "flags: sse4_2 avx avx2 avx512f\n", "Features: asimd sve\n"


@pytest.mark.parametrize(
    ("listed", "flags", "used"),
    [
        (X86, "", "avx512"),
        (X86, "--xla_cpu_max_isa=AVX2", "avx2"),
        (X86, "--xla_cpu_max_isa=AVX --xla_cpu_max_isa=sse4_2", "sse4.2"),
        (X86, "--xla_cpu_max_isa=AVX512_VNNI", "avx512"),
        (X86, "--xla_cpu_max_isa=unknown", "avx512"),
        (ARM, "", "neon"),  # by default, XLA doesn't use SVE
        (ARM, "--xla_cpu_max_isa=SVE", "sve"),
    ],
)
def test_jax_may_stop_at_an_older_instruction_set(
    listed: str, flags: str, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert newest_instruction_set(listed, find_runtime("jax").newest_used()) == used


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code, capsys.readouterr().out


def test_the_command_line_records_checks_and_compares(
    capsys: pytest.CaptureFixture[str], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.root)
    path = site.write("docs/page.md", "# T\n\n```python\nprint(1.5)\n```\n\nWords.\n\n```python\nprint('a')\n```\n")
    assert command(capsys, "record", "--host", "cpu")[0] == 0
    assert "2 of 2 on cpu, 1 version" in (site.root / "records/status.svg").read_text()
    assert command(capsys, "check") == (
        0,
        "1 page, 2 Python blocks, 0 of them not run\ncpu: 0 blocks without an up-to-date record\n",
    )
    assert command(capsys, "record", "--host", "cpu")[1].endswith("1 page: 0 files of records changed\n")
    assert command(capsys, "record", "--host", "new", "--into", "elsewhere")[0] == 0
    reported = site.root / "elsewhere/new/page.yml"
    reported.write_text(reported.read_text().replace("1.5", "1.25").replace("stdout: a", "stdout: b"))
    status_, output = command(capsys, "compare", "cpu", "elsewhere/new")
    assert status_ == 0 and output.splitlines()[0].endswith("2 blocks ran on both, 2 differ, 0 ran on one alone")
    assert "numbers: 1 block\n  docs/page.md:3, by 0.25 at most, relative 0.17\n    -1.5\n    +1.25\n" in output
    assert "“a” → “b”: 1 block\n  docs/page.md:9\n    -a\n    +b\n" in output
    assert command(capsys, "compare", "cpu", "elsewhere/new", "--markdown")[1] == (
        output.partition("\n")[0] + "\n\n<details><summary><code>docs/page.md</code>: 2 blocks</summary>\n\n```diff\n"
        "@@ docs/page.md:3: numbers, by 0.25 at most, relative 0.17 @@\n-1.5\n+1.25\n"
        "@@ docs/page.md:9: “a” → “b” @@\n-a\n+b\n```\n\n</details>\n"
    )

    path.write_text(path.read_text().replace("'a'", "'b'"))
    site.write("docs/gone.md", "# G\n\n```python\n```\n").unlink()
    site.write("records/cpu/gone.yml", reported.read_text())
    status_, output = command(capsys, "check")
    assert status_ == 1
    assert "docs/page.md:9: block of line 9: has no up-to-date record on cpu" in output
    assert "records/cpu/gone.yml:1: is the record of no page" in output
    with pytest.raises(SystemExit) as ended:
        main(["compare", "cpu", "nowhere"])
    assert ended.value.code == 2 and "holds no record of 'nowhere'; there are those of cpu" in capsys.readouterr().err


def test_a_report_in_markdown_is_short_and_holds_whatever_was_printed(recorded: tuple[Site, Page, Run]) -> None:
    site, page, _ = recorded
    host = Records(site.project).host("cpu")
    difference = Difference("“a” → “b”", "\n".join(["-````", *(f"+{number}" for number in range(99))]))
    report = Comparison(host, host, 7, (((page, page.program[0]), difference),), 0).markdown.splitlines()
    assert report[0].endswith("8 blocks ran on both, 1 differ, 0 ran on one alone")
    assert report[4] == "`````diff" and report[-3] == "`````"  # a fence that the output does not close
    assert report[6:8] == ["-````", "+0"] and report[-5:-3] == ["+18", " and 80 more lines"]


def test_a_failing_page_is_recorded_and_reported_and_the_others_too(
    capsys: pytest.CaptureFixture[str], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.root)
    site.write("docs/bad.md", "# T\n\n```python\nimport os\nos._exit(3)\n```\n")
    site.write("docs/good.md", "# T\n\n```python\nprint(1)\n```\n")
    code, output = command(capsys, "record", "--host", "cpu")
    assert code == 1 and "docs/bad.md:3" in output
    reported = files(site)
    assert "outcome: failed" in reported["bad.yml"] and "outcome: ran" in reported["good.yml"]


def test_one_page_is_recorded_without_a_change_of_others(
    capsys: pytest.CaptureFixture[str], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.root)
    site.write("pyproject.toml", "[tool.livepages]\n")
    for name in ("a", "b", "gone"):
        site.write(f"docs/{name}.md", "# T\n\n```python\nprint(1)\n```\n")
    assert command(capsys, "record", "--host", "cpu")[0] == 0
    before = files(site)
    site.write("docs/a.md", "# T\n\n```python\nprint(2)\n```\n")
    site.write("docs/b.md", "# T\n\n```python\nprint(3)\n```\n")
    (site.root / "docs/gone.md").unlink()
    assert command(capsys, "record", "--host", "cpu", "docs/a.md")[1].endswith("1 page: 1 file of records changed\n")
    after = files(site)
    assert "stdout: '2'" in after["a.yml"]
    assert {**after, "a.yml": before["a.yml"]} == before
    assert "1 of 2 on " in (site.root / "records/status.svg").read_text()
    with pytest.raises(SystemExit):
        main(["record", "--host", "cpu", "docs/none.md"])
    assert "docs/none.md: no such page" in capsys.readouterr().err
    host = site.root / "records/cpu.yml"
    host.write_text(re.sub("(?m)^python: .*", "python: 3.10.0", host.read_text()))
    with pytest.raises(SystemExit):
        main(["record", "--host", "cpu", "docs/a.md"])
    assert "record all pages, not only some" in capsys.readouterr().err


def test_checking_records_does_not_import_jax(recorded: tuple[Site, Page, Run]) -> None:
    site = recorded[0]
    code = "import sys\nsys.modules['jax'] = None\nfrom livepages.integrations.cli import main\nmain(['check'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=site.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_build_and_the_command_line_fail_as_the_tests_do_where_an_output_differs(
    recorded: tuple[Site, Page, Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, page, _ = recorded
    monkeypatch.chdir(site.root)
    assert command(capsys, "run", str(page.path))[0] == 0
    edit(site, "x is 2.0", "x is 3.0")
    reported = (
        f"{page.name}:{page.blocks[0].line}: block of line {page.blocks[0].line}: the output differs from the record"
    )
    status_, output = command(capsys, "run")
    assert status_ == 1 and reported in output and "-x is 3.0" in output
    build = Build(site.engine)
    build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
    assert [str(failure).partition(";")[0] for failure in build.failures] == [reported]


def test_pytest_shows_what_differs_from_the_record_at_page_and_line(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.livepages]\n")
    page = pytester.mkdir("docs") / "page.md"
    page.write_text("# Page\n\n```python\nprint(1.5)\n```\n\n```python\nprint('said')\n```\n")
    command = [sys.executable, "-m", "livepages", "record", "--host", "cpu"]
    subprocess.run(command, cwd=pytester.path, check=True, capture_output=True)
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "docs").assert_outcomes(passed=2)
    reported = pytester.path / "records/cpu/page.yml"
    reported.write_text(reported.read_text().replace("said", "sung"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "docs")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*docs/page.md:7: block of line 7: the output differs from the record*", "*-sung*", "*+said*"]
    )


# --- on the page ----------------------------------------------------------------------------------------------------


def shown(site: Site, page: Page, run: Run) -> str:
    return "\n".join(rendering.page_lines(page, run, find_runtime("jax"), Records(site.project).seen(page), str))


def test_a_block_names_the_hosts_that_have_run_it_and_after_an_edit_none(recorded: tuple[Site, Page, Run]) -> None:
    site, page, run = recorded
    assert shown(site, page, run).count("<summary>details</summary>") == 3
    assert shown(site, page, run).count(f"Last recorded: cpu, jax {installed('jax')}, on 2") == 3
    edited, again = site.run(BLOCKS[0], BLOCKS[1] + " ", BLOCKS[2])
    assert shown(site, edited, again).count("Last recorded: ") == 1
    assert shown(site, edited, again).count("<summary>details</summary>") == 3


def test_outputs_of_other_hosts_are_shown_where_they_differ(recorded: tuple[Site, Page, Run]) -> None:
    site, page, run = recorded
    assert "live-elsewhere" not in shown(site, page, run)
    rename(site, "old", jax="0.4.1")
    assert "live-elsewhere" not in shown(site, page, run)
    file = site.root / "records/old/page.yml"
    file.write_text(file.read_text().replace("x is 2.0", "x is <3.0"))
    found = re.findall(r"<summary>(.*?)</summary><pre><code>(.*?)</code>", shown(site, page, run))
    assert found == [("jax 0.4.1 (cpu)", "x is &lt;3.0")]


def test_where_time_is_the_point_other_hosts_are_always_shown(site: Site) -> None:
    page, run = site.run('volatile="on"\nprint("1 s")')
    record(site.project, "cpu", [(page, run)])
    assert "live-elsewhere" not in shown(site, page, run)  # this very host
    rename(site, "old", jax="0.4.1")
    assert "<summary>jax 0.4.1 (cpu)</summary><pre><code>1 s</code>" in shown(site, page, run)


def test_what_cannot_run_here_is_shown_from_the_newest_record_with_a_note(site: Site) -> None:
    page, run = site.run("print(1)", MANY)
    assert "Not run here: needs gpus&gt;=64" in shown(site, page, run)
    record(site.project, "cpu", [(page, run)])
    file = site.root / "records/cpu/page.yml"
    reported = yaml.safe_load(file.read_text())
    reported["blocks"][1] |= {"outcome": "ran", "stdout": "many\nmore"}
    file.write_text(yaml.safe_dump({**reported, "device": "NVIDIA H200"}))
    rename(site, "gpus", device="NVIDIA H200", jax="0.11.2", day="2026-11-20")
    text = shown(site, page, run)
    assert "This output was recorded on NVIDIA H200, jax 0.11.2, on 2026-11-20:" in text and "many\nmore" in text


def results(site: Site, page: Page, run: Run) -> list[str]:
    """The result of each block as it is shown, class first, without the small print."""
    return [
        part.partition('<details class="live-small')[0]
        for part in shown(site, page, run).split('<div class="live-result')[1:]
    ]


def test_until_a_block_has_run_its_record_is_shown_with_a_note(site: Site) -> None:
    blocks = (
        "print('a <' + 'b')\nimport sys\nprint('hint', file=sys.stderr)",
        'raises="KeyError"\n{}["k"]',
        'volatile="on"\nprint("1 s")',
        'html="on"\nprint("<b>bold</b>")',
        'alt="A line."\nimport matplotlib.pyplot as plt\n_ = plt.plot([1, 2])',
        "quiet = 1",
        'source="none"\nassert quiet',
    )
    page, run = site.run(*blocks)
    record(site.project, "cpu", [(page, run)])
    waits = Run(pair_results(page))
    text, error, volatile, markup, figure, quiet = results(site, page, waits)
    output = f"Running … This output was recorded on {recorded_label(site)}:</p>"
    assert text.startswith(" live-recorded") and output in text and 'data-live-pending="docs/page.md:3"' in text
    assert re.findall(r"live-(std\w+).*?<code>([^<]*)", text) == [("stdout", "a &lt;b"), ("stderr", "hint")]
    assert output in error and "<strong>KeyError</strong>: &#x27;k&#x27;" in error
    assert output in volatile and "<code>1 s</code>" in volatile
    assert ">Running …</p></div>" in markup and "bold" not in markup
    assert ">Running … The figure appears when the page has run.</p></div>" in figure
    assert quiet.startswith(" live-silent") and ">Running …</p></div>" in quiet

    # What has run by now is shown instead, and a record of other code is not.
    half = results(site, page, Run(pair_results(page, run.outcomes[:1])))
    assert (
        "a &lt;b" in half[0]
        and "Running" not in half[0]
        and "recorded on" not in half[0]
        and half[1:]
        == [
            error,
            volatile,
            markup,
            figure,
            quiet,
        ]
    )
    edited = results(site, site.page("print('a <' + 'c')", *blocks[1:]), waits)
    assert len(edited) == 7 and all(re.match(r'" .*>Running …</p></div>', result) for result in edited)


def recorded_label(site: Site) -> str:
    host = Records(site.project).hosts[0]
    return f"{host.device}, {host.release}, on {host.day}"


def test_a_page_that_is_running_does_not_claim_that_all_its_outputs_are_its_own(
    recorded: tuple[Site, Page, Run],
) -> None:
    _, page, run = recorded
    output = "Every output on this page was produced by the code above it, with jax 1 on cpu."
    assert output in rendering.stamp(run, "jax 1", "live-page.ipynb")
    waits = rendering.stamp(replace(run, results=pair_results(page, run.outcomes[:2])), "jax 1", "live-page.ipynb")
    assert "Every output" not in waits and "its recorded output is shown" in waits


def test_the_record_that_is_shown_is_the_nearest(site: Site) -> None:
    page, run = site.run("print('here')")
    waits = replace(run, results=pair_results(page))
    for name, about in (("old", {"jax": "0.4.1"}), ("other", {"instruction_set": "avx1024"}), ("near", {})):
        record(site.project, "cpu", [(page, run)])
        rename(site, name, **about)
        edit(site, "stdout: here", f"stdout: {name}", name)
        assert f"<code>{name}</code>" in shown(site, page, waits)


def test_the_status_page_counts_what_is_recorded(recorded: tuple[Site, Page, Run]) -> None:
    site, page, run = recorded
    rename(site, "old", jax="0.4.1")
    file = site.root / "records/old/page.yml"
    file.write_text(file.read_text().replace("x is 2.0", "x is 3.0"))
    record(site.project, "cpu", [(page, run)])

    def reported(*pages: Page) -> str:
        records = Records(site.project)
        return "\n".join(status.lines(page, ["# S", status.STATUS], pages, records, "Built.", lambda page, block: "a"))

    text = reported(page)
    assert "Built." in text and "| host | cpu | old |" in text
    assert "| blocks with an up-to-date record | 3 of 3 | 3 of 3 |" in text
    assert (
        '| [Page](page.md) | <span class="live-good">3 of 3</span> | <span class="live-good">3 of 3</span>, 1 differs |'
        in text
    )
    assert "- numbers: [page:3](page.md#a)" in text
    edited = site.page(BLOCKS[0], BLOCKS[1] + " ", BLOCKS[2])
    assert '<span class="live-outdated">1 of 3</span>' in reported(edited)
