"""The table of fence options: what is made from it, and what each row says of keys and of markdown-exec."""

import inspect
import json
import re
from pathlib import Path

import markdown_exec
import pytest
from markdown import Markdown

from livepages.execution import Outcome, Run, pair_results
from livepages.exporters.publisher import programs
from livepages.source.front_matter import KNOWN
from livepages.source.options import TABLE, Affects, Options, parse_options
from livepages.worker import find_runtime
from tests.conftest import Site

README = Path(__file__).parents[1] / "README.md"


def table() -> str:
    """The options as the README lists them."""
    examples = {name: option.example.replace("|", r"\|") for name, option in TABLE.items()}
    rows = [f'| `{name}="{examples[name]}"` | {option.help} |\n' for name, option in TABLE.items()]
    return "".join(["| option | meaning |\n|---|---|\n", *rows])


def test_the_readme_lists_every_option() -> None:
    assert table() in README.read_text(encoding="utf-8"), f"README.md wants this table:\n{table()}"


def test_the_readme_names_all_front_matter() -> None:
    about = README.read_text(encoding="utf-8").partition("The front matter configures")[2].partition("\n\n")[0]
    for name in {*KNOWN, *find_runtime("jax").settings({})}:
        assert re.search(rf"`{name}\b", about), name


@pytest.mark.parametrize("name", TABLE)
def test_an_option_belongs_to_the_key_if_it_changes_the_outcome(name: str, site: Site) -> None:
    others = {"exec": ' reason="a"', "match": ' raises="KeyError"'}.get(name, "")
    given = f'{name}="{TABLE[name].example}"'
    options, faults = parse_options(f"python {given}{others}")
    assert getattr(options, name) != getattr(Options, name) and not faults
    plain, changed = (site.page("lr = 1", f"{options}\nb = lr".lstrip()) for options in (others, f"{given}{others}"))
    runs = TABLE[name].affects in (Affects.PROGRAM, Affects.RUN)
    assert (plain.blocks[1].key != changed.blocks[1].key) == runs


def test_a_notebook_keeps_the_options_that_change_more_than_looks(site: Site) -> None:
    page = site.page('volatile="on" timeout="9" isolated="on" title="T"\nx = 1')
    text = programs(page, Run(pair_results(page, [Outcome()])), site.project, "", str)["notebook"]
    about = json.loads(text)["cells"][-1]["metadata"]["live"]
    assert {name: about.get(name) for name in TABLE if name in about} == {
        "volatile": True,
        "timeout": 9.0,
        "isolated": True,
    }


@pytest.mark.parametrize(("former", "name"), [("why", "reason"), ("fresh", "isolated")])
def test_an_option_under_its_former_name_is_answered_with_the_new_one(former: str, name: str) -> None:
    _, faults = parse_options(f'python {former}="on"')
    assert faults == [f'option {former} is called {name} now; write {name}="on"']


def test_a_former_value_of_markdown_exec_means_what_it_meant() -> None:
    assert parse_options('python source="material-block"') == (Options(source="block"), [])


@pytest.mark.parametrize("given", ['idprefix=""', 'returncode="1"', 'updatetoc="no"'])
def test_an_option_of_markdown_exec_alone_is_answered_with_its_equivalent(given: str) -> None:
    name = given.partition("=")[0]
    [fault] = parse_options(f"python {given}")[1]
    assert fault.startswith(f'option {name} is read where fences = "exec"; here ') and fault.endswith(": leave it out")


def test_each_option_of_markdown_exec_is_an_option_or_named_as_its_own() -> None:
    options: dict[str, object] = {}
    read = {name for name in re.findall(r'inputs\.pop\("(\w+)"', inspect.getsource(markdown_exec.validator))}
    assert len(read) > 10 and markdown_exec.validator("python", {"exec": "on"}, {}, options, Markdown())
    for name in read:
        faults = parse_options(f'python {name}="other"')[1]
        assert not any("unknown option" in fault for fault in faults), faults


def test_options_named_as_those_of_markdown_exec_exist_there() -> None:
    layout = {"title", "hl_lines", "linenums"}  # its `add_source` hands these on to Markdown
    known = inspect.signature(markdown_exec.base_format).parameters
    assert {option.markdown_exec for option in TABLE.values()} - {"", "exec", *layout} <= known.keys()
