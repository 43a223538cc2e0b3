"""Saves of files that a served site is watched for, apart from the events that only let MkDocs build again."""

from threading import Event

from watchdog.events import FileModifiedEvent, FileSystemEvent, FileSystemEventHandler
from watchdog.observers.api import BaseObserver


class BuildAgain(FileModifiedEvent):
    """An event upon which MkDocs builds, though no file has changed."""


class Saves(FileSystemEventHandler):
    """A note of whether files have changed; one build may follow from a save and from a page that has run."""

    def __init__(self) -> None:
        self._seen = Event()

    def follow(self, observer: BaseObserver) -> None:
        """Follow what is watched so far."""
        for emitter in observer.emitters:
            observer.add_handler_for_watch(self, emitter.watch)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Note a change."""
        if not event.is_directory and not isinstance(event, BuildAgain):
            self._seen.set()

    def taken(self) -> bool:
        """Return whether anything has changed since this was asked last."""
        seen = self._seen.is_set()
        self._seen.clear()
        return seen
