"""Redirects from the addresses that pages had before they were renamed."""

import html
import posixpath
from urllib.parse import quote

from livepages.course import Course
from livepages.exporters import SiteFolder
from livepages.source import Page, PageError

_HTML = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<link rel="canonical" href="{address}">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="0; url={address}">
<script>location.replace("{address}" + location.search + location.hash);</script>
<p>This page has moved: <a href="{address}">{title}</a>.</p>
</html>
"""


def write_redirects(pages: list[Page], course: Course, folder: SiteFolder) -> list[PageError]:
    """Write a page that leads on for each name of ``redirect_from`` in a front matter.

    Returns:
        an error for each name that cannot be used: a page has it, or another page has claimed it.
    """
    claimed = {course.place(page.path).html: page.name for page in pages}
    refused = []
    for page in pages:
        for name in page.redirect_from:
            old, new = course.place(course.docs / name), course.place(page.path)
            if old.html in claimed:
                message = f"redirect_from: {claimed[old.html]} is already at the address of {name}"
                refused.append(PageError(page.name, 1, message))
                continue
            claimed[old.html] = page.name
            address = quote(posixpath.relpath(new.url or ".", posixpath.dirname(old.html) or "."))
            address += "/" if new.url.endswith("/") or not new.url else ""
            folder.write(old.html, _HTML.format(title=html.escape(page.title), address=address).encode())
    return refused
