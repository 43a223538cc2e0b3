"""The text of ``upgrade_jax.py`` as readers download it, with all that it knows in it: it needs no other file."""

import importlib
import json
import pkgutil
import re
from pathlib import Path

import public_names
from ladder import Record, idioms, number
from upgrade_jax import FORMS, MOVES

SOURCE = Path(__file__).with_name("upgrade_jax.py")
NAMES = Path(__file__).with_name("upgrade_names.txt")
FIRST = re.compile(  # of a message: that a name is gone
    r".*?\b(deprecated|removed)( (in|as of|by) (JAX )?v?[\d.]+\d\.?| as of \w+ \d+, \d+)?"
    r"(,? and (will be )?removed in (JAX )?v?[\d.]+\d| in a future release)?[.;:,]*\s*"
)
ELSEWHERE = re.compile(r"[Uu]se (jax(?:\.\w+)+)(?: instead| directly)?\.?")
APART = re.compile("pallas|interpreters|extend|stages|experimental|Trace")  # for those who write their own primitives
MODULES = """
jax jax.ad jax.ad_checkpoint jax.api_util jax.config jax.core jax.custom_batching jax.custom_derivatives jax.debug
jax.distributed jax.dlpack jax.dtypes jax.errors jax.example_libraries jax.experimental
jax.experimental.compilation_cache jax.experimental.compilation_cache.compilation_cache jax.experimental.mesh_utils
jax.experimental.multihost_utils jax.experimental.pallas jax.experimental.pallas.ops jax.experimental.pallas.tpu
jax.experimental.pallas.triton jax.experimental.pjit jax.experimental.shard_map jax.experimental.sparse jax.extend
jax.flatten_util jax.image jax.interpreters jax.interpreters.ad jax.interpreters.batching jax.interpreters.mlir
jax.interpreters.partial_eval jax.interpreters.pxla jax.interpreters.xla jax.lax jax.lax.linalg jax.lib jax.nn
jax.nn.initializers jax.numpy jax.numpy.fft jax.numpy.linalg jax.ops jax.profiler jax.random jax.scipy jax.scipy.fft
jax.scipy.linalg jax.scipy.signal jax.scipy.sparse.linalg jax.scipy.special jax.scipy.stats jax.sharding jax.stages
jax.test_util jax.tools jax.tree jax.tree_util
"""


def present() -> dict[str, list[str]]:
    """Return what the modules of the installed JAX hold, also what has to be imported; "!" ends what is deprecated."""
    found = {}
    jax = importlib.import_module("jax")
    for name in MODULES.split():
        module = getattr(jax, name[4:]) if name in ("jax.ad", "jax.config") else importlib.import_module(name)
        table = vars(module).get("_deprecations", {})
        inside = [part.name for part in pkgutil.iter_modules(getattr(module, "__path__", []))]
        options = list(module.values) if name == "jax.config" else []
        held = {part for part in [*dir(module), *inside, *options] if part.isidentifier() and part not in table}
        warned = {f"{old}!" for old, (_, value) in table.items() if value is not None}
        found[name] = sorted(part for part in held | warned if not part.startswith("__"))
    return found


def known() -> dict[str, dict[str, str]]:
    """Return the names and keywords that fail or warn on the newest recorded release, as `upgrade_jax` takes them."""
    record = Record()
    now = record.columns[max(record.columns, key=number)].old
    found = {}
    for idiom in idioms():
        end = now[idiom.name].end
        if end != "runs" and (idiom.name in FORMS or re.fullmatch(r"[\w.]+(\(\w+=\w*\))?", idiom.name)):
            state = "deprecated" if end == "warns" else "gone"
            facts = {"state": state, "removed": idiom.removed, "new": idiom.write or idiom.new, "anchor": idiom.anchor}
            facts["note"] = "" if idiom.write else idiom.note.replace("`", "")
            name = full_name(idiom.name) if idiom.name in FORMS else re.sub(r"=\w*", "=", full_name(idiom.name))
            found[name] = {fact: text for fact, text in facts.items() if text}
    found["jax.jit(backend=)"] = found["jax.jit(device=)"]  # deprecated by one message
    return found


def names() -> dict[str, str]:
    """Return what the modules of the release hold, as `upgrade_jax` takes it."""
    _, *lines = NAMES.read_text(encoding="utf-8").splitlines()
    return {module: parts for module, _, parts in (line.partition(" ") for line in lines)}


def keywords() -> dict[str, str]:
    """Return the keywords that functions took in an earlier release, as `upgrade_jax` takes them."""
    found = {}
    for name, (_, *history) in json.loads(public_names.RECORD.read_text(encoding="utf-8"))["names"].items():
        taken = [_parameters(seen) for seen in history]
        of_class = name.rpartition(".")[0].rpartition(".")[2][:1].isupper()
        if of_class or APART.search(name) or not taken[-1] or any(part.startswith("*") for part in taken[-1]):
            continue
        gone = {part for parts in taken for part in parts if not part.startswith("*")} - {*taken[-1], "self"}
        if gone:
            found[name] = " ".join(sorted(gone))
    return found


def advised() -> tuple[dict[str, str], dict[str, str]]:
    """Return the names that are elsewhere now by JAX's own messages, and what these messages advise, by old names.

    A name that is elsewhere has kept its last part, and what a message names still is there.
    """
    record = public_names.Record().histories
    there = {name for name, history in record.items() if history.since and not (history.gone or history.deprecated)}
    there |= {f"{module}.{part}" for module, parts in names().items() for part in parts.split()} | {*names()}
    moved, advice = {}, {}
    for name, history in record.items():
        message = FIRST.sub("", history.farewell)
        if not history.gone or name in MOVES or message == history.farewell or not message:
            continue
        if not {each.rstrip(".") for each in re.findall(r"\bjax(?:\.\w+)+", message)} <= there:
            continue
        advice[name] = message.rstrip(".")
        new = ELSEWHERE.fullmatch(message)
        is_module = new and any(other.startswith(f"{new[1]}.") for other in [*record, *names()])
        if new and not is_module and new[1].rpartition(".")[2] == name.rpartition(".")[2]:
            moved[name] = new[1]
    return moved, advice


def _parameters(seen: list[str]) -> list[str]:
    return re.findall(r"[(,]\s*(\*{0,2}\w+)", seen[3]) if len(seen) > 3 else []


def full_name(name: str) -> str:
    """Return the name of an idiom as it is after `import jax`."""
    name = re.sub(r"^jnp\.", "jax.numpy.", name)
    return name.replace("compilation_cache.init", "compilation_cache.compilation_cache.init")


def upgrade_script(url: str = "") -> str:
    """Return the text of the script.

    Args:
        url: the address of the site with a slash at its end, empty where nobody knows.
    """
    source = SOURCE.read_text(encoding="utf-8")
    release = max(Record().columns, key=number)
    rows = "".join(f"    {name!r}: {facts!r},\n" for name, facts in known().items())
    held = "".join(f"    {module!r}: {parts!r},\n" for module, parts in names().items())
    took = "".join(f"    {name!r}: {parts!r},\n" for name, parts in keywords().items())
    elsewhere, advice = ("".join(f"    {name!r}: {text!r},\n" for name, text in each.items()) for each in advised())
    given = {
        "MOVED: dict[str, str] = {}": f"MOVED: dict[str, str] = {{\n{elsewhere}}}",
        "ADVICE: dict[str, str] = {}": f"ADVICE: dict[str, str] = {{\n{advice}}}",
        "KEYWORDS: dict[str, str] = {}": f"KEYWORDS: dict[str, str] = {{\n{took}}}",
        "NAMES: dict[str, str] = {}": f"NAMES: dict[str, str] = {{\n{held}}}",
        "KNOWN: dict[str, dict[str, str]] = {}": f"KNOWN: dict[str, dict[str, str]] = {{\n{rows}}}",
        'RELEASE = "today\'s JAX"': f'RELEASE = "jax {release}"',
        'PAGE = "Live JAX: lookup/then-and-now/"': f'PAGE = "{url or "Live JAX: "}lookup/then-and-now/"',
    }
    for before, after in given.items():
        assert before in source
        source = source.replace(before, after)
    return source


if __name__ == "__main__":
    import jax

    text = "".join(f"{module} {' '.join(held)}".rstrip() + "\n" for module, held in present().items())
    NAMES.write_text(f"# jax {jax.__version__}, by python snippets/upgrade_script.py\n{text}", encoding="utf-8")
