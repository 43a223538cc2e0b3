"""The interface of a runtime, which pages are programs of, and its implementation for plain Python.

The source of this module goes to readers' kernels, too.
"""

import contextlib
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

from livepages.worker.processor import listed, model, newest_instruction_set


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
    # Modules whose import in a page chooses the runtime if it is built in and the project chooses none.
    libraries: ClassVar[tuple[str, ...]] = ()
    distributions: ClassVar[tuple[str, ...]] = ()  # whose versions decide its results; the first one names it
    environment: ClassVar[tuple[str, ...]] = ()  # prefixes of the variables that it reads
    process_environment: ClassVar[Mapping[str, str]] = {}  # defaults for the processes of pages
    noise_patterns: ClassVar[tuple[tuple[re.Pattern[str], str], ...]] = ()  # in outputs, each with its replacement
    lacks = staticmethod(lacks)  # a function that uses no other, as readers download its source

    def versions(self) -> dict[str, str]:
        """The versions of the runtime's distributions that are installed, by their names."""
        return {name: number for name in self.distributions if (number := installed(name))}

    @property
    def release(self) -> str:
        """The release that outputs depend on: the version of the runtime's first distribution, else of Python."""
        return next((f"{name} {number}" for name, number in self.versions().items()), _PYTHON)

    @property
    def version_label(self) -> str:
        """The versions that outcomes depend on, in words."""
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
        """The kind of this computer, by all that affects rounding: its system, architecture and instruction set."""
        return f"{platform.system()} {platform.machine()} {self.instruction_set()}".rstrip()

    def instruction_set(self) -> str:
        """The newest instruction set that results are computed with, as ``avx2``; empty if the system names none."""
        return newest_instruction_set(listed(), self.newest_used())

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
        """Return the description of this host for its records, without the installed distributions."""
        devices = self.describe()
        return {
            "device": devices["device"],
            "count": devices["count"],
            "processor": f"{os.cpu_count()} × {model()}",
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
        """Return a page's settings in words, for its reader; empty if there are none to mention."""
        return ""

    def setup(self, settings: Mapping[str, object], options: Mapping[str, object]) -> str:
        """Return code that sets up a reader's process like that of the page; empty if there is nothing to set up."""
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
        """Restore the configuration of this process at the end."""
        yield

    def flush(self) -> None:
        """Wait for output that is still under way."""

    def counts(self) -> dict[str, int]:
        """Return the counters that are shown for each block, by name in the plural, as ``traces``."""
        return {}

    def backend_initialized(self) -> bool:
        """Return whether the devices are chosen, so that asking for one has no effect on later code."""
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


def _variables(beginnings: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(beginnings)}


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
