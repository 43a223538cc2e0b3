"""The site of the last build, which is restored if a build fails before it has written a page."""

import shutil
from contextlib import suppress
from pathlib import Path

HIDDEN = ".livepages-before"  # in the site's folder, from which builders delete only what is not hidden


class FormerSite:
    """The files of a built site, out of the way of the builder, which deletes them before it converts any page."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._aside = folder, folder / HIDDEN

    def set_aside(self) -> None:
        """Move all that the builder would delete into a hidden folder beside it."""
        self.put_back()  # what a build has left that was killed
        with suppress(OSError):  # a folder that cannot be written to is the builder's to report
            if entries := self._visible():
                self._aside.mkdir()
            for entry in entries:
                entry.rename(self._aside / entry.name)

    def put_back(self) -> None:
        """Restore the site as it was, if it was set aside."""
        if not self._aside.is_dir():
            return
        for entry in self._visible():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        for entry in self._aside.iterdir():
            entry.rename(self._folder / entry.name)
        self._aside.rmdir()

    def drop(self) -> None:
        """Delete what was set aside: a new site is about to be written."""
        shutil.rmtree(self._aside, ignore_errors=True)

    def _visible(self) -> list[Path]:
        return [entry for entry in self._folder.glob("*") if not entry.name.startswith(".")]
