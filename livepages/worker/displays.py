"""The representations of a block's last expression, by MIME type: the methods that IPython calls."""

import ast
import base64
import json
import re
from types import CodeType
from typing import Any

_METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_latex_": "text/latex",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_json_": "application/json",
}


def compile_block(source: str, name: str, flags: int, futures: int) -> list[CodeType]:
    """Compile a block: its statements, and its last expression, if it ends with one, for ``sys.displayhook``.

    Args:
        source: the code.
        name: the file that tracebacks show.
        flags: of the features of the future that earlier blocks have imported.
        futures: the flags of all such features.

    Raises:
        Exception: the code cannot be compiled.
    """
    module = compile(source, name, "exec", flags=flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    last = module.body[-1:]
    if not last or not isinstance(last[0], ast.Expr) or isinstance(last[0].value, ast.Constant):
        return [compile(module, name, "exec", flags=flags, dont_inherit=True)]
    del module.body[-1]
    code = compile(module, name, "exec", flags=flags, dont_inherit=True)
    flags |= code.co_flags & futures
    return [code, compile(ast.Interactive(last), name, "single", flags=flags, dont_inherit=True)]


class DisplayHook:
    """A ``sys.displayhook`` that keeps values that have more than a text representation."""

    def __init__(self) -> None:
        self._values: list[object] = []

    def __call__(self, value: object) -> None:
        """Take the value of an expression."""
        if value is not None and not isinstance(value, type):
            self._values.append(value)

    def take(self) -> tuple[dict[str, str], ...]:
        """Return the MIME bundles of the values so far that have more than a text representation.

        Raises:
            Exception: whatever their methods raise.
        """
        values, self._values = self._values, []
        return tuple(bundle for value in values if (bundle := _bundle(value)))


def _bundle(value: object) -> dict[str, str]:
    kind: Any = type(value)
    found: dict[str, Any] = {mime: getattr(kind, name)(value) for name, mime in _METHODS.items() if hasattr(kind, name)}
    if hasattr(kind, "_repr_mimebundle_"):
        given = kind._repr_mimebundle_(value)
        found |= (given[0] if isinstance(given, tuple) else given) or {}
    # A representation may come with metadata, such as the size to show it at.
    bundle = {mime: data[0] if isinstance(data, tuple) else data for mime, data in found.items() if data is not None}
    if not bundle.keys() - {"text/plain"}:
        return {}
    return {mime: _text(data) for mime, data in {"text/plain": repr(value), **bundle}.items()}


def _text(data: object) -> str:
    if isinstance(data, bytes):
        return base64.b64encode(data).decode("ascii")
    return re.sub(r"\b0x[0-9a-f]{6,}\b", "0x…", data) if isinstance(data, str) else json.dumps(data)
