"""Everything in the engine that is about JAX.

jax is imported inside functions only, so that a build in which nothing runs never imports it.
"""

import contextlib
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from livepages.worker.runtime import Runtime, SettingError

_TRACE = "/jax/core/compile/jaxpr_trace_duration"
_COMPILE = "/jax/core/compile/backend_compile_duration"
_CUDA = tuple(f"jax-cuda{major}-{part}" for major in (12, 13) for part in ("plugin", "pjrt"))
_DESCRIBE = """
import json, jax
devices = jax.devices()
driver = "" if devices[0].platform == "cpu" else devices[0].client.platform_version
print(json.dumps({"device": devices[0].device_kind, "count": len(devices), "driver": driver}))
"""
# The values of --xla_cpu_max_isa that keep XLA from an instruction set whose results differ.
_MAX_ISA = {"SSE4_2": "sse4.2", "AVX": "avx", "AVX2": "avx2", "NEON": "neon"}
_SET_BY_JAX = ("TPU_SKIP_MDS_QUERY", "TPU_ML_PLATFORM", "TPU_ML_PLATFORM_VERSION")  # jax/_src/cloud_tpu_init.py


def lacks(needs: str) -> str:
    """Return why this host cannot run a block that `needs` this, such as ``gpus>=2``; empty if it can."""
    import jax

    platform_name, _, least = needs.replace("s>=", ">=").partition(">=")
    wanted = int(least or 1)
    try:
        count = len(jax.devices(platform_name))
    except RuntimeError:
        count = 0
    return "" if count >= wanted else f"needs {needs}; this host has {count or 'no'} {platform_name}"


class JaxRuntime(Runtime):
    """Pages that are JAX programs: ``devices``, ``x64`` and ``jax`` of their front matter set up its configuration."""

    name: ClassVar[str] = "jax"
    libraries: ClassVar[tuple[str, ...]] = ("jax",)
    distributions: ClassVar[tuple[str, ...]] = (
        "jax",
        "jaxlib",
        *_CUDA,
        "jax-rocm7-plugin",
        "jax-rocm7-pjrt",
        "jax-metal",
        "libtpu",
    )
    environment: ClassVar[tuple[str, ...]] = ("JAX_", "XLA_", "CUDA_VISIBLE", "TPU_", "LIBTPU_")
    # Pages run side by side on one accelerator.
    process_environment: ClassVar[Mapping[str, str]] = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    noise_patterns: ClassVar[tuple[tuple[re.Pattern[str], str], ...]] = (
        (re.compile(r"https?://(?:docs\.jax\.dev|jax\.readthedocs\.io)[^\s>)\]]*"), "DOCUMENTATION"),
        (re.compile(r"\bjaxlib\.\w+\."), ""),
        (re.compile(r"\b[A-Za-z]*Tracer\b"), "TRACER"),
        (re.compile(r"\bstack_frame_id=\d+"), "FRAME"),  # counts the frames above the page's own, too
        # When, in which thread and at which line of which C++ file the compiler notes something.
        (re.compile(r"^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\w+\.cc):\d+\]", re.MULTILINE), r"\1 \2]"),
    )
    lacks = staticmethod(lacks)

    def __init__(self) -> None:
        self._counts = {_TRACE: 0, _COMPILE: 0}

    def newest_used(self) -> str:
        """Implement `Runtime.newest_used` by the flag of XLA; by default it uses no SVE on ARM."""
        chosen = re.findall(r"--xla_cpu_max_isa=(\w+)", os.environ.get("XLA_FLAGS", ""))
        return _MAX_ISA.get(chosen[-1].upper(), "") if chosen else "neon"

    def is_processor(self, device: str) -> bool:
        """Implement `Runtime.is_processor`."""
        return device.rpartition(" ")[2] == "cpu"

    def variables(self) -> dict[str, str]:
        """Implement `Runtime.variables` without those that importing JAX sets: a process may have done so, or not."""
        return {name: value for name, value in super().variables().items() if name not in _SET_BY_JAX}

    def fingerprint(self) -> dict[str, object]:
        """Implement `Runtime.fingerprint` with the accelerators that the system lists."""
        return {**super().fingerprint(), "accelerators": self.accelerators()}

    def accelerators(self) -> list[str]:
        """The kinds of the accelerators that the system lists, one entry each."""
        found = []
        for file in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
            model = re.search(r"Model:\s*(.*)", Path(file).read_text(encoding="utf-8", errors="replace"))
            found.append(model[1].strip() if model else "NVIDIA GPU")
        return found + [f"TPU {Path(file).name}" for file in sorted(glob.glob("/dev/accel*"))]

    def describe(self) -> dict[str, Any]:
        """Implement `Runtime.describe` with JAX in a process of its own, which releases the devices."""
        command = [sys.executable, "-P", "-c", _DESCRIBE]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            raise RuntimeError((process.stderr.strip().splitlines() or ["JAX finds no device"])[-1])
        found = json.loads(process.stdout)
        driver = "; ".join(filter(None, [*found["driver"].splitlines(), _kernel_driver()]))
        return {**found, "driver": driver}

    def settings(self, given: Mapping[str, object]) -> dict[str, object]:
        """Implement `Runtime.settings`: ``devices`` (virtual ones of the CPU), ``x64``, ``needs`` and ``jax``."""
        devices, x64, options = given.get("devices", 1), given.get("x64", False), given.get("jax", {})
        if not isinstance(x64, bool):
            raise SettingError("x64", "true or false")
        if type(devices) is not int or not 1 <= devices <= 512:
            raise SettingError("devices", "a whole number from 1 to 512")
        if not isinstance(options, dict) or not all(
            isinstance(name, str) and isinstance(value, _VALUES) for name, value in options.items()
        ):
            raise SettingError("jax", "a mapping of jax configuration names to true, false, numbers or text")
        return {"devices": devices, "x64": x64, **super().settings(given), "jax": options}

    def settings_summary(self, settings: Mapping[str, object]) -> str:
        """Implement `Runtime.settings_summary`: the number of devices, if there is more than one."""
        return "" if settings["devices"] == 1 else f"on {settings['devices']} virtual devices"

    def setup(self, settings: Mapping[str, Any], options: Mapping[str, object]) -> str:
        """Implement `Runtime.setup`."""
        values = _configuration(settings, options).items()
        lines = [f"jax.config.update({json.dumps(name)}, {_literal(value)})" for name, value in values]
        return "\n".join(["import jax\n", *lines]) if lines else ""

    def preload(self) -> None:
        """Implement `Runtime.preload` without touching a backend."""
        import jax
        import jax.monitoring
        import jax.numpy  # noqa: F401

        jax.monitoring.register_event_duration_secs_listener(self._count)
        with contextlib.suppress(ImportError):
            import jaxlib.mlir.dialects.mhlo  # noqa: F401  (JAX imports it when it first compiles)
        _keep_whole_programs()

    def _count(self, event: str, duration_secs: float, **_: object) -> None:
        if event in self._counts:
            self._counts[event] += 1

    def counts(self) -> dict[str, int]:
        """Implement `Runtime.counts`: how many functions were traced and compiled, by JAX's own monitoring."""
        return {"traces": self._counts[_TRACE], "compiles": self._counts[_COMPILE]}

    def configure(self, settings: Mapping[str, Any], options: Mapping[str, object], cache: str, root: str) -> None:
        """Implement `Runtime.configure`; `cache` keeps compiled programs."""
        import jax
        from jax.extend.source_info_util import register_exclusion

        from livepages.worker.probes import ENGINE  # not above: readers' kernels, which need no such, get this module
        from livepages.worker.tracebacks import OUTSIDE

        with contextlib.suppress(OSError):  # where none can be made, every page compiles for itself
            os.makedirs(cache, exist_ok=True)
            jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        # The places in code that compiled programs name are the page's, wherever it runs.
        for frames in (ENGINE, *OUTSIDE):
            register_exclusion(frames)
        jax.config.update("jax_hlo_source_file_canonicalization_regex", f"^{re.escape(root + os.sep)}")
        for name, value in _configuration(settings, options).items():
            jax.config.update(name, value)

    @contextlib.contextmanager
    def settings_restored(self) -> Iterator[None]:
        """Implement `Runtime.settings_restored` for ``jax.config``."""
        import jax

        before = dict(jax.config.values)
        try:
            yield
        finally:
            for name, value in before.items():
                if jax.config.values[name] != value:
                    jax.config.update(name, value)

    def flush(self) -> None:
        """Implement `Runtime.flush` for callbacks and debug prints."""
        import jax

        jax.effects_barrier()

    def backend_initialized(self) -> bool:
        """Implement `Runtime.backend_initialized`: after a backend has started, no setting of it counts."""
        try:
            from jax._src.xla_bridge import backends_are_initialized
        except ImportError:  # of another release, which may name it otherwise
            return False
        return bool(backends_are_initialized())

    def device(self) -> str:
        """Implement `Runtime.device`: the kind, and the number where there are several."""
        import jax

        try:
            devices = jax.devices()
        except RuntimeError as error:
            return f"no device ({error})"
        kind: str = devices[0].device_kind
        return kind if len(devices) == 1 else f"{len(devices)} × {kind}"

    def public_name(self, module: str, name: str) -> str:
        """Implement `Runtime.public_name`: JAX's own classes without the private path."""
        return name if module.startswith(("jax.", "jaxlib.")) else super().public_name(module, name)

    def user_notes(self, notes: Iterable[str]) -> list[str]:
        """Implement `Runtime.user_notes` without the remark on the frames that JAX removed."""
        return [note for note in notes if "JAX has removed its internal frames" not in note]


def _keep_whole_programs() -> None:
    """Make JAX write each compiled program in one step, and compile those again that it cannot read.

    Pages that run side by side share the folder of compiled programs. Without this, JAX reads files that another
    process is still writing, and warns of them in the output of the page.
    """
    try:
        from jax._src import compilation_cache
        from jax._src.lru_cache import LRUCache

        decompressed = compilation_cache.decompress_executable
    except (ImportError, AttributeError):  # of another release, whose cache is as it is
        return

    class Programs(LRUCache):
        def get(self, key: str) -> bytes | None:
            try:
                value: bytes | None = super().get(key)
                if value is not None:
                    decompressed(value)
            except Exception:  # noqa: BLE001  (a damaged file may raise anything)
                with contextlib.suppress(OSError):
                    self._file(key).unlink()
                return None
            return value

        def put(self, key: str, value: bytes) -> None:
            with contextlib.suppress(OSError):  # a full disk is no concern of the page
                handle, name = tempfile.mkstemp(dir=str(self.path), prefix="new-")
                try:
                    with os.fdopen(handle, "wb") as stream:
                        stream.write(value)
                    os.replace(name, self._file(key))
                except OSError:
                    os.unlink(name)

        def _file(self, key: str) -> Path:
            return Path(str(self.path), f"{key}-cache")

    compilation_cache.LRUCache = Programs  # type: ignore[attr-defined]


_VALUES = (bool, int, float, str, type(None))


def _literal(value: object) -> str:
    """A value of the configuration in Python."""
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f'float("{value}")'


def _configuration(settings: Mapping[str, Any], options: Mapping[str, object]) -> dict[str, object]:
    """Names and values for ``jax.config.update``, in order; several devices mean CPU, whatever the host has."""
    devices = settings["devices"]
    cpu: dict[str, object] = {"jax_platforms": "cpu", "jax_num_cpu_devices": devices} if devices > 1 else {}
    wide: dict[str, object] = {"jax_enable_x64": True} if settings["x64"] else {}
    return {**cpu, **wide, **options, **settings["jax"]}


def _kernel_driver() -> str:
    with contextlib.suppress(OSError):
        if version := re.search(r"Kernel Module\D*([\d.]+)", Path("/proc/driver/nvidia/version").read_text("utf-8")):
            return f"driver {version[1]}"
    return ""
