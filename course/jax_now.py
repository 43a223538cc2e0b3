"""``jax-now.md``: what a program that writes JAX must know to write today's, in at most 8 kB; and the same as a skill.

It is made of the program of ``snippets/modern.py``, the idioms that ``ladder.py`` ran on the newest recorded release,
and the error dictionary. Every line of code in it runs in a test.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from livepages.source import Page

SNIPPETS = Path(__file__).parents[1] / "snippets"
sys.path.append(str(SNIPPETS))  # where pages import it from, too

from ladder import Idiom, Record, behaviors, idioms, number  # noqa: E402
from upgrade_jax import MOVES  # noqa: E402
from upgrade_script import upgrade_script  # noqa: E402

LIMIT = 8000  # bytes
SKILL = "jax-now"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
ABOUT = (
    "Write JAX for today's release: names that are gone and what replaces them, results that changed, errors and fixes."
)
ERRORS = (  # entries of the error dictionary whose repaired program runs alone, the most frequent ones
    "TracerBoolConversionError",
    "ConcretizationTypeError",
    "UnexpectedTracerError",
)
FIRST = (  # of what is listed, what is met most often
    "jax.ops.index_update",
    "jax.random.shuffle",
    "jax.experimental.shard_map.shard_map",
    "jax.experimental.enable_x64",
    "jax.xla_computation",
    "jnp.clip(a_min=,a_max=)",
    "jax.random.normal(split(key, n))",
)
_INTERNAL = ("jax.core", "jax.interpreters", "jax.lib", "jaxlib", "jax.util", "jax.linear_util", "jax.abstract_arrays")


def files(pages: Iterable[Page], url: str) -> dict[str, str]:
    """Return ``jax-now.md``, the skill that holds the same with its index, and ``upgrade_jax.py``, by name."""
    text = jax_now(pages, url)
    skill = f"---\nname: {SKILL}\ndescription: {json.dumps(ABOUT)}\n---\n\n{text}"
    place = f".well-known/agent-skills/{SKILL}/SKILL.md"
    digest = f"sha256:{hashlib.sha256(skill.encode()).hexdigest()}"
    entry = {"name": SKILL, "type": "skill-md", "description": ABOUT, "url": f"{url or '/'}{place}", "digest": digest}
    index = json.dumps({"$schema": SCHEMA, "skills": [entry]}, indent=2) + "\n"
    return {
        f"{SKILL}.md": text,
        place: skill,
        ".well-known/agent-skills/index.json": index,
        "upgrade_jax.py": upgrade_script(url),
    }


def jax_now(pages: Iterable[Page], url: str = "") -> str:
    """Return the text of ``jax-now.md``; it takes the same as `files`."""
    record = Record()
    release = max(record.columns, key=number)
    now = record.columns[release].old
    old = [idiom for idiom in idioms() if now[idiom.name].end != "runs" and idiom.name not in MOVES and idiom.new]
    gone = [f"- `{idiom.name}`: {written}" for idiom in sorted(old, key=_relevance) if (written := _written(idiom))]
    head = (
        f"# JAX now\n\nFor programs that write JAX. Every line of code here ran on jax {release}. Older tutorials, and "
        f"what models remember of them, use names that are gone: {len(idioms())} of them, with what replaces each and "
        f"since when, are in {url}lookup/then-and-now/index.md. All pages: {url}llms.txt."
    )
    parts = [
        head,
        f"## Write it like this\n\n```python\n{_program()}\n```",
        "## Renamed\n\nThe same arguments, another name.\n\n" + "\n".join(_renames()),
        "## Changed without an error\n\n" + "\n".join(_changed(record)),
        "## Errors",
        *_errors({section.anchor: page for page in pages if _is_dictionary(page) for section in page.sections}),
        "## Gone or deprecated, and what to write",
    ]
    text = "\n\n".join(parts) + "\n\n"
    for line in gone:
        if len((text + line).encode()) < LIMIT:
            text += f"{line}\n"
    return text


def code(text: str) -> list[str]:
    """Return every piece of code in such a text: the blocks, and what is to be written in place of something old."""
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```python\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    renamed = re.findall(r"→ `([^`]*)`", prose)
    written = re.findall(r"^- `[^`]*`: `([^`]*)`$", prose, re.MULTILINE)
    changed = re.findall(r"^- `(.*?)` is now ", prose, re.MULTILINE)
    return [*blocks, *renamed, *written, *changed]


def _relevance(idiom: Idiom) -> tuple[int, bool, tuple[int, ...]]:
    """By what idioms are ordered: those of `FIRST`, then what went last; what is internal comes at the end."""
    removed = number(idiom.removed or idiom.deprecated or "0.4.30")
    place = FIRST.index(idiom.name) if idiom.name in FIRST else len(FIRST)
    return place, idiom.name.startswith(_INTERNAL), tuple(-part for part in removed)


def _written(idiom: Idiom) -> str:
    """Return the new code if it fits into a line, else the note if it names some, else nothing."""
    first, *more = re.sub(r":\n    pass$", ": pass", idiom.new).split("\n")
    if not more or (len(more) == 1 and not more[0].startswith(("with", " ", "@")) and not first.endswith(":")):
        return f"`{'; '.join([first, *more])}`"
    return idiom.note if "`" in idiom.note else ""


def _program() -> str:
    source = (SNIPPETS / "modern.py").read_text(encoding="utf-8")
    found = re.search(r"\[start:program\]\n(.*?)\n# --8<--", source, re.DOTALL)
    assert found
    return re.sub(r"\n{3,}", "\n\n", found[1])


def _renames() -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for old, new in MOVES.items():
        module, _, name = old.rpartition(".")
        if not old.startswith(_INTERNAL) and module != "jax.api":
            groups.setdefault(module, []).append(f"`{name}` → `{new}`")
    for module, pairs in groups.items():
        yield f"- `{module}`: {', '.join(pairs)}"


def _changed(record: Record) -> Iterator[str]:
    """Computations that gave another result on the release before one; of each release the first."""
    listed = set()
    for behavior in behaviors():
        seen = {release: column.behaviors.get(behavior.name) for release, column in record.columns.items()}
        last = [release for release, what in seen.items() if what != list(seen.values())[-1]]
        if behavior.kind == "numbers" and last and (before := seen[last[-1]]) and before.end == "runs":
            now = next(reversed(seen.values()))
            since = next(release for release in seen if number(release) > number(last[-1]))
            if now and now.end == "runs" and since not in listed:
                listed.add(since)
                yield f"- `{behavior.name}` is now `{now.text}` (seen by {since}), and was `{before.text}`"


def _is_dictionary(page: Page) -> bool:
    return page.path.stem.startswith("errors")


def _errors(places: dict[str, Page]) -> Iterator[str]:
    """Entries of the error dictionary: the message, what it means, and the repaired program."""
    for anchor in ERRORS:
        page = places.get(anchor)
        if page is None:
            continue
        section = next(section for section in page.sections if section.anchor == anchor)
        end = next((other.start for other in page.sections if other.start > section.start), len(page.text))
        blocks = [block for block in page.blocks if section.start < block.fence.start < end]
        fixed = next(block for block in blocks if not block.options.raises and block.options.source != "none")
        prose = "\n".join(page.text[blocks[0].fence.end : fixed.fence.start]).strip()
        sentence = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose.split())).partition(". ")[0].rstrip(".")
        yield f"{section.title}: {sentence}. Instead:\n\n```python\n{fixed.code.strip()}\n```"
