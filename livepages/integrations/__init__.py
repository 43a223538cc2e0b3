"""Thin layers for MkDocs, Markdown, pytest and the command line.

Each is loaded by name (the entry points in ``pyproject.toml``), so nothing is imported from here.
"""

__all__: list[str] = []
