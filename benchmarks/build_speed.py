"""Measure how long a site takes to build, against the same site under plain markdown-exec and with execution off.

    python -m benchmarks.build_speed [--pages 40] [--blocks 12] [--repeat 3] [--larger 160 640] [--myst]

Everything is timed in one run on one machine, whole `mkdocs build` processes from start to exit; what counts are
the ratios. Larger sites are built with execution off and with nothing changed, to see how both grow. The tables go to
the terminal and to ``benchmarks/build_speed.md``. With ``--myst`` the same pages are also built by Sphinx with MyST-NB
and jupyter-cache, which have to be installed.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CORES = os.cpu_count() or 1
BLOCKS = (
    "f{n} = jax.jit(lambda x: jnp.sin(x) * {c} + 1.0)\nprint(f{n}(jnp.ones({size})).sum())",
    "g{n} = jax.jit(jax.grad(lambda x: jnp.sum(x ** 2 * {c})))\nprint(g{n}(jnp.arange({size}.0))[-1])",
    "h{n} = jax.jit(lambda a, b: a @ b + {c})\nprint(h{n}(jnp.ones(({size}, 4)), jnp.ones((4, 3))).shape)",
    "v{n} = jax.jit(jax.vmap(lambda x: jnp.dot(x, x) - {c}))\nprint(v{n}(jnp.ones(({size}, 5)))[0])",
)
CONFIG = """\
site_name: Bench
theme: {{name: material, font: false}}
plugins: [search{plugins}]
markdown_extensions: [admonition, pymdownx.highlight, pymdownx.superfences, pymdownx.snippets{extensions}]
"""


def page(number: int, blocks: int, fence: str) -> str:
    """A page of small jitted blocks; constants and sizes differ from page to page, so that programs do too."""
    parts = [f"# Page {number}\n\nWords about page {number}.\n\n```{fence}\nimport jax\nimport jax.numpy as jnp\n```\n"]
    for n in range(1, blocks):
        code = BLOCKS[n % len(BLOCKS)].format(n=n, c=number + n / 16, size=number + n + 3)
        parts.append(f"## Section {n}\n\nSome words before block {n}.\n\n```{fence}\n{code}\n```\n")
    return "\n".join(parts)


def make_site(root: Path, kind: str, pages: int, blocks: int) -> Path:
    """A site whose Python runs under `kind`: ``livepages``, ``markdown-exec`` or ``off``."""
    site = root / kind
    (site / "docs").mkdir(parents=True)
    plugins = {"livepages": ", livepages", "markdown-exec": ", markdown-exec", "off": ""}[kind]
    extensions = ", livepages" if kind == "livepages" else ""
    (site / "mkdocs.yml").write_text(CONFIG.format(plugins=plugins, extensions=extensions))
    (site / "pyproject.toml").write_text("[tool.livepages]\n")
    for number in range(pages):
        fence = f'python exec="on" source="above" session="page-{number}"' if kind == "markdown-exec" else "python"
        (site / "docs" / f"page-{number:02}.md").write_text(page(number, blocks, fence))
    (site / "docs" / "index.md").write_text("# Bench\n")
    return site


def build(site: Path) -> tuple[float, str]:
    """Return the seconds of one build, and its output."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=site,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{site.name}: the build failed\n{done.stdout}{done.stderr}")
    return seconds, done.stdout + done.stderr


def build_unchanged(site: Path, blocks: int) -> float:
    """Seconds for a build that runs nothing, of a site of so many blocks."""
    taken, output = build(site)
    assert f" 0 run now, {blocks} unchanged" in output, output
    return taken


def best(repeat: int, measure: Callable[[], float]) -> float:
    """The shortest of several measurements: what else the machine does can only add."""
    return min(measure() for _ in range(repeat))


def edit(site: Path, old: str, new: str) -> None:
    """Replace the first occurrence of `old` in page 7."""
    file = site / "docs" / "page-07.md"
    text = file.read_text()
    assert old in text, old
    file.write_text(text.replace(old, new, 1))


def measure(root: Path, pages: int, blocks: int, repeat: int) -> dict[str, float]:
    """Seconds of every kind of build."""
    sites = {kind: make_site(root, kind, pages, blocks) for kind in ("off", "markdown-exec", "livepages")}
    ours = sites["livepages"]
    cache = ours / ".cache" / "livepages"
    seconds: dict[str, float] = {}

    def cold() -> float:
        shutil.rmtree(cache, ignore_errors=True)
        return build(ours)[0]

    def warm_programs() -> float:
        shutil.rmtree(cache / "runs")
        return build(ours)[0]

    def unchanged(*change: str) -> float:
        if change:
            edit(ours, *change)
        return build_unchanged(ours, pages * blocks)

    def code() -> float:
        edit(ours, "x ** 2 * ", "x ** 2 * 2 * ")
        taken, output = build(ours)
        assert f" {blocks} run now" in output, output
        return taken

    seconds["execution off"] = best(repeat, lambda: build(sites["off"])[0])
    seconds["markdown-exec"] = best(repeat, lambda: build(sites["markdown-exec"])[0])
    seconds["the blocks in one process ÷ cores"] = best(repeat, lambda: one_process(root, pages, blocks)) / CORES
    seconds["cold"] = best(repeat, cold)
    seconds["outcomes deleted, compiled programs kept"] = best(repeat, warm_programs)
    seconds["nothing changed"] = best(repeat, unchanged)
    seconds["a word changed"] = best(repeat, lambda: unchanged("Words about", "More Words about"))
    seconds["a block changed"] = best(repeat, code)
    return seconds


def one_process(root: Path, pages: int, blocks: int) -> float:
    """Seconds in which one process runs the blocks of all pages."""
    file = root / "all.py"
    programs = [
        re.findall(r"```python\n(.*?)```", page(number, blocks, "python"), re.DOTALL) for number in range(pages)
    ]
    file.write_text(
        f"for blocks in {programs!r}:\n    names = {{}}\n    for block in blocks:\n        exec(block, names)\n"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, file], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def growth(root: Path, pages: int, blocks: int) -> tuple[float, float]:
    """Seconds of a build of so many pages with execution off, and of one in which nothing has changed."""
    ours = make_site(root, "livepages", pages, blocks)
    build(ours)
    plain = make_site(root, "off", pages, blocks)
    return best(2, lambda: build(plain)[0]), best(2, lambda: build_unchanged(ours, pages * blocks))


def myst(root: Path, pages: int, blocks: int) -> dict[str, float]:
    """Seconds of a cold and of an unchanged build under Sphinx with MyST-NB and jupyter-cache."""
    site = root / "myst"
    site.mkdir()
    (site / "conf.py").write_text(
        'extensions = ["myst_nb"]\nnb_execution_mode = "cache"\nnb_execution_timeout = 300\nhtml_theme = "alabaster"\n'
        'exclude_patterns = [".jupyter_cache", "jupyter_execute", "html"]\n'
    )
    head = (
        "---\njupytext: {text_representation: {extension: .md, format_name: myst}}\nkernelspec: {name: python3}\n---\n"
    )
    names = [f"page-{number:02}" for number in range(pages)]
    for number, name in enumerate(names):
        (site / f"{name}.md").write_text(head + page(number, blocks, "{code-cell} ipython3"))
    (site / "index.md").write_text("# Bench\n\n```{toctree}\n" + "\n".join(names) + "\n```\n")

    def sphinx() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "sphinx", "-q", "-j", "auto", ".", "html"], cwd=site, check=True)
        return time.perf_counter() - start

    return {"MyST-NB, cold": sphinx(), "MyST-NB, nothing changed": sphinx()}


def grown(sizes: dict[int, tuple[float, float]]) -> str:
    """Return the times of larger sites as a Markdown table, which compares a page with one of the smallest site."""
    smallest = min(sizes)
    least = sizes[smallest][1] / smallest
    lines = [
        "",
        "| pages, nothing changed | seconds | × execution off | a page, × one of the smallest |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {pages} | {ours:.2f} | {ours / off:.2f} | {ours / pages / least:.2f} |"
        for pages, (off, ours) in sizes.items()
    ]
    return "\n".join(lines) + "\n"


def table(seconds: dict[str, float], pages: int, blocks: int) -> str:
    """The measurements as a Markdown table of ratios."""
    off, plain = seconds["execution off"], seconds["markdown-exec"]
    lines = [
        "# Speed of building",
        "",
        f"{pages} pages of {blocks} blocks; {CORES} cores, {platform.system()}, Python {platform.python_version()}.",
        "Made by `make bench`. Ratios are from one run on one machine; the seconds are only there to show their size.",
        "",
        "| build | seconds | × execution off | × markdown-exec | more than execution off |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {s:.2f} | {s / off:.2f} | {s / plain:.2f} | {s - off:+.2f} s |" for name, s in seconds.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--myst", action="store_true", help="also build the pages with MyST-NB and jupyter-cache")
    parser.add_argument("--larger", nargs="*", type=int, default=[160, 640], help="numbers of pages of larger sites")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(Path(folder), options.pages, options.blocks, options.repeat)
        if options.myst:
            seconds |= myst(Path(folder), options.pages, options.blocks)
        sizes = {options.pages: (seconds["execution off"], seconds["nothing changed"])}
        for pages in options.larger:
            sizes[pages] = growth(Path(folder, str(pages)), pages, options.blocks)
    text = table(seconds, options.pages, options.blocks) + grown(sizes)
    print(text)
    Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
