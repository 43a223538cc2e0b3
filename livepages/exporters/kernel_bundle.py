"""The program that a page sends to a reader's kernel before its own: the engine's modules for it, as one text."""

import inspect
import re
import sys
from types import ModuleType
from typing import Any

from livepages.exporters import kernel_bridge
from livepages.worker import Runtime

NAME = "live-kernel.py"  # below the site's root
# What `kernel_bridge` and the runtimes import.
SHARED = (
    "worker.processor",
    "worker.text",
    "worker.names",
    "execution.truncate",
    "records.differences",
    "records.entries",
)
PACKAGE = "_live_"  # the prefix of the modules' names there, as an engine may be installed as well

_LOADER = '''"""What a page of this site runs in a reader's kernel, besides the code that it shows."""

import sys
import types


def _module(name, text):
    made = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, f"<{name}>", "exec"), made.__dict__)
    return made

'''


def kernel_bundle(runtime: Runtime, commit: str) -> str:
    """The text of the program. It defines ``_live_kernel_bridge``, of the kernel's own names, and so may run once.

    Args:
        runtime: whose programs the pages are.
        commit: that the site is built from; empty if unknown.
    """
    kinds = [kind for kind in reversed(type(runtime).__mro__) if issubclass(kind, Runtime)]
    runtimes = [sys.modules[kind.__module__] for kind in kinds]
    modules = [*(sys.modules[f"livepages.{name}"] for name in SHARED), *runtimes, kernel_bridge]
    own, bridge = _own_name(runtimes[-1]), _own_name(kernel_bridge)
    texts = (f"_module({_own_name(module)!r}, {_renamed(module)!r})\n" for module in modules)
    return (
        _LOADER
        + "\n".join(texts)
        + f"\nsys.modules[{bridge!r}].page = sys.modules[{bridge!r}].KernelBridge(\n"
        + f"    get_ipython(), sys.modules[{own!r}].{type(runtime).__name__}(), {commit!r}\n)\n"
    )


def _own_name(module: ModuleType) -> str:
    return PACKAGE + module.__name__.rpartition(".")[2]


def _renamed(module: Any) -> str:
    """Return the source of a module that imports from the modules beside it instead of from the engine."""
    return re.sub(r"(?m)^from livepages[.\w]*\.(\w+) import ", rf"from {PACKAGE}\1 import ", inspect.getsource(module))
