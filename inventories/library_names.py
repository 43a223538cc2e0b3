"""Make library_names.json, what each name of the inventories takes and does: python inventories/library_names.py

It is read from the packages that are installed, which must be those of the lock for the newest Python. JAX is not among
them: its names have a record of all releases (``snippets/public_names.py``).
"""

import inspect
import json
import pkgutil
import re
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from livepages.source import find_project, read_inventories

HERE = Path(__file__).parent
RECORD = HERE / "library_names.json"

sys.path.append(str(HERE.parent / "snippets"))  # where pages import it from, too

from public_names import parameters  # noqa: E402

DISTRIBUTIONS = {"orbax": "orbax-checkpoint"}  # those that are not called what is imported
LIMIT, SHORT = 160, 20  # characters of what a card says; of a sentence that says too little without the next one
PASSED_ON = re.compile(r"\((\*\w+, )?\*\*\w+\)")
NOT_PLAIN = re.compile(r"[$\\]|```|^\.\. |\s\d\.\s")  # formulas, code, remarks, lists
HEADING = re.compile(r".*\n[=~-]+|\S+\(.*", re.DOTALL)  # or a signature
# What documentation writes as reStructuredText or Markdown, and how a card writes it.
MARKS = (
    (r"(?::\w+)+:`[~.]?([^`<]+?)(?: *<[^`]*)?`", r"`\1`"),
    (r"`([^`<]+?) *<[^`]*>`_+", r"`\1`"),
    (r"`_+", "`"),
    (r"``", "`"),
    (r"\[([^]]+)\](?:\[\]|\([^)]*\))", r"\1"),
    (r"\*(\w+)\*", r"\1"),
)


def names() -> list[str]:
    """The names of all inventories but JAX's."""
    return sorted(name for name in read_inventories(find_project(HERE)).addresses if library(name) != "jax")


def library(name: str) -> str:
    """Return what is imported for a name."""
    return name.partition(".")[0]


def installed(imported: str) -> str:
    """Return which distribution is installed of what is imported, and its version, as "optax 0.2.8"."""
    distribution = DISTRIBUTIONS.get(imported, imported)
    return f"{distribution} {version(distribution)}"


def described(name: str) -> tuple[str, str]:
    """Return what a name of an installed package takes and does."""
    value = pkgutil.resolve_name(name)
    value = getattr(value, "differentiable", value)  # what BlackJAX's samplers call, and leave their documentation to
    return takes(value), does(value)


def takes(value: object) -> str:
    """Return the parameters of a function or class; empty where they say nothing."""
    said = parameters(value)
    if isinstance(value, type):
        if PASSED_ON.fullmatch(said):  # by a metaclass
            said = re.sub(r"^\(self(, /)?(, )?", "(", parameters(value.__init__))  # type: ignore[misc]
        said = "" if said == "()" else said  # such as an enumeration, or a class to derive from
    return "" if PASSED_ON.fullmatch(said) else said


def does(value: object) -> str:
    """Return the first sentence of a value's own documentation; empty where a card could not show it."""
    documentation = value.__doc__ if isinstance(value, type) else inspect.getdoc(value)
    if not (callable(value) or isinstance(value, ModuleType)) or documentation == type(value).__doc__:
        return ""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(documentation or ""))
    said = " ".join(next((part for part in paragraphs if not HEADING.fullmatch(part)), "").split())
    if NOT_PLAIN.search(said):
        return ""
    for pattern, text in MARKS:
        said = re.sub(pattern, text, said)
    first, *more = re.split(r"(?<=[\w`)]\.)\s+(?=[A-Z`])", said)
    while more and (len(first) < SHORT or first.count("(") > first.count(")")):
        first += f" {more.pop(0)}"
    return "" if len(first) > LIMIT or first.endswith(":") else first


def record() -> str:
    """Return the text of the file for what is installed, a name a line."""
    warnings.simplefilter("ignore")
    known = names()
    versions = {each: installed(each) for each in sorted({library(name) for name in known})}
    lines = [f"    {json.dumps(name)}: {json.dumps(described(name), ensure_ascii=False)}" for name in known]
    inside = ",\n".join(lines)
    return f'{{\n  "versions": {json.dumps(versions)},\n  "names": {{\n{inside}\n  }}\n}}\n'


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print(record(), end="")
    else:
        RECORD.write_text(record(), encoding="utf-8")
