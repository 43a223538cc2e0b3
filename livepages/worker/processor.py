"""The processor of this computer. The source of this module goes to readers' kernels, too."""

import contextlib
import platform
import re
import subprocess
from functools import cache
from pathlib import Path

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
def listed() -> str:
    """The flags of this computer's processor, as its system lists them; empty where it does not."""
    with contextlib.suppress(OSError):
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    with contextlib.suppress(OSError):
        return subprocess.run(["/usr/sbin/sysctl", "hw.optional"], capture_output=True, text=True, check=False).stdout
    return ""


def model() -> str:
    """Return the name of this computer's processor."""
    with contextlib.suppress(OSError):
        if model := re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8")):
            return model[1].strip()
    return platform.processor() or platform.machine()
