"""A run decides, a surprise fails, and the score counts what was decided."""

import matplotlib.pyplot as plt
import pytest
from claims import CHANGES, Claims, refuses


def filled() -> Claims:
    claim = Claims()
    claim.topic = "Arrays"
    claim("one", True)
    claim("two words", False, "changed in 0.5.0")
    claim.topic = "Trees"
    claim("three", False, "false")
    return claim


@pytest.mark.parametrize(
    ("found", "expected"), [(False, "holds"), (True, "false"), (True, "changed in 0.5.0"), (True, "hold")]
)
def test_a_surprise_fails_and_is_not_counted(found: bool, expected: str) -> None:
    claim = Claims()
    with pytest.raises(AssertionError, match="'one' was expected to be"):
        claim("one", found, expected)
    assert claim.verdicts == {}


def test_a_verdict_is_shown_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    claim = filled()
    assert capsys.readouterr().out.splitlines()[1] == (
        f'<p class="live-verdict live-changed">changed in <a href="{CHANGES}0-5-0-jan-17-2025">0.5.0</a></p>'
    )
    assert claim.verdicts == {"Arrays": {"one": "holds", "two words": "changed"}, "Trees": {"three": "false"}}
    assert claim.counts("Arrays") == {"holds": 1, "changed": 1}
    assert claim.index() == (
        "**Arrays**\n\n- holds: [one](#one)\n- changed: [two words](#two-words)\n\n**Trees**\n\n- false: [three](#three)\n"
    )


def test_a_version_without_a_source_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    claim = Claims()
    with pytest.raises(KeyError):
        claim("one", False, "changed in 0.4")
    assert claim.verdicts == {} and not capsys.readouterr().out


def test_a_bar_is_as_long_as_its_topic() -> None:
    fig, ax = plt.subplots()
    filled().draw(ax)
    ends = [max(patch.get_x() + patch.get_width() for patch in bars) for bars in zip(*ax.containers)]
    assert ends == [2, 1]
    plt.close(fig)


def test_only_the_named_error_is_a_refusal() -> None:
    assert refuses(ValueError, int, "x")
    assert not refuses(ValueError, int, "1", base=10)
    with pytest.raises(TypeError):
        refuses(ValueError, int, [])
