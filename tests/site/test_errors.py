"""The error dictionary holds what it should, the tree leads to its entries, and what people paste is what jax says."""

import re
from pathlib import Path

import jax
import pytest
from message_tree import TREE, answer, entries

from livepages.source import find_project, read_page
from tests.pasted import Pasted, all_pasted, run

PROJECT = find_project(Path(__file__))
LIBRARIES = (
    "errors-equinox",
    "errors-flax",
    "errors-nnx",
    "errors-libraries",
    "errors-orbax",
    "errors-samplers",
    "errors-solvers",
)
# The tree is of messages of JAX: those of a library name what they are about.
PAGES = sorted(path.name for path in (PROJECT.docs / "lookup").glob("errors*.md") if path.stem not in LIBRARIES)


def dictionary() -> dict[str, str]:
    """The titles of the entries on messages of JAX, by page and anchor."""
    found = {}
    for name in PAGES:
        path = PROJECT.docs / "lookup" / name
        for section in read_page(path, PROJECT).sections:
            if section.level == 2 and section.anchor != "where-next":
                found[f"{name}#{section.anchor}"] = section.title
    return found


def test_every_class_of_errors_has_an_entry() -> None:
    named = set(re.findall(r"\w+", " ".join(dictionary().values())))
    classes = {name for name, value in vars(jax.errors).items() if isinstance(value, type)}
    assert len(classes) > 10
    assert classes - named == set()


def test_every_entry_is_once_in_the_tree_under_its_own_title() -> None:
    leaves = [leaf for question in TREE for leaf in entries(question)]
    assert len(leaves) == len(dict(leaves))
    assert dict(leaves) == dictionary()


def test_the_questions_lead_to_the_entry() -> None:
    wrong = {}
    messages = {message.pasted: message.entry.removeprefix("lookup/").replace("/", ".md") for message in all_pasted()}
    questions = {
        sentence: entry
        for pasted, entry in messages.items()
        # What was pasted from its middle has no class.
        if ("rror" in (sentence := pasted.rpartition("\n  File ")[2]) or "arning" in sentence) and entry in dictionary()
    }
    for sentence, entry in questions.items():
        question = answer(sentence)
        if not question or entry not in dict(entries(question)):
            wrong[sentence] = question and (question.text, question.found(sentence))
    # A name of the program that is quoted in its message may be a word of another question.
    assert len(wrong) <= 0.05 * len(questions), wrong


def test_a_name_in_quotes_leads_to_the_last_question() -> None:
    for message in ("'loss'", "KeyError: 'grads'", "KeyError: 'device'"):
        assert answer(message) is TREE[-1], message


def place_of(message: Pasted) -> str:
    """The page of the dictionary with the entry that a message must find, or "answers"."""
    folder, page, *_ = message.entry.split("/")
    return page if folder == "lookup" else folder


def plain(text: str) -> str:
    """A message without addresses in memory, and the folder that libraries lie in, and with single blanks."""
    text = re.sub(r"[^\s\"]+/site-packages/", "", re.sub(r"\b0x[0-9a-f]+", "0x", text))
    return " ".join(text.split())


@pytest.mark.parametrize("place", sorted({place_of(message) for message in all_pasted()}))
def test_pasted_messages_are_those_of_jax(place: str) -> None:
    messages = [message for message in all_pasted() if place_of(message) == place and message.jax == jax.__version__]
    if not messages:
        pytest.skip(f"none of its messages was taken from jax {jax.__version__}")
    output = run([message.program for message in messages])
    wrong = {}
    for message, text in zip(messages, output, strict=True):
        without_class = re.sub(r"^[\w.]+(Error|Warning): ", "", message.pasted)
        if plain(without_class) not in plain(text):
            wrong[message.pasted] = text
    assert wrong == {}
