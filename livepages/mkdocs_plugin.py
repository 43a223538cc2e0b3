"""The door for MkDocs: brings every page up to date before any is shown, in parallel, and tells what failed."""

import logging
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin
from mkdocs.structure.files import Files

from livepages import markdown_extension
from livepages.build import Build
from livepages.engine import Engine
from livepages.outcome import Failure
from livepages.progress import Progress
from livepages.run import WorkerError
from livepages.project import ProjectError, find_project

log = logging.getLogger("mkdocs.plugins.livepages")


class NoOptions(Config):
    """The plugin's options in ``mkdocs.yml``: none."""


class LivePagesPlugin(BasePlugin[NoOptions]):
    """Has no options: they stand in ``pyproject.toml``, where tests read them too."""

    def __init__(self) -> None:
        self._serving = False
        self._told = 0
        self._build: Build | None = None

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        """Remember whether failures end the build, or are shown in the page."""
        self._serving = command == "serve"

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Find the project; see that the Markdown extension is there to show what this plugin runs."""
        try:
            project = find_project(Path(config.config_file_path).parent)
        except ProjectError as error:
            raise PluginError(str(error)) from None
        if Path(config.docs_dir) != project.docs:
            raise PluginError(f"docs_dir is {config.docs_dir}, but [tool.livepages] docs is {project.docs}")
        if "livepages" not in config.markdown_extensions:
            raise PluginError("add livepages to markdown_extensions, which shows what the plugin runs")
        if self._build is None or self._build.engine.project != project:
            if self._build:
                self._build.engine.close()
            self._build = Build(Engine(project))
        return config

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        """Run what has to run. A failure ends the build here, before anything is written."""
        build = self._current()
        progress = Progress(log.info)
        try:
            build.begin(progress.started, progress.done)
        except WorkerError as error:
            raise PluginError(str(error)) from None
        log.info(build.summary)
        self._tell(build.failures, "the site is as it was")
        self._told = len(build.failures)
        markdown_extension.use(build)

    def on_env(self, env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
        """Tell of what went wrong when the pages were shown, before any of them is written."""
        self._tell(self._current().failures[self._told :], "no page was written")
        return env

    def _tell(self, failures: list[Failure], consequence: str) -> None:
        for failure in failures:
            log.error(str(failure))
        if failures and not self._serving:
            raise PluginError(f"{len(failures)} failed, as said above; {consequence}")

    def on_serve(self, server: LiveReloadServer, *, config: MkDocsConfig, builder: Any) -> LiveReloadServer:
        """Build again when a module that pages include or import changes."""
        snippets = self._current().engine.project.snippets
        if snippets.is_dir():
            server.watch(str(snippets))
        return server

    def on_shutdown(self) -> None:
        """End the process that pages are forked from."""
        markdown_extension.use(None)
        if self._build:
            self._build.engine.close()

    def _current(self) -> Build:
        assert self._build is not None
        return self._build
