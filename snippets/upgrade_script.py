"""The text of ``upgrade_jax.py`` as readers download it, with all that it knows in it: it needs no other file."""

import re
from pathlib import Path

from ladder import Record, idioms, number

SOURCE = Path(__file__).with_name("upgrade_jax.py")


def known() -> dict[str, dict[str, str]]:
    """Return the names and keywords that fail or warn on the newest recorded release, as `upgrade_jax` takes them."""
    record = Record()
    now = record.columns[max(record.columns, key=number)].old
    found = {}
    for idiom in idioms():
        end = now[idiom.name].end
        if end != "runs" and re.fullmatch(r"[\w.]+(\(\w+=\))?", idiom.name):
            state = "deprecated" if end == "warns" else "gone"
            name = re.sub(r"^jnp\.", "jax.numpy.", idiom.name)
            name = name.replace("compilation_cache.init", "compilation_cache.compilation_cache.init")  # in full
            facts = {"state": state, "removed": idiom.removed, "new": idiom.new, "anchor": idiom.anchor}
            found[name] = {fact: text for fact, text in facts.items() if text}
    return found


def upgrade_script(url: str = "") -> str:
    """Return the text of the script.

    Args:
        url: the address of the site with a slash at its end, empty where nobody knows.
    """
    source = SOURCE.read_text(encoding="utf-8")
    release = max(Record().columns, key=number)
    rows = "".join(f"    {name!r}: {facts!r},\n" for name, facts in known().items())
    given = {
        "KNOWN: dict[str, dict[str, str]] = {}": f"KNOWN: dict[str, dict[str, str]] = {{\n{rows}}}",
        'RELEASE = "today\'s JAX"': f'RELEASE = "jax {release}"',
        'PAGE = "lookup/then-and-now/"': f'PAGE = "{url}lookup/then-and-now/"',
    }
    for before, after in given.items():
        assert before in source
        source = source.replace(before, after)
    return source
