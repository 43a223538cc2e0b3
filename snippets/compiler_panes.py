"""A function in four languages, linked: Python, jaxpr, StableHLO and optimized HLO, side by side as HTML.

JAX notes on every equation and operation the places in the source that it comes from, innermost first, and XLA keeps
most of the notes. A place in the function's own lines is an *expression*; in all four panes, what computes it carries
its number.
"""

import html
import inspect
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, takewhile
from typing import Any

import jax

Place = tuple[int, int, int, int]  # line, column, last line, column after the end
Stack = list[tuple[str, Place]]  # files and places in them, innermost first
Own = Callable[[Stack], Place | None]
Program = list[tuple[str, set[Place]]]
Name = tuple[str, tuple[tuple[int, int], ...]]  # of an operation, and the starts of the places in its stack
LANGUAGES = ("jaxpr", "StableHLO", "optimized HLO")
STATUS = "Choose an underlined expression to see\nwhat became of it in each language."
IDLE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}  # name or arrange what is there


@dataclass(frozen=True)
class Line:
    """One line of a program, and the numbers of the expressions that it is part of."""

    text: str
    expressions: frozenset[int] = frozenset()

    @property
    def computes(self) -> bool:
        """Return whether it is an equation, an operation or an instruction that makes new numbers."""
        name = re.search(r' = (?:\(.*?\) |\w+\[[\d,]*\] )?"?([\w-]+)', self.text)
        return name is not None and name[1] not in IDLE


@dataclass(frozen=True)
class Stages:
    """A function's source, the places of its expressions in order, and its three programs."""

    source: list[str]
    first_line: int
    places: list[Place]
    programs: dict[str, list[Line]]

    def expression(self, number: int) -> str:
        """The text of an expression; numbers start at 1."""
        line, start, last, end = self.places[number - 1]
        rows = self.source[line - self.first_line : last - self.first_line + 1]
        rows[-1] = rows[-1][:end]
        return " ".join(row.strip() for row in [rows[0][start:], *rows[1:]])

    def counts(self) -> list[int]:
        """The numbers of lines that compute: of the jaxpr, StableHLO, optimized HLO, and the entry of the latter."""
        programs = list(self.programs.values())
        entry = takewhile(lambda line: line.text != "}", programs[-1])
        return [sum(line.computes for line in lines) for lines in (*programs, entry)]


def stages(function: Callable[..., Any], *args: Any, shown: Callable[..., Any] | None = None) -> Stages:
    """A function after each stage of its compilation.

    Args:
        function: what is traced, lowered and compiled.
        args: its arguments, or their shapes and dtypes.
        shown: the Python function whose expressions are linked, if it is not `function` itself.
    """
    source, first_line = inspect.getsourcelines(shown or function)
    file = inspect.getsourcefile(shown or function)
    lines = range(first_line, first_line + len(source))

    def own(stack: Stack) -> Place | None:
        return next((place for name, place in stack if name == file and place[0] in lines), None)

    traced = jax.jit(function).trace(*args)
    lowered = traced.lower()
    operations, names = _operations(lowered.as_text(debug_info=True), own)
    instructions = _instructions(lowered.compile().as_text(), own, names)
    programs = (_equations(traced.jaxpr, own), operations, instructions)

    found = set[Place]().union(*(places for program in programs for _, places in program))
    places = sorted(found, key=lambda place: (place[:2], [-end for end in place[2:]]))  # the outer before the inner
    number = {place: at for at, place in enumerate(places, 1)}
    numbered = [[Line(text, frozenset(map(number.get, places))) for text, places in program] for program in programs]
    return Stages(source, first_line, places, dict(zip(LANGUAGES, numbered)))


# --- reading -----------------------------------------------------------------------------------------------------


def _equations(jaxpr: Any, own: Own) -> Program:
    """The lines of a jaxpr as JAX prints it. A library function that it calls has no place: it takes the call's."""
    notes: list[list[tuple[int, int, Any]]] = []
    text = jaxpr.pretty_print(source_map=notes, use_color=False)
    program: Program = []
    calls: list[tuple[int, set[Place]]] = []  # indentation and place of the equations around
    for line, note in zip(text.split("\n"), notes):
        indent = len(line) - len(line.lstrip())
        calls = [call for call in calls if call[0] < indent]
        place = own(_frames(note[0][2])) if note else None
        places = {place} if place else set[Place]().union(*(around for _, around in calls[-1:]))
        calls.append((indent, places))
        if short := _shorter_equation(line):
            program.append((short, places))
    return program


def _frames(traceback: Any) -> Stack:
    stack = []
    for code, instruction in zip(*traceback.raw_frames()):
        line, last, start, end = next(islice(code.co_positions(), instruction // 2, None))
        if end is not None:
            stack.append((code.co_filename, (line, start, last, end)))
    return stack


def _operations(text: str, own: Own) -> tuple[Program, dict[Name, set[Place]]]:
    """The lines of StableHLO; the places of each name. A function without a place takes those of its calls."""
    definitions = dict(re.findall(r"^#(loc\d*) = loc\((.*)\)$", text, re.MULTILINE))
    part = re.compile(r'#(loc\d*)|"([^"]*)":(\d+):(\d+) to (\d*):(\d+)')

    def stack(location: str) -> Iterator[tuple[str, Place]]:
        for alias, file, line, start, last, end in part.findall(location):
            if alias:
                yield from stack(definitions.get(alias, ""))
            else:
                yield file, (int(line), int(start), int(last or line), int(end))

    program: Program = []
    regions: list[int] = []  # lines of operations that are noted further down, where their last region ends
    names: dict[Name, set[Place]] = {}
    calls: dict[str, set[Place]] = {}
    for line in text.split("\n"):
        if not line.strip() or line.startswith(("#loc", "module", "}")):
            continue
        location = re.search(r" loc\(#(loc\d*)\)$", line)
        found = list(stack(location[0])) if location else []
        place = own(found)
        places = {place} if place else set()
        if place and (name := re.match(r'"([^"]*)"', definitions[location[1]])):
            names.setdefault(_name(name[1], found), set()).add(place)
        if call := re.search(r"call @(\w+)", line):
            calls.setdefault(call[1], set()).update(places)
        if " = " in line and not location:
            regions.append(len(program))
        program.append((_shorter(line[2:]), places))  # everything is in a module

    for at in regions:
        line, places = program[at]
        end = line[: len(line) - len(line.lstrip())] + "}"
        places.update(next((ended for text, ended in program[at:] if text == end), set()))
    function = ""
    for line, places in program:
        if head := re.search(r"func private @(\w+)", line):
            function = head[1]
        if " = " in line and not places:
            places.update(calls.get(function, set()))
    return _with_constants(program), names


def _instructions(text: str, own: Own, names: dict[Name, set[Place]]) -> Program:
    """The lines of optimized HLO, the entry first.

    XLA tells apart where places start, not where they end: the names of operations tell the rest.
    """
    files = dict(re.findall(r'^(\d+) "(.*)"$', text.partition("FunctionNames")[0], re.MULTILINE))
    locations, frames = (
        {row: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", rest)} for row, rest in rows}
        for rows in (
            re.findall(r"^(\d+) \{(file_name_id=.*)\}$", text, re.MULTILINE),
            re.findall(r"^(\d+) \{(file_location_id=.*)\}$", text, re.MULTILINE),
        )
    )
    no_parent = next((frame["parent_frame_id"] for frame in frames.values()), 0)  # the first frame has none

    def stack(frame: str) -> Iterator[tuple[str, Place]]:
        while frame in frames:
            at = locations[str(frames[frame]["file_location_id"])]
            yield files[str(at["file_name_id"])], (at["line"], at["column"], at["end_line"], at["end_column"])
            frame = str(frames[frame]["parent_frame_id"] - no_parent)

    starting: dict[tuple[int, int], set[Place]] = {}
    for places in names.values():
        for place in places:
            starting.setdefault(place[:2], set()).add(place)

    program: Program = []
    inside: dict[str, set[Place]] = {}
    computation = ""
    for line in re.split(r"\n(?=%|ENTRY)", text, maxsplit=1)[1].split("\n"):
        if not line.strip():
            continue
        if head := re.match(r"(%\S+) .*\{$", line):
            computation = head[1]
        places = set[Place]()
        note = re.search(r'op_name="([^"]*)" stack_frame_id=(\d+)', line)
        if note and " parameter(" not in line:
            found = list(stack(note[2]))
            own_place = own(found)
            near = starting.get(own_place[:2], {own_place}) if own_place else set()
            places = set(names.get(_name(note[1], found), near))
        for called in re.findall(r"calls=(%[\w.-]+)", line):
            places |= inside.get(called, set())
        inside.setdefault(computation, set()).update(places)
        program.append((_shorter(line), places))
    entry = next(at for at, (line, _) in enumerate(program) if line.startswith("ENTRY"))
    return _with_constants(_without_unpacking(program[entry:] + program[:entry]))


def _name(operation: str, stack: Stack) -> Name:
    return operation, tuple(place[:2] for _, place in stack)


def _with_constants(program: Program) -> Program:
    """Constants, and what spreads them, belong to the expressions that use them."""
    users: dict[str, set[Place]] = {}
    for line, places in reversed(program):
        if line.endswith("}"):
            users = {}
        head = re.match(r"\s*(?:ROOT )?(%[\w.-]+) = (?:\S+ )?(constant|broadcast)", line)
        if head and not places:
            places.update(users.get(head[1], set()))
        for name in re.findall(r"%[\w.-]+", line.partition(" = ")[2]):
            users.setdefault(name, set()).update(places)
    return program


def _without_unpacking(program: Program) -> Program:
    """`%t[2]` in place of an instruction that takes element 2 of the tuple `%t`."""
    part = re.compile(r"^  (%\S+) = .* get-tuple-element\((%\S+)\), index=(\d+)$")
    parts = {match[1]: f"{match[2]}[{match[3]}]" for line, _ in program if (match := part.match(line))}
    return [
        (re.sub(r"%[\w.-]+", lambda name: parts.get(name[0], name[0]), line), places)
        for line, places in program
        if not part.match(line)
    ]


def _shorter_equation(line: str) -> str:
    """A line of a jaxpr without parameters that are not read here and types of numbers; perhaps nothing is left."""
    unread = r"\b(out_sharding|preferred_element_type|reverse|unroll|num_\w+|ft_in|ft_out|symbolic_zeros|jvp)="
    line = re.sub(unread + r"[^\s\]].*?(?=\]| \w+=|$)| weak_type=False", "", line)
    line = re.sub(r"(-?\d[\d.e+-]*):\w+\[\]", lambda number: _short(number[1]), line)
    return re.sub(r"(?<=\S) \]", "]", line).rstrip()


def _shorter(line: str) -> str:
    """A line of StableHLO or HLO without what is not read here: notes, settings, layouts, types of operands."""
    line = re.sub(r" loc\([^()]*\)|, (metadata|backend_config|frontend_attributes)=\{.*", "", line)
    line = re.sub(r"(?<=\])\{[\d,:()A-Z]*\}|, dimensions=\{\}|/\*index=\d+\*/", "", line)
    line = re.sub(r"^((?:ENTRY )?%\S+) \(.*\{$", r"\1 {", line)
    line = re.sub(
        r'stablehlo\.|func\.|, precision = \[[\w, ]*\]|, dims = \[\]| \{jax\.result_info = "[^"]*"\}', "", line
    )
    line = re.sub(r" : \(.*\) -> (.*)$| : tensor<\w+>, (?=tensor<\w+>$)", r" : \1", line)
    line = re.sub(r"dense<([^<>]*)>", lambda number: _short(number[1]), line)
    return re.sub(r"tensor<([^<>]*)>", r"\1", line).rstrip()


def _short(number: str) -> str:
    """A number in few digits; StableHLO writes infinities as the bits of a float."""
    if re.fullmatch("0x[0-9A-F]{8}", number):
        return str(struct.unpack(">f", bytes.fromhex(number[2:]))[0])
    return str(float(f"{float(number):.4g}")) if re.fullmatch(r"-?\d+\.\d.*", number) else number


# --- writing -----------------------------------------------------------------------------------------------------


def panes(name: str, found: Stages) -> str:
    """Four linked panes, and the same links as a list.

    Args:
        name: begins the anchors, `name.1` for the first expression.
        found: what is shown.
    """
    shown = [_pane("Python", _python(name, found))]
    shown += [_pane(language, "".join(map(_line, lines))) for language, lines in found.programs.items()]
    entries = "".join(
        f'<li id="{name}.{number}"><code>{html.escape(found.expression(number))}</code>{_entry(found, number)}</li>'
        for number in range(1, len(found.places) + 1)
    )
    return (
        f'<div class="live-panes"><p role="status">{STATUS}</p><div>{"".join(shown)}</div>'
        f'<details class="live-more"><summary>The same as a list</summary><ol>{entries}</ol></details></div>'
    )


def _pane(title: str, code: str) -> str:
    return f'<div role="group" aria-label="{title}"><p>{title}</p><pre><code>{code}</code></pre></div>'


def _line(line: Line) -> str:
    numbers = " ".join(map(str, sorted(line.expressions)))
    mark = f' data-e="{numbers}"' if numbers else ""
    return f"<span{mark}>{html.escape(line.text, quote=False)}\n</span>"


def _python(name: str, found: Stages) -> str:
    """The source; each expression is a link, on its first word or sign that is not part of an expression inside it."""
    linked: set[int] = set()
    rows = []
    for line, row in enumerate("".join(found.source).splitlines(), found.first_line):
        owners = [0] * len(row)
        for number, (first, start, last, end) in enumerate(found.places, 1):  # the outer before the inner
            if first <= line <= last:
                begin, stop = (start if line == first else 0), (end if line == last else len(row))
                owners[begin:stop] = [number] * (stop - begin)
        shown = ""
        for number, group in groupby(range(len(row)), owners.__getitem__):
            columns = list(group)
            part = html.escape(row[columns[0] : columns[-1] + 1], quote=False)
            if not number or not part.strip():
                shown += part
            elif number in linked or not part.strip(" ()[],"):
                shown += f'<span data-e="{number}">{part}</span>'
            else:
                linked.add(number)
                label = html.escape(found.expression(number))
                shown += f'<a href="#{name}.{number}" data-e="{number}" aria-label="{label}">{part}</a>'
        rows.append(f"<span>{shown}\n</span>")
    return "".join(rows)


def _entry(found: Stages, number: int) -> str:
    parts = []
    for language, lines in found.programs.items():
        texts = [line.text.strip() for line in lines if number in line.expressions and line.computes]
        codes = "".join(f"<li><code>{html.escape(text, quote=False)}</code></li>" for text in texts)
        parts.append(f"<li>{language}{f'<ul>{codes}</ul>' if codes else ': nothing'}</li>")
    return f"<ul>{''.join(parts)}</ul>"
