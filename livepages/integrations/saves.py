"""Saves of the files that a server watches, told from the events that only make MkDocs build again."""

from collections.abc import Iterable
from pathlib import Path
from threading import Event

from mkdocs.livereload import LiveReloadServer
from watchdog.events import FileModifiedEvent, FileSystemEvent, FileSystemEventHandler


class BuildAgain(FileModifiedEvent):
    """An event upon which MkDocs builds, though no file has changed."""


class Saves(FileSystemEventHandler):
    """A note of whether files have changed; one build may follow from a save and from a page that has run."""

    def __init__(self, server: LiveReloadServer, folders: Iterable[Path]) -> None:
        self._server, self._folders = server, [*folders]
        self._included: set[Path] = set()
        self._seen = Event()

    def follow(self, included: Iterable[Path]) -> None:
        """Follow what is watched so far, and files that pages include from elsewhere."""
        for file in {*map(Path.absolute, included)} - self._included:
            if not any(map(file.is_relative_to, self._folders)):
                self._server.watch(str(file))
                self._included.add(file)
        for emitter in self._server.observer.emitters:
            self._server.observer.add_handler_for_watch(self, emitter.watch)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Note a change."""
        if not event.is_directory and not isinstance(event, BuildAgain):
            self._seen.set()

    def taken(self) -> bool:
        """Return whether anything has changed since this was asked last."""
        seen = self._seen.is_set()
        self._seen.clear()
        return seen
