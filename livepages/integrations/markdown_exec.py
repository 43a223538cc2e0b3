"""The Python formatters of markdown-exec: it lays out the results of a page's blocks, which ran in a process of
its own, instead of executing them while it converts the page.

Texts that were not passed to `show`, and their blocks, are left to markdown-exec.
"""

from collections import deque
from collections.abc import Callable
from functools import cache, partial
from typing import Any
from weakref import WeakKeyDictionary

import markdown_exec
from markdown import Markdown
from markupsafe import Markup

from livepages.execution import BlockResult, Failure, Outcome, Run
from livepages.rendering import absence_html, explorable, failures_html, figures_html
from livepages.source import EXECUTED, Block, own_options

Formatter = Callable[..., str]


class ExecutedBlocks:
    """The results of a page that is being converted, in the order of its fences."""

    def __init__(self, page: str, run: Run) -> None:
        self._page, self._run, self._left = page, run, deque(run.on_page)
        self._inside = False
        self.failures: list[Failure] = []  # reported besides those of the run

    def format(self, code: str, md: Markdown, options: dict[str, Any]) -> str:
        """Return the HTML of a fence that markdown-exec would execute; the options are as it has sorted them."""
        if self._inside:  # a block has printed the fence
            return _converted(markdown_exec.code_block("python", code), md, options)
        if not self._left or "\n".join(self._left[0].block.fence.content) != code:
            line = self._left[0].block.line if self._left else 1
            begins = repr(code.partition("\n")[0])
            return self._failed(line, f"the fence that begins {begins} has not run: an extension of the site made it")
        result = self._left.popleft()
        if result.failure:
            return _below_code(result, failures_html([result.failure]), md, options)
        if absence := absence_html(result):
            return _below_code(result, absence, md, options)
        self._inside = True
        try:
            return self._result(result, md, options)
        except Exception as error:  # noqa: BLE001  (superfences would take the fence for text, without a word)
            return self._failed(result.block.line, f"the output cannot be converted: {type(error).__name__}: {error}")
        finally:
            self._inside = False

    def _result(self, result: BlockResult, md: Markdown, options: dict[str, Any]) -> str:
        block, variants = result.block, self._run.variants(result.block)
        ours = own_options(options)
        options = {**options, "extra": {name: text for name, text in options["extra"].items() if name not in ours}}
        if not variants:
            return _output(result, md, options)
        bare = {**options, "source": ""}
        outputs = [_variant(one, md, bare) for one in (result, *variants)]
        return _laid_out(block, explorable(block, outputs), md, {**options, "html": True})

    def _failed(self, line: int, message: str) -> str:
        self.failures.append(Failure(self._page, line, line, message))
        return failures_html(self.failures[-1:])

    def end(self) -> list[Failure]:
        """Return the failures of the conversion, with one for each block that the text lacks."""
        for result in self._left:
            self._failed(result.block.line, "the Markdown around it keeps this block from being shown")
        self._left.clear()
        return self.failures


def _laid_out(block: Block, output: str, md: Markdown, options: dict[str, Any]) -> Markup:
    """Return the HTML that markdown-exec makes of a block and its output."""
    code, language = block.code, "python"
    if block.fence.language == "pycon":
        code, language = "\n".join(line for line in block.fence.content if line.startswith((">>> ", "... "))), "pycon"
    return markdown_exec.base_format(language=language, run=lambda *_, **__: output, code=code, md=md, **options)


def _below_code(result: BlockResult, output: str, md: Markdown, options: dict[str, Any]) -> str:
    """Return what replaces a block's output, below its code if the page shows the code."""
    fence = result.block.fence
    code = markdown_exec.code_block(fence.language, "\n".join(fence.content)) if options["source"] else ""
    return (_converted(code, md, options) if code else "") + output


def _output(result: BlockResult, md: Markdown, options: dict[str, Any]) -> Markup:
    """Return the HTML of a block that has run."""
    return _laid_out(result.block, _text(result.outcome, options), md, options) + Markup(figures_html(result))  # noqa: S704


def _variant(result: BlockResult, md: Markdown, options: dict[str, Any]) -> str:
    """Return the output of a block with some of its parameters, as HTML."""
    if result.failure:
        return failures_html([result.failure])
    return absence_html(result) or _output(result, md, options)


def _text(outcome: Outcome, options: dict[str, Any]) -> str:
    """Return the output of a block, with the error that it was expected to raise."""
    text = outcome.stdout
    if options["result"] == "ansi":
        text = text.replace("\\x1b[", "\x1b[")  # which other outputs show
    if outcome.raised:
        error = outcome.raised.traceback
        text += error if options["result"] else f"\n\n{markdown_exec.code_block('pytb', error)}"
    return text


def _converted(text: str, md: Markdown, options: dict[str, Any]) -> str:
    return str(markdown_exec.MarkdownConverter(md, update_toc=options["update_toc"]).convert(text))


_blocks: WeakKeyDictionary[Markdown, ExecutedBlocks] = WeakKeyDictionary()


def show(md: Markdown, blocks: ExecutedBlocks) -> None:
    """Show these blocks for the Python fences of the text that `md` converts next."""
    _blocks[md] = blocks


def _format(own: Formatter, *, code: str, md: Markdown, **options: Any) -> str:
    blocks = _blocks.get(getattr(md, "_original_md", md))
    return own(code=code, md=md, **options) if blocks is None else blocks.format(code, md, options)


@cache
def register() -> None:
    """Put our formatters in place of markdown-exec's own, which they call for texts that are not in `show`."""
    formatters: dict[str, Any] = markdown_exec.formatters
    for language in EXECUTED:
        formatters[language] = partial(_format, formatters[language])
