"""Names in code: those that it imports, those that it binds, and those that must have been bound before it runs.

The source of this module goes to readers' kernels, too.
"""

import ast
import copy
import symtable
from collections.abc import Iterator

_FAULTY = (SyntaxError, ValueError, RecursionError)  # what code raises that cannot be parsed
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_NESTING = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.TryStar,
    ast.ExceptHandler,
    ast.Match,
    ast.match_case,
)


def syntax_tree(code: str) -> ast.Module:
    """Return the syntax tree of code; an empty one of code that cannot be parsed."""
    try:
        return ast.parse(code)
    except _FAULTY:
        return ast.Module([], [])


def bound_names(code: str) -> set[str]:
    """Return the names that code may bind at its top level, or whose items or attributes it sets there."""
    try:
        return _bound(ast.parse(code))
    except _FAULTY:
        return set()


def needed_names(code: str) -> set[str]:
    """Return the names that code reads, itself or in functions that it defines, before it has surely bound them."""
    try:
        return _needed(ast.parse(code), set())
    except _FAULTY:
        return set()


def imported(code: str) -> set[str]:
    """Return the top-level names of the modules that code imports anywhere; none of code that does not parse."""
    if "import" not in code:  # to parse all blocks of a site takes long
        return set()
    nodes = [*ast.walk(syntax_tree(code))]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {module.partition(".")[0] for module in modules}


def function_needs(code: str) -> dict[str, set[str]]:
    """Return, for each function and class that code defines at its top level, the names that it reads from there."""
    try:
        return {node.name: _read(node) for node in ast.parse(code).body if isinstance(node, _Function)}
    except _FAULTY:
        return {}


def _needed(node: ast.AST, bound: set[str]) -> set[str]:
    """Return what `needed_names` does for a node with statements in it; `bound` grows by what it surely binds."""
    needed: set[str] = set()
    if not isinstance(node, ast.Module | ast.With | ast.AsyncWith):
        bound = {*bound}  # the statements in it may not run
    head = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.withitem | ast.pattern)]
    for child in head:
        needed |= _read(child) - bound
    bound |= set().union(*map(_stored, head))
    if isinstance(node, ast.ExceptHandler) and node.name:
        bound.add(node.name)
    for _, part in ast.iter_fields(node):
        part_bound = bound if isinstance(node, ast.Module | ast.With | ast.AsyncWith) else {*bound}
        for child in part if isinstance(part, list) else ():
            if isinstance(child, _NESTING):
                needed |= _needed(child, part_bound)
            elif isinstance(child, ast.stmt):
                needed |= _read(child) - part_bound
                part_bound |= _stored(child)
    return needed


def _read(node: ast.AST) -> set[str]:
    """Return the names of the module that a node reads."""
    if not isinstance(node, ast.expr | ast.stmt):
        return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    # Of other comprehensions, Python 3.12 and later count the variables among those of the scope around them.
    code = ast.unparse(_ToGenerators().visit(copy.deepcopy(node)))
    tables = [*_tables(symtable.symtable(code, "block", "exec"))]
    names = {
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table is tables[0] or symbol.is_global())
    }
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        names.add(node.target.id)
    return names


class _ToGenerators(ast.NodeTransformer):
    """A transformer that makes every comprehension a generator expression, which reads the same names."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        match node:
            case ast.ListComp() | ast.SetComp():
                return ast.GeneratorExp(node.elt, node.generators)
            case ast.DictComp():
                return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
        return node


def _bound(node: ast.AST) -> set[str]:
    """Return what `bound_names` does, for a node."""
    return _stored(node) | {root for part in ast.walk(node) if (root := _changed(part))}


def _stored(node: ast.AST) -> set[str]:
    """Return the names of the module that a node may bind."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return {name}
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
            declared = {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}
            return declared if isinstance(node, ast.Lambda) else declared | {node.name}
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return {part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)}
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            own = {name}
        case _:
            own = set()
    return own.union(*map(_stored, ast.iter_child_nodes(node)))


def _changed(node: ast.AST) -> str:
    """Return the name of the object whose item or attribute a target sets or deletes; empty for other nodes."""
    if not isinstance(node, ast.Subscript | ast.Attribute) or isinstance(node.ctx, ast.Load):
        return ""
    target: ast.expr = node
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)
