"""The exercises: each has what a reader needs, right answers of any kind are accepted, wrong ones refused for a reason."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import examiner
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examiner import tools
from examiner.verdict import CHECKS, PARTS, exercises, first_at
from examiner.watch import PAGES, start

from course.examiner import program
from livepages.execution import Engine
from livepages.exporters.kernel_bridge import needed_parts
from livepages.exporters.publisher import programs
from livepages.source import Block, Page, find_project
from tests.conftest import Reader, compiled_before

PROJECT = find_project(Path(__file__))
FOLDER = PROJECT.docs / "practice"
PAGES_OF_EXERCISES = sorted({exercise.page for exercise in CHECKS.values()})  # of the course
SMALL = (
    "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
PATH = f"import sys\nsys.path[:0] = [{str(PROJECT.root)!r}, {str(PROJECT.snippets)!r}]\n"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(PROJECT)
    yield engine
    engine.close()


def downloaded(engine: Engine, name: str) -> str:
    """The script of a page, as readers get it."""
    (page,), _ = engine.read([FOLDER / f"{name}.md"])
    run = (engine.kept([page]) or engine.run([page]))[page.path]
    return programs(page, run, PROJECT, "", str)["script"]


@pytest.fixture(scope="module")
def script(engine: Engine) -> str:
    """`live-practice.py`, as readers get it."""
    return downloaded(engine, "practice")


@pytest.fixture(scope="module")
def pages(engine: Engine) -> dict[str, Page]:
    found, _ = engine.read([FOLDER / f"{part}.md" for part in PARTS])
    return {page.path.stem: page for page in found}


def answers(pages: dict[str, Page], kind: str) -> dict[str, list[str]]:
    """The code in the folds of a kind (`solution` or `attempt`) for each exercise, made to define its name."""
    found: dict[str, list[str]] = {}
    for page in pages.values():
        for block in page.program:
            name = re.search(rf'^examine\({kind}, "(\w+)"\)$', block.code, re.MULTILINE)
            if name and fold(page, block).startswith("??? "):
                code = re.sub(rf"\b{kind}\b", name[1], block.code.replace(name[0], "").strip("\n"))
                found.setdefault(name[1], []).append(code)
    return found


def fold(page: Page, block: Block) -> str:
    """The title of the fold that holds a block, or the heading above it."""
    return next((line for line in reversed(page.text[: block.fence.start]) if re.match(r"\?\?\?|#", line)), "")


def stubs(page: Page) -> dict[str, str]:
    """The code of the stubs on a page, by name."""
    names = (
        (re.match(r"(?:(?:import|from) .*\n|\n)*(?:def|class) (\w+)", block.code), block) for block in page.program
    )
    return {name[1]: block.code.strip("\n") for name, block in names if name and '    """' in block.code}


def filled(script: str, stubs: dict[str, str], written: dict[str, str]) -> str:
    """The file with answers in the place of stubs."""
    for name, code in written.items():
        assert script.count(stubs[name]) == 1, name
        script = script.replace(stubs[name], code)
    return script


# --- the pages -----------------------------------------------------------------------------------------------------


def test_every_exercise_has_stub_level_hints_solution_and_wrong_answers(engine: Engine, pages: dict[str, Page]) -> None:
    (everything,), _ = engine.read([FOLDER / "practice.md"])
    shown = {name: code for page in pages.values() for name, code in stubs(page).items()}
    right, wrong, listed = answers(pages, "solution"), answers(pages, "attempt"), stubs(everything)
    for where, found in {
        "a stub on the page of a part": shown,
        "a check in snippets/examiner": CHECKS,
        "a stub on docs/practice/practice.md": listed,
        "a solution": right,
        "wrong answers": wrong,
    }.items():
        lacking = sorted((shown.keys() | CHECKS.keys() | listed.keys()) - found.keys())
        assert not lacking, f"{', '.join(lacking)}: there must be {where}"
    assert shown == listed, "the stubs on docs/practice/practice.md are others than on the pages of the parts"
    assert list(shown) == exercises(), "the checks in snippets/examiner are not in the order of the stubs"
    assert all(len(codes) == 1 for codes in right.values()) and all(len(codes) >= 2 for codes in wrong.values())
    for name, exercise in CHECKS.items():
        (section,) = (part for page in pages.values() for part in page.body.split("\n## ") if f"{{ #{name} }}" in part)
        folds = re.findall(r"^\?\?\? (.*)$", section, re.MULTILINE)
        hints = ['tip "Hint: a nudge"', 'tip "Hint: the way"']
        assert folds == [*hints, 'success "Solution"', 'failure "Wrong answers"'], name
        assert f"\nLevel: {exercise.level}\n" in section and f'"{name}: {exercise.level}"' in everything.source, name
    assert {exercise.level for exercise in CHECKS.values()} == {"warm-up", "core", "challenge"}


def in_words(number: int) -> str:
    """A number below a hundred, in words."""
    small, (tens, ones) = SMALL.split(), divmod(number, 10)
    if number < len(small):
        return small[number]
    return TENS.split()[tens - 2] + (f"-{small[ones]}" if ones else "")


def test_pages_say_how_many_exercises_they_have(engine: Engine, pages: dict[str, Page]) -> None:
    (everything,), _ = engine.read([FOLDER / "practice.md"])
    number = f"all {in_words(len(CHECKS))} exercises"
    assert number in everything.body.lower(), f"docs/practice/practice.md must say {number!r}"
    for part, page in pages.items():
        count, title = in_words(len(stubs(page))), page.title.removeprefix("Practice: ")
        number = f"{count.capitalize()} exercises on"
        assert f"\n{number}" in page.body, f"{page.name} must say {number!r}"
        assert f" {count} " in page.description, f"the description of {page.name} must say {count!r}"
        assert f'"{title.capitalize()}: {count} exercises"' in everything.body
        assert page.title == PAGES[part] and f"[{page.title}]({part}.md)" in everything.body


def test_solutions_bind_names_of_their_own(pages: dict[str, Page]) -> None:
    """A learner who runs every cell of a notebook keeps what they wrote."""
    for page in pages.values():
        for block in page.program:
            if fold(page, block).startswith("??? "):
                for node in ast.parse(block.code).body:
                    if isinstance(node, ast.FunctionDef | ast.ClassDef):
                        bound = {node.name}
                    else:
                        names = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
                        bound = {name.id for name in names}
                    assert all(re.match("solution|attempt", name) for name in bound), (
                        f"{page.name}:{block.line} {bound}"
                    )


def test_running_all_of_a_page_grades_what_the_learner_wrote(
    engine: Engine, pages: dict[str, Page], reader: Reader
) -> None:
    written = {name: codes[0] for name, codes in answers({"debug": pages["debug"]}, "solution").items()}
    wrong = answers({"debug": pages["debug"]}, "attempt")["culprit"][1]
    text = filled(downloaded(engine, "debug"), stubs(pages["debug"]), {**written, "culprit": wrong})
    status, out, err = reader.run("debug.py", text, absent=["livepages"])
    assert status == 0 and out.endswith("\n7 of 8 right, 1 wrong\n"), out + err
    assert "\nculprit: inf - inf: gave 0, expected 1\n" in out


def test_each_page_of_the_course_links_its_exercises_and_shows_one_in_place(engine: Engine) -> None:
    """The page of all exercises has a table of them."""
    everything = (FOLDER / "practice.md").read_text(encoding="utf-8")
    shown = {path.relative_to(PROJECT.docs): path.read_text(encoding="utf-8") for path in PROJECT.docs.rglob("*.md")}
    by_page = {page: [name for name in exercises() if CHECKS[name].page == page] for page in PAGES_OF_EXERCISES}
    for path, text in shown.items():
        names = by_page.get(path.with_suffix("").as_posix(), [])
        links = [f"](../practice/{CHECKS[name].part}.md#{name})" for name in names]
        assert all(link in text for link in links), path
        if path.parent.name != "practice":
            in_place = re.findall(r'^```python title="(\w+): ([\w-]+)"$', text, re.MULTILINE)
            included = re.findall(r'^--8<-- "exercises.py:(\w+)"$', text, re.MULTILINE)
            assert [name for name, _ in in_place] == included and len(included) == bool(names), path
            assert all(name in names and level == CHECKS[name].level for name, level in in_place), path
    for page, names in by_page.items():
        cells = ", ".join(f"[{name}]({CHECKS[name].part}.md#{name})" for name in names)
        assert re.search(rf"^\| \[.+\]\(\.\./{page}\.md\) \| {re.escape(cells)} \|$", everything, re.MULTILINE), page


# --- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_learners_answers(part: str, reader: Reader) -> None:
    """See `tests/site/snippets/answers`."""
    code = f"{PATH}from tests.site.snippets.answers import main\nmain({part!r})\n"
    status, out, err = reader.run("answers.py", code)
    assert status == 0, out + err
    found = json.loads(out.splitlines()[-1])
    assert not found["problems"], "\n".join(found["problems"])
    assert set(found["counts"]) == set(exercises(part))
    assert all(right >= 5 and wrong >= 5 for right, wrong in found["counts"].values()), found["counts"]


def test_an_error_of_a_callback_is_reported_without_its_frames() -> None:
    def on_host(f: object, x: jax.Array) -> jax.Array:
        def fail(x: object) -> None:
            raise ValueError("no table")

        return jax.pure_callback(fail, x, x)

    with pytest.raises(examiner.Refused, match="^on_host: raised JaxRuntimeError: ValueError: no table$") as refused:
        examiner.examine(on_host)
    assert refused.value.__suppress_context__


def test_an_error_whose_first_line_ends_in_a_colon_is_reported_with_what_follows() -> None:
    def gradient_norms(loss: Callable[..., jax.Array], w: jax.Array, xs: jax.Array, ys: jax.Array) -> jax.Array:
        return jax.vmap(jax.grad(loss))(w, xs, ys)  # without in_axes

    with pytest.raises(examiner.Refused, match=r"to be mapped: .*axis 0 of argument w "):
        examiner.examine(gradient_norms)


# --- the file of all exercises -------------------------------------------------------------------------------------


def test_stubs_score_nothing(script: str, reader: Reader) -> None:
    status, out, err = reader.run("live-practice.py", script, absent=["livepages"])
    assert status == 0, out + err
    assert out == "0 of 46 right, 46 not written yet; the next one is standardize\n"


@pytest.mark.slow  # the pages of exercises examine each solution, too
def test_solutions_score_everything(script: str, pages: dict[str, Page], reader: Reader) -> None:
    known = {name: code for page in pages.values() for name, code in stubs(page).items()}
    written = {name: codes[0] for name, codes in answers(pages, "solution").items()}
    status, out, err = reader.run("live-practice.py", filled(script, known, written), absent=["livepages"])
    assert status == 0 and out.splitlines() == [*(f"{name}: right" for name in known), "46 of 46 right"], out + err


def test_verdicts_come_one_by_one_and_the_score_last(capsys: pytest.CaptureFixture[str]) -> None:
    def tax(income: jax.Array) -> object:
        return NotImplemented

    def gcd(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.gcd(a, b)

    def cap(x: jax.Array, limit: float) -> jax.Array:
        return jnp.maximum(x, limit)

    found = {"tax": tax, "gcd": gcd, "cap": cap}
    assert examiner.grade(found, "cap", "tax", "gcd", "window") == 1
    assert capsys.readouterr().out.splitlines() == [
        "cap: [1, 5, 3, 9] and limit 4: gave [4, 5, 4, 9], expected [1, 4, 3, 4]",
        "gcd: right",
        "1 of 4 right, 1 wrong, 2 not written yet; the next one is tax",
    ]
    with pytest.raises(examiner.Refused, match="^tax: not written yet$"):
        examiner.examine(tax)
    with pytest.raises(KeyError, match="there is no exercise 'taxes'"):
        examiner.examine(tax, "taxes")


ENDLESS = f"""import os, signal
signal.signal(signal.SIGINT, signal.HANDLER)
{PATH}
import jax
import jax.numpy as jnp
from examiner import grade, limit

def tax(income):
    while True:
        pass

@jax.jit
def divisor(a, b, forever):
    def less(state):
        a, b, forever = state
        return b, a % jnp.maximum(b, 1), forever
    return jax.lax.while_loop(lambda state: (state[1] != 0) | state[2], less, (a, b, forever))[0]

def gcd(a, b):
    return divisor(a, b, forever)

forever = False  # the program is compiled before the limit counts, so that it falls into it, however busy the machine
limit.SECONDS = 600
grade(globals(), "gcd")
forever = True
limit.SECONDS = 1
grade(globals(), "tax", "gcd", "orbit")
"""


@pytest.mark.parametrize("handler", ["default_int_handler", "SIG_IGN"])
def test_a_loop_that_never_ends_is_stopped_and_named(handler: str, reader: Reader) -> None:
    """Also in what a shell has started in the background, which ignores Ctrl-C."""
    status, out, err = reader.run("endless.py", ENDLESS.replace("HANDLER", handler))
    assert len(out.splitlines()) == 4, out + err
    *before, first, second = out.splitlines()
    assert before == ["gcd: right", "1 of 1 right"]
    assert first == "tax: still running after 1 seconds: one of its loops may never end"
    assert status == 1 and second.startswith("gcd: still running after 1 seconds, in a compiled program, which Python")


def output_until(watcher: "subprocess.Popen[str]", what: str) -> str:
    """Return the output up to a line that begins with a text."""
    found = []
    for line in watcher.stdout or ():
        found.append(line)
        if line.startswith(what):
            return "".join(found)
    raise AssertionError("".join(found))


def test_the_downloaded_file_can_watch_itself(tmp_path: Path, script: str) -> None:
    (tmp_path / "practice.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "practice.py", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as watcher:
        try:
            output = output_until(watcher, "Hints and a solution:")
            assert "\nExercise 1 of 46: standardize (core)\n" in output and "ended early" not in output
        finally:
            watcher.kill()


def test_a_watched_file_shows_the_next_exercise(tmp_path: Path, pages: dict[str, Page]) -> None:
    file = tmp_path / "mine.py"
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT.snippets),
        "JAX_COMPILATION_CACHE_DIR": str(PROJECT.cache / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, "-m", "examiner", str(file), "--from", "Ball"]
    shown = stubs(pages["basics"]) | stubs(pages["speed"])
    right = {name: codes[0] for name, codes in answers(pages, "solution").items()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watcher:
        try:
            output = output_until(watcher, "Hints and a solution:")
            assert f"Wrote {file}" in output and "\nExercise 13 of 46: Ball (core)\n" in output
            text = file.read_text(encoding="utf-8")
            assert all(code in text for code in shown.values()) and "--8<--" not in text
            assert not start(file)
            text = filled(text, shown, {"Ball": right["Ball"], "tax": f"def tax(income):\n{'    '}return income"})
            file.write_text(text, encoding="utf-8")
            output = output_until(watcher, "Hints and a solution:")
            assert "Ball: right\n" in output and "\ntax: income 5: gave 5, expected 0\n" in output
            assert "\nExercise 14 of 46: tax (warm-up)\n" in output and f"{file}:" in output
            file.write_text(text.replace("return income", "return incom e"), encoding="utf-8")
            output = output_until(watcher, "Hints and a solution:")
            assert "mine.py does not run:\n" in output and "SyntaxError: invalid syntax" in output
            assert "runpy" not in output and "Exercise 14 of 46" in output
        finally:
            watcher.kill()


@pytest.mark.parametrize(
    ("place", "exercise"),
    [
        ("train", "cross_entropy"),
        ("Speed", "tax"),
        ("docs/basics/vmap.md", "gradient_norms"),
        ("basics/vmap/", "gradient_norms"),
        ("training", "cross_entropy"),
        ("ball", "Ball"),
        ("fit", "fit"),
    ],
)
def test_practice_begins_at_a_part_a_page_or_an_exercise(place: str, exercise: str) -> None:
    assert first_at(place) == exercise


def test_a_place_that_is_none_is_answered_with_all_there_are(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    command = [sys.executable, "-m", "examiner", str(file), "--from", "trian"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT.snippets)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1 and not file.exists()
    assert done.stderr.startswith("There is no part, page or exercise 'trian'; did you mean 'train'? Begin with\n")
    assert all(name in done.stderr for name in [*PARTS, *PAGES_OF_EXERCISES, *CHECKS])


# --- in the page ---------------------------------------------------------------------------------------------------

IN_THE_PAGE = """import json, sys, tempfile
from examiner import verdict
for name, before, code in json.loads(sys.stdin.read()):
    known = {"__name__": "__main__"}
    for part in [*before, code]:
        exec(compile(part, name, "exec"), known)
    verdict.judge(known[name], name)
    print(name)
"""


def test_a_kernel_gets_the_examiner_from_the_site_where_it_has_none(tmp_path: Path) -> None:
    code = f"{program(PROJECT.snippets / 'examiner')}\nimport examiner\nprint(examiner.__file__)"
    for path in ("", str(PROJECT.snippets)):
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
        )
        assert done.stdout.startswith(path) and done.stdout.endswith("examiner/__init__.py\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [*([f"practice/{name}"] for name in (*PARTS, "practice")), PAGES_OF_EXERCISES], ids=lambda names: names[-1]
)
def test_an_exercise_runs_in_its_page_with_only_what_it_needs_of_the_blocks_above(
    names: list[str], engine: Engine, pages: dict[str, Page]
) -> None:
    """One process examines those of all pages of the course, which have a turn on their page of practice as well."""
    found, _ = engine.read([PROJECT.docs / f"{name}.md" for name in names])
    right = {exercise: codes[0] for exercise, codes in answers(pages, "solution").items()}
    requests: list[tuple[str, list[str], str]] = []
    for page in found:
        blocks = [block.code for block in page.program if not block.options.isolated]
        shown = {
            name: code for name, code in stubs(page).items() if f'title="{name}: ' in page.source or len(names) == 1
        }
        assert shown
        for exercise, stub in shown.items():
            (at,) = (index for index, code in enumerate(blocks) if code.strip("\n") == stub)
            imports = stub[: re.search("(?m)^(def|class|@)", stub).start()]  # type: ignore[union-attr]
            for code in (stub, imports + right[exercise]):
                before = [part for _, part in needed_parts(blocks[:at], code)]
                odd = r"^(?!import |from |jax\.config|jnp\.set_printoptions|compilation_cache.reset|#|$)"
                assert not [part for part in before if re.search(odd, part, re.MULTILINE)]
            if requests:  # a kernel makes settings once
                before = [re.sub("(?m)^jax.config.*", "", part) for part in before]
            requests.append((exercise, before, code))
    most = max(found, key=lambda page: str(page.settings.runtime["devices"]))
    settings = PROJECT.runtime.setup(most.settings.runtime, PROJECT.options)
    done = subprocess.run(
        [sys.executable, "-c", f"{PATH}{settings}\n{IN_THE_PAGE}"],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **compiled_before(PROJECT)},
    )
    assert done.stdout.split() == [exercise for exercise, *_ in requests], done.stderr


# --- messages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "wanted", "message"),
    [
        (None, np.ones(2), "x: returned None; is a return missing?"),
        ((jnp.ones(2),), np.ones(2), r"x: the result is built as \(an array,\), expected an array"),
        ({"a": jnp.ones(2)}, {"a": np.ones(3)}, r"x: result\['a'\]: gave shape \(2,\), expected \(3,\)"),
        (jnp.ones(2, int), np.ones(2), "x: gave dtype int32, expected float32"),
        (jnp.ones(2), np.array([1.0, 2]), r"x: gave \[1, 1\], expected \[1, 2\]"),
        (jnp.ones(2), np.array([1.0, np.nan]), r"x: gave \[1, 1\], expected \[1, nan\]"),
        (jnp.ones(20), np.ones(20) + (np.arange(20) == 7), r"x: element \[7\]: gave 1, expected 2"),
        (jnp.float32(0.2014), np.float32(0.2012), "x: gave 0.2014, expected 0.2012"),
        (jnp.float32(0.201429), np.float32(0.201381), "x: gave 0.201429, expected 0.201381"),
        (jnp.float32(0.00001), np.float32(0), "x: gave 1e-05, expected 0"),
        ("text", np.ones(2), "x: gave a str"),
    ],
)
def test_a_wrong_result_is_described(got: object, wanted: object, message: str) -> None:
    with pytest.raises(examiner.Refused, match=message):
        tools.same("x", got, wanted)


def test_results_may_differ_by_rounding_only() -> None:
    tools.same("x", jnp.full(3, 1.00001), np.ones(3))
    tools.same("x", 2, np.int64(2))
    with pytest.raises(examiner.Refused):
        tools.same("x", jnp.full(3, 1.001), np.ones(3))
