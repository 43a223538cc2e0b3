"""A record of the public names of JAX: with which release each came and went, read from the releases themselves.

``python snippets/public_names.py --environments DIR RELEASE...`` installs each release into a folder of its own below
DIR, which has to be outside the repository, asks it for its names, and writes them into public_names.json. It needs
``uv`` on the path, and of the Pythons it takes for each release the first that has wheels for it:

    python snippets/public_names.py --environments ~/jax-releases --pythons python3.11 python3.13 -- 0.11.2 0.12.0

A name is public if it has no leading underscore in any part and a public module of JAX defines it, imports it ``as``
itself, or lists it in ``__all__`` or in its table of deprecations; so are the attributes of the classes of a few
modules. If one release says so, it counts in all that have it: older ones import some without ``as``. It is "there" if
it can be read without a warning, "deprecated" if reading it warns, "gone" if reading it raises an error that the module
itself has written for it, and else "absent". What only a call warns of is not seen.
"""

import argparse
import ast
import enum
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import MethodDescriptorType, ModuleType

HERE = Path(__file__).parent
RECORD = HERE / "public_names.json"
AT_ONCE = 2
LIMIT = 600  # seconds to install a release, and to ask it
OTHER_JAXLIB = {"0.4.14": "0.4.18", "0.4.16": "0.4.18", "0.4.17": "0.4.18"}  # where the index has lost a release's own
BESIDE = ("absl-py", "flatbuffers")  # what releases before 0.6 need for `jax.export`
OLD_BESIDE = ("numpy<2", "scipy<1.13")  # what releases before 0.4.26 need
FIRST_WITH_NUMPY_2 = (0, 4, 26)

# Modules that are no part of the public interface although nothing in their names says so.
INTERNAL = re.compile(
    r"jax\.(tools|version|collect_profile|test_util)"
    r"|jax\.experimental\.(?!(pallas|compilation_cache)\.)\w+\.\w+"
    r"|jax\.experimental\.(jax2tf|array_serialization|mosaic|slab|pallas\.ops)"
    r"|jax\.extend\.mlir\.\w+"
)
WITH_ATTRIBUTES = ("", "export", "sharding", "stages")  # the modules of the package whose classes' attributes count
TYPES = ("typing", "collections.abc", "__future__")  # where names come from that annotations need
FAREWELL = re.compile(r"deprecat|remov|renam|moved|no longer", re.IGNORECASE)


# --- the record -------------------------------------------------------------------------------------------------------


def number(release: str) -> tuple[int, ...]:
    """Return what releases are ordered by."""
    return tuple(map(int, re.findall(r"\d+", release)))


@dataclass(frozen=True)
class Seen:
    """A name in a release."""

    state: str  # "there", "deprecated", "gone" or "absent"
    says: str = ""  # its warning or error
    takes: str = ""  # the parameters, without annotations

    @property
    def parameters(self) -> list[str]:
        """The parameters' names."""
        return re.findall(r"[(,]\s*(\*{0,2}\w+)", self.takes)

    def differs_from(self, other: "Seen") -> bool:
        """Return whether more differs than the parameters' defaults."""
        return (self.state, self.says, self.parameters) != (other.state, other.says, other.parameters)


ABSENT = Seen("absent")
HERE_IN = ("there", "deprecated")


@dataclass(frozen=True)
class History:
    """A name in all releases."""

    name: str
    changes: tuple[tuple[str, Seen], ...]  # the first release, and each in which something is not as in the one before
    sentence: str = ""  # of its documentation, in the last release that has the name

    @property
    def spans(self) -> tuple[tuple[str, str], ...]:
        """The runs of releases that have it: the first of each, and the first without it, empty for the last run's."""
        found: list[tuple[str, str]] = []
        for release, seen in self.changes:
            here = bool(found) and not found[-1][1]
            if seen.state in HERE_IN and not here:
                found.append((release, ""))
            elif seen.state not in HERE_IN and here:
                found[-1] = found[-1][0], release
        return tuple(found)

    @property
    def since(self) -> str:
        """The release since which it has been there without a break, if it is, or was until it went.

        Empty for a name that was gone when the record begins.
        """
        return self.spans[-1][0] if self.spans else ""

    @property
    def now(self) -> Seen:
        """Return what the newest release says of it."""
        return self.changes[-1][1]

    @property
    def deprecated(self) -> str:
        """The release since which reading it warns, if it does or did until it went."""
        return self._last_run("deprecated")

    @property
    def gone(self) -> str:
        """The first release that does not have it any longer; empty if the newest has it."""
        return self._last_run("gone", "absent") if self.now.state in ("gone", "absent") else ""

    @property
    def farewell(self) -> str:
        """The last message of a warning or an error about it."""
        return next((seen.says for _, seen in reversed(self.changes) if seen.says), "")

    @property
    def takes(self) -> str:
        """The parameters that it takes, or took last."""
        return next((seen.takes for _, seen in reversed(self.changes) if seen.takes), "")

    @property
    def changed(self) -> str:
        """The last release that changed which parameters it takes; empty if none has."""
        taking = [(release, seen.parameters) for release, seen in self.changes if seen.takes]
        steps = [b for (_, before), (b, after) in zip(taking, taking[1:], strict=False) if before != after]
        return steps[-1] if steps else ""

    def _last_run(self, *states: str) -> str:
        first = ""
        for release, seen in self.changes:
            if seen.state in states:
                first = first or release
            elif not (seen.state in ("gone", "absent") and states == ("deprecated",)):
                first = ""
        return first

    def at(self, release: str) -> Seen:
        """Return what a release says of it."""
        return next((seen for other, seen in reversed(self.changes) if number(other) <= number(release)), ABSENT)


class Record:
    """The facts about every name, by name, and the releases that they are from."""

    def __init__(self, path: Path = RECORD) -> None:
        """Read a record, if there is one."""
        self.path = path
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"releases": [], "names": {}}
        self.releases: list[str] = kept["releases"]
        self.histories = {
            name: History(name, tuple((release, Seen(*seen)) for release, *seen in changes), sentence)
            for name, (sentence, *changes) in kept["names"].items()
        }

    def put(self, release: str, dumped: dict[str, list[str]]) -> None:
        """Add a release, or replace it; `dumped` has a name's state, message, parameters and sentence."""
        releases = sorted({*self.releases, release}, key=number)
        found = {}
        for name in sorted(self.histories.keys() | dumped.keys()):
            known = self.histories.get(name, History(name, ()))
            state, says, takes, sentence = dumped.get(name, ("absent", "", "", ""))
            column = {other: known.at(other) for other in self.releases} | {release: Seen(state, says, takes)}
            changes: list[tuple[str, Seen]] = []
            for other in releases:
                before = changes[-1][1] if changes else ABSENT
                if column[other].differs_from(before):
                    changes.append((other, column[other]))
                elif changes:  # with the newest defaults
                    changes[-1] = changes[-1][0], column[other]
            newest = not any(number(other) > number(release) and column[other].state in HERE_IN for other in releases)
            if changes:
                found[name] = History(name, tuple(changes), sentence if sentence and newest else known.sentence)
        self.releases, self.histories = releases, found

    def save(self) -> None:
        """Write the file, a name a line."""
        lines = []
        for name, history in sorted(self.histories.items()):
            changes = [_short([release, seen.state, seen.says, seen.takes]) for release, seen in history.changes]
            lines.append(f"    {json.dumps(name)}: {json.dumps([history.sentence, *changes], ensure_ascii=False)}")
        names = ",\n".join(lines)
        text = f'{{\n  "releases": {json.dumps(self.releases)},\n  "names": {{\n{names}\n  }}\n}}\n'
        self.path.write_text(text, encoding="utf-8")


def _short(values: list[str]) -> list[str]:
    """Values without the empty ones at the end."""
    while not values[-1]:
        values = values[:-1]
    return values


# --- in the release's own process: nothing here needs more than that release ------------------------------------------


def dump(package: str) -> dict[str, list[str]]:
    """Every public name of an installed package: its state, its warning or error, its parameters, a sentence."""
    found = {}
    for name, module, says in public_modules(package):
        if not module:
            found[name] = ["gone", says, "", ""]
            continue
        found[name] = ["deprecated" if says else "there", says, "", sentence(module)]
        for each in names_of(module):
            if seen := look(module, each):
                found[f"{name}.{each}"] = seen
                if name.partition(".")[2] in WITH_ATTRIBUTES and seen[0] == "there":
                    found |= attributes(f"{name}.{each}")
    return found


def read(names: Iterable[str]) -> dict[str, list[str]]:
    """The names, of those given, that can be read, and those that raise an error of their own, as in `dump`."""
    found = {}
    for name in names:
        owner, _, last = name.rpartition(".")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                place = pkgutil.resolve_name(owner)
            except Exception:  # not there, or a module for other devices or packages
                continue
        if seen := look(_of_array(place), last, anyone=True):
            found[name] = seen
    return found


def public_modules(package: str) -> Iterator[tuple[str, ModuleType | None, str]]:
    """The package and its public modules, each with its name and what importing it warns of.

    A module that is there only to say that it is gone is None, with the error's message.
    """
    root = importlib.import_module(package)
    yield package, root, ""
    places = [(root.__path__, package + ".")]
    while places:
        path, prefix = places.pop()
        for found in pkgutil.iter_modules(path, prefix):
            if found.name.rpartition(".")[2].startswith("_") or INTERNAL.fullmatch(found.name):
                continue
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    module = importlib.import_module(found.name)
            except Exception as error:  # a module for other devices or packages, or one that is gone
                says = " ".join(str(error).split())
                if FAREWELL.search(says):
                    yield found.name, None, says
                else:
                    print(f"{found.name}: {type(error).__name__}: {says}", file=sys.stderr)
                continue
            own = (" ".join(str(each.message).split()) for each in caught)
            yield found.name, module, next((says for says in own if found.name in says), "")
            if found.ispkg:
                places.append((list(module.__path__), found.name + "."))


def names_of(module: ModuleType) -> set[str]:
    """The names that a module's source makes public."""
    source = Path(module.__file__).read_text(encoding="utf-8") if module.__file__ else ""
    names = set(getattr(module, "__all__", ()))
    statements: list[ast.AST] = list(ast.parse(source).body)
    for statement in statements:
        if isinstance(statement, ast.If | ast.Try | ast.With):
            statements += [part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.stmt)]
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names |= {alias.name for alias in statement.names if alias.asname == alias.name}
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names |= {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    for table, value in list(vars(module).items()):  # JAX keeps them in `_deprecations` and its like
        if table.startswith("_") and "deprecat" in table and isinstance(value, dict):
            names |= {name for name in value if isinstance(name, str)}
    return {name for name in names if name.isidentifier() and not name.startswith("_")}


def attributes(name: str) -> dict[str, list[str]]:
    """The public attributes that the package gives a class, by their names; none if the name is of something else.

    What can be read from objects alone is left out, except of arrays: a property may become such an attribute.
    """
    cls, own = pkgutil.resolve_name(name), name.partition(".")[0]  # and its other packages, such as jaxlib
    if not isinstance(cls, type):
        return {}
    owner = _of_array(cls)
    bases = (owner if isinstance(owner, type) else type(owner)).__mro__
    given = {each for base in bases if base.__module__.startswith(own) for each in vars(base)}
    if owner is cls:
        given = {each for each in given if callable(value := getattr(cls, each, None)) or type(value) is cls}
    public = sorted(each for each in given if not each.startswith("_"))
    return {f"{name}.{each}": seen for each in public if (seen := look(owner, each))}


def _of_array(owner: object) -> object:
    """An array in place of `jax.Array`, which is the class of none, and has properties that only raise an error."""
    if "jax" in sys.modules and owner is vars(sys.modules["jax"]).get("Array"):
        try:
            return importlib.import_module("jax.numpy").zeros((1, 1))
        except Exception:  # beside a jaxlib of another release nothing computes
            return importlib.import_module("jax._src.array").ArrayImpl
    return owner


def look(owner: object, name: str, anyone: bool = False) -> list[str]:
    """Read a name of a module or class: its state, the message, its parameters, a sentence.

    Returns nothing if there is no such name, and, unless `anyone` may have made it, if it is not the package's own.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = getattr(owner, name)
        except Exception as error:  # removals raise errors of their own
            says = " ".join(str(error).split())
            unknown = isinstance(error, AttributeError) and re.fullmatch(
                r"((partially initialized )?(module|type object) \S+|'\S+' object) has no attribute \S+", says
            )
            return [] if unknown else ["gone", says, "", ""]
    if isinstance(owner, type):
        given = inspect.getattr_static(owner, name)
        if inspect.isfunction(given) or hasattr(given, "__wrapped__"):
            value = value.__get__(owner)  # as callers see it, who do not write the first argument
        elif isinstance(given, property) and inspect.isfunction(given.fget):
            try:
                given.__get__(object.__new__(object))
            except NotImplementedError as error:  # whatever it is read from
                return ["gone", " ".join(str(error).split()), "", ""]
            except Exception:  # it needs an object of the class
                pass
    if not anyone and isinstance(owner, ModuleType):
        package = owner.__name__.partition(".")[0]
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] != package:
            return []
        if any(vars(importlib.import_module(place)).get(name, owner) is value for place in TYPES):
            return []
    says = next((" ".join(str(each.message).split()) for each in caught), "")
    about = ["", ""] if getattr(value, "__module__", "") in TYPES else [parameters(value), sentence(value)]
    if isinstance(owner, type) and isinstance(value, MethodDescriptorType):
        about[0] = re.sub(r"^\(self(, )?", "(", about[0])
    return ["deprecated" if caught else "there", says, *about]


def parameters(value: object) -> str:
    """Return what a function or class takes, without annotations; empty if it does not say."""
    if isinstance(value, ModuleType | enum.EnumMeta) or not callable(value):
        return ""
    try:
        given = inspect.signature(value).parameters.values()
    except (ValueError, TypeError):
        return ""
    plain = []
    for each in given:
        default = each.default
        if default is not each.empty and not isinstance(default, bool | int | float | str | type(None)):
            default = ...
        plain.append(each.replace(annotation=each.empty, default=default))
    return re.sub(r"=<[^<>]*>", "=…", str(inspect.Signature(plain)).replace("Ellipsis", "…"))


def sentence(value: object) -> str:
    """The first sentence of what a name's documentation says."""
    if not (isinstance(value, ModuleType) or callable(value)) or getattr(value, "__module__", "") == "builtins":
        return ""
    if inspect.getdoc(value) == inspect.getdoc(type(value)):  # of an object that has none of its own
        return ""
    first = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    first = re.sub(r":\w+:`~?([^`<]+)[^`]*`", r"`\1`", re.split(r"(?<=\w\.)\s", first)[0]).replace("``", "`")
    return first if len(first) <= 160 and not re.match(r"\w+\(", first) else ""


# --- installing, and the command line ---------------------------------------------------------------------------------


def install(release: str, environments: Path, pythons: list[str]) -> str:
    """Install a release into a folder of its own, unless it is there, and return the Python that it is for."""
    place = environments / release
    beside = [*BESIDE, *(OLD_BESIDE if number(release) < FIRST_WITH_NUMPY_2 else ())]
    marker = place / "python"  # which was installed for
    for python in pythons:
        if marker.exists():
            break
        command = ["uv", "pip", "install", "-q", "--target", str(place), "--python", python]
        jaxlib = OTHER_JAXLIB.get(release)
        wanted = [f"jax=={release}", f"jaxlib=={jaxlib}"] if jaxlib else [f"jax[cpu]=={release}"]
        done = subprocess.run([*command, *wanted, *beside], capture_output=True, text=True, check=False, timeout=LIMIT)
        if done.returncode == 0:
            marker.write_text(python, encoding="utf-8")
    if not marker.exists():
        raise RuntimeError(f"jax {release} cannot be installed for {' or '.join(pythons)}:\n{done.stderr}")
    return marker.read_text(encoding="utf-8").strip()


def ask(release: str, environments: Path, pythons: list[str], names: Iterable[str] = ()) -> dict[str, list[str]]:
    """Install a release, unless it is, and return its dump, or what can be read there of some names."""
    python = install(release, environments, pythons)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "PYTHON"))}
    done = subprocess.run(
        [python, "-W", "ignore", __file__, "--read" if names else "--dump", "jax", "--release", release],
        env={**kept, "PYTHONPATH": str(environments / release), "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"},
        input="\n".join(names),
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    print(f"jax {release}: {done.stdout.count('[')} names\n{done.stderr}", file=sys.stderr)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def main() -> None:
    """Record releases, or print the dump of the installed one."""
    about = (__doc__ or "").replace("``", "")
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", help="such as 0.12.0")
    parser.add_argument("--environments", type=Path, help="the folder in which each release has one of its own")
    parser.add_argument("--pythons", nargs="+", default=[sys.executable], help="the first that works is taken")
    parser.add_argument("--dump", metavar="PACKAGE", help="print the names of an installed package")
    parser.add_argument("--read", metavar="PACKAGE", help="print those of the names in standard input that it has")
    parser.add_argument("--release", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.dump or given.read:
        if given.release in OTHER_JAXLIB:
            # JAX refuses a jaxlib that is newer; names do not depend on it.
            vars(importlib.import_module("jaxlib.version"))["__version__"] = given.release
        with redirect_stdout(sys.stderr):  # some modules print when they are imported
            found = dump(given.dump) if given.dump else read(sys.stdin.read().split())
        print(json.dumps(found, indent=0))
        return
    if not given.environments or HERE.parent in given.environments.resolve().parents:
        parser.error("--environments has to name a folder outside the repository")
    record = Record()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        dumps = list(pool.map(lambda release: ask(release, given.environments, given.pythons), given.releases))
        known = record.histories.keys() | {name for dumped in dumps for name in dumped}
        others = [sorted(known - dumped.keys()) for dumped in dumps]
        read_there = pool.map(
            lambda release, names: ask(release, given.environments, given.pythons, names) if names else {},
            given.releases,
            others,
        )
        for release, dumped, more in zip(given.releases, dumps, read_there, strict=True):
            record.put(release, dumped | more)
    record.save()


if __name__ == "__main__":
    main()
