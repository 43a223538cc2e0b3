"""The table of three libraries and the cheat sheet: a check that cannot fail would be worth nothing."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SNIPPETS = Path(__file__).parents[3] / "snippets"
sys.path.insert(0, str(SNIPPETS))
rosetta = import_module("rosetta")
cheat_sheet = import_module("cheat_sheet")

ROWS = """\
# ---- Create
# %% First
# numpy
import numpy as np
x = np.ones(2)
x
# jax
import numpy as np
x = np.ones(2)
x
# %% A `second`
# {comment}
# numpy
{numpy}
# jax
{jax}
"""


def row(numpy: str, jax: str, comment: str = "note: Why.") -> Any:
    """A row with its results, of which that of JAX is NumPy's as well."""
    rows = rosetta.read_rows(ROWS.format(numpy=numpy, jax=jax, comment=comment))
    for library in ("numpy", "jax"):
        for title, result in rosetta.run_rows(rows, library).items():
            next(row for row in rows if row.title == title).results[library] = result
    return rows[1]


@pytest.mark.parametrize(
    ("comment", "jax"),
    [
        ("note: Why.", "x + 1"),
        ("dtype: Why.", "np.float32(2) * np.ones(2, np.float32)"),
        ("differs: Why.", "x + 2"),
        ("differs: Why.", "x[7]"),
        ("differs: Why.", "(x + 1)[:, None]"),
        ("differs: Why.", "[2.0, 2.0], None"),
    ],
)
def test_a_row_is_what_it_says(comment: str, jax: str) -> None:
    row("x + 1", jax, comment).check()
    for other in {"note: Why.", "dtype: Why.", "differs: Why."} - {comment}:
        with pytest.raises(AssertionError, match="marked"):
            row("x + 1", jax, other).check()


def test_libraries_stand_apart_in_the_text_that_the_search_shows() -> None:
    shown = rosetta.as_html([row("x[7]", "x + 1", "differs: Why.")], "Create")
    assert "IndexError PyTorch not compared JAX" in re.sub(r"<[^>]+>", "", shown)


def test_what_a_row_says_besides_is_proved_and_not_shown() -> None:
    proved = row("x", "y = x\ny\n# proof\nassert error(lambda: y[7]) == 'IndexError' and not error(lambda: y[0])")
    proved.check()
    assert proved.code["jax"] == "y = x\ny" and "proof" not in rosetta.as_html([proved], "Create")
    with pytest.raises(AssertionError):
        row("x", "x\n# proof\nassert error(lambda: x[0])")


def test_rounding_is_no_difference_and_nan_is_nan() -> None:
    row("np.float64(1), np.nan", "np.float64(1 + 1e-7), np.nan").check()
    assert not rosetta.close(1.0, 1.01)
    assert not rosetta.close(True, 1)


@pytest.mark.parametrize("code", ["nobody", "np.nobody", "import nobody\n1", "1 +"])
def test_a_typing_error_is_no_result(code: str) -> None:
    with pytest.raises(SyntaxError):
        row(code, code, "differs: Why.")


def test_a_row_may_not_change_what_the_others_start_from() -> None:
    with pytest.raises(AssertionError, match="changed x"):
        row("x[0] = 9\nx", "x")


def test_a_row_as_html() -> None:
    html = rosetta.as_html([row("x < 2", "x < 3")], "Create")
    assert '<h3 id="a-second">A <code>second</code>' in html and "&lt;" in html
    assert html.count("<samp>") == 1 and "not compared" in html
    assert rosetta.as_html([row("x", "x * 2", "differs: Why `x`.")], "Create").count("<samp>") == 2
    assert rosetta.as_html([row("x", "x")], "Reduce") == ""


def test_the_rows_are_readable_and_their_record_is_of_them() -> None:
    rows = rosetta.read_rows(rosetta.ROWS.read_text())
    record = rosetta.json.loads(rosetta.RECORD.read_text())
    assert len({row.anchor for row in rows}) == len(rows) >= 60
    assert all("jax" in row.code and len(row.code) > 1 for row in rows)
    assert record["code"] == rosetta.torch_code(rows)
    assert record["results"].keys() == record["code"].keys()
    wide = [line for row in rows for code in row.code.values() for line in code.splitlines() if len(line) > 49]
    assert not wide  # columns are narrow


def test_the_ported_model_was_recorded_from_this_program() -> None:
    program, record = SNIPPETS / "ported_torch.py", SNIPPETS / "ported.json"
    saved = rosetta.json.loads(record.read_text())
    assert saved["code"] == program.read_text(), "run python snippets/ported_torch.py where PyTorch is installed"
    pytest.importorskip("torch")
    again = import_module("ported_torch").record()
    for name in ("state_dict", "eval", "train", "running_mean", "running_var"):
        flat = [np.ravel(v) for v in (again[name].values() if name == "state_dict" else [again[name]])]
        kept = [np.ravel(v) for v in (saved[name].values() if name == "state_dict" else [saved[name]])]
        assert all(np.allclose(one, other, atol=1e-4) for one, other in zip(flat, kept)), name


def test_the_cheat_sheet_holds_each_line_to_its_comment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "lines.py"
    monkeypatch.setattr(cheat_sheet, "LINES", file)
    file.write_text("# ---- One\nx = 1\nx + 1  # 2\nx[0]  # TypeError\nprint('said')  # said\n")
    lines = cheat_sheet.sheet()
    assert [line.result for line in lines] == ["", "2", "TypeError", "said"]
    shown = cheat_sheet.as_html(lines, "One")
    assert shown.count("<samp>") == 4 and 'href="#line-' in shown
    for wrong in ("x = 1\nx + 1  # 3\n", "x = 1\nx + 1\n", "x = []\nx[0]  # KeyError\n"):
        file.write_text(f"# ---- One\n{wrong}")
        with pytest.raises(AssertionError):
            cheat_sheet.sheet()


def test_both_run_arrays_of_numpy_alike() -> None:
    result = rosetta.run_code("a", {"a": np.float32(0.5)})
    assert result.shown == "0.5 float32" and result.value == 0.5


def test_each_line_of_the_cheat_sheet_has_an_address_of_its_own() -> None:
    lines = cheat_sheet.read_lines(cheat_sheet.LINES.read_text())
    anchors = [line.anchor for line in lines]
    assert len(anchors) == len(set(anchors)) > 100
