"""Hook of MkDocs: write what the search looks up, in two files.

``search/titles.json`` has the title and the wordings of each section, with which the search answers while the texts are
on their way; ``search/texts.json`` has their texts in the same order, with tags only around code. To repeat the places
there would be 23 kB, compressed. Lists of pages and questions, which have sections of their own, have no text: 27 kB.
Code and outputs of other pages than those of questions and messages are only words, as no excerpt shows them (43 kB),
and each word once (32 kB).
"""

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

TAG = re.compile(r"<(?!/?pre\b)[^>]*>")
LISTS = ("answers/", "learn/", "lookup/all-errors/")  # the pages that are lists
LITERAL = ("answers/", "lookup/")  # how the places of the pages begin whose code is compared as it stands
CODE = re.compile(r"(?<=<pre>).*?(?=</pre>)", re.DOTALL)
ERROR = re.compile(r"(?:Error|Exception|Traceback|Warning)\b")
WORD = re.compile(r"[\w.]*[^\W\d][\w.]*|\d+(?:\.\d+){2,}|(?<![\w.])\d{2,}(?![\w.])")  # names, versions, whole numbers
NEXT = "Where next"  # the title of the list at the end of a page


def on_post_build(config: MkDocsConfig) -> None:
    """Write the files where the theme has written an index."""
    index = Path(config.site_dir, "search/search_index.json")
    if index.exists():
        write(index.parent, json.loads(index.read_text(encoding="utf-8"))["docs"])


def write(folder: Path, entries: list[dict[str, Any]]) -> None:
    """Write the files of these entries of an index: `location`, `title`, `text` (HTML) and, of some, `wordings`."""
    texts = [_text(entry) for entry in entries]
    titles = [{name: value for name, value in entry.items() if name != "text"} for entry in entries]
    for name, content in {"titles": titles, "texts": texts}.items():
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        folder.joinpath(f"{name}.json").write_text(text, encoding="utf-8")


def _text(entry: dict[str, Any]) -> str:
    if entry["title"] == NEXT or entry["location"].partition("#")[0] in LISTS:
        return ""
    text = " ".join(TAG.sub(" ", entry["text"]).split())
    return text if entry["location"].startswith(LITERAL) else CODE.sub(_words, text)


def _words(code: re.Match[str]) -> str:
    """Return the words of code or of an output, each once; errors as they are, which messages are compared with."""
    return code[0] if ERROR.search(code[0]) else " ".join(dict.fromkeys(WORD.findall(code[0])))
