"""Error messages, pasted into the search, find their entry of the dictionary."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Found
from tests.browser.reader import View, Visit
from tests.pasted import all_pasted


def test_a_pasted_message_finds_its_entry_first(ask: Callable[..., dict[str, Found]]) -> None:
    messages = {" ".join(message.pasted.split("\n")): message.entry for message in all_pasted()}
    assert len(messages) >= 200
    found = ask(list(messages))
    wrong = {query: (found[query], entry) for query, entry in messages.items() if found[query].sections[0] != entry}
    assert len(wrong) <= 0.05 * len(messages), wrong
    far = [query for query, entry in messages.items() if entry not in found[query].sections[:3]]
    assert len(far) <= 0.02 * len(messages), far


def test_a_traceback_of_many_lines_pasted_and_enter_lead_to_the_entry(visit: Callable[..., Visit]) -> None:
    message = next(message for message in all_pasted() if message.pasted.startswith("Traceback"))
    page = visit("", permissions=["clipboard-read", "clipboard-write"]).page
    page.evaluate("text => navigator.clipboard.writeText(text)", message.pasted)
    page.keyboard.press("/")
    expect(page.locator(".md-search__input")).to_be_focused()
    page.keyboard.press("Control+V")
    section = page.locator(".md-search-result__item").first.locator("a").first
    expect(section).to_have_attribute("href", re.compile(rf"#{message.entry.partition('#')[2]}$"))
    expect(section).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"/{message.entry.partition('#')[0]}[^#]*#{message.entry.partition('#')[2]}$"))


def test_a_traceback_within_a_message_is_not_taken_for_it(ask: Callable[..., dict[str, Found]]) -> None:
    message = """ValueError: Non-hashable static arguments are not supported. An error occurred while trying to hash an \
object of type <class 'equinox.nn._linear.Linear'>, Linear(weight=f32[3,2], bias=f32[3]). The error was:
Traceback (most recent call last):
  File "train.py", line 9, in <module>
  File "equinox/_module/_module.py", line 554, in __hash__
TypeError: unhashable type: 'jaxlib._jax.ArrayImpl'"""
    query = " ".join(message.split("\n"))
    assert ask([query])[query].sections[0] == "lookup/errors-arguments/#non-hashable-static"


def test_the_line_of_a_missing_key_leads_to_what_was_indexed(ask: Callable[..., dict[str, Found]]) -> None:
    queries = {
        """File "train.py", line 8 step = restored["step"] KeyError: 'step'""": "lookup/errors-libraries/#key-error",
        """File "train.py", line 8 print(samples["b"].mean()) KeyError: 'b'""": "lookup/errors-libraries/#key-error",
        """File "train.py", line 8 s = variables["batch_stats"] KeyError: 'batch_stats'""": (
            "lookup/errors-flax/#collection-not-found"
        ),
        "KeyError: 'batch_stats'": "lookup/errors-flax/#collection-not-found",
    }
    found = ask(list(queries))
    assert {query: (found[query].sections[0], found[query].note) for query in queries} == {
        query: (entry, "") for query, entry in queries.items()
    }


FAR = """() => [...document.querySelectorAll("article h2[id]:has(~ .live-result):not(#where-next)")].flatMap((heading) => {
  const words = [...document.querySelectorAll(`[id="${heading.id}"] ~ p`)][0];
  const away = words.getBoundingClientRect().top - heading.getBoundingClientRect().top;
  return away > innerHeight - 100 ? [heading.id] : [];
})"""  # the entries whose first sentence is out of sight where a link leads to their heading


def test_a_phone_shows_what_to_do_below_the_heading_of_an_entry(visit: Callable[..., Visit], folder: Path) -> None:
    page = visit("", View("light", 390)).page
    far = {}
    for file in sorted(folder.glob("lookup/errors*/index.html")):
        page.goto(f"{page.url.partition('lookup/')[0]}{file.parent.relative_to(folder)}/")
        page.add_style_tag(content="* { content-visibility: visible !important; }")
        far[file.parent.name] = page.evaluate(FAR)
    assert len(far) >= 12
    assert not any(far.values()), far
