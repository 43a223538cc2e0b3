"""Find old names of JAX in Python files, write today's where that is mechanical, and mark the rest.

    python upgrade_jax.py train.py src/           # list what there is, and show the changes
    python upgrade_jax.py --write train.py src/   # make them; what is left to you gets a comment

It needs Python 3.9 or newer and nothing else, reads the files and runs none of them. The exit status is 0 if nothing is
left to do, 1 if something is, 2 if a file cannot be read.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

# From idioms.toml: names that are gone or deprecated, what to write, and where on the site it is explained.
KNOWN: dict[str, dict[str, str]] = {}
# From upgrade_names.txt: all that the modules of the release hold, with "!" behind what is deprecated.
NAMES: dict[str, str] = {}
# From public_names.json: keywords that a function took in an earlier release; names that are elsewhere now, as messages
# of JAX say; and what else these advise.
KEYWORDS: dict[str, str] = {}
MOVED: dict[str, str] = {}
ADVICE: dict[str, str] = {}
RELEASE = "today's JAX"
PAGE = "Live JAX: lookup/then-and-now/"
MARK = "# upgrade_jax: "
PRIVATE = "jax._src."

TREES = ("all", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten")
OF_EXTEND = ("ClosedJaxpr", "Jaxpr", "JaxprEqn", "Literal", "Primitive", "Token", "Var", "jaxpr_as_fun")
ERRORS = (
    "ConcretizationTypeError",
    "TracerArrayConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
)
API = (
    "checkpoint", "custom_jvp", "custom_vjp", "device_get", "device_put", "eval_shape", "grad", "hessian", "jacfwd",
    "jacrev", "jit", "jvp", "linearize", "local_device_count", "make_jaxpr", "pmap", "value_and_grad", "vjp", "vmap",
    "named_call",
)  # fmt: skip
EXTENSIONS = ("jaxlib.xla_extension", "jax.lib.xla_extension", "jax._src.lib.xla_extension")
SHARDED = (
    "jax.interpreters.pxla",
    "jax.experimental.maps",
    "jax.experimental.pjit",
    "jax.experimental",
    "jax.sharding",
)

# A name and what is written in its place: same arguments, same result.
MOVES: dict[str, str] = {
    "jax.host_id": "jax.process_index",
    "jax.host_count": "jax.process_count",
    "jax.host_ids": "jax.process_indices",
    "jax.partial": "functools.partial",
    "jax.util.partial": "functools.partial",
    "jax.config.config": "jax.config",
    "jax.config.FLAGS": "jax.config",
    "jax.tree_multimap": "jax.tree.map",
    "jax.tree_util.tree_multimap": "jax.tree.map",
    "jax.numpy.DeviceArray": "jax.Array",
    "jax.xla.DeviceArray": "jax.Array",
    "jax.interpreters.xla.DeviceArray": "jax.Array",
    "jax.interpreters.pxla.ShardedDeviceArray": "jax.Array",
    "jax.random.KeyArray": "jax.Array",
    "jax.random.PRNGKeyArray": "jax.Array",
    "jax.numpy.row_stack": "jax.numpy.vstack",
    "jax.numpy.trapz": "jax.numpy.trapezoid",
    "jax.numpy.product": "jax.numpy.prod",
    "jax.numpy.cumproduct": "jax.numpy.cumprod",
    "jax.numpy.alltrue": "jax.numpy.all",
    "jax.numpy.sometrue": "jax.numpy.any",
    "jax.numpy.round_": "jax.numpy.round",
    "jax.numpy.fix": "jax.numpy.trunc",
    "jax.numpy.NINF": "-jax.numpy.inf",
    "jax.numpy.PINF": "jax.numpy.inf",
    "jax.numpy.PZERO": "0.0",
    "jax.numpy.NZERO": "-0.0",
    "jax.ops.index": "jax.numpy.s_",
    "jax.lax.zeros_like_array": "jax.numpy.zeros_like",
    "jax.nn.normalize": "jax.nn.standardize",
    "jax.scipy.linalg.tril": "jax.numpy.tril",
    "jax.scipy.linalg.triu": "jax.numpy.triu",
    "jax.experimental.stax": "jax.example_libraries.stax",
    "jax.experimental.optimizers": "jax.example_libraries.optimizers",
    "jax.experimental.ann.approx_max_k": "jax.lax.approx_max_k",
    "jax.experimental.ann.approx_min_k": "jax.lax.approx_min_k",
    "jax.experimental.pjit.with_sharding_constraint": "jax.lax.with_sharding_constraint",
    "jax.linear_util": "jax.extend.linear_util",
    "jax.ShapedArray": "jax.core.ShapedArray",
    "jax.abstract_arrays.ShapedArray": "jax.core.ShapedArray",
    "jax.core.get_aval": "jax.typeof",
    "jax.lib.xla_bridge.get_backend": "jax.extend.backend.get_backend",
    "jax.interpreters.batching.not_mapped": "None",
    "jax.ad_checkpoint.checkpoint": "jax.checkpoint",
    "jax.ad_checkpoint.remat": "jax.checkpoint",
    "jax.profiler.TraceContext": "jax.profiler.TraceAnnotation",
    "jax.profiler.StepTraceContext": "jax.profiler.StepTraceAnnotation",
    **{f"{module}.XlaRuntimeError": "jax.errors.JaxRuntimeError" for module in EXTENSIONS},
    **{f"{module}.Device": "jax.Device" for module in (*EXTENSIONS, "jax.lib.xla_client")},
    **{f"{module}.ArrayImpl": "jax.Array" for module in EXTENSIONS},
    **{f"jax.tree_{name}": f"jax.tree.{name}" for name in TREES},
    **{f"jax.core.{name}": f"jax.extend.core.{name}" for name in OF_EXTEND},
    **{f"jax.core.{name}": f"jax.errors.{name}" for name in ERRORS},
    **{f"jax.api.{name}": f"jax.{name}" for name in API},
    **{f"{module}.PartitionSpec": "jax.sharding.PartitionSpec" for module in SHARDED[:4]},
    **{f"{module}.Mesh": "jax.sharding.Mesh" for module in SHARDED[:2]},
}


# Functions whose arguments changed: the new name, the old parameters by position from the second on, keywords that have
# another name, and those for which there is no replacement.
class Function(NamedTuple):
    """The fate of a function: its name, its positional parameters but the first, renamed keywords, keywords gone."""

    name: str
    positional: tuple[str, ...] = ()
    renamed: dict[str, str] = {}
    gone: tuple[str, ...] = ()


FUNCTIONS: dict[str, Function] = {
    "jax.experimental.shard_map.shard_map": Function(
        "jax.shard_map", ("mesh", "in_specs", "out_specs"), {"check_rep": "check_vma"}, ("auto",)
    ),
    "jax.shard_map": Function("jax.shard_map", (), {"check_rep": "check_vma"}),
    "jax.experimental.pjit.pjit": Function(
        "jax.jit", ("?",), {}, ("in_axis_resources", "out_axis_resources", "in_shardings", "out_shardings")
    ),
    "jax.numpy.clip": Function("jax.numpy.clip", (), {"a_min": "min", "a_max": "max"}, ("a",)),
    "jax.numpy.reshape": Function("jax.numpy.reshape", (), {"newshape": "shape"}),
    **{
        f"jax.numpy.{name}": Function(f"jax.numpy.{name}", (), {"interpolation": "method"})
        for name in ("percentile", "quantile", "nanpercentile", "nanquantile")
    },
}
INSTEAD = {  # of what a function does not take any more
    "jax.experimental.pjit.pjit": "becomes a jax.NamedSharding(mesh, spec) for each spec, in jax.jit(f, in_shardings=…)"
}
MODULES = (  # that are gone, with all that is in them
    *EXTENSIONS, "jax._src.lib.xla_bridge", "jax.abstract_arrays", "jax.api", "jax.experimental.djax",
    "jax.experimental.export",
    "jax.experimental.global_device_array", "jax.experimental.host_callback", "jax.experimental.loops",
    "jax.experimental.maps", "jax.experimental.sharded_jit", "jax.interpreters.sharded_jit", "jax.lib.xla_bridge",
    "jax.lib.xla_client", "jax.prng", "jax.util",
)  # fmt: skip
FUNCTION = ast.FunctionDef, ast.AsyncFunctionDef
COMPREHENSION = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
FLAT = {"jax.numpy.in1d": "jax.numpy.isin"}  # whose result was flat, and now has the shape of the first argument
KEYS = "jax.random.KeyArray", "jax.random.PRNGKeyArray"  # not every array was one
ARRAYS = {name for name, new in MOVES.items() if new == "jax.Array"}  # the type of no array: `type(x)` is a subclass
MOST = {"jax.ShapeDtypeStruct": 2, "jax.interpreters.mlir.emit_python_callback": 6}  # arguments by position today
UPDATES = {"update": "set", "add": "add", "mul": "multiply", "min": "min", "max": "max"}  # jax.ops.index_… and .at[…]
METHODS = {  # of arrays, whatever the array is called
    "block_host_until_ready": "block_until_ready()",
    "to_py": "np.asarray(x)",
    "device()": "x.device",
    "device_buffer": "x.addressable_data(0)",
    "device_buffers": "[shard.data for shard in x.addressable_shards]",
}
PARTIAL = ("functools.partial", "jax.partial", "jax.util.partial")
MESHES = "jax.sharding.Mesh", "jax.make_mesh", *(name for name, new in MOVES.items() if new == "jax.sharding.Mesh")
FORMS = "with mesh:", "compiler_ir(dialect='mhlo')", "cost_analysis()[0]"  # whatever the objects are called
# What `import jax` does not import.
APART = ("jax.extend.core", "jax.extend.backend", "jax.extend.linear_util", "jax.extend.random",
         "jax.example_libraries.stax", "jax.example_libraries.optimizers", "jax.scipy.linalg")  # fmt: skip


class Edit(NamedTuple):
    """A text for a part of the source, by its positions in bytes."""

    start: int
    end: int
    text: str


class Finding(NamedTuple):
    """An old name in a file: the line, the name, what to write, and whether that is done."""

    line: int
    name: str
    message: str
    done: bool


@dataclass
class Upgraded:
    """A file's text with what could be replaced, and everything that was found."""

    text: str
    findings: list[Finding] = field(default_factory=list)


def upgrade(source: str, marks: bool = True) -> Upgraded:
    """Return source with today's names, and what was found in it.

    Args:
        source: of a Python file.
        marks: whether what is left to do gets a comment above it.

    Raises:
        SyntaxError: it is not Python.
    """
    file = _File(source)
    file.look()
    text = file.applied(marks)
    ast.parse(text)
    return Upgraded(text, sorted(file.findings))


class _File:
    """A file while it is looked through."""

    def __init__(self, source: str) -> None:
        self.source = source.encode()
        self.tree = ast.parse(source)
        self.starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.findings: list[Finding] = []
        self.edits: list[Edit] = []
        self.notes: list[tuple[int, str]] = []  # a statement's first line, and the comment above it
        self.private: set[str] = set()
        self.needed: set[str] = set()  # modules to import
        self.stars = [
            node.module
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and not node.level
        ]
        self.bound = self._bindings()
        self._aliases()
        self.lasting = self._lasting()
        self.gone: set[ast.AST] = set()  # names that are no longer in the text
        self.uses_jax = any(full.startswith("jax") for full in self.bound.get(self.tree, {}).values())
        self.meshes = self._meshes()
        self.kept = self._kept_functions()
        self.tested = self._tested()

    # --- names ---

    def _bindings(self) -> dict[ast.AST, dict[str, str]]:
        """For each scope, what the names bound in it stand for, if imports alone bind them; else an empty text."""
        found: dict[ast.AST, dict[str, set[str]]] = {}
        for node in ast.walk(self.tree):
            names: list[tuple[str, str]] = []
            scope = self._scope(node)
            if isinstance(node, ast.Import):
                for alias in node.names:
                    root = alias.name.partition(".")[0]
                    names.append((alias.asname or root, alias.name if alias.asname else root))
            elif isinstance(node, ast.ImportFrom):
                names += [
                    (alias.asname or alias.name, "" if node.level else f"{node.module}.{alias.name}")
                    for alias in node.names
                ]
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names.append((node.id, ""))
            elif isinstance(node, ast.arg):
                names.append((node.arg, ""))
                scope = self.parents[self.parents[node]]
            elif (
                isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)) and node.name
            ):
                names.append((node.name, ""))
            for name, full in names:
                found.setdefault(scope, {}).setdefault(name, set()).add(full)
        return {
            scope: {name: full if not more else "" for name, (full, *more) in names.items()}
            for scope, names in found.items()
        }

    def _aliases(self) -> None:
        """Add what stands for a module because a line of the file says so once, as in `lax = jax.lax`."""
        names = [
            node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                full, name = self.full(node.value), node.targets[0].id
                if (full in NAMES or _module_gone(full)) and names.count(name) == 1 and not self.bound[self.tree][name]:
                    self.bound[self.tree][name] = full

    def _scope(self, node: ast.AST) -> ast.AST:
        """The innermost function, class or comprehension around a node, or the module."""
        child, here = node, self.parents.get(node)
        while here is not None:
            inside = not isinstance(here, FUNCTION) or child in here.body
            if isinstance(here, (*FUNCTION, ast.ClassDef)) and inside or isinstance(here, (ast.Lambda, *COMPREHENSION)):
                return here
            child, here = here, self.parents.get(here)
        return self.tree

    def meaning(self, name: ast.Name) -> str:
        """The full name of what a name stands for; empty if imports do not say."""
        scope = own = self._scope(name)
        while True:
            if name.id in self.bound.get(scope, {}) and (scope is own or not isinstance(scope, ast.ClassDef)):
                return self.bound[scope][name.id]
            if scope is self.tree:
                brought = [f"{module}.{name.id}" for module in self.stars]
                return next((full for full in brought if full in MOVES or full in KNOWN), "")
            scope = self._scope(scope)

    def full(self, node: ast.AST) -> str:
        """The full name of what a name or an attribute stands for; empty if imports do not say."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        meaning = self.meaning(node) if isinstance(node, ast.Name) else ""
        return ".".join([meaning, *reversed(parts)]) if meaning else ""

    def guarded(self, node: ast.AST) -> bool:
        """Return whether the file itself deals with releases that lack a name: in a `try` or a condition around it."""
        here: ast.AST | None = node
        while here is not None:
            if isinstance(here, ast.Try) and any(_catches(handler) for handler in here.handlers):
                return True
            if isinstance(here, (ast.If, ast.IfExp)) and self._tests_release(here.test, node):
                return True
            here = self.parents.get(here)
        return False

    def _tests_release(self, test: ast.expr, node: ast.AST) -> bool:
        """Return whether a condition reads JAX's version, or whether JAX has what a node uses."""
        condition = ast.dump(test).lower()
        about = any(word in condition for word in ("jax", repr(getattr(node, "attr", None)).lower()))
        about = about or any(self.full(each).startswith("jax") for each in ast.walk(test))
        return about and ("version" in condition or "hasattr" in condition)

    def spelled(self, new: str) -> str:
        """A new name as this file can write it; what has to be imported for that is noted."""
        if not new.startswith(("jax.", "functools.")):
            sign, _, rest = new.partition("jax.")
            return f"({sign}{self.spelled('jax.' + rest)})" if rest else f"({new})" if sign.startswith("-") else new
        ways = [
            name + new[len(full) :]
            for name, full in self.bound.get(self.tree, {}).items()
            if name in self.lasting and full and (new == full or new.startswith(full + "."))
        ]
        best = min(ways, key=len, default=new)
        meant = self.bound.get(self.tree, {}).get(best.partition(".")[0], "")
        self.needed.update(module for module in APART if new.startswith(module + ".") and not meant.startswith(module))
        if not ways:
            self.needed.add(new.partition(".")[0])
        return best

    def _lasting(self) -> set[str]:
        """The names that imports outside of any function or condition bind, and that stay."""
        return {
            alias.asname or alias.name.partition(".")[0]
            for node in self.tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
            if not (isinstance(node, ast.ImportFrom) and moved(f"{node.module}.{alias.name}"))
        }

    # --- what is done about a name ---

    def look(self) -> None:
        """Look through the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                self._use(node)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                self._with(node)
            elif isinstance(node, ast.Subscript):
                self._subscript(node)
            elif isinstance(node, ast.Attribute) and self.full(node).startswith(
                PRIVATE
            ):  # something is put in its place
                self._private(node, self.full(node))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._import_from(node)
            elif isinstance(node, ast.Import):
                self._import(node)

    def _use(self, node: ast.Name | ast.Attribute) -> None:
        name = self.full(node)
        if isinstance(node, ast.Attribute) and not name:
            self._method(node)
        if not name.startswith("jax") or self.guarded(node):
            return
        if isinstance(node, ast.Name) and name.rpartition(".")[0] in self.stars:
            self.found(node, name, f"write {moved(name)}" if moved(name) else _about(name), False)
            return
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        changed = moved(self.meaning(root)) if isinstance(root, ast.Name) else ""  # by its import
        if changed:
            name = changed + name.removeprefix(self.meaning(root))  # type: ignore[arg-type]
        if root is node or root in self.gone or (changed and not moved(name) and not _about(name)):
            return
        new = self.new_name(name)
        if new and isinstance(node, ast.Attribute):
            self.replace(node, name, self.spelled(new))
        elif not new and name.startswith(PRIVATE) and not self.meaning(root).startswith(PRIVATE):  # type: ignore[arg-type]
            self._private(node, name)
        elif not new and (name in KNOWN or _module_gone(name) or name in (absent(name), deprecated(name))):
            self.leave(node, name)

    def _private(self, node: ast.AST, name: str) -> None:
        """Mark a private name where it comes first, unless an earlier run has."""
        inner = isinstance(self.parents[node], ast.Attribute)
        if not inner and name not in self.private and f"{MARK}{name}:" not in self.source.decode():
            self.private.add(name)
            self.found(node, name, f"private, so check it against {RELEASE}", False)

    def new_name(self, name: str) -> str:
        """The text for a name in this file; empty if nothing is known, or if it cannot be rewritten here."""
        if name in self.tested or name in self.kept and FUNCTIONS[name].name != name:
            return ""
        return FUNCTIONS[name].name if name in FUNCTIONS and FUNCTIONS[name].name != name else moved(name)

    def _tested(self) -> set[str]:
        """The types that this file asks objects for, where the type that replaces them gives another answer."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _is_called(node, "isinstance", "issubclass"):
                found |= {self.full(each) for given in node.args[1:] for each in ast.walk(given)} & {*KEYS}
            elif isinstance(node, ast.Compare) and any(_is_called(each, "type") for each in ast.walk(node)):
                found |= {self.full(each) for each in ast.walk(node)} & ARRAYS
        return found

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        """Mark a context that is a mesh, where the file shows that it is one."""
        for item in node.items:
            made, given = self._makes_mesh(item.context_expr), item.context_expr
            named = isinstance(given, (ast.Name, ast.Attribute)) and ast.unparse(given) in self.meshes
            if (made or named) and not self.guarded(node):
                self.leave(node, "with mesh:")

    def _makes_mesh(self, node: ast.AST | None) -> bool:
        return isinstance(node, ast.Call) and self.full(node.func) in MESHES

    def _meshes(self) -> set[str]:
        """The names and attributes that are meshes wherever this file binds them."""
        found: dict[str, list[bool]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    found.setdefault(ast.unparse(target), []).append(self._makes_mesh(node.value))
            elif isinstance(node, ast.arg):
                annotated = node.annotation is not None and self.full(node.annotation) in MESHES
                found.setdefault(node.arg, []).append(annotated)
        bound = [ast.unparse(node) for node in ast.walk(self.tree) if isinstance(getattr(node, "ctx", None), ast.Store)]
        arguments = [node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)]
        return {name for name, are in found.items() if all(are) and (bound + arguments).count(name) == len(are)}

    def _subscript(self, node: ast.Subscript) -> None:
        """Mark the first of what `cost_analysis` returns, which was a list."""
        first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if first and isinstance(called, ast.Attribute) and called.attr == "cost_analysis" and not self.guarded(node):
            self.leave(node, "cost_analysis()[0]")

    def _method(self, node: ast.Attribute) -> None:
        if node.attr == "device":
            self._device(node)
        if node.attr in METHODS and self.uses_jax:
            end = self.at(node.end_lineno, node.end_col_offset)
            if node.attr == "block_host_until_ready" and not self.guarded(node):
                self.edits.append(Edit(end - len(node.attr), end, "block_until_ready"))
                self.found(node, f".{node.attr}", ".block_until_ready", True)
            elif not self.guarded(node):
                self.found(node, f".{node.attr}", f"if this is an array of JAX, write {METHODS[node.attr]}", False)

    def _device(self, node: ast.Attribute) -> None:
        """Mark a call without arguments of a method that is an attribute now; `self` is no array."""
        call = self.parents[node]
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        called = isinstance(call, ast.Call) and call.func is node and not (call.args or call.keywords)
        if called and not own and self.uses_jax and not self.guarded(node):
            self.found(node, ".device()", f"if this is an array of JAX, write {METHODS['device()']}", False)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            if not alias.name.startswith("jax") or self.guarded(node):
                continue
            new = moved(alias.name)
            if alias.name == "jax.config" and not alias.asname and self.whole(node) and len(node.names) == 1:
                self.replace(node, alias.name, "import jax", "jax.config, which `import jax` brings")
            elif new and self.whole(node) and len(node.names) == 1:
                self.replace(node, alias.name, f"import {new}" + (f" as {alias.asname}" if alias.asname else ""), new)
            elif _about(alias.name):
                self.leave(node, alias.name)
            elif alias.name.startswith(PRIVATE) and alias.asname:
                self._private(node, alias.name)

    def _import_from(self, node: ast.ImportFrom) -> None:
        if self.guarded(node):
            return
        lines: dict[str, list[str]] = {}
        changes: list[tuple[str, str]] = []
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            new = self.new_name(name)
            as_name = alias.asname or alias.name
            if self._left_over(as_name, name):
                changes.append((name, "its import is not needed any more"))
                continue
            if "(" in new or new.startswith("-") or new[:1].isdigit() or "." not in new:
                new = ""
            module, _, attribute = (new or name).rpartition(".")
            lines.setdefault(module, []).append(attribute if attribute == as_name else f"{attribute} as {as_name}")
            if new:
                changes.append((name, new))
            elif _about(name) and not self._uses(as_name):
                unused = "; this file does not use it: delete the import, unless other files take it from here"
                self.found(node, name, _about(name).partition(";")[0].partition(". ")[0] + unused, False)
            elif _about(name):
                self.leave(node, name)
            elif name.startswith(PRIVATE):
                self._private(node, name)
        if not changes:
            return
        start, end = self.span(node)
        if not self.whole(node) and (len(lines) != 1 or b"#" in self.source[start:end]):  # one fits where one was
            for name, new in changes:
                self.found(node, name, f"write {new}", False)
            return
        indent = "\n" + " " * node.col_offset
        text = indent.join(f"from {module} import {', '.join(names)}" for module, names in lines.items())
        if not text and self.parents[node] is self.tree:
            start, end = self.starts[node.lineno - 1], self.starts[node.end_lineno or node.lineno]
        self.edits.append(Edit(start, end, text or ("" if self.parents[node] is self.tree else "pass")))
        for name, new in changes:
            self.found(node, name, new, True)

    def _uses(self, name: str) -> list[ast.Name]:
        """The expressions that are this name."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node.id == name]

    def _left_over(self, as_name: str, full: str) -> bool:
        """Return whether everything that used an imported name has been replaced."""
        uses = [node for node in self._uses(as_name) if self.meaning(node) == full]
        return bool(uses) and self.gone.issuperset(uses)

    def _call(self, node: ast.Call) -> None:
        name, arguments = self.full(node.func), node.args
        if name in PARTIAL and arguments and self.full(arguments[0]).startswith("jax"):
            name, arguments = self.full(arguments[0]), arguments[1:]
        if self.guarded(node):
            return
        if name in FLAT and isinstance(node.func, ast.Attribute) and self.full(node.func) == name:
            end = self.span(node)[1]
            self.replace(node.func, name, self.spelled(FLAT[name]), f"{FLAT[name]}(…).ravel()")
            self.edits.append(Edit(end, end, ".ravel()"))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "compiler_ir":
            given_dialect = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "dialect")]
            if any(isinstance(each, ast.Constant) and each.value == "mhlo" for each in given_dialect):
                self.leave(node, "compiler_ir(dialect='mhlo')")
        if name.startswith("jax.ops.index_") and self.full(node.func) == name:
            self._index_update(node, name)
        if name in ("jax.config.update", "jax.config.config.update"):
            self._option(node)
        if name in ("jax.experimental.enable_x64", "jax.experimental.disable_x64"):
            self._enable_x64(node, name)
        if len(arguments) > MOST.get(name, len(arguments)):
            self.found(node, name, f"it takes {MOST[name]} arguments by position", False)
        function = FUNCTIONS.get(name)
        for keyword in node.keywords:
            none = isinstance(keyword.value, ast.Constant) and keyword.value.value is None
            if (given := f"{name}({keyword.arg}=)") in KNOWN and not (none and KNOWN[given]["state"] == "deprecated"):
                self.leave(node, given)
            elif keyword.arg in KEYWORDS.get(name, "").split() and not (function and keyword.arg in function.renamed):
                self.found(node, given, f"not a parameter in {RELEASE}", False)
        if function is None or name in self.kept:
            return
        for position, argument in enumerate(node.args[1:] if function.positional and node.args is arguments else ()):
            start = self.span(argument)[0]
            self.edits.append(Edit(start, start, f"{function.positional[position]}="))
        for keyword in node.keywords:
            if keyword.arg in function.renamed:
                start = self.at(keyword.lineno, keyword.col_offset)
                new = function.renamed[keyword.arg]
                self.edits.append(Edit(start, start + len(keyword.arg), new))
                self.found(node, f"{name}({keyword.arg}=)", f"{new}=", True)

    def _kept_functions(self) -> dict[str, str]:
        """The functions with other arguments now that this file uses in a way that cannot be rewritten, and why."""
        kept: dict[str, str] = {}
        for node in ast.walk(self.tree):
            name = self.full(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
            function = FUNCTIONS.get(name)
            if function is None or function.name == name or not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            call = self.parents[node]
            if not isinstance(call, ast.Call):
                kept[name] = "it is used without a call"
                continue
            partial = call.func is not node
            if partial and not (self.full(call.func) in PARTIAL and call.args and call.args[0] is node):
                kept[name] = "it is passed on"
            elif any(isinstance(argument, ast.Starred) for argument in call.args) or None in [
                k.arg for k in call.keywords
            ]:
                kept[name] = "its arguments are unpacked"
            elif len(call.args) > 1 and (
                partial or "?" in function.positional or len(call.args) > 1 + len(function.positional)
            ):
                kept[name] = "its arguments are positional"
            elif used := [k.arg for k in call.keywords if k.arg in function.gone]:
                kept[name] = f"{used[0]}= {INSTEAD.get(name, 'has no replacement')}"
        return kept

    def _index_update(self, node: ast.Call, name: str) -> None:
        method = UPDATES.get(name.rpartition("_")[2])
        spans = [self.span(argument) for argument in node.args[:3]]
        ends = [self.span(node.func)[1], *(end for _, end in spans)]
        gaps = [self.source[end:start].decode().strip() for end, (start, _) in zip(ends, spans)]
        plain = len(spans) == 3 and len(node.args) == 3 and not any(isinstance(a, ast.Starred) for a in node.args)
        if not method or not plain or gaps != ["(", ",", ","] or "#" in "".join(gaps):
            self.leave(node, name)
            return
        array, index, _ = node.args
        simple = isinstance(array, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        inner = spans[1]
        if isinstance(index, ast.Subscript) and self.full(index.value) == "jax.ops.index":
            start, end = self.span(index)
            opened = self.source.index(b"[", self.span(index.value)[1], end)
            inner = opened + 1, end - 1
            self._goes(index.value)
        start = self.span(node)[0]
        self._goes(node)
        self.edits += [
            Edit(start, spans[0][0], "" if simple else "("),
            Edit(spans[0][1], inner[0], ("" if simple else ")") + ".at["),
            Edit(inner[1], spans[2][0], f"].{method}("),
        ]
        self.found(node, name, f".at[…].{method}(…)", True)

    def _option(self, node: ast.Call) -> None:
        """Mark an option of JAX, given by its name in a text, that is gone."""
        given = node.args[0] if node.args else None
        option = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
        name = f"jax.config.{option}"
        if option.startswith("jax_") and (name in KNOWN or absent(name)):
            self.leave(node, name)

    def _enable_x64(self, node: ast.Call, name: str) -> None:
        new = self.spelled("jax.enable_x64")
        if not node.args and not node.keywords:
            self.replace(node, name, f"{new}({name.endswith('enable_x64')})")
        elif len(node.args) == 1 and not node.keywords and name.endswith("enable_x64"):
            self.replace(node.func, name, new)

    # --- the text ---

    def at(self, line: int | None, column: int | None) -> int:
        assert line is not None and column is not None
        return self.starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends."""
        place = [getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")]
        return self.at(*place[:2]), self.at(*place[2:])

    def whole(self, node: ast.AST) -> bool:
        """Return whether a statement has its lines to itself, without a comment inside."""
        start, end = self.span(node)
        before = self.source[self.source.rfind(b"\n", 0, start) + 1 : start]
        after = self.source[end:].split(b"\n", 1)[0].strip()
        return not before.strip() and (not after or after.startswith(b"#")) and b"#" not in self.source[start:end]

    def replace(self, node: ast.AST, name: str, text: str, message: str = "") -> None:
        """Write a text in the place of a node."""
        self._goes(node)
        self.edits.append(Edit(*self.span(node), text))
        self.found(node, name, message or text, True)

    def _goes(self, node: ast.AST) -> None:
        """Note that the name which an expression begins with goes."""
        while isinstance(node, (ast.Attribute, ast.Call)):
            node = node.value if isinstance(node, ast.Attribute) else node.func
        self.gone.add(node)

    def leave(self, node: ast.AST, name: str) -> None:
        """Mark a name that the reader has to replace."""
        self.found(node, name, self.kept.get(name) or _about(name), False)

    def found(self, node: ast.AST, name: str, message: str, done: bool) -> None:
        """Note what was found, and above which statement to say so."""
        line = self.source.count(b"\n", 0, self.span(node)[0]) + 1
        self.findings.append(Finding(line, name, message, done))
        here: ast.AST | None = node
        while here is not None and not done:
            if isinstance(here, ast.stmt):
                start = self.span(here)[0]
                decorators = getattr(here, "decorator_list", [])
                start = min([start, *(self.starts[decorator.lineno - 1] for decorator in decorators)])
                begin = self.source.rfind(b"\n", 0, start) + 1
                if not self.source[begin:start].strip():
                    self.notes.append((begin, f"{MARK}{name}: {message}"))
                    return
            here = self.parents.get(here)

    def applied(self, marks: bool) -> str:
        """The source with the edits, the imports that they need, and the comments."""
        text = self.source
        edits = list(dict.fromkeys(self.edits))
        edits += [Edit(start, start, line) for start, line in self._imports()]
        edits += [Edit(start, start, line) for start, line in self._comments() if marks]
        end = len(text) + 1
        for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
            if edit.end > end:
                raise AssertionError(f"two changes meet: {edit}")
            text = text[: edit.start] + edit.text.encode() + text[edit.end :]
            end = edit.start
        return text.decode()

    def _comments(self) -> Iterator[tuple[int, str]]:
        for begin, note in dict.fromkeys(self.notes):
            line = self.source[begin:].split(b"\n", 1)[0]
            indent = line[: len(line) - len(line.lstrip())].decode()
            if note.encode() not in self.source:  # of an earlier run
                yield begin, f"{indent}{note}\n"

    def _imports(self) -> Iterator[tuple[int, str]]:
        """Imports above the first one of the file that is not from `__future__`."""
        there = {
            alias.name
            for node in self.tree.body
            if isinstance(node, ast.Import)
            for alias in node.names
            if not alias.asname
        }
        missing = sorted(self.needed - there)
        first = next(
            (
                node
                for node in self.tree.body
                if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
            ),
            None,
        )
        if missing and first is not None:
            yield self.starts[first.lineno - 1], "".join(f"import {module}\n" for module in missing)


_SAME = Function("")


def moved(name: str) -> str:
    """Return what is written for a name today, or for one in a module that has moved; empty if nothing is known."""
    head, rest = name, ""
    while head:
        new = MOVES.get(head) or MOVED.get(head)
        if new and (not rest or head in ("jax.experimental.stax", "jax.experimental.optimizers", "jax.linear_util")):
            return new + rest
        head, _, tail = head.rpartition(".")
        rest = f".{tail}{rest}"
    return ""


def _about(name: str) -> str:
    """Return what is known of an old name, in a sentence; empty if it is not old."""
    module, lacking = _module_gone(name), absent(name)
    entry = KNOWN.get(name) or KNOWN.get(module) or {}
    if not (entry or module or lacking or deprecated(name)):
        return ""
    advice = f"; JAX says: {ADVICE[name]}" if name in ADVICE and name not in KNOWN and "note" not in entry else ""
    if not entry and deprecated(name):
        return f"deprecated in {RELEASE}{advice}"
    if not entry and not module:
        return f"{'' if lacking == name else f'{lacking} is '}not in {RELEASE}{advice}"
    gone = entry.get("removed") and f"gone since {entry['removed']}" or entry.get("state") or f"{module} is gone"
    note = f". {entry['note'].rstrip('.')}" if entry.get("note") else ""
    plain = entry.get("new") and "\n" not in entry["new"] and name in KNOWN and "write" not in note.lower()
    new = f"; write {entry['new']}" if plain else ""
    return f"{gone}{note}{new}{advice}; see {PAGE}#{entry.get('anchor', '')}".rstrip("#")


def _module_gone(name: str) -> str:
    """The module that is gone with all that was in it, if a name is from one."""
    return next((module for module in MODULES if name == module or name.startswith(f"{module}.")), "")


def absent(name: str) -> str:
    """The beginning of a name up to the first part that the release lacks; empty if nothing is lacking."""
    here, *parts = name.split(".")
    for part in parts:
        if here not in NAMES or part.startswith("__") or part == "*":
            return ""
        if not {part, f"{part}!"} & {*NAMES[here].split()}:
            return f"{here}.{part}"
        here += f".{part}"
    return ""


def deprecated(name: str) -> str:
    """The name, if the release warns of it."""
    module, _, part = name.rpartition(".")
    return name if f"{part}!" in NAMES.get(module, "").split() else ""


def _catches(handler: ast.ExceptHandler) -> bool:
    caught = ast.dump(handler.type) if handler.type else "ImportError"
    return any(name in caught for name in ("ImportError", "ModuleNotFoundError", "AttributeError"))


def _is_called(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def files(paths: list[Path]) -> Iterator[Path]:
    """The Python files among the paths, and those in the folders."""
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a Python file, or a folder of them")
    parser.add_argument("--write", action="store_true", help="change the files, and comment what is left to do")
    given = parser.parse_args(arguments)
    left = unread = replaced = 0
    for file in files(given.paths):
        try:
            if file.suffix == ".ipynb":
                raise ValueError("export the notebook first, with `jupyter nbconvert --to script`")
            source = file.read_bytes().decode()
            upgraded = upgrade(source)
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError) as error:
            print(f"{file}: cannot be read as Python: {error}", file=sys.stderr)
            unread += 1
            continue
        for finding in upgraded.findings:
            arrow = "->" if finding.done else "is left to you:"
            print(f"{file}:{finding.line}: {finding.name} {arrow} {finding.message}")
        replaced += sum(finding.done for finding in upgraded.findings)
        left += sum(not finding.done for finding in upgraded.findings)
        if given.write and upgraded.text != source:
            file.write_bytes(upgraded.text.encode())
        elif upgraded.text != source:
            old, new = (text.splitlines(keepends=True) for text in (source, upgraded.text))
            sys.stdout.writelines(difflib.unified_diff(old, new, str(file), f"{file} for {RELEASE}"))
    print(f"{replaced} {'replaced' if given.write else 'can be replaced'}, {left} left to you, for {RELEASE}")
    return 2 if unread else 1 if left or (replaced and not given.write) else 0


if __name__ == "__main__":
    sys.exit(main())
