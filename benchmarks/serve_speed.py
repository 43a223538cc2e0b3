"""How long an author waits, under `mkdocs serve` on the real site, from saving a page until it is served again.

    python benchmarks/serve_speed.py [--pages basics/vmap.md basics/derivatives.md] [--repeat 3]

Works on a copy of the site. The table goes to the terminal and to ``benchmarks/serve_speed.md``. How long it takes
until the change is noticed is part of what is measured.
"""

import argparse
import http.client
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    "basics/vmap.md",
    "basics/derivatives.md",
    "start/ten-minutes.md",
    "speed/jit.md",
    "train/training.md",
    "train/diffusion.md",
)


class Served:
    """`mkdocs serve` on a copy of the site."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("docs", "snippets", "overrides"):
            shutil.copytree(ROOT / name, root / name)
        for name in ("mkdocs.yml", "pyproject.toml"):
            shutil.copy(ROOT / name, root / name)
        if (cache := ROOT / ".cache").exists():
            shutil.copytree(cache, root / ".cache")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = root / "log"
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(command, cwd=root, stderr=self.log.open("w"), start_new_session=True)

    def wait(self, path: str, words: str, unless: str = "\0", patience: float = 300.0) -> None:
        """Return as soon as a page holds some words, and not others."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                connection.request("GET", path)
                text = connection.getresponse().read().decode()
                if words in text and unless not in text:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        sys.exit(f"{words!r} did not come\n{self.log.read_text()}")

    def close(self) -> None:
        """End the server."""
        os.killpg(self.process.pid, signal.SIGTERM)  # which is heeded by what was begun in the background too
        self.process.wait()


def measure(served: Served, page: str, repeat: int) -> dict[str, list[float]]:
    """Seconds from save to served, for edits of prose and of the first block."""
    kinds = ("prose", "code: page served", "code: first results", "code: whole page")
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    path = "/" + page.removesuffix(".md") + "/"
    file = served.root / "docs" / page
    for number in range(repeat):
        words = f"Edited prose {number}."
        start = save(file, file.read_text().replace("\n## ", f"\n{words}\n\n## ", 1))
        served.wait(path, words)
        seconds["prose"].append(time.perf_counter() - start)
        time.sleep(1.0)

        words = f"edited code {number}"
        ran = served.log.read_text().count(" ran docs/")
        start = save(file, re.sub(r"```python\n", rf'\g<0>print("{words}")\n', file.read_text(), count=1))
        shown = ((words, "\0"), (f"<code>{words}", "\0"), (f"<code>{words}", "data-live-pending"))
        for kind, (words, unless) in zip(kinds[1:], shown, strict=True):
            served.wait(path, words, unless)
            seconds[kind].append(time.perf_counter() - start)
        assert served.log.read_text().count(" ran docs/") == ran + 1, "another page ran"
        time.sleep(1.0)
    return seconds


def save(file: Path, text: str) -> float:
    """Write a file; when that began."""
    assert text != file.read_text(), file
    start = time.perf_counter()
    file.write_text(text)
    return start


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", nargs="+", default=PAGES)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        try:
            served.wait("/", "live-stamp")
            time.sleep(2.0)
            seconds = {page: measure(served, page, options.repeat) for page in options.pages}
        finally:
            served.close()
    pages = len(list((ROOT / "docs").rglob("*.md")))
    lines = [
        "# From saving to seeing",
        "",
        f"`mkdocs serve` on the site of {pages} pages; {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}. A page that takes long to run is shown as far as it is, and again when it is "
        "whole. Made by `make bench`.",
        "",
        "| page | edit | median | worst |",
        "|---|---|---|---|",
        *(
            f"| `{page}` | {kind} | {statistics.median(times):.2f} s | {max(times):.2f} s |"
            for page, kinds in seconds.items()
            for kind, times in kinds.items()
        ),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
