"""Run every page as other kinds of computer would, and list what changes: ``make elsewhere``.

    python -m tests.elsewhere [--computer NAME]... [PAGE]...

The kinds are emulated: XLA compiles for a smaller instruction set or for other vectors, and NumPy, OpenBLAS (with which
SciPy and JAX factor matrices) and the thread pools are told so too. Three lists come out, and the exit status is 1 unless
the first two are empty:

- blocks that fail on a kind: an assertion or an expectation of the page does not hold there;
- blocks whose output or figure differs from that of this computer;
- assertions about numbers that leave little room: less than `ROOM` times as much as the kinds differ from each other.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from livepages.course import read_course
from livepages.execution import Engine, Run
from livepages.records import Entry, differ, entry
from livepages.source import Block, Page, find_project
from tests.room import FILE, Seen, watched

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".cache" / "elsewhere"
ROOM = 5.0
POINTS = 1.5  # by how much a coordinate of a figure may differ and look the same


@dataclass(frozen=True)
class Computer:
    """A kind of computer, and the settings that make this one behave like it."""

    xla: str = ""  # XLA_FLAGS
    blas: str = ""  # the kernels of OpenBLAS; those of the processor if empty
    without: str = ""  # instruction sets that NumPy leaves alone
    threads: int = 0  # of the pools; one a core if 0
    cores: int = 0  # that may be used; all if 0
    needs: str = "avx2"  # of the instruction sets in `X86`, what this computer must have; nothing if empty

    def can_be(self, instruction_set: str) -> bool:
        """Return whether a computer with this instruction set can run as one."""
        return not self.needs or instruction_set in X86[X86.index(self.needs) :]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make programs behave as they do there."""
        found = {"XLA_FLAGS": self.xla, "OPENBLAS_CORETYPE": self.blas, "NPY_DISABLE_CPU_FEATURES": self.without}
        if self.threads:
            found |= dict.fromkeys(("PJRT_NPROC", "OPENBLAS_NUM_THREADS"), str(self.threads))
        return {name: value for name, value in found.items() if value}


# `--xla_cpu_max_isa=SSE4_2` is none of them: XLA then lacks conversions of float16, and jaxlib itself needs AVX.
X86 = ("avx", "avx2", "avx512")  # from the oldest to the newest
_WIDE = "X86_V4 AVX512_ICL AVX512_SPR"
_SMALL = "--xla_cpu_max_isa=AVX2"
COMPUTERS = {
    "here": Computer(needs=""),
    "one core": Computer("--xla_cpu_multi_thread_eigen=false", threads=1, cores=1, needs=""),
    "AVX-512, wide vectors, 64 threads": Computer(
        "--xla_cpu_prefer_vector_width=512", "SkylakeX", threads=64, needs="avx512"
    ),
    "AVX2, Intel": Computer(_SMALL, "Haswell", _WIDE),
    "AVX2, AMD, 16 threads": Computer(_SMALL, "Zen", _WIDE, threads=16),
    "AVX without FMA": Computer("--xla_cpu_max_isa=AVX", "Sandybridge", f"X86_V3 {_WIDE}", needs="avx"),
    # As ARM's: vectors of 128 bits with FMA.
    "128-bit vectors, 8 threads": Computer(
        f"{_SMALL} --xla_cpu_prefer_vector_width=128", "Nehalem", f"X86_V3 {_WIDE}", threads=8
    ),
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a block on one computer."""

    entry: Entry
    failure: str
    figures: Sequence[str] = ()


@dataclass(frozen=True)
class Kind:
    """The outcomes of all blocks on one computer, by the name and line of each, and what assertions compared."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)


def run(paths: Sequence[Path], out: Path) -> None:
    """Run pages in this process's environment, assertions watched, and write what came of them into a file."""
    project = replace(find_project(ROOT), cache=out.with_suffix(""))
    rooms = out.with_suffix(".rooms")
    rooms.unlink(missing_ok=True)
    style = out.with_suffix(".matplotlibrc")
    style.write_text("path.simplify: False\n")  # which drops points of a line by rounding
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    os.environ |= {FILE: str(rooms), "PYTHONPATH": path, "MATPLOTLIBRC": str(style)}
    engine = Engine(project)
    pages, unread = engine.read(paths or read_course(project).pages)
    if unread:
        sys.exit("\n".join(map(str, unread)))
    programs = [replace(page, blocks=tuple(map(_watched, page.blocks))) for page in pages if page.program]
    try:
        runs = engine.run(programs, _say)
    finally:
        engine.close()
    found: dict[str, object] = {}
    for page in programs:
        for result in runs[page.path].program:
            found[_name(result.block)] = {
                "entry": asdict(entry(result)),
                "failure": str(result.failure or ""),
                "figures": result.outcome.figures,
            }
    out.write_text(json.dumps(found), encoding="utf-8")


def _watched(block: Block) -> Block:
    """Return a block, and its variants, with their assertions watched."""
    return replace(watched(block), variants=tuple(map(watched, block.variants)))


def _say(page: Page, run: Run) -> None:
    print("\n".join([f"{page.name}: {run.seconds:.0f} s", *map(str, run.failures)]), flush=True)


def read(out: Path) -> Kind:
    """Read what `run` wrote."""
    found = json.loads(out.read_text(encoding="utf-8"))
    outcomes = {name: Outcome(Entry(**one["entry"]), one["failure"], one["figures"]) for name, one in found.items()}
    return Kind(outcomes, Seen.read(out.with_suffix(".rooms")))


def _name(block: Block) -> str:
    return f"{block.page}:{block.line} ({block.index})"


def changed(
    blocks: Iterable[Block], here: Kind, there: Kind, noise: Sequence[tuple[re.Pattern[str], str]]
) -> Iterator[str]:
    """A line or more for each block that fails, or shows something else, on another computer."""
    for block in blocks:
        before, after = here.outcomes.get(_name(block)), there.outcomes.get(_name(block))
        if before is None or after is None or after.entry.outcome == "not run":
            continue
        if after.failure:
            yield after.failure
        elif before.entry.outcome == after.entry.outcome:
            options = block.options
            if difference := differ(before.entry, after.entry, options.tolerance, options.volatile, noise):
                yield f"{block.page}:{block.where}: {difference}"
            elif not options.volatile:
                for number, pair in enumerate(zip(before.figures, after.figures, strict=True), 1):
                    if far := moved(*pair, options.tolerance):
                        yield f"{block.page}:{block.where}: figure {number}: {far}"


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def moved(old: str, new: str, tolerance: float = 0.0) -> str:
    """Describe how one drawing differs visibly from another; empty if it does not.

    Args:
        old: the one, as SVG.
        new: the other.
        tolerance: by how much of the drawing's size anything in it may move.
    """
    if _NUMBER.sub("#", old) != _NUMBER.sub("#", new):
        return "has other parts"
    before, after = ([float(number) for number in _NUMBER.findall(svg)] for svg in (old, new))
    far = max((abs(a - b) for a, b in zip(before, after, strict=True)), default=0.0)
    return f"something in it is {far:.3g} points elsewhere" if far > max(POINTS, tolerance * max(before)) else ""


def tight(kinds: Iterable[Kind]) -> Iterator[str]:
    """A line for each assertion that leaves little room, the tightest first."""
    seen: dict[str, list[Seen]] = defaultdict(list)
    for kind in kinds:
        for where, one in kind.seen.items():
            seen[where].append(one)
    rooms = ((Seen.room(several), where, several) for where, several in seen.items())
    for room, where, several in sorted((one for one in rooms if one[0] < ROOM), key=lambda one: one[:2]):
        yield f"{where}: room {room:.2g}: " + "; ".join(dict.fromkeys(map(str, several)))


def main() -> int:
    """Run and compare; 1 if a block fails or shows something else on some computer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="all if none is named")
    parser.add_argument("--computer", action="append", choices=COMPUTERS, metavar="NAME", help="; ".join(COMPUTERS))
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)  # in the process that is one of the computers
    options = parser.parse_args()
    if options.out:
        run([path.resolve() for path in options.pages], options.out)
        return 0
    KEPT.mkdir(parents=True, exist_ok=True)
    kinds, here = {}, find_project(ROOT).runtime.instruction_set()
    for name in dict.fromkeys(["here", *(options.computer or COMPUTERS)]):
        computer, out = COMPUTERS[name], KEPT / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.json"
        if not computer.can_be(here):
            print(f"{name}: left out, as this computer has {here or 'an unknown instruction set'}", flush=True)
            continue
        print(f"{name}: {computer.environment}", flush=True)
        cores = sorted(os.sched_getaffinity(0))[: computer.cores or None]
        command = ["taskset", "--cpu-list", ",".join(map(str, cores)), sys.executable, "-m", "tests.elsewhere"]
        environment = {**os.environ, **computer.environment}
        subprocess.run([*command, "--out", out, *options.pages], env=environment, cwd=ROOT, check=True)
        kinds[name] = read(out)
    return report(kinds)


def report(kinds: Mapping[str, Kind]) -> int:
    """Print the lists; 1 if a block fails or shows something else on some computer."""
    project = find_project(ROOT)
    pages, _ = Engine(project).read(read_course(project).pages)
    blocks = [block for page in pages for block in page.cases]
    found: dict[str, list[str]] = defaultdict(list)
    for name, kind in kinds.items():
        for line in changed(blocks, kinds["here"], kind, project.runtime.noise_patterns):
            found[line].append(name)
    for line, names in found.items():
        print(f"\n{line}\n    on: {', '.join(names)}")
    rooms = list(tight(kinds.values()))
    print("\nlittle room:" if rooms else "", *rooms, sep="\n")
    print(f"\n{len(found)} differences on {len(kinds) - 1} computers; {len(rooms)} assertions with little room")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
