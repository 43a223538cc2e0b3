"""The environment variables that pages find."""

import os
from collections.abc import Mapping

from livepages.worker import MODULE_VARIABLES, Runtime

# What pages and the kernels of their readers find, whatever is set: sets print in the same order every time, a terminal
# has one size, text is UTF-8, and the clock shows UTC.
FIXED = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "COLUMNS": "80",
    "LINES": "24",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}
_FIXED_IN_PAGES = {"PYTHON_COLORS": "0", "TERM": "dumb", "MPLBACKEND": "svg", "MATPLOTLIBRC": os.devnull}
# How the names of variables begin that belong to a terminal, a desktop, a shell or a test: pages do not find them.
_PERSONAL = (
    "PYTHON",
    "LC_",
    "LANG",
    "TZ",
    "TERM",
    "COLORTERM",
    "FORCE_COLOR",
    "NO_COLOR",
    "CLICOLOR",
    "DISPLAY",
    "WAYLAND_",
    "PYTEST_",
)


def is_inherited(variable: str) -> bool:
    """Return whether pages inherit an environment variable from the process that builds the site."""
    if variable in (*FIXED, *_FIXED_IN_PAGES):
        return False
    return variable in MODULE_VARIABLES or not variable.startswith(_PERSONAL)


def page_environment(runtime: Runtime) -> Mapping[str, str]:
    """Return the environment of every page. Assertions are checks, so they cannot be turned off."""
    inherited = {name: value for name, value in os.environ.items() if is_inherited(name)}
    return {**runtime.process_environment, **inherited, **_FIXED_IN_PAGES, **FIXED}
