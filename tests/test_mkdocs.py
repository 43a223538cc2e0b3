"""Whole builds, as authors and readers meet them; and the faults of plain markdown-exec, which must not happen here.

Most are processes forked from one that has imported MkDocs. Those that prove something about what is imported, about
hash seeds, about several processes at once or about signals begin anew, as authors' do.
"""

import contextlib
import html
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from livepages.execution import Runner
from tests.conftest import HANG, Event, Site, process_ends
from tests.prepared import Commands, finding

CONFIG = """\
site_name: Test
site_url: http://127.0.0.1/
theme: {name: mkdocs, locale: en}
plugins: [livepages]
markdown_extensions: [admonition, pymdownx.highlight, pymdownx.superfences, livepages]
"""


class Book(Site):
    """A site on plain Python, whose processes begin sooner; and what builds it."""

    commands: Commands

    def on_jax(self) -> None:
        """Let pages run on JAX."""
        self.write("pyproject.toml", '[tool.livepages]\nruntime = "jax"\ntimeout = 30\n')


@pytest.fixture
def book(tmp_path: Path, runner: Runner, commands: Commands) -> Book:
    """A site of two pages."""
    site = Book(tmp_path, runner)
    site.commands = commands
    site.write("pyproject.toml", "[tool.livepages]\ntimeout = 30\n")
    site.write("mkdocs.yml", CONFIG)
    site.write("docs/index.md", "# One\n\n```python\nprint('one', 1 + 1)\n```\n")
    site.write("docs/two.md", "# Two\n\n```python\nx = 2\n```\n\n```python\nprint('two', x)\n```\n")
    return site


def mkdocs(site: Book, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run MkDocs, in a new process if an environment is given."""
    if environment is None:
        return site.commands.run("mkdocs", *arguments, folder=site.root)
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments],
        cwd=site.root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def build(site: Book, *arguments: str, environment: dict[str, str] | None = None) -> str:
    done = mkdocs(site, "build", "--strict", *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


def pages(site: Site) -> dict[str, str]:
    """Every page of the built site, without what differs from run to run and is marked so."""
    folder = site.root / "site"
    return {
        file.relative_to(folder).as_posix(): re.sub(
            r"<span data-live-volatile>[^<]*</span>|Build Date UTC : [^\n]*", "", file.read_text()
        )
        for file in folder.rglob("*.html")
    }


def test_a_build_shows_the_outputs_of_a_run(book: Book) -> None:
    output = build(book)
    assert "2 pages, 3 Python blocks: 3 run now, 0 unchanged, 0 not run" in output
    assert "<code>one 2</code>" in pages(book)["index.html"]
    assert "<code>two 2</code>" in pages(book)["two/index.html"]


HOOK = """\
from pathlib import Path

def on_env(env, config, files):
    Path(config.site_dir).mkdir(exist_ok=True)
    Path(config.site_dir, "llms-full.txt").write_text("of a hook")
"""


def test_a_file_of_the_author_is_never_replaced(book: Book) -> None:
    own = ["llms.txt", "feed.xml", "live-index.py", "live-kernel.py", "two/live-two.ipynb", "assets/livepages/live.css"]
    for name in own:
        book.write(f"docs/{name}", "of the author")
    book.write("mkdocs.yml", f"{CONFIG}hooks: [hook.py]\n")
    book.write("hook.py", HOOK)

    def kept(output: str, names: list[str]) -> None:
        [line] = [line for line in output.splitlines() if "the site has its own: " in line]
        assert sorted(line.rpartition(": ")[2].split(", ")) == sorted(names)
        assert {(book.root / "site" / name).read_text() for name in own} == {"of the author"}

    kept(build(book), [*own, "llms-full.txt"])
    assert (book.root / "site/llms-full.txt").read_text() == "of a hook"
    assert "print('two', x)" in (book.root / "site/two/live-two.py").read_text()
    kept(book.commands.run("livepages", "export", "site", folder=book.root).stdout, own)
    book.write("docs/two.md", "# Two\n\n```python\nx = 3\n```\n")
    kept(book.commands.run("livepages", "export", "site", folder=book.root).stdout, own)
    assert "x = 3" in (book.root / "site/two/live-two.py").read_text()


def test_a_build_without_a_change_runs_nothing_and_does_not_import_jax(book: Book) -> None:
    book.on_jax()
    without_jax = finding(book.root / "trap")
    armed = book.root.with_name(f"{book.root.name}-armed")
    book.write(
        "trap/sitecustomize.py", f"import os, sys\nif os.path.exists({str(armed)!r}):\n    sys.modules['jax'] = None\n"
    )
    build(book, environment=without_jax)
    before = pages(book)
    armed.touch()
    assert "0 run now, 3 unchanged" in build(book, environment=without_jax)
    assert pages(book) == before
    book.write(
        "docs/index.md", "# One\n\nA word.\n\n```python title='T'\nprint('one', 1 + 1)\n```\n".replace("'T'", '"T"')
    )
    assert "0 run now, 3 unchanged" in build(book, environment=without_jax)


def test_pages_of_one_text_show_each_its_own_output(book: Book) -> None:
    book.on_jax()
    text = "# T\n\n```python\nimport jax.numpy as jnp\nprint(jnp.ones(1).dtype)\n```\n"
    book.write("docs/index.md", text)
    book.write("docs/two.md", f"---\nx64: true\n---\n{text}")
    build(book)
    assert "<code>float32</code>" in pages(book)["index.html"]
    assert "<code>float64</code>" in pages(book)["two/index.html"]


def test_a_change_of_code_runs_that_page_alone(book: Book) -> None:
    build(book)
    book.write("docs/index.md", "# One\n\n```python\nprint('one', 1 + 2)\n```\n")
    output = build(book)
    assert "1 run now, 2 unchanged" in output and "ran docs/index.md" in output and "two.md" not in output


def test_two_cold_builds_give_the_same_bytes(book: Book) -> None:
    book.on_jax()
    book.write(
        "docs/two.md",
        "# Two\n\n```python\nimport jax.numpy as jnp\nprint(jnp.arange(3.0), {'b', 'a', 'c'}, hash('x'))\n```\n",
    )
    built = []
    for _ in range(2):
        assert not book.commands.run("livepages", "clean", folder=book.root).returncode
        build(book, environment={})  # with another hash seed
        built.append(pages(book))
    assert built[0] == built[1]


def test_two_builds_at_once_do_not_disturb_each_other(book: Book) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d"]
    running = [subprocess.Popen([*command, f"site-{n}"], cwd=book.root) for n in range(2)]
    assert [process.wait(timeout=HANG) for process in running] == [0, 0]
    first, second = ((book.root / f"site-{n}/two/index.html").read_text() for n in range(2))
    assert "<code>two 2</code>" in first and "<code>two 2</code>" in second


def test_a_page_saved_while_the_build_runs_is_shown_as_it_ran(book: Book) -> None:
    file = book.root / "docs" / "two.md"
    again = file.read_text().replace("x = 2", "x = 3")
    book.write(
        "docs/index.md",
        f"# One\n\n```python\nfrom pathlib import Path\nPath({str(file)!r}).write_text({again!r})\n```\n",
    )
    build(book)
    assert "<code>two 2</code>" in pages(book)["two/index.html"]


def test_a_build_writes_the_other_forms_and_the_command_line_writes_the_same(book: Book) -> None:
    book.write("mkdocs.yml", f"{CONFIG}nav: [index.md, two.md]\n")
    build(book)
    forms = {
        file: file.read_text()
        for name in ("*.md", "*.py", "*.ipynb", "*.txt")
        for file in (book.root / "site").rglob(name)
    }
    folder = book.root / "site"
    assert {
        folder / name for name in ("two/live-two.py", "two/live-two.ipynb", "two/index.md", "live-index.py", "llms.txt")
    } <= forms.keys()
    for file in forms:
        file.unlink()
    assert not book.commands.run("livepages", "export", "site", folder=book.root).returncode
    assert {file: file.read_text() for file in forms} == forms
    refused = book.commands.run("livepages", "export", "docs", folder=book.root)
    assert refused.returncode == 2 and "holds no HTML of docs/index.md" in refused.stderr
    book.write("docs/two.md", "# Two\n\n```python\nundefined\n```\n")
    failed = book.commands.run("livepages", "export", "site", folder=book.root)
    assert failed.returncode == 1 and "docs/two.md:4" in failed.stdout
    for name in ("index", "two"):
        book.write(f"docs/{name}.md", "---\nrequires: [no-such-thing]\n---\n# T\n\n```python\n1\n```\n")
    done = mkdocs(book, "build")
    assert done.returncode == 1
    for name in ("index", "two"):
        assert f"docs/{name}.md:2: requires: no-such-thing is not installed" in done.stderr


# --- the faults of plain markdown-exec -----------------------------------------------------------------------------


@pytest.mark.parametrize("quiet", [[], ["-q"]])
@pytest.mark.parametrize("strict", [[], ["--strict"]])
def test_failures_are_named_with_page_and_line_and_end_the_build(
    book: Book, quiet: list[str], strict: list[str]
) -> None:
    build(book)
    before = pages(book)
    book.write("docs/index.md", "# One\n\n```python\na = 1\na / 0\n```\n")
    book.write("docs/two.md", "# Two\n\n```python\n{}['k']\n```\n\n```python nonsense='1'\n```\n")
    book.write("docs/three.md", "# Three\n\n```python\n{}['k']\n```\n\n```python isolated='on'\nundefined\n```\n")
    done = mkdocs(book, "build", *strict, *quiet)
    assert done.returncode == 1
    for line in ("docs/index.md:5: ", "docs/two.md:7: ", "docs/three.md:4: ", "docs/three.md:8: "):
        assert line in done.stderr
    assert "Traceback" not in done.stderr.replace('Traceback (most recent call last):\n      File "', "")
    assert pages(book) == before


def test_a_renamed_page_is_found_at_its_old_address(book: Book) -> None:
    book.write("docs/two.md", "---\nredirect_from: [old/deep.md, was.md]\n---\n\n# Two & three\n")
    build(book)
    for name, address in (("old/deep/index.html", "../../two/"), ("was/index.html", "../two/")):
        old = pages(book)[name]
        assert f'content="0; url={address}"' in old and "Two &amp; three" in old
    book.write("docs/two.md", "---\nredirect_from: [index.md]\n---\n\n# Two\n")
    done = mkdocs(book, "build")
    assert done.returncode == 1
    assert "docs/two.md:1: redirect_from: docs/index.md is already at the address of index.md" in done.stderr


def test_a_renamed_page_is_found_at_its_old_address_where_markdown_exec_shows_it(book: Book) -> None:
    book.write("mkdocs.yml", CONFIG.replace("[livepages]", "[markdown-exec, livepages]"))
    book.write("docs/index.md", '# One\n\n```python exec="on"\nprint(1)\n```\n')
    book.write("docs/two.md", "---\nredirect_from: [was.md]\n---\n\n# Two\n")
    build(book)
    assert 'content="0; url=../two/"' in pages(book)["was/index.html"]
    book.write("docs/two.md", "---\nredirect_from: [index.md]\n---\n\n# Two\n")
    done = mkdocs(book, "build")
    assert done.returncode == 1
    assert "1 failed, as listed above; the redirects of these pages were not written" in done.stderr


def test_a_link_to_the_old_name_of_a_page_is_answered_with_the_new_one_once(book: Book) -> None:
    book.write("docs/old/deep.md", "# Another\n")
    book.write("docs/two.md", "---\nredirect_from: [deep.md]\n---\n\n# Two\n\n## Part {#part}\n")
    book.write("docs/index.md", "# Home\n\n[One](deep.md#part), [again](deep.md), [neither](gone.md)\n")
    book.write("docs/third.md", "---\nredirect_from: [index.md]\n---\n\n[Home](index.md#gone)\n")
    book.write("mkdocs.yml", CONFIG + "validation: {anchors: warn}\n")
    done = mkdocs(book, "build", "--strict")
    assert done.returncode == 1
    assert "'third.md' contains a link 'index.md#gone', but the doc 'index.md' does not contain" in done.stderr
    reported = (
        "'index.md' contains a link 'deep.md#part', but deep.md is now two.md: write 'two.md#part', in other links"
    )
    assert reported in done.stderr and done.stderr.count("is now two.md") == 1
    assert "contains a link 'gone.md', but the target is not found" in done.stderr


@pytest.mark.parametrize("plugins", ["livepages", "markdown-exec, livepages"])
def test_two_pages_at_one_address_are_a_failure(book: Book, plugins: str) -> None:
    book.write("mkdocs.yml", f"site_name: T\nplugins: [{plugins}]\nmarkdown_extensions: [pymdownx.superfences]\n")
    book.write("docs/two/index.md", "# Another\n")
    book.write("docs/README.md", "# Not built beside index.md\n")
    done = mkdocs(book, "build")
    checked = book.commands.run("livepages", "check", folder=book.root)
    reported = "docs/two.md:1: this page and docs/two/index.md are both built to two/index.html; rename one of them"
    for output, status in ((done.stderr, done.returncode), (checked.stdout, checked.returncode)):
        assert status == 1 and reported in output and output.count("are both built") == 1, output


LINKS = """\
---
title: One
---

The text (gone.txt is one) of a link [in code](gone.md) stands below.

```text
[in code](gone.md), [once](once.md)
```

--8<-- "part.txt"

A link [once](once.md "title") and ![a picture](<no picture.png>), [by name][name],
[to a section](two.md#none).

[name]: named.md
"""


@pytest.mark.parametrize("plugins", ["livepages", "markdown-exec, livepages"])
def test_a_dead_link_is_reported_with_its_line(book: Book, plugins: str) -> None:
    extensions = "markdown_extensions: [pymdownx.superfences, pymdownx.snippets: {base_path: [snippets]}]\n"
    book.write("mkdocs.yml", f"site_name: T\nplugins: [{plugins}]\n{extensions}validation: {{anchors: warn}}\n")
    book.write("snippets/part.txt", "Some text.\n\nA [part](part.md).\n")
    book.write("docs/index.md", LINKS)
    done = mkdocs(book, "build", "--strict")
    found = re.findall(r"docs/index.md:(\d+): Doc file 'index.md' contains a link '(.*?)'", done.stderr)
    links = {"gone.md": 5, "part.md": 11, "once.md": 13, "no picture.png": 13, "named.md": 16, "two.md#none": 14}
    assert done.returncode == 1 and {link: int(line) for line, link in found} == links, done.stderr


def test_a_link_to_a_page_that_was_there_is_answered_with_redirect_from(book: Book) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b", *arguments], cwd=book.root, check=True)

    book.write("docs/plain.md", "# Plain\n")
    git("init", "-q")
    git("add", "docs/plain.md")
    git("commit", "-qm", "Add a page")
    assert book.commands.run("livepages", "record", "--host", "cpu", folder=book.root).returncode == 0
    for name in ("two", "plain"):
        (book.root / f"docs/{name}.md").rename(book.root / f"docs/new-{name}.md")
    links = "[One](two.md#part), [another](plain.md), [never](gone.md), [outside](../two.md)\n"
    book.write("docs/index.md", f"# Home\n\n{links}")
    done = mkdocs(book, "build", "--strict")
    assert done.returncode == 1
    reported = re.findall(
        r"contains a link '([^']*)'.*There was such a page: .* write `redirect_from: \[(.*?)\]`", done.stderr
    )
    assert reported == [("two.md#part", "two.md"), ("plain.md", "plain.md")]


PLAIN = """\
# One

1.  In a list:

    ```python
    print("listed")
    ```

> ```python
> print("quoted")
> ```

```python title="t.py" hl_lines="1" linenums="1"
print("titled")
```
"""


@pytest.mark.parametrize("extensions", ["", "pymdownx.superfences, pymdownx.highlight: {use_pygments: false}"])
def test_code_is_shown_as_code_whatever_of_fences_the_markdown_of_a_site_takes(book: Book, extensions: str) -> None:
    book.write("mkdocs.yml", f"site_name: Test\nplugins: [livepages]\nmarkdown_extensions: [{extensions}]\n")
    book.write("docs/index.md", PLAIN)
    done = mkdocs(book, "build", "--strict")
    assert done.returncode == 0, done.stderr
    shown = (book.root / "site/index.html").read_text()
    for word in ("listed", "quoted", "titled"):
        code = [text for text in re.findall("<pre.*?</pre>", shown, re.DOTALL) if "print" in text and word in text]
        assert len(code) == 1 and f"<code>{word}</code></pre>" in shown, shown
    assert "<p><code>python" not in shown and shown.count("t.py") == 1
    assert shown.count('<code class="language-python">') == 3  # for the theme's script, which colors it


def test_a_site_whose_markdown_makes_no_tabs_is_told_which_extension_does(book: Book) -> None:
    book.write("docs/index.md", '# One\n\n```python source="tabbed-left"\nprint(1)\n```\n')
    done = mkdocs(book, "build")
    assert done.returncode == 1, done.stderr
    assert "docs/index.md:3: " in done.stderr and "add pymdownx.tabbed to markdown_extensions" in done.stderr
    book.write("mkdocs.yml", CONFIG.replace("admonition", "pymdownx.tabbed"))
    assert mkdocs(book, "build").returncode == 0


def test_a_figure_without_words_is_shown_with_what_it_needs(book: Book) -> None:
    book.write("docs/two.md", "# Two\n\n```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n```\n")
    served = Served(book)
    try:
        shown = served.wait("/two/", "a figure needs alt")
        assert "<svg" in shown.partition("a figure needs alt")[2]
    finally:
        served.end()
    assert mkdocs(book, "build", "--strict").returncode == 1


def test_names_and_settings_do_not_leak_from_page_to_page(book: Book) -> None:
    book.on_jax()
    book.write("docs/a.md", "# A\n\n```python\nimport jax\njax.config.update('jax_enable_x64', True)\nleak = 1\n```\n")
    book.write(
        "docs/b.md", "# B\n\n```python\nimport jax.numpy as jnp\nprint(jnp.ones(1).dtype, 'leak' in globals())\n```\n"
    )
    build(book)
    assert "float32 False" in pages(book)["b/index.html"]


def test_all_that_a_reader_would_see_is_captured(book: Book) -> None:
    book.on_jax()
    code = (
        "import sys, warnings, jax\nprint('a', 'b', sep='+')\nprint('file', file=sys.stdout)\nsys.stdout.write('written\\n')\n"
        "jax.debug.print('debug')\nwarnings.warn('warned')\ndef helper():\n    print('helped')\nhelper()"
    )
    book.write("docs/a.md", f"# A\n\n```python\n{code}\n```\n")
    build(book)
    html = pages(book)["a/index.html"]
    for text in ("a+b", "file", "written", "debug", "warned", "helped"):
        assert re.search(rf"<code>[^<]*{re.escape(text)}", html)


def test_an_expected_error_is_possible(book: Book) -> None:
    book.write("docs/a.md", '# A\n\n```python raises="ValueError"\nraise ValueError("wanted")\n```\n')
    build(book)
    assert "<strong>ValueError</strong>: wanted" in pages(book)["a/index.html"]


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("pyproject.toml", '[tool.livepages]\ndocs = "."\n', "make them the same folder"),
        ("pyproject.toml", '[tool.livepages]\ndocs = "dcos"\n', "did you mean 'docs'?"),
    ],
)
def test_a_set_up_that_would_skip_blocks_is_refused(book: Book, file: str, text: str, words: str) -> None:
    book.write(file, text)
    done = mkdocs(book, "build")
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr


def test_an_engine_that_cannot_start_is_reported(book: Book) -> None:
    book.on_jax()
    trap = book.write("trap/jax/__init__.py", "raise ImportError('no jax here')").parent.parent
    done = mkdocs(book, "build", environment=finding(trap))
    assert done.returncode == 1 and "no jax here" in done.stderr and "has ended" in done.stderr


# --- serve ---------------------------------------------------------------------------------------------------------


class Served:
    """`mkdocs serve`."""

    def __init__(self, site: Site, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._log = site.root / "log"
        self.temporary = site.root / "temporary"
        self.temporary.mkdir()
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{self._port}", *options],
                cwd=site.root,
                env={**os.environ, "TMPDIR": str(self.temporary)},
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  (whoever runs the tests may ignore it)
            )

    @property
    def log(self) -> str:
        """The log so far."""
        return self._log.read_text()

    def get(self, path: str) -> str:
        """A file of the site."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=HANG)
        connection.request("GET", path)
        return connection.getresponse().read().decode()

    def wait(self, path: str, words: str) -> str:
        """A file of the site as soon as it holds some words."""
        text, deadline = "", time.monotonic() + HANG
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                text = self.get(path)
            if words in text:
                return text
            time.sleep(0.05)
        raise AssertionError(f"{words!r} is not in {path}: {text[-3000:]}\n{self.log}")

    def says(self, words: str, times: int) -> None:
        """Wait until it has said some words so often; it must not have said them more often."""
        deadline = time.monotonic() + HANG
        while self.log.count(words) < times and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self.log.count(words) == times, self.log

    def notices(self, book: Book) -> None:
        """Wait until it looks at the files, which it begins to do after the first build."""
        for number in itertools.count():
            book.write("docs/noticed.txt", str(number))
            for _ in range(20):
                if self.get("/noticed.txt") == str(number):
                    return
                time.sleep(0.05)

    def end(self) -> None:
        """End it as Ctrl-C does."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            self._process.wait(HANG)


@pytest.fixture
def served(book: Book) -> Iterator[Served]:
    """The book, being served, when its pages have run: the outputs of a page are served before it has run to its end."""
    served = Served(book)
    try:
        served.wait("/", "<code>one 2</code>")
        served.wait("/two/", "<code>two")
        deadline = time.monotonic() + HANG
        while [*served.temporary.glob("livepages-*/livepages-*")]:  # the folders of runs
            assert time.monotonic() < deadline, served.log
            time.sleep(0.05)
        served.notices(book)
        yield served
    finally:
        served.end()


def test_serving_shows_edits_and_failures_in_place_and_heals(book: Book, served: Served) -> None:
    book.write("docs/index.md", "# One\n\n```python\nprint('one', 1 + 2)\n```\n")
    served.wait("/", "<code>one 3</code>")
    assert "1 run now, 2 unchanged" in served.log

    # A name that the page no longer defines is missing, whatever an earlier build knew.
    book.write("docs/two.md", "# Two\n\nNothing here.\n\n```python\nprint('two', x)\n```\n")
    broken = served.wait("/two/", "docs/two.md:6")
    assert "NameError" in broken and "Nothing here." in broken
    served.says("docs/two.md:6: block of line 5: raised NameError", 1)

    book.write("docs/index.md", "# One\n\nMore.\n\n```python\nprint('one', 1 + 2)\n```\n")
    served.says("docs/two.md:6: block of line 5: raised NameError", 2)  # it still stands

    book.write("docs/two.md", '# Two\n\n```python colour="red"\nx = 2\n```\n')
    served.wait("/two/", "docs/two.md:3")

    book.write("docs/two.md", "# Two\n\n```python\nx = 5\nprint('two', x)\n```\n")
    healed = served.wait("/two/", "<code>two 5</code>")
    assert "live-failure" not in healed
    served.says("ran docs/index.md", 2)


def test_serving_names_the_line_that_fails_where_markdown_exec_shows_it(book: Book) -> None:
    book.write("mkdocs.yml", CONFIG.replace("[livepages]", "[markdown-exec, livepages]"))
    text = '# Two\n\n```python exec="on" source="above"\nprint("two", {})\n```\n'
    book.write("docs/two.md", text.format("2"))
    served = Served(book)
    try:
        served.wait("/two/", "two 2")
        served.notices(book)
        book.write("docs/two.md", text.format("missing"))
        shown = served.wait("/two/", "docs/two.md:4")
        assert re.search('<span class="n">missing</span>.*docs/two.md:4', shown, re.DOTALL)  # the code is there, too
        served.says("docs/two.md:4: block of line 3: raised NameError", 1)
    finally:
        served.end()


def test_serving_counts_the_blocks_that_macros_make_where_they_fail(book: Book) -> None:
    book.write("mkdocs.yml", CONFIG.replace("[livepages]", "[markdown-exec, livepages]") + "hooks: [macros.py]\n")
    fence = '```python exec="on"\n1 / 0\n```'
    book.write("macros.py", f"def on_page_markdown(markdown, **_):\n    return markdown.replace('FAIL', {fence!r})\n")
    book.write("docs/index.md", '# One\n\n```python exec="on"\nprint(1)\n```\n')
    book.write("docs/two.md", f"# Two\n\nFAIL\n\n{fence.replace('1 / 0', 'print(2)')}\n")
    served = Served(book)
    try:
        served.wait("/two/", "ZeroDivisionError")
        served.says("2 pages, 3 Python blocks: ", 1)
        assert re.search(r"2 pages, 3 Python blocks: \d run now, \d unchanged, 0 not run, 1 failed\n", served.log)
    finally:
        served.end()


def test_serving_shows_what_is_wrong_with_a_fence_there_and_the_rest_of_the_page(book: Book, served: Served) -> None:
    faults = {
        '```pyhton raises="E"\n# no heading\n```\n': "the pyhton fence is not run; did you mean ```python?",
        '```python raise="E"\ny = 1\n```\n': "unknown option 'raise'; did you mean 'raises'?",
        '```python vary="none"\ny = none\n```\n': "option vary is a name and its values",
        "`{python} x +`\n": "`{python} x +`: is not an expression",
        "```python\n# no heading\n": "the fence is not closed",
    }
    for number, (text, message) in enumerate(faults.items()):
        book.write("docs/two.md", f"# Two\n\n## {number}\n\n```python\nx = {number}\nprint('two', x)\n```\n\n{text}")
        shown = served.wait("/two/", f"<code>two {number}</code>")
        assert html.unescape(shown).count(message) == 1 and shown.count("live-failure") == 1, shown
        assert re.findall("<h[1-3][^>]*>([^<]*)<", shown) == ["Two", str(number)] and "<title>Two - Test" in shown, (
            shown
        )
        served.says(f"docs/two.md:10: {message}", 1)
    assert not re.search(r"WARNING -  (?!\[)|Traceback", served.log), served.log
    failed = mkdocs(book, "build")
    assert failed.returncode == 1 and "docs/two.md:10: the fence is not closed" in failed.stderr


@pytest.mark.parametrize("plugins", ["livepages", "markdown-exec, livepages"])
def test_serving_shows_an_edit_of_a_file_that_is_included_from_any_folder(book: Book, plugins: str) -> None:
    snippets = "{pymdownx.snippets: {base_path: [., parts], auto_append: [terms.md], check_paths: true}}"
    config = CONFIG.replace("[livepages]", f"[{plugins}]").replace("superfences,", f"superfences, {snippets}, abbr,")
    book.write("mkdocs.yml", config)
    terms = book.write("parts/terms.md", "*[HTML]: One meaning\n")
    book.write("docs/index.md", "# One\n\nHTML\n")
    served = Served(book)
    try:
        served.wait("/", "One meaning")
        served.notices(book)
        terms.write_text("*[HTML]: Another meaning\n")
        served.wait("/", "Another meaning")
        if plugins == "livepages":  # pages include from `snippets` alone
            return
        part = book.write("elsewhere/part.md", "First\n")
        book.write("docs/index.md", '# One\n\n--8<-- "elsewhere/part.md"\n')
        served.wait("/", "First")
        for word in ("Second", "Third"):
            book.write("elsewhere/new.md", word).replace(part)  # as editors save
            served.wait("/", word)
    finally:
        served.end()


def test_serving_with_watch_theme_shows_an_edit_of_the_theme(book: Book) -> None:
    book.write("mkdocs.yml", CONFIG.replace("locale: en", "locale: en, custom_dir: looks"))
    looks = book.write("looks/main.html", '{% extends "base.html" %}')
    served = Served(book, "--watch-theme")
    try:
        served.wait("/", "one 2")
        served.notices(book)
        looks.write_text('{% extends "base.html" %}{% block content %}A new look{% endblock %}')
        served.wait("/", "A new look")
    finally:
        served.end()


def test_nothing_that_is_half_written_keeps_requests_waiting(book: Book, served: Served) -> None:
    """While MkDocs cannot build, it answers no request at all."""
    snippets = "{pymdownx.snippets: {base_path: [snippets], check_paths: true}}"
    extensions = f"superfences, {snippets}, {{pymdownx.arithmatex: {{generic: true}}}}, livepages.mathml,"
    book.write("mkdocs.yml", CONFIG.replace("superfences,", extensions))
    record = book.write("records/cpu.yml", "<<<<<<< HEAD\n")
    for number, (text, words) in enumerate(
        (
            (b"# Two\n\nThe caf\xe9.\n", "the page is not UTF-8"),
            (b'# Two\n\n--8<-- "nowhere.md"\n', "could not be found in snippets, the folder that"),
            (b"# Two\n\nSee $\\frac{a$.\n", "has a brace too many or too few"),
        )
    ):
        (book.root / "docs/two.md").write_bytes(text)
        shown = served.wait("/two/", words)
        assert "live-failure" in shown and "docs/two.md:3" in shown
        book.write("docs/index.md", f"# One\n\n```python\nprint('one', {number})\n```\n")
        served.wait("/", f"<code>one {number}</code>")
    assert "records/cpu.yml:1: the record cannot be read: a merge" in served.log
    record.unlink()
    settings = book.root / "pyproject.toml"
    right = settings.read_text()
    settings.write_text(f"{right}snipets = 'a'\n")
    book.write("docs/two.md", "# Two\n\n```python\nprint('two', 'again')\n```\n")
    served.wait("/two/", "two again")
    assert "did you mean 'snippets'" in served.log
    settings.write_text(right)


def test_serving_shows_a_page_while_it_runs_and_again_when_it_has_run(book: Book, served: Served) -> None:
    event = Event(book)
    blocks = (" isolated='on'\n1 / 0", "\n" + event.wait, "\n{}['k']", "\nprint('last')")
    book.write("docs/two.md", "# Two\n\n" + "\n".join(f"```python{block}\n```\n" for block in blocks))
    half = served.wait("/two/", "data-live-pending")
    # Other pages are served in the meantime, and this one as far as it is then.
    for number in range(100):
        book.write("docs/index.md", f"# One\n\n```python\nprint('one', {number})\n```\n")
        served.wait("/", f"<code>one {number}</code>")
        half = served.get("/two/")
        if "ZeroDivisionError" in half:
            break
    assert re.findall('data-live-pending="([^"]*)"', half) == ["docs/two.md:7", "docs/two.md:13", "docs/two.md:17"]
    assert re.search("0 not run(, 1 failed, 3|, 4) still running", served.log)
    assert "of 4 blocks failed" not in served.log
    cells = [cell["metadata"].get("live", {}) for cell in json.loads(served.get("/two/live-two.ipynb"))["cells"]]
    assert [cell.get("unknown", False) for cell in cells if "key" in cell] == [False, True, True, True]
    event.set()
    whole = served.wait("/two/", "KeyError")
    assert "ZeroDivisionError" in whole and "data-live-pending" not in whole
    assert "Not run: the block on line 13 failed" in whole
    served.says("ran docs/two.md: 2 of 4 blocks failed, 1 not run", 1)
    served.says("docs/two.md:14: block of line 13: raised KeyError", 1)
    served.says("1 unchanged, 0 not run, 2 failed, 1 not run because of a failure\n", 1)
    for total, parts in re.findall(r"(\d+) Python blocks: (.*)", served.log):
        assert int(total) == sum(int(part.split()[0]) for part in parts.split(", ")), parts
    # Each build says again what still fails.
    assert served.log.count("docs/two.md:4: block of line 3: raised ZeroDivisionError") > 1


def test_serving_lists_the_failures_of_a_page_below_its_title_with_links(book: Book, served: Served) -> None:
    book.write("docs/two.md", "# Two\n\n```python\nprint('a')\n```\n")
    assert book.commands.run("livepages", "record", "--host", "cpu", folder=book.root).returncode == 0
    record = book.root / "records/cpu/two.yml"
    record.write_text(record.read_text().replace("stdout: a", "stdout: b").replace("    a\n", "    b\n"))
    blocks = "```python\nprint('a')\n```\n\n## Part\n\n```python vary=\"a=1, 2, 3\"\nassert a == 1\n```\n"
    book.write("docs/two.md", f"# Two\n\n{blocks}\nIt is `{{python}} nothing`.\n\n```pyhton\nx\n```\n")
    shown = served.wait("/two/", ", line 15</p>")  # not the page of before, whose record has changed
    found = re.search(r'</h1>\s*<p class="live-failing" data-search-exclude>(.*?)</p>', shown)
    assert found and found[1] == (
        '2 blocks, 1 inline expression, 1 line of this page fail: <a href="#two.1">line 3</a> (the output differs from the '
        'record), <a href="#part.1">line 10</a>, <a href="#part.1">line 13</a>, line 15'
    )
    assert '<div class="live-anchor" id="part.1">' in shown
    served.says(", 0 not run, 2 failed; 1 of 1 inline expression failed\n", 1)
    book.write("docs/two.md", "# Two\n\nText.\n\n```python\n1 / 0\n```\n")
    failing = '>1 block of this page fails: <a href="#two.1">line 6</a></p>'
    served.wait("/two/", failing)
    assert "live-failing" not in served.get("/") + served.get("/two/index.md")
    book.write("docs/two.md", "# Two\n\nText.\n\n```python\n1 / 1\n```\n")
    assert "live-failing" not in served.wait("/two/", '<span class="mi">1</span>\n</code>')


SAVE = """\
import pathlib, sys, time
from watchdog.events import FileSystemEventHandler

class Noticed(FileSystemEventHandler):
    names = set()

    def on_any_event(self, event):
        self.names.add(pathlib.Path(event.src_path).name)

def on_post_build(config):
    event = pathlib.Path(EVENT)
    plugin = config.plugins["livepages"]
    server = plugin._server
    if server is None or pathlib.Path("docs/slow.md").absolute() not in plugin._build.pending:
        return
    for emitter in server.observer.emitters:
        server.observer.add_handler_for_watch(Noticed(), emitter.watch)
    event.touch()
    while not server._want_rebuild:
        time.sleep(0.01)
    pathlib.Path("docs/index.md").write_text("# Saved")
    while "index.md" not in Noticed.names:
        time.sleep(0.01)
    print("saved", file=sys.stderr, flush=True)
"""


def test_failures_are_reported_again_after_a_save_also_if_a_page_has_just_run(book: Book) -> None:
    event = Event(book)
    book.write("mkdocs.yml", CONFIG + "hooks: [save.py]\n")
    book.write("save.py", SAVE.replace("EVENT", repr(event.file)))
    book.write("docs/two.md", "# Two\n\n```python\n1 / 0\n```\n")
    served = Served(book)
    try:
        served.wait("/two/", "ZeroDivisionError")
        served.notices(book)
        book.write("docs/slow.md", f"# Slow\n\n```python\n{event.wait}\n```\n")
        served.wait("/", "Saved")
        assert "raised ZeroDivisionError" in served.log.partition("saved\n")[2].split("Building documentation")[1]
    finally:
        served.end()


def test_serving_shows_in_one_build_the_outputs_that_arrived_during_it(book: Book) -> None:
    event = Event(book)
    book.write("mkdocs.yml", f"{CONFIG}hooks: [patient.py]\n")
    book.write(
        "patient.py",
        "from pathlib import Path\n\nfrom livepages.integrations import mkdocs_plugin\n\n"
        f"mkdocs_plugin.PATIENCE = {HANG}\n\n"
        f"def on_env(env, config, files):\n    Path({event.file!r}).touch()\n    return env\n",
    )
    served = Served(book)
    try:
        served.wait("/", "<code>one 2</code>")
        served.notices(book)
        event.clear()
        builds = served.log.count("Building documentation")
        book.write("docs/two.md", f"# Two\n\n```python\n{event.wait}\n1 / 0\n```\n")
        assert "data-live-pending" not in served.wait("/two/", "ZeroDivisionError")
        assert "ZeroDivisionError" in served.get("/two/live-two.ipynb")
        assert served.log.count("Building documentation") == builds + 1
        served.says("docs/two.md:7: block of line 3: raised ZeroDivisionError", 1)
    finally:
        served.end()


def test_serving_shows_the_output_of_included_code_when_it_has_run(book: Book, served: Served) -> None:
    event = Event(book)
    snippets = "{pymdownx.snippets: {base_path: [snippets]}}"
    book.write("mkdocs.yml", CONFIG.replace("superfences,", f"superfences, {snippets},"))
    book.write("snippets/wait.py", f"{event.wait}\nprint('at', 'last')\n")
    book.write("docs/two.md", '# Two\n\n```python\n--8<-- "wait.py"\n```\n')
    served.wait("/two/", "data-live-pending")
    event.set()
    assert "data-live-pending" not in served.wait("/two/", "at last")


def test_serving_writes_the_other_forms_of_a_page_that_still_runs(book: Book, served: Served) -> None:
    event = Event(book)
    book.write("mkdocs.yml", f"{CONFIG}nav: [index.md, two.md]\n")
    book.write("docs/two.md", f"# Two\n\n```python\n{event.wait}\nprint('at', 'last')\n```\n")
    served.wait("/two/", "data-live-pending")
    assert "at last" not in served.wait("/two/live-two.ipynb", "event") and "event" in served.get("/two/index.md")
    event.set()
    served.wait("/two/live-two.ipynb", "at last")


@pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")
def test_serving_drops_endless_pages_that_are_edited_and_leaves_nothing_behind(book: Book, served: Served) -> None:
    pids = []
    for name in ("a", "b"):
        file = book.root / name
        code = f"import os\nopen({str(file)!r}, 'w').write(f'{{os.getpid()}}\\n')\nwhile True: pass"
        book.write("docs/two.md", f"# Two\n\n{name * 3}\n\n```python\n{code}\n```\n")
        assert "data-live-pending" in served.wait("/two/", name * 3)
        while not file.exists() or not file.read_text().endswith("\n"):
            time.sleep(0.01)
        pids.append(file.read_text().strip())
    assert process_ends(pids[0])
    served.end()
    assert process_ends(pids[1])
    assert not list(served.temporary.iterdir())


TAKEN = "The site cannot be served at 127.0.0.1:{}: another program uses it; choose another address, as in `{}`"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of this machine that is taken."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_that_is_taken_is_reported_before_any_page_runs(book: Book, taken: int) -> None:
    (book.root / "temporary").mkdir()
    environment = {"TMPDIR": str(book.root / "temporary")}
    done = book.commands.run("mkdocs", "serve", "-a", f"127.0.0.1:{taken}", folder=book.root, environment=environment)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stdout.strip() == TAKEN.format(taken, "mkdocs serve -a 127.0.0.1:8000")
    assert "to run" not in done.stderr and not list((book.root / "temporary").iterdir())


def test_what_serves_names_the_command_that_serves_elsewhere(book: Book, taken: int) -> None:
    done = book.commands.run(
        "mkdocs",
        "serve",
        "-a",
        f"127.0.0.1:{taken}",
        folder=book.root,
        environment={"LIVEPAGES_SERVE": "make serve PORT={port}"},
    )
    assert done.stdout.strip() == TAKEN.format(taken, "make serve PORT=8000")


@pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")
def test_a_port_that_is_taken_during_the_first_build_is_reported_and_nothing_is_left(book: Book) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    noted = book.root / "noted"
    code = f"import os\nopen({str(noted)!r}, 'w').write(f'{{os.getpid()}}\\n')\nwhile True: pass"
    book.write("docs/two.md", f"# Two\n\n```python\n{code}\n```\n")
    book.write("mkdocs.yml", CONFIG + "hooks: [take.py]\n")
    book.write(
        "take.py",
        "import pathlib, socket, time\n\ndef on_post_build(config):\n    global server\n"
        f"    server = socket.create_server(('127.0.0.1', {port}))\n"
        f"    while not (noted := pathlib.Path({str(noted)!r})).exists() or not noted.read_text().endswith('\\n'):\n"
        "        time.sleep(0.01)\n",
    )
    (book.root / "temporary").mkdir()
    environment = {"TMPDIR": str(book.root / "temporary")}
    done = mkdocs(book, "serve", "-a", f"127.0.0.1:{port}", environment=environment)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stdout.strip() == TAKEN.format(port, "mkdocs serve -a 127.0.0.1:8000")
    assert process_ends(noted.read_text().strip())
    assert not list((book.root / "temporary").iterdir())


def test_a_block_can_be_linked_to_and_a_link_to_none_ends_a_strict_build(book: Book) -> None:
    config = CONFIG + "validation: {anchors: warn}\n"
    book.write("mkdocs.yml", config)
    book.write("docs/index.md", "# One\n\n[the second](two.md#two.2)\n\n```python\nprint('one')\n```\n")
    assert "WARNING" not in build(book)
    html = '```python html="on"\nprint("<p id=made>A paragraph</p>")\n```\n'
    book.write("docs/index.md", f"# One\n\n[the paragraph](#made)\n\n{html}")
    assert "WARNING" not in build(book)
    book.write("docs/index.md", "# One\n\n[the third](two.md#two.3)\n\n```python\nprint('one')\n```\n")
    done = mkdocs(book, "build", "--strict")
    assert done.returncode and "#two.3" in done.stderr


def test_links_to_anchors_that_a_run_makes_are_reported_dead_only_after_it(book: Book) -> None:
    event = Event(book)
    event.set()
    silent, last = '```python source="none"\ny = 1\n```\n', "```python\nprint('last')\n```\n"
    made = '```python result="markdown"\nprint("## Made")\n```\n'
    html = '```python html="on"\nprint("<p id=html>A paragraph</p>")\n```\n'
    for name, block in (("two", last), ("three", made), ("four", html)):
        book.write(f"docs/{name}.md", f"# Two\n\n```python\n{event.wait}\n```\n\n{silent}\n{block}")
    anchors = ("two.md#two.2", "two.md#two.4", "three.md#made", "three.md#dead", "four.md#html")
    book.write("docs/index.md", "# One\n\n" + "\n".join(f"[a block]({anchor})" for anchor in anchors))
    book.write("mkdocs.yml", CONFIG + "validation: {anchors: warn}\n")
    for command in (("record", "--host", "cpu"), ("clean",)):
        assert book.commands.run("livepages", *command, folder=book.root).returncode == 0
    event.clear()

    def dead(output: str) -> list[str]:
        return re.findall("contains a link '([^']*)'", output)

    served = Served(book)
    try:
        assert "Running" in served.wait("/two/", "live-note")
        assert dead(served.log) == ["two.md#two.4"]  # there are three blocks
        event.set()
        assert "data-live-pending" not in served.wait("/three/", 'id="made"')
        deadline = time.monotonic() + HANG
        while "three.md#dead" not in served.log and time.monotonic() < deadline:
            time.sleep(0.05)
        assert {*dead(served.log)} == {"two.md#two.4", "three.md#dead"}
    finally:
        served.end()
    done = mkdocs(book, "build", "--strict")
    assert done.returncode and dead(done.stderr) == ["two.md#two.4", "three.md#dead"]


def test_a_dead_link_is_reported_once_in_a_build_that_converts_its_page_again(book: Book) -> None:
    book.write("mkdocs.yml", f"{CONFIG}hooks: [patient.py]\n")
    book.write("patient.py", f"from livepages.integrations import mkdocs_plugin\n\nmkdocs_plugin.PATIENCE = {HANG}\n")
    served = Served(book)
    try:
        served.wait("/", "<code>one 2</code>")
        served.notices(book)
        for number, links in enumerate(("[gone](gone.md)", "[gone](gone.md)", "Nothing.")):
            builds = served.log.count("Building documentation")
            book.write("docs/two.md", f"# Two\n\n{links}\n\n```python\nprint('two', {number} * 11)\n```\n")
            assert "data-live-pending" not in served.wait("/two/", f"two {number * 11}")
            assert served.log.count("Building documentation") == builds + 1
            assert served.log.count("docs/two.md:3: Doc file 'two.md' contains a link 'gone.md'") == min(number + 1, 2)
        book.write("docs/two.md", "# Two\n\n[gone](gone.md)\n\n```python\nprint('two', 11)\n```\n")  # as it was
        served.wait("/two/", "two 11")
        served.says("contains a link 'gone.md'", 3)
    finally:
        served.end()


def test_serving_begins_before_any_page_has_run_and_one_that_is_opened_runs_next(book: Site) -> None:
    event = Event(book)
    for number in range(os.cpu_count() or 1):
        book.write(
            f"docs/slow-{number}.md", f"# Slow\n\n```python\n{event.wait}\nprint('slow', {number} + 1)\n```\n" * 9
        )
    served = Served(book)
    try:
        assert "Running" in served.wait("/slow-0/", "live-note")
        served.wait("/two/", "<code>two 2</code>")  # beside the slow ones, which take all turns
        event.set()
        served.wait("/slow-0/", "<code>slow 1</code>")
    finally:
        served.end()


def test_the_search_has_the_message_of_an_error_and_not_its_traceback(book: Book) -> None:
    book.write(
        "mkdocs.yml", CONFIG.replace("mkdocs, locale: en", "material").replace("[livepages]", "[search, livepages]")
    )
    book.write(
        "docs/guide/raises.md",
        "# Raises\n\n```python raises=\"ValueError\"\nraise ValueError('no cups'.upper())\n```\n",
    )
    build(book)
    index = (book.root / "site/search/search_index.json").read_text(encoding="utf-8")
    assert "NO CUPS" in index and "most recent call last" not in index
    assert "most recent call last" in (book.root / "site/guide/raises/index.html").read_text(encoding="utf-8")


def test_inline_expressions_are_in_headings_tables_links_and_the_search(book: Book) -> None:
    text = "# Cups\n\n```python\ncups = 31\n```\n\n## With `{python} cups` cups { #cups }\n\n| a |\n|---|\n| `{python} cups` |\n"
    book.write(
        "mkdocs.yml", CONFIG.replace("[livepages]", "[search, livepages]").replace("[admonition", "[attr_list, tables")
    )
    book.write("docs/guide/cups.md", f"{text}\n[all `{{python}} cups`](#cups)\n")
    build(book)
    html = (book.root / "site/guide/cups/index.html").read_text(encoding="utf-8")
    value = '<span class="live-inline">31</span>'
    for expected in (f"With {value} cups", f"<td>{value}</td>", f'<a href="#cups">all {value}</a>'):
        assert expected in html
    assert re.search(r'<a href="#cups"[^>]*>With 31 cups</a>', html)
    assert "With 31 cups" in (book.root / "site/search/search_index.json").read_text(encoding="utf-8")
