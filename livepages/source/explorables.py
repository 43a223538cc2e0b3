"""Explorables: blocks that run once for each of several values of a name, or of two, which their fence lists.

``vary="lr=0.01, 0.1"`` is Python: the targets of assignments, and the values that each takes in turn.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

MAX_NAMES, MAX_VALUES, MAX_RUNS = 2, 9, 25  # names a block, values a name, runs a block
FORM = 'a name and its values, as "lr=0.01, 0.1"'


@dataclass(frozen=True)
class Varied:
    """A name and the values that it takes, as the fence writes them; the first is the page's own."""

    name: str
    values: tuple[str, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The indexes of the values from the smallest to the largest, if each is written as a number; else none."""
        numbers = [*map(_number, self.values)]
        return tuple(sorted(range(len(numbers)), key=numbers.__getitem__)) if None not in numbers else ()  # type: ignore[arg-type]

    def assignment(self, value: str) -> str:
        """Return the line of code that assigns one of the values, with the others in a comment."""
        return f"{self.name} = {value}  # or {', '.join(other for other in self.values if other != value)}"


Parameters = tuple[tuple[str, str], ...]  # of one run of a block: each name that varies, and its value


def read_varied(text: str) -> tuple[Varied, ...]:
    """Return the names and values that an option lists.

    Raises:
        ValueError: it lists none, or too many; the message says what is wanted.
    """
    try:
        found = tuple(_varied(text.strip()))
    except SyntaxError:
        raise ValueError(FORM) from None
    names = [varied.name for varied in found]
    if not 0 < len(set(names)) == len(names) <= MAX_NAMES:
        raise ValueError(f"{FORM}; two names at most, each once, go with a semicolon between them")
    for varied in found:
        if len(set(varied.values)) < max(2, len(varied.values)):
            raise ValueError(f"{FORM}, at least two, each once; {varied.name} has {', '.join(varied.values)}")
        if len(varied.values) > MAX_VALUES:
            raise ValueError(f"{FORM}, at most {MAX_VALUES}; {varied.name} has {len(varied.values)}")
    if (runs := len(combinations(found))) > MAX_RUNS:
        raise ValueError(f"{FORM}; two names make a grid of at most {MAX_RUNS}, and these make one of {runs}")
    return found


def _varied(text: str) -> Iterator[Varied]:
    for statement in ast.parse(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                nodes = value.elts if isinstance(value, ast.Tuple) else [value]
                yield Varied(name, tuple(ast.get_source_segment(text, node) or "" for node in nodes))
            case _:
                raise SyntaxError


def combinations(varied: Sequence[Varied]) -> list[Parameters]:
    """Return the parameters of each run of a block, the page's own first; of two names the second changes faster."""
    found = product(*([(one.name, value) for value in one.values] for one in varied))
    return [*found] if varied else []


def assignments(varied: Sequence[Varied], parameters: Parameters) -> str:
    """Return the lines of code that a block begins with in one of its runs."""
    return "".join(f"{one.assignment(value)}\n" for one, (_, value) in zip(varied, parameters, strict=True))


def label(parameters: Parameters) -> str:
    """Return the parameters of a run in words: ``lr=0.1``, ``rows=2, columns=4``."""
    return ", ".join(f"{name}={value}" for name, value in parameters)


def unused(varied: Sequence[Varied], code: str) -> str:
    """Return the first of the names that some code does not mention; empty if it mentions all, or is not Python."""
    try:
        mentioned = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    except SyntaxError:
        return ""
    return next((one.name for one in varied if one.name not in mentioned), "")


def _number(text: str) -> float | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
