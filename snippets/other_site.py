"""Build the site in a folder with MkDocs and livepages, and look at what came of it."""

import html
import re
import subprocess
import sys
from pathlib import Path


def command(site: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit status of ``python -m`` with these arguments, and its output, errors too."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=site,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def text(built: Path) -> str:
    """Return the text of a built page, without the small print under its blocks and at its end."""
    main = re.search(r'role="main">(.*?)<footer', built.read_text(encoding="utf-8"), re.DOTALL)
    assert main
    shown = re.sub(r'<details.*?</details>|<p class="live-stamp".*?</p>', "", main[1], flags=re.DOTALL)
    lines = html.unescape(re.sub("<[^>]+>", "", shown)).split("\n")
    return "\n".join(filter(str.strip, lines))
