"""The record of JAX's public names: how a release is asked, how releases become histories, and what is recorded."""

import functools
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise, permutations
from pathlib import Path

import ladder
import public_names
import pytest
from public_names import ABSENT, Record, Seen, number

FILES = {
    "__init__.py": """
import math
from typing import Any as Any
from madeup import sub as sub
from json import decoder
from madeup._src import kept as kept, hidden
from madeup._src import same as other
level: int = 3
Some = Any
class Box(dict):
    size = 1
    wide = property(len)
    def open(self, wide=False):
        "Open it."
    _lid = 2
Box.BIG = Box()
_deprecations = {"old": ("madeup.old is deprecated; use madeup.kept.", kept), "lost": ("madeup.lost was removed.", None)}
def __getattr__(name):
    if name not in _deprecations:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message, value = _deprecations[name]
    if value is None:
        raise AttributeError(message)
    import warnings
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return value
""",
    "_src.py": '''
def kept(x: int, /, *, sort: bool = False, by=object()):
    """Keep :func:`~madeup.kept` as it is. More of it.

    Details.
    """
def hidden(): ...
def same(): ...
''',
    "sub.py": "class Thing:\n    def __init__(self, size): ...\nif True:\n    def inside(): ...\n_no = 1\n",
    "listed.py": "from madeup._src import *\nfrom madeup._src import hidden\n__all__ = ['hidden']\n",
    "away.py": "raise ImportError('madeup.away was removed; use madeup.sub')\n",
    "other.py": "import no_such_package\n",
    "warm.py": "import warnings\nwarnings.warn('madeup.warm is deprecated', DeprecationWarning)\n",
    "_private.py": "def secret(): ...\n",
}


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., tuple[dict[str, list[str]], str]]:
    """Return the function that asks a made-up package, in a process of its own, and returns the answer and warnings."""
    package = tmp_path / "madeup"
    package.mkdir()
    for name, text in FILES.items():
        (package / name).write_text(text)

    def read(option: str, *names: str) -> tuple[dict[str, list[str]], str]:
        done = subprocess.run(
            [sys.executable, public_names.__file__, option, "madeup"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path)},
            input="\n".join(names),
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout), done.stderr

    return read


TAKES, DOES = "(x, /, *, sort=False, by=…)", "Keep `madeup.kept` as it is."


def test_a_release_is_asked_for_what_its_modules_make_public(
    ask: Callable[..., tuple[dict[str, list[str]], str]],
) -> None:
    dumped, warned = ask("--dump")
    assert warned == "madeup.other: ModuleNotFoundError: No module named 'no_such_package'\n"
    assert dumped == {
        "madeup": ["there", "", "", ""],
        "madeup.kept": ["there", "", TAKES, DOES],
        "madeup.level": ["there", "", "", ""],
        "madeup.Some": ["there", "", "", ""],
        "madeup.Box": ["there", "", "", ""],
        "madeup.Box.open": ["there", "", "(wide=False)", "Open it."],
        "madeup.Box.BIG": ["there", "", "", ""],
        "madeup.lost": ["gone", "madeup.lost was removed.", "", ""],
        "madeup.old": ["deprecated", "madeup.old is deprecated; use madeup.kept.", TAKES, DOES],
        "madeup.sub": ["there", "", "", ""],
        "madeup.sub.Thing": ["there", "", "(size)", ""],
        "madeup.sub.inside": ["there", "", "()", ""],
        "madeup.listed": ["there", "", "", ""],
        "madeup.listed.hidden": ["there", "", "()", ""],
        "madeup.away": ["gone", "madeup.away was removed; use madeup.sub", "", ""],
        "madeup.warm": ["deprecated", "madeup.warm is deprecated", "", ""],
    }


def test_names_that_other_releases_list_are_read_wherever_they_come_from(
    ask: Callable[..., tuple[dict[str, list[str]], str]],
) -> None:
    found, _ = ask(
        "--read",
        "madeup.hidden",
        "madeup.decoder.JSONDecoder.decode",
        "madeup.lost",
        "madeup.no",
        "madeup.no.no",
        "no.no",
    )
    assert found == {
        "madeup.hidden": ["there", "", "()", ""],
        "madeup.decoder.JSONDecoder.decode": [
            "there",
            "",
            "(s, _w=…)",
            found["madeup.decoder.JSONDecoder.decode"][3],
        ],
        "madeup.lost": ["gone", "madeup.lost was removed.", "", ""],
    }


# --- from releases to histories ---------------------------------------------------------------------------------------

RELEASES: dict[str, dict[str, list[str]]] = {
    "0.9.0": {"m.f": ["there", "", "(x)", "One."], "m.old": ["there", "", "", ""], "m.back": ["there", "", "", ""]},
    "0.9.2": {
        "m.f": ["there", "", "(x, n=1)", "Two."],
        "m.old": ["deprecated", "use m.new", "", ""],
        "m.new": ["there", "", "", ""],
    },
    "0.10.0": {
        "m.f": ["there", "", "(x, n=2)", "Three."],
        "m.old": ["gone", "m.old was removed", "", ""],
        "m.new": ["there", "", "", ""],
        "m.back": ["there", "", "", ""],
    },
    "0.11.0": {
        "m.f": ["there", "", "(x, n=2)", "Four."],
        "m.new": ["there", "", "", ""],
        "m.back": ["there", "", "", ""],
    },
}


class Row(tuple[int, ...]):
    """A class that is asked for its attributes, as where no object of it can be made."""

    __slots__ = ()

    @functools.lru_cache  # noqa: B019
    def shape(self, wide: bool = False) -> None: ...

    @property
    def flat(self) -> None:
        raise NotImplementedError("rows have no flat; use ravel")

    @property
    def size(self) -> int:
        return len(self)


def test_a_class_has_what_its_objects_have() -> None:
    assert public_names.look(Row, "shape") == ["there", "", "(wide=False)", ""]
    assert public_names.look(Row, "count")[2] == "(value, /)"
    assert public_names.look(Row, "flat") == ["gone", "rows have no flat; use ravel", "", ""]
    assert public_names.look(Row, "size")[0] == "there"


@pytest.fixture
def record(tmp_path: Path) -> Record:
    record = Record(tmp_path / "names.json")
    for release, dumped in RELEASES.items():
        record.put(release, dumped)
    return record


def test_a_history_says_when_a_name_came_changed_and_went(record: Record) -> None:
    lives = {
        name: (history.since, history.changed, history.deprecated, history.gone, history.farewell)
        for name, history in record.histories.items()
    }
    assert lives == {
        "m.f": ("0.9.0", "0.9.2", "", "", ""),
        "m.old": ("0.9.0", "", "0.9.2", "0.10.0", "m.old was removed"),
        "m.new": ("0.9.2", "", "", "", ""),
        "m.back": ("0.10.0", "", "", "", ""),
    }
    assert record.histories["m.old"].spans == (("0.9.0", "0.10.0"),)
    assert record.histories["m.back"].spans == (("0.9.0", "0.9.2"), ("0.10.0", ""))
    assert record.histories["m.f"].sentence == "Four." and record.histories["m.f"].takes == "(x, n=2)"


def test_releases_may_come_in_any_order(record: Record, tmp_path: Path) -> None:
    for order in permutations(RELEASES):
        other = Record(tmp_path / "other.json")
        for release in order:
            other.put(release, RELEASES[release])
        other.save()
        again = Record(tmp_path / "other.json")
        assert again.releases == list(RELEASES)
        for name, history in record.histories.items():
            assert again.histories[name].sentence == history.sentence
            for release in RELEASES:
                expected = Seen(*RELEASES[release].get(name, ["absent", "", "", ""])[:3])
                assert not again.histories[name].at(release).differs_from(expected), (order, name, release)


def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    record.save()
    again = Record(record.path)
    assert (again.releases, again.histories) == (record.releases, record.histories)


def test_a_release_recorded_twice_changes_nothing(record: Record) -> None:
    before = dict(record.histories)
    record.put("0.9.2", RELEASES["0.9.2"])
    assert record.histories == before


# --- what is recorded -------------------------------------------------------------------------------------------------


def test_an_older_release_leaves_the_sentence_of_the_newest(tmp_path: Path) -> None:
    made = Record(tmp_path / "names.json")
    made.put("0.5.0", {"jax.mark": ["there", "", "", "Mark it."]})
    made.put("0.4.30", {"jax.mark": ["there", "", "", "Mark."]})
    assert made.histories["jax.mark"].sentence == "Mark it."


@pytest.fixture(scope="module")
def recorded() -> Record:
    return Record()


def test_the_record_has_the_form_that_its_readers_expect(recorded: Record) -> None:
    assert recorded.releases == sorted(recorded.releases, key=number)
    assert len(recorded.histories) > 3000
    for name, history in recorded.histories.items():
        assert not [part for part in name.split(".") if part.startswith("_") or not part.isidentifier()]
        assert {seen.state for _, seen in history.changes} <= {"there", "deprecated", "gone", "absent"}
        assert history.changes[0][1] != ABSENT
        assert [release for release, _ in history.changes if release not in recorded.releases] == []
        assert all(after.differs_from(before) for (_, before), (_, after) in pairwise(history.changes)), name
        assert (history.now.state in ("there", "deprecated")) == (not history.gone), name
        assert (history.spans or [("", history.gone)])[-1] == (history.since, history.gone), name


def test_the_record_has_every_release_of_the_ladder(recorded: Record) -> None:
    assert {release.name for release in ladder.Record().releases} <= set(recorded.releases)


def test_the_installed_release_has_the_names_that_the_record_says(recorded: Record) -> None:
    release = version("jax")
    if release not in recorded.releases:
        pytest.skip(f"jax {release} is not recorded")
    owners = {name.rpartition(".")[0] for name in recorded.histories}  # modules have to be imported first
    drawn = random.Random(0).sample(sorted(recorded.histories.keys() - owners), 300)
    code = f"""
import json, sys
sys.path.insert(0, {str(public_names.HERE)!r})
import public_names
print(json.dumps(public_names.read({drawn!r})))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    seen = {name: "absent" for name in drawn} | {name: found[0] for name, found in json.loads(done.stdout).items()}
    states = {name: recorded.histories[name].at(release).state for name in drawn}
    assert {name: state for name, state in seen.items() if state != states[name]} == {}
    assert {"there", "absent"} <= set(seen.values())


# --- what pages say --------------------------------------------------------------------------------------------------

SHORT = {"jnp": "jax.numpy", "pl": "jax.experimental.pallas", "lax": "jax.lax"}
SAYS = re.compile(
    r"`((?:jax|jnp|pl|lax)(?:\.\w+)+)`[^`.;|]{0,60}?\b(removed in|gone since|deprecated in|deprecated since|came in|there since)"
    r"\s(?:jax )?(\d+\.\d+(?:\.\d+)*)"
)
CLAIM = re.compile(r'claim\(".*?", hasattr\(([\w.]+), "(\w+)"\), "(changed in) (.*?)"\)')
FACTS = {
    "removed": "gone",
    "gone": "gone",
    "changed": "gone",
    "deprecated": "deprecated",
    "came": "since",
    "there": "since",
}


def statements(text: str) -> list[tuple[str, str, str]]:
    """Return what a text says of names: the name, the fact, the release."""
    found = [(f"{owner}.{name}", *rest) for owner, name, *rest in CLAIM.findall(text)] + SAYS.findall(text)
    return [
        (SHORT.get((root := name.partition(".")[0]), root) + name[len(root) :], FACTS[verb.partition(" ")[0]], release)
        for name, verb, release in found
    ]


def differs(stated: str, known: str) -> bool:
    """Return whether two releases differ; 0.10 is 0.10.0."""
    one, other = number(stated), number(known)
    return other[: len(one)] != one or any(other[len(one) :])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`jax.a` (removed in 0.10)", [("jax.a", "gone", "0.10")]),
        ("`jnp.a`, which\ncame in 0.4.25.", [("jax.numpy.a", "since", "0.4.25")]),
        ("By default `jax.a` makes another type since 0.9.0. It was removed in 0.2.", []),
        ('claim("a", hasattr(jax.b, "a"), "changed in 0.6.0")', [("jax.b.a", "gone", "0.6.0")]),
    ],
)
def test_statements_about_names_are_found(text: str, found: list[tuple[str, str, str]]) -> None:
    assert statements(text) == found


def test_releases_in_sentences_are_those_of_the_record() -> None:
    histories, wrong, right = Record().histories, [], 0
    for page in sorted((ladder.HERE.parent / "docs").rglob("*.md")):
        for name, fact, stated in statements(page.read_text(encoding="utf-8")):
            if history := histories.get(name):
                known = getattr(history, fact)
                right += 1
                if differs(stated, known):
                    wrong.append(f"{page.name}: {name}: {fact} {stated}, by the record {known or 'not'}")
    assert wrong == [] and right > 5


# Rows about a name of a module are called by the module.
OF_MODULE = {
    "jax.lib.xla_bridge": "get_backend",
    "jax.lib.xla_client": "Shape",
    "jax.lib.xla_extension": "XlaRuntimeError",
}


def test_old_names_went_when_the_record_says() -> None:
    """The change log may deprecate a name before reading it warns."""
    record, wrong, known = Record(), [], 0
    for idiom in ladder.idioms():
        name = ".".join(filter(None, (re.sub(r"^jnp\.", "jax.numpy.", idiom.name), OF_MODULE.get(idiom.name))))
        history = record.histories.get(name)
        if history and history.since:
            known += 1
            warns = history.deprecated not in ("", record.releases[0])
            if idiom.removed != history.gone or (warns and number(idiom.deprecated) > number(history.deprecated)):
                wrong.append((name, idiom.deprecated, idiom.removed, history.deprecated, history.gone))
    assert wrong == [] and known > 60
