"""Explorables: one run for each value, what each starts from, and how each is reported, tested, recorded and exported."""

import json
import re
from dataclasses import replace

import pytest

from livepages.execution import Run, pair_results
from livepages.exporters.publisher import programs
from livepages.records import Records, check_page, record
from livepages.rendering import page_lines
from livepages.source import Page, PageError, read_page
from livepages.source.explorables import MAX_RUNS, MAX_VALUES
from livepages.source.options import parse_options
from livepages.worker import Outcome
from tests.conftest import Site

RATES = 'vary="lr=0.01, 0.1, 1.0"\nprint(lr * 2)'


def printed(page: Page, run: Run) -> dict[str, str]:
    """Return what each block printed, by its line and values."""
    return {result.block.where: result.outcome.stdout for result in run.program}


def test_a_block_runs_once_for_each_value_and_what_comes_after_sees_the_first(site: Site) -> None:
    page, run = site.run(RATES, "print(lr)")
    assert printed(page, run) == {
        "3[lr=0.01]": "0.02\n",
        "7": "0.01\n",
        "3[lr=0.1]": "0.2\n",
        "3[lr=1.0]": "2.0\n",
    }
    assert not run.failures


def test_two_names_make_a_grid(site: Site) -> None:
    page, run = site.run("vary=\"a=1, 2; b='x', None\"\nprint(a, b)")
    assert list(printed(page, run).values()) == ["1 x\n", "1 None\n", "2 x\n", "2 None\n"]


def test_each_value_starts_from_what_came_before_and_leaves_nothing(site: Site) -> None:
    traced = "import jax\n@jax.jit\ndef f(x):\n    print('traced')\n    return x + 1\nseen = []"
    varied = 'vary="n=1, 2, 3"\nseen.append(n)\nprint(seen, f(n))'
    _, run = site.run(traced, varied, "print(seen)")
    assert [outcome.stdout for outcome in run.outcomes] == [
        "",
        "traced\n[1] 2\n",
        "[1]\n",
        "traced\n[2] 3\n",
        "traced\n[3] 4\n",
    ]


def test_blocks_before_are_reported_as_the_page_ran_them(site: Site) -> None:
    _, run = site.run("import os\nprint(os.getpid())", RATES, "print(os.getpid())")
    before, _, after, *_ = (outcome.stdout for outcome in run.outcomes)
    assert before == after


def test_a_block_of_its_own_namespace_is_varied_in_the_process_of_the_page(site: Site) -> None:
    own = 'vary="a=1, 2" isolated="on"\nimport os\nprint(os.getpid(), a)'
    _, run = site.run("import os\nprint(os.getpid())\na = 5", own, "print(a)")
    [pid] = run.outcomes[0].stdout.split()
    assert [outcome.stdout for outcome in run.outcomes[1:]] == [f"{pid} 1\n", "5\n", f"{pid} 2\n"]


def test_a_value_that_fails_is_a_failure_of_its_own(site: Site) -> None:
    _, run = site.run('vary="a=1, 0, 2"\nprint(1 / a)', "print(a)")
    assert [str(failure).partition("\n")[0] for failure in run.failures] == [
        "docs/page.md:4: block of line 3: with a=0: raised ZeroDivisionError: division by zero"
    ]
    assert [outcome.stdout for outcome in run.outcomes] == ["1.0\n", "1\n", "", "0.5\n"]


def test_values_of_a_block_that_ends_its_process_run_all_the_same(site: Site) -> None:
    _, run = site.run("import os", 'vary="a=1, 0, 2"\nos._exit(1) if a == 1 else print(a)', "print(a)")
    assert [failure.message for failure in run.failures] == ["with a=1: ended the process (exit status 1)"]
    assert [outcome.stdout for outcome in run.outcomes] == ["", "", "", "0\n", "2\n"]


def test_no_value_runs_after_a_block_that_failed(site: Site) -> None:
    _, run = site.run("print(1 / 0)", RATES)
    assert [failure.line for failure in run.failures] == [4]
    assert {outcome.skipped for outcome in run.outcomes[1:]} == {"the block on line 3 failed"}


def test_what_comes_before_must_not_fail_when_it_runs_again(site: Site) -> None:
    once = f"import os\nos.mkdir({str(site.root / 'once')!r})"
    _, run = site.run(once, 'vary="a=1, 2"\nprint(a)')
    [failure] = run.failures
    assert failure.message == (
        "with a=2: the block on line 3, which comes before it, failed when it ran again for these values"
    )


def test_a_value_that_is_not_run_says_why_as_its_block_does(site: Site) -> None:
    _, run = site.run('vary="a=1, 2" needs="tpu"\nprint(a)')
    assert {outcome.skipped for outcome in run.outcomes} == {"needs tpu; this host has no tpu"}


def test_the_code_begins_with_the_value_and_names_the_others(site: Site) -> None:
    page = site.page(RATES)
    assert page.blocks[0].code == "lr = 0.01  # or 0.1, 1.0\nprint(lr * 2)\n"
    assert [block.code.partition("\n")[0] for block in page.variants] == [
        "lr = 0.1  # or 0.01, 1.0",
        "lr = 1.0  # or 0.01, 0.1",
    ]
    assert page.script == page.blocks[0].code


def test_another_value_changes_the_keys_of_its_run_alone(site: Site) -> None:
    one, two = (site.page(f'vary="{values}"\na', "a").cases for values in ("a=1, 2", "a=1, 3"))
    assert len({block.key for block in one}) == 3
    assert one[2].key != two[2].key


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("0.1, 0.2", 'option vary is a name and its values, as "lr=0.01, 0.1", not'),
        ("", 'option vary is empty; write it as vary="lr='),
        ("a.b=1, 2", "option vary is a name and its values"),
        ("lr=0.1", "at least two, each once; lr has 0.1"),
        ("lr=0.1, 0.1", "at least two, each once; lr has 0.1, 0.1"),
        (f"lr={', '.join(map(str, range(MAX_VALUES + 1)))}", f"at most {MAX_VALUES}; lr has {MAX_VALUES + 1}"),
        ("a=1, 2, 3, 4, 5, 6; lr=1, 2, 3, 4, 5", f"a grid of at most {MAX_RUNS}, and these make one of 30"),
        ("a=1, 2; a=3, 4", "two names at most, each once"),
        ("a=1, 2; b=1, 2; lr=1, 2", "two names at most, each once"),
        ("learning=1, 2", "option vary: the block does not use learning"),
    ],
)
def test_what_cannot_be_varied_is_reported(site: Site, given: str, message: str) -> None:
    page = site.write("docs/page.md", f'# Page\n\n```python vary="{given}"\na, b, lr\n```\n')
    with pytest.raises(PageError, match=f"^docs/page.md:3: .*{re.escape(message)}"):
        read_page(page, site.project)


def test_options_that_do_not_go_with_it_are_reported() -> None:
    for others, message in {'result="markdown"': "leave result=", 'exec="off" reason="r"': "does not run"}.items():
        options, [reported] = parse_options(f'python vary="a=1, 2" {others}')
        assert re.search(f"vary.*{message}", reported) and not options.vary


def test_each_value_has_a_record_of_its_own(site: Site) -> None:
    page, run = site.run(RATES)
    record(site.project, "here", [(page, run)])
    assert not check_page(page, run, Records(site.project))
    *others, last = run.outcomes
    changed = replace(run, results=pair_results(page, [*others, replace(last, streams=(("out", "7\n"),))]))
    [failure] = check_page(page, changed, Records(site.project))
    assert failure.message.startswith("with lr=1.0: the output differs from the record")
    assert (failure.line, [len(blocks) for blocks in Records(site.project).outdated([page]).values()]) == (3, [0])


def test_the_cache_keeps_each_value(site: Site) -> None:
    page, run = site.run(RATES)
    assert site.engine.kept([page])[page.path].outcomes == run.outcomes


def test_other_forms_hold_the_first_value(site: Site) -> None:
    page, run = site.run(RATES)
    made = programs(page, run, site.project, "", str)
    cells = json.loads(made["notebook"])["cells"]
    assert ["".join(cell["source"]) for cell in cells if cell["metadata"].get("live", {}).get("key")] == [
        "lr = 0.01  # or 0.1, 1.0\nprint(lr * 2)"
    ]
    assert made["script"].count("lr = ") == 1


def test_the_page_shows_the_first_value_and_folds_the_others(site: Site) -> None:
    page, run = site.run("vary=\"a=1, 2; b='<', '>'\"\nprint(a, b)")
    shown = "\n".join(page_lines(page, run, site.project.runtime, lambda block: (), str))
    assert shown.count("live-value") == 4
    assert re.findall(r"<summary>with <code>(.*?)</code></summary>", shown) == [
        "a = 1, b = &#x27;&gt;&#x27;",
        "a = 2, b = &#x27;&lt;&#x27;",
        "a = 2, b = &#x27;&gt;&#x27;",
    ]
    assert "a = 1  # or 2\nb = '<'  # or '>'" in shown
    pending = pair_results(page, [Outcome()])
    assert "Running" in "".join(page_lines(page, Run(pending), site.project.runtime, lambda block: (), str))


@pytest.mark.parametrize(
    ("alt", "second"), [("a line", "a line, with a=2"), ("A line. It rises.", "A line. It rises. With a=2.")]
)
def test_a_figure_is_described_with_its_value(alt: str, second: str, site: Site) -> None:
    page, run = site.run(f'vary="a=1, 2" alt="{alt}"\nimport matplotlib.pyplot as plt\nplt.plot([0, a])')
    assert not run.failures
    shown = "\n".join(page_lines(page, run, site.project.runtime, lambda block: (), str))
    assert re.findall('aria-label="(a line.*?)"', shown, re.IGNORECASE) == [alt, second]
    ids = re.findall(r'\bid="([^"]+)"', shown)
    assert len(ids) == len(set(ids))


def test_blocks_and_variants_are_known_by_their_places(site: Site) -> None:
    page, run = site.run("1", RATES, 'vary="n=1, 2"\nn', 'exec="off" reason="r"\n2')
    assert [block.index for block in (*page.blocks, *page.variants)] == [*range(7)]
    assert all(run.results[block.index].block is block for block in page.cases)
