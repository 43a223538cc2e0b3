"""The comments of pytest-codeblocks, and the Python fences of a page with the comments on each.

A comment above a fence is about it: ``<!--pytest.mark.skipif(sys.platform == "win32", reason="…")-->``, or
``<!--pytest-codeblocks:importorskip(numpy)-->``. After ``<!--pytest-codeblocks:expected-output-->``, the next fence
holds what the block above prints. They mean the same as for pytest-codeblocks, with three exceptions: the blocks of a
page share a namespace without ``cont``, a block with ``xfail`` must fail, and other marks of pytest only select blocks.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from livepages.source.fences import PYTHON, Fence, LineError
from livepages.source.suggestions import closest

_COMMENT = re.compile(r"<!--[-\s]*(pytest[-_.].*?)[-\s]*-->")
_KEYWORDS = (
    *("cont", "expected-output", "expected-output-ignore-whitespace", "expect-error", "expect-exception"),
    *("importorskip(…)", "skip", "skipfile", "skipif(…)"),
)
# Marks that pytest applies in its own process, where no block runs, and what to do instead.
_WITHOUT_EFFECT = {
    "filterwarnings": "call warnings.filterwarnings in the block",
    "parametrize": "write a loop in the block",
    "usefixtures": "write what it needs in the block",
}


@dataclass
class CommentedFence:
    """A Python fence with the comments on it."""

    fence: Fence
    marks: tuple[str, ...] = ()  # as written
    importorskip: str = ""  # a module
    raises: str = ""  # the exception class that `xfail` names
    continues: bool = False  # whether its comment is `cont`
    expected_output: str | None = None
    ignore_whitespace: bool = False  # in the expected output


def read_comments(
    lines: Sequence[str], origin: Sequence[int], fences: Iterable[Fence], faults: list[LineError]
) -> list[CommentedFence]:
    """Return the Python fences of a page in order, with their comments.

    Args:
        lines: the page's, after includes.
        origin: for each of them its line in the page.
        fences: all fences in them.
        faults: to which each comment is added that cannot be taken.
    """
    reader = _Reader(lines, origin, faults)
    at = 0
    for fence in fences:
        reader.read(range(at, fence.start))
        reader.add(fence)
        at = fence.end
    reader.read(range(at, len(lines)))
    reader.finish()
    return reader.found


def parse_mark(text: str) -> tuple[str, ast.Call]:
    """Return the name of a mark, as ``skipif`` of ``pytest.mark.skipif(...)``, and its call, maybe without arguments.

    Raises:
        SyntaxError: it is not Python.
    """
    mark = ast.parse(text, mode="eval").body
    call = mark if isinstance(mark, ast.Call) else ast.Call(mark, [], [])
    return ast.unparse(call.func).removeprefix("pytest.mark."), call


class _Reader:
    """The fences found so far, and the comments about the next one."""

    def __init__(self, lines: Sequence[str], origin: Sequence[int], faults: list[LineError]) -> None:
        self._lines, self._origin, self._faults = lines, origin, faults
        self.found: list[CommentedFence] = []
        self._last: Fence | None = None  # the last one that holds no expected output
        self._output: tuple[int, CommentedFence] | None = None  # where an output is announced, and whose it is
        self._file_marks: tuple[str, ...] = ()
        self._begin()

    def _begin(self) -> None:
        """Wait for the next block: no comment is about it yet."""
        self._marks = self._file_marks
        self._importorskip = self._raises = ""
        self._continues = False
        self._waiting: int | None = None  # the line of the last comment above it

    def _refuse(self, number: int, message: str) -> None:
        self._faults.append(LineError(self._origin[number], message))

    def read(self, numbers: range) -> None:
        """Read lines outside of fences."""
        for number in numbers:
            if match := _COMMENT.match(self._lines[number].lstrip("> \t")):
                self._waiting = number
                if match[1].startswith("pytest.mark."):
                    self._mark(number, match[1])
                else:
                    self._keyword(number, match[1])

    def add(self, fence: Fence) -> None:
        """Take the fence that follows."""
        runs = fence.language in PYTHON
        if self._output:
            number, block = self._output
            self._output = None
            if not runs:
                block.expected_output = "".join(f"{line}\n" for line in fence.content)
                return
            self._refuse(fence.start, "an expected output is not Python; fence it as text")
        if self._continues and not runs:
            self._refuse(fence.start, "cont: a fence that continues a Python block begins with ```python, too")
        if runs:
            if self._continues and not self.found:
                self._refuse(fence.start, "cont: there is no block above that this one could continue")
            self.found.append(CommentedFence(fence, self._marks, self._importorskip, self._raises, self._continues))
        self._last = fence
        self._begin()

    def finish(self) -> None:
        """Report comments that no fence follows, and blocks that would be neither run nor shown."""
        if self._output:
            self._refuse(self._output[0], "expected-output: no fence follows that holds it")
        elif self._waiting is not None:
            self._refuse(self._waiting, "no fence follows this comment; put it above the block that it is about")
        for block, following in zip_longest(self.found, self.found[1:]):
            comment = block.fence.comment
            if comment and not (following and (following.continues or following.fence.comment)):
                self._refuse(
                    block.fence.start,
                    f"a block inside the comment of line {self._origin[comment.start]} would run unseen; "
                    "to have it run, write <!--pytest-codeblocks:cont--> above the next block",
                )

    def _keyword(self, number: int, comment: str) -> None:
        written = re.fullmatch(r"pytest-codeblocks:\s*([a-z-]+)\s*(?:\((.*)\))?", comment)
        match (written[1], written[2]) if written else ("", None):
            case "cont", None:
                self._continues = True
            case "skip", None:
                self._marks += ("pytest.mark.skip",)
            case "skipif", str(condition):
                self._mark(number, f"pytest.mark.skipif({condition}, reason='')")
            case "importorskip", str(module):
                self._importorskip = module
            case "expect-error" | "expect-exception", None:
                self._raises = "Exception"
            case "expected-output" | "expected-output-ignore-whitespace" as keyword, None:
                self._expect_output(number, ignore_whitespace=keyword != "expected-output")
            case "skipfile", None:
                self._skip_file(number)
            case keyword, _:
                names = [name.removesuffix("(…)") for name in _KEYWORDS]
                known = f"{closest(keyword, names)}; known are {', '.join(_KEYWORDS)}"
                self._refuse(number, f"{comment} is no comment of pytest-codeblocks{known}")

    def _skip_file(self, number: int) -> None:
        self._waiting = None
        if any(line.strip() for line in self._lines[:number]):
            self._refuse(number, "skipfile: only the first line of a page can say so")
        self._file_marks = self._marks = ('pytest.mark.skip(reason="the first line of the page says skipfile")',)

    def _expect_output(self, number: int, ignore_whitespace: bool) -> None:
        last = self._last
        if last is None or not self.found or self.found[-1].fence is not last:
            above = f"the one of line {self._origin[last.start]}, which is not Python" if last else "none"
            self._refuse(number, f"expected-output: goes below a block that runs, and above it is {above}")
        elif self._output or self.found[-1].expected_output is not None:
            self._refuse(number, "expected-output: the block above it has one already")
        else:
            self.found[-1].ignore_whitespace = ignore_whitespace
            self._output = number, self.found[-1]
        self._waiting = None

    def _mark(self, number: int, text: str) -> None:
        try:
            name, call = parse_mark(text)
        except (SyntaxError, ValueError) as error:
            self._refuse(number, f"mark {text}: {error}")
            return
        if name in _WITHOUT_EFFECT:
            self._refuse(number, f"mark {text}: blocks run in a process without pytest; {_WITHOUT_EFFECT[name]}")
        elif name == "xfail":
            self._xfail(number, text, call)
        else:
            self._marks += (text,)

    def _xfail(self, number: int, text: str, call: ast.Call) -> None:
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        self._raises = given.get("raises", "Exception")
        if not self._raises.replace(".", "").isidentifier():
            self._refuse(number, f"mark {text}: raises names one exception class")
        if call.args or given.keys() - {"raises", "reason", "strict"} or given.get("strict", "True") != "True":
            self._refuse(number, f"mark {text}: a block with xfail must always fail; it takes raises and reason alone")
