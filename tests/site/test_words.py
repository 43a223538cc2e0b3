"""The count of words leaves out what is no prose."""

from tests.site.words import words

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
