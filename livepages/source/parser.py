"""Markdown text to a `Page`: its Python blocks in order, each with code, options, marks, line numbers and key.

This is the only parser: the site, the runs and the tests all use its pages. A Python fence that it cannot read is an
error with page and line, never skipped.

Includes are expanded by ``pymdownx.snippets``; comments mean the same as for pytest-codeblocks, whose own parser
knows neither tildes nor block quotes nor nesting nor options.
"""

import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from livepages.source.alignment import align
from livepages.source.comments import read_comments
from livepages.source.explorables import assignments, combinations, label, unused
from livepages.source.fences import PYTHON, Fence, LineError, find_fences
from livepages.source.front_matter import Settings, front_matter_length, read_front_matter
from livepages.source.inline import MARK, InlineExpression, find_inline
from livepages.source.markdown_exec import block_options
from livepages.source.options import Options, parse_options
from livepages.source.page import LOOKS_LIKE_PYTHON, Block, Fault, Page, PageError, digest
from livepages.source.project import Project
from livepages.source.snippets import expand
from livepages.source.suggestions import closest
from livepages.source.superfences import EXECUTED
from livepages.worker import Runtime

KEY_VERSION = "1"  # raise it when the same code, run by a newer engine, would give another outcome


def read_page(path: Path, project: Project, data: bytes | None = None, with_faults: bool = False) -> Page:
    """Read the page in a Markdown file of a project, or in the data given instead of the file's.

    Args:
        path: the file.
        project: the project.
        data: read instead of the file.
        with_faults: whether to return a page that has `faults`, as far as it can be read.

    Raises:
        PageError: there is no such file, it is not UTF-8, an include or the front matter cannot be read, or a fence
            cannot be taken.
    """
    name = project.name(path)
    try:
        data = path.read_bytes() if data is None else data
    except OSError as error:
        raise PageError(name, 1, f"the page cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PageError(name, line, f"the page is not UTF-8: {error.reason}; save it as UTF-8") from None
    return parse(text, path, project, with_faults)


def parse(text: str, path: Path, project: Project, with_faults: bool = False) -> Page:
    """`read_page` for text at hand."""
    name = project.name(path)
    text = re.sub(r"\r\n?", "\n", text)  # as MkDocs wants it to see front matter
    page = (_executed_page if project.fences == "exec" else _whole_page)(text, path, project)
    found = [*page.faults, *(block.fault for block in page.blocks if block.fault)]
    if found and not with_faults:
        found.sort(key=lambda fault: fault.line)
        first, *others = (PageError(name, fault.line, fault.message) for fault in found)
        raise PageError(name, first.line, first.message, tuple(others))
    return page


def _whole_page(text: str, path: Path, project: Project) -> Page:
    """Read a page of a site on which every Python fence runs."""
    lines, name = text.split("\n"), project.name(path)
    try:
        length = front_matter_length(lines)
        expanded = tuple(expand([""] * length + lines[length:], project.snippets))
    except LineError as error:
        raise PageError(name, error.line, error.message) from None
    return _page(text, tuple(lines[:length]), expanded, path, name, project.runtime, project.inline_expressions)


@lru_cache(maxsize=512)  # while serving, most pages stay unchanged
def _page(
    text: str,
    front: tuple[str, ...],
    expanded: tuple[tuple[str, int], ...],
    path: Path,
    name: str,
    runtime: Runtime,
    with_inline: bool,
) -> Page:
    lines, origin = tuple(line for line, _ in expanded), [number for _, number in expanded]
    faults: list[LineError] = []
    try:
        settings, meta = read_front_matter(front, runtime)
    except LineError as error:
        faults.append(error)
        settings, meta = read_front_matter((), runtime)
    before = len(faults)
    fences = list(find_fences(lines, origin, faults))
    readable = lines[: origin.index(faults[-1].line)] if faults[before:] else lines
    found = [*_blocks(readable, origin, fences, name, settings, faults)]
    prose = find_inline(readable, origin, fences, faults) if with_inline else ()
    blocks, inline = _numbered(found, [*_inline(found, prose, origin, faults)])
    page = Page(path, name, text, lines, blocks, inline, settings, meta, tuple(origin))
    titles = {section.anchor: section.title for section in page.sections}
    ids = [(block.options.id, block.line) for block in blocks]
    message = "option id: {!r} is that of the heading {!r}".format
    faults += [LineError(line, message(anchor, titles[anchor])) for anchor, line in ids if anchor in titles]
    return _with_faults(page, faults, origin)


def _with_faults(page: Page, errors: Iterable[LineError], origin: Sequence[int]) -> Page:
    """Return a page with its faults: the first of a block's fence is the block's."""
    blocks, faults = list(page.blocks), []
    for error in sorted(errors, key=lambda error: error.line):
        fault = Fault(error.line, str(error), origin.index(error.line) if error.line in origin else 0)
        for number, block in enumerate(blocks):
            if block.fault is None and fault.line in origin[block.fence.start : block.fence.end]:
                blocks[number] = replace(block, fault=fault)
                break
        else:
            faults.append(fault)
    return replace(page, blocks=tuple(blocks), faults=tuple(faults))


def _executed_page(text: str, path: Path, project: Project) -> Page:
    """Read a page of a site in which only the fences run that markdown-exec would execute.

    Everything else on it is read by other programs, so only our options can be wrong.
    """
    lines = text.split("\n")
    try:
        length = front_matter_length(lines)
    except LineError:  # a rule, for Markdown
        length = 0
    try:
        settings, meta = read_front_matter(lines[:length], project.runtime)
    except LineError:
        settings, meta = read_front_matter((), project.runtime)
    expanded = project.include(path, [""] * length + lines[length:])
    return _of_executed_lines(
        Page(path, project.name(path), text, (), (), (), settings, meta),
        tuple(line for line, _ in expanded),
        [number for _, number in expanded],
        project,
    )


def changed_page(path: Path, page: Page | None, lines: Sequence[str], project: Project) -> Page:
    """Return a page whose text plugins and hooks have changed to these lines, includes expanded.

    Args:
        path: its file, which need not be there: plugins make pages, too.
        page: the one in the file, if there is any.
        lines: the text.
        project: the site.

    Returns:
        the page, with its faults.
    """
    page = page or _executed_page("", path, project)
    return _of_executed_lines(page, tuple(lines), align(lines, page.text, page.origin), project)


def _of_executed_lines(page: Page, lines: tuple[str, ...], origin: list[int], project: Project) -> Page:
    faults = [LineError(origin[number], message) for number, message in project.scanner.ignored(lines)]
    blocks: list[Block] = []
    digests: dict[str, str] = {}  # by namespace
    start = 1
    for found in project.scanner.scan(lines):
        if found.language not in EXECUTED:
            continue
        code, numbers = found.program(origin)
        line = origin[found.fence.start]
        options, wrong = block_options(found.options)
        if found.language == "pycon" and options.vary:
            wrong.append("vary: write the block as python, without prompts")
            options = replace(options, vary=())
        options = _read_varied(options, code, wrong)
        faults += (LineError(line, message) for message in wrong)
        block = Block(page.name, len(blocks), line, code, numbers, start, options, found.fence)
        block = replace(block, shows_figures=bool(options.alt))
        before = digests.get(block.namespace) or digest(KEY_VERSION, *map(str, page.settings.runtime.values()))
        block = _varied(block, lambda code: digest(before, block.namespace, code, options.key))  # noqa: B023
        digests[block.namespace] = block.key
        blocks.append(block)
        start += block.code.count("\n") + 1
    prose = find_inline(lines, origin, project.scanner.fences(lines), faults) if project.inline_expressions else ()
    numbered, inline = _numbered(blocks, [*_inline(blocks, prose, origin, faults)])
    page = replace(page, text=lines, blocks=numbered, inline_expressions=inline, origin=tuple(origin))
    return _with_faults(page, faults, origin)


def _blocks(
    lines: tuple[str, ...],
    origin: list[int],
    fences: list[Fence],
    name: str,
    settings: Settings,
    faults: list[LineError],
) -> Iterator[Block]:
    """Yield the blocks of a page; their faults are added to a list, so that all are reported at once."""
    faults += (fault for fence in fences for fault in _lookalikes(fence, origin[fence.start]))
    beginning = digest(KEY_VERSION, json.dumps(list(settings.runtime.values()), sort_keys=True))
    digests = {"": beginning}  # by session
    start = 1
    ids: dict[str, int] = {}
    for index, commented in enumerate(read_comments(lines, origin, fences, faults)):
        fence, code = commented.fence, "".join(f"{line}\n" for line in commented.fence.content)
        line = origin[fence.start]
        if "markdown-exec: hide" in code or "`" * 8 in code:
            message = 'hidden lines and runs of 8 backticks are not taken; hide a block with source="none"'
            faults.append(LineError(line, message))
        options, wrong = parse_options(fence.info)
        options = _read_varied(options, code, wrong)
        faults += (LineError(line, message) for message in wrong)
        if options.id and ids.setdefault(options.id, line) != line:
            faults.append(LineError(line, f"option id: {options.id!r} is that of the block of line {ids[options.id]}"))
        if commented.continues and options.isolated:
            faults.append(LineError(line, "cont: a block that is isolated continues no other"))
        options = replace(options, raises=options.raises or commented.raises)
        options = replace(options, source="none") if fence.comment else options
        # A block in a namespace of its own depends on no other, and no other depends on it.
        before = digests.get(options.session) or digest(beginning, options.session)
        before = beginning if options.isolated else before
        block = Block(
            page=name,
            index=index,
            line=line,
            code=code,
            lines=tuple(origin[fence.start + 1 : fence.end - 1]),
            start=start,
            options=options,
            fence=fence,
            marks=commented.marks,
            importorskip=commented.importorskip,
            expected_output=commented.expected_output,
            expected_output_ignore_whitespace=commented.ignore_whitespace,
        )
        if options.exec:
            block = _varied(block, lambda code: digest(before, code, options.key))  # noqa: B023  (called at once)
            start += block.code.count("\n") + 1
            if not options.isolated:
                digests[options.session] = block.key
        yield block


def _read_varied(options: Options, code: str, wrong: list[str]) -> Options:
    """Return options without names that the code does not use, which is noted."""
    if options.vary and (name := unused(options.vary, code)):
        wrong.append(f"option vary: the block does not use {name}")
        return replace(options, vary=())
    return options


def _varied(block: Block, key: Callable[[str], str]) -> Block:
    """Return a block with its key, and if its fence varies a name, with the assignment that its code then begins with,
    and with its variants.

    Args:
        block: with the code of its fence.
        key: returns the key of a code.
    """
    varied = block.options.vary
    if not varied:
        return replace(block, key=key(block.code))
    found = []
    for parameters in combinations(varied):
        code = assignments(varied, parameters) + block.code
        lines = (*[block.line] * len(varied), *block.lines)
        found.append(replace(block, code=code, lines=lines, parameters=parameters, key=key(code)))
    first, *others = found
    return replace(first, variants=tuple(_variant(block) for block in others))


def _variant(block: Block) -> Block:
    alt, parameters = block.options.alt, label(block.parameters)
    alt = alt and (f"{alt} With {parameters}." if alt.endswith(".") else f"{alt}, with {parameters}")
    return replace(block, variant_of=block.index, options=replace(block.options, alt=alt), expected_output=None)


def _inline(
    blocks: Sequence[Block], found: Iterable[InlineExpression], origin: Sequence[int], faults: list[LineError]
) -> Iterator[Block]:
    """Yield the inline expressions of a page, each with the index of the block above it; one that has none is a fault.

    Later blocks do not depend on them, so their keys do not cover them.
    """
    above = None
    program = deque(block for block in blocks if block.runs)
    for one in found:
        while program and program[0].fence.start < one.line:
            above = program.popleft()
        line = origin[one.line]
        if above is None:
            faults.append(LineError(line, f"`{MARK} {one.code}`: there is no block above that runs"))
            continue
        kept = ("session", "isolated", "volatile", "tolerance")
        yield Block(
            page=above.page,
            index=-1,
            line=line,
            code=one.code,
            lines=(),
            start=0,
            options=Options(source="none", **{name: getattr(above.options, name) for name in kept}),
            fence=Fence(one.line, one.line + 1, "", "", (one.code,)),
            key=digest(above.key, MARK, one.code),
            shows_figures=False,
            columns=one.columns,
            above=above.index,
        )


def _numbered(blocks: Sequence[Block], inline: Sequence[Block]) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Return the blocks and inline expressions of a page, numbered in one row; then come the variants of the blocks."""
    in_order = sorted((*blocks, *inline), key=lambda block: block.fence.start)
    new = {block.index: index for index, block in enumerate(in_order) if not block.is_inline}
    numbers = itertools.count(len(in_order))

    def numbered(index: int, block: Block) -> Block:
        if block.is_inline:
            return replace(block, index=index, above=new[block.above])  # type: ignore[index]  # an inline one has it
        variants = (replace(one, index=next(numbers), variant_of=index) for one in block.variants)
        return replace(block, index=index, variants=tuple(variants))

    found = [numbered(index, block) for index, block in enumerate(in_order)]
    return tuple(one for one in found if not one.is_inline), tuple(one for one in found if one.is_inline)


def _lookalikes(fence: Fence, line: int) -> Iterator[LineError]:
    """Yield the errors of a fence that looks as if it should run."""
    language, info = fence.language, fence.info
    if language in PYTHON and not re.match(r"(python|py)(\s|$)", info):
        yield LineError(line, f"write the fence as ```python, not ```{info}")
    elif "{" in info and re.search(r"[{\s.](python|py)\d?\b", info):
        yield LineError(line, 'write options on the fence as name="value", without braces')
    elif language in LOOKS_LIKE_PYTHON and not re.search(r"exec=[\"']?off[\"']?.*\breason=", info):
        yield LineError(line, f'the {language} fence is not run; write ```python, or add exec="off" reason="…"')
    elif language not in (*PYTHON, *LOOKS_LIKE_PYTHON, "cython") and closest(language, ["python"], 0.8):
        yield LineError(line, f"the {language} fence is not run; did you mean ```python?")
