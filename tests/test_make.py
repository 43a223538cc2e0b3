"""`python -m tests`: which steps it runs again, and which it leaves out."""

from pathlib import Path

import pytest

from tests import __main__ as command
from tests.__main__ import Step

QUICK, LONG, ENGINE = Step("quick", "quick"), Step("long", "long", once=True), Step("engine", "engine", True, ("docs",))
STEPS = [QUICK, LONG, ENGINE]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that were run, of a project with one page."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("first")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "PASSED", tmp_path / ".cache" / "passed")
    ran: list[str] = []

    def run(step: str) -> tuple[int, list[str]]:
        ran.append(step)
        page = tmp_path / "docs" / "page.md"
        if step == "long" and page.read_text() == "edited meanwhile":
            page.write_text("second")
        return int("bad" in page.read_text() and step == "long"), ["FAILED it"]

    monkeypatch.setattr(command, "run", run)
    return ran


def test_a_step_is_left_out_where_it_passed_with_the_same_files(
    ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(STEPS) == 0 and ran == ["quick", "long", "engine"]
    (tmp_path / ".cache" / "other").write_text("")  # what is made does not count, ...
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "made.pyc").write_text("")
    assert command.main(STEPS) == 0 and ran[3:] == ["quick"]
    assert "passed before, with the same files" in capsys.readouterr().out
    (tmp_path / "docs" / "new.md").write_text("")  # ... a page does for everything that depends on pages, ...
    assert command.main(STEPS) == 0 and ran[4:] == ["quick", "long"]
    (tmp_path / "new.py").write_text("")  # ... another file does for all, ...
    assert command.main(STEPS) == 0 and ran[6:] == ["quick", "long", "engine"]
    monkeypatch.setenv("LIVE_BROWSER", "another")  # ... and a setting ...
    assert command.main(STEPS) == 0 and ran[9:] == ["quick", "long", "engine"]
    monkeypatch.setattr(command, "distributions", list)  # ... and packages
    assert command.main(STEPS) == 0 and ran[12:] == ["quick", "long", "engine"]


@pytest.mark.parametrize("text", ["bad", "edited meanwhile"])
def test_what_failed_or_was_edited_meanwhile_runs_again(ran: list[str], tmp_path: Path, text: str) -> None:
    (tmp_path / "docs" / "page.md").write_text(text)
    assert command.main([QUICK, LONG]) == int(text == "bad")
    assert command.main([QUICK, LONG]) == int(text == "bad") and ran == ["quick", "long"] * 2


def test_every_test_is_in_one_of_the_steps() -> None:
    """The steps divide the folder of tests; `--all` leaves out only what a slow test does with more inputs."""
    engine, site = "tests --ignore tests/site --ignore tests/browser", "tests/site tests/browser"
    parts = {
        "make test-core": [f"'not slow' {engine}"],
        "make test": [f"'not slow' {engine}", f"'not slow' {site}"],
        "make test-all": [f"'not slow' {engine}", f"'slow' {engine}", f"'not brief' {site}"],
    }
    for steps, wanted in zip((command.CORE, command.STEPS, command.ALL), parts.values(), strict=True):
        assert [step.command.partition(" -m ")[2] for step in steps if step.once] == wanted
