"""How long an author waits, under `mkdocs serve` on the real site, from saving a page until it is served again.

    python benchmarks/serve_speed.py [--page express/vmap.md] [--repeat 3]

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
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Served:
    """`mkdocs serve` on a copy of the site."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("docs", "snippets", "overrides"):
            shutil.copytree(ROOT / name, root / name)
        for name in ("mkdocs.yml", "pyproject.toml"):
            shutil.copy(ROOT / name, root / name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = root / "log"
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(command, cwd=root, stderr=self.log.open("w"), start_new_session=True)

    def wait(self, path: str, words: str, patience: float = 300.0) -> None:
        """Return as soon as a page holds some words."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                connection.request("GET", path)
                if words in connection.getresponse().read().decode():
                    return
            except OSError:
                pass
            time.sleep(0.02)
        sys.exit(f"{words!r} did not come\n{self.log.read_text()}")

    def close(self) -> None:
        """End the server."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait()


def measure(page: str, repeat: int) -> dict[str, list[float]]:
    """Seconds from save to served, for edits of prose and of code."""
    seconds: dict[str, list[float]] = {"prose": [], "code": []}
    path = "/" + page.removesuffix(".md") + "/"
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        try:
            file = served.root / "docs" / page
            first = re.search(r"```python\n", file.read_text())
            assert first, page
            served.wait(path, "live-stamp")
            time.sleep(2.0)
            for number in range(repeat):
                for kind, words in (("prose", f"Edited prose {number}."), ("code", f"edited code {number}")):
                    text = file.read_text()
                    ran = served.log.read_text().count(" ran docs/")
                    if kind == "prose":
                        text = text.replace("\n## ", f"\n{words}\n\n## ", 1)
                    else:
                        text = text[: first.end()] + f'print("{words}")\n' + text[first.end() :]
                        first = re.search(r"```python\n", text)
                        assert first
                    start = time.perf_counter()
                    file.write_text(text)
                    served.wait(path, words if kind == "prose" else f"<code>{words}")
                    seconds[kind].append(time.perf_counter() - start)
                    assert served.log.read_text().count(" ran docs/") == ran + (kind == "code"), "another page ran"
                    time.sleep(1.0)
                    first = re.search(r"```python\n", file.read_text())
                    assert first
        finally:
            served.close()
    return seconds


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--page", default="express/vmap.md")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    seconds = measure(options.page, options.repeat)
    pages = len(list((ROOT / "docs").rglob("*.md")))
    lines = [
        "# From saving to seeing",
        "",
        f"`mkdocs serve` on the site of {pages} pages, editing `{options.page}`; {os.cpu_count()} cores, "
        f"{platform.system()}, Python {platform.python_version()}. Made by `make bench`.",
        "",
        "| edit | best | worst |",
        "|---|---|---|",
        *(f"| {kind} | {min(times):.2f} s | {max(times):.2f} s |" for kind, times in seconds.items()),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
