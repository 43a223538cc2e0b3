"""Sites written for markdown-exec, to which one line was added: what they show, what fails, and what runs again."""

import html
import re
import subprocess
from pathlib import Path

import pytest

from livepages.execution import Runner
from tests.conftest import Site
from tests.prepared import Commands

CONFIG = """\
site_name: Kettle
theme: {name: mkdocs, locale: en}
plugins: [markdown-exec, livepages]
hooks: [macros.py]
markdown_extensions:
- admonition
- attr_list
- md_in_html
- pymdownx.superfences
- pymdownx.snippets: {base_path: [".", parts], check_paths: true}
- pymdownx.tabbed: {alternate_style: true}
"""
# As the macros plugin does, but that it is called a hook.
MACROS = """\
import re


def on_page_markdown(markdown, **_):
    return re.sub(r"{{ (.+?) }}", r'```python exec="on"\\nprint("made of *\\1*")\\n```', markdown)
"""
PAGE = """\
---
title: Tea
timeout: a while
---

# Tea

```python exec="on"
print("**bold** and `code`")
print("\\n## A heading\\n\\nText.")
```

Only shown:

```python
brew(without_running)
```

```python exec="on" session="pot" source="above" result="text"
--8<-- "kettle.py"
cups = 3
print(cups, boil())
```

- In a list:

    ```py exec="1" session="pot" source="tabbed-left" result="python" tabs="Code|What it prints" title="t.py"
    cups += 1  # markdown-exec: hide
    print(cups)
    ```

!!! note

    ```pycon exec="yes" source="console" result="pycon"
    >>> y = 4
    >>> print(y, "cups" in globals(), __name__ == "__main__")
    ```

```python exec="on" html="true" source="below"
print("<b>a &amp; b</b>")
```

````md exec="on" source="tabbed-right"
```python exec="on" idprefix="in-"
print("nested\\n\\n### Below")
```
````

```python exec="on" session="pot" id="last" returncode="3" width="50" workdir="docs" updatetoc="no" result="text"
import os
print(cups, os.environ["COLUMNS"], sorted(os.listdir()))
```

```python exec="no"
never
```

```python exec="on" result="ansi" source="block" any="attribute"
print("\\x1b[31mred\\x1b[0m")
```

{{ leaves }}

```python exec="on" session="prints a fence"
print('~~~~python exec="on"\\nprint(1)\\n~~~~' if False else "text")
```
"""


class Kettle(Site):
    """A site on which markdown-exec alone does all."""

    commands: Commands

    def build(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.commands.run("mkdocs", "build", *arguments, folder=self.root)

    def text(self, name: str = "index.html", site: str = "site") -> str:
        """The page's own HTML."""
        html = (self.root / site / name).read_text(encoding="utf-8")
        found = re.search(r'role="main">(.*?)</div>\s*</div>\s*</div>\s*<footer', html, re.DOTALL)
        assert found
        return found[1]


@pytest.fixture
def kettle(tmp_path: Path, runner: Runner, commands: Commands) -> Kettle:
    site = Kettle(tmp_path, runner)
    (tmp_path / "pyproject.toml").unlink()
    site.commands = commands
    site.write("mkdocs.yml", CONFIG)
    site.write("macros.py", MACROS)
    site.write("parts/kettle.py", "def boil():\n    return 'boiled'\n")
    site.write("docs/index.md", PAGE)
    return site


def test_one_line_more_gives_the_same_pages(kettle: Kettle) -> None:
    kettle.write("alone.yml", CONFIG.replace(", livepages", ""))
    alone = kettle.build("--config-file", "alone.yml", "--site-dir", "alone")
    done = kettle.build("--strict")
    assert (alone.returncode, done.returncode) == (0, 0), alone.stderr + done.stderr
    assert kettle.text() == kettle.text(site="alone")
    shown = kettle.text()
    for expected in ("<strong>bold</strong>", "3 boiled", "4 False False", "made of <em>leaves</em>", "brew", "never"):
        assert expected in re.sub(r"<(?!strong|/strong|em|/em)[^>]*>", "", shown)


@pytest.mark.parametrize("base", ["!relative", "!relative $docs_dir/cups", "!relative $config_dir/docs/cups"])
def test_includes_are_found_where_mkdocs_looks(kettle: Kettle, base: str) -> None:
    kettle.write("mkdocs.yml", CONFIG.replace('[".", parts]', f"[{base} ]"))
    kettle.write("docs/cups/cup.py", "print(6 * 7)\n")
    kettle.write("docs/cups/index.md", '# Cups\n\n```python exec="on"\n--8<-- "cup.py"\n```\n')
    kettle.write("docs/index.md", "# Tea\n")
    done = kettle.build("--strict")
    assert done.returncode == 0 and "42" in kettle.text("cups/index.html"), done.stderr


def test_nothing_unchanged_runs_again_whoever_made_it(kettle: Kettle) -> None:
    kettle.write("docs/index.md", PAGE + '```python exec="on"\nimport os\nprint(os.getpid())\n```\n')
    kettle.build()
    shown = kettle.text()
    kettle.build()
    assert kettle.text() == shown and "made of" in shown
    kettle.write("parts/kettle.py", "def boil():\n    return 'bubbling'\n")
    kettle.build()
    assert "bubbling" in kettle.text() != shown.replace("boiled", "bubbling")


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('```python exec="on"\nx = 1\ny = x / 0\n```\n', "docs/index.md:5: block of line 3: raised ZeroDivisionError"),
        (
            '```python exec="on" session="a"\n--8<-- "bad.py"\n```\n',
            "docs/index.md:4: block of line 3: raised NameError",
        ),
        ('{{ no" + 1 / 0 + " }}\n', "docs/index.md:3: block of line 3: raised ZeroDivisionError"),
        ('```python exec="on" timeout="soon"\n```\n', "docs/index.md:3: option timeout is a number of seconds"),
        ('```python exec="on" rases="E"\n```\n', "docs/index.md:3: unknown option 'rases'; did you mean 'raises'?"),
        ('```python exec="on" sorce="above"\n```\n', "docs/index.md:3: unknown option 'sorce'; did you mean 'source'?"),
        ('```pyhton exec="on"\nx = 1\n```\n', "docs/index.md:3: the pyhton fence is not run; did you mean 'python'?"),
        ('```python exec="on"\nx = 1\n', "docs/index.md:3: the fence is not closed"),
        (
            '```python excec="on"\nx = 1\n```\n',
            "docs/index.md:3: the fence is not run: unknown option 'excec'; did you",
        ),
        (
            '```python execute="on"\nx = 1\n```\n',
            "docs/index.md:3: the fence is not run: unknown option 'execute'; did you",
        ),
        ("> ```py result='text' exce='1' title='T'\n> x = 1\n> ```\n", "unknown option 'exce'; did you mean 'exec'?"),
        (
            '```python exec="on" width="wide"\nx = 1\n```\n',
            "docs/index.md:3: the fence is not run: options width and re",
        ),
        ('```python exec="on" source="top"\nx = 1\n```\n', "docs/index.md:3: option source is one of above, below, "),
        ('```{.python Exec="on"}\nx = 1\n```\n', "docs/index.md:3: the fence is not run: unknown option 'Exec'; did"),
        ("```python exec=on\nx = 1\n```\n", "docs/index.md:3: not a fence as Markdown has them: ```python exec=on"),
        ('```python exec="on" workdir="no"\n```\n', "docs/index.md:3: block of line 3: raised FileNotFoundError"),
        ('```pycon exec="on"\n>>> x = 1\n1\n>>> x / 0\n```\n', "docs/index.md:6: block of line 3: raised ZeroDivision"),
        (
            '````md exec="on"\n\n```python exec="on"\n1 / 0\n```\n````\n',
            "docs/index.md:6: block of line 5: raised Zero",
        ),
    ],
)
def test_a_failure_ends_the_build_with_page_and_line(kettle: Kettle, text: str, output: str) -> None:
    kettle.write("parts/bad.py", "no_such_name\n")
    kettle.write("docs/index.md", "# Tea\n\n" + text)
    done = kettle.build("--quiet")
    assert done.returncode == 1 and output in done.stderr and not (kettle.root / "site/index.html").exists(), (
        done.stderr
    )


def test_all_that_fails_is_listed_at_once(kettle: Kettle) -> None:
    kettle.write("docs/index.md", '# Tea\n\n```python exec="on"\n1 / 0\n```\n')
    kettle.write("docs/other.md", '# Cup\n\n```python exec="on" sorce="above"\n1\n```\n')
    told = kettle.build("--quiet").stderr
    assert "docs/index.md:4: block of line 3: raised ZeroDivisionError" in told and "unknown option 'sorce'" in told
    assert "2 failed, as listed above" in told


def test_tracebacks_name_blocks_and_their_lines_as_markdown_exec_does(kettle: Kettle) -> None:
    block = "```python exec='on' session='a' source='above' raises='ZeroDivisionError'\n{}\n```\n\n"
    first = "import inspect\ndef f():\n    return 1 / 0\n\nf()"
    kettle.write("docs/index.md", "# Tea\n\nText.\n\n" + block.format(first) + block.format("y = 1\nf()"))
    pattern = r'File "(<code block: [^"]*>)", line (\d+)'
    shown = []
    for _ in range(2):  # as markdown-exec alone lays them out, too
        kettle.build("--quiet")
        shown.append(re.findall(pattern, html.unescape(re.sub("</?span[^>]*>", "", kettle.text()))))
        kettle.write("mkdocs.yml", CONFIG.replace(", livepages", ""))
    assert shown[0] == shown[1] and len(shown[0]) == 4, shown
    kettle.write("mkdocs.yml", CONFIG)
    kettle.write("docs/index.md", "# Tea\n\n```python exec='on'\n1\n```\n\n```python exec='on'\nx = 1\nx +\n```\n")
    told = kettle.commands.run("livepages", "run", folder=kettle.root).stdout
    assert "docs/index.md:9: block of line 7: raised SyntaxError" in told
    assert re.findall(pattern, told) == [("<code block: n2>", "2")]


def test_functions_and_classes_have_their_source(kettle: Kettle) -> None:
    block = "```python exec='on' session='a' result='text'\n{}\n```\n\n"
    first = "import inspect\ndef f():\n    return 7\n\nclass C:\n    a = 5"
    kettle.write(
        "docs/index.md",
        "# Tea\n\n" + block.format(first) + block.format("print(inspect.getsource(f), inspect.getsource(C))"),
    )
    assert kettle.build("--quiet").returncode == 0
    shown = re.sub("<[^>]*>", "", kettle.text())
    assert "def f():\n    return 7" in shown and "class C:\n    a = 5" in shown


def test_what_only_looks_like_a_fence_that_runs_is_left_alone(kettle: Kettle) -> None:
    kettle.write(
        "docs/index.md",
        '# Tea\n\n````md\n```pyhton exec="on"\n```\n```python exce="on"\n```\n````\n\n'
        '```{.python .annotate title="exce=on" linenums="1" hl_lines="1" expect="on"}\nx = 1\n```\n\n'
        '```python excec="off"\nx = 1\n```\n\n```bash excec="on"\ntrue\n```\n\n'
        '-\tA tab:\n\n\t```python exec="on" color="red"\n\tprint("in" + "side")\n\t```\n\n```pyhton exec="off"\nx\n\n```bash exec="on"\necho\n',
    )
    done = kettle.build("--quiet")
    assert done.returncode == 0 and "inside" in kettle.text(), done.stderr


def test_a_failure_leaves_the_site_as_it_was(kettle: Kettle) -> None:
    """MkDocs empties the folder of the site before markdown-exec's blocks are found to have failed."""
    kettle.build()
    site = kettle.root / "site"
    before = {file: file.read_bytes() for file in site.rglob("*") if file.is_file()}
    kettle.write("docs/index.md", '# Tea\n\n```python exec="on"\n1 / 0\n```\n')
    done = kettle.build("--strict")
    assert done.returncode == 1 and "; the site is as it was" in done.stderr, done.stderr
    assert {file: file.read_bytes() for file in site.rglob("*") if file.is_file()} == before
    kettle.write("docs/index.md", "# Tea, again\n")
    assert kettle.build("--strict").returncode == 0
    assert "Tea, again" in kettle.text() and not list(site.glob(".*"))


def test_an_error_that_is_expected_is_shown(kettle: Kettle) -> None:
    kettle.write(
        "docs/index.md",
        '# Tea\n\n```python exec="on" raises="ValueError" match="^cold"\nraise ValueError("cold")\n```\n',
    )
    assert kettle.build("--strict").returncode == 0
    assert "ValueError: cold" in re.sub("<[^>]*>", "", kettle.text())


def test_a_session_that_ends_its_process_leaves_the_others(kettle: Kettle) -> None:
    blocks = ["x = 1", "import os; os._exit(3)", "print('other', x)"]
    fences = (f'```python exec="on" session="{name}"\n{code}\n```\n' for name, code in zip("aba", blocks, strict=True))
    page = kettle.read(kettle.write("docs/index.md", "# Tea\n\n" + "\n".join(fences)))
    run = kettle.engine.run([page])[page.path]
    assert [failure.line for failure in run.failures] == [7]
    assert run.outcomes[2].stdout == "other 1\n"


def test_a_fence_that_a_block_prints_is_shown_and_does_not_run(kettle: Kettle) -> None:
    printed = '~~~python exec="on"\\nopen("ran", "w")\\n~~~'
    kettle.write("docs/index.md", f"# Tea\n\n```python exec=\"on\"\nprint('{printed}')\n```\n")
    assert kettle.build("--strict").returncode == 0
    assert "open(" in re.sub("<[^>]*>", "", kettle.text()) and not (kettle.root / "ran").exists()


def test_pages_in_plain_pytest_are_the_same_programs(kettle: Kettle) -> None:
    done = kettle.commands.run("livepages", "run", "docs/index.md", folder=kettle.root)
    assert done.returncode == 0 and "9 blocks" in done.stdout + done.stderr, done.stdout + done.stderr


def test_a_table_need_not_repeat_the_folder_of_the_pages(kettle: Kettle) -> None:
    kettle.write("mkdocs.yml", CONFIG + "docs_dir: docs/source\n")
    kettle.write("docs/source/index.md", '# Tea\n\n```python exec="on"\nprint(6 * 7)\n```\n')
    kettle.write("pyproject.toml", "[tool.livepages]\ntimeout = 50\n")
    done = kettle.build("--strict")
    assert done.returncode == 0 and "42" in kettle.text(), done.stderr
    run = kettle.commands.run("livepages", "run", folder=kettle.root)
    assert run.returncode == 0 and "docs/index.md" not in run.stdout, run.stdout


def test_a_site_none_of_whose_fences_runs_gets_a_hint(kettle: Kettle) -> None:
    reported = (
        '0 of 2 Python fences run; write exec="on" on those that should, or fences = "all" under [tool.livepages]'
    )
    kettle.write("docs/index.md", "# Tea\n\n```python\nx = 1\n```\n\n- In a list:\n\n    ```py\n    y\n    ```\n")
    assert reported in kettle.build().stderr
    assert reported in kettle.commands.run("livepages", "run", folder=kettle.root).stdout
    kettle.write("docs/more.md", "# More\n\n{{ leaves }}\n")  # of which a hook makes a block
    assert "Python fences run" not in kettle.build("--strict").stderr


VALUES = """# Tea

```python exec="on" session="pot"
cups = 3
```

## With `{python} cups` cups { #cups }

Pour `{python} cups`, or `{python} "<b>"`, not `` `{python} cups` ``.
"""


def test_prose_shows_inline_expressions_where_the_site_asks_for_them(kettle: Kettle) -> None:
    kettle.write("docs/index.md", VALUES)
    assert kettle.build("--strict").returncode == 0
    assert "<code>{python} cups</code>" in kettle.text()
    kettle.write("pyproject.toml", '[tool.livepages]\nfences = "exec"\ninline_expressions = true\n')
    done = kettle.build("--strict")
    assert done.returncode == 0, done.stderr
    value = '<span class="live-inline">{}</span>'.format
    assert f"Pour {value(3)}, or {value('&lt;b&gt;')}, not <code>`{{python}} cups`</code>." in kettle.text()
    html = (kettle.root / "site/index.html").read_text(encoding="utf-8")
    assert re.search(r'<a href="#cups"[^>]*>With 3 cups</a>', html)
    kettle.write("docs/index.md", VALUES.replace("cups = 3", "mugs = 3"))
    assert "docs/index.md:7: `{python} cups`: raised NameError" in kettle.build("--quiet").stderr
