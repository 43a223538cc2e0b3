"""The functions of the scripts that need no page: ranking, names of releases, edits that are kept, what a kernel says."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

import livepages
from course import search_files
from tests.browser import reader

RUN = Path(livepages.__file__).with_name("assets") / "run"
THEME = reader.ROOT / "course" / "theme" / "javascripts"
RELEASES = ["0.4.13", "0.5.0", "0.6.0", "0.7.0"]
SECTIONS: list[dict[str, Any]] = [
    {"location": "loops/", "title": "Loops", "text": "<p>A loop that compiles once, loop.unrolled, gradients too.</p>"},
    {
        "location": "loops/#scan",
        "title": "Carry a state with scan",
        "text": "<p>jax.lax.scan carries &lt;state&gt;.</p>",
    },
    {"location": "loops/#where-next", "title": "Where next", "text": "<p>scan, memory</p>"},
    {
        "location": "answers/slow/#slow-loop",
        "title": "Why is my loop slow?",
        "text": "<p>Because Python runs it.</p>",
        "wordings": ["training gets slower", "loop takes long"],
    },
    {
        "location": "answers/numbers/#alike",
        "title": "Why are my numbers alike?",
        "text": "<p>They come from one key.</p>",
        "wordings": ["random number does not change", "new number every time"],
    },
    {
        "location": "answers/numbers/#one-result",
        "title": "How do I get one result?",
        "text": "<p>With a flag.</p>",
        "wordings": ["not the same number every time", "result in every run"],
    },
    {
        "location": "answers/saving/#folder",
        "title": "Why is my folder refused?",
        "text": "<p>Give all of it.</p><pre>ValueError: Path of the checkpoint must be absolute, not parameters</pre>",
    },
    {
        "location": "lookup/errors/#tracer-bool",
        "title": "TracerBoolConversionError",
        "text": "<p>Attempted boolean conversion of traced array with shape bool[]. Use jnp.where.</p>",
    },
    {
        "location": "lookup/errors/#missing-argument",
        "title": "missing 1 required positional argument",
        "text": "<p>A call has fewer values than the function takes.</p>",
    },
    {"location": "lookup/then-and-now/#old-jax.tree_map", "title": "jax.tree_map", "text": "<p>jax.tree.map</p>"},
]
NAMES = {
    "jax.tree_leaves": {"gone": "0.6.0", "says": "Leaves of a tree."},
    "jax.lax.ragged": {"since": "0.5.0"},
}


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of a site that has the scripts, a few sections and two names."""
    folder = tmp_path_factory.mktemp("scripts")
    shutil.copytree(THEME, folder / "javascripts")
    shutil.copytree(RUN, folder / "run")
    (folder / "search").mkdir()
    search_files.write(folder / "search", SECTIONS)
    (folder / "names.json").write_text(json.dumps({"releases": RELEASES, "names": NAMES}))
    (folder / "index.html").write_text(
        "<!doctype html><meta charset=utf-8><title>Test</title><h1>Title</h1><main></main>"
    )
    with reader.serve(folder) as base:
        opened = browser.new_page()
        opened.goto(base)
        yield opened
        opened.close()


FIND = """async (query) => {
  const { find } = await import("./javascripts/find.js");
  const { items, note, suggest } = await find(query);
  return { note, suggest, found: items.flat().filter(({ score }) => score) };
}"""


@pytest.fixture(scope="module")
def find(page: Page) -> Callable[[str], Any]:
    """The search: gives the note and the sections, each with its address, title and text."""
    return lambda query: page.evaluate(FIND, query)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("using scan", "loops/#scan"),  # the title, not the list of links
        ("Loops", "loops/"),  # the name of a page
        ("carrying states", "loops/#scan"),  # other forms of the words
        ("why does training become slower", "answers/slow/#slow-loop"),  # as it was asked
        ("it needs ages", "answers/slow/#slow-loop"),  # lay words
        ("my number changes every time", "answers/numbers/#one-result"),  # not what denies it
        ("number doesn't change", "answers/numbers/#alike"),
        ("number dont change", "answers/numbers/#alike"),
        ("jax.lax.scn", "loops/#scan"),  # a letter is missing
        ("jax.tree_map", "lookup/then-and-now/#old-jax.tree_map"),
        ("AttributeError: module 'jax' has no attribute 'tree_map'", "lookup/then-and-now/#old-jax.tree_map"),
        ("jax.tree_leaves", "lookup/names/?filter=jax.tree_leaves"),  # no section has it, but the record of names
        (
            'Traceback (most recent call last):\n  File "/home/me/scan/loop.py", line 3, in <module>\n    if x:\n'
            "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].",
            "lookup/errors/#tracer-bool",
        ),
    ],
)
def test_the_section_that_is_meant_comes_first(find: Callable[[str], Any], query: str, first: str) -> None:
    assert find(query)["found"][0]["location"] == first


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("scan", ""),
        ("quaternion loops", "No page has “quaternion”. The nearest sections are:"),
        ("gradeints", "No section has “gradeints”. These have “gradients”:"),
        ("zyzzyva", "No page has “zyzzyva”."),  # and nothing is near
        ("memory", "No page has “memory”."),  # but a list of links at the end of one
        ("ode45", "Nothing here answers that as asked."),
        ("ValueError: the loop of somebody's own library", "This message has no entry here. The nearest sections are:"),
        ("ValueError: Path of the checkpoint must be absolute, not ckpt", ""),  # an answer shows it
        ("TypeError: loop.unrolled_state() missing 1 required positional argument: 'y'", ""),
        ("ValueError: Path of another checkpoint", "This message has no entry here. The nearest sections are:"),
    ],
)
def test_a_result_says_when_it_does_not_answer_the_query(find: Callable[[str], Any], query: str, note: str) -> None:
    assert find(query)["note"] == note


def test_titles_of_an_older_site_are_asked_for_again(browser: Browser, page: Page) -> None:
    opened = browser.new_page()
    routes: list[Route] = []

    def answer(route: Route) -> None:
        routes.append(route)
        if len(routes) == 1:
            route.fulfill(json=SECTIONS[1:])
        else:
            route.continue_()

    opened.route("**/titles.json", answer)
    opened.goto(page.url)
    (first, *_) = opened.evaluate(FIND, "carrying states")["found"]
    assert (first["location"], len(routes)) == ("loops/#scan", 2)
    assert "carries" in first["text"]
    opened.close()


def test_a_result_shows_the_words_as_text(find: Callable[[str], Any]) -> None:
    scan = find("scan state")["found"][0]
    assert scan["text"] == (
        "<mark data-md-highlight>jax.lax.scan</mark> carries &lt;<mark data-md-highlight>state</mark>&gt;."
    )
    leaves = find("jax.tree_leaves")["found"][0]
    assert leaves["title"] == "jax.tree_leaves"
    assert "since 0.4.13 or before, gone in 0.6.0. Leaves of a tree." in leaves["text"].replace("</mark>", "").replace(
        "<mark data-md-highlight>", ""
    )


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("compi", ["compiles"]),
        ("co", []),
        ("a loo", ["loops"]),
        ("loop", []),  # a whole word, which more sections have than loop.unrolled
        ("jax.tr", ["jax.tree"]),
        ("unr", ["unrolled"]),
        ("jax.la", ["jax.lax"]),  # one part of a name
        ("jax.lax", []),
        ("jax.lax.", ["jax.lax.scan"]),
        ("ValueError: a loo", []),
    ],
)
def test_a_word_is_completed_where_that_helps(find: Callable[[str], Any], typed: str, suggested: list[str]) -> None:
    assert find(typed)["suggest"] == suggested


@pytest.mark.parametrize(
    ("facts", "lacking", "words"),
    [
        ({}, ["", "", "", ""], "since 0.4.13 or before"),
        ({"since": "0.5.0"}, ["Not yet in", "", "", ""], "since 0.5.0"),
        ({"gone": "0.6.0"}, ["", "", "No longer in", "No longer in"], "since 0.4.13 or before, gone in 0.6.0"),
        (
            {"since": "0.7.0", "earlier": [["", "0.5.0"]]},
            ["", "Not in", "Not in", ""],
            "since 0.4.13 or before, gone in 0.5.0, again since 0.7.0",
        ),
        (
            {"since": "0.5.0", "changed": "0.6.0", "deprecated": "0.7.0"},
            ["Not yet in", "", "", ""],
            "since 0.5.0, parameters changed in 0.6.0, deprecated in 0.7.0, still there in 0.7.0",
        ),
    ],
)
def test_a_name_says_in_which_releases_it_is(page: Page, facts: object, lacking: list[str], words: str) -> None:
    assert page.evaluate(
        """async ([facts, releases]) => {
          const { describe, lacks } = await import("./javascripts/releases.js");
          return [releases.map((release) => lacks(facts, release, releases)), describe(facts, releases)];
        }""",
        [facts, RELEASES],
    ) == [lacking, words]


@pytest.mark.parametrize(
    ("kept", "blocks", "found", "after"),
    [
        ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, {"a": "1", "b": "2"}, {"a": "1", "b": "2"}),
        ({"a": "1"}, {"a": "9", "b": "1"}, {"b": "1"}, {"b": "1"}),  # the block has another place now
        ({"a": "1"}, {"a": "9"}, {"a": "1"}, {"a": "1"}),  # its original changed
        ({"a": "1", "b": "2"}, {"b": "1"}, {"b": "1"}, {"b": "1", "b before": "2"}),  # and no edit is lost
        ({"a": "1"}, {}, {}, {"a": "1"}),
    ],
)
def test_an_edit_follows_its_block(
    page: Page, kept: dict[str, str], blocks: dict[str, str], found: dict[str, str], after: dict[str, str]
) -> None:
    assert page.evaluate(
        """async ([before, blocks]) => {
          const { clear, keep, kept, matched, pages } = await import("./run/edits.js");
          clear(location.pathname);
          for (const [id, original] of Object.entries(before)) keep(id, { code: id, original });
          const originals = (entries) => Object.fromEntries(Object.entries(entries).map(([id, entry]) => [id, entry.original]));
          const found = originals(matched(Object.entries(blocks)));
          const after = [originals(kept()), pages().map(({ title }) => title)];
          clear(location.pathname);
          return [found, ...after, pages()];
        }""",
        [kept, blocks],
    ) == [found, after, ["Title"], []]


SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>é</text></svg>'


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ([("stream", {"name": "stdout", "text": "a\n"}), ("stream", {"name": "stdout", "text": "b\n"})], "a\nb"),
        (
            [("stream", {"name": "stdout", "text": "10 %\r"}), ("stream", {"name": "stdout", "text": "100 %\n"})],
            "100 %",
        ),
        ([("stream", {"name": "stdout", "text": "\x1b[31mred\x1b[0m <b>"})], "red <b>"),
        ([("execute_result", {"data": {"text/plain": "<script>1</script>"}})], "<script>1</script>"),
        ([("stream", {"name": "stdout", "text": "x" * 60_000})], "x" * 50_000 + "\n[… the rest is left out]"),
        ([("display_data", {"data": {"image/svg+xml": SVG, "text/plain": "Figure"}})], ""),
        ([("error", {"ename": "E", "evalue": "why", "traceback": ["at\x1b[0m"]})], "E: whyTracebackat"),
    ],
)
def test_the_output_of_a_kernel_is_shown_as_text(page: Page, output: list[tuple[str, object]], shown: str) -> None:
    text, pictures, elements = page.evaluate(
        """async (said) => {
          const { Output } = await import("./run/output.js");
          const place = document.querySelector("main");
          const output = new Output(place, "a figure");
          for (const [kind, content] of said) output.take(kind, content);
          const pictures = [...place.querySelectorAll("img")];
          await Promise.all(pictures.map((picture) => picture.decode()));
          return [place.textContent, pictures.map(({ alt, naturalWidth }) => [alt, naturalWidth]), place.querySelectorAll("script, b").length];
        }""",
        output,
    )
    assert text == shown and not elements
    assert pictures == ([["a figure", 9]] if "display_data" in dict(output) else [])
