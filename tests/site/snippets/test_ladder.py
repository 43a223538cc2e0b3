"""Old idioms on each release: the record, running, and what readers see of both."""

import ast
from copy import deepcopy
from pathlib import Path

import ladder
import pytest
from ladder import Column, Record, Release, Seen
from ladder_page import End, Ladder

IDIOMS = [
    ladder.Idiom(
        "jax.old<", "jax", "jax.old<", "jax.new", "Use `jax.new` & be glad.", deprecated="0.9.3", removed="0.10.4"
    ),
    ladder.Idiom("jax.gone", "jax", "jax.gone"),
]
BEHAVIORS = [ladder.Behavior("a | b", "numbers", "'1'"), ladder.Behavior("same", "numbers", "'1'")]


def column(old: str, text: str = "", gone: str = "fails", shows: str = "1", new: str = "runs") -> Column:
    """Return the column of a release that treats jax.old like this."""
    return Column(
        {"jax.old<": Seen(old, text), "jax.gone": Seen(gone, "E: gone")},
        {"jax.old<": Seen(new)},
        {"a | b": Seen("runs", shows), "same": Seen("runs", "0")},
    )


LIVES = {
    "0.9": column("runs", new="fails"),
    "0.10": column("warns", "DeprecationWarning: soon"),
    "0.11": column("fails", "AttributeError: use jax.new", shows="2"),
    "0.12": column("fails", "AttributeError: no attribute", shows="2"),
}


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """A record of four releases and two idioms, in a file of its own."""
    monkeypatch.setattr(ladder, "RECORD", tmp_path / "ladder.json")
    for module in ("ladder", "ladder_page"):
        monkeypatch.setattr(f"{module}.idioms", lambda: IDIOMS)
        monkeypatch.setattr(f"{module}.behaviors", lambda: BEHAVIORS)
    record = Record()
    for name in ("0.12", "0.9", "0.11", "0.10"):
        record.put(Release(name, "2026-01-01", "2026-11-21", "3.11.7"), deepcopy(LIVES[name]))
    return record


@pytest.fixture
def versions(record: Record) -> Ladder:
    return Ladder(record, LIVES["0.12"], "0.12")


def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    record.save()
    again = Record()
    assert (again.releases, again.columns) == (record.releases, record.columns)
    assert [release.name for release in again.releases] == ["0.9", "0.10", "0.11", "0.12"]


def test_a_column_put_again_replaces_the_first(record: Record) -> None:
    record.put(Release("0.10", "2026-01-01", "2026-11-22", "3.12.1"), LIVES["0.9"])
    record.save()
    assert Record().columns["0.10"] == LIVES["0.9"]
    assert len(Record().releases) == 4


def test_the_committed_record_is_what_would_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, text = Record(), ladder.RECORD.read_text(encoding="utf-8")
    monkeypatch.setattr(ladder, "RECORD", tmp_path / "ladder.json")
    record.save()
    assert (tmp_path / "ladder.json").read_text(encoding="utf-8") == text


def test_the_committed_record_has_every_idiom_and_behavior() -> None:
    names = [idiom.name for idiom in ladder.idioms()]
    anchors = {idiom.anchor for idiom in ladder.idioms()}
    assert len(names) == len(set(names)) == len(anchors)
    for release, column in Record().columns.items():
        assert set(column.old) == set(names), release
        assert set(column.new) == {idiom.name for idiom in ladder.idioms() if idiom.new}, release
        assert set(column.behaviors) == {behavior.name for behavior in ladder.behaviors()}, release


def test_the_change_log_and_the_record_agree() -> None:
    """A version that the change log names lies between the recorded releases that show the change."""
    record = Record()
    newest = record.releases[-1].name
    versions = Ladder(record, record.columns[newest], newest)
    wrong = []
    for idiom in ladder.idioms():
        verdicts = dict(zip(versions.releases, versions.verdicts(idiom.name)))
        alive = [release for release, verdict in verdicts.items() if verdict in ("runs", "warns")]
        warns = [release for release, verdict in verdicts.items() if verdict == "warns"]
        since = versions.new_since(idiom.name)
        bounds = [
            (alive[-1:], idiom.removed, _next(versions.releases, alive[-1]) if alive else versions.releases[0]),
            ([], idiom.deprecated, warns[0] if warns else ""),
            (versions.releases[: versions.releases.index(since)][-1:] if since else [], idiom.added, since),
        ]
        for before, stated, seen in bounds:
            early = bool(before) and ladder.number(stated) <= ladder.number(before[0])
            if stated and seen and (early or ladder.number(stated) > ladder.number(seen)):
                wrong.append((idiom.name, before, stated, seen))
    assert wrong == []


def _next(releases: list[str], release: str) -> str:
    return (releases + ["0"])[releases.index(release) + 1]


def test_releases_are_ordered_by_number() -> None:
    releases = ["0.4.13", "0.9.2", "0.10.2", "0.12.0", "0.12.0.1"]
    assert sorted(releases[::-1], key=ladder.number) == releases


@pytest.mark.parametrize(
    ("end", "text", "verdict"),
    [
        ("runs", "", "runs"),
        ("warns", "DeprecationWarning: use the new one", "warns"),
        ("fails", "AttributeError: module 'jax' has no attribute 'tree_map'", "fails"),
        ("fails", "AttributeError: jax.tree_map was removed: use jax.tree.map", "hints"),
        ("fails", "ValueError: To recover this behavior, call it twice", "hints"),
        ("fails", "TypeError: This typically means that a jit-wrapped function was called by using …", "fails"),
    ],
)
def test_a_verdict_is_of_the_end_and_the_message(end: str, text: str, verdict: str) -> None:
    assert Seen(end, text).verdict == verdict


def test_code_runs_apart_from_other_code() -> None:
    programs = [
        ["jax.config.update('jax_enable_x64', True)", "import os\nos.environ['JAX_HERE'] = '1'\njax.HERE = 1"],
        ["str((jax.config.jax_enable_x64, hasattr(jax, 'HERE'), 'JAX_HERE' in __import__('os').environ))"],
        ["x = 1", "x"],
        [
            "import warnings\nwarnings.warn('now', FutureWarning)",
            "import warnings\nwarnings.warn('now', FutureWarning)",
        ],
        ["print('x' * 100_000)\n'done'"],
        ["import os\nos._exit(3)", "1"],
        ["raise KeyError(object())"],
        ["jnp.ones(2).sum()", "jax.default_backend()"],
    ]
    ran = ladder.run(programs)
    assert ran[0] == [Seen("runs"), Seen("runs")]
    assert ran[1] == [Seen("runs", "(False, False, False)")]
    assert ran[2] == [Seen("runs"), Seen("fails", "NameError: name 'x' is not defined")]
    assert ran[3] == [Seen("warns", "FutureWarning: now")] * 2
    assert ran[4] == [Seen("runs", "done")]
    assert ran[5] == [Seen("fails", "the process ended with 3")] * 2
    assert ran[6] == [Seen("fails", "KeyError: <object object>")]
    assert ran[7] == [Seen("runs"), Seen("runs", "cpu")]


def test_a_recorded_release_must_do_what_is_recorded(record: Record) -> None:
    with pytest.raises(AssertionError, match=r"jax.old< \(old\): recorded fails, now runs(.|\n)*ladder.py"):
        Ladder(record, column("runs", shows="2"), "0.12")
    with pytest.raises(AssertionError, match=r"a \| b \(behaviors\): recorded 2, now 3"):
        Ladder(record, column("fails", shows="3"), "0.12")
    with pytest.raises(AssertionError, match="jax.old<: what to write fails"):
        record.columns["0.12"].new["jax.old<"] = Seen("fails")
        Ladder(record, column("fails", shows="2", new="fails"), "0.12")


def test_another_wording_is_no_difference(record: Record) -> None:
    Ladder(record, column("fails", "AttributeError: other words", shows="2"), "0.12")


def test_a_release_that_is_not_recorded_stands_beside_the_others(record: Record) -> None:
    versions = Ladder(record, column("runs", shows="3", new="fails"), "0.13")
    assert versions.releases == ["0.9", "0.10", "0.11", "0.12", "0.13"]
    assert versions.verdicts("jax.old<") == ["runs", "warns", "hints", "fails", "runs"]
    assert "On this release that gives" in versions.rows("jax")
    assert versions.fate("jax.old<") == "Last seen in 0.10, gone by 0.11, back by 0.13"


def test_a_life_in_words(versions: Ladder) -> None:
    assert versions.fate("jax.old<") == "Last seen in 0.10, gone by 0.11"
    assert versions.fate("jax.gone") == "Fails on every sampled release, from 0.9 on"
    assert versions.ends() == [End("jax.old<", "0.10", "0.11", "0.11")]
    assert versions.new_since("jax.old<") == "0.10"


def test_a_name_that_came_and_went(record: Record) -> None:
    for name in ("0.10", "0.11"):
        record.columns[name].old["jax.gone"] = Seen("runs")
    versions = Ladder(record, LIVES["0.12"], "0.12")
    assert versions.verdicts("jax.gone") == ["absent", "runs", "runs", "fails"]
    assert versions.fate("jax.gone") == "First seen in 0.10, last seen in 0.11, gone by 0.12"
    assert End("jax.gone", "", "0.12", "") in versions.ends()


def test_a_row_holds_all_there_is_to_know(versions: Ladder) -> None:
    rows = versions.rows("jax")
    assert '<h3 id="old-jax.old" data-seen="▇▅▃▁"><code>jax.old&lt;<' in rows
    assert "jax.old&lt;" in rows and "jax.old<" not in rows
    assert "Use <code>jax.new</code> &amp; be glad." in rows
    assert "Deprecated in 0.9.3, stopped working in 0.10.4." in rows
    assert "Write (first seen to run on 0.10):" in rows
    assert "▇ runs; ▅ runs, with a warning; " in versions.legend()


@pytest.mark.parametrize(
    ("name", "log", "text"),
    [
        ("jax.gone", {"deprecated": "0.8", "removed": "0.9"}, "Deprecated in 0.8, removed in 0.9"),
        ("jax.gone", {"removed": "0.9"}, "Removed in 0.9"),
        ("jax.gone", {"deprecated": "0.8"}, "Deprecated in 0.8; fails on every sampled release, from 0.9 on"),
        ("jax.gone", {}, "Fails on every sampled release, from 0.9 on"),
        ("jax.old<", {"deprecated": "0.10"}, "Deprecated in 0.10; last seen in 0.10, gone by 0.11"),
        ("jax.old<", {"removed": "0.11"}, "Stopped working in 0.11"),
    ],
)
def test_the_change_log_says_when_an_idiom_ended_and_the_record_where_it_does_not(
    name: str, log: dict[str, str], text: str, versions: Ladder
) -> None:
    assert versions.boundaries(ladder.Idiom(name, "jax", name, **log)) == text


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("jax.tree_map", "removed"),
        ("arr.tile(n)", "removed"),
        ("jnp.clip(a_min=,a_max=)", "removed"),
        ("jax.checkpoint(concrete=True)", "removed"),
        ("jnp.array(None)", "stopped working"),
        ("PartitionSpec == tuple", "stopped working"),
    ],
)
def test_only_what_has_a_name_is_removed(name: str, verb: str, versions: Ladder) -> None:
    assert versions.boundaries(ladder.Idiom(name, "jax", "", removed="0.1")).lower() == f"{verb} in 0.1"


def test_what_to_write_is_called_where_the_old_code_calls_something() -> None:
    """A name that exists proves little: the call may need other arguments."""

    def calls(code: str) -> bool:
        return any(isinstance(part, (ast.Call, ast.Subscript)) for part in ast.walk(ast.parse(code)))

    bare = [idiom.name for idiom in ladder.idioms() if idiom.new and calls(idiom.old) and not calls(idiom.new)]
    assert bare == ["jax.lax.tie_in"]  # whose row says to write its argument


def test_the_list_has_what_changed(versions: Ladder) -> None:
    assert versions.changed("numbers") == "- `a | b`: `1`, by 0.11 `2`"
