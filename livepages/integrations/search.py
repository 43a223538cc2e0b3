"""The entries of the theme's search index, with the wordings of questions; they are made once for each text."""

from collections.abc import Iterable
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page as MkDocsPage

from livepages.integrations.build_cache import BuildCache
from livepages.integrations.questions import Question


def plugin_of_theme(config: MkDocsConfig, name: str) -> Any:
    """A plugin that comes with Material or with MaterialX; None if the site does not use it."""
    return config.plugins.get(f"material/{name}") or config.plugins.get(f"materialx/{name}")


class Index:
    """The entries of each page in the theme's search index."""

    def __init__(self, cache: BuildCache) -> None:
        self._cache = cache
        self._wordings: dict[str, dict[str, tuple[str, ...]]] = {}
        self._entries: list[Any] = []
        self._before = 0
        self._key = ""

    def read(self, page: MkDocsPage, questions: Iterable[Question]) -> None:
        """Remember how the questions of a page are worded."""
        self._wordings[page.file.src_uri] = {question.id: question.wordings for question in questions}

    def has_entries_of(self, page: MkDocsPage, config: MkDocsConfig) -> bool:
        """Return whether the page's entries are kept; call it before the theme adds them."""
        search = plugin_of_theme(config, "search")
        index = getattr(getattr(search, "provider", search), "search_index", None)  # MaterialX has it in a provider
        self._entries = index.entries if index else []
        self._before = len(self._entries)
        self._key = self._cache.key([page.content, page.url, page.title, page.meta, self._wordings_of(page)])
        return index is not None and self._cache.get("search", page.file.src_uri, self._key) is not None

    def keep(self, page: MkDocsPage) -> None:
        """Keep the entries just added, each with its wordings; or put those in their place that are known."""
        known = self._cache.get("search", page.file.src_uri, self._key)
        if known is None:
            known = self._entries[self._before :]
            for entry in known:
                if wordings := self._wordings_of(page).get(entry["location"].partition("#")[2]):
                    entry["wordings"] = wordings
            self._cache.put("search", page.file.src_uri, self._key, known)
        self._entries[self._before :] = known

    def _wordings_of(self, page: MkDocsPage) -> dict[str, tuple[str, ...]]:
        return self._wordings.get(page.file.src_uri, {})
