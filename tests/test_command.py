"""`python -m tests`: what it runs again, and what it leaves out."""

from pathlib import Path

import pytest

from tests import __main__ as command


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that were run, of a project of one file."""
    (tmp_path / "page.md").write_text("first")
    (tmp_path / ".cache").mkdir()
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "PASSED", tmp_path / ".cache" / "passed")
    monkeypatch.setattr(command, "STEPS", {"quick": "quick", command.LAST: "long"})
    ran: list[str] = []

    def run(step: str) -> tuple[int, list[str]]:
        ran.append(step)
        if step == "long" and (tmp_path / "page.md").read_text() == "edited meanwhile":
            (tmp_path / "page.md").write_text("second")
        return int("bad" in (tmp_path / "page.md").read_text() and step == "long"), ["FAILED it"]

    monkeypatch.setattr(command, "run", run)
    return ran


def test_the_last_step_is_left_out_where_it_passed_with_the_same_files(
    ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main() == 0 and ran == ["quick", "long"]
    (tmp_path / ".cache" / "other").write_text("")  # what is made does not count, ...
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "made.pyc").write_text("")
    assert command.main() == 0 and ran == ["quick", "long", "quick"]
    assert "passed before, with the same files" in capsys.readouterr().out
    (tmp_path / "new.md").write_text("")  # ... a file does, ...
    assert command.main() == 0 and ran[3:] == ["quick", "long"]
    monkeypatch.setenv("LIVE_BROWSER", "another")  # ... and a setting
    assert command.main() == 0 and ran[5:] == ["quick", "long"]
    monkeypatch.setattr(command, "distributions", list)  # ... and packages
    assert command.main() == 0 and ran[7:] == ["quick", "long"]


@pytest.mark.parametrize("text", ["bad", "edited meanwhile"])
def test_what_failed_or_was_edited_meanwhile_runs_again(ran: list[str], tmp_path: Path, text: str) -> None:
    (tmp_path / "page.md").write_text(text)
    assert command.main() == int(text == "bad")
    assert command.main() == int(text == "bad") and ran == ["quick", "long"] * 2
