"""The exercises: each has what a reader needs, and the file that grades them gives right answers alone a point."""

import re
from collections.abc import Iterator
from pathlib import Path

import examiner
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examiner import tools
from examiner.verdict import CHECKS

from livepages.execute import Engine
from livepages.export.publication import programs
from livepages.source import Block, Page, find_project
from tests.conftest import Reader

PROJECT = find_project(Path(__file__))
FOLDER = PROJECT.docs / "practice"
PARTS = ("express", "compile", "debug", "scale", "build")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(PROJECT)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def script(engine: Engine) -> str:
    """`practice.py`, as readers take it."""
    (page,), _ = engine.read([FOLDER / "practice.md"])
    run = (engine.kept([page]) or engine.run([page]))[page.path]
    return programs(page, run, PROJECT, "", str)["script"]


@pytest.fixture(scope="module")
def pages(engine: Engine) -> dict[str, Page]:
    found, _ = engine.read([FOLDER / f"{part}.md" for part in PARTS])
    return {page.path.stem: page for page in found}


def answers(pages: dict[str, Page], kind: str) -> dict[str, list[str]]:
    """The code of the blocks in the folds of a kind (`success` or `failure`), for each exercise."""
    found: dict[str, list[str]] = {}
    for page in pages.values():
        for block in page.program:
            name = re.search(r"^examine\((\w+)\)$", block.code, re.MULTILINE)
            if name and fold(page, block).startswith(f"??? {kind} "):
                found.setdefault(name[1], []).append(block.code.replace(name[0], "").strip("\n"))
    return found


def fold(page: Page, block: Block) -> str:
    """The title of the fold that a block stands in."""
    return next((line for line in reversed(page.text[: block.fence.start]) if re.match(r"\?\?\?|#", line)), "")


def stubs(page: Page) -> dict[str, str]:
    """The code of the stubs on a page, by name."""
    names = ((re.match(r"(?:def|class) (\w+)", block.code), block) for block in page.program)
    return {name[1]: block.code.strip("\n") for name, block in names if name and '    """' in block.code}


def test_every_exercise_has_stub_hint_solution_and_wrong_answers(engine: Engine, pages: dict[str, Page]) -> None:
    (everything,), _ = engine.read([FOLDER / "practice.md"])
    shown = {name: code for page in pages.values() for name, code in stubs(page).items()}
    assert shown.keys() == CHECKS.keys() and shown == stubs(everything) and len(shown) >= 40
    solutions, wrong = answers(pages, "success"), answers(pages, "failure")
    assert solutions.keys() == wrong.keys() == CHECKS.keys()
    assert all(len(codes) == 1 for codes in solutions.values()) and all(len(codes) >= 2 for codes in wrong.values())
    for name in CHECKS:
        (section,) = (part for page in pages.values() for part in page.body.split("\n## ") if f"{{ #{name} }}" in part)
        assert section.count("\n??? ") == section.count('\n??? tip "Hint"') + 2 == 3, name


def test_pages_say_how_many_exercises_they_have(engine: Engine, pages: dict[str, Page]) -> None:
    words = {5: "five", 8: "eight", 12: "twelve", 13: "thirteen"}
    (everything,), _ = engine.read([FOLDER / "practice.md"])
    for part, page in pages.items():
        count = words[len(stubs(page))]
        assert f"After these {count} exercises" in page.body and f" {count} " in page.description
        assert f'"{part.capitalize()}: {count} exercises"' in everything.body


def test_an_error_of_a_callback_is_told_without_its_frames(capsys: pytest.CaptureFixture[str]) -> None:
    def on_host(f: object, x: jax.Array) -> jax.Array:
        def fail(x: object) -> None:
            raise ValueError("no table")

        return jax.pure_callback(fail, x, x)

    with pytest.raises(examiner.Refused, match="^on_host: raised JaxRuntimeError: ValueError: no table$") as refused:
        examiner.examine(on_host)
    assert refused.value.__suppress_context__


def filled(script: str, stubs: dict[str, str], written: dict[str, str]) -> str:
    """The file with answers in the place of stubs."""
    for name, code in written.items():
        assert script.count(stubs[name]) == 1, name
        script = script.replace(stubs[name], code)
    return script


def test_stubs_score_nothing(script: str, reader: Reader) -> None:
    status, out, err = reader.run("practice.py", script, absent=["livepages"])
    assert status == 0 and out.endswith(f"\n0 of {len(CHECKS)}\n"), out + err
    assert out.startswith("not written yet: ") and set(CHECKS) <= set(re.findall(r"\w+", out))


def test_solutions_score_everything(script: str, pages: dict[str, Page], reader: Reader) -> None:
    known = {name: code for page in pages.values() for name, code in stubs(page).items()}
    written = {name: codes[0] for name, codes in answers(pages, "success").items()}
    status, out, err = reader.run("practice.py", filled(script, known, written), absent=["livepages"])
    assert status == 0 and out.splitlines() == [
        *(f"{name}: right" for name in known),
        f"{len(CHECKS)} of {len(CHECKS)}",
    ], out + err


def test_wrong_answers_score_nothing_and_each_is_told_why(script: str, pages: dict[str, Page], reader: Reader) -> None:
    known = {name: code for page in pages.values() for name, code in stubs(page).items()}
    right, wrong = answers(pages, "success"), answers(pages, "failure")
    written = {name: f"{right[name][0]}\n\n{codes[0]}" for name, codes in wrong.items()}  # it may use what that defines
    written["cap"] = right["cap"][0]
    del written["gcd"]
    status, out, err = reader.run("practice.py", filled(script, known, written), absent=["livepages"])
    lines = re.sub(r"\n    ", " ", out).splitlines()
    assert status == 0 and lines[-2:] == ["not written yet: gcd", f"1 of {len(CHECKS)}"], out + err
    told = dict(line.split(": ", 1) for line in lines[:-2])
    assert told.pop("cap") == "right" and told.keys() == CHECKS.keys() - {"cap", "gcd"} and "right" not in told.values()


def test_an_exercise_can_be_asked_for_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def tax(income: object) -> object:
        return NotImplemented

    assert examiner.grade({"tax": tax}, "tax") == 0
    assert capsys.readouterr().out == "not written yet: tax\n0 of 1\n"
    with pytest.raises(KeyError, match="there is no exercise 'taxes'"):
        examiner.examine(tax, "taxes")


@pytest.mark.parametrize(
    ("got", "wanted", "message"),
    [
        (None, np.ones(2), "x: gave None; is a return missing?"),
        ((jnp.ones(2),), np.ones(2), r"x: the result is built as \(an array,\), expected an array"),
        ({"a": jnp.ones(2)}, {"a": np.ones(3)}, r"x: result\['a'\]: gave shape \(2,\), expected \(3,\)"),
        (jnp.ones(2, int), np.ones(2), "x: gave dtype int32, expected float32"),
        (jnp.ones(2), np.array([1.0, 2]), r"x: gave \[1., 1.\], expected \[1., 2.\]"),
        (jnp.ones(2), np.array([1.0, np.nan]), r"x: gave \[1., 1.\], expected \[ 1., nan\]"),
        (jnp.ones(20), np.ones(20) + (np.arange(20) == 7), r"x: element \[7\]: gave 1., expected 2."),
        ("text", np.ones(2), "x: gave a str"),
    ],
)
def test_a_wrong_result_is_told_in_words(got: object, wanted: object, message: str) -> None:
    with pytest.raises(examiner.Refused, match=message):
        tools.same("x", got, wanted)


def test_results_may_differ_by_rounding_only() -> None:
    tools.same("x", jnp.full(3, 1.00001), np.ones(3))
    tools.same("x", 2, np.int64(2))
    with pytest.raises(examiner.Refused):
        tools.same("x", jnp.full(3, 1.001), np.ones(3))
