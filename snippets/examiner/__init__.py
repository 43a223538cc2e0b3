"""Judge answers to the exercises by what they do, and say in words what is wrong with a wrong one."""

from examiner import basics, debug, scale, speed, train
from examiner.tools import Refused
from examiner.verdict import examine, grade
from examiner.watch import watch

__all__ = ["Refused", "basics", "debug", "examine", "grade", "scale", "speed", "train", "watch"]

Refused.__module__ = __name__  # as readers see it
