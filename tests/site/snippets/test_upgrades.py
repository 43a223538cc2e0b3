"""Names that break between two releases, and the count of the projects that used them."""

import json
import subprocess
from pathlib import Path

import old_uses
import pytest
import upgrade_jax
import upgrades
from ladder import Record
from upgrade_script import known

RELEASES = list(Record().columns)


def test_what_breaks_ran_on_the_one_release_and_fails_on_the_other() -> None:
    columns = Record().columns
    found = upgrades.broken("0.4.23", "0.6.2")
    names = [name for _, name in found]
    assert "jax.tree_map" in names and "jax.tree_multimap" not in names  # which was gone before
    for name in columns["0.6.2"].old:
        breaks = columns["0.4.23"].old[name].end != "fails" and columns["0.6.2"].old[name].end == "fails"
        assert breaks == (name in names), name


def test_the_most_used_come_first() -> None:
    uses = [count for count, _ in upgrades.broken(RELEASES[0], RELEASES[-1])]
    assert uses == sorted(uses, reverse=True) and uses[0] > uses[-1]


def test_what_breaks_is_listed_in_lines_that_fit_a_page() -> None:
    changes = upgrades.between(RELEASES[0], RELEASES[-1]).splitlines()
    assert max(map(len, changes)) <= 80
    assert f"  {upgrades.USES['uses']['jax.tree_map']:2} of {len(upgrades.USES['projects'])}  jax.tree_map" in changes
    assert upgrades.between("0.6.2", "0.5.3") == "0.6.2 is not older than 0.5.3."


def test_results_that_changed_are_listed() -> None:
    columns = Record().columns
    name = "jax.random.normal(jax.random.PRNGKey(42))"
    changes = [name in upgrades.between(old, new) for old, new in [("0.4.13", "0.12.0.1"), ("0.11.2", "0.12.0.1")]]
    assert (
        changes
        == [
            columns[old].behaviors[name] != columns[new].behaviors[name]
            for old, new in [("0.4.13", "0.12.0.1"), ("0.11.2", "0.12.0.1")]
        ]
        == [True, False]
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a repository with two commits, of 2021 and of 2023."""

    def git(*command: str, day: str = "") -> None:
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        dates = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day} if day else {}
        subprocess.run(["git", *command], cwd=place, env={**who, **dates, "HOME": str(tmp_path)}, check=True)

    place = tmp_path / "clones" / "some+project"
    place.mkdir(parents=True)
    git("init", "-q")
    (place / "train.py").write_text("import jax\njax.tree_map(len, [])\njax.host_id()\n")
    (place / "other.py").write_text("print 'jax'\n")
    git("add", ".")
    git("commit", "-qm", "First", day="2021-06-01T12:00:00+0000")
    (place / "train.py").write_text("import jax\njax.tree.map(len, [])\njax.tree_leaves(3)\n")
    git("commit", "-qam", "Second", day="2023-06-01T12:00:00+0000")
    return place


def test_a_project_is_counted_as_it_was_on_each_day(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_uses, "RECORD", tmp_path / "uses.json")
    monkeypatch.setattr(upgrade_jax, "KNOWN", known())
    monkeypatch.setattr("sys.argv", ["old_uses.py", str(clone.parent)])
    assert list(old_uses.sources(clone, "2021-01-01")) == []
    old_uses.main()
    record = json.loads((tmp_path / "uses.json").read_text())
    assert record["projects"] == ["some/project"]
    assert record["uses"] == {"jax.host_id": 1, "jax.tree_leaves": 1, "jax.tree_map": 1}


def test_a_project_without_jax_has_no_old_names(clone: Path) -> None:
    assert list(old_uses.sources(clone, "2021-01-01")) == []
    with pytest.raises(RuntimeError, match="rev-list failed"):
        list(old_uses.sources(clone.parent, "2024-01-01"))


def test_most_old_names_were_used() -> None:
    # The names of the count are those of the list.
    found = upgrades.broken(RELEASES[0], RELEASES[-1])
    assert sum(1 for uses, _ in found if uses) > len(found) / 2
    assert max(upgrades.USES["uses"].values()) <= len(upgrades.USES["projects"])
