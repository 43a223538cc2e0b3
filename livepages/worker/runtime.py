"""The interface of a runtime, which pages are programs of, and its implementation for plain Python.

A project names its runtime; if it does not, what its pages import decides. ``python`` is the one of this module; any
other is a subclass, in a module beside this one or named by an entry point of another distribution (`find_runtime`).
"""

import contextlib
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any, ClassVar


class SettingError(ValueError):
    """A setting has a value that it cannot have."""

    def __init__(self, name: str, wanted: str) -> None:
        super().__init__(name, wanted)
        self.name, self.wanted = name, wanted


def lacks(needs: str) -> str:
    """Return why this host cannot run a block that `needs` this; empty if it can."""
    return "" if needs.partition(">=")[0] in ("cpu", "cpus") else f"needs {needs}; this host has no such device"


class Runtime:
    """Plain Python, and the interface that every other runtime implements.

    The methods down to `setup` are called where sites are built, and import nothing of the runtime; the others in the
    page's own process.
    """

    name: ClassVar[str] = "python"
    libraries: ClassVar[
        tuple[str, ...]
    ] = ()  # modules whose import in a page chooses it if it is built in and the project chooses none
    distributions: ClassVar[tuple[str, ...]] = ()  # whose versions decide its results; the first one names it
    environment: ClassVar[tuple[str, ...]] = ()  # what the names of the variables that it reads begin with
    process_environment: ClassVar[Mapping[str, str]] = {}  # what the processes of pages find, unless it is set
    noise_patterns: ClassVar[tuple[tuple[re.Pattern[str], str], ...]] = ()  # in outputs, and what stands for it
    lacks = staticmethod(lacks)  # a function that stands alone, as its source goes into what readers download

    def versions(self) -> dict[str, str]:
        """The versions of the runtime's distributions that are installed, by their names."""
        return {name: number for name in self.distributions if (number := installed(name))}

    @property
    def release(self) -> str:
        """The release that outputs depend on: the version of the runtime's first distribution, else of Python."""
        return next((f"{name} {number}" for name, number in self.versions().items()), _PYTHON)

    @property
    def version_label(self) -> str:
        """The versions that outcomes are from, in words."""
        return ", ".join(dict.fromkeys([self.release, _PYTHON]))

    def fingerprint(self) -> dict[str, object]:
        """Return everything of this host that decides what a page outputs."""
        return {
            "runtime": self.name,
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "distributions": self.versions(),
            "environment": {**_variables(MODULE_VARIABLES), **self.variables()},
        }

    @property
    def computer(self) -> str:
        """The kind of this computer, as far as rounding differs: its system, architecture and instruction set."""
        return f"{platform.system()} {platform.machine()} {self.instruction_set()}".rstrip()

    def instruction_set(self) -> str:
        """The newest instruction set that results are computed with, as ``avx2``; empty if the system names none."""
        return newest_instruction_set(_listed(), self.newest_used())

    def newest_used(self) -> str:
        """The instruction set that the runtime stops at where the processor has newer ones; empty if at none."""
        return ""

    def is_processor(self, device: str) -> bool:
        """Return whether a device is the processor of the computer, not an accelerator.

        Args:
            device: as `device` names it.
        """
        return True

    def variables(self) -> dict[str, str]:
        """The environment variables that the runtime reads."""
        return _variables(self.environment)

    def describe(self) -> dict[str, Any]:
        """The devices of this host: their kind as ``device``, ``count``, and ``driver``.

        Raises:
            RuntimeError: there is no device.
        """
        return {"device": platform.machine(), "count": 1, "driver": ""}

    def host(self) -> dict[str, Any]:
        """Return the description of this host in its records, except for what is installed there."""
        devices = self.describe()
        return {
            "device": devices["device"],
            "count": devices["count"],
            "processor": f"{os.cpu_count()} × {_processor()}",
            "driver": devices["driver"],
            "system": f"{platform.system()} {platform.machine()}",
            "instruction_set": self.instruction_set(),
            "python": platform.python_version(),
        }

    def settings(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the settings of the runtime in a page's front matter, with defaults, in a fixed order.

        Args:
            given: all of the front matter.

        Raises:
            SettingError: a value is not understood.
        """
        needs = given.get("needs", "")
        if "needs" in given and not is_device(str(needs)):
            raise SettingError("needs", 'a device such as "gpu" or "gpus>=2"')
        return {"needs": needs}

    def settings_summary(self, settings: Mapping[str, object]) -> str:
        """Return what a reader should know of a page's settings, in words; empty if there is nothing."""
        return ""

    def setup(self, settings: Mapping[str, object], options: Mapping[str, object]) -> str:
        """The code by which a reader sets up what the page's process was set up with; empty if there is none."""
        return ""

    def preload(self) -> None:
        """Import what pages need, without touching a device, so that forks have it at once."""

    def configure(self, settings: Mapping[str, Any], options: Mapping[str, object], cache: str, root: str) -> None:
        """Set up the process of a page.

        Args:
            settings: the page's (see `settings`).
            options: the project's, the table of the runtime's name in its configuration.
            cache: a folder for what may be used again by other pages.
            root: of the project, whose files are to be named by their paths below it.

        Raises:
            Exception: a name or a value is refused.
        """

    @contextlib.contextmanager
    def settings_restored(self) -> Iterator[None]:
        """Put back, at the end, what is changed meanwhile in the configuration of this process."""
        yield

    def flush(self) -> None:
        """Wait for output that is still under way."""

    def counts(self) -> dict[str, int]:
        """Return the counters that are shown for each block, by name in the plural, as ``traces``."""
        return {}

    def backend_initialized(self) -> bool:
        """Return whether the devices are chosen, so that asking for one changes nothing for what comes after."""
        return True

    def device(self) -> str:
        """The device that the page ran on, as the small print names it; empty where there is no choice."""
        return ""

    def public_name(self, module: str, name: str) -> str:
        """The class of an exception as users write it."""
        return name if module in ("builtins", "__main__") else f"{module}.{name}"

    def user_notes(self, notes: Iterable[str]) -> list[str]:
        """The notes of an exception, without the runtime's own."""
        return list(notes)


_PYTHON = f"Python {platform.python_version()}"
# The variable for folders of modules: the only one of those for Python and the C library that pages get as it is set.
MODULE_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONNOUSERSITE", "PYTHONUSERBASE")
_DEVICE = re.compile(r"(cpu|gpu|tpu)(?:s>=([1-9]\d*))?")


def _processor() -> str:
    with contextlib.suppress(OSError):
        if model := re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8")):
            return model[1].strip()
    return platform.processor() or platform.machine()


def _variables(beginnings: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(beginnings)}


# From the oldest to the newest of each architecture, with the flags by which Linux and macOS list them.
_INSTRUCTION_SETS = {
    "sse4.2": {"sse4_2"},
    "avx": {"avx", "avx1_0"},
    "avx2": {"avx2", "avx2_0"},
    "avx512": {"avx512f"},
    "neon": {"neon", "asimd"},
    "sve": {"sve"},
}


def newest_instruction_set(listed: str, limit: str = "") -> str:
    """The newest instruction set of a processor, of those that round differently; empty if none of them is listed.

    Args:
        listed: the content of ``/proc/cpuinfo`` on Linux, the output of ``sysctl hw.optional`` on macOS.
        limit: the newest one to consider; all if empty.
    """
    found = re.findall(r"^(?:flags|Features)\s*: (.*)|^hw\.optional\.(\w+): 1$", listed, re.MULTILINE)
    flags = {flag for linux, macos in found for flag in (*linux.split(), macos)}
    names = list(_INSTRUCTION_SETS)
    considered = names[: names.index(limit) + 1] if limit else names
    return next((name for name in reversed(considered) if flags & _INSTRUCTION_SETS[name]), "")


@cache
def _listed() -> str:
    """The flags of this computer's processor, as its system lists them; empty where it does not."""
    with contextlib.suppress(OSError):
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    with contextlib.suppress(OSError):
        return subprocess.run(["/usr/sbin/sysctl", "hw.optional"], capture_output=True, text=True, check=False).stdout
    return ""


def is_device(needs: str) -> bool:
    """Return whether this is a device that a page or block may need, as ``gpu`` or ``gpus>=2``."""
    return bool(_DEVICE.fullmatch(needs))


@cache
def installed(distribution: str) -> str:
    """The version of an installed distribution, empty if there is none; without importing it.

    Looking it up takes milliseconds, so it is done once, until the cache is cleared.
    """
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


ENTRY_POINTS = "livepages.runtimes"  # the group in which other distributions name theirs
_BESIDE = "_runtime"  # how the names of this package's modules end that hold one


def built_in() -> list[str]:
    """Return the names of the runtimes that come with the engine, plain Python last."""
    beside = Path(__file__).parent.glob(f"*{_BESIDE}.py")
    return [*sorted(file.stem.removesuffix(_BESIDE) for file in beside), Runtime.name]


@cache
def runtimes() -> tuple[str, ...]:
    """Return the names of all runtimes, those of other distributions included."""
    return tuple(sorted({*built_in(), *(point.name for point in entry_points(group=ENTRY_POINTS))}))


@cache
def find_runtime(name: str) -> Runtime:
    """Return the runtime of a name: one of the engine's own, else the class of the entry point with this name.

    Raises:
        ValueError: there is none, or it cannot be imported.
    """
    if name == Runtime.name:
        return Runtime()
    if name in built_in():
        module = import_module(f"{__package__}.{name}{_BESIDE}")
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Runtime)]
        return next(kind() for kind in kinds if kind.name == name)
    if name not in runtimes():
        raise ValueError(f"there is no runtime {name!r}; there are {', '.join(runtimes())}")
    point = next(iter(entry_points(group=ENTRY_POINTS, name=name)))
    try:
        kind = point.load()
    except Exception as error:  # whatever another distribution does
        raise ValueError(f"the runtime {name!r}, {point.value}, cannot be imported: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Runtime) and kind.name == name):
        raise ValueError(f"{point.value} is not a subclass of livepages.worker.Runtime with the name {name!r}")
    return kind()
