"""The page of silent programs: each is silent, each has a loud version, and the switches that notice it are found."""

import pytest
import silent
from silent import DIFFERS, ENTRIES, RAISES, SILENT, examine, printed, table, under, under_checkify


def test_every_program_has_its_loud_version() -> None:
    assert len(ENTRIES) >= 20 and not silent._QUIET
    assert len({silent.anchor(entry.title) for entry in ENTRIES.values()}) == len(ENTRIES)


@pytest.mark.parametrize(
    ("name", "flags", "error"),
    [
        ("read_past", ["check_static_indices", "checkify"], "JaxRuntimeError"),
        ("key_reuse", ["debug_key_reuse"], "KeyReuseError"),
        ("uint8_wraps", [], "OverflowError"),
    ],
)
def test_findings(name: str, flags: list[str], error: str) -> None:
    finding = examine(name)
    assert (finding.warned, finding.flags, finding.error) == (0, flags, error)


def test_a_program_is_silent_differs_or_raises_under_a_switch() -> None:
    assert under(ENTRIES["rank"].quiet, silent.SWITCHES["numpy_rank_promotion"], "(3, 3)\n") == RAISES
    assert under(ENTRIES["stale"].quiet, silent.SWITCHES["disable_jit"], "1.0 1.0\n") == DIFFERS
    assert under(ENTRIES["rank"].quiet, silent.SWITCHES["debug_nans"], "(3, 3)\n") == SILENT
    assert under_checkify(ENTRIES["rank"].quiet) == SILENT
    assert under_checkify(ENTRIES["divide"].quiet) == RAISES


def test_a_row_names_flags_and_error_and_leads_to_its_section() -> None:
    quiet = dict.fromkeys([*silent.SWITCHES, silent.CHECKIFY], SILENT)
    findings = [
        silent.Finding("a", "A < b", "1", 0, quiet | {"debug_nans": RAISES}, "ValueError"),
        silent.Finding("c", "C is d", "1", 0, quiet | {"disable_jit": DIFFERS}, "TypeError"),
    ]
    shown = table(findings)
    assert (
        '<a href="../silent-programs/#c-is-d">C is d</a></td><td>none; different output under <code>disable_<wbr>jit</code>'
        in shown
    )
    assert "A &lt; b</a></td><td><code>debug_<wbr>nans</code></td><td><code>Value<wbr>Error</code>" in shown
    assert [finding.verdict for finding in findings] == ["one flag", "other result"]


def test_what_is_printed_is_kept_from_the_page() -> None:
    assert printed(lambda: print("a")) == "a\n"
