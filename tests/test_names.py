"""Names in code lead to their reference: what they mean, how they are linked, and that those of the real pages exist."""

import html
import re
from collections.abc import Callable
from typing import Any

import markdown
import pytest

from livepages.course import read_course
from livepages.integrations.build import Build
from livepages.integrations.conversion import Conversion
from livepages.rendering.links import linked
from livepages.source import Inventory, PageNames, ProjectError, read_inventories
from tests.conftest import Site

NAMES = ["lib", "lib.config", "lib.sub", "lib.sub.f", "lib.sub.g", "lib.top"]
INVENTORY = Inventory({name: f"https://example.org/{name}.html" for name in NAMES}, frozenset({"lib", "lib.sub"}))


def found(*blocks: str, site: Site) -> list[str]:
    """The documented names in a page's blocks."""
    return [use.name for _, uses in PageNames(site.page(*blocks), INVENTORY).blocks for use in uses if use.address]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import lib\nlib.top", "lib lib.top"),
        ("import lib.sub\nlib.sub.f, lib.top", "lib.sub lib.sub.f lib.top"),
        ("import lib.sub as s\ns.f(s.g)", "lib.sub lib.sub.f lib.sub.g"),
        ("from lib import sub, top as t\nsub.f\nt", "lib.sub lib.top lib.sub.f lib.top"),
        ("import lib\nlib.config.update(1)", "lib lib.config"),  # what it has besides is no name of its own
        ("import lib\nlib.sub", "lib lib.sub"),
        ("import lib\nlib.sub.no, lib.no.f", "lib"),  # the page of a module is not that of a name it lacks
        ("import lib\nf'{lib.top}', 'lib.top'  # lib.top", "lib lib.top"),
        (
            "import lib\n@lib.top\ndef f(x: lib.sub.f = lib.sub.g): return lib.config",
            "lib lib.top lib.sub.g lib.sub.f lib.config",
        ),
        ("lib.top", ""),
        ("import other as lib\nlib.top", ""),
        ("from .lib import top\ntop", ""),
        ("import lib\nother.lib.top, f().lib.top", "lib"),
    ],
)
def test_a_name_means_what_the_page_imported(site: Site, code: str, names: str) -> None:
    assert sorted(found(code, site=site)) == sorted(names.split())


@pytest.mark.parametrize(
    "use",
    [
        "def f(lib): return lib.top",
        "def f(*lib): return lib.top",
        "lambda lib: lib.top",
        "[lib.top for lib in x]",
        "def f():\n    lib = 1\n    return lib.top",
        "def f():\n    for lib in x:\n        def g(): return lib.top",
        "def f():\n    try: 1\n    except E as lib: lib.top",
        "class C:\n    lib = 1\n    top = lib.top",
        "match x:\n    case [lib, *y]: lib.top",
        "lib = 1\nlib.top",
        "with x as lib: lib.top",
        "def lib(): return lib.top",
    ],
)
def test_a_name_that_is_bound_anew_means_nothing(site: Site, use: str) -> None:
    assert found("import lib", use, site=site) == ["lib"]
    assert found(
        "import lib", f"def outer():\n    {use.replace(chr(10), chr(10) + '    ')}\n    return 1", "lib.top", site=site
    ) == ["lib", "lib.top"]


def test_imports_hold_from_block_to_block_until_they_are_undone(site: Site) -> None:
    off = 'exec="off" reason="no"\nimport lib.sub as lib\nlib.f'
    assert found("import lib", off, "lib.top", "lib = 1\nlib.top", "lib.top", site=site) == [
        "lib",
        "lib.sub",
        "lib.sub.f",
        "lib.top",
    ]
    assert found("import lib", "lib = 1", "import lib", "lib.top", site=site) == ["lib", "lib", "lib.top"]
    assert found("import lib", "def f():\n    import lib.sub as lib\n    return lib.g", site=site) == [
        "lib",
        "lib.sub",
        "lib.sub.g",
    ]


def test_each_use_has_the_line_of_the_page_and_code_that_does_not_parse_has_none(site: Site) -> None:
    page = site.page("import lib\n\nlib.top(\n    lib.sub.f)", 'raises="SyntaxError"\nlib.top(')
    lines = page.source.splitlines()
    blocks = PageNames(page, INVENTORY).blocks
    found = [(use.name, block.lines[use.line - 1]) for block, uses in blocks for use in uses]
    assert [(name, lines[line - 1].strip()) for name, line in found] == [
        ("lib", "import lib"),
        ("lib.top", "lib.top("),
        ("lib.sub.f", "lib.sub.f)"),
    ]


def test_names_of_the_libraries_that_have_no_reference_are_known_too(site: Site) -> None:
    uses = PageNames(site.page("import lib, os\nlib.none, os.sep, lib.top"), INVENTORY).blocks[0][1]
    assert [(use.name, bool(use.address)) for use in uses] == [("lib", True), ("lib.none", False), ("lib.top", True)]


def test_in_the_text_full_names_are_known_and_those_of_the_page(site: Site) -> None:
    names = PageNames(site.page("from lib import sub as s", "import lib as l", "l = 2"), INVENTORY)
    for code, expected in {
        "lib.top": "lib.top",
        "@lib.top": "lib.top",
        "s.f(x, s.g)": "lib.sub.f lib.sub.g",
        "l.top": "",
        "top": "",
        "pip install lib": "",
        "[s.f(lib) for lib in x]": "lib.sub.f",
    }.items():
        assert [use.name for use in names.in_prose(code)] == expected.split()


def test_a_link_holds_the_whole_name_and_leaves_text_and_highlighting_as_they_are(site: Site) -> None:
    page = site.page("import lib.sub as s\n@s.f\ndef é(x): return s . g, (s\n  .f), 'é', s.f(1 < 2)")
    shown = (
        '<span class="kn">import</span> <span class="nn">lib.sub</span> as s\n'
        '<span class="hll"><span class="nd">@s</span><span class="o">.</span><span class="n">f</span>\n</span>'
        "def é(x): return s . g, (s\n  .f), &#39;é&#39;, <span>s</span><span>.</span><span>f</span>(1 &lt; 2)\n"
    )
    got = linked(shown, PageNames(page, INVENTORY).blocks[0][1])
    assert re.sub("</?a\\b[^>]*>", "", got).replace('@</span><span class="nd">', "@") == shown
    assert re.findall('<a class="live-name" href="(.*?)">(.*?)</a>', got) == [
        ("https://example.org/lib.sub.html", '<span class="nn">lib.sub</span>'),
        (
            "https://example.org/lib.sub.f.html",
            '<span class="nd">s</span><span class="o">.</span><span class="n">f</span>',
        ),
        ("https://example.org/lib.sub.f.html", "<span>s</span><span>.</span><span>f</span>"),
    ]


SHOWN = """\
# T `re.match`

Text `re.match('<', x)`, `match`, [`re.match`](https://example.org/).

| a |
|---|
| `re.match` |

```python raises="NameError"
re.match('<b>', '')
```

```python
import re
print('re.match', re.match('a', 'a'))
```

```text
re.match
```

=== "Tab"

    ```python linenums="1" hl_lines="1"
    re.match('<b>', '')
    ```
"""


@pytest.fixture
def show(site: Site) -> Callable[[str], str]:
    """Turn the text of a page into HTML."""

    def show(text: str) -> str:
        site.write("pyproject.toml", '[tool.livepages]\nruntime = "jax"\nguide = "course.guide:CourseGuide"\n')
        file = site.write("docs/page.md", text)
        build = Build(site.engine)
        build.run(read_course(build.engine.project), lambda pages: None, lambda page, run: None)
        names = ["highlight", "inlinehilite", "superfences", "tabbed"]
        extensions = ["abbr", "tables", "toc", *(f"pymdownx.{name}" for name in names), "livepages"]
        configs: dict[str, dict[str, Any]] = {
            "toc": {"permalink": True},
            "livepages": {"conversion": Conversion(build, file)},
        }
        return markdown.markdown(text, extensions=extensions, extension_configs=configs)

    return show


def test_a_word_is_not_explained_under_its_own_heading(show: Callable[[str], str]) -> None:
    words = "*[Leaf]: Its end.\n*[Pytree]: A tree.\n*[trees]: Many.\n"
    got = show(f"# One\n\n{words}\n## Pytree\n\nPytree, Leaf, trees.\n\n## Leaf or trees\n")
    assert re.findall('<abbr title="(.*?)">(.*?)</abbr>', got) == [("Its end.", "Leaf"), ("Many.", "trees")] * 2


def test_links_to_other_pages_have_a_preview_and_those_of_headings_no_tooltip(show: Callable[[str], str]) -> None:
    to = ("two.md", "more/two.md#part", "#one", "https://example.org/two.md?x=md", "two.py")
    got = show("# One\n\n" + "\n".join(f"- [to]({address})" for address in to))
    assert re.findall('<a data-preview="" href="(.*?)">', got) == list(to[:2])
    assert got.count("data-preview") == 2
    assert '<a aria-label="Permanent link" class="headerlink"' in got and "title=" not in got


def test_pages_show_links_in_blocks_and_text_but_not_in_headings_links_or_output(
    show: Callable[[str], str], site: Site
) -> None:
    site.write("inventories/re.txt", "https://example.org/a/\nre ../re.html module\nre.match match.html#x\n")
    got = show(SHOWN)
    links = re.findall('<a class="live-name" href="(.*?)">(.*?)</a>', got)
    assert [(address, re.sub("<.*?>", "", text)) for address, text in links] == [
        ("https://example.org/a/match.html#x", "re.match"),
        ("https://example.org/a/match.html#x", "re.match"),
        ("https://example.org/re.html", "re"),
        ("https://example.org/a/match.html#x", "re.match"),
        ("https://example.org/a/match.html#x", "re.match"),
    ]
    assert got.index("linenos") < got.rindex("live-name")  # the last block, not its double before the import
    assert "re.match</a>('&lt;', x)</code>" in got
    site.write("inventories/re.txt", "https://example.org/a/\n")
    plain = show(SHOWN)
    assert plain.count("live-name") == 0
    assert html.unescape(re.sub("<.*?>", "", got)) == html.unescape(re.sub("<.*?>", "", plain))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("lib.html\n", 1),
        ("https://example.org/lib\n", 1),
        ("# A library\nhttps://example.org/\nlib.f f.html\nlib.g\n", 4),
        ("https://example.org/\nlib.f f.html function\n", 2),
        ("https://example.org/\nlib-f f.html\n", 2),
        ("https://example.org/\nlib.g g.html\nlib.f f.html\n", 3),
        ("https://example.org/\nlib.f f.html\nlib.f g.html\n", 3),
        ("https://example.org/\n\n", 2),
    ],
)
def test_a_malformed_inventory_is_an_error_with_file_and_line(site: Site, text: str, line: int) -> None:
    site.write("inventories/lib.txt", text)
    with pytest.raises(ProjectError, match=rf"^inventories/lib\.txt:{line}: "):
        read_inventories(site.project)


def test_inventories_are_optional_and_stand_where_the_project_says(site: Site) -> None:
    assert not read_inventories(site.project).addresses
    site.write("pyproject.toml", '[tool.livepages]\ninventories = "references"\n')
    site.write("references/lib.txt", "# A library\nhttps://example.org/a/\nlib ../ module\nlib.f f.html\n")
    inventory = read_inventories(site.project)
    assert inventory.addresses == {"lib": "https://example.org/", "lib.f": "https://example.org/a/f.html"}
    assert inventory.modules == {"lib"}


def test_a_change_of_an_inventory_changes_how_a_page_is_shown(site: Site) -> None:
    page = site.page("import re")
    build = Build(site.engine)
    shown = []
    for path in ("re.html", "", "other.html"):
        if path:
            site.write("inventories/re.txt", f"https://example.org/\nre {path} module\n")
        build.run(read_course(build.engine.project), lambda pages: None, lambda page, run: None)
        shown.append(build.cache_key(page.path, page.body))
    assert shown[0] == shown[1] != shown[2]
