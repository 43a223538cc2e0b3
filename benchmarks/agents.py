"""Does ``jax-now.md`` help a model? ``python -m benchmarks.agents ANSWERS`` asks it small tasks and runs its answers.

The tasks are those of ``snippets/agent_tasks.py``. The model is a command of yours, which reads a prompt from standard
input and prints its answer. Each task is asked twice, alone and below the text of a file:

    python -m benchmarks.agents answers.jsonl --command "my-model --quiet" --file site/jax-now.md

Every answer is appended to ANSWERS, a line each, and is not asked for again. Without a command, what is recorded is
judged. Without ANSWERS, this site's own programs are, which tests the tasks and no model: for a task about something
that changed an old program and one for today, for an exercise its solution.

It runs what the model wrote, with your rights: do that where you would run the code of a stranger.
"""

import argparse
import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from livepages.execution import Engine
from livepages.source import find_project

PROJECT = find_project(Path(__file__))
sys.path.append(str(PROJECT.snippets))  # where pages import it from, too

import ladder  # noqa: E402
from agent_tasks import DEVICES, TASKS  # noqa: E402

LONGEST = 600  # seconds that a model may take for an answer


@dataclass(frozen=True)
class Answer:
    """The text that a model wrote for a task."""

    task: str
    label: str  # "alone", or the file that was above the task, with its digest
    command: str
    text: str


def main(arguments: list[str] | None = None) -> int:
    """Ask, judge and print what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", nargs="?", type=Path, metavar="ANSWERS", help="a file of recorded answers")
    parser.add_argument("--command", help="reads a task from standard input, and prints an answer")
    parser.add_argument("--file", type=Path, help="whose text is put above each task, such as jax-now.md")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, metavar="TASK", default=list(TASKS), help="only these")
    given = parser.parse_args(arguments)
    if given.command and not (given.answers and given.file):
        parser.error("--command needs ANSWERS, to record into, and --file")
    try:
        if given.command:
            ask(given.command, given.file, given.answers, given.tasks)
        answers = recorded(given.answers) if given.answers else [*own()]
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"{error}\nWhat was answered before is kept; the same command goes on from there.", file=sys.stderr)
        return 1
    report([answer for answer in answers if answer.task in given.tasks])
    return 0


def ask(command: str, file: Path, record: Path, tasks: Iterable[str]) -> None:
    """Ask a model each task without and with the text of a file, unless the record has the answer."""
    above = file.read_text(encoding="utf-8")
    labels = {"alone": "", f"{file.name} {hashlib.sha256(above.encode()).hexdigest()[:8]}": f"{above}\n\n"}
    there = {(answer.task, answer.label, answer.command) for answer in recorded(record)}
    for task in tasks:
        for label, text in labels.items():
            if (task, label, command) in there:
                continue
            done = subprocess.run(
                shlex.split(command),
                input=text + TASKS[task].prompt,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                timeout=LONGEST,
            )
            with record.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(Answer(task, label, command, done.stdout))) + "\n")


def recorded(record: Path) -> list[Answer]:
    """Return the answers in a file; none if there is no file.

    Raises:
        ValueError: a line is no answer.
    """
    found = []
    for number, line in enumerate(record.read_text(encoding="utf-8").splitlines() if record.exists() else [], 1):
        try:
            found.append(Answer(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{record}:{number}: this line is no recorded answer ({error})") from error
    return found


def own() -> Iterator[Answer]:
    """Return this site's own programs: of tasks about changes an old and a new one, of exercises the solution."""
    for task in TASKS.values():
        if task.check:
            yield Answer(task.name, "old", "", task.old)
            yield Answer(task.name, "today", "", task.today)
    pages, _ = Engine(PROJECT).read(sorted((PROJECT.docs / "practice").glob("*.md")))
    for page in pages:
        imports = re.findall(
            r"^(?:from (?!examiner)|import ).*$", "\n".join(b.code for b in page.program), re.MULTILINE
        )
        for block in page.program:
            if found := re.search(r'^examine\(solution, "(\w+)"\)$', block.code, re.MULTILINE):
                code = re.sub(r"\bsolution\b", found[1], block.code.replace(found[0], ""))
                yield Answer(found[1], "today", "", "\n".join([*imports, code]))


def judged(answers: Iterable[Answer]) -> list[str]:
    """Return the verdict on each answer; each runs in a process of its own."""
    setting = f'import jax\njax.config.update("jax_num_cpu_devices", {DEVICES})\nfrom agent_tasks import verdict\n'
    programs = [[f"{setting}verdict({answer.task!r}, {answer.text!r})"] for answer in answers]
    return [seen.text for (seen,) in ladder.run(programs)]


def report(answers: list[Answer]) -> None:
    """Print the verdicts, task by task, and the score of each command and label."""
    verdicts = dict(zip(answers, judged(answers), strict=True))
    ways: dict[str, list[Answer]] = {}
    for answer in sorted(answers, key=lambda answer: list(TASKS).index(answer.task)):
        way = f"{answer.command} {answer.label}".strip()
        ways.setdefault(way, []).append(answer)
        print(f"{answer.task}, {way}: {verdicts[answer]}")
    for way, those in ways.items():
        changes = [answer for answer in those if TASKS[answer.task].check]
        of = {
            "in all": those,
            "about changes": changes,
            "exercises": [answer for answer in those if answer not in changes],
        }
        scores = (f"{sum(verdicts[a] == 'right' for a in some)} of {len(some)} {what}" for what, some in of.items())
        print(f"{way}, on jax {version('jax')}: {', '.join(scores)}")


if __name__ == "__main__":
    sys.exit(main())
