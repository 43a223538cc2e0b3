"""Pages that run while the site is already served: which one runs next, and when the site is built again."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from livepages.integrations.build import Build


class ServeScheduler:
    """A scheduler of the pages that the last build shows in part; all methods may be called in any thread."""

    def __init__(self, build: Build, again: Callable[[], None], log: Callable[[str], None]) -> None:
        self._build, self._again, self._log = build, again, log
        self._lock = threading.Lock()
        self._files: dict[str, Path] = {}  # of the pages, by their HTML below the site's root
        self._pending: set[Path] = set()
        self._finished: set[Path] = set()
        self._awaited = False  # whether a build is under way, or was requested

    def build_began(self) -> None:
        """Note that a build begins, which will show the pages that have finished by then, or hold them back."""
        with self._lock:
            self._finished.clear()
            self._awaited = True

    def build_ended(self) -> None:
        """Note that a build has ended, and which pages it shows in part."""
        course = self._build.guide.course
        with self._lock:
            self._awaited = False
            self._files = {course.place(path).html: path for path in course.pages}
            self._pending = self._build.pending
            self._finished |= self._build.held_back
            self._build.awaited &= self._pending
        self._decide()

    def page_finished(self, path: Path) -> None:
        """Note that the page of a file has run to its end."""
        with self._lock:
            self._finished.add(path)
            done, all_ = len(self._finished & self._pending), len(self._pending)
            counted = not self._awaited  # a build that is under way may show some of them
        if all_ > 1 and done and counted:
            self._log(f"{done} of {all_} pages have run in the background")
        self._decide()

    def watching(self, application: WSGIApplication, root: str) -> WSGIApplication:
        """A server's application that runs the pages next that are requested below an address."""

        def watched(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            name = str(environ.get("PATH_INFO", "")).removeprefix(root)
            self._ask(name + "index.html" if not name or name.endswith("/") else name)
            return application(environ, start)

        return watched

    def _ask(self, name: str) -> None:
        with self._lock:
            path = self._files.get(name)
            if path not in self._pending or path is None:
                return
            self._build.awaited.add(path)
        self._build.engine.prioritize(path)
        self._decide()

    def _decide(self) -> None:
        """Build again when an awaited page has finished, or when all have."""
        with self._lock:
            whole = bool(self._pending) and self._pending <= self._finished
            wanted = not self._awaited and (whole or bool(self._build.awaited & self._finished))
            self._awaited |= wanted
        if wanted:
            self._again()
