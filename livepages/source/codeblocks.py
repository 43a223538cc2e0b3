"""The parser of pytest-codeblocks, by itself: its package imports pytest, which takes a tenth of an unchanged build."""

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

__all__ = ["CodeBlock", "extract_from_buffer"]

if TYPE_CHECKING:
    from pytest_codeblocks import CodeBlock, extract_from_buffer
else:
    _package = find_spec("pytest_codeblocks")
    _spec = PathFinder.find_spec("main", _package.submodule_search_locations)
    _parser = module_from_spec(_spec)
    _spec.loader.exec_module(_parser)
    CodeBlock, extract_from_buffer = _parser.CodeBlock, _parser.extract_from_buffer
