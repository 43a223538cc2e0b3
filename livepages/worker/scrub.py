"""The removal of this machine's folders from the names of files in messages and warnings."""

import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Callable

_ANYWHERE = re.compile(r"(?<![\w/:.…])/([\w.+@~-]+)(?:/[\w.+@~-]+)*/([\w.+@~-]+)")
_EVERYWHERE = ("dev", "proc", "sys")  # their content is the same on every machine


def rename_known(root: str, run: str) -> Callable[[str], str]:
    """Return a function that replaces in a text the folders whose place differs from machine to machine and run to run.

    Files of packages are shown below ``/site-packages``, those of Python in ``/python``, those of the project below
    its root, and those of the page below its folder. Other names stay, as those that the page itself has written.

    Args:
        root: of the project.
        run: the folder of the page's run.
    """
    packages = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    packages |= {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
    known = {f"{os.path.join(run, part)}{os.sep}": "" for part in ("work", "script", "")}
    known |= {root + os.sep: "", tempfile.gettempdir() + os.sep: "/tmp/"}
    known |= {sysconfig.get_path(name) + os.sep: "/python/" for name in ("stdlib", "platstdlib")}
    known |= {path + os.sep: "/site-packages/" for path in packages}
    known |= {os.path.realpath(path) + os.sep: to for path, to in known.items()}
    known.pop(os.sep, None)
    named = re.compile("|".join(f"(?<![\\w.]){re.escape(path)}" for path in sorted(known, key=len, reverse=True)))
    return lambda text: named.sub(lambda found: known[found[0]], text) if "/" in text else text


def scrub_paths(renamed: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that replaces the names of files in a text by names that are the same on any machine.

    Args:
        renamed: replaces the folders that are known, as `rename_known` makes it; of other files the last part of
            their name is left.
    """
    try:
        here = {*os.listdir(os.sep)} - {*_EVERYWHERE}
    except OSError:
        here = set()

    def last(found: re.Match[str]) -> str:
        return f"/…/{found[2]}" if found[1] in here else found[0]

    return lambda text: _ANYWHERE.sub(last, renamed(text)) if "/" in text else text
