"""The Python formatters of markdown-exec: it lays out what the blocks of a page gave when the page ran in a process of
its own, instead of executing them while it converts the page.

A text that `show` knows nothing of, and its blocks, are left to markdown-exec.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any
from weakref import WeakKeyDictionary

import markdown_exec
from markdown import Markdown
from markupsafe import Markup

from livepages.execution import BlockResult, Failure, Outcome
from livepages.rendering import failures_shown, figures_shown, not_shown
from livepages.source import EXECUTED, own_options

Formatter = Callable[..., str]


class ExecutedBlocks:
    """The results of a page that is being converted, in the order in which its fences ask for them."""

    def __init__(self, page: str, results: Iterable[BlockResult]) -> None:
        self._page, self._left = page, deque(results)
        self._inside = False
        self.failures: list[Failure] = []  # to be told besides those of the run

    def format(self, code: str, md: Markdown, options: dict[str, Any]) -> str:
        """Return the HTML of a fence that markdown-exec would execute.

        Args:
            code: the content of the fence.
            md: what converts the text that the fence is in.
            options: those of the fence, as markdown-exec has sorted them.
        """
        if self._inside:  # a block has printed the fence
            return _converted(markdown_exec.code_block("python", code), md, options)
        if not self._left or "\n".join(self._left[0].block.fence.content) != code:
            line = self._left[0].block.line if self._left else 1
            begins = repr(code.partition("\n")[0])
            return self._failed(line, f"the fence that begins {begins} has not run: an extension of the site made it")
        result = self._left.popleft()
        if result.failure:
            return failures_shown([result.failure])
        if result.outcome.pending or result.outcome.skipped:
            return not_shown(result)
        self._inside = True
        try:
            return self._shown(result, md, options)
        except Exception as error:  # noqa: BLE001  (superfences would take the fence for text, without a word)
            return self._failed(result.block.line, f"the output cannot be converted: {type(error).__name__}: {error}")
        finally:
            self._inside = False

    @staticmethod
    def _shown(result: BlockResult, md: Markdown, options: dict[str, Any]) -> str:
        block, outcome = result.block, result.outcome
        ours = own_options(options)
        options = {**options, "extra": {name: text for name, text in options["extra"].items() if name not in ours}}
        source = "\n".join(block.fence.content)
        if block.fence.language == "pycon":
            source = "\n".join(line for line in block.fence.content if line.startswith((">>> ", "... ")))
        shown = markdown_exec.base_format(
            language="pycon" if block.fence.language == "pycon" else "python",
            run=lambda *_, **__: _text(outcome, options),
            code=source,
            md=md,
            **options,
        )
        return Markup(shown + figures_shown(result)) if outcome.figures else shown  # noqa: S704

    def _failed(self, line: int, message: str) -> str:
        self.failures.append(Failure(self._page, line, line, message))
        return failures_shown(self.failures[-1:])

    def end(self) -> list[Failure]:
        """Return what is wrong once the text is converted: blocks that are not in it, and what was wrong before."""
        for result in self._left:
            self._failed(result.block.line, "the Markdown around it keeps this block from being shown")
        self._left.clear()
        return self.failures


def _text(outcome: Outcome, options: dict[str, Any]) -> str:
    """Return what a block printed, and the error that it was expected to raise."""
    text = outcome.stdout
    if options["result"] == "ansi":
        text = text.replace("\\x1b[", "\x1b[")  # which other outputs show
    if outcome.raised:
        error = outcome.raised.traceback
        text += error if options["result"] else f"\n\n{markdown_exec.code_block('pytb', error)}"
    return text


def _converted(text: str, md: Markdown, options: dict[str, Any]) -> str:
    return str(markdown_exec.MarkdownConverter(md, update_toc=options["update_toc"]).convert(text))


_shown: WeakKeyDictionary[Markdown, ExecutedBlocks] = WeakKeyDictionary()


def show(md: Markdown, blocks: ExecutedBlocks) -> None:
    """Have the Python fences of the text that `md` converts next show these blocks."""
    _shown[md] = blocks


def _format(own: Formatter, *, code: str, md: Markdown, **options: Any) -> str:
    blocks = _shown.get(getattr(md, "_original_md", md))
    return own(code=code, md=md, **options) if blocks is None else blocks.format(code, md, options)


@cache
def register() -> None:
    """Put our formatters in place of markdown-exec's own, which they call for texts that `show` knows nothing of."""
    formatters: dict[str, Any] = markdown_exec.formatters
    for language in EXECUTED:
        formatters[language] = partial(_format, formatters[language])
