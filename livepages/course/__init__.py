"""The order of the pages, what to read before each, the map and the index, and when pages last changed."""

from livepages.course import history
from livepages.course.guide import Guide
from livepages.course.navigation import Course, NavSection, make_course, read_course
from livepages.course.output_paths import OutputPaths, output_paths

__all__ = ["Course", "Guide", "NavSection", "OutputPaths", "history", "make_course", "output_paths", "read_course"]
