"""The tables of "NumPy, PyTorch, JAX" and "PyTorch to JAX": runs the rows of `rosetta_rows`, compares and shows them.

PyTorch is large, so the site is built without it. Where it is installed, ``python snippets/rosetta.py`` writes its
results to ``rosetta_torch.json``. If it is installed when a page runs, its results are compared with that record.
"""

import ast
import contextlib
import html
import importlib.util
import json
import platform
import re
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
ROWS = Path(__file__).with_name("rosetta_rows.py")
RECORD = Path(__file__).with_name("rosetta_torch.json")


@dataclass(frozen=True)
class Result:
    """The result of a piece of code: numbers, texts and lists of them, the dtypes of its arrays, and the text shown."""

    value: Any = None
    dtypes: list[str] = field(default_factory=list)
    text: str = ""
    error: str = ""  # the class of the exception

    @property
    def shown(self) -> str:
        """All of it as text."""
        return self.error or " ".join([self.text, *dict.fromkeys(self.dtypes)])


@dataclass
class Row:
    """One task, in each library that has it."""

    title: str
    group: str
    kind: str = "same"  # or "dtype", "differs": what differs
    why: str = ""
    code: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, str] = field(default_factory=dict)  # of what else `why` says; run, not shown
    results: dict[str, Result] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """Return what a link to the row ends with."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def check(self) -> None:
        """Check that the results are equal, or differ in the way that the row says.

        Raises:
            AssertionError: they do not.
        """
        results = list(self.results.values())
        values = all(result.error == results[0].error and close(result.value, results[0].value) for result in results)
        dtypes = all(result.dtypes == results[0].dtypes for result in results)
        found = "differs" if not values else "dtype" if not dtypes else "same"
        assert found == self.kind, f"{self.title}: marked {self.kind!r}, but the results are {found!r}: {self.results}"
        assert self.why or found == "same", f"{self.title}: the row does not say why its results differ"


def read_rows(text: str) -> list[Row]:
    """The rows of a file like `rosetta_rows`."""
    rows: list[Row] = []
    group = library = ""
    target: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# ---- "):
            group = line.removeprefix("# ---- ")
        elif line.startswith("# %% "):
            rows.append(Row(line.removeprefix("# %% "), group))
            library = ""
        elif (comment := re.fullmatch(r"# (note|dtype|differs): (.+)", line)) and not library:
            rows[-1].kind, rows[-1].why = comment[1].replace("note", "same"), comment[2]
        elif line[:2] == "# " and line[2:] in LIBRARIES:
            library, target = line[2:], rows[-1].code
            target[library] = ""
        elif line == "# proof" and library:
            target = rows[-1].proofs
            target[library] = ""
        elif library and not line.startswith("# "):
            target[library] += line + "\n"
    for row in rows:
        row.code = {library: code.strip("\n") for library, code in row.code.items()}
        row.proofs = {library: code.strip("\n") for library, code in row.proofs.items()}
    return rows


def run_rows(rows: list[Row], library: str) -> dict[str, Result]:
    """The results of the rows that have this library, by title. Each row starts from the names of the first.

    Raises:
        AssertionError: the proof of a row fails.
    """
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = run_code(rows[0].code[library], names)
        results = {}
        for row in rows:
            if library in row.code:
                own = {**names, "error": error}
                results[row.title] = run_code(row.code[library], own)
                exec(compile(row.proofs.get(library, ""), f"the proof of {row.title!r}", "exec"), own)
        again = run_code("x", names)
    assert again == first, "a row changed x, from which all rows start"
    return results


def run_code(code: str, names: dict[str, Any]) -> Result:
    """Run code and return the value of its last line (None if that is not an expression), or the error it raised.

    Raises:
        SyntaxError: the code cannot run anywhere, because something it imports or names does not exist.
    """
    tree = ast.parse(code)
    last = tree.body[-1]
    dtypes: list[str] = []
    try:
        if not isinstance(last, ast.Expr):
            exec(compile(tree, "row", "exec"), names)
            return Result()
        tree.body.pop()
        exec(compile(tree, "row", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "row", "eval"), names)
        text = _text(value)
        value = _plain(value, dtypes)
    except (AttributeError, ImportError, NameError, SyntaxError) as error:
        raise SyntaxError(f"{error}, in:\n{code}") from error
    except Exception as error:  # noqa: BLE001  (an error is a result as well)
        return Result(error=type(error).__name__)
    return Result(value, dtypes, text)


def error(call: Callable[[], Any]) -> str:
    """The class of the error that a call raises, for proofs."""
    return run_code("call()", {"call": call}).error


def _array(value: Any) -> Any:
    """An array of any library as one of NumPy, anything else as it is."""
    if hasattr(value, "detach"):
        value = value.detach()
    return np.asarray(value) if hasattr(value, "__array__") else value


def _plain(value: Any, dtypes: list[str]) -> Any:
    value = _array(value)
    if isinstance(value, np.ndarray):
        dtypes.append(str(value.dtype))
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part, dtypes) for part in value]
    return value


def _text(value: Any) -> str:
    value = _array(value)
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4, suppress_small=True, separator=" ")
    if isinstance(value, list | tuple):
        inside = ", ".join(map(_text, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    return repr(value) if isinstance(value, str) else str(value)


def close(one: Any, other: Any) -> bool:
    """Return whether two plain values are the same up to rounding."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if {type(one), type(other)} <= {int, float}:
        return bool(np.isclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True))
    return type(one) is type(other) and bool(one == other)


ARRAYS = ["Create", "Index", "Update", "Shape", "Types and devices", "Reduce", "Linear algebra"]
TRAINING = [
    "Random numbers",
    "Derivatives",
    "Models and training",
    "Images and layers",
    "Transform and compile",
    "Save",
]


def table(groups: list[str]) -> list[Row]:
    """The rows of some groups with their checked results, after the row from whose names all of them start.

    Raises:
        AssertionError: a row is marked wrongly, or PyTorch's results differ from the record.
    """
    rows = read_rows(ROWS.read_text(encoding="utf-8"))
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    recorded = {title: Result(**result) for title, result in record["results"].items()}
    assert torch_code(rows) == record["code"], (
        "rosetta_torch.json was made from different rows; run python snippets/rosetta.py where PyTorch is installed"
    )
    rows = [row for row in rows if row.group in ["Begin", *groups]]
    if importlib.util.find_spec("torch"):
        for title, now in run_rows(rows, "torch").items():
            then = recorded[title]
            same = close(now.value, then.value) and (now.dtypes, now.error) == (then.dtypes, then.error)
            assert same, f"{title!r}: PyTorch {version('torch')} returns {now}, {record['torch']} returned {then}"
    found = {"numpy": run_rows(rows, "numpy"), "torch": recorded, "jax": run_rows(rows, "jax")}
    for row in rows:
        row.results = {library: found[library][row.title] for library in LIBRARIES if library in row.code}
        row.check()
    return rows


def torch_code(rows: list[Row]) -> dict[str, str]:
    """The code that the record was made from: that for PyTorch, with its proofs."""
    return {
        row.title: "\n# proof\n".join(part for part in (row.code["torch"], row.proofs.get("torch")) if part)
        for row in rows
        if "torch" in row.code
    }


def made_with() -> str:
    """Return which versions the results come from."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    live = f", and {version('torch')} agrees" if importlib.util.find_spec("torch") else ""
    torch = f"PyTorch {record['torch']}: recorded on {record['date']}, on a CPU{live}"
    return f"NumPy {version('numpy')} and JAX {version('jax')}: run just now\n{torch}"


def write_record() -> None:
    """Run the rows in PyTorch and write their results to the record."""
    rows = read_rows(ROWS.read_text(encoding="utf-8"))
    record = {
        "torch": version("torch"),
        "python": platform.python_version(),
        "date": date.today().isoformat(),
        "code": torch_code(rows),
        "results": {title: asdict(result) for title, result in run_rows(rows, "torch").items()},
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


MARKS = {"same": "", "dtype": "Different types.", "differs": "Differs."}


def as_html(rows: list[Row], group: str) -> str:
    """The rows of a group as HTML: cards of three columns."""
    return "\n".join(_card(row) for row in rows if row.group == group)


def _card(row: Row) -> str:
    texts = {result.shown for result in row.results.values()}
    cells = " ".join(_cell(row, library, len(texts) > 1) for library in LIBRARIES)  # apart in the search, too
    result = f"<samp>{html.escape(texts.pop())}</samp>" if len(texts) == 1 else ""
    why = re.sub("`(.+?)`", r"<code>\1</code>", html.escape(row.why, quote=False))
    mark = f"<strong>{MARKS[row.kind]}</strong> " if MARKS[row.kind] else ""
    note = f"<p>{mark}{why}</p>" if why else ""
    title = re.sub("`(.+?)`", r"<code>\1</code>", html.escape(row.title, quote=False))
    link = f'<a class="headerlink" href="#{row.anchor}">¶</a>'
    return (
        f'<section class="live-row live-{row.kind}"><h3 id="{row.anchor}">{title}{link}</h3>'
        f'<div class="highlight">{cells}</div>{result}{note}</section>'
    )


def highlighted(code: str) -> str:
    """Code as HTML, with marks of keywords and strings only: a page of hundreds of pieces gets heavy."""
    marked = highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")
    return re.sub(r'<span class="(?:m|n|o|p|w)\w?">([^<]*)</span>', r"\1", marked)


def _cell(row: Row, library: str, own_result: bool) -> str:
    name = f"<b>{LIBRARIES[library]}</b>"
    if library not in row.code:
        return f"<div>{name} <i>not compared</i></div>"
    code = highlighted(row.code[library])
    result = row.results[library]
    text = html.escape(result.shown)
    shown = f"<samp{' class=live-raises' if result.error else ''}>{text}</samp>" if own_result else ""
    return f"<div>{name}<code>{code}</code>{shown}</div>"


if __name__ == "__main__":
    write_record()
