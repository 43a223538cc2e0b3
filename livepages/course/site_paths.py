"""The paths of a page and its other forms in the built site."""

import posixpath
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

INDEX, README = "index", "README"  # without endings: the page of a folder, and what stands for it if there is none


@dataclass(frozen=True)
class SitePaths:
    """The addresses of a page and its other forms, relative to the site's root."""

    url: str  # ``guide/page/``
    html: str  # ``guide/page/index.html``
    markdown: str  # ``guide/page/index.md``
    script: str  # ``guide/page/live-page.py``
    notebook: str  # ``guide/page/live-page.ipynb``

    @property
    def folder(self) -> str:
        """The folder that holds the page and its forms."""
        return posixpath.dirname(self.html)


def place(name: str, directory_urls: bool) -> SitePaths:
    """Return the paths that MkDocs gives a page, by its name below the folder of pages and ``use_directory_urls``."""
    path = PurePosixPath(name)
    folder, stem = path.parent, INDEX if path.stem == README else path.stem
    html = folder / stem / "index.html" if directory_urls and stem != INDEX else folder / f"{stem}.html"
    url = html.parent if directory_urls else html
    return site_paths(str(html), "" if url == PurePosixPath() else f"{url}/" if directory_urls else str(url), path.stem)


def site_paths(html: str, url: str, stem: str) -> SitePaths:
    """The places of a page and its other forms, from its HTML and address in the site, and the stem of its source."""
    path = PurePosixPath(html)
    # The hyphen keeps the name from being one that Python can import: a script named random.py, which Python finds
    # first when it looks for the module of that name, would break whatever imports it.
    program = path.parent / f"live-{INDEX if stem == README else stem}"
    return SitePaths(
        url="" if url in (".", "./") else unquote(url),
        html=html,
        markdown=str(path.with_suffix(".md")),
        script=f"{program}.py",
        notebook=f"{program}.ipynb",
    )
