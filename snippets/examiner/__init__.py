"""Judges answers to the exercises by what they do, and says in words what an answer does wrong."""

from examiner import build, compile, debug, express, scale
from examiner.tools import Refused
from examiner.verdict import examine, grade

__all__ = ["Refused", "build", "compile", "debug", "examine", "express", "grade", "scale"]

Refused.__module__ = __name__  # as readers meet it
