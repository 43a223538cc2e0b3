"""The integration with MkDocs: runs stale pages in parallel before any page is shown, and reports failures."""

import atexit
import contextlib
import logging
import os
import re
from dataclasses import replace
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import Environment, FileSystemBytecodeCache
from mkdocs.config.base import Config
from mkdocs.config.config_options import ExtraScriptValue
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, CombinedEvent, event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page as MkDocsPage
from mkdocs.utils.templates import TemplateContext
from mkdocs.utils.yaml import get_yaml_loader, yaml_load

from livepages.course import make_course
from livepages.execution import Engine, Failure, Runner, WorkerError, count
from livepages.exporters import Publication, SiteFolder
from livepages.integrations.address import check_address, explained
from livepages.integrations.assets import SCRIPT, SERVED, STYLE
from livepages.integrations.build import Build
from livepages.integrations.build_cache import BuildCache, digest
from livepages.integrations.conversion import Conversion
from livepages.integrations.former_site import FormerSite
from livepages.integrations.kernels import Kernels
from livepages.integrations.link_warnings import LinkWarnings
from livepages.integrations.mkdocs_course import changed_course, may_change
from livepages.integrations.page_cache import appended_files, convert_once
from livepages.integrations.post_build import finish, finish_executed
from livepages.integrations.prerender import Prerenderer
from livepages.integrations.progress import Progress
from livepages.integrations.questions import linked_data, take_questions
from livepages.integrations.search import Index, plugin_of_theme
from livepages.integrations.serving import ServeScheduler
from livepages.rendering import failures_html, head_links, with_failing
from livepages.source import NoProjectError, Page, Project, ProjectError, find_project, site_project

if TYPE_CHECKING:  # a build does not need it
    from mkdocs.livereload import LiveReloadServer

    from livepages.integrations.saves import Saves

log = logging.getLogger("mkdocs.plugins.livepages")
logging.getLogger("livepages").parent = log  # so that MkDocs shows and counts the engine's warnings
BEHIND = 19  # by how much pages that run in the background come after the build and the browser, as in `os.nice`
PATIENCE = 0.75  # seconds that an author waits for a page to run before it is served as far as it is


class NoOptions(Config):
    """The plugin's options in ``mkdocs.yml``: none."""


class LivePagesPlugin(BasePlugin[NoOptions]):
    """The plugin has no options of its own: its settings are in ``pyproject.toml``, which the tests read too."""

    def __init__(self) -> None:
        self._serving = False
        self._server: LiveReloadServer | None = None
        self._missed = False
        self._background: ServeScheduler | None = None
        self._kernels: Kernels | None = None
        self._reported: list[Failure] = []
        self._logged: set[str] = set()
        self._emptied = True  # whether MkDocs empties the site's folder before it builds
        self._former: FormerSite | None = None  # the files that it would delete, until pages are written
        self._saves: Saves | None = None
        self._cache = BuildCache(Path())
        self._index = Index(self._cache)
        self._content: str | None = None
        self._build: Build | None = None
        self._conversion: Conversion | None = None
        self._prerenderer = Prerenderer((os.cpu_count() or 1) - 1)
        self._docs = Path()
        self._links = LinkWarnings()
        self._begun = False  # whether this build has brought the pages up to date
        self._converted = 0  # pages of this build so far, of those that were not converted before
        self._files: Files | None = None  # of this build, when its pages have been converted

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        """Note whether failures end the build, or are shown in the page."""
        self._serving = command == "serve"
        self._emptied = not dirty
        logging.getLogger(MkDocsPage.__module__).addFilter(self._links)

    @event_priority(100)
    def _remember_docs(self, config: MkDocsConfig) -> MkDocsConfig:
        """Note the folder of pages that the configuration names, before a plugin puts another in its place."""
        self._docs = Path(config.docs_dir)
        return config

    def _configure(self, config: MkDocsConfig) -> MkDocsConfig:
        """Find the project, and add the Markdown extension if the site does not list it."""
        if self._serving and self._build is None:  # the server looks for its address when every page is converted
            check_address(*config.dev_addr)
        project = self._project(config)
        if "livepages" not in config.markdown_extensions:
            config.markdown_extensions.append("livepages")
        if self._build is None or self._build.engine.project != project:
            if self._build:
                self._build.engine.close()
            self._build = Build(Engine(project, Runner(nice=BEHIND if self._serving else 0)))
            self._cache = BuildCache(project.cache / "made")
            self._index = Index(self._cache)
            self._background = ServeScheduler(self._build, self._again, log.info) if self._serving else None
        self._cache.settings = digest(self._settings(config))
        self._converted, self._files = 0, None
        self._conversion = Conversion(self._build)
        config.mdx_configs["livepages"] = {"conversion": self._conversion}
        script = ExtraScriptValue(SCRIPT)
        script.async_ = True
        config.extra_css.insert(0, STYLE)  # so that the site's own come after it
        config.extra_javascript.append(script)
        if self._serving and (privacy := plugin_of_theme(config, "privacy")):
            privacy.config.enabled = False  # it takes a tenth of a build, and is for published sites
        return config

    on_config = CombinedEvent(_remember_docs, _configure)

    @staticmethod
    def _settings(config: MkDocsConfig) -> object:
        """Return the site's configuration, with the files that it inherits from and values that a program has set."""
        loader = get_yaml_loader()
        loader.add_constructor("!relative", lambda loader, node: loader.construct_scalar(node))
        with open(config.config_file_path, encoding="utf-8") as file:
            return (
                yaml_load(file, loader),
                config.site_url,
                config.site_name,
                config.use_directory_urls,
                config.theme.name,
            )

    def _project(self, config: MkDocsConfig) -> Project:
        try:
            project = replace(find_project(self._docs), mkdocs=Path(config.config_file_path))
        except NoProjectError:
            project = site_project(Path(config.config_file_path))
        except ProjectError as error:
            self._refuse(str(error))
            return self._current().engine.project
        if self._docs.resolve() != project.docs.resolve():
            raise PluginError(
                f"docs_dir of {config.config_file_path} is {self._docs}, but [tool.livepages] docs of "
                f"{project.root / 'pyproject.toml'} is {project.docs}; make them the same folder"
            )
        return project

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        """Run stale pages before MkDocs empties the site, unless plugins may still add pages."""
        self._begun = not may_change(config, self) and Path(config.docs_dir) == self._docs
        if self._begun:
            self._begin(config)
        if self._emptied and not self._serving and self._former is None:  # plugins build further languages into it
            self._former = FormerSite(Path(config.site_dir))
            atexit.register(self._former.put_back)  # an interrupt is no error for MkDocs
            self._former.set_aside()

    @event_priority(-100)
    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:
        """Run stale pages after all plugins have added, moved and removed pages."""
        if not self._begun:
            self._begin(config, files, nav)
        return nav

    def _begin(self, config: MkDocsConfig, files: Files | None = None, nav: Navigation | None = None) -> None:
        """Bring all pages up to date: those of the configuration, or those of the files and the navigation."""
        build = self._current()
        if self._saves and self._saves.taken():  # what still fails is reported again after each save
            self._reported = []
        progress = Progress(log.info)

        def started(pages: list[Page]) -> None:
            if not self._serving:
                progress.started(pages)
            elif pages:
                log.info(f"{count(len(pages), 'page')} to run in the background; one that is opened runs next")
            names = {page.name for page in pages}
            self._reported = [failure for failure in self._reported if failure.page not in names]

        try:
            course = make_course(build.engine.project, config, drafts=self._serving)
            if files is not None and nav is not None:
                course = changed_course(course, files, nav, config, self._serving)
            if self._background is None:
                build.run(course, started, progress.done)
            else:
                self._background.build_began()
                build.serve(course, started, progress.done, PATIENCE, self._background.page_finished)
        except (ProjectError, WorkerError) as error:
            self._refuse(str(error))
            return
        self._links.begin(build.pages.values(), build.guide.course, build.was_page)
        if not self._serving:
            log.info(build.summary)
        self._reported = [failure for failure in self._reported if failure in build.failures]
        self._report(build.failures, self._unwritten)

    @property
    def _unwritten(self) -> str:
        """The consequence of a failure before any page is written."""
        return "the site is as it was" if self._emptied else "no page was written"

    def on_page_read_source(self, *, page: MkDocsPage, config: MkDocsConfig) -> str | None:
        """Return the text that has run, even if the file has been saved again since."""
        return self._current().source(self._path(page))

    def on_page_markdown(self, markdown: str, *, page: MkDocsPage, config: MkDocsConfig, files: Files) -> str:
        """Say which page is converted next, and have it converted only if it was not before."""
        path = self._path(page)
        self._converts(path)
        failed = partial(self._not_shown, path) if self._serving else None
        convert_once(page, self._current(), path, self._cache, self._prerender, failed)
        return markdown

    def _prerender(self, page: MkDocsPage, config: MkDocsConfig, files: Files) -> None:
        """Convert later pages on other processors, if more than one page is to be converted."""
        self._converted += 1
        if self._converted == 2 and self._files is None:

            def convert(page: MkDocsPage) -> None:
                page = config.plugins.on_pre_page(page, config=config, files=files)
                page.read_source(config)
                page.markdown = config.plugins.on_page_markdown(
                    page.markdown or "", page=page, config=config, files=files
                )
                page.render(config, files)

            later = list(dropwhile(lambda file: file.page is not page, files.documentation_pages()))[1:]
            self._prerenderer.begin([file.page for file in later if file.page], convert)

    def _end_prerendering(self) -> None:
        for pid in self._prerenderer.end():
            self._cache.drop_unfinished(pid)

    def _not_shown(self, path: Path, message: str) -> str:
        """A page that cannot be converted, as HTML. An exception would bring the server to a standstill."""
        build = self._current()
        name = build.engine.project.name(path)
        known = [failure for failure in build.unread if failure.page == name]  # they say where, and what to do
        failed = known or [Failure(name, 1, 0, message)]
        build.fail(failed)
        return failures_html(failed)

    def on_page_content(self, html: str, *, page: MkDocsPage, config: MkDocsConfig, files: Files) -> str:
        """Add the anchors of blocks to those that MkDocs finds in the Markdown, and take out the questions."""
        self._converts(None)
        anchors = re.findall(r'<div class="live-anchor" id="([^"]*)"', html)
        by_run = self._current().anchors_of_run(self._path(page))  # of which no link must be told that they are missing
        present = page.present_anchor_ids or set()
        page.present_anchor_ids = None if by_run is None else present.union(anchors, by_run)
        if self._serving:
            html = with_failing(html, self._current().failing(self._path(page)))
        html, questions = take_questions(html)
        self._index.read(page, questions)
        if questions:  # for the template's head: Material would run scripts in the content again
            page.meta["linked_data"] = linked_data(questions, page.canonical_url or "")
        return html

    def _catch_up(self, page: MkDocsPage, config: MkDocsConfig) -> None:
        """Convert an awaited page again if it has run further."""
        path = self._path(page)
        if self._files is not None and self._current().catch_up(path):
            self._converts(path)
            page.render(config, self._files)
            page.content = config.plugins.on_page_content(
                page.content or "", page=page, config=config, files=self._files
            )

    @event_priority(100)
    def _slim(
        self, context: TemplateContext, *, page: MkDocsPage, config: MkDocsConfig, nav: Navigation
    ) -> TemplateContext:
        """Show the search index text alone: the spans of highlighted code take it longer than all the rest."""
        self._catch_up(page, config)
        self._content = page.content
        if self._index.has_entries_of(page, config):
            page.content = ""
        else:
            page.content = re.sub(r"</?span\b[^>]*>|<svg\b.*?</svg>", "", page.content or "", flags=re.DOTALL)
        return context

    @event_priority(-100)
    def _whole(
        self, context: TemplateContext, *, page: MkDocsPage, config: MkDocsConfig, nav: Navigation
    ) -> TemplateContext:
        page.content = self._content
        self._index.keep(page)
        return context

    on_page_context = CombinedEvent(_slim, _whole)

    def on_env(self, env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
        """Report the failures of the conversion, before any page is written."""
        self._end_prerendering()
        build = self._current()
        project = build.engine.project
        for path in build.last if self._serving else ():
            if file := files.get_file_from_path(path.relative_to(project.docs).as_posix()):
                files.remove(file)
                files.append(file)
        self._files = files
        if self._converted > 1 and project.fences == "all":  # their other forms will have to be made too
            folder = SiteFolder(Path(config.site_dir), project.docs, self._emptied)
            forms = Publication(project, build.guide.course, build.ran, folder, self._cache.get_or_make)
            self._prerenderer.begin(forms.pages, forms.forms)
        # What is compiled depends on these options.
        templates = project.cache / f"theme-{env.trim_blocks:d}{env.lstrip_blocks:d}"
        with contextlib.suppress(OSError):  # without a cache they are compiled each time
            templates.mkdir(parents=True, exist_ok=True)
            if os.access(templates, os.W_OK):
                env.bytecode_cache = FileSystemBytecodeCache(str(templates))  # MkDocs compiles them anew for each build
        self._report(build.failures, self._unwritten)
        if build.hint:
            log.warning(build.hint)
        if self._former:
            self._former.drop()
        return env

    def on_post_page(self, output: str, *, page: MkDocsPage, config: MkDocsConfig) -> str:
        """Link the page's Markdown; mark a served page as one that may request kernels."""
        build, path = self._current(), self._path(page)
        course = build.guide.course
        listed = path in build.pages and any(path in part.pages for part in course.parts)  # the others have no Markdown
        links = head_links(course.place(path)) if listed and build.engine.project.fences == "all" else ""
        return output.replace("</head>", f"{links}{SERVED if self._serving else ''}</head>", 1)

    def on_build_error(self, *, error: Exception) -> None:
        """End what still converts pages, and let pages run; put the site back if no page has been written."""
        self._end_prerendering()
        if self._former:
            self._former.put_back()
        if self._build:
            self._end_build()

    def _end_build(self) -> None:
        """End what still converts pages, and let those begin that the build did not wait for."""
        self._end_prerendering()
        self._current().engine.resume()
        if self._serving:
            log.info(self._current().summary)
        if self._background:
            self._background.build_ended()

    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Write the site's other files."""
        build, site = self._current(), Path(config.site_dir)
        try:
            if build.engine.project.fences == "exec":
                failed, lacking = finish_executed(build, site, self._log_once, self._emptied), "redirects"
            else:
                failed = finish(build, site, self._log_once, self._cache.get_or_make, self._emptied)
                lacking = "scripts, notebooks and Markdown"
        except ProjectError as error:
            self._refuse(str(error))
            return
        finally:
            if self._saves:
                self._saves.follow(self._included(config))
            self._end_build()
        self._report(build.failures, "a plugin has shown this of a page")
        self._report(failed, f"the {lacking} of these pages were not written")

    def _log_once(self, message: str) -> None:
        if message not in self._logged:
            log.info(message)
        self._logged.add(message)

    def _report(self, failures: list[Failure], consequence: str) -> None:
        new = [failure for failure in failures if failure not in self._reported]
        self._reported += new
        for failure in new:
            log.error(str(failure))
        if new and not self._serving:
            raise PluginError(f"{len(new)} failed, as listed above; {consequence}")

    def _refuse(self, message: str) -> None:
        """End the build; while serving, where that would stop the server, keep the pages of the last build."""
        if self._server is None:
            raise PluginError(message)
        log.error(message)

    def _again(self) -> None:
        """Let MkDocs build again, as if each folder that it watches had changed."""
        if self._server is None:
            self._missed = True
            return
        from livepages.integrations.saves import BuildAgain

        for emitter in list(self._server.observer.emitters):
            emitter.queue_event(BuildAgain(emitter.watch.path))

    def on_serve(self, server: "LiveReloadServer", *, config: MkDocsConfig, builder: Any) -> "LiveReloadServer":
        """Build again when a page changes, a file that pages include, a module that they import, or an inventory."""
        for looking in (server.observer, *server.observer.emitters):
            setattr(looking, "_timeout", 0.1)  # noqa: B010  # MkDocs looks every half second, which is most of the wait
        server.server_bind = explained(*config.dev_addr)(server.server_bind)  # type: ignore[method-assign]
        project = self._current().engine.project
        for path in (project.snippets, project.inventories):
            if path.is_dir():
                server.watch(str(path))
        for watched in config.watch:  # as MkDocs does, but only after this
            server.watch(watched)
        from livepages.integrations.saves import Saves

        self._saves = Saves(server, (project.docs, project.snippets))
        self._saves.follow(self._included(config))
        self._current().engine.prepare()
        self._kernels = Kernels(server.url)
        if self._kernels.off:
            log.warning(self._kernels.off)
        if self._background and (application := server.get_app()):
            server.set_app(self._kernels.offered(self._background.watching(application, server.mount_path)))
        self._server = server
        if self._missed:  # a page has run to its end since the first build
            self._again()
        return server

    def _included(self, config: MkDocsConfig) -> list[Path]:
        """Return the files that the pages of this build include."""
        return [*self._current().included, *appended_files(config)]

    def on_shutdown(self) -> None:
        """End the pages' processes, the one that they are forked from, and what ran blocks for readers."""
        logging.getLogger(MkDocsPage.__module__).removeFilter(self._links)
        if self._kernels:
            self._kernels.close()
        if self._build:
            self._build.engine.close()

    def _path(self, page: MkDocsPage) -> Path:
        """The file of a page, by the path that the project uses; it need not exist, because plugins make pages, too."""
        return self._current().engine.project.docs / page.file.src_uri

    def _converts(self, path: Path | None) -> None:
        assert self._conversion is not None
        self._conversion.path = path

    def _current(self) -> Build:
        assert self._build is not None
        return self._build
