"""The HTML that readers see: source and result in the right place, hostile output as text, no block left out."""

import re
from importlib import import_module
from typing import Any

import markdown
import pytest

from course.less import without_marks
from course.slim import EXCLUDED, flush, slimmed
from livepages.course import read_course
from livepages.execution import Failure
from livepages.integrations.build import Build
from livepages.integrations.conversion import Conversion, PageFailuresError
from livepages.records import record
from tests.conftest import Event, Site

EXTENSIONS = [
    "admonition",
    "attr_list",
    "md_in_html",
    "toc",
    "pymdownx.details",
    "pymdownx.highlight",
    "pymdownx.snippets",
    "pymdownx.superfences",
    "pymdownx.tabbed",
    "livepages",
]


class Show:
    """Turn the text of a page into HTML, in a build of its own."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.failures: list[Failure] = []

    def __call__(
        self, text: str, strict: bool = True, shown: str = "", name: str = "page.md", serving: bool = False
    ) -> str:
        """The HTML of `text` as a page, which may still run if the site is served; if `shown` is given, of that text, which is no page's."""
        file = self._site.write(f"docs/{name}", text)
        build = Build(self._site.engine)
        given = read_course(build.engine.project), lambda pages: None, lambda page, run: None
        if serving:
            build.serve(*given, 0.0, lambda path: None)
        else:
            build.run(*given)
        configs: dict[str, dict[str, Any]] = {
            "livepages": {"conversion": Conversion(build, file)},
            "pymdownx.tabbed": {"alternate_style": True},
            "pymdownx.snippets": {"base_path": [str(self._site.root / "snippets")]},
        }
        body = re.sub(r"\A---\n.*?\n---\n", "", shown or file.read_text(), flags=re.DOTALL)
        html = markdown.markdown(body, extensions=EXTENSIONS, extension_configs=configs)
        self.failures = build.failures
        assert not (strict and self.failures), self.failures
        return html


@pytest.fixture
def show(site: Site) -> Show:
    """Show pages of an empty project."""
    return Show(site)


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def test_a_bare_fence_shows_its_source_and_its_output_under_it(show: Show) -> None:
    html = show("# T\n\nBefore.\n\n```python\nprint(1 + 1)\n```\n\nAfter.\n")
    assert re.search(r"Before\..*print.*class=\"live-result\".*<code>2</code>.*After\.", html, re.DOTALL)
    assert "jax 0" in html.partition("live-stamp")[2]


@pytest.mark.parametrize(
    ("option", "order"),
    [
        ("above", "source output"),
        ("block", "source output"),
        ("below", "output source"),
        ("tabbed-left", "source output"),
        ("tabbed-right", "output source"),
        ("none", "output"),
    ],
)
def test_source_says_where_the_source_stands(show: Show, option: str, order: str) -> None:
    html = show(f'```python source="{option}"\nprint("out" + "put")  # source\n```\n')
    found = sorted(
        (html.index(word), name) for word, name in ((">output<", "output"), ("# source", "source")) if word in html
    )
    assert [name for _, name in found] == order.split()
    assert ("tabbed-set" in html) == option.startswith("tabbed")


def test_titles_and_lines_are_passed_on(show: Show) -> None:
    html = show('```python title="A title" hl_lines="2"\na = 1\nb = 2\n```\n')
    assert '<span class="filename">A title</span>' in html and 'class="hll"' in html
    html = show('```python source="tabbed-left" tabs="Code|What it prints"\nprint(1)\n```\n')
    assert re.findall("<label[^>]*>(.*?)</label>", html) == ["Code", "What it prints"]


def test_what_only_looks_like_python_is_shown_as_code(show: Show) -> None:
    fence = '```pycon exec="off" reason="a sketch" title="T"\n>>> 1\n1\n```\n'
    html = show(f"# T\n\n{fence}\n- item\n\n    {fence.replace(chr(10), chr(10) + '    ')}\n\n~~~~text\n{fence}~~~~\n")
    assert html.count('<span class="filename">T</span>') == 2 and html.count("a sketch") == 1


def test_a_silent_hidden_block_leaves_nothing(show: Show) -> None:
    html = show('# T\n\n```python source="none"\nassert True\n```\n')
    assert "assert" not in html and "live-result" not in html


def test_a_block_in_a_comment_leaves_nothing_whatever_it_prints(show: Show) -> None:
    hidden = "<!--\n```python\na = 1\nprint('unseen')\n```\n-->\n\n"
    html = show(f"# T\n\n{hidden}<!--pytest-codeblocks:cont-->\n```python\nprint(a)\n```\n")
    assert "unseen" not in html and html.count("live-result") == 1 and "<code>1</code>" in html


def test_hostile_output_is_shown_as_the_text_it_is(show: Show) -> None:
    html = show(
        "```python\nprint('`' * 8 + '\\n```python\\n</code></pre></div><script>alert(1)</script> {{ x }} &amp; **b**')\n```\n\nAfter.\n"
    )
    assert "<script>alert" not in html
    assert (
        "````````\n```python\n&lt;/code&gt;&lt;/pre&gt;&lt;/div&gt;&lt;script&gt;alert(1)&lt;/script&gt; {{ x }} &amp;amp; **b**</code>"
        in html
    )
    assert "<p>After.</p>" in html


def test_html_and_markdown_results_are_rendered_when_asked_for(show: Show) -> None:
    html = show(
        '```python html="on"\nprint("<b>bold</b>")\n```\n\n```python result="markdown"\nprint("**strong** `x`")\n```\n'
    )
    assert "<b>bold</b>" in html and "<strong>strong</strong>" in html


def test_a_result_in_a_language_is_highlighted(show: Show) -> None:
    assert '<span class="nt">' in show('```python result="json"\nprint(\'{"a": 1}\')\n```\n')


def test_stderr_is_marked(show: Show) -> None:
    html = show("```python\nimport sys\nprint('to err', file=sys.stderr)\n```\n")
    assert re.search(r'live-stderr"><pre class="nohighlight"><code>to err', html)


def test_an_expected_error_shows_type_and_message_first(show: Show) -> None:
    html = show('```python raises="ValueError"\nraise ValueError("a <b> c")\n```\n')
    assert "<strong>ValueError</strong>: a &lt;b&gt; c</code>" in html
    assert html.index("<strong>ValueError") < html.index("Traceback (most recent")
    assert 'File "page.py", line 1, in' in words(html).replace("&quot;", '"')


def test_a_block_that_is_not_run_says_why(show: Show) -> None:
    html = show('```python exec="off" reason="needs a <cluster>"\nx = 1\n```\n')
    assert "Not run here: needs a &lt;cluster&gt;" in html and "<span" in html


def test_the_same_in_lists_tabs_admonitions_quotes_and_details(show: Show) -> None:
    fence = "```python\nprint('out' + '{n}')\n```\n"
    containers = ("- item\n\n{}", '!!! note "N"\n\n{}', '=== "Tab"\n\n{}', '??? note "N"\n\n{}')
    text = "# T\n\n"
    for n, container in enumerate(containers):
        text += (
            container.format("\n".join("    " + line for line in fence.format(n=n).splitlines())) + "\n\nbetween\n\n"
        )
    text += "> quoted\n>\n" + "".join(f"> {line}\n" for line in fence.format(n=4).splitlines())
    html = show(text)
    for n in range(5):
        assert f"<code>out{n}</code>" in html
    assert "```" not in html


def test_includes_are_shown_as_they_run(show: Show, site: Site) -> None:
    site.write("snippets/part.py", "# --8<-- [start:one]\nvalue = 7\n# --8<-- [end:one]\n")
    html = show('```python\n--8<-- "part.py:one"\nprint(value)\n```\n\n--8<-- "part.py:one"\n')
    assert "<code>7</code>" in html and html.count("value") >= 2 and "8&lt;" not in html


TWO_FENCES = "```python\nprint('first', 1)\n```\n\n```python\nprint('second', 2)\n```\n"  # that one line includes


def test_blocks_of_one_include_show_each_its_own_output(show: Show, site: Site) -> None:
    site.write("snippets/two.md", TWO_FENCES)
    html = show('# T\n\n--8<-- "two.md"\n')
    assert re.findall(r"live-stdout.*?<code>(.*?)</code>", html) == ["first 1", "second 2"]
    assert re.findall(r'class="live-anchor" id="([^"]+)"', html) == ["t.1", "t.2"]


def test_front_matter_tabs_and_crlf_do_not_hide_the_page(show: Show) -> None:
    html = show("---\nx64: true\n---\n\n# T\n\n```python\nif True:\n\tprint('t' + 'ab')\n```\n   \nAfter.\n")
    assert "<code>tab</code>" in html


def test_what_is_indented_with_tabs_stays_where_it_is(show: Show) -> None:
    html = show("!!! note\n\n\tInside.\n\n- item\n\n\t```python\n\tprint('in' + 'side')\n\t```\n")
    assert re.search(r'admonition note">.*?<p>Inside\.</p>\s*</div>', html, re.DOTALL)
    assert re.search(r"<li>.*<code>inside</code>.*</li>", html, re.DOTALL) and "```" not in html


def test_a_failing_block_is_shown_in_place_without_an_unasked_for_page(show: Show) -> None:
    html = show("# T\n\n```python\n1 / 0\n```\n\nAfter.\n", strict=False)
    assert "docs/page.md:4" in html and "ZeroDivisionError" in html and "<p>After.</p>" in html


def test_a_page_that_cannot_be_read_shows_why(show: Show) -> None:
    html = show('# T\n\n```python volatile="perhaps"\nx = 1\n```\n', strict=False)
    assert "docs/page.md:3" in html and "volatile" in html


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("x = 1", "x = 2"), "docs/page.md:7: a plugin or hook of the site changed 'x = 1' to 'x = 2' after"),
        (("# T", "# An {{ T }}"), "docs/page.md:4: a plugin or hook of the site changed '# T' to '# An {{ T }}'"),
        (("\nThe end.", ""), "docs/page.md:10: a plugin or hook of the site changed 'The end.' to nothing after"),
    ],
)
def test_text_that_a_plugin_or_hook_changed_is_refused_and_the_line_named(
    show: Show, changed: tuple[str, str], words: str
) -> None:
    text = "# T\n\n```python\nx = 1\n```\n\nThe end.\n"
    show(f"---\ntitle: T\n---\n{text}", strict=False, shown=text.replace(*changed))
    (failure,) = show.failures
    assert str(failure).startswith(words) and "change the file instead" in str(failure)
    show(text, shown=f"{text}\nMore.\n")  # adding to the end is fine
    show("# T\n\n<!-- live: course -->\n", strict=False, shown="# A T\n\n<!-- live: course -->\n")
    assert "changed '# T' to '# A T'" in show.failures[0].message


def test_the_line_of_text_that_a_plugin_changed_is_that_of_the_file_below_an_include(show: Show, site: Site) -> None:
    site.write("snippets/part.md", "One.\n\nTwo.\n\nThree.")
    text = '# T\n\n--8<-- "part.md"\n\n```python\nx = 1\n```\n'
    show(text, strict=False, shown="# T\n\nOne.\n\nTwo.\n\nThree.\n\n```python\nx = 2\n```\n")
    assert str(show.failures[0]).startswith("docs/page.md:6: a plugin or hook of the site changed 'x = 1' to 'x = 2'")


def test_text_with_blocks_that_is_no_pages_is_refused(site: Site) -> None:
    """Plugins that generate pages make such text."""
    build = Build(site.engine)
    build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
    configs: dict[str, dict[str, Any]] = {
        "livepages": {"conversion": Conversion(build, site.project.docs / "made.md")},
    }
    markdown.markdown("# Made\n\n```python\nx\n```\n", extensions=EXTENSIONS, extension_configs=configs)
    (failure,) = build.failures
    assert str(failure).startswith("docs/made.md:1: the text that begins '# Made' has blocks that have not run")


@pytest.mark.parametrize("container", ["[^1]:", "///", ": term"])
def test_a_block_that_this_markdown_shows_as_text_is_a_failure(show: Show, container: str) -> None:
    """The parser takes the container for one; these extensions do not know it."""
    show(f"# T\n\n{container}\n\n    ```python\n    x = 1\n    y = 2\n    ```\n", strict=False)
    assert [(failure.line, failure.message) for failure in show.failures] == [
        (5, "the Markdown around it makes this block text, not code")
    ]


def test_a_block_that_is_lost_on_the_way_is_a_failure(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("markdown.util.HtmlStash.store", lambda self, html: "lost")
    show("# T\n\n```python\nx = 1\n```\n", strict=False)
    assert "keeps this block from being shown" in show.failures[0].message


def test_the_build_fails_where_nothing_else_reports_failures(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    file = site.write("docs/page.md", "# T\n\n```python\n1 / 0\n```\n")
    monkeypatch.chdir(site.root)
    with pytest.raises(PageFailuresError, match=r"docs/page\.md:4: "):
        markdown.markdown(file.read_text(), extensions=EXTENSIONS)
    file.write_text("# T\n\n```python\nprint(2 + 3)\n```\n")
    assert "<code>5</code>" in markdown.markdown(file.read_text(), extensions=EXTENSIONS)


def test_pages_of_one_text_show_each_its_own_output(show: Show, site: Site) -> None:
    text = "# T\n\n```python\nimport jax.numpy as jnp\nprint(jnp.ones(1).dtype)\n```\n"
    assert "<code>float32</code>" in show(text, name="a.md")
    assert "<code>float64</code>" in show(f"---\nx64: true\n---\n{text}", name="b.md")
    assert "<code>float32</code>" in show(text, name="a.md")


def test_pages_of_one_text_are_refused_where_nobody_says_which_is_shown(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        site.write(f"docs/{name}.md", "# T\n\n```python\nx = 1\n```\n")
    monkeypatch.chdir(site.root)
    with pytest.raises(PageFailuresError, match=r"docs/a\.md and docs/b\.md.* have the same text"):
        markdown.markdown("# T\n\n```python\nx = 1\n```\n", extensions=EXTENSIONS)


def test_where_nobody_builds_one_build_serves_all_pages_until_a_file_changes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [site.write(f"docs/{n}.md", f"# T{n}\n\n```python\nprint({n})\n```\n") for n in range(3)]
    begun: list[Build] = []
    run = Build.run

    def counted(build: Build, *arguments: Any) -> None:
        begun.append(build)
        run(build, *arguments)

    monkeypatch.setattr(Build, "run", counted)
    monkeypatch.chdir(site.root)
    for number, file in enumerate(files):
        assert f"<code>{number}</code>" in markdown.markdown(file.read_text(), extensions=EXTENSIONS)
    assert len(begun) == 1
    others = {"snippets/module.py": "x = 1\n", "inventories/a.txt": "https://example.org/\n", "mkdocs.yml": "nav: []\n"}
    for number, (name, text) in enumerate(others.items(), 2):
        site.write(name, text)
        for _ in range(2):
            markdown.markdown(files[0].read_text(), extensions=EXTENSIONS)
        assert len(begun) == number, name


def test_every_block_has_an_address_that_prose_and_earlier_sections_do_not_move(show: Show) -> None:
    block = "```python\nprint(1)\n```\n"
    hidden = '```python source="none"\nx = 1\n```\n'
    text = f"# T\n\n{block}\n## The `at` *part*\n\n{hidden}\n{block}\n```bash\n# no heading\n```\n\n{block}"
    html = show(text)
    assert re.findall(r'class="live-anchor" id="([^"]+)"', html) == ["t.1", "the-at-part.1", "the-at-part.2"]
    assert re.findall(r'<a href="#([^"]+)">Link', html) == ["t.1", "the-at-part.1", "the-at-part.2"]
    moved = show(f"# T\n\nMore words.\n\n{block}\n{block}" + text.partition(block)[2])
    assert [anchor for anchor in re.findall(r'id="([^"]+\.\d)"', moved) if "part" in anchor] == [
        "the-at-part.1",
        "the-at-part.2",
    ]


def test_an_id_of_the_block_is_its_address(show: Show) -> None:
    html = show('```python id="mine"\nprint(1)\n```\n')
    assert 'id="mine"' in html and '<a href="#mine">' in html


def test_sections_of_the_same_title_share_no_address(show: Show) -> None:
    html = show("# T\n\n" + "## Same\n\n```python\nprint(1)\n```\n\n" * 2)
    assert re.findall(r'class="live-anchor" id="([^"]+)"', html) == ["same.1", "same_1.1"]


@pytest.mark.parametrize(("lines", "folded"), [(20, 0), (21, 9)])
def test_long_output_folds(show: Show, lines: int, folded: int) -> None:
    html = show(f"```python\nfor n in range({lines}):\n    print(f'line {{n}}.')\n```\n")
    shown, _, rest = html.partition('<details class="live-more">')
    assert len(re.findall(r"line \d+\.", shown)) == lines - folded
    assert len(re.findall(r"line \d+\.", rest)) == folded and (f"{folded} more lines" in rest) == bool(folded)


def test_a_long_result_in_colors_folds_between_lines(show: Show) -> None:
    html = show('```python result="python"\nprint("\'\'\'" + "\\n".join(map(str, range(30))) + "\'\'\'")\n```\n')
    shown = html.partition("live-stdout")[2].partition("</pre>")[0]
    assert shown.count("<span") == shown.count("</span>")


def test_the_notes_of_a_block_come_before_its_result(show: Show) -> None:
    text = (
        "```python\nx = 1  # (1)!\nprint('out' + 'put')\n```\n\n1. A note,\n    of two lines.\n2. Another.\n\nAfter.\n"
    )
    html = show(text)
    order = ["(1)!", "<ol>", "A note", "Another", ">output<", "After."]
    assert sorted(order, key=html.index) == order
    quoted = show("".join(f"> {line}\n" for line in text.splitlines()))
    assert sorted(order, key=quoted.index) == order


def test_a_list_after_a_block_without_notes_stays_where_it_is(show: Show) -> None:
    html = show("```python\nprint('out' + 'put')\n```\n\n1. First.\n")
    assert html.index(">output<") < html.index("<ol>")


def test_the_small_print_says_what_the_block_ran_on(show: Show) -> None:
    small = words(show("```python\nimport jax\n_ = jax.jit(lambda x: x + 1)(1.0)\n```\n").partition("live-small")[2])
    assert re.search(r"\d+ ms|\d\.\d s", small) and re.search(
        r"\d traces?, 1 compile; jax \d[\d.]+, Python 3\.\d+", small
    )


def test_a_block_that_is_still_to_run_says_so_in_the_place_of_its_result(show: Show, site: Site) -> None:
    event = Event(site)
    text = (
        f'# T\n\n```python\n{event.wait}\n```\n\n```python source="none"\nprint("hidden")\n```\n\n'
        '```python result="markdown"\nprint("*b*")\n```\n'
    )
    html = show(text, serving=True)
    places = re.findall(
        r'<div class="live-result"[^>]*><p class="live-note" data-live-pending="([^"]*)" data-search-exclude>Running …',
        html,
    )
    assert places == ["docs/page.md:3", "docs/page.md:9", "docs/page.md:13"]
    assert "live-small" not in html and "Not run" not in html
    found = import_module("material.plugins.search.plugin").Parser()  # of what the theme's search indexes
    found.feed(html)
    found.close()
    indexed = "".join("".join(section.text) for section in found.data)
    assert "*b*" in indexed and "Running" not in indexed
    event.set()
    assert "data-live-pending" not in show(text)


def test_a_recorded_output_is_replaced_by_the_blocks_own(show: Show, site: Site) -> None:
    event = Event(site)
    event.set()
    text = f"# T\n\n```python\n{event.wait}\nprint('at', 'last')\n```\n"
    page = site.read(site.write("docs/page.md", text))
    record(site.project, "cpu", [(page, site.engine.run([page])[page.path])])
    event.clear()
    waiting = show(text, serving=True)
    assert "data-live-pending" in waiting and "recorded on" in waiting and "<code>at last</code>" in waiting
    event.set()
    ran = show(text)
    assert "data-live-pending" not in ran and "recorded on" not in ran and "<code>at last</code>" in ran


def test_a_word_is_explained_once_in_a_section() -> None:
    word = '<abbr title="{0}">{0}s</abbr>'
    page = "<h2 id='a'>A</h2>{}, {}, {}<h2>B</h2>{}".format(
        *(word.format(term) for term in ("key", "leaf", "key", "key"))
    )
    shortened = without_marks(page)
    assert shortened == page.replace(word.format("key") + "<h2>B", "keys<h2>B")


def test_a_page_keeps_the_indents_of_code_and_nothing_that_was_for_the_search() -> None:
    content = (
        '<ul data-search-exclude>\n    <li>a\n</ul>\n<pre>a\n    b</pre>\n\n    <div data-search-exclude="1" id="b">'
    )
    assert flush(EXCLUDED.sub("", content)) == '<ul>\n<li>a\n</ul>\n<pre>a\n    b</pre>\n<div id="b">'
    row = "<code>def f(x):\n    return x\nf(x)</code> <samp>a\n  b</samp>"  # of a table of equivalents
    assert flush(row + "\n  <b>") == row + "\n<b>"


def test_a_style_that_is_left_out_goes_to_its_end() -> None:
    style = 'b{c:d}a{--md-status:url("data:<svg fill=\'none\'>(1; 2)</svg>");--kept:url("b;c")}'
    assert slimmed(style) == 'b{c:d}a{--kept:url("b;c")}'
