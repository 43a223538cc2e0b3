"""The search: what is asked in people's own words leads to what answers it; nothing is loaded before it is needed."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from course.answers import Site
from tests.browser.chosen import NTH, rarely
from tests.browser.conftest import Found
from tests.browser.reader import View, Visit, hold
from tests.pasted import all_pasted, read_yaml
from tests.site.test_answers import PAGES, QUESTION

Open = Callable[..., Visit]
Ask = Callable[[list[str]], dict[str, Found]]
QUERIES: list[dict[str, Any]] = read_yaml("asked.yml")
NOTE = ".live-search-note"


def search(page: Page, words: str) -> Locator:
    """The links to the sections that a search finds, the best first."""
    page.keyboard.press("/")
    field = page.locator(".md-search__input")
    expect(field).to_be_focused()
    field.fill(words)
    return sections(page)


def sections(page: Page) -> Locator:
    found = page.locator(".md-search-result__item a[href*='#']:has(h2)")
    expect(found.first).to_be_visible()
    return found


def text(source: str) -> str:
    """Return the text of HTML."""
    return html.unescape(re.sub(r"<[^>]+>", "", source))


# --- what it finds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unseen", [False, True], ids=["known", "unseen"])
def test_what_people_type_leads_to_the_answer(ask: Ask, unseen: bool) -> None:
    queries = {record["query"]: record["answers"] for record in QUERIES if bool(record.get("unseen")) == unseen}
    assert len(queries) >= 250
    found = ask(list(queries))
    missed = {
        query: found[query].sections[:3]
        for query in queries
        if not set(queries[query]) & set(found[query].sections[:3])
    }
    assert len(missed) <= 0.1 * len(queries), missed


def test_no_query_of_the_unseen_half_is_a_wording() -> None:
    wordings = {
        line.lower()
        for path in PAGES
        for match in QUESTION.finditer(path.read_text())
        for line in match["asked"].splitlines()
    }
    assert not wordings & {record["query"].lower() for record in QUERIES if record.get("unseen")}


@NTH
def test_every_third_wording_leads_to_its_question(ask: Ask, nth: int) -> None:
    every_third = [
        (line, f"answers/{path.stem}/#{match['id']}")
        for path in PAGES
        for match in QUESTION.finditer(path.read_text())
        for line in match["asked"].splitlines()[::3]
    ]
    wordings = dict(every_third[::nth])
    found = ask(list(wordings))
    missed = {
        query: found[query].sections[:3] for query, place in wordings.items() if place not in found[query].sections[:3]
    }
    assert len(missed) <= 0.05 * len(wordings), missed


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("my numbers change every time", "answers/numerics/#determinism"),
        ("my numbers never change", "answers/jit/#frozen-random"),
        ("always the same numbers", "answers/random/#same-numbers"),
        ("array does not change", "answers/arrays/#update-lost"),
        ("jax uses the gpu although I want the cpu", "answers/install/#force-cpu"),
        ("jax uses the cpu although I have a gpu", "answers/install/#gpu-not-found"),
        ("train on one gpu only", "answers/install/#choose-a-gpu"),
        ("why is only one gpu used", "answers/devices/#one-device-used"),
        ("too slow the first time", "answers/compile-time/#first-call"),
        ("the second call is slow, too", "answers/recompilation/#why-again"),
    ],
)
def test_a_query_does_not_lead_to_the_answer_to_its_opposite(query: str, answer: str, ask: Ask) -> None:
    assert ask([query])[query].sections[0] == answer


@pytest.mark.parametrize("symbol", ["jax.vmap", "at", "block_until_ready"])
def test_a_symbol_is_on_the_page_that_is_found(symbol: str, ask: Ask, folder: Path) -> None:
    assert symbol in text(first(symbol, ask, folder))


def first(query: str, ask: Ask, folder: Path) -> str:
    """The HTML of the page that a search finds first."""
    place = ask([query])[query].sections[0]
    return (folder / place.partition("#")[0] / "index.html").read_text()


def errors(folder: Path) -> dict[str, list[str]]:
    """The messages of each type of error that the error dictionary shows."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.glob("errors*/index.html")):
        shown = re.findall(
            r'live-error"><pre class="nohighlight"><code><strong>(.*?)</strong>: (.*?)</code>',
            file.read_text(),
            re.DOTALL,
        )
        for kind, message in shown:
            found.setdefault(kind, []).append(text(message))
    return found


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kind", ["TracerBoolConversionError", "UnexpectedTracerError", "TypeError", "ValueError"])
def test_an_error_of_a_page_is_on_the_page_that_is_found(kind: str, whole: bool, ask: Ask, folder: Path) -> None:
    message = errors(folder / "lookup")[kind][0]
    pasted = f"{kind}: {message}" if whole else message.partition("\n")[0][:60]
    assert message.partition("\n")[0] in text(first(pasted, ask, folder))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vmpa", "vmap"),
        ("jax.numpy.whre", "jax.numpy.where"),
        ("block_until_redy", "block_until_ready"),
        ("gradeint of a sum", "gradient of a sum"),
    ],
)
def test_a_misspelled_word_is_taken_for_the_one_that_was_meant(typed: str, meant: str, ask: Ask) -> None:
    found = ask([typed, meant])
    assert f"“{meant}”" in found[typed].note
    assert found[typed].sections == found[meant].sections


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("who won the football world cup", "No page has “football”"),
        ("convert my model to coreml", "No page has “coreml”"),
        ("ModuleNotFoundError: No module named 'tensorflow_probability.substrates'", "no entry"),
        ("TypeError: normalize() got an unexpected keyword argument 'a_min'", "no entry"),
        ("ValueError: unknown dialect: linalg", "no entry"),
        ("'int' object is not subscriptable", "no entry"),
        ("IndexError: list index out of range", "no entry"),
        ("KeyError: 'bias'", "no entry"),
        ("NameError: name 'params' is not defined", "no entry"),
        ("psycopg2.OperationalError: could not connect to server: Connection refused", "no entry"),
    ],
)
def test_a_message_without_an_entry_gets_a_note(typed: str, words: str, ask: Ask) -> None:
    assert words in ask([typed])[typed].note


@pytest.mark.parametrize(
    ("pasted", "row"),
    [
        ("ModuleNotFoundError: No module named 'jax.config'", "from-jax.config-import-config"),
        ("No module named 'jax.config'", "from-jax.config-import-config"),
        ("unknown dialect: mhlo", "compiler_ir-dialect-mhlo"),
        ("TypeError: 'jaxlib.xla_extension.Device' object is not callable", "arr.device"),
        ("TypeError: jit() got an unexpected keyword argument 'device'", "jax.jit-device"),
        ("TypeError: clip() got an unexpected keyword argument 'a_min'", "jnp.clip-a_min-a_max"),
        ("Warning: `with mesh:` context manager has been deprecated.", "with-mesh"),
    ],
)
def test_a_message_that_a_row_shows_has_an_entry(pasted: str, row: str, ask: Ask) -> None:
    found = ask([pasted])[pasted]
    assert (found.sections[0], found.note) == (f"lookup/then-and-now/#old-{row}", "")


# --- how it is used -------------------------------------------------------------------------------------------------


def test_nothing_is_loaded_before_the_field_is_entered(visit: Open) -> None:
    seen = visit("basics/vmap/")
    needed = re.compile(r"search/|find|vendor/|workers/")
    assert not [request.url for request in seen.requests if needed.search(request.url)]
    search(seen.page, "vmap")
    requests = [request for request in seen.requests if needed.search(request.url)]
    assert sum(request.sizes()["responseBodySize"] for request in requests) <= 900 * 1024


@pytest.mark.parametrize("lost", [rarely("find.js"), rarely("titles.json"), "texts.json"])
def test_what_did_not_come_is_asked_for_again_with_the_next_query(lost: str, visit: Open) -> None:
    seen = visit("basics/vmap/")
    page = seen.page
    page.context.route(f"**/{lost}", lambda route: route.abort())
    page.keyboard.press("/")
    field = page.locator(".md-search__input")
    expect(field).to_be_focused()
    field.fill("vmap")
    expect(page.locator(NOTE)).to_have_text("The search could not be loaded. Type on to try again.")
    page.context.unroute(f"**/{lost}")
    seen.complaints.clear()
    field.fill("vmap over")
    expect(sections(page).first).to_be_visible()
    expect(page.locator(NOTE)).to_be_empty()


def test_while_it_is_loading_it_says_so_and_then_answers_the_newest_query(visit: Open) -> None:
    page = visit("basics/vmap/").page
    held: list[Route] = []
    page.context.route("**/titles.json", lambda route: held.append(route))  # noqa: PLW0108 - it marks a function
    with page.expect_request("**/titles.json"):  # before anything is typed
        page.keyboard.press("/")
    field, output = page.locator(".md-search__input"), page.locator(".md-search-result__meta")
    expect(field).to_be_focused()
    for words in ["gradient of a sum", "", "how do I stop a loop early"]:
        field.fill(words)
        expect(output).to_have_text("Loading the search …" if words else "Type to start searching")
    page.context.unroute("**/titles.json")  # which lets go of them: the page and its worker ask
    expect(sections(page).first).to_have_attribute("href", re.compile("#early-exit"))
    expect(output).to_contain_text("matching documents")


def test_on_a_slow_line_titles_and_questions_answer_until_the_texts_are_here(visit: Open) -> None:
    page = visit("basics/vmap/").page
    held: list[Route] = []
    page.context.route("**/texts.json", lambda route: held.append(route))  # noqa: PLW0108 - it marks a function
    first = search(page, "how do I stop a loop early").first
    expect(first).to_have_attribute("href", re.compile("#early-exit"))
    expect(page.locator(NOTE)).to_contain_text("titles and questions")
    expect(first.locator("mark")).to_have_count(0)
    held[0].continue_()
    expect(page.locator(NOTE)).to_be_empty()
    expect(first).to_have_attribute("href", re.compile("#early-exit"))
    expect(first.locator("mark")).not_to_have_count(0)


def test_until_the_texts_are_here_no_note_claims_that_something_is_missing(visit: Open) -> None:
    page = visit("basics/vmap/").page
    hold(page, "**/texts.json")
    page.keyboard.press("/")
    field = page.locator(".md-search__input")
    expect(field).to_be_focused()
    field.fill("qzxwvkj")
    expect(page.locator(NOTE)).to_have_text("Not in titles and questions; the texts are still on their way.")
    expect(page.locator(".md-search-result__meta")).to_contain_text("No matching documents")


def test_a_completion_is_drawn_only_behind_the_words_that_it_completes(visit: Open) -> None:
    page = visit("basics/vmap/").page
    page.keyboard.press("/")
    field, completion = page.locator(".md-search__input"), page.locator(".md-search__suggest")
    expect(field).to_be_focused()
    expect(completion).to_have_attribute("aria-hidden", "true")
    for words in ("gradi", "stop a gradi"):
        field.clear()
        field.press_sequentially(words)
        expect(completion).to_have_text(re.compile(f"^{words}."))
        expect(completion).to_be_visible()
    field.evaluate("""field => {
      field.value = "why is my stop a gradi"; // the theme draws what was typed with the last key
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }""")
    expect(completion).not_to_be_visible()
    field.fill("a question that is much wider than the field of the search and stops a")
    field.press_sequentially(" gradi")
    expect(completion).to_have_text(re.compile("stops a gradi."))
    expect(completion).not_to_be_visible()


def test_a_phone_whose_keys_take_no_completion_shows_none(visit: Open) -> None:
    page = visit("basics/vmap/", View("light", 390), has_touch=True, is_mobile=True).page
    page.locator("label.md-header__button[for=__search]").click()
    page.locator(".md-search__input").press_sequentially("gradi")
    completion = page.locator(".md-search__suggest")
    expect(completion).to_have_text(re.compile("^gradi."))
    expect(completion).not_to_be_visible()


@pytest.mark.parametrize("view", [rarely(View("light", 1280)), View("dark", 390)], ids=str)
def test_back_from_an_answer_the_search_still_has_the_question(view: View, visit: Open) -> None:
    page = visit("", view).page
    opener = page.locator("label.md-header__button[for=__search]" if view.width < 600 else ".md-search__input")
    field = page.locator(".md-search__input")
    opener.click()
    field.fill("how do I stop a loop early")
    sections(page).first.click()
    page.wait_for_url("**/answers/loops/**")
    page.go_back()
    page.reload()
    for words in ("how do I stop a loop early", "vmap"):
        opener.click()
        expect(field).to_have_value(words)
        expect(sections(page).first).to_contain_text("stop a loop" if "loop" in words else "vmap")
        page.wait_for_function("getSelection().toString() === document.querySelector('.md-search__input').value")
        page.keyboard.type("vmap")
        expect(field).to_have_value("vmap")
        page.keyboard.press("Escape")
    opener.click()
    page.locator(".md-search [type=reset]").click()
    page.reload()
    opener.click()
    expect(field).to_be_focused()
    expect(field).to_have_value("")


def test_who_hears_the_page_learns_how_many_results_there_are_and_how_to_reach_them(visit: Open) -> None:
    page = visit("basics/vmap/").page
    first = search(page, "how do I stop a loop early").first
    expect(page.get_by_role("textbox", name="Search")).to_have_accessible_description(re.compile("arrow keys"))
    expect(page.get_by_role("search").get_by_role("status").first).to_contain_text("matching documents")
    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()


def test_tab_leaves_the_search_for_something_visible(visit: Open) -> None:
    page = visit("basics/vmap/").page
    search(page, "how do I stop a loop early")
    page.keyboard.press("Tab")
    expect(page.locator(".md-tabs__link").first).to_be_focused()


def test_workers_of_others_are_as_they_were(visit: Open) -> None:
    page = visit("basics/vmap/").page
    output = page.evaluate(
        """() => new Promise((done) => {
          const worker = new Worker(new URL("../../javascripts/find.js", location.href), { type: "module" });
          worker.onmessage = ({ data }) => done([worker instanceof Worker, data.items.length > 0]);
          worker.postMessage("vmap");
        })"""
    )
    assert output == [True, True]


def test_messages_of_materialx_are_answered_with_their_ids(visit: Open) -> None:
    """Its queries are in objects, and it waits for the answer that has the id of the last one."""
    page = visit("basics/vmap/").page
    answers = page.evaluate(
        """() => new Promise((done) => {
          const worker = new Worker("assets/javascripts/workers/search.js"), answers = [];
          worker.addEventListener("message", ({ data: { id, type, data } }) => {
            if (id === undefined) return; // that it is ready, which the other theme waits for
            answers.push([id, type, data?.query]);
            if (type === 1) for (const [id, query] of [[6, "vm"], [7, "vmap"]]) worker.postMessage({ id, type: 2, data: { query } });
            else if (data.query === "vmap") done(answers);
          });
          worker.postMessage({ id: 5, type: 0, data: {} });
        })"""
    )
    assert answers == [[5, 1, None], [7, 3, "vmap"]]


@pytest.mark.parametrize("view", [View("light", 1280), rarely(View("dark", 390))], ids=str)
def test_text_that_arrives_without_a_key_is_looked_up(view: View, visit: Open) -> None:
    page = visit("", view).page
    page.locator("label.md-header__button[for=__search]" if view.width < 600 else ".md-search__input").click()
    field = page.locator(".md-search__input")
    expect(field).to_be_focused()
    field.evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new InputEvent('input', { bubbles: true })); }",
        "TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].",
    )
    expect(sections(page).first).to_have_attribute("href", re.compile("#TracerBoolConversionError$"))


def test_enter_leads_to_the_first_result_and_its_section_is_named(visit: Open) -> None:
    page = visit().page
    first = search(page, "how do I stop a loop early").first
    expect(first).to_contain_text("stop a loop early")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/answers/loops/.*#early-exit$"))


@pytest.mark.parametrize("way", [rarely("click"), "keys"])
def test_the_large_title_of_a_result_leads_to_its_section(way: str, visit: Open) -> None:
    page = visit().page
    search(page, "how do I stop a loop early")
    title = page.locator(".md-search-result__item .live-search-heading").first
    expect(title).to_contain_text("Loops and conditions")
    if way == "click":
        title.click()
    else:
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/answers/loops/.*#early-exit$"))


def test_a_filter_without_rows_hands_over_to_the_search(visit: Open) -> None:
    page = visit("answers/").page
    page.get_by_label("Filter").fill("stop a loop earlier")
    page.get_by_role("button", name="Search the whole site for “stop a loop earlier”").click()
    expect(page.locator(".md-search__input")).to_have_value("stop a loop earlier")
    expect(sections(page).first).to_have_attribute("href", re.compile("#early-exit"))
    page.keyboard.press("Escape")
    page.get_by_label("Filter").fill("stop")
    expect(page.get_by_role("button", name="Search the whole site")).to_have_count(0)
    message = "jax.errors.ConcretizationTypeError: Abstract tracer value encountered where concrete value is expected"
    page.get_by_label("Filter").fill(message)
    page.get_by_role("button", name=f"Search the whole site for “{message[:40]}…”", exact=True).click()
    expect(page.locator(".md-search__input")).to_have_value(message)


def test_a_note_says_what_was_looked_up_and_goes_away(visit: Open) -> None:
    page = visit().page
    search(page, "vmpa")
    expect(page.locator(NOTE)).to_contain_text("“vmap”")
    page.locator(".md-search__input").fill("vmap")
    expect(page.locator(NOTE)).to_be_empty()


# --- what readers take along ----------------------------------------------------------------------------------------


def test_an_answer_is_copied_as_a_link_and_as_markdown(visit: Open) -> None:
    page = visit("answers/loops/?h=loop", permissions=["clipboard-read", "clipboard-write"]).page
    bar = page.locator(".live-copy").nth(1)
    bar.get_by_role("button", name="Copy link").click()
    expect(bar.get_by_role("button", name="Copy link")).to_have_text("Copied")
    expect(page.get_by_role("status").get_by_text("Copied to clipboard")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").endswith("/answers/loops/#traced-if")
    bar.get_by_role("button", name="Copy as Markdown").click()
    expect(bar.get_by_role("button", name="Copy as Markdown")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("## How do I write an if that depends on an array inside jit?\n\nUse `jnp.where`")
    assert "```python\nimport jax\n" in copied and "```text\n[-0.3  4. ] [-0.75  1.  ]\n```" in copied
    assert re.search(r"Run with jax [\d.]+, Python [\d.]+, cpu: http.*#traced-if\n$", copied)


def test_an_entry_of_the_error_dictionary_can_be_copied_too(visit: Open) -> None:
    page = visit("lookup/errors/").page
    expect(page.get_by_role("button", name="Copy link: TracerBoolConversionError")).to_be_attached()


def test_going_to_an_answer_without_a_reload_works_and_its_questions_are_described(visit: Open, folder: Path) -> None:
    page = visit("answers/").page
    page.get_by_role("link", name="Loops and conditions").last.click()
    page.wait_for_url("**/answers/loops/")
    expect(page.locator(".live-copy").first).to_be_attached()
    described = re.search(
        r'<script type="application/ld\+json">(.*?)</script>', (folder / "answers/loops/index.html").read_text()
    )
    assert described and len(json.loads(described[1])["mainEntity"]) >= 12


# --- the same from Python -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_programs_get_what_readers_get(ask: Ask, folder: Path) -> None:
    """The script of the site ranks for both: in Chromium, and in the process of `course.answers`."""
    queries = [*(record["query"] for record in QUERIES), *(pasted.pasted for pasted in all_pasted())]
    site = Site(folder)
    shown, reported = ask(queries), {query: site.find(query) for query in queries}
    found = {query: Found([hit.location for hit in reported[query].hits], reported[query].note) for query in queries}
    assert {query: found[query] for query in queries if found[query] != shown[query]} == {}
