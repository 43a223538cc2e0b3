"""The style sheets and scripts that every site gets."""

import shutil
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "assets"
PLACE = "assets/livepages"  # below the root of a site


def copy_assets(site: Path) -> None:
    """Put the style sheets and scripts into a built site."""
    shutil.copytree(FOLDER, site / PLACE, dirs_exist_ok=True)
