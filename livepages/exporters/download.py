"""Everything besides its blocks that a reader needs to run a page: packages, settings, modules, conditions."""

import ast
import inspect
import io
import sys
import tokenize
from collections.abc import Iterator
from functools import cached_property

from livepages.execution import Run, distributions
from livepages.exporters.script_helpers import SiteFiles, source
from livepages.records import used_files
from livepages.source import Block, Page, PageError, Project, parse_mark
from livepages.worker import imported, installed


class Download:
    """A page made ready to be run elsewhere.

    Raises:
        PageError: `requires` of the front matter is not a list of installed distributions, or a file that the page
            needs is not text.
    """

    def __init__(self, page: Page, run: Run, project: Project, url: str) -> None:
        self.page, self.run, self.url = page, run, url
        self.rests_on = used_files(project, run)  # as records name it
        self.record = page.path.relative_to(project.docs).with_suffix("").as_posix()  # the name of the page's
        self._files = _files(page, run, project)
        self._runtime, settings = project.runtime, page.settings
        self._configuration = self._runtime.setup(settings.runtime, project.options) if page.program else ""
        self._conditions = [condition for block in page.program for condition, _ in self._guards(block)]

    @property
    def head(self) -> list[str]:
        """The page's title and address, and what its outputs were made with."""
        device = f", on {self.run.device}" if self.run.device else ""
        address = [self.url] if self.url else []
        return [
            self.page.title,
            *address,
            "",
            f"The outputs on the page are from {self._runtime.version_label}{device}.",
        ]

    @cached_property
    def install(self) -> str:
        """The arguments of pip that install the packages of the page's imports, in the versions of its run."""
        names = set[str]().union(*map(imported, self._sources())) - self._modules - sys.stdlib_module_names
        needed = {*distributions.versions(names), *self._required()}
        main = self._runtime.distributions[:1]
        first = main if needed & set(main) or self._configuration or self._uses_lacks else ()
        pinned = [f"{name}=={installed(name)}" for name in (*first, *sorted(needed - set(main)))]
        return " ".join(["install", *pinned]) if pinned else ""

    @property
    def setup(self) -> str:
        """The code that has to run before the first block; empty if there is none."""
        parts = []
        conditions = " ".join(self._conditions)
        if names := [
            name for name in ("importlib.util", "os", "platform", "shutil", "sys") if f"{name}." in conditions
        ]:
            parts.append("\n".join(f"import {name}" for name in names))
        if self._configuration:
            parts.append(self._configuration)
        if self._uses_lacks:
            parts.append(inspect.getsource(self._runtime.lacks).rstrip("\n"))
        return "\n\n".join(parts)

    def carried(self, block: Block) -> str:
        """The code that makes the files of the site, if this block is the first to import one; else empty."""
        if not self._files or block is not self._first_user:
            return ""
        brought = (_brings(name, text) for name, text in self._files.items())
        return "\n\n".join([f"{source(SiteFiles)}\n\n\nsite_files = SiteFiles()", *brought])

    def guarded(self, block: Block, code: str) -> str:
        """Return the code of a block so that it says why, and does nothing else, where the block cannot run."""
        for condition, reason in reversed(self._guards(block)):
            code = f'if {condition}:\n    print("Not run here:", {reason})\nelse:\n{indented(code)}'
        return code

    def _guards(self, block: Block) -> list[tuple[str, str]]:
        return list(_guards(block, self.page.settings.needs))

    @cached_property
    def _first_user(self) -> Block:
        """The first block that imports a file of the site; the first block of all if none does so by name."""
        program = self.page.program
        return next((block for block in program if self._modules & imported(block.code)), program[0])

    @property
    def _modules(self) -> set[str]:
        """The names that the files which travel with the page are imported by."""
        return {name.partition("/")[0].removesuffix(".py") for name in self._files}

    @property
    def _uses_lacks(self) -> bool:
        return any("lacks(" in condition for condition in self._conditions)

    def _sources(self) -> Iterator[str]:
        yield from (block.code for block in self.page.program)
        yield from (text for name, text in self._files.items() if name.endswith(".py"))

    def _required(self) -> list[str]:
        """Return the distributions that the page needs without importing them itself."""
        names = self.page.meta.get("requires", [])
        assert isinstance(names, list)
        if missing := [name for name in names if not installed(name)]:
            line = self.page.settings.lines["requires"]
            raise PageError(self.page.name, line, f"requires: {missing[0]} is not installed")
        return names


def indented(code: str) -> str:
    """The code four columns to the right, as the body of a statement, without a change of what its strings hold."""
    try:
        code = code if ast.parse(code).body else f"{code}\npass"
    except SyntaxError:
        code = f"exec({code!r})"  # raises its SyntaxError when it is reached, not before
    kept: set[int] = set()
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = tokenize.tok_name[token.type]
        if kind.endswith("STRING_START"):  # of an f-string, from Python 3.12 on
            starts.append(token.start[0])
        elif kind.endswith("STRING_END") or kind == "STRING":
            start = token.start[0] if kind == "STRING" else starts.pop()
            kept.update(range(start + 1, token.end[0] + 1))
    lines = code.rstrip("\n").split("\n")
    return "\n".join(line if n in kept or not line else f"    {line}" for n, line in enumerate(lines, 1))


def _guards(block: Block, page_needs: str) -> Iterator[tuple[str, str]]:
    """Yield two expressions for each condition that keeps a block from running: whether it holds, and the reason."""
    if needs := block.options.needs or page_needs:
        yield f'lacks("{needs}")', f'lacks("{needs}")'
    if block.importorskip:
        module = block.importorskip.strip("\"' ")
        yield f'importlib.util.find_spec("{module}") is None', f'"needs the module {module}"'
    for mark in block.marks:
        name, call = parse_mark(mark)
        reasons = [ast.get_source_segment(mark, keyword.value) for keyword in call.keywords if keyword.arg == "reason"]
        if name == "skip":
            reasons += [ast.get_source_segment(mark, reason) for reason in call.args]
            yield "True", str(reasons[0] if reasons else '"its mark says so"')
        if name != "skipif":
            continue
        for argument in call.args:
            condition = argument.value if isinstance(argument, ast.Constant) else ast.get_source_segment(mark, argument)
            yield str(condition), str(reasons[0] if reasons else '"its mark says so"')


def _files(page: Page, run: Run, project: Project) -> dict[str, str]:
    """The project's modules and data that the page uses: their names below the folder of modules, and their text."""
    found = {}
    for name in sorted(run.files):
        file = project.root / name
        if file.is_relative_to(project.snippets) and file.is_file():
            try:
                found[file.relative_to(project.snippets).as_posix()] = file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise PageError(page.name, 1, f"{project.name(file)} is not text; a download cannot carry it") from None
    return found


def _brings(name: str, text: str) -> str:
    literal = repr(text)
    for quotes in ("'''", '"""'):
        if quotes not in text and text.endswith("\n"):
            literal = f"r{quotes}{text}{quotes}"
            break
    return f'site_files.bring("{name}", {literal})'
