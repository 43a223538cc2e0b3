"""The steps after a build by any program: files besides the HTML of pages, and the index of their questions."""

import html
import json
from collections.abc import Callable
from pathlib import Path

from livepages.execution import Failure
from livepages.exporters import Memo, Publication, SiteFolder, no_memo
from livepages.integrations.assets import add_assets, copy_assets
from livepages.integrations.build import Build
from livepages.integrations.questions import Question, linked_data, take_questions
from livepages.integrations.redirects import write_redirects
from livepages.rendering import head_links, restore_downloads
from livepages.source import PageError, ProjectError


def finish(
    build: Build,
    site: Path,
    log: Callable[[str], None],
    memo: Memo = no_memo,
    emptied: bool = False,
) -> list[Failure]:
    """Write the pages' other forms, redirects, the assets and the files of the guide.

    Args:
        build: of the site.
        site: the folder that holds it.
        log: is called with the names of files that are not written, because the author has written them.
        memo: returns the value made before from the same page.
        emptied: whether the folder was empty before the site was built.

    Returns:
        a failure for each page whose forms or redirects could not be written.

    Raises:
        ProjectError: the HTML of a page is not in the site.
    """
    project = build.engine.project
    folder = SiteFolder(site, project.docs, emptied)
    for name, text in build.guide.files().items():
        folder.write(name, text.encode())
    refused = Publication(project, build.guide.course, build.ran, folder, memo).write()
    return _finish(build, folder, log, refused)


def finish_executed(build: Build, site: Path, log: Callable[[str], None], emptied: bool) -> list[Failure]:
    """Write redirects and the assets: `finish` for a site whose pages markdown-exec lays out."""
    return _finish(build, SiteFolder(site, build.engine.project.docs, emptied), log, [])


def _finish(build: Build, folder: SiteFolder, log: Callable[[str], None], refused: list[PageError]) -> list[Failure]:
    copy_assets(folder)
    refused = [*refused, *write_redirects([page for page, _ in build.ran], build.guide.course, folder)]
    if folder.left:
        log(f"not written, as the site has its own: {', '.join(folder.left)}")
    return [Failure(error.page, error.line, 0, error.message) for error in refused]


def finish_zensical(build: Build, site: Path) -> None:
    """Add the assets and the questions to the pages of a site that Zensical built, as the plugin of MkDocs does.

    Raises:
        ProjectError: the HTML of a page is not in the site, or its search index is not as Zensical writes it.
    """
    course = build.guide.course
    questions_by_place: dict[str, Question] = {}
    listed = {path for part in course.parts for path in part.pages}  # the others have no Markdown
    for path, place in ((path, course.place(path)) for path in build.pages):
        file = site / place.html
        try:
            before = file.read_text(encoding="utf-8")
        except OSError as error:
            raise ProjectError(f"{file}: {error.strerror}; the page was not built") from None
        linked = before.replace("</head>", f"{head_links(place) if path in listed else ''}</head>", 1)
        text, questions = take_questions(add_assets(restore_downloads(linked, place), place.folder))
        if questions:
            data = linked_data(questions, course.url and f"{course.url.rstrip('/')}/{place.url}")
            script = f'<script type="application/ld+json">{data}</script>\n</head>'
            text = text.replace("</head>", script, 1)
            questions_by_place |= {f"{place.url}#{question.id}".rstrip("#"): question for question in questions}
        file.write_text(text, encoding="utf-8")
    if questions_by_place:
        _index(site / "search.json", questions_by_place)


def _index(file: Path, questions_by_place: dict[str, Question]) -> None:
    """Add the wordings of questions, by their addresses, to the texts that the search looks through."""
    try:
        index = json.loads(file.read_text(encoding="utf-8"))
        for entry in index["items"]:
            if question := questions_by_place.get(entry["location"]):
                entry["text"] += "".join(f"<p>{html.escape(wording)}</p>" for wording in question.wordings)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ProjectError(f"{file}: the wordings of questions cannot be added for the search: {error!r}") from None
    file.write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")
