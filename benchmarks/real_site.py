"""Measure how long the real site takes to build, against its pages without the engine, how soon a page is served, and
how long an author waits from saving a page until it is seen.

    python -m benchmarks.real_site [--repeat 3]

Works on a copy of the site, in one run on one machine; what counts are the ratios. It begins with nothing kept, so
every page runs, which takes some minutes. How long it takes until a change is noticed is part of what is measured. The
tables go to the terminal and to ``benchmarks/real_site.md``.
"""

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.site_copy import RAN, ROOT, Copy, Served, shown, whole

PAGE = "basics/vmap.md"  # that is edited between builds
SECONDS = 2.0  # that a page takes which is asked for while others still run
TIMED = "basics/updates.md"  # runs alone
SAVED = (
    PAGE,
    "basics/derivatives.md",
    "start/ten-minutes.md",
    "speed/jit.md",
    "train/training.md",
    "train/diffusion.md",
)  # that are edited while the site is served


def unchanged(copy: Copy) -> float:
    """Seconds for a build that runs nothing."""
    seconds, output = copy.build()
    assert " 0 run now" in output, output
    return seconds


def a_word(copy: Copy) -> float:
    """Seconds for a build after an edit of prose."""
    copy.edit_prose(PAGE, "One more sentence.")
    return unchanged(copy)


def a_block(copy: Copy) -> float:
    """Seconds for a build after an edit of code, without those in which that page ran."""
    copy.edit_code(PAGE, "one more line")
    seconds, output = copy.build()
    ran = RAN.findall(output)
    assert [name for name, _ in ran] == [PAGE], output
    return seconds - float(ran[0][1])


def best(repeat: int, measure: Callable[[], float]) -> float:
    """The shortest of several measurements: what else the machine does can only add."""
    return min(measure() for _ in range(repeat))


def building(copy: Copy, repeat: int) -> Iterator[tuple[str, float, str]]:
    """Measure builds, and yield what was measured, the seconds, and what they are compared with."""
    seconds, output = copy.build()
    ran = {name: float(s) for name, s in RAN.findall(output)}
    alone = copy.alone()
    least = sum(s for n, s in ran.items() if n in alone) + sum(s for n, s in ran.items() if n not in alone) / (
        os.cpu_count() or 1
    )
    late = [name for name in list(ran)[len(ran) // 2 :] if name not in alone]
    opened = min(late, key=lambda name: abs(ran[name] - SECONDS))
    yield "cold", seconds, f"{seconds / least:.2f} × the pages' run times ÷ cores ({len(ran)} pages, {least:.0f} s)"
    without = best(repeat, lambda: copy.build("without.yml")[0])
    yield "the engine left out", without, ""
    for name, measure in (
        ("nothing changed", unchanged),
        ("a word changed", a_word),
        ("one block changed, without that page's own run", a_block),
    ):
        seconds = best(repeat, partial(measure, copy))
        yield name, seconds, f"{seconds / without:.2f} × the engine left out"
    kept = copy.root / ".cache"
    kept.rename(copy.root / "kept")
    start = time.perf_counter()
    with copy.served() as served:
        served.wait("start/install.md", shown)
        yield "serving with nothing kept: first page served", time.perf_counter() - start, ""
        time.sleep(10)
        for page, how in ((opened, f" ({ran[opened]:.1f} s)"), (TIMED, ", which runs alone")):
            start = time.perf_counter()
            served.wait(page, whole)
            yield f"meanwhile, `{page}` asked for{how}: whole", time.perf_counter() - start, ""
    shutil.rmtree(kept)
    (copy.root / "kept").rename(kept)


def holds(words: str, all_of_it: bool, html: str) -> bool:
    """Return whether the HTML of a page holds words, and, if all of it is wanted, nothing that has not run."""
    return words in html and (whole(html) or not all_of_it)


def saving(copy: Copy, served: Served, page: str, repeat: int) -> dict[str, list[float]]:
    """Seconds from save to seen, for edits of prose and of the first block."""
    seconds: dict[str, list[float]] = {}
    for number in range(repeat):
        words = f"Edited prose {number}."
        start = copy.edit_prose(page, words)
        served.wait(page, partial(holds, words, False))
        seconds.setdefault("prose", []).append(time.perf_counter() - start)
        time.sleep(1.0)

        words = f"edited code {number}"
        before = served.ran()
        start = copy.edit_code(page, words)
        for kind, wanted, all_of_it in (
            ("code: page served", words, False),
            ("code: first results", f"<code>{words}", False),
            ("code: whole page", f"<code>{words}", True),
        ):
            served.wait(page, partial(holds, wanted, all_of_it))
            seconds.setdefault(kind, []).append(time.perf_counter() - start)
        assert served.ran() == [*before, page], "another page ran"
        time.sleep(1.0)
    return seconds


def tables(repeat: int) -> Iterator[str]:
    """The lines of what is written down, as they are known."""
    yield "# Speed on the real site"
    yield ""
    yield (
        f"{len(list((ROOT / 'docs').rglob('*.md')))} pages; {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}. Made by `make bench`; ratios are from one run on one machine."
    )
    yield ""
    yield "| what | seconds | compared |"
    yield "|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for what, taken, compared in building(copy, repeat):
            yield f"| {what} | {taken:.2f} | {compared} |"
        yield ""
        yield "From saving a page to seeing it, while the site is served. A page that takes long to run is shown as far"
        yield "as it is, and again when it is whole."
        yield ""
        yield "| page | edit | median | worst |"
        yield "|---|---|---|---|"
        with copy.served() as served:
            served.wait("index.md", shown)
            time.sleep(2.0)
            for page in SAVED:
                for kind, seconds in saving(copy, served, page, repeat).items():
                    yield f"| `{page}` | {kind} | {statistics.median(seconds):.2f} s | {max(seconds):.2f} s |"


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    lines = []
    for line in tables(options.repeat):
        lines.append(line)
        print(line, flush=True)
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
