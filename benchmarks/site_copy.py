"""A copy of the real site, to build, edit and serve."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENGINE = re.compile(r"^  - livepages(\.mathml)?\n", re.MULTILINE)  # the plugin and the extensions
RAN = re.compile(r"ran docs/(\S+): \d+ blocks?, ([\d.]+) s")
ENVIRONMENT = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
PATIENCE = 600.0  # seconds after which a page is given up


class Copy:
    """A copy of the site, with nothing kept of its pages; ``without.yml`` builds it without the engine."""

    def __init__(self, root: Path) -> None:
        self.root, self.docs = root, root / "docs"
        for name in ("docs", "snippets", "course", "records", "inventories"):
            shutil.copytree(ROOT / name, root / name)
        for name in ("mkdocs.yml", "pyproject.toml"):
            shutil.copy(ROOT / name, root / name)
        text = (root / "mkdocs.yml").read_text()
        (root / "without.yml").write_text(ENGINE.sub("", text))

    def build(self, config: str = "mkdocs.yml") -> tuple[float, str]:
        """Return the seconds of one build, and its output."""
        command = [sys.executable, "-m", "mkdocs", "build", "-f", config]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=self.root, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode:
            sys.exit(f"{config}: the build failed\n{done.stdout}{done.stderr}")
        return seconds, done.stdout + done.stderr

    def edit_prose(self, page: str, words: str) -> float:
        """Put words before the second section of a page, such as ``basics/vmap.md``; when that was."""
        return self._save(page, self.text(page).replace("\n## ", f"\n{words}\n\n## ", 1))

    def edit_code(self, page: str, words: str) -> float:
        """Have the first block of a page print words; when that was."""
        return self._save(page, re.sub(r"```python\n", rf'\g<0>print("{words}")\n', self.text(page), count=1))

    def text(self, page: str) -> str:
        """The Markdown of a page."""
        return (self.docs / page).read_text()

    def _save(self, page: str, text: str) -> float:
        assert text != self.text(page), page
        start = time.perf_counter()
        (self.docs / page).write_text(text)
        return start

    def alone(self) -> set[str]:
        """The pages that run by themselves."""
        marked = (file for file in self.docs.rglob("*.md") if "\nexclusive: true\n" in file.read_text())
        return {file.relative_to(self.docs).as_posix() for file in marked}

    @contextmanager
    def served(self) -> Iterator["Served"]:
        """``mkdocs serve`` of the copy, until the end of the block."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"]
        log = self.root / "log"
        with log.open("w") as stream:
            process = subprocess.Popen(command, cwd=self.root, env=ENVIRONMENT, stderr=stream, start_new_session=True)
            try:
                yield Served(port, log)
            finally:
                os.killpg(process.pid, signal.SIGTERM)  # which is heeded by what was begun in the background too
                process.wait()


class Served:
    """The site as readers ask for it."""

    def __init__(self, port: int, log: Path) -> None:
        self._port, self._log = port, log

    def wait(self, page: str, enough: Callable[[str], bool]) -> None:
        """Ask for a page, such as ``basics/vmap.md``, until its HTML is enough."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
                connection.request("GET", f"/{page.removesuffix('.md').removesuffix('index')}/".replace("//", "/"))
                if enough(connection.getresponse().read().decode()):
                    return
            except OSError:
                pass
            time.sleep(0.02)
        sys.exit(f"{page} did not come\n{self._log.read_text()}")

    def ran(self) -> list[str]:
        """The pages that have run so far."""
        return [name for name, _ in RAN.findall(self._log.read_text())]


def shown(html: str) -> bool:
    """Return whether this is a page of the site, however much of it has run."""
    return "live-stamp" in html


def whole(html: str) -> bool:
    """Return whether all blocks of a page have run."""
    return shown(html) and "data-live-pending" not in html
