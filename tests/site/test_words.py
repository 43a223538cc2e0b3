"""The count of words leaves out what is no prose, and no page of the course is long."""

from statistics import median

from tests.site.words import course_pages, words

PAGE = """\
---
description: "Front matter."
---

# A title { #title }

<!-- asked
not read
-->

Two words. The `code of a span` is one, [a link](to/a/page.md#part) two, `{python} f"{x:.2f}"` one.

```python
no = "prose"
```

$$
x = 1
$$

??? success "Solution"
    A sentence here.

    ```python
    x
    ```

| a table | has <span id="words"></span>cells |
|---|---|
"""


def test_what_is_read_as_prose_is_counted() -> None:
    # the title 2, the paragraph 11, the solution 2 and 3, the table 4
    assert words(PAGE) == 22
    assert words("`{:.2f}` and `<b>` are code.") == 5


def test_no_page_of_the_course_is_long() -> None:
    counted = course_pages()
    long = {name: count for name, count in counted.items() if count > 1600}
    assert not long, "ask one question a page: move the second one to a page of its own"
    assert len(counted) > 70 and median(counted.values()) <= 1100
