"""The order of the pages, what to read before each, the map and the index, and when pages last changed."""

from livepages.course import history
from livepages.course.guide import Guide
from livepages.course.navigation import Course, make_course, read_course
from livepages.course.output_paths import OutputPaths

__all__ = ["Course", "Guide", "OutputPaths", "history", "make_course", "read_course"]
