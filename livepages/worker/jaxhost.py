"""All that the engine knows of JAX: its host, its settings, its counters, and which frames are its own.

jax is imported inside functions only, so that a build in which nothing runs never imports it.
"""

import contextlib
import glob
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_TRACE = "/jax/core/compile/jaxpr_trace_duration"
_COMPILE = "/jax/core/compile/backend_compile_duration"
_CUDA = tuple(f"jax-cuda{major}-{part}" for major in (12, 13) for part in ("plugin", "pjrt"))
_DISTRIBUTIONS = ("jax", "jaxlib", *_CUDA, "jax-rocm7-plugin", "jax-rocm7-pjrt", "jax-metal", "libtpu")


def fingerprint() -> dict[str, object]:
    """What decides, on this host, what JAX gives; found without importing it."""
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "distributions": {name: number for name in _DISTRIBUTIONS if (number := installed(name))},
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(("JAX_", "XLA_", "CUDA_VISIBLE", "TPU_"))
        },
        "accelerators": accelerators(),
    }


_DESCRIBE = """
import json, jax
devices = jax.devices()
driver = "" if devices[0].platform == "cpu" else devices[0].client.platform_version
print(json.dumps({"device": devices[0].device_kind, "count": len(devices), "driver": driver}))
"""


def describe() -> dict[str, Any]:
    """What this host is, asked of JAX in a process of its own, which gives the devices back.

    Returns:
        device (kind), count, processor, driver, system, python, jax, jaxlib, environment.

    Raises:
        RuntimeError: JAX finds no device.
    """
    command = [sys.executable, "-P", "-c", _DESCRIBE]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode:
        raise RuntimeError(asked.stderr.strip().splitlines()[-1])
    found = json.loads(asked.stdout)
    here = fingerprint()
    return {
        **found,
        "processor": f"{os.cpu_count()} × {_processor()}",
        "driver": "; ".join(filter(None, [*found["driver"].splitlines(), _kernel_driver()])),
        "system": here["machine"],
        "python": here["python"],
        "jax": installed(),
        "jaxlib": installed("jaxlib"),
        "environment": here["environment"],
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        if model := re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8")):
            return model[1].strip()
    return platform.processor() or platform.machine()


def _kernel_driver() -> str:
    with contextlib.suppress(OSError):
        if version := re.search(r"Kernel Module\D*([\d.]+)", Path("/proc/driver/nvidia/version").read_text("utf-8")):
            return f"driver {version[1]}"
    return ""


def accelerators() -> list[str]:
    """The kinds of the accelerators that the system lists, one entry each."""
    found = []
    for file in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        model = re.search(r"Model:\s*(.*)", Path(file).read_text(encoding="utf-8", errors="replace"))
        found.append(model[1].strip() if model else "NVIDIA GPU")
    return found + [f"TPU {Path(file).name}" for file in sorted(glob.glob("/dev/accel*"))]


def installed(distribution: str = "jax") -> str:
    """The version of an installed distribution, empty if there is none; without importing it."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


@cache
def versions() -> str:
    """The versions that outcomes are from, in words."""
    return f"jax {installed()}, Python {platform.python_version()}"


def preload() -> None:
    """Import what a page's process needs of JAX, without touching a backend, so that forks have it at once."""
    import jax
    import jax.monitoring
    import jax.numpy  # noqa: F401

    jax.monitoring.register_event_duration_secs_listener(_count)
    with contextlib.suppress(ImportError):
        import jaxlib.mlir.dialects.mhlo  # noqa: F401  (JAX imports it when it first compiles)


_counts = {_TRACE: 0, _COMPILE: 0}


def _count(event: str, duration_secs: float, **_: object) -> None:
    if event in _counts:
        _counts[event] += 1


def counts() -> tuple[int, int]:
    """How many functions this process has traced and compiled so far, by JAX's own monitoring."""
    return _counts[_TRACE], _counts[_COMPILE]


def configuration(devices: int, x64: bool, settings: Mapping[str, object]) -> dict[str, object]:
    """What a page has to set before its backend starts: names and values for ``jax.config.update``, in order.

    Args:
        devices: virtual CPU devices; more than one means CPU, whatever the host has.
        x64: whether 64-bit types are on.
        settings: further names and values.
    """
    cpu: dict[str, object] = {"jax_platforms": "cpu", "jax_num_cpu_devices": devices} if devices > 1 else {}
    wide: dict[str, object] = {"jax_enable_x64": True} if x64 else {}
    return {**cpu, **wide, **settings}


def configure(devices: int, x64: bool, cache: str, settings: Mapping[str, object]) -> None:
    """Set up JAX for a page (see `configuration`), with the compilation cache that all pages share in a folder."""
    import jax

    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    for name, value in configuration(devices, x64, settings).items():
        jax.config.update(name, value)


def settle() -> None:
    """Wait for callbacks and debug prints that are still under way."""
    import jax

    jax.effects_barrier()


def device() -> str:
    """The default device as the small print names it: kind, and count where there are several."""
    import jax

    try:
        devices = jax.devices()
    except RuntimeError as error:
        return f"no device ({error})"
    kind = devices[0].device_kind
    return kind if len(devices) == 1 else f"{len(devices)} × {kind}"


def lacks(needs: str) -> str:
    """Why this host cannot run a block that `needs` this, such as ``gpus>=2``; empty if it can."""
    import jax

    platform_name, _, least = needs.replace("s>=", ">=").partition(">=")
    wanted = int(least or 1)
    try:
        count = len(jax.devices(platform_name))
    except RuntimeError:
        count = 0
    return "" if count >= wanted else f"needs {needs}; this host has {count or 'no'} {platform_name}"


def internal_folders() -> list[str]:
    """Folders whose frames a user of JAX does not want to see."""
    import jax
    import jaxlib

    return [str(Path(module.__file__).parent) + os.sep for module in (jax, jaxlib) if module.__file__]


def public_name(module: str, name: str) -> str:
    """An exception's class as users write it: JAX's own without the private path."""
    return name if module in ("builtins", "__main__") or module.startswith(("jax.", "jaxlib.")) else f"{module}.{name}"


def user_notes(notes: Iterable[str]) -> list[str]:
    """An exception's notes without JAX's remark on the frames it removed."""
    return [note for note in notes if "JAX has removed its internal frames" not in note]
