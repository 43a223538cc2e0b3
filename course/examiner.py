"""The program that brings the examiner into a reader's kernel, for exercises on pages that do not carry it."""

from pathlib import Path

NAME = "examiner.py"  # below the site's root

_PROGRAM = """\
import importlib.util

if importlib.util.find_spec({name!r}) is None:
    import pathlib
    import sys
    import tempfile

    _live_examiner = tempfile.TemporaryDirectory()  # it goes with the process
    sys.path.insert(0, _live_examiner.name)
    pathlib.Path(_live_examiner.name, {name!r}).mkdir()
    for _name, _text in {files!r}.items():
        pathlib.Path(_live_examiner.name, {name!r}, _name).write_text(_text, encoding="utf-8")
"""


def program(folder: Path) -> str:
    """Return the text of the program, which does nothing where the examiner, in this folder, can be imported."""
    files = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.py"))}
    return _PROGRAM.format(name=folder.name, files=files)
