"""The pages' other forms: what they hold, that they run, and that two builds give the same bytes."""

import importlib
import json
import os
import re
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
import yaml

from livepages.course import Course, history, read_course
from livepages.execution import Run, pair_results
from livepages.exporters import Publication, SiteFolder
from livepages.exporters.cells import Prose, pieces, split_cells, summary
from livepages.exporters.contents import LIMIT, ListedPage, contents
from livepages.exporters.download import indented
from livepages.exporters.html_to_markdown import as_markdown
from livepages.exporters.kernel_bridge import needed_parts
from livepages.exporters.kernel_bundle import kernel_bundle
from livepages.exporters.script_helpers import MustRaise, SiteFiles, show_figures, source
from livepages.records import Entry, entry, short_key
from livepages.source import PageError, ProjectError, find_project
from livepages.worker import find_runtime, runtimes
from tests.conftest import Reader, Site

NAV = "site_name: Book\nsite_description: About.\nsite_url: !ENV [TEST_ADDRESS, '']\nnav:\n  - Home: index.md\n  - Part:\n      - part/page.md\n"
ATOM = "{http://www.w3.org/2005/Atom}"


class Book:
    """A site of a home page and one other, built as far as the other forms need it."""

    def __init__(self, site: Site) -> None:
        self.site, self.built = site, site.root / "site"
        site.write("mkdocs.yml", NAV)
        site.write(
            "docs/index.md", "---\ndescription: The first.\n---\n# Welcome\n\nSee [the page](part/page.md#end).\n"
        )
        site.write("site/index.html", "")
        site.write("site/part/page/index.html", "")

    def forms(self, text: str) -> dict[str, str]:
        """The forms of the other page, by the endings of their names, and the files for the whole site."""
        self.site.write("docs/part/page.md", text)
        engine = self.site.engine
        pages, failed = engine.read(read_course(self.site.project).pages)
        assert not failed, failed
        runs = engine.run([page for page in pages if page.program])
        refused = Publication(
            self.site.project,
            read_course(self.site.project),
            [(page, runs.get(page.path) or Run(pair_results(page))) for page in pages],
            SiteFolder(self.built, self.site.project.docs, emptied=False),
        ).write()
        for error in refused:
            raise error
        files = [*(self.built / "part/page").iterdir(), *(self.built.glob("*.*"))]
        texts = {file.name: file.read_text(encoding="utf-8") for file in files if file.suffix != ".html"}
        home = texts.get("index.md", "")
        return texts | {"home": home, "index.md": (self.built / "part/page/index.md").read_text(encoding="utf-8")}

    def blocks(self, *blocks: str, head: str = "") -> dict[str, str]:
        """`forms` of a page of these blocks, each with its info string."""
        return self.forms(head + "# Page\n\n" + "\n".join(f"```{block}\n```\n" for block in blocks))


@pytest.fixture
def book(site: Site) -> Book:
    return Book(site)


def outputs(text: str) -> list[dict[str, object]]:
    """Return the outputs of the cells of a notebook, which has to be valid."""
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    assert nbformat.writes(book) + "\n" == text
    return [dict(output) for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]


# --- scripts and notebooks -----------------------------------------------------------------------------------------


def test_what_a_page_shows_its_script_prints_and_its_notebook_holds(book: Book, reader: Reader) -> None:
    forms = book.blocks(
        "python\nx = 1\nprint('x is', x)", "python source='none'\nassert x == 1".replace("'none'", '"none"')
    )
    assert reader.run("live-page.py", forms["live-page.py"])[:2] == (0, "x is 1\n")
    assert reader.run("live-page.ipynb", forms["live-page.ipynb"])[:2] == (0, "x is 1\n")
    assert outputs(forms["live-page.ipynb"]) == [{"output_type": "stream", "name": "stdout", "text": "x is 1\n"}]
    assert "# %% not shown on the page\nassert x == 1" in forms["live-page.py"]
    assert '"source_hidden": true' in forms["live-page.ipynb"]
    compile(forms["live-page.py"], "live-page.py", "exec")


FOLDS = """
# Page

Try it.

??? tip "Hint: `jit` & more"
    Compile it.

??? success "Solution"
    ```python
    print(1)
    ```

    Then try this:

    ```python
    print(2)
    ```

???+ note "Open"
    Read it.

```python
print(3)
```
"""


def test_a_notebook_folds_what_the_page_folds(book: Book) -> None:
    forms = book.forms(FOLDS.lstrip())
    cells = nbformat.reads(forms["live-page.ipynb"], as_version=4).cells
    assert [cell.source for cell in cells if cell.cell_type == "markdown"] == [
        "# Page\n\nTry it.",
        "<details><summary>Hint: <code>jit</code> &amp; more</summary>\n\nCompile it.\n\n</details>",
        "**Solution**",
        "<details><summary>Solution</summary>\n\nThen try this:\n\n</details>",
        "**Open**\n\nRead it.",
    ]
    folded = {"source_hidden": True, "outputs_hidden": True}
    codes = [cell for cell in cells if cell.cell_type == "code" and cell.source.startswith("print")]
    assert [cell.metadata.get("jupyter") for cell in codes] == [folded, folded, None]
    prose = ["# Page", "Try it.", "**Hint: `jit` & more**", "Compile it.", "**Solution**", "Then try this:", "Read it."]
    for form in ("live-page.py", "index.md"):
        places = [forms[form].index(text) for text in prose]
        assert places == sorted(places)


def test_blocks_of_one_include_hold_each_their_own_output(book: Book) -> None:
    book.site.write("snippets/two.md", "```python\nprint('first')\n```\n\n```python\nprint('second')\n```\n")
    forms = book.forms('# Page\n\n--8<-- "two.md"\n')
    assert [output["text"] for output in outputs(forms["live-page.ipynb"])] == ["first\n", "second\n"]
    assert re.findall(r"```text\n(\w+)", forms["index.md"]) == ["first", "second"]


RAISES = 'python raises="ValueError" match="a\\nb"\ntext = """a\nb"""\ndef fail():\n    raise ValueError(f"""{text}\nc""")\nfail()'


def test_an_expected_error_is_caught_shown_and_wanted(book: Book, reader: Reader) -> None:
    forms = book.blocks(RAISES, "python\nprint(len(text))")
    assert reader.run("live-page.py", forms["live-page.py"])[:2] == (0, "ValueError: a\nb\nc\n3\n")
    assert reader.run("live-page.ipynb", forms["live-page.ipynb"])[0] == 0
    assert [output["ename"] for output in outputs(forms["live-page.ipynb"]) if "ename" in output] == ["ValueError"]
    for change in (("fail()\n\n", "fail\n\n"), ("raise ValueError", "raise KeyError"), ("{text}", "{1}")):
        text = forms["live-page.py"].replace(*change)
        assert text != forms["live-page.py"]
        status, _, err = reader.run("live-page.py", text)
        assert status == 1 and "expected ValueError here" in err


def test_code_that_is_no_python_raises_when_it_is_reached(book: Book, reader: Reader) -> None:
    forms = book.blocks("python\nprint('first')", 'python raises="SyntaxError"\nx = = 1')
    status, out, _ = reader.run("live-page.py", forms["live-page.py"])
    assert status == 0 and out.startswith("first\nSyntaxError: invalid syntax")


@pytest.mark.parametrize(
    "code",
    [
        'x = """a\n  b\n"""',
        'x = f"""a\n{1 +\n1}\n  b"""',
        'x = ("a"\n     "b")',
        "x = 'a\\\nb'",
        "def f():\n    return '''\n'''\nx = f()",
    ],
)
def test_indenting_changes_no_string(code: str) -> None:
    plain: dict[str, object] = {}
    within: dict[str, object] = {}
    exec(code, plain)
    exec(f"if True:\n{indented(code)}", within)
    assert plain["x"] == within["x"]


def test_modules_and_data_travel_with_the_page(book: Book, reader: Reader) -> None:
    book.site.write(
        "snippets/helper.py",
        '# --8<-- [start:a]\nr"""Doc\'s \\d."""\nfrom pathlib import Path\n# --8<-- [end:a]\n\n\ndef read():\n    return (Path(__file__).parent / "data/d.txt").read_text()\n\n\ndef marks():\n    return Path(__file__).read_text().count("# --8<-- [")\n',
    )
    book.site.write("snippets/data/d.txt", "it's '''data''' \"\"\"\\")
    forms = book.blocks(
        "python\nimport inspect\nimport helper\nprint(helper.read(), helper.__doc__, helper.marks())\nprint(inspect.getsource(helper.read)[:10])"
    )
    for name in ("live-page.py", "live-page.ipynb"):
        status, out, err = reader.run(name, forms[name], absent=["livepages"])
        assert (status, out) == (0, "it's '''data''' \"\"\"\\ Doc's \\d. 3\ndef read()\n"), err


def test_what_is_hidden_is_written_anew(tmp_path: Path) -> None:
    """MkDocs empties the folder before a build, but for names that begin with a dot: those are of the last build."""
    output = SiteFolder(tmp_path / "site", tmp_path / "docs", emptied=True)
    for text in (b"1", b"2"):
        output.write(".well-known/skill.md", text)
        output.write("llms.txt", text)
    assert (tmp_path / "site/.well-known/skill.md").read_bytes() == b"2"
    assert (tmp_path / "site/llms.txt").read_bytes() == b"1" and output.left == ["llms.txt"]


def test_what_git_ignores_is_not_published(book: Book) -> None:
    git(book.site, "init", "-q")
    book.site.write(".gitignore", "*.key\n")
    book.site.write(
        "snippets/helper.py", "from pathlib import Path\nkey = Path(__file__).with_name('my.key').read_text()\n"
    )
    book.site.write("snippets/my.key", "hush")
    shown = book.blocks("python\nimport helper\nprint(len(helper.key))")
    assert "with_name('my.key')" in shown["live-page.py"] and "hush" not in "".join(shown.values())
    book.site.write(".gitignore", "")
    assert "hush" in book.blocks("python\nimport helper\nprint(len(helper.key))")["live-page.py"]


def test_what_travels_with_the_page_comes_where_it_is_first_imported(book: Book, reader: Reader) -> None:
    book.site.write("snippets/helper/__init__.py", "from helper.part import x\n")
    book.site.write("snippets/helper/part.py", "x = 5\n")
    forms = book.blocks(
        "python\nfirst = 1", "python\nfrom helper import x\nprint(first + x)", "python\nimport helper.part"
    )
    for name in ("live-page.py", "live-page.ipynb"):
        assert reader.run(name, forms[name])[:2] == (0, "6\n")
        text = forms[name]
        assert text.index("first = 1") < text.index("class SiteFiles") < text.index("print(first + x)")
        assert text.count("class SiteFiles") == 1 and "pip install" not in text


def test_settings_of_the_page_come_before_jax_starts(book: Book, reader: Reader) -> None:
    book.site.write(
        "pyproject.toml", '[tool.livepages]\nruntime = "jax"\n[tool.livepages.jax]\njax_debug_key_reuse = true\n'
    )
    head = "---\ndevices: 3\nx64: true\njax: {jax_default_matmul_precision: highest}\n---\n"
    code = "python\nimport jax\nc = jax.config\nprint(jax.device_count(), c.jax_enable_x64, c.jax_debug_key_reuse, c.jax_default_matmul_precision)"
    forms = book.blocks(code, head=head)
    for name in ("live-page.py", "live-page.ipynb"):
        assert reader.run(name, forms[name])[:2] == (0, "3 True True highest\n")


def test_the_packages_to_install_are_those_that_the_page_imports(book: Book) -> None:
    forms = book.blocks(
        "python\nimport os\nimport jax\nfrom yaml import safe_load", head="---\nrequires: [markdown]\n---\n"
    )
    (line,) = re.findall("pip install.*", forms["live-page.py"])
    assert re.fullmatch(r"pip install jax==[\d.]+ PyYAML==[\d.]+ markdown==[\d.]+", line, re.IGNORECASE)
    assert f"%{line}" in forms["live-page.ipynb"]
    with pytest.raises(PageError, match="docs/part/page.md:3: requires"):
        book.blocks("python\n1", head="---\ntags: [a]\n'requires': [no-such-thing]\n---\n")


def test_what_cannot_run_here_is_left_out_with_a_word_why(book: Book, reader: Reader) -> None:
    text = (
        '# Page\n\n<!--pytest.mark.skipif("2 > 1", reason="too large")-->\n```python\nprint("marked")\n```\n\n'
        "<!--pytest-codeblocks:importorskip(no_such_module)-->\n```python\nprint('import')\n```\n\n"
        '<!--pytest.mark.skip(reason="never")-->\n```python\nprint("skipped")\n```\n\n'
        '```python needs="tpus>=3"\nprint("tpu")\n```\n\n```python exec="off" reason="a cluster"\nprint("off")\n```\n'
    )
    forms = book.forms(text)
    reasons = ("too large", "needs the module no_such_module", "never", "needs tpus>=3; this host has no tpu")
    printed = "".join(f"Not run here: {reason}\n" for reason in reasons)
    for name in ("live-page.py", "live-page.ipynb"):
        assert reader.run(name, forms[name])[:2] == (0, printed)
    assert '# %% not run: a cluster\n# print("off")' in forms["live-page.py"]
    for words in ("*Not run here: too large*", "*Not run: a cluster*"):
        assert words in forms["index.md"]


def test_a_block_in_a_comment_runs_in_every_form_and_is_shown_in_none(book: Book, reader: Reader) -> None:
    hidden = "<!--\n```python\na = 1\nprint('unseen')\n```\n-->\n\nWords.\n\n"
    forms = book.forms(f"# Page\n\n{hidden}<!--pytest-codeblocks:cont-->\n```python\nprint(a)\n```\n")
    for name in ("live-page.py", "live-page.ipynb"):
        assert reader.run(name, forms[name])[:2] == (0, "unseen\n1\n")
    assert "a = 1" not in forms["index.md"] and "unseen" not in forms["index.md"]
    for name in ("live-page.py", "live-page.ipynb", "index.md"):
        assert "<!--" not in forms[name] and "-->" not in forms[name]


def test_imports_from_the_future_move_to_the_head(book: Book, reader: Reader) -> None:
    forms = book.blocks(
        "python\nx = 1", "python\nfrom __future__ import annotations\ndef f(x: Nothing): ...\nprint(f.__annotations__)"
    )
    for name in ("live-page.py", "live-page.ipynb"):
        assert reader.run(name, forms[name])[:2] == (0, "{'x': 'Nothing'}\n")


def test_figures_are_shown_in_colors_of_their_own(book: Book, reader: Reader) -> None:
    forms = book.blocks(
        'python alt="A line that rises"\nimport matplotlib.pyplot as plt\nplt.plot([1, 2], label="l")\nplt.legend()'
    )
    (shown,) = outputs(forms["live-page.ipynb"])
    assert shown["data"]["text/plain"] == "A line that rises"  # type: ignore[index]
    svg = shown["data"]["image/svg+xml"]  # type: ignore[index]
    ElementTree.fromstring(svg)
    assert "var(" not in svg and "#0072b2" in svg and "currentColor" not in svg
    assert "*Figure: A line that rises*" in forms["index.md"]
    status, _, err = reader.run("live-page.py", forms["live-page.py"])
    assert status == 0, err


def test_plain_python_runs_the_script(book: Book, tmp_path: Path) -> None:
    forms = book.blocks(
        "python\nimport jax\nprint(jax.numpy.arange(2))", 'python raises="TypeError"\njax.numpy.arange(2)[0] = 1'
    )
    file = tmp_path / "empty/live-page.py"
    file.parent.mkdir()
    file.write_text(forms["live-page.py"])
    done = subprocess.run([sys.executable, "live-page.py"], cwd=file.parent, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[0 1]\nTypeError: ") and list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("name", ["random", "typing", "copy", "select", "numpy", "jax", "README"])
def test_a_download_hides_no_module(site: Site, reader: Reader, name: str) -> None:
    """Python looks for modules in the folder of a script first."""
    place = Course(site.project.docs).place(site.project.docs / f"{name}.md")
    for form in (place.script, place.notebook):
        file = form.rpartition("/")[2]
        assert not file.partition(".")[0].isidentifier() and file.startswith("live-")
    code = "import copy, random, select, typing\nprint(random.Random(1).__class__, typing.Any, copy.copy(1))\n"
    status, out, err = reader.run(place.script.rpartition("/")[2], code)
    assert (status, out) == (0, "<class 'random.Random'> typing.Any 1\n"), err


def alone(piece: object) -> Any:
    """A piece for readers as they get it: its source alone, with no name around it."""
    namespace: dict[str, Any] = {}
    exec(source(piece), namespace)  # type: ignore[arg-type]
    return namespace[piece.__name__]  # type: ignore[attr-defined]


def test_what_readers_get_shows_the_error_that_must_come(capsys: pytest.CaptureFixture[str]) -> None:
    must_raise = alone(MustRaise)
    for name in ("KeyError", "LookupError", "builtins.KeyError"):
        with must_raise(name, match="a."):
            raise KeyError("ab")
    assert capsys.readouterr().out == "KeyError: 'ab'\n" * 3
    for name, match, error in (("KeyError", "", ValueError()), ("ValueError", "^a", ValueError("ba"))):
        with pytest.raises(AssertionError, match=f"expected {name} here"), must_raise(name, match=match):
            raise error
    with pytest.raises(AssertionError), must_raise("KeyError"):
        pass


def test_what_readers_get_makes_files_that_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    files = alone(SiteFiles)()
    files.bring("for_a_reader/part.py", "x = 5\n")
    assert importlib.import_module("for_a_reader.part").x == 5
    files.folder.cleanup()


def test_what_readers_get_shows_figures_and_closes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    plt = types.SimpleNamespace(show=lambda: shown.append("shown"), close=shown.append)
    monkeypatch.setitem(sys.modules, "matplotlib", types.SimpleNamespace(pyplot=plt))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", plt)
    alone(show_figures)()
    assert shown == ["shown", "all"]


# --- Markdown ------------------------------------------------------------------------------------------------------

TEXT = """\
# Page

A *first* paragraph with [a link](../index.md), in
two lines.

!!! note "Mind"
    Inside, see [home](../index.md#top) and `[0](../index.md)`.

    ```python
    print("```in a list")
    ```

1.  An item

    ??? success "Solution"
        ```python raises="KeyError"
        {}["k"]
        ```

    goes on.

<!--pytest.mark.skipif("1 > 2")-->
```python source="none"
assert True
```

<!-- a remark -->
The end.
"""

PLAIN = """\
# Page

A *first* paragraph with [a link](../../index.md), in
two lines.

**Mind**

Inside, see [home](../../index.md#top) and `[0](../../index.md)`.

````python
print("```in a list")
````

````text
```in a list
````

1.  An item

    **Solution**

    ```python
    {}["k"]
    ```

    ```text
    KeyError: 'k'
    ```

    goes on.

<!-- a remark -->
The end.
"""


def body(markdown: str) -> str:
    """Markdown without its front matter."""
    return markdown.partition("\n---\n\n")[2]


def test_markdown_says_what_it_is_and_what_ran_it(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_ADDRESS", "https://book.example/docs")
    git(book.site, "init", "-q")
    book.site.write(
        "docs/part/page.md", page := "---\ndescription: 'On: it.'\n---\n# Page\n\n```python\nprint(1)\n```\n"
    )
    commit(book.site, "2026-02-03")
    forms = book.forms(page)
    label = find_runtime("jax").version_label
    assert yaml.safe_load(forms["index.md"].split("---\n")[1]) == {
        "title": "Page",
        "description": "On: it.",
        "url": "https://book.example/docs/part/page/",
        "changed": "2026-02-03",
        "versions": label,
        "device": "cpu",
    }
    assert "versions" not in forms["home"].split("---\n")[1]
    assert f"Every output is from {label}. The last change is of 2026-02-03.\n" in forms["llms.txt"]


def test_markdown_holds_text_and_outputs(book: Book) -> None:
    forms = book.forms(TEXT)
    assert body(forms["index.md"]).partition("\n*Every output")[0] == PLAIN
    assert "See [the page](part/page/index.md#end)." in forms["home"]
    assert forms["llms-full.txt"].startswith("# Welcome\n") and "# Page\n" in forms["llms-full.txt"]


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        ("<p>One <b>two</b>\n three.</p><p>Four</p>", "One **two** three.\n\nFour"),
        ("<h3 id='a'>A &lt; B<a class='headerlink' href='#a'>¶</a></h3>", "**A \\< B**"),
        ("<b>NumPy</b><code>np.<wbr>ones</code><samp>[1.]</samp>", "**NumPy** `np.ones` `[1.]`"),
        ("<pre><code><span>x</span> = 1\ny = 2\n</code></pre>", "```text\nx = 1\ny = 2\n```"),
        ("<ul><li>a<li>b</ul>", "- a\n\n- b"),
        ("<a href='https://e.org'>away</a>, <a href='#here'>here</a>", "[away](https://e.org), here"),
        ("<script>x</script><svg><text>y</text></svg><i aria-hidden=true>●</i><b></b><div hidden>z</div>", ""),
        (
            "<table><thead><tr><th>a</th><th>b</th></tr></thead>"
            "<tr><td>1 | 2</td><td><p>x</p><pre>y\n  z</pre></td></tr><tr><td>3</table>",
            "| a | b |\n| --- | --- |\n| 1 \\| 2 | x<br>`y`<br>`  z` |\n| 3 |  |",
        ),
        ("</p></td></table><td>loose", "loose"),
    ],
)
def test_html_becomes_text_code_and_tables(html: str, wanted: str) -> None:
    assert as_markdown(html) == wanted


def test_markdown_holds_no_html_of_blocks(book: Book) -> None:
    table = "print('<table><tr><th>a</th></tr><tr><td>1</td></tr></table>')"
    text = book.blocks(f'python html="on"\n{table}', 'python html="on" source="none"\nprint("<div></div>")')["index.md"]
    assert "```\n\n| a |\n| --- |\n| 1 |\n\n*Every output" in text


def test_links_lead_on_from_what_a_block_printed_and_to_pages_without_markdown(book: Book) -> None:
    book.site.write("docs/alone.md", "# Alone\n")  # in no navigation
    code = "print('- [Home](../index.md#top)\\n- [Alone](../alone.md)')"
    forms = book.blocks(f'python result="markdown"\n{code}')
    assert "\n\n- [Home](../../index.md#top)\n- [Alone](../../alone/)\n" in forms["index.md"]
    assert "(../index.md#top)" in str(outputs(forms["live-page.ipynb"]))  # as the program prints it


def test_markdown_holds_nothing_that_only_a_theme_reads(book: Book) -> None:
    text = (
        '# Page\n\n<!-- asked\nother words\n-->\n\n<div class="a" markdown>\n\n[Go](https://a.b){ .md-button .x }, press '
        "<kbd>/</kbd>, write `<div>{ .x }`.\n\n<button type='button'>Do\nit</button>\n\n</div>\n\n## Kept { #id }\n\n"
        "```html\n<!-- kept -->\n<div></div>\n```\n"
    )
    assert body(book.forms(text)["index.md"]).startswith(
        "# Page\n\n[Go](https://a.b), press /, write `<div>{ .x }`.\n\n## Kept { #id }\n\n"
        "```html\n<!-- kept -->\n<div></div>\n```\n"
    )


def test_cells_do_not_go_on_in_a_list(book: Book) -> None:
    page = book.site.read(book.site.write("docs/part/page.md", TEXT))
    cells = split_cells(pieces(page, Run(pair_results(page)), lambda file: file.name))
    texts = [cell.text for cell in cells if isinstance(cell, Prose)]
    assert texts[2:4] == ["**Solution**", "goes on."]
    assert summary(page) == "A *first* paragraph with a link, in two lines."


def test_the_contents_for_machines(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    about = f"> About.\n\nEvery output is from {find_runtime('jax').version_label}.\n\n"
    page = "- [Page]({0}part/page/index.md): What it says."
    wanted = (
        f"# Book\n\n{about}## Start here\n\n- [Welcome]({{0}}index.md): The first.\n\n## Part\n\n{page}\n"
        "- [1 page, with its questions]({0}llms-part.txt)\n\n"
        "All pages in one file: [llms-full.txt]({0}llms-full.txt)\n"
    )
    text = "# Page\n\nWhat it says.\n\n[Home](../index.md)\n\n```python\n1\n```\n\n## Why?\n"
    assert book.forms(text)["llms.txt"] == wanted.format("")
    monkeypatch.setenv("TEST_ADDRESS", "https://book.example/docs")
    forms = book.forms(text)
    base = "https://book.example/docs/"
    assert forms["llms.txt"] == wanted.format(base)
    question = f"  - [Why?]({base}part/page/index.md#why)\n"
    assert forms["llms-part.txt"] == f"# Book: Part\n\n{about}{page.format(base)}\n{question}"
    assert "# https://book.example/docs/part/page/\n" in forms["live-page.py"]
    assert "[Home](https://book.example/docs/)" in forms["live-page.py"]
    assert "[Home](../../index.md)" in forms["index.md"]


def test_long_contents_say_less_of_the_longest_part_first() -> None:
    def pages(number: int, words: str) -> list[ListedPage]:
        return [ListedPage(f"T{n}", f"{n}.md", f"{words} {n}") for n in range(number)]

    def sizes(*parts: tuple[str, list[ListedPage]]) -> list[bool]:
        text = contents("# Book", "", parts)["llms.txt"]
        assert len(text.encode()) <= LIMIT
        return [
            printed in text for printed in ("word 7", "[T7](7.md)", "few 7", "](llms-long.txt)", "](llms-short.txt)")
        ]

    short = "Short", pages(20, "few")
    assert sizes(("Long", pages(20, "word")), short) == [True, True, True, False, False]
    assert sizes(("Long", pages(300, "word " * 10)), short) == [False, True, True, False, False]
    assert sizes(("Long", pages(1500, "word")), short) == [False, True, True, True, False]  # of the other part
    assert "word 7" in contents("# Book", "", [("Long", pages(1500, "word")), short])["llms-long.txt"]


def test_pages_without_folders_of_their_own(book: Book) -> None:
    book.site.write("mkdocs.yml", f"{NAV}use_directory_urls: false\n")
    with pytest.raises(ProjectError, match=r"holds no HTML of docs/part/page\.md"):
        book.forms("# Page\n")
    (book.built / "part/page.html").write_text("")
    with pytest.raises(FileNotFoundError):  # `forms` looks for the folder's
        book.forms("# Page\n\n[Home](../index.md)\n\n```python\n1\n```\n")
    forms = {"page.html", "page.md", "live-page.py", "live-page.ipynb"}
    assert {file.name for file in (book.built / "part").iterdir() if file.is_file()} == forms
    assert "[Home](../index.md)" in (book.built / "part/page.md").read_text()
    assert "[Home](../index.html)" in (book.built / "part/live-page.py").read_text()


def test_a_folder_without_the_site_is_refused(book: Book) -> None:
    (book.built / "part/page/index.html").unlink()
    with pytest.raises(ProjectError, match=r"holds no HTML of docs/part/page\.md"):
        book.forms("# Page\n")


def test_two_runs_give_the_same_bytes(book: Book) -> None:
    text = TEXT + '\n```python alt="A point"\nimport matplotlib.pyplot as plt\nplt.scatter([1], [1])\n```\n'
    first, second = book.forms(text), book.forms(text)
    assert first == second
    ids = [cell["id"] for cell in json.loads(first["live-page.ipynb"])["cells"]]
    assert len(set(ids)) == len(ids)


# --- history and feed ----------------------------------------------------------------------------------------------


def git(site: Site, *arguments: str, day: str = "2026-01-01") -> None:
    settings = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    environment = {
        "GIT_COMMITTER_DATE": f"{day}T12:00:00Z",
        "GIT_AUTHOR_DATE": f"{day}T12:00:00Z",
        "PATH": os.environ["PATH"],
    }
    subprocess.run(["git", *settings, *arguments], cwd=site.root, check=True, capture_output=True, env=environment)


def commit(site: Site, day: str) -> None:
    git(site, "add", "-A")
    git(site, "commit", "-m", day, day=day)


@pytest.fixture
def kept(book: Book) -> Book:
    """The book with a history: the home page of one day, the other's part of a later one."""
    git(book.site, "init", "-q")
    book.site.write("snippets/part.py", "part = 1\n")
    book.site.write("docs/part/page.md", '# Page & <more>\n\nIt is.\n\n```python\n--8<-- "part.py"\n```\n')
    commit(book.site, "2026-01-01")
    book.site.write("snippets/part.py", "part = 2\n")
    commit(book.site, "2026-02-03")
    return book


def test_a_page_changes_with_what_it_includes(kept: Book) -> None:
    project = kept.site.project
    changed = history.days(project)
    page, home = (kept.site.read(project.docs / name) for name in ("part/page.md", "index.md"))
    assert history.last_change(page, Run(()), project, changed) == "2026-02-03"
    assert history.last_change(home, Run(()), project, changed) == "2026-01-01"
    assert (
        history.last_change(home, Run((), files=(str(project.snippets / "part.py"),)), project, changed) == "2026-02-03"
    )
    assert history.last_change(home, Run(()), project, {}) == ""


def test_without_a_whole_history_no_date_is_shown(
    book: Book, kept: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{kept.site.root}", tmp_path / "shallow"], check=True)
    assert history.days(find_project(tmp_path / "shallow")) == {}
    monkeypatch.setenv("PATH", "")
    assert history.days(kept.site.project) == {}


def test_the_feed_lists_pages_by_their_last_change(kept: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (kept.site.root / "docs/part/page.md").read_text()
    assert "feed.xml" not in kept.forms(text)
    monkeypatch.setenv("TEST_ADDRESS", "https://book.example/docs/")
    root = ElementTree.fromstring(kept.forms(text)["feed.xml"].encode())
    assert root.findtext(f"{ATOM}updated") == "2026-02-03T00:00:00Z"
    found = [
        [entry.findtext(f"{ATOM}{name}") for name in ("title", "id", "updated", "summary")]
        + [link.get("href") for link in entry.iter(f"{ATOM}link")]
        for entry in root.iter(f"{ATOM}entry")
    ]
    page, home = "https://book.example/docs/part/page/", "https://book.example/docs/"
    assert found == [
        ["Page & <more>", page, "2026-02-03T00:00:00Z", "It is.", page],
        ["Welcome", home, "2026-01-01T00:00:00Z", "The first.", home],
    ]


def test_what_a_cell_needs_of_those_above_is_found_in_their_code() -> None:
    above = [
        "import jax\nimport numpy as np\n\nprint(slow())",
        "import jax\n\njax.config.update('jax_enable_x64', True)",
        "rate = 0.1",
        "def scaled(x):\n    return rate * np.sum(x)",
        "rate = 0.2",
        "from slow import other\n\nslow = scaled(other)",
        "x = = 1",
        "def answer(x):\n    return NotImplemented",
    ]
    settings = (1, above[1])
    assert needed_parts(above, "def answer(x):\n    return 2 * x") == [settings]
    assert needed_parts(above, "def answer(x: np.ndarray):\n    return jax.grad(x)") == [
        (0, "import numpy as np"),
        settings,
    ]
    scaled = [(0, "import numpy as np"), settings, (2, above[2]), (3, above[3])]
    assert needed_parts(above, "def answer(x):\n    return scaled(x)") == scaled
    assert needed_parts(above, "answer = lambda x: [rate for _ in x]") == [settings, (4, above[4])]
    assert needed_parts(above, "other") == [settings, (5, "from slow import other")]
    assert needed_parts(above, "slow") == [*scaled, (5, above[5])]
    assert needed_parts(above, "def answer(:") == [settings]
    assert needed_parts([], "x") == []


@pytest.mark.parametrize("name", runtimes())
def test_a_module_for_kernels_imports_those_before_it_alone(name: str) -> None:
    defined: set[str] = set()
    for module, imported in re.findall(
        r"_module\('(\w+)'|from (_live_\w+) import", kernel_bundle(find_runtime(name), "")
    ):
        assert not imported or imported in defined
        defined.add(module)
    assert len(defined) > 4


def test_a_reader_records_of_a_block_what_the_engine_records(site: Site) -> None:
    code = "class Shape:\n    def _repr_html_(self):\n        return '<b>2</b>'\n\n    def __repr__(self):\n        return 'two'\n\n\nprint('one')\nShape()"
    page, run = site.run(code)
    [block] = page.blocks
    recorded = entry(run.results[0])
    published = {"stdout": "one\n", "stderr": "", "error": "", "figures": 0, "shown": "two"}
    here = {"cell": {"key": short_key(block)}, "code": code, "published": published, "whole": True}
    here |= {"stdout": "one\n", "stderr": "", "figures": 0, "shown": "two"}
    script = (
        "import json, sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\nprogram, code, here = map(json.loads, sys.stdin)\n"
        "shell.run_cell(program)\nbridge = sys.modules['_live_kernel_bridge'].page\nshell.run_cell(code)\n"
        "print(bridge.report(json.dumps(here)))\nprint(json.dumps([*bridge._entries.values()]))"
    )
    given = "\n".join(map(json.dumps, (kernel_bundle(find_runtime("python"), ""), code, here)))
    done = subprocess.run([sys.executable, "-c", script], input=given, capture_output=True, text=True, check=True)
    *_, report, entries = done.stdout.splitlines()
    assert json.loads(report)["difference"] == "" and json.loads(report)["compared"]
    assert replace(Entry(**json.loads(entries)[0]), seconds=0.0, counts={}) == replace(recorded, seconds=0.0, counts={})
