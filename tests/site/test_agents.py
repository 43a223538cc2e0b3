"""The files for programs that write JAX: they are small, every line of them runs, and their digests are right."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import ladder
import pytest
from agent_tasks import DEVICES, TASKS, program
from ladder import PRELUDE, Record, behaviors, number

from benchmarks import agents
from course import jax_now
from livepages.course import read_course
from livepages.execution import Engine
from livepages.source import Page, find_project
from tests.conftest import HANG

RUN = """
import json, sys, traceback
for code in json.load(sys.stdin):
    try:
        exec(code, {"__name__": "__main__"})
    except Exception:
        sys.exit(f"{code}\\n{traceback.format_exc()}")
"""


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    project = find_project(Path(__file__))
    paths = [path for path in read_course(project).pages if path.parent.name == "lookup"]
    return Engine(project).read(paths)[0]


@pytest.fixture(scope="module")
def text(pages: list[Page]) -> str:
    return jax_now.jax_now(pages, "https://jax.example/")


def test_it_is_small_and_says_what_it_is_of(text: str, pages: list[Page]) -> None:
    assert len(text.encode()) <= 8000
    assert len(jax_now.jax_now(pages).encode()) <= 8000
    assert f"ran on jax {max(Record().columns, key=number)}." in text
    assert "https://jax.example/lookup/then-and-now/index.md" in text
    assert all(f"\n{name}: " in text for name in jax_now.ERRORS)
    assert all(f"- `{name}`: " in text for name in jax_now.FIRST)


def test_every_line_of_code_runs(text: str, tmp_path: Path) -> None:
    code = jax_now.code(text)
    assert len(code) > 80
    silent = [line for line in text.splitlines() if line.startswith("- `") and not any(piece in line for piece in code)]
    assert len(silent) <= 3, silent  # where a note says what to write
    by_name = {behavior.name: behavior.code for behavior in behaviors()}
    before = (
        f"{PRELUDE}import functools, jax.example_libraries.optimizers, jax.example_libraries.stax, jax.scipy.linalg\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([before + by_name.get(piece, piece) for piece in code]),
        cwd=tmp_path,  # one of the programs names a folder to keep compiled functions in
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_changed_results_are_those_of_the_installed_release(text: str) -> None:
    column = Record().columns[max(Record().columns, key=number)]
    changed = [line for line in text.splitlines() if " is now `" in line]
    assert len(changed) >= 4
    for line in changed:
        name, _, output = line.removeprefix("- `").partition("` is now `")
        assert output.partition("`")[0] == column.behaviors[name].text
        code = next(behavior.code for behavior in behaviors() if behavior.name == name)
        if jax.__version__ == max(Record().columns, key=number):
            given = eval(code, {"jax": jax, "jnp": jax.numpy})
            assert " ".join(given.split()) == column.behaviors[name].text


def test_the_skill_holds_the_same_and_its_digest_is_right(pages: list[Page]) -> None:
    files = jax_now.files(pages, "https://jax.example/")
    (skill,) = json.loads(files[".well-known/agent-skills/index.json"])["skills"]
    assert skill["url"] == "https://jax.example/.well-known/agent-skills/jax-now/SKILL.md"
    held = files[skill["url"].removeprefix("https://jax.example/")]
    assert skill["digest"] == f"sha256:{hashlib.sha256(held.encode()).hexdigest()}"
    assert held.startswith("---\nname: jax-now\ndescription: ") and held.endswith(files["jax-now.md"])


# --- tasks for models ------------------------------------------------------------------------------------------------

FAILS = {  # what is said of the old program for each task about a change
    "halve": "no attribute 'tree_map'",
    "put": "no attribute 'index_update'",
    "split_sum": "unexpected keyword argument 'check_rep'",
    "clamp": "unexpected keyword argument 'a_max'",
    "area": "no attribute 'trapz'",
    "lowered": "no attribute 'xla_computation'",
    "double_sum": "no attribute 'enable_x64'",
    "shuffled": "no attribute 'shuffle'",
    "draws": "normal accepts a single key",
    "words": "PRNGKey dtype cannot be converted",
    "solve_each": r"two systems: gave shape \(2, 2, 2\)",
    "home": "not callable",
    "replicated": "device_put_replicated is deprecated",
    "operations": "KeyError: 0",
}
MODEL = """
import sys
asked = sys.stdin.read()
body = "jax.tree.map" if "write jax.tree.map" in asked else "jax.tree_map"
print("Here it is, halve:\\n```python\\nimport jax\\ndef halve(tree):\\n"
      f"    return {body}(lambda x: x / 2, tree)\\n```\\nIt uses " + body)
"""


@pytest.mark.slow
def test_programs_for_today_are_right_and_old_ones_are_refused() -> None:
    checked = [task for task in TASKS.values() if task.check]
    assert len(TASKS) == 60 and {task.name for task in checked} == FAILS.keys()
    codes = [
        f"from agent_tasks import verdict\nverdict({t.name!r}, {text!r})" for t in checked for text in (t.today, t.old)
    ]
    (seen,) = ladder.run([[f'jax.config.update("jax_num_cpu_devices", {DEVICES})', *codes]])
    today, old = seen[1::2], seen[2::2]
    assert {task.name: one.text for task, one in zip(checked, today, strict=True) if one.text != "right"} == {}
    for task, one in zip(checked, old, strict=True):
        assert re.search(FAILS[task.name], one.text), (task.name, one.text)


def test_every_task_states_what_to_write_and_has_a_program() -> None:
    own = list(agents.own())
    assert {answer.task for answer in own if answer.label == "today"} == TASKS.keys()
    assert {answer.task for answer in own if answer.label == "old"} == FAILS.keys()
    for name, task in TASKS.items():
        assert re.search(rf"\n(def|class) {name}\b", task.prompt) and '    """' in task.prompt
        assert f"jax.{name}" not in task.prompt


def test_a_model_is_asked_twice_once_and_its_answers_can_be_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file, record = tmp_path / "model.py", tmp_path / "now.md", tmp_path / "answers.jsonl"
    model.write_text(MODEL)
    file.write_text("For trees, write jax.tree.map.")
    command = f"{sys.executable} {model}"
    arguments = [str(record), "--tasks", "halve"]
    agents.ask(command, file, record, ["halve"])
    kept = record.read_text()
    model.unlink()
    agents.main([*arguments, "--command", command, "--file", str(file)])
    assert record.read_text() == kept and kept.count("\n") == 2
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
    assert capsys.readouterr().out.splitlines() == [
        f"halve, {command} alone: raised AttributeError: module 'jax' has no attribute 'tree_map'",
        f"halve, {command} now.md {digest}: right",
        f"{command} alone, on jax {jax.__version__}: 0 of 1 in all, 0 of 1 about changes, 0 of 0 exercises",
        f"{command} now.md {digest}, on jax {jax.__version__}: 1 of 1 in all, 1 of 1 about changes, 0 of 0 exercises",
    ]


def test_what_cannot_be_asked_or_read_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, file = tmp_path / "answers.jsonl", tmp_path / "now.md"
    file.write_text("Write jax.tree.map.")
    record.write_text('{"task": "halve"}\n')
    assert agents.main([str(record)]) == 1
    assert f"{record}:1: this line is no recorded answer" in capsys.readouterr().err
    record.unlink()
    for command, reported in (("no-such-model", "no-such-model"), (f"{sys.executable} -c 1/0", "status 1")):
        assert agents.main([str(record), "--tasks", "halve", "--command", command, "--file", str(file)]) == 1
        assert reported in capsys.readouterr().err and not record.exists()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("def f(): 1", "def f(): 1"),
        ("Sure:\n```python\ndef f(): 1\n```\nThen f() is\n```\n1\n```", "def f(): 1\n"),
        ("```py\ndef f(): 1\n```\nBetter:\n```\ndef f(): 2\n```", "def f(): 2\n"),
    ],
)
def test_the_program_in_an_answer(answer: str, code: str) -> None:
    assert program(answer, "f") == code
