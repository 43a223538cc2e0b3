"""One parser: what it takes as a block, what it refuses, and what the key of a block covers."""

import re
from pathlib import Path

import pytest
from markdown import Markdown
from mkdocs.utils.meta import get_data

from livepages.source import Page, PageError, Project, read_page
from livepages.source.parser import parse
from livepages.worker import find_runtime
from tests.conftest import Site


def project(root: Path, snippets: Path | None = None) -> Project:
    """Without files; its pages are programs of JAX."""
    return Project(
        root=root,
        docs=root / "docs",
        mkdocs=root / "mkdocs.yml",
        snippets=snippets or root / "snippets",
        inventories=root / "inventories",
        records=root / "records",
        cache=root / ".cache",
        runtime=find_runtime("jax"),
    )


def page(text: str, snippets: Path = Path("snippets")) -> Page:
    root = Path("/book")
    return parse(text, root / "docs/page.md", project(root, snippets))


def codes(text: str) -> list[str]:
    return [block.code for block in page(text).blocks]


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n```\n",
        "```py\nx = 1\n```\n",
        '```python exec="on"\nx = 1\n```\n',
        "``` python\nx = 1\n```\n",
        "~~~python\nx = 1\n~~~\n",
        "`````python\nx = 1\n`````\n",
        "```python\r\nx = 1\r\n```\r\n",
        "- item\n\n    ```python\n    x = 1\n    ```\n",
        "1. item that goes\n   on\n\n    ```python\n    x = 1\n    ```\n",
        '!!! note "Title"\n\n    ```python\n    x = 1\n    ```\n',
        '=== "Tab"\n\n    ```python\n    x = 1\n    ```\n',
        '1. task\n\n    ??? success "Solution"\n        ```python\n        x = 1\n        ```\n',
        "> quote\n>\n> ```python\n> x = 1\n> ```\n",
        "    \n\n```python\nx = 1\n```",
    ],
)
def test_a_python_fence_is_a_block_wherever_it_stands(text: str) -> None:
    assert codes(text) == ["x = 1\n"]


def test_a_byte_order_mark_is_no_part_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_bytes(b"\xef\xbb\xbf```python\nx = 1\n```\n")
    assert [block.line for block in read_page(file, project(tmp_path)).blocks] == [1]


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_bytes(b"---\r\ntitle: T\r\n---\r\n\r\n```python\r\nx = 1\r\n```\r\n")
    page = read_page(file, project(tmp_path))
    assert get_data(page.source) == ("```python\nx = 1\n```\n", {"title": "T"})  # what MkDocs makes of it
    assert [block.code for block in page.blocks] == ["x = 1\n"]


def test_a_fence_inside_a_fence_is_text() -> None:
    assert codes("````markdown\n```python\nx = 1\n```\n````\n") == []
    assert codes("````python\ntext = '''\n```python\n'''\n````\n") == ["text = '''\n```python\n'''\n"]


def test_lines_are_those_of_the_page() -> None:
    first, second = page("---\nx64: true\n---\n\n```python\na = 1\nb = 2\n```\n\n```python\nc = 3\n```\n").blocks
    assert (first.line, first.lines, first.start) == (5, (6, 7), 1)
    assert (second.line, second.lines, second.start) == (10, (11,), 4)
    assert [first.page_line(n) for n in (1, 2, 3, None)] == [6, 7, 5, 5]


def test_the_script_is_the_blocks_in_order() -> None:
    text = '```python\na = 1\n```\n```python exec="off" reason="slow"\nb = 2\n```\n```python\nc = 3\n```\n'
    parsed = page(text)
    assert parsed.script == "a = 1\n\nc = 3\n"
    assert [block.start for block in parsed.program] == [1, 3]


def test_includes_are_part_of_the_code(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("a = 1\n# --8<-- [start:part]\ndef f():\n    return 2\n# --8<-- [end:part]\n")
    parsed = page('# T\n\n```python\n--8<-- "mod.py:part"\nprint(f())\n```\n', tmp_path)
    assert parsed.blocks[0].code == "def f():\n    return 2\nprint(f())\n"
    assert parsed.blocks[0].lines == (4, 4, 5)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("# T\n\n```python\nx = 1\n", 3, "not closed"),
        ("- a\n\n    ```python\n    x = 1\n  y = 2\n    ```\n", 5, "indented less"),
        ("Words.\n\n    ```python\n    x = 1\n    ```\n", 3, "indented fence outside"),
        ("<!--\n```python\nx = 1\n```\n-->\n", 2, "comment"),
        ("# T\n<!--pytest-codeblocks:skipfile-->\n```python\n```\n", 2, "only the first line"),
        ("<!--pytest-codeblocks:cont-->\n```python\n```\n", 2, "no block above"),
        ("```python\n```\n<!--pytest-codeblocks:cont-->\n```\n```\n", 4, "begins with ```python"),
        ('```python\n```\n<!--pytest-codeblocks:cont-->\n```python isolated="on"\n```\n', 4, "continues no other"),
        ("<!--pytest.mark.xfail(sys.platform == 'win32')-->\n```python\n```\n", 1, "must always fail"),
        ("<!--pytest.mark.xfail(strict=False)-->\n```python\n```\n", 1, "must always fail"),
        ("<!--pytest.mark.xfail(raises=(A, B))-->\n```python\n```\n", 1, "one exception class"),
        ("<!--pytest.mark.filterwarnings('ignore')-->\n```python\n```\n", 1, "call warnings.filterwarnings"),
        ("<!--pytest.mark.parametrize('x', [1])-->\n```python\n```\n", 1, "a loop"),
        ("<!--pytest.mark.usefixtures('tmp_path')-->\n```python\n```\n", 1, "without pytest"),
        ("<!--pytest-codeblocks:importskip(x)-->\n```python\n```\n", 1, "importorskip"),
        ("<!-- pytest_codeblocks: cont -->\n```python\n```\n", 1, "no comment of pytest-codeblocks"),
        ("```python\n```\n\n<!--pytest.mark.slow-->\n", 4, "no fence follows"),
        ("```python\n```\n<!--pytest-codeblocks:expected-output-->\n", 3, "no fence follows"),
        ("<!--pytest-codeblocks:expected-output-->\n```\n```\n", 1, "above it is none"),
        ("```sh\n```\n<!--pytest-codeblocks:expected-output-->\n```\n```\n", 3, "line 1, which is not Python"),
        ("```python\n```\n" + "<!--pytest-codeblocks:expected-output-->\n```\n```\n" * 2, 6, "has one already"),
        ("```python\n```\n<!--pytest-codeblocks:expected-output-->\n```python\n```\n", 4, "fence it as text"),
        ("<!--pytest-codeblocks:nonsense-->\n```python\n```\n", 1, "nonsense"),
        ("```Python\nx\n```\n", 1, "write the fence as"),
        ("```{.python}\nx\n```\n", 1, "braces"),
        ("```python {title='a'}\nx\n```\n", 1, "name="),
        ("```python3\nx\n```\n", 1, "not run"),
        ("```pycon\n>>> x\n```\n", 1, "not run"),
        ("```python `odd`\nx\n```\n", 1, "not a fence"),
        ("---\ndevices: 8\n", 1, "not closed"),
        ("---\na: [\n---\n", 2, "YAML"),
        ("---\na: 1\nb: \x1f\n---\n", 3, "not YAML: special characters are not allowed: '\\x1f'"),
        ("---\n- a\n---\n", 1, "mapping"),
        ("---\ntitle: T\ndevices: many\n---\n", 3, "devices"),
        ("---\nx64: 1\n---\n", 2, "x64"),
        ("---\nexclusive: sometimes\n---\n", 2, "exclusive"),
        ("---\nalone: true\n---\n", 2, "alone: is called exclusive now"),
        ("---\nreads: [data.csv]\n---\n", 2, "reads: is called depends_on now"),
        ("---\nneeds: 5 gpus\n---\n", 2, "needs"),
        ("---\ntimeout: 0\n---\n", 2, "timeout"),
        ("---\ntimeout: true\n---\n", 2, "timeout"),
        ("---\ntitle: 2026-11-22\n---\n", 2, "title: datetime.date(2026, 11, 22) is not text; put it in quotes"),
        ("---\ndescription: [a]\n---\n", 2, "put it in quotes"),
        ("---\na: 2026-13-41\n---\n", 1, "cannot be read: month must be in 1..12"),
        ("---\njax: {jax_x: 2026-11-22}\n---\n", 2, "jax"),
        ("---\njax: {1: a}\n---\n", 2, "jax"),
        ("---\nbefore: a.md\n---\n", 2, "a list of pages"),
        ("---\nredirect_from: [/old/]\n---\n", 2, "a list of pages that this one replaces"),
        ("---\nredirect_from: [was.md, a/../../old.md]\n---\n", 2, "a list of pages that this one replaces"),
        ("---\nrequires: rich\n---\n", 2, "a list of distributions"),
        ("---\ntags: [1]\n---\n", 2, "tags"),
        ("---\ndevice: 8\n---\n", 2, "did you mean 'devices'?"),
        ("---\na: 1\ntimeot: 3\n---\n", 3, "did you mean 'timeout'?"),
        ("---\nx64: true\nx64: false\n---\n", 3, "is given twice, first on line 2"),
        ("---\n1: a\n---\n", 2, "put it in quotes"),
        ("---\njax: 1\n---\n", 2, "jax"),
        ("---\njax: {jax_debug_nans: 2026-01-01}\n---\n", 2, "jax"),
        ("---\ntimeout: .nan\n---\n", 2, "timeout"),
        ("---\ntimeout: .inf\n---\n", 2, "timeout"),
        ("<!--pytest.mark.skipif(-->\n```python\n```\n", 1, "mark"),
        ('a\n\n```python\n--8<-- "absent.py"\n```\n', 4, "'absent.py' could not be found in snippets, the folder that"),
        ("--8<--\nabsent.py\n", 1, "not closed"),
        ("```python\nx = 1 # markdown-exec: hide\n```\n", 1, "hidden lines"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(PageError) as error:
        page(text)
    assert (error.value.page, error.value.line) == ("docs/page.md", line)
    assert words in error.value.message


def test_all_faults_of_a_page_are_reported_at_once_in_order() -> None:
    fence = "```"
    wrong = ("pycon", 'python colour="red"', "python", 'python id="a"', 'python id="a"', "{.python}")
    text = "---\ntimeout: soon\n---\n" + "".join(f"{fence}{info}\nx = 1\n{fence}\n" for info in wrong)
    block = f"{fence}python\nx\n{fence}\n"
    text += f"<!--pytest.mark.xfail(1)-->\n{block}<!--pytest-codeblocks:continue-->\n{block}"
    with pytest.raises(PageError) as error:
        page(text)
    assert [fault.line for fault in error.value.faults] == [2, 4, 7, 16, 19, 22, 26]
    reported = ("timeout", "pycon", "colour", "id: 'a' is that of the block of line 13", "braces", "xfail", "continue")
    assert all(words in fault.message for words, fault in zip(reported, error.value.faults, strict=True))
    assert str(error.value) == str(error.value.faults[0])


@pytest.mark.parametrize("heading", ["The loss", "Loss { #the-loss }"])
def test_an_anchor_of_a_heading_is_refused_for_a_block(heading: str) -> None:
    text = f'# T\n\n## {heading}\n\n```python id="the-loss"\nx = 1\n```\n'
    with pytest.raises(PageError, match=":5: option id: 'the-loss' is that of the heading '(The loss|Loss)'"):
        page(text)
    page(text.replace('id="the-loss"', 'id="loss"'))


@pytest.mark.parametrize("language", ["pyhton", "pythn", "Pytohn", "pythonn"])
def test_a_language_that_is_nearly_python_is_pointed_at(language: str) -> None:
    with pytest.raises(PageError, match=rf":3: the {language.lower()} fence is not run; did you mean ```python"):
        page(f"# T\n\n```{language}\nx = 1\n```\n")


@pytest.mark.parametrize("language", ["cython", "text", "pytb", "php"])
def test_other_languages_are_left_alone(language: str) -> None:
    assert not page(f"# T\n\n```{language}\nx = 1\n```\n").blocks


def test_a_page_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_bytes(b"one\ntwo\nth\xffree\n")
    with pytest.raises(PageError, match=r"page\.md:3: .*UTF-8"):
        read_page(file, project(tmp_path))


@pytest.mark.parametrize(
    "option",
    [
        'colour="red"',
        'id="a b"',
        "volatile=on",
        'volatile="maybe"',
        'exec="off"',
        'exec="off" reason=" "',
        'match="x"',
        'raises="Value Error"',
        'raises="ValueError" match="("',
        'source="left"',
        'result="klingon"',
        'needs="abacus"',
        'timeout="soon"',
        'timeout="-1"',
        'timeout="inf"',
        'hl_lines="one"',
        'title="a" title="b"',
        'title="a" loose',
    ],
)
def test_an_unknown_option_or_a_wrong_value_is_refused(option: str) -> None:
    with pytest.raises(PageError, match=r"docs/page\.md:3: "):
        page(f"# T\n\n```python {option}\nx = 1\n```\n")


def test_a_misspelled_option_is_recognized() -> None:
    with pytest.raises(PageError, match="unknown option 'volatil'; did you mean 'volatile'[?]"):
        page('```python volatil="on"\nx\n```\n')


def test_a_fault_leaves_the_rest_of_the_page() -> None:
    text = (
        '---\ntimeout: soon\n---\n\n# T\n\n```python id="a" colour="red" title="t"\nx = 1\n```\n\n'
        "- in a list\n\n    ```pyhton raises='E'\n    # no heading\n    ```\n\n"
        "```python\nprint(x)\n```\n\nA `{python} x +` and `{python} x`.\n\n```python\n# no heading either\n"
    )
    root = Path("/book")
    read = parse(text, root / "docs/page.md", project(root), with_faults=True)
    assert [(block.code, block.fault and block.fault.line) for block in read.blocks] == [
        ("x = 1\n", 7),
        ("print(x)\n", None),
    ]
    assert (read.blocks[0].options.id, read.blocks[0].options.title) == ("a", "t")
    assert [fault.line for fault in read.faults] == [2, 13, 21, 23] and [
        one.code for one in read.inline_expressions
    ] == ["x"]
    assert read.markdown[12] == "    ```pyhton" and read.markdown[-1] == "```"


def test_front_matter_may_hold_what_is_of_no_concern_here() -> None:
    parsed = page("---\ndescription:\nicon: a\nsearch: {boost: 2}\ntimeout: 2\n---\n\n# T\n")
    assert parsed.description == "" and parsed.settings.timeout == 2 and parsed.meta["icon"] == "a"


def test_options_are_read_once() -> None:
    text = '```python title="A `plot`" raises="a.B" match="\\d+ \\(x\\)" volatile="on" timeout="2.5"\nx\n```\n'
    options = page(text).blocks[0].options
    assert (options.title, options.raises, options.match) == ("A `plot`", "a.B", r"\d+ \(x\)")
    assert (options.volatile, options.timeout, options.exec, options.source) == (True, 2.5, True, "above")


def test_marks_and_expected_output_are_pytest_codeblocks() -> None:
    text = (
        "<!--pytest.mark.skipif(True, reason='no')-->\n<!--pytest-codeblocks:importorskip(numpy)-->\n"
        "```python\nprint(1)\n```\n\n<!--pytest-codeblocks:expected-output-->\n\n```\n1\n```\n"
    )
    (block,) = page(text).blocks
    assert block.marks == ("pytest.mark.skipif(True, reason='no')",)
    assert (block.importorskip, block.expected_output) == ("numpy", "1\n")


@pytest.mark.parametrize("style", ["<!--{}-->", "<!---{}--->", "<!-- {} -->", "<!--- {} --->", "> <!--{}-->"])
def test_comments_are_taken_in_every_style(style: str) -> None:
    text = f"{style.format('pytest-codeblocks:importorskip(numpy)')}\n\n```python\n```\n"
    assert page(text).blocks[0].importorskip == "numpy"


SKIP, CONT = "<!--pytest.mark.skip-->", "<!--pytest-codeblocks:cont-->"


@pytest.mark.parametrize("text", [f"````markdown\n{SKIP}\n````\n\n", f"{SKIP}\n\n```sh\nls\n```\n\n"])
def test_a_comment_is_about_the_next_fence_alone_and_none_inside_a_fence_is_one(text: str) -> None:
    assert page(f"{text}```python\n```\n").blocks[0].marks == ()


def test_a_block_in_a_comment_runs_unseen_if_the_next_one_continues_it() -> None:
    hidden, shown = page(f"<!--\n```python\na = 1\n```\n-->\n\n{CONT}\n\n```python\na\n```\n").blocks
    assert hidden.runs and hidden.options.source == "none" and hidden.line == 2
    assert shown.fence.comment is None


def key(text: str, snippets: Path = Path("snippets")) -> str:
    return page(text, snippets).key


BASE = "# T\n\nWords.\n\n```python\na = 1\n```\n\nMore.\n\n```python\nb = 2\n```\n"


@pytest.mark.parametrize(
    "changed",
    [
        BASE.replace("a = 1", "a = 2"),
        BASE.replace("b = 2", "b = 3"),
        BASE.replace("b = 2", "b = 2  # note"),
        BASE.replace("```python\nb", '```python needs="cpu"\nb'),
        BASE.replace("```python\na", '```python exec="off" reason="x"\na'),
        BASE + "\n```python\nc = 3\n```\n",
        "---\nx64: true\n---\n" + BASE,
        "---\ndevices: 2\n---\n" + BASE,
        "---\nneeds: gpu\n---\n" + BASE,
        "---\njax: {jax_debug_nans: true}\n---\n" + BASE,
    ],
)
def test_what_changes_the_outcome_changes_the_key(changed: str) -> None:
    assert key(changed) != key(BASE)


@pytest.mark.parametrize(
    "changed",
    [
        BASE.replace("Words.", "Other words."),
        BASE.replace("# T", "# Title\n\nNew paragraph."),
        BASE.replace("```python\na", '```python title="A" hl_lines="1"\na'),
        BASE.replace("```python\na", '```python source="none" volatile="on"\na'),
        BASE.replace("```python\na", "~~~py\na").replace("a = 1\n```", "a = 1\n~~~"),
        "---\ntitle: T\ntags: [a]\n---\n" + BASE,
        "---\ntimeout: 9\n---\n" + BASE,
    ],
)
def test_prose_titles_and_styles_do_not_change_the_key(changed: str) -> None:
    assert key(changed) == key(BASE)


def test_the_key_covers_included_files(tmp_path: Path) -> None:
    text = '```python\n--8<-- "mod.py"\n```\n'
    keys = []
    for code in ("a = 1\n", "a = 2\n"):
        (tmp_path / "mod.py").write_text(code)
        keys.append(key(text, tmp_path))
    assert keys[0] != keys[1]


def test_the_key_of_a_block_covers_the_code_up_to_it_and_no_more() -> None:
    before, after = page(BASE).blocks, page(BASE.replace("b = 2", "b = 3")).blocks
    assert before[0].key == after[0].key
    assert before[1].key != after[1].key


def test_sections_are_where_the_table_of_contents_has_them() -> None:
    text = (
        "---\ntitle: Other\n---\n\n# The `at` *part*\n\n```bash\n# no heading\n```\n\n## Same\n\n## Same\n\n"
        "### Link to [jit](jit.md) { #mine .x }\n\n````text\n```\n## none\n```\n````\n\n## C++ & `jnp.dot`: 2\n"
    )
    whole = page(text)
    html = Markdown(extensions=["toc", "attr_list", "pymdownx.superfences"]).convert(whole.body)
    ids = re.findall(r'<h(\d) (?:class="x" )?id="([^"]+)"', html)
    assert [(str(section.level), section.anchor) for section in whole.sections] == ids and len(ids) == 5
    assert all(whole.text[section.start].startswith("#") for section in whole.sections)
    assert whole.title == "Other" and page(text.replace("title", "name")).title == "The `at` *part*"


def test_a_file_that_includes_itself_is_refused(site: Site) -> None:
    site.write("snippets/a.md", '--8<-- "b.md"\n')
    site.write("snippets/b.md", 'B\n\n--8<-- "c.md:part"\n\n--8<-- "a.md"\n')
    site.write("snippets/c.md", '# --8<-- [start:part]\nC\n# --8<-- [end:part]\n--8<-- "c.md:part"\n')
    page = site.write("docs/page.md", '# T\n\n--8<-- "c.md:part"\n\n--8<-- "a.md"\n')
    _, (failure,) = site.engine.read([page])
    assert str(failure).startswith("docs/page.md:5: include: ") and "a.md includes itself" in str(failure)
    page.write_text('# T\n\n--8<-- "c.md:part"\n\n--8<-- "c.md:part"\n')
    assert site.read(page).text[-4:] == ("C", "", "C", "")


def test_an_id_is_that_of_one_block(site: Site) -> None:
    page = site.write("docs/page.md", '```python id="a"\n```\n\n```python id="b"\n```\n\n```python id="a"\n```\n')
    _, (failure,) = site.engine.read([page])
    assert str(failure) == "docs/page.md:7: option id: 'a' is that of the block of line 1"


def test_a_fresh_block_rests_on_no_other_and_no_other_on_it(site: Site) -> None:
    before = site.page("a = 1", 'isolated="on"\nb = 1', "c = 1")
    first = site.page("a = 2", 'isolated="on"\nb = 1', "c = 1")
    fresh = site.page("a = 1", 'isolated="on"\nb = 2', "c = 1")

    def kept(after: Page) -> list[bool]:
        return [old.key == new.key for old, new in zip(before.blocks, after.blocks, strict=True)]

    assert kept(first) == [False, True, False]
    assert kept(fresh) == [True, False, True]
    assert len({before.key, first.key, fresh.key}) == 3


def test_front_matter_that_is_not_yaml_is_quoted_with_its_line_of_the_page_alone(site: Site) -> None:
    path = site.write("docs/page.md", '---\ntitle: "T"\ndescription: What: a page\n---\n# T\n')
    with pytest.raises(PageError) as error:
        read_page(path, site.project)
    reported = "docs/page.md:3: the front matter is not YAML: mapping values are not allowed here: "
    assert str(error.value) == f"{reported}description: What: a page"
