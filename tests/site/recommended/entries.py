"""An entry of the error dictionary with other data: what its fix prints then, and that its mistake is still refused."""

import ast
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from livepages.source.page import Block
from tests.site.recommended.attack import _binds, _page, _uses

Changes = Mapping[str, str]  # from what the code of the page contains to what it contains instead
_PRINTED: dict[tuple[object, ...], list[Any]] = {}
_REFUSED: set[tuple[object, ...]] = set()


def fixed(name: str, changes: Changes | None = None, **data: Any) -> list[Any]:
    """The values that the fix of an entry prints, in one list, with this data and these changes of its code.

    The fix is all visible code of the section that raises nothing, with what it uses of the code above. Where the page
    assigns a name that is in the data, it keeps that of the data, unless the assignment is an update of it. The same
    data is not used twice, because what the page compiles is compiled anew each time.

    Raises:
        LookupError: the section has no such code, or not what is to be changed.
    """
    key = (name, str(changes), *map(_key, data.items()))
    if key not in _PRINTED:
        printed: list[Any] = []
        code = _code(name, False, tuple((changes or {}).items()), frozenset(data))
        exec(code, {"print": lambda *values, **_: printed.extend(values), **data})
        _PRINTED[key] = printed
    return _PRINTED[key]


def compiled_fix(name: str, changes: Changes | None = None, **data: Any) -> list[Any]:
    """The same values from one program, compiled under `jit` for all arrays of the same shapes and dtypes."""
    return _compiled(name, tuple((changes or {}).items()))(data)


@cache
def _compiled(name: str, changes: tuple[tuple[str, str], ...]) -> Callable[[dict[str, Any]], list[Any]]:
    def run(data: dict[str, Any]) -> list[Any]:
        printed: list[Any] = []
        exec(_code(name, False, changes, frozenset(data)), {"print": lambda *found, **_: printed.extend(found), **data})
        return printed

    return jax.jit(run)


def refused(name: str, changes: Changes | None = None, match: str | None = None, **data: Any) -> None:
    """Check that the mistake of an entry raises the error of the page with other data as well.

    It runs once for all data of the same shapes and types, on which such an error rests.

    Raises:
        AssertionError: it raises another one.
    """
    block = _blocks(name, True)[0]
    key = (name, str(changes), match, *(str(np.shape(value)) + _kind(value) for value in data.values()))
    if key in _REFUSED:
        return
    code = _code(name, True, tuple((changes or {}).items()), frozenset(data))
    with pytest.raises(Exception, match=match or block.options.match) as caught:
        exec(code, {"print": lambda *values: None, **data})
    assert block.options.raises in {kind.__name__ for kind in caught.type.__mro__}, caught
    _REFUSED.add(key)


def _key(item: tuple[str, Any]) -> tuple[Any, ...]:
    """Return what distinguishes data: all bits of its arrays, the text of its numbers (1, 1.0 and -0.0 differ), or itself."""
    name, value = item
    leaves, structure = jax.tree.flatten(value)
    return name, str(structure), *((_kind(leaf), _value(leaf)) for leaf in leaves)


def _value(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray | jax.Array) and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf.shape, np.asarray(leaf).tobytes()
    return leaf if callable(leaf) else repr(leaf)


def _kind(value: Any) -> str:
    return str(value.dtype) if hasattr(value, "dtype") else type(value).__name__


@cache
def _blocks(name: str, raising: bool) -> list[Block]:
    page_name, _, anchor = name.partition("#")
    page = _page(page_name)
    starts = [(section.start, section.anchor) for section in page.sections]
    found = []
    for block in page.program:
        inside = [of for start, of in starts if start <= block.fence.start][-1:] == [anchor]
        if inside and block.options.source != "none" and bool(block.options.raises) == raising:
            found.append(block)
    if not found:
        raise LookupError(name)
    return found


@cache
def _code(name: str, raising: bool, changes: tuple[tuple[str, str], ...], given: frozenset[str]) -> CodeType:
    blocks = _blocks(name, raising)
    text = "\n".join(block.code for block in blocks)
    for old, new in changes:
        if old not in text:
            raise LookupError(f"{name} does not contain {old!r}")
        text = text.replace(old, new)
    body = [statement for statement in ast.parse(text).body if not _assigns(statement, given)]
    defined: dict[str, list[ast.stmt]] = {}
    order: list[ast.stmt] = []
    for block in _page(name.partition("#")[0]).program:
        if block.index >= blocks[0].index:
            break
        if block.namespace != blocks[0].namespace:
            continue
        for statement in ast.parse(block.code).body:
            order.append(statement)
            for bound, anew in _binds(statement):
                defined[bound] = [statement] if anew else [*defined.get(bound, []), statement]
    needed: set[ast.stmt] = set()
    waiting, made = [], set(given)
    for statement in body:
        waiting += [used for used in _uses(statement) if used not in made]
        made |= {bound for bound, anew in _binds(statement) if anew}
    while waiting:
        bound = waiting.pop()
        for statement in [] if bound in given else defined.get(bound, []):
            if statement not in needed:
                needed.add(statement)
                waiting += _uses(statement)
    above = [statement for statement in order if statement in needed]
    return compile(ast.Module([*above, *body], []), name, "exec")


def _assigns(statement: ast.stmt, given: frozenset[str]) -> bool:
    """Return whether a statement assigns only names that are given, and not to a value made from them."""
    binds = dict(_binds(statement))
    if not binds or not {*binds} <= given or not all(binds.values()):
        return False
    value = statement.value if isinstance(statement, ast.Assign) else None
    return value is None or not any(isinstance(node, ast.Name) and node.id in binds for node in ast.walk(value))
