"""Pages of questions: other wordings of each, for the search, and what search engines read of them.

A comment whose first line is ``asked`` has another wording in each further line: of the heading above it or, below the
title, of the question that the page answers.
"""

import html
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

_ASKED = re.compile(r"<!-- *asked *\n(.*?)-->\n?", re.DOTALL)
_HEADING = re.compile(r'<h([1-6]) id="([^"]*)"[^>]*>(.*?)</h\1>', re.DOTALL)
_PARAGRAPH = re.compile(r"\s*<p>(.*?)</p>", re.DOTALL)


@dataclass(frozen=True)
class Question:
    """A heading with other wordings: its id, its text, the wordings, and the paragraph after them, as HTML.

    The id is empty for the title of a page.
    """

    id: str
    text: str
    wordings: tuple[str, ...]
    answer: str


def take_questions(content: str) -> tuple[str, list[Question]]:
    """The HTML of a page without the comments that hold wordings, and the questions that they belong to."""
    headings = list(_HEADING.finditer(content))
    questions = []
    for comment in _ASKED.finditer(content):
        heading = next((heading for heading in reversed(headings) if heading.end() <= comment.start()), None)
        if heading:
            wordings = (html.unescape(line.strip()) for line in comment[1].splitlines())
            id_ = "" if heading[1] == "1" else heading[2]
            answer = _PARAGRAPH.match(content, comment.end())
            questions.append(
                Question(id_, _text(heading[3]), tuple(filter(None, wordings)), answer[1] if answer else "")
            )
    return _ASKED.sub("", content), questions


def linked_data(questions: Iterable[Question], url: str) -> str:
    """The questions and their answers as https://schema.org/FAQPage, for a script element; empty if there are none."""
    entities = [
        {
            "@type": "Question",
            "name": question.text,
            "acceptedAnswer": {
                "@type": "Answer",
                "text": re.sub(r"</?(a|span)\b[^>]*>", "", question.answer),
                **({"url": f"{url}#{question.id}"} if url else {}),
            },
        }
        for question in questions
        if question.id and question.text.endswith("?")
    ]
    if not entities:
        return ""
    data = json.dumps({"@context": "https://schema.org", "@type": "FAQPage", "mainEntity": entities})
    return data.replace("<", "\\u003c")


def _text(element: str) -> str:
    element = re.sub(r'<a [^>]*class="headerlink".*?</a>', "", element, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", element)).strip()
