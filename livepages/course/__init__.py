"""The pages of a site and their order, where each is when built, when it last changed, and what the site adds to it."""

from livepages.course import history
from livepages.course.guide import Guide, Stash, find_guide, sources
from livepages.course.navigation import Course, NavSection, clashes, make_course, read_course
from livepages.course.site_paths import SitePaths, site_paths

__all__ = [
    "Course",
    "Guide",
    "NavSection",
    "SitePaths",
    "Stash",
    "clashes",
    "find_guide",
    "history",
    "make_course",
    "read_course",
    "site_paths",
    "sources",
]
