"""The names of libraries in a page's code: the full name of each, and the page of the reference that describes it.

Inventories, text files in a folder of the project, say which name has which page::

    # The reference of a library        comments
    https://example.org/reference/      the address that paths begin with
    library.function function.html      a name and its path, or whole address; sorted, each name once
    library.module module.html module   a module: the page is not that of every name in it
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from livepages.source.mkdocs_yml import ProjectError
from livepages.source.page import Page
from livepages.source.project import Project
from livepages.worker import signature, syntax_tree

_SCOPE = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


@dataclass(frozen=True, eq=False)
class Inventory:
    """The documented names of some libraries."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    modules: frozenset[str] = frozenset()

    @cached_property
    def libraries(self) -> frozenset[str]:
        """The names that every other one begins with."""
        return frozenset(name.partition(".")[0] for name in self.addresses)


@dataclass(frozen=True)
class Use:
    """A name of one of the libraries where code uses it."""

    name: str
    address: str  # empty where no inventory has the name
    line: int  # of the code, from 1
    start: int  # the characters of the code that are the name; none where it is not written in one piece
    end: int


def read_inventories(project: Project) -> Inventory:
    """All inventories of a project; an empty one where it has none.

    Raises:
        ProjectError: a line is not what an inventory has there; the message names file and line.
    """
    files = sorted(project.inventories.glob("*.txt"))
    return _inventory(tuple((file, project.name(file), signature(file)) for file in files))


@lru_cache(maxsize=8)
def _inventory(files: tuple[tuple[Path, str, object], ...]) -> Inventory:
    """The inventory in files of these names and signatures."""
    addresses: dict[str, str] = {}
    modules = set()
    for file, label, _ in files:
        for name, address, module in _entries(file, label):
            addresses[name] = address
            if module:
                modules.add(name)
    return Inventory(addresses, frozenset(modules))


def _entries(file: Path, label: str) -> Iterator[tuple[str, str, bool]]:
    base, last = "", ""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        if not base:
            base = line
            if not all(urlsplit(base)[:2]) or not base.endswith("/"):
                raise ProjectError(f"{label}:{number}: {line!r} is not an address that paths can follow")
            continue
        name, _, rest = line.partition(" ")
        path, _, kind = rest.partition(" ")
        if not path or kind not in ("", "module") or not all(part.isidentifier() for part in name.split(".")):
            raise ProjectError(f"{label}:{number}: {line!r} is not a name and its path")
        if name <= last:
            raise ProjectError(
                f"{label}:{number}: {name} does not come after {last}; names are sorted, and each is there once"
            )
        last = name
        yield name, urljoin(base, path), kind == "module"


class PageNames:
    """The names of libraries that a page uses."""

    def __init__(self, page: Page | None, inventory: Inventory) -> None:
        """Resolve the names in a page's code; where there is no page, only full names mean something."""
        blocks = page.blocks if page else ()
        uses, self._anywhere = _resolved(tuple((block.code, block.runs) for block in blocks), inventory)
        self.blocks = list(zip(blocks, uses, strict=True))
        """Each block of the page with its uses, in the order of the code."""
        self._inventory = inventory

    def in_prose(self, code: str) -> list[Use]:
        """Return the uses in code within prose, where a name means the same as anywhere on the page."""
        code = f"({code[1:]})" if code.startswith("@") else code
        return list(_uses(code, syntax_tree(code), self._anywhere, self._inventory))


@lru_cache(maxsize=256)  # while serving, most pages stay unchanged
def _resolved(codes: tuple[tuple[str, bool], ...], inventory: Inventory) -> tuple[list[list[Use]], dict[str, str]]:
    """For the code of each block, which runs or not, its uses; and what names mean anywhere on the page."""
    anywhere = {name: name for name in inventory.libraries}
    known: dict[str, str] = {}
    bound: set[str] = set()
    found = []
    for code, runs in codes:
        tree = syntax_tree(code)
        names = _bound(tree)
        inside = known | names
        found.append(list(_uses(code, tree, inside, inventory)))
        if runs:
            known = inside
            anywhere |= known
            bound |= {name for name, full in names.items() if not full}
    return found, {name: full for name, full in anywhere.items() if name not in bound}


def _uses(code: str, tree: ast.AST, known: dict[str, str], inventory: Inventory) -> Iterator[Use]:
    lines = code.split("\n")
    offsets = [0, *accumulate(len(line) + 1 for line in lines)]

    def offset(line: int, column: int) -> int:
        return offsets[line - 1] + len(lines[line - 1].encode()[:column].decode())  # the columns of ast are bytes

    for chain in _chains(tree, known):
        longest = chain[0][0]
        if longest.partition(".")[0] not in inventory.libraries:
            continue
        documented = (pair for pair in chain if pair[0] in inventory.addresses)
        full, node = next(
            (pair for pair in documented if pair[0] not in inventory.modules or pair is chain[0]), chain[0]
        )
        start = offset(node.lineno, node.col_offset)
        written = node.name if isinstance(node, ast.alias) else ast.unparse(node)
        end = start + len(written) if code.startswith(written, start) else start
        yield Use(full, inventory.addresses.get(full, ""), node.lineno, start, end)


def _chains(node: ast.AST, known: dict[str, str]) -> Iterator[Sequence[tuple[str, ast.expr | ast.alias]]]:
    """Each import, and each name with its attributes, below a node: full names and their nodes, the longest first."""
    if isinstance(node, _SCOPE):
        known = known | _bound(node)
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from ([(full, alias)] for alias, full in _imported(node))
    elif isinstance(node, ast.Name) and node.id in known:
        yield [(known[node.id], node)]
    elif isinstance(node, ast.Attribute):
        for chain in _chains(node.value, known):
            root = chain[0][1] is node.value
            yield [(f"{chain[0][0]}.{node.attr}", node), *chain] if root else chain
    else:
        for child in ast.iter_child_nodes(node):
            yield from _chains(child, known)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[ast.alias, str]]:
    prefix = f"{'.' * node.level}{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
    return ((alias, prefix + alias.name) for alias in node.names)


def _bound(scope: ast.AST) -> dict[str, str]:
    """The names that a scope binds, each with its full name if it is imported, else with none."""
    imported, other = {}, set()
    for node in _within(scope):
        match node:
            case ast.Import() | ast.ImportFrom():
                for alias, full in _imported(node):
                    imported[alias.asname or alias.name.partition(".")[0]] = (
                        full if alias.asname or isinstance(node, ast.ImportFrom) else full.partition(".")[0]
                    )
            case ast.Name(ctx=ast.Store() | ast.Del()):
                other.add(node.id)
            case (
                ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                other.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                other.add(name)
    return imported | dict.fromkeys(other, "")


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of the scopes in it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, _SCOPE):
            yield from _within(node)
