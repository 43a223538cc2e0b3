"""Text as pages and records hold it. The source of this module goes to readers' kernels, too."""

import re


def overwritten(text: str) -> str:
    """Return text as a terminal shows it: of each line, the part after the last carriage return."""
    return "\n".join(line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n"))


def escaped(text: str) -> str:
    """Return text in which control characters, also of the direction of text, are written as in a string."""
    hidden = r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]"
    return re.sub(hidden, lambda found: found[0].encode("unicode_escape").decode(), text)


def mask_addresses(text: str) -> str:
    """Return `escaped` text without where objects lie in memory, which differs from run to run."""
    return escaped(re.sub(r"\b0x[0-9a-f]{6,}\b", "0x…", text))


def message_of(error: BaseException) -> str:
    """Return the message of an exception; where making it raises another, that one's name."""
    try:
        return str(error)
    except Exception as another:  # noqa: BLE001  (a class of the page's own may do anything here)
        return f"<its message raised {type(another).__name__}>"


def class_names(kind: type) -> tuple[str, ...]:
    """Return the names of a class and of its bases, each bare and qualified."""
    return tuple(name for c in kind.__mro__ for name in (c.__name__, f"{c.__module__}.{c.__qualname__}"))


def stripped(text: str) -> str:
    """Return text without what UTF-8 cannot hold, and without blanks at ends of lines, which YAML would quote."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))
