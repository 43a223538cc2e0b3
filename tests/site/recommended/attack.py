"""An attack: a program as a page shows it, on inputs made up by Hypothesis, against an independent reference."""

import ast
import symtable
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from livepages.source import find_project
from livepages.source.page import Page
from livepages.source.parser import read_page
from tests.site.strategies import FEW, MANY

PROJECT = find_project(Path(__file__))
ATTACKED: dict[str, str] = {}  # recommendation -> the test that attacks it
sys.path.insert(0, str(PROJECT.root / "snippets"))
few, many = pytest.param(FEW, marks=pytest.mark.brief), pytest.param(MANY, marks=pytest.mark.slow)
two = pytest.param(2, marks=pytest.mark.brief)
examples, two_examples, slow_examples = (
    pytest.mark.parametrize("count", counts) for counts in ([few, many], [two, many], [many])
)
RULES = "defvjp", "defjvp", "defjvps"  # methods that give a function its rule
Attack = Callable[[Callable[..., None]], Callable[[int], None]]


def attack(*names: str, **inputs: st.SearchStrategy[Any]) -> Attack:
    """Make a test of a function that asserts something about any of these inputs, and enter what it attacks."""
    return _attack(names, examples, inputs)


def long_attack(*names: str, **inputs: st.SearchStrategy[Any]) -> Attack:
    """Make the test that `attack` makes, but with two inputs where it makes few: each compiles for seconds."""
    return _attack(names, two_examples, inputs)


def slow_attack(*names: str, **inputs: st.SearchStrategy[Any]) -> Attack:
    """Make the test that `attack` makes, but only with many inputs: what it compiles takes most of its time."""
    return _attack(names, slow_examples, inputs)


def _attack(names: Iterable[str], counts: pytest.MarkDecorator, inputs: dict[str, st.SearchStrategy[Any]]) -> Attack:
    def made(function: Callable[..., None]) -> Callable[[int], None]:
        @counts
        def test(count: int) -> None:
            search(count, function, **inputs)

        test.__name__, test.__doc__, test.__module__ = function.__name__, function.__doc__, function.__module__
        ATTACKED.update(dict.fromkeys(names, function.__name__))
        return test

    return made


def search(count: int, function: Callable[..., None], **inputs: st.SearchStrategy[Any]) -> None:
    """Call a function with this many made-up inputs, the same ones each time.

    Raises:
        AssertionError: the function does, for inputs that it then prints.
    """
    quiet = list(HealthCheck)
    chosen = settings(max_examples=count, derandomize=True, deadline=None, database=None, suppress_health_check=quiet)
    chosen(given(**inputs)(function))()


@cache
def _page(name: str) -> Page:
    return read_page(PROJECT.docs / name, PROJECT)


def program(name: str, *wanted: str, **given_names: Any) -> dict[str, Any]:
    """The names that a page defines, or a section of it ("answers/numpy.md#mixing"): those wanted, and what they use.

    Only the statements that define these names run, as the page has them, the last of several definitions; what is
    given instead, such as other data, is not defined. They run once, so that what they compile is compiled once, unless
    something is given.

    Raises:
        LookupError: the page does not define a name.
    """
    return _program(name, wanted, given_names) if given_names else _kept_program(name, wanted)


@cache
def _kept_program(name: str, wanted: tuple[str, ...]) -> dict[str, Any]:
    return _program(name, wanted, {})


def _program(name: str, wanted: tuple[str, ...], given_names: dict[str, Any]) -> dict[str, Any]:
    page_name, _, anchor = name.partition("#")
    page = _page(page_name)
    starts = [(section.start, section.anchor) for section in page.sections]
    defined: dict[str, list[ast.stmt]] = {}
    order: list[ast.stmt] = []
    for block in page.program:
        own = [found for start, found in starts if start <= block.fence.start]
        if not anchor or own and own[-1] == anchor:
            order += ast.parse(block.code).body
    for statement in order:
        for bound, anew in _binds(statement):
            if not (isinstance(statement, ast.Import | ast.ImportFrom) and bound in defined):  # the first, for all
                defined[bound] = [statement] if anew else [*defined.get(bound, []), statement]
    if missing := [bound for bound in wanted if bound not in defined]:
        raise LookupError(f"{name} does not define {', '.join(missing)}")
    needed: set[ast.stmt] = set()
    waiting = [*wanted]
    while waiting:
        bound = waiting.pop()
        for statement in [] if bound in given_names else defined.get(bound, []):
            if statement not in needed:
                needed.add(statement)
                waiting += _uses(statement)
    names = dict(given_names)
    body = [statement for statement in order if statement in needed]
    exec(compile(ast.Module(body, []), name, "exec"), names)
    return names


def _uses(statement: ast.stmt) -> list[str]:
    """The names of the page that a statement uses, not those of its functions' own variables."""
    found, tables = [], [symtable.symtable(ast.unparse(statement), "page", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        everything = table.get_type() == "module"
        found += [name.get_name() for name in table.get_symbols() if everything or name.is_global()]
    return found


def _is_rule(node: ast.expr) -> bool:
    """Return whether this gives a function its derivative, as `@f.defjvp` or `f.defvjp` does."""
    return isinstance(node, ast.Attribute) and node.attr in ("defjvp", "defvjp") and isinstance(node.value, ast.Name)


def _binds(statement: ast.stmt) -> list[tuple[str, bool]]:
    """The names that a statement defines, and whether anew; `table["a"] = 1` and `f.defvjp(...)` only add to them."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            rules = [of.value.id for of in statement.decorator_list if _is_rule(of)]  # type: ignore[attr-defined]
            return [(name, True), *((of, False) for of in rules)]
        case ast.Expr(value=ast.Call(func=of)) if _is_rule(of):
            return [(of.value.id, False)]  # type: ignore[attr-defined]
        case ast.Import(names=found) | ast.ImportFrom(names=found):
            return [((alias.asname or alias.name).partition(".")[0], True) for alias in found]
        case ast.Assign(targets=targets):
            stored = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
            return [(node.id, isinstance(node.ctx, ast.Store)) for node in stored]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))) if attr in RULES:
            return [(name, False)]
        case _:
            return []
