"""The table of fence options: what is made from it, and what each row says of keys and of markdown-exec."""

import inspect
from pathlib import Path

import markdown_exec
import pytest

from livepages.source.options import TABLE, Affects, Options, parse_options
from tests.conftest import Site

README = Path(__file__).parents[1] / "README.md"


def table() -> str:
    """The options as the README lists them."""
    rows = [f'| `{name}="{option.example}"` | {option.help} |\n' for name, option in TABLE.items()]
    return "".join(["| option | meaning |\n|---|---|\n", *rows])


def test_the_readme_lists_every_option() -> None:
    assert table() in README.read_text(encoding="utf-8"), f"README.md wants this table:\n{table()}"


@pytest.mark.parametrize("name", TABLE)
def test_an_option_belongs_to_the_key_if_it_changes_what_running_gives(name: str, site: Site) -> None:
    others = {"exec": ' reason="a"', "match": ' raises="KeyError"'}.get(name, "")
    given = f'{name}="{TABLE[name].example}"'
    assert getattr(parse_options(f"python {given}{others}"), name) != getattr(Options, name)
    plain, changed = (site.page("a = 1", f"{options}\nb = 1".lstrip()) for options in (others, f"{given}{others}"))
    runs = TABLE[name].affects in (Affects.PROGRAM, Affects.RUN)
    assert (plain.blocks[1].key != changed.blocks[1].key) == runs


@pytest.mark.parametrize(("former", "name"), [("why", "reason"), ("fresh", "isolated")])
def test_an_option_under_its_former_name_is_told_the_new_one(former: str, name: str) -> None:
    with pytest.raises(ValueError, match=f'option {former} is called {name} now; write {name}="on"'):
        parse_options(f'python {former}="on"')


def test_markdown_exec_knows_the_options_that_are_said_to_be_its_own() -> None:
    layout = {"title", "hl_lines", "linenums"}  # its `add_source` hands these on to Markdown
    known = inspect.signature(markdown_exec.base_format).parameters
    assert {option.markdown_exec for option in TABLE.values()} - {"", "exec", *layout} <= known.keys()
