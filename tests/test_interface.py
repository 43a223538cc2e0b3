"""The public interface, as it was last released or reviewed: names and signatures, in ``interface.txt``.

python -m tests.test_interface    # write that file anew
"""

import difflib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import griffe
import pytest

import livepages
from tests.conftest import Site

ROOT = Path(livepages.__file__).parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNAPSHOT = Path(__file__).with_name("interface.txt")


def interface() -> Iterator[str]:
    """Each public name with its signature, and of a class its public members, a line each."""
    package = griffe.load("livepages", search_paths=[ROOT.parent], allow_inspection=False, resolve_aliases=True)
    for name in sorted(livepages.__all__):
        found = package[name].final_target
        if found.is_function:
            yield found.signature()
            continue
        yield f"class {name}({', '.join(map(str, found.bases))})".removesuffix("()")
        unmade = {"__init__"} if "dataclass" in found.labels else set()  # by users
        for key, member in sorted(found.members.items()):
            if member.is_public and key not in unmade:
                kind = f": {member.annotation}" if member.is_attribute and member.annotation else ""
                yield "    " + (member.signature() if member.is_function else f"{key}{kind}")


def test_the_interface_is_the_one_on_record() -> None:
    """Every line that is no longer there breaks somebody's code."""
    recorded, now = SNAPSHOT.read_text(encoding="utf-8").splitlines(), list(interface())
    changed = [line for line in difflib.ndiff(recorded, now) if line.startswith(("- ", "+ "))]
    assert not changed, (
        "The public interface has changed. A line with - breaks those who use it, which the change log has to say, "
        "and the next version's number. If that is meant: python -m tests.test_interface\n" + "\n".join(changed)
    )


def test_nothing_else_is_exported_and_everything_is_documented() -> None:
    packages = {path.stem for path in ROOT.iterdir()}
    assert {name for name in vars(livepages) if name.isidentifier() and name.islower() and name[0] != "_"} <= {
        *livepages.__all__,
        *packages,
    }
    listed = re.findall(r"^\| `(\w+)` \| \S", README, re.M)
    assert sorted(listed) == livepages.__all__
    for name in livepages.__all__:
        public = getattr(livepages, name)
        assert public.__module__.startswith("livepages.") and inspect.getdoc(public)
    assert (ROOT / "py.typed").exists()
    with pytest.raises(AttributeError, match="no attribute 'render_all'"):
        livepages.render_all  # type: ignore[attr-defined]  # noqa: B018


def test_the_example_runs(site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(from .*?)```", README, re.S)
    site.write("docs/index.md", "# A\n\n```python\nprint(6 * 7)\n```\n\n```python\nwrong\n```\n")
    monkeypatch.chdir(site.root)
    exec(compile(example, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "docs/index.md:3: 42\n" in out and "docs/index.md:8: block of line 7: raised NameError" in out


if __name__ == "__main__":
    SNAPSHOT.write_text("".join(f"{line}\n" for line in interface()), encoding="utf-8")
