"""The line under a title and the map of the course; formulas."""

import re
from html import unescape

import markdown
import pytest

from course.guide import minutes
from livepages.course import read_course
from livepages.integrations.build import Build
from livepages.records import record
from livepages.rendering.mathml import FormulaError
from livepages.source import ProjectError
from tests.conftest import Site
from tests.test_markdown import Show, show

__all__ = ["show"]  # the fixture

NAV = """\
site_name: Course
extra: {repository: !ENV [NO_SUCH_VARIABLE, "%s"]}
theme: {icon: !!python/name:material.icon ""}
nav:
  - Home: index.md
  - One: [one/first.md, one/second.md]
  - Find: [map.md]
"""
BLOCK = "```python\nprint(1)\n```\n"


def a_course(site: Site, repository: str = "") -> None:
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "jax"\nguide = "course.guide:CourseGuide"\n')
    site.write("mkdocs.yml", NAV % repository)
    site.write("docs/index.md", f"# Home\n\n{BLOCK}")
    site.write("docs/one/first.md", f"---\ndescription: About it.\ndevices: 4\n---\n\n# The first\n\n{BLOCK}")
    site.write("docs/one/second.md", f"---\nbefore: [one/first.md]\n---\n\n# The second\n\nText.\n\n{BLOCK}")
    site.write("docs/map.md", "# Map\n\n<!-- live: course -->\n\nThe end.\n")


def shown(site: Site, show: Show, name: str) -> str:
    return show((site.root / "docs" / name).read_text(), name=name)


def test_the_line_under_a_title(site: Site, show: Show) -> None:
    a_course(site, "owner/name")
    html = shown(site, show, "one/second.md")
    line = html.partition("</h1>")[2].partition("</div>")[0]
    assert "1 minute<" in line and 'href="first.md">The first</a>' in line
    end = html.partition("live-downloads")[2]
    assert 'href="live-second.py" download>' in end and 'href="live-second.ipynb" download>' in end
    assert "github/owner/name/blob/notebooks/one/second/live-second.ipynb" in end
    assert html.index("live-masthead") < html.index("Text.")
    assert "on 4 virtual devices" in shown(site, show, "one/first.md")


def test_no_colab_without_a_repository(site: Site, show: Show) -> None:
    a_course(site)
    assert "olab" not in shown(site, show, "one/second.md")


@pytest.mark.parametrize("name", ["index.md", "map.md"])
def test_pages_about_the_course_have_no_such_line(site: Site, show: Show, name: str) -> None:
    a_course(site)
    assert "live-masthead" not in shown(site, show, name)


def test_the_map_names_every_page_in_order(site: Site, show: Show) -> None:
    a_course(site)
    html = shown(site, show, "map.md")
    assert re.findall(r'href="([^"]+)"', html) == ["one/first.md", "one/second.md", "one/first.md"]
    assert "About it." in html and "2 pages, 2 minutes" in html and "The end." in html and "Find" not in html


@pytest.mark.parametrize(("wanted", "there"), [("", True), (" math", True), (" -math", False), (" other", False)])
def test_the_index_has_each_name_once_with_the_section_that_uses_it_first(
    wanted: str, there: bool, site: Site, show: Show
) -> None:
    a_course(site)
    site.write(
        "inventories/lib.txt",
        "https://example.org/\nmath math.html module\nmath.pi math.pi.html\nmath.tau math.pi.html\n",
    )
    use = "```python\nimport math\nfrom math import tau\nmath.pi, tau\n```\n"
    site.write("docs/one/first.md", f"# The first\n\n## A section\n\n{use}\n## Again\n\n{use}")
    site.write("docs/one/second.md", f"# The second\n\n{use}")
    site.write("docs/map.md", f"# Names\n\n<!-- live: names{wanted} -->\n")
    html = shown(site, show, "map.md")
    assert re.findall(r'<h3 id="([^"]+)"><code>([^<]+)</code>', html) == [("math.pi", "math.pi")] * there
    assert re.findall(r'href="([^"]+)"', html) == ["one/first.md#a-section", "https://example.org/math.pi.html"] * there


def test_a_page_to_read_first_that_is_none_fails_with_its_line(site: Site) -> None:
    a_course(site)
    site.write("docs/one/second.md", f"---\ntags: [a]\n'before': [one/thrid.md]\n---\n\n# The second\n\n{BLOCK}")
    build = Build(site.engine)
    build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
    assert [str(failure) for failure in build.failures] == [
        "docs/one/second.md:3: before: one/thrid.md is not a page of docs; did you mean 'one/first.md'?"
    ]
    site.write("docs/one/third.md", f"---\nredirect_from: [one/thrid.md]\n---\n\n# The third\n\n{BLOCK}")
    build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
    assert [str(failure) for failure in build.failures] == [
        "docs/one/second.md:3: before: one/thrid.md is not a page of docs; it is now one/third.md"
    ]


def test_what_a_page_shows_of_others_decides_how_it_is_shown(site: Site) -> None:
    a_course(site)

    def decided(name: str) -> object:
        build = Build(site.engine)
        build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
        file = site.root / "docs" / name
        return build.cache_key(file, file.read_text().rpartition("---\n")[2])

    before = {name: decided(name) for name in ("map.md", "one/second.md", "index.md")}
    first = site.root / "docs/one/first.md"
    first.write_text(first.read_text().replace("# The first", "# Another title"))
    assert [name for name, was in before.items() if decided(name) != was] == ["map.md", "one/second.md"]


def test_code_and_headings_decide_how_the_index_of_names_is_shown_and_words_do_not(site: Site) -> None:
    a_course(site)
    text = "# Names\n\n<!-- live: names -->\n"
    file = site.write("docs/map.md", text)
    shown = []
    for other in ("# The first\n\nA.\n\n## Part", "# The first\n\nA.\n\nB.\n\n## Part", "# The first\n\n## Renamed"):
        for block in (BLOCK, "```python\nimport math\n```\n"):
            site.write("docs/one/first.md", f"{other}\n\n{block}")
            build = Build(site.engine)
            build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
            shown.append(build.cache_key(file, text))
    assert shown[:2] == shown[2:4]
    assert len({repr(one) for one in (*shown[:2], *shown[4:])}) == 4


def test_titles_and_records_decide_how_the_status_page_is_shown(site: Site) -> None:
    text = "# Status\n\n<!-- live: status -->\n"
    file = site.write("docs/status.md", text)
    one = site.write("docs/one.md", f"# One\n\n{BLOCK}")
    page = site.read(one)

    def shown() -> object:
        build = Build(site.engine)
        build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
        return build.cache_key(file, text)

    record(site.project, "cpu", [(page, site.engine.run([page])[page.path])])
    first = shown()
    assert shown() == first
    one.write_text(f"# Another title\n\n{BLOCK}")
    assert shown() != first
    one.write_text(f"# One\n\n{BLOCK}")
    assert shown() == first
    recorded = site.root / "records/cpu/one.yml"
    recorded.write_text(recorded.read_text().replace("seconds: 0", "seconds: 1"))
    assert shown() != first


def test_what_a_page_shows_decides_where_the_status_page_leads(site: Site) -> None:
    """A hidden block that prints nothing is not shown, and what comes after it has another address."""
    output = site.write("snippets/said.py", "")
    site.write("docs/one.md", f'# One\n\n```python source="none"\nimport said\n```\n\n{BLOCK}')
    text = "# Status\n\n<!-- live: status -->\n"
    file = site.write("docs/status.md", text)
    shown = []
    for source in ("", "", "print(1)"):
        output.write_text(source)
        build = Build(site.engine)
        build.run(read_course(site.project), lambda pages: None, lambda page, run: None)
        assert not build.failures
        shown.append(build.cache_key(file, text))
    assert shown[0] == shown[1] != shown[2]


def test_reading_time_counts_words_and_blocks(site: Site) -> None:
    few = site.read(site.write("docs/few.md", "# A\n\n" + "word " * 400 + "\n\n" + BLOCK))
    assert minutes(few) == 2
    assert minutes(site.read(site.write("docs/many.md", "# A\n\n" + "word " * 400 + ("\n\n" + BLOCK) * 12))) == 5


def test_a_course_that_cannot_be_read(site: Site) -> None:
    site.write("mkdocs.yml", "nav: [")
    with pytest.raises(ProjectError, match=r"mkdocs\.yml"):
        read_course(site.project)


def formulas(text: str) -> str:
    return markdown.markdown(
        text,
        extensions=["pymdownx.arithmatex", "livepages.mathml"],
        extension_configs={"pymdownx.arithmatex": {"generic": True}},
    )


def test_formulas_become_mathml() -> None:
    html = formulas("A cost of $5, and $x < y^2$ in a line.\n\n$$\n\\frac{a}{b}\n$$\n")
    assert "A cost of $5" in html and "<msup><mi>y</mi><mn>2</mn></msup>" in html and "<mo>&#x0003C;</mo>" in html
    assert '<div class="live-formula" data-search-exclude><math' in html and 'display="block"' in html
    assert "arithmatex" not in html


@pytest.mark.parametrize(
    ("tex", "spaced"),
    [
        (r"\sin t", "sin t"),
        (r"r\cos t", "r cos t"),
        (r"r \cos(t)", "r cos(t)"),
        (r"-\log p", "−log p"),
        (r"(a)\log_2 n \log n", "(a) log2 n log n"),
        (r"\left(a\right)\sin^2\left(x\right)", "(a) sin2(x)"),
        (r"n!\log \sum_i x^2 \log\, x", "n! log∑ix2 logx"),
        (r"\frac{a \log a}{b}", "a log ab"),
        (r"\begin{cases}r \cos t\end{cases}", "{r cos t"),
        (r"x y", "xy"),
    ],
)
def test_names_of_functions_in_formulas_have_thin_spaces(tex: str, spaced: str) -> None:
    thin = formulas(f"See ${tex}$ there.").replace('<mspace width="0.1667em" />', " ")
    output = re.sub("<[^>]+>", "", thin)
    assert unescape(output) == f"See {spaced} there."


def test_relations_and_brackets_in_formulas_are_operators() -> None:
    html = unescape(formulas(r"See $x \sim N \pm \langle a \rangle$ there."))
    assert '<mo lspace="0.2778em" rspace="0.2778em">~</mo>' in html
    assert all(f"<mo>{mark}</mo>" in html for mark in "±⟨⟩") and html.count("<mi>") == 3


@pytest.mark.parametrize("around", ["({},", "{}.", "({}),", "{}:", "{}?"])
def test_a_formula_stays_on_the_line_of_the_punctuation_around_it(around: str) -> None:
    output = formulas(f"See {around.format('$x$')} there.")
    before, after = around.split("{}")
    assert f'See <span style="white-space: nowrap">{before}<span class="live-formula"' in output
    assert f"</math></span>{after}</span> there." in output
    assert "nowrap" not in formulas("See $x$ there, $y$ and\n\n$$\nx\n$$\n")


@pytest.mark.parametrize(
    ("tex", "why"),
    [
        (r"\frac{a", "brace"),
        (r"a \} }", "brace"),
        (r"\left( a", "ExtraLeft"),
        (r"\nosuch a", r"known: \\nosuch"),
        ("x_", "Missing"),
    ],
)
def test_a_formula_that_cannot_be_set_is_quoted(tex: str, why: str) -> None:
    with pytest.raises(FormulaError, match=re.escape(repr(tex)) + ".*" + why):
        formulas(f"See ${tex}$.")
