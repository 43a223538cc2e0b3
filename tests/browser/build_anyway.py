"""``python -m tests.browser.build_anyway FOLDER``: the site, with the failures of its pages in their place."""

import sys
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

from mkdocs.commands.build import build
from mkdocs.config import load_config

from livepages.execution import Engine, Run
from livepages.source import Page

KEPT = Engine.kept


def kept(engine: Engine, pages: Iterable[Page], failed: bool = False) -> dict[Path, Run]:
    """Pages that failed do so when `pytest docs` runs them; they need not fail again."""
    return KEPT(engine, pages, failed=True)


def main(folder: str) -> None:
    """Build as `mkdocs serve` does."""
    file = Path(__file__).parents[2] / "mkdocs.yml"
    config = load_config(str(file), site_dir=folder, dev_addr="127.0.0.1:0")  # nothing is served
    config.plugins.on_startup(command="serve", dirty=False)
    with patch.object(Engine, "kept", kept):
        build(config)
    config.plugins.on_shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
