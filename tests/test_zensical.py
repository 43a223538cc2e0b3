"""The Markdown extensions are enough for Zensical, which runs no MkDocs plugin: same sources, same outputs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANG, Site

pytestmark = pytest.mark.slow

CONFIG = """\
site_name: Course
theme: {name: material, custom_dir: course/theme}
plugins: [search, livepages]
markdown_extensions: [attr_list, md_in_html, pymdownx.highlight, pymdownx.superfences, livepages, livepages.mathml]
nav:
  - Home: index.md
  - One: [one.md]
"""


def build(site: Site, code: str) -> subprocess.CompletedProcess[str]:
    """Zensical's build of a site with a page of one block, in the templates of this one."""
    shutil.copytree(Path(__file__).parents[1] / "course", site.root / "course")
    site.write("pyproject.toml", '[tool.livepages]\nruntime = "jax"\nguide = "course.guide:CourseGuide"\n')
    site.write("mkdocs.yml", CONFIG)
    site.write("docs/index.md", "# Home\n\nText.\n")
    site.write("docs/one.md", f"# One\n\n```python\n{code}\n```\n")
    command = [sys.executable, "-m", "zensical", "build"]
    return subprocess.run(command, cwd=site.root, capture_output=True, text=True, timeout=HANG, check=False)


def test_pages_are_built_with_their_outputs(site: Site) -> None:
    done = build(site, "print('out' + 'put')")
    html = (site.root / "site/one/index.html").read_text()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "<code>output</code>" in html and "live-masthead" in html and "live-stamp" in html


def test_pages_of_one_text_show_each_its_own_output(site: Site) -> None:
    site.write(
        "docs/two.md",
        "---\nx64: true\n---\n\n# One\n\n```python\nimport jax.numpy as jnp\nprint(jnp.ones(1).dtype)\n```\n",
    )
    done = build(site, "import jax.numpy as jnp\nprint(jnp.ones(1).dtype)")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = [(site.root / f"site/{name}/index.html").read_text() for name in ("one", "two")]
    assert "<code>float32</code>" in shown[0] and "<code>float64</code>" in shown[1]


def test_a_failing_block_ends_the_build_with_page_and_line(site: Site) -> None:
    done = build(site, "x = 1\ny = no_such_name")
    assert done.returncode != 0
    assert "docs/one.md:5: block of line 3: raised NameError" in done.stdout + done.stderr


def test_a_site_that_lists_no_markdown_extension_of_ours_is_told_so_and_not_built(site: Site) -> None:
    site.write("mkdocs.yml", "site_name: T\nplugins: [livepages]\nmarkdown_extensions: [pymdownx.superfences]\n")
    site.write("docs/index.md", "# Home\n\n```python\nprint(1)\n```\n")
    command = [sys.executable, "-m", "livepages", "build", "zensical"]
    done = subprocess.run(command, cwd=site.root, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 2 and "ran " not in done.stdout and not (site.root / "site").exists()
    assert "Zensical runs no plugins; add livepages to markdown_extensions\n" in done.stderr, done.stderr


def test_zensical_alone_shows_outputs_in_their_style_and_no_dead_downloads(site: Site) -> None:
    """Also without a table of settings, and after a build by the command, which adds what Zensical alone would lack."""
    (site.root / "pyproject.toml").unlink()
    site.write("mkdocs.yml", "site_name: T\nmarkdown_extensions: [pymdownx.superfences, livepages]\n")
    site.write("docs/index.md", "# Home\n\nText.\n")
    site.write("docs/one.md", "# One\n\n```python\nprint('out' + 'put')\n```\n")
    pages = []
    for module, *options in (["livepages", "build", "zensical"], ["zensical", "build"]):
        command = [sys.executable, "-m", module, *options]
        done = subprocess.run(command, cwd=site.root, capture_output=True, text=True, timeout=HANG, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        pages.append([(site.root / f"site/{name}index.html").read_text() for name in ("one/", "")])
    (built, _), (page, plain) = pages
    assert "<code>output</code>" in built and "<code>output</code>" in page
    assert "assets/livepages/live.css" in built and "--live-mark:" not in built and "live-one.py" in built
    assert "assets/livepages/live.css" not in page and page.count("--live-mark:") >= 1 and "live-one.py" not in page
    assert "--live-mark:" not in plain
    assert "--live-mark" not in (site.root / "site/search.json").read_text()


def test_a_failure_under_zensical_alone_is_the_message_alone(site: Site) -> None:
    done = build(site, "y = no_such_name")
    assert done.returncode != 0
    first, *_ = done.stderr.removeprefix("No issues found\n").splitlines()
    assert first == "docs/one.md:4: block of line 3: raised NameError: name 'no_such_name' is not defined", done.stderr
    assert "click" not in done.stderr and "PageFailuresError" not in done.stderr
