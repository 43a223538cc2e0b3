"""The two files that the search looks through: texts as short as they can be without another result."""

import json
from pathlib import Path

import pytest

from course import search_files

CODE = "<pre><span>x</span> = jnp.full(128, 0.25)  # 0.4.30</pre>"
ERROR = "<pre>TypeError: got an int, not 'float' (0.25)</pre>"


@pytest.mark.parametrize(
    ("location", "html", "text"),
    [
        ("basics/arrays/#full", f"<p>Fill:</p>{CODE}", "Fill: <pre>x jnp.full 128 0.4.30</pre>"),
        ("basics/arrays/#full", ERROR, "<pre>TypeError: got an int, not 'float' (0.25)</pre>"),
        ("answers/arrays/#full", CODE, "<pre> x = jnp.full(128, 0.25) # 0.4.30</pre>"),
        ("lookup/errors/#full", CODE, "<pre> x = jnp.full(128, 0.25) # 0.4.30</pre>"),
        ("answers/#arrays", "<ul><li>Full?</li></ul>", ""),
        ("basics/arrays/#where-next", "<p>Next</p>", ""),
    ],
)
def test_code_is_words_where_no_message_is_compared_with_it(
    location: str, html: str, text: str, tmp_path: Path
) -> None:
    title = "Where next" if location.endswith("next") else "Full"
    search_files.write(tmp_path, [{"location": location, "title": title, "text": html, "wordings": ["fill"]}])
    assert json.loads((tmp_path / "texts.json").read_text(encoding="utf-8")) == [text]
    titles = json.loads((tmp_path / "titles.json").read_text(encoding="utf-8"))
    assert titles == [{"location": location, "title": title, "wordings": ["fill"]}]
