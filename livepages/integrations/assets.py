"""The style sheet and the script that every site gets, and what these load."""

import posixpath
import re
from pathlib import Path

from livepages.exporters import SiteFolder

FOLDER = Path(__file__).parents[1] / "assets"
PLACE = "assets/livepages"  # below the root of a site
STYLE, SCRIPT = f"{PLACE}/live.css", f"{PLACE}/live.js"
SERVED = '<meta name="live-kernels">'  # lets the script know that the server of the site starts kernels
_THEME = re.compile(r'.*<link rel="stylesheet" href="[^"]*\bassets/stylesheets/[^>]*>', re.DOTALL)


def copy_assets(site: SiteFolder) -> None:
    """Put the assets into a built site."""
    for file in FOLDER.rglob("*.*"):
        site.write(f"{PLACE}/{file.relative_to(FOLDER).as_posix()}", file.read_bytes())


def inline_style() -> str:
    """Return the style sheet as HTML, for a page of a program that would not link it."""
    return f"<style>\n{(FOLDER / 'live.css').read_text(encoding='utf-8')}</style>\n"


def add_assets(html: str, folder: str) -> str:
    """Return the HTML of a page in a folder of the site with the style sheet, after those of the theme, and script."""
    style, script = (posixpath.relpath(file, folder or ".") for file in (STYLE, SCRIPT))
    found = _THEME.match(html)
    at = found.end() if found else html.find("</head>")
    return f'{html[:at]}<link rel="stylesheet" href="{style}"><script src="{script}" async></script>{html[at:]}'
