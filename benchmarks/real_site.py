"""How long the real site takes to build, against the same pages without the engine, and how soon a page is served.

    python benchmarks/real_site.py [--repeat 3]

Works on a copy of the site, in one run on one machine; what counts are the ratios. It begins with nothing kept, so
every page runs, which takes some minutes. The table goes to the terminal and to ``benchmarks/real_site.md``.
"""

import argparse
import http.client
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "basics/vmap.md"  # that is edited
SECONDS = 2.0  # that a page takes which is asked for while others still run
TIMED = "basics/updates.md"  # runs alone
ENGINE = re.compile(r"^  - livepages(\.mathml)?\n", re.MULTILINE)  # the plugin and the extensions
RAN = re.compile(r"ran docs/(\S+): \d+ blocks?, ([\d.]+) s")
ENVIRONMENT = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}


class Copy:
    """A copy of the site, with nothing kept of its pages."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("docs", "snippets", "overrides", "records", "inventories"):
            shutil.copytree(ROOT / name, root / name)
        for name in ("mkdocs.yml", "pyproject.toml"):
            shutil.copy(ROOT / name, root / name)
        text = (root / "mkdocs.yml").read_text()
        (root / "without.yml").write_text(ENGINE.sub("", text))
        self._page = root / "docs" / PAGE

    def build(self, config: str = "mkdocs.yml") -> tuple[float, str]:
        """Seconds for one build, and what it said."""
        command = [sys.executable, "-m", "mkdocs", "build", "-f", config]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=self.root, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode:
            sys.exit(f"{config}: the build failed\n{done.stdout}{done.stderr}")
        return seconds, done.stdout + done.stderr

    def unchanged(self) -> float:
        """Seconds for a build that runs nothing."""
        seconds, said = self.build()
        assert " 0 run now" in said, said
        return seconds

    def a_word(self) -> float:
        """Seconds for a build after an edit of prose."""
        text = self._page.read_text()
        self._page.write_text(text.replace("\n## ", "\nOne more sentence.\n\n## ", 1))
        return self.unchanged()

    def a_block(self) -> float:
        """Seconds for a build after an edit of code, without those in which that page ran."""
        text = self._page.read_text()
        self._page.write_text(re.sub(r"```python\n", r'\g<0>print("one more line")\n', text, count=1))
        seconds, said = self.build()
        ran = RAN.findall(said)
        assert [name for name, _ in ran] == [PAGE], said
        return seconds - float(ran[0][1])

    def alone(self) -> set[str]:
        """The pages that run by themselves."""
        docs = self.root / "docs"
        marked = (file for file in docs.rglob("*.md") if "\nalone: true\n" in file.read_text())
        return {file.relative_to(docs).as_posix() for file in marked}

    @contextmanager
    def served(self) -> Iterator[int]:
        """The port at which ``mkdocs serve`` serves the site."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"]
        with (self.root / "log").open("w") as log:
            process = subprocess.Popen(command, cwd=self.root, env=ENVIRONMENT, stderr=log, start_new_session=True)
            try:
                yield port
            finally:
                os.killpg(process.pid, signal.SIGTERM)  # which is heeded by what was begun in the background too
                process.wait()


def whole(port: int, page: str, pending: bool) -> None:
    """Return as soon as a page is served; unless `pending` may be in it, as soon as all its blocks have run."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"/{page.removesuffix('.md')}/")
            text = connection.getresponse().read().decode()
            if "live-stamp" in text and (pending or "data-live-pending" not in text):
                return
        except OSError:
            pass
        time.sleep(0.05)
    sys.exit(f"{page} did not come")


def best(repeat: int, measure: Callable[[], float]) -> float:
    """The shortest of several measurements: what else the machine does can only add."""
    return min(measure() for _ in range(repeat))


def rows(copy: Copy, repeat: int) -> Iterator[tuple[str, float, str]]:
    """What was measured, in seconds, and what it is compared with."""
    seconds, said = copy.build()
    ran = {name: float(s) for name, s in RAN.findall(said)}
    alone = copy.alone()
    least = sum(s for n, s in ran.items() if n in alone) + sum(s for n, s in ran.items() if n not in alone) / (
        os.cpu_count() or 1
    )
    late = [name for name in list(ran)[len(ran) // 2 :] if name not in alone]
    asked = min(late, key=lambda name: abs(ran[name] - SECONDS))
    yield "cold", seconds, f"{seconds / least:.2f} × the pages' run times ÷ cores ({len(ran)} pages, {least:.0f} s)"
    without = best(repeat, lambda: copy.build("without.yml")[0])
    yield "the engine left out", without, ""
    for name, measure in (
        ("nothing changed", copy.unchanged),
        ("a word changed", copy.a_word),
        ("one block changed, without that page's own run", copy.a_block),
    ):
        seconds = best(repeat, measure)
        yield name, seconds, f"{seconds / without:.2f} × the engine left out"
    shutil.rmtree(copy.root / ".cache")
    start = time.perf_counter()
    with copy.served() as port:
        whole(port, "start/install.md", pending=True)
        yield "serving with nothing kept: first page served", time.perf_counter() - start, ""
        time.sleep(10)
        for page, how in ((asked, f" ({ran[asked]:.1f} s)"), (TIMED, ", which runs alone")):
            start = time.perf_counter()
            whole(port, page, pending=False)
            yield f"meanwhile, `{page}` asked for{how}: whole", time.perf_counter() - start, ""


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    lines = [
        "# Speed on the real site",
        "",
        f"{len(list((ROOT / 'docs').rglob('*.md')))} pages; {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}. Made by `make bench`; ratios are from one run on one machine.",
        "",
        "| what | seconds | compared |",
        "|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for what, seconds, compared in rows(Copy(Path(folder)), options.repeat):
            lines.append(f"| {what} | {seconds:.2f} | {compared} |")
            print(lines[-1], flush=True)
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
