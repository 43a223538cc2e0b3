"""The code that a reader's kernel runs beside the cells of a page, to report the same of them as a page's process.

The source of this module goes to the kernel with that of the modules that it imports from the engine, as
`livepages.exporters.kernel_bundle` says. It reports JSON as `repr`, because the reply to an expression holds nothing
else.
"""

import ast
import base64
import builtins
import datetime
import importlib.metadata
import io
import json
import linecache
import os
import re
import sys
import tempfile
import time
import zipfile
from contextlib import ExitStack
from dataclasses import replace
from types import ModuleType
from typing import Any

from livepages.execution.truncate import MESSAGE, head, truncated_streams
from livepages.records.differences import differ
from livepages.records.entries import FAILED, NOT_RUN, RAISED, RAN, dump, entry_data, make_entry
from livepages.worker.names import bound_names, imported, needed_names, syntax_tree
from livepages.worker.text import class_names, escaped, mask_addresses, message_of, overwritten

NOT_RUN_HERE = "Not run here: "  # printed by a guarded cell (`livepages.exporters.download`)
# Differences between the reports of a kernel and of a page's process: the place of a syntax error, colors, lines of a
# program whose guards are in the notebook alone, and the folder of the page's modules.
KERNELS = (
    (re.compile(r"\(\S+, line \d+\)"), ""),
    (re.compile(r"\\x1b\[[\d;]*m"), ""),
    (re.compile(r"(?<=\.py):\d+"), ""),
    (re.compile(r"(?<=File \")[^\"\n]*/"), ""),
)
COLORS = ("CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR")  # variables that make programs print them; the kernel sets them


class RawRepr(str):
    """Text that is its own `repr`."""

    def __repr__(self) -> str:
        return str(self)


class KernelBridge:
    """The report on the cells of one page as a kernel runs them; made once, before the first of them."""

    def __init__(self, shell: Any, runtime: Any, commit: str) -> None:
        """Begin to follow.

        Args:
            shell: IPython's.
            runtime: whose programs pages are.
            commit: that the site was built from.
        """
        for name, value in runtime.process_environment.items():
            os.environ.setdefault(name, value)
        for name in COLORS:
            os.environ.pop(name, None)
        # What a page writes is gone with its kernel, and nothing is read that lies where the server was started.
        self._folder = tempfile.TemporaryDirectory(prefix="live-page-", ignore_cleanup_errors=True)
        os.chdir(self._folder.name)
        # Libraries look for it here when they are imported, and print colors or HTML where they find it; cells have one
        # of their own. It is back when this cell ends, as IPython then takes it away.
        found = vars(builtins).pop("get_ipython", None)
        shell.builtin_trap.auto_builtins.pop("get_ipython", None)
        runtime.preload()
        vars(builtins)["get_ipython"] = found
        shell.config.InlineBackend.figure_formats = {"svg"}
        self._shell, self._runtime, self._commit = shell, runtime, commit
        self._own = {*shell.user_ns}  # names that are no page's
        self._shared = shell.user_module, shell.user_ns
        self._settings = ExitStack()
        self._began, self._counted = 0.0, runtime.counts()
        self._last: dict[str, Any] = {}
        self._entries: dict[str, dict[str, Any]] = {}
        self._name = ""
        self._files: dict[str, tuple[str, int]] = {}
        self._cache, shell.compile.cache = shell.compile.cache, self._named
        shell.events.register("pre_run_cell", self._begins)
        shell.events.register("post_run_cell", self._ends)

    def at(self, name: str, script: str, start: int) -> None:
        """Name the file of the next cell, whose lines are its own; in the script it begins at `start`."""
        self._name = name
        self._files[name] = script, start

    def _named(self, code: str, number: int = 0, raw_code: str | None = None) -> Any:
        """Replace IPython's name for a cell's file, whose lines tracebacks and warnings show."""
        if not self._name:
            return self._cache(code, number, raw_code)
        lines = [f"{line}\n" for line in code.split("\n")]
        linecache.cache[self._name] = (len(code), None, lines, self._name)
        return self._name

    def _in_script(self, text: str) -> str:
        """Return a text with the files and lines of cells as those of the script, which is what pages publish."""

        def place(found: re.Match[str]) -> str:
            script, start = self._files[found[1]]
            return script + (f"{found[2]}{start - 1 + int(found[3])}" if found[3] else "")

        names = "|".join(map(re.escape, self._files))
        return re.sub(rf"\b({names})(?:(:|\"?, line )(\d+))?", place, text) if names else text

    def _begins(self, info: Any) -> None:
        builtins.input = _line  # for each cell, the kernel puts its own there, which waits for a person
        self._counted, self._began = self._runtime.counts(), time.perf_counter()

    def _ends(self, result: Any) -> None:
        self._runtime.flush()
        self._name = ""
        counts = {what: number - self._counted[what] for what, number in self._runtime.counts().items()}
        error = result.error_before_exec or result.error_in_exec
        self._last = {"seconds": time.perf_counter() - self._began, "counts": counts, "raised": ""}
        if error is not None:
            kind = type(error)
            self._last |= {
                "raised": self._runtime.public_name(kind.__module__, kind.__qualname__),
                "names": class_names(kind),
                "message": mask_addresses(self._in_script(message_of(error))),
            }

    def prepared(self) -> None:
        """Note that everything before the first block has run."""
        self._own = {*self._shell.user_ns}

    def isolate(self) -> None:
        """Run the next cell without the names of the others, and restore the settings that it may change afterwards.

        The cell keeps its namespace, as functions that it has registered may be called later.
        """
        shell, module = self._shell, ModuleType("__main__")
        names = shell.user_ns.items()
        module.__dict__.update({name: value for name, value in names if name in self._own or name[0] == "_"})
        self._shared = shell.user_module, shell.user_ns
        shell.user_module, shell.user_ns = module, module.__dict__
        sys.modules["__main__"] = module
        self._settings.enter_context(self._runtime.settings_restored())

    def rejoin(self) -> None:
        """Undo `isolate`."""
        self._shell.user_module, self._shell.user_ns = self._shared
        sys.modules["__main__"] = self._shared[0]
        self._settings.close()

    def needed(self, given: str) -> RawRepr:
        """Return as JSON what `needed_parts` does, and of each part whether its cell only imports and makes settings.

        Args:
            given: JSON: the code of the cells above, and that of the cell.
        """
        above, code = json.loads(given)
        parts = [(index, part, _only_imports(above[index])) for index, part in needed_parts(above, code)]
        return RawRepr(json.dumps(parts))

    def report(self, given: str) -> RawRepr:
        """Return the report on the cell that has just run, as JSON.

        Args:
            given: JSON: the ``cell`` (the notebook's data about its block), its ``code``, what was ``published`` of it,
                and its output here: ``stdout``, ``stderr``, ``shown`` and ``figures``; ``whole`` is true if this cell
                and all before it are unedited.

        Returns:
            ``device``, empty where none is in use yet; ``release``, ``seconds``, ``raised``; ``as_expected``, whether
            the block ended as its page expects; and ``difference`` from what was published, empty if there is none.
        """
        request = json.loads(given)
        cell, published = request["cell"], request["published"]
        raised, message = self._last.get("raised", ""), self._last.get("message", "")
        streams = truncated_streams((name, _plain(self._in_script(request[name]))) for name in ("stdout", "stderr"))
        stdout, stderr = (dict(streams).get(name, "") for name in ("stdout", "stderr"))
        error = f"{raised}: {head(message, MESSAGE)}" if raised else ""
        skipped = stdout.startswith(NOT_RUN_HERE)
        must, match = cell.get("raises", ""), cell.get("match", "")
        meant = must in self._last["names"] and bool(re.search(match, message)) if raised else not must
        if skipped:
            outcome, error = NOT_RUN, stdout.removeprefix(NOT_RUN_HERE)
            stdout, meant = "", True
        else:
            outcome = FAILED if not meant else RAISED if raised else RAN
        seconds = self._last["seconds"]
        entry = make_entry(
            request["code"],
            seconds,
            key=cell.get("key", ""),
            outcome=outcome,
            counts=self._last["counts"],
            figures=request["figures"],
            shown=request["shown"],
            stdout=stdout,
            stderr=stderr,
            error=error,
        )
        before = make_entry("", 0.0, key="", outcome=RAISED if published["error"] else RAN, **published)
        known = not skipped and not cell.get("unknown")
        patterns = (*self._runtime.noise_patterns, *KERNELS)
        options = cell.get("tolerance", 0.0), cell.get("volatile", False), patterns
        here = replace(entry, outcome=RAISED) if raised else entry
        difference = differ(before, here, *options) if known else None
        if request["whole"] and entry.key:
            self._entries[entry.key] = entry_data(entry)
        answer = {
            "device": self._runtime.device() if self._runtime.backend_initialized() else "",
            "release": self._runtime.release,
            "seconds": seconds,
            "raised": raised,
            "as_expected": meant,
            "skipped": skipped,
            "compared": known,
            "difference": f"{difference}" if difference else "",
        }
        return RawRepr(json.dumps(answer))

    def record(self, given: str) -> RawRepr:
        """Return the record of the page on this host as JSON: a ``name``, and a zip archive of ``records/`` in Base64.

        Args:
            given: JSON: the ``page``, the ``files`` that it depends on, the ``keys`` of its blocks and their ``code``.
        """
        request = json.loads(given)
        about = self._runtime.host()
        name = re.sub(r"[^a-z0-9.]+", "-", f"{about['device']} {self._runtime.release}".lower()).strip("-")
        host = {
            **about,
            **self._runtime.versions(),
            "distributions": _versions(request["code"]),
            "environment": {
                name: value
                for name, value in self._runtime.variables().items()
                if name not in self._runtime.process_environment
            },
            "commit": self._commit,
            "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
        }
        blocks = [self._entries[key] for key in request["keys"] if key in self._entries]
        page = {"device": self._runtime.device(), "files": request["files"], "blocks": blocks}
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
            files.writestr(f"records/{name}.yml", dump(host))
            files.writestr(f"records/{name}/{request['page']}.yml", dump(page))
        return RawRepr(json.dumps({"name": name, "zip": base64.b64encode(archive.getvalue()).decode()}))


def needed_parts(above: list[str], code: str) -> list[tuple[int, str]]:
    """Return the parts of the code above that code needs to run first: an index and the part's code, in order.

    These are all parts that only import and make settings; the import statements that bind names which are read later;
    and the last part as a whole that binds such a name in any other way. Effects that bind no name, such as adding to a
    list, are not seen.
    """
    counts = {index: text for index, text in enumerate(above) if _only_imports(text)}
    wanted = [(len(above), name) for name in needed_names(code)]
    seen = set()
    imports: dict[int, set[str]] = {}
    while wanted:
        end, name = pair = wanted.pop()
        index = next((index for index in reversed(range(end)) if name in bound_names(above[index])), None)
        if index is None or pair in seen or counts.get(index) == above[index]:
            continue
        seen.add(pair)
        if any(name in bound_names(ast.unparse(part)) for part in _without_imports(above[index])):
            counts[index] = above[index]
            wanted += [(index, needed) for needed in needed_names(above[index])]
        else:
            imports.setdefault(index, set()).add(name)
    for index, names in imports.items():
        counts.setdefault(index, _import_statements(above[index], names))
    return sorted(counts.items())


def _only_imports(code: str) -> bool:
    """Return whether code does nothing but import, and call functions of the imports without using their results."""
    parts = syntax_tree(code).body
    return any(map(_is_import, parts)) and all(_is_import(part) or _is_setting(part) for part in parts)


def _is_setting(part: ast.stmt) -> bool:
    call = part.value if isinstance(part, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)


def _import_statements(code: str, names: set[str]) -> str:
    parts = (ast.unparse(part) for part in syntax_tree(code).body if _is_import(part))
    return "\n".join(part for part in parts if names & bound_names(part))


def _without_imports(code: str) -> list[ast.stmt]:
    return [part for part in syntax_tree(code).body if not _is_import(part)]


def _is_import(part: ast.stmt) -> bool:
    return isinstance(part, ast.Import | ast.ImportFrom)


def _line(prompt: object = "") -> str:
    """Replace `input`, as there is no prompt: return the next line of `sys.stdin`, if a program has replaced it."""
    print(prompt, end="", flush=True)
    if not (line := sys.stdin.readline()):
        raise EOFError("EOF when reading a line")
    return line.removesuffix("\n")


def _plain(text: str) -> str:
    """Return text as a terminal without colors shows it, with control characters as in a string."""
    return escaped(overwritten(re.sub(r"\x1b\[[\d;]*m", "", text)))


def _versions(code: list[str]) -> dict[str, str]:
    """The versions of the distributions that cells import, by their names."""
    names = set[str]().union(*map(imported, code)) - sys.stdlib_module_names
    owners = importlib.metadata.packages_distributions()
    found = sorted({owner for name in names for owner in owners.get(name, [])})
    return {owner: importlib.metadata.version(owner) for owner in found}
