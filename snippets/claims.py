"""Sentences about JAX, each decided by a run, and their score."""

from collections import Counter
from collections.abc import Callable

from matplotlib.axes import Axes

VERDICTS = ("holds", "changed", "false")
CHANGES = "https://docs.jax.dev/en/latest/changelog.html#jax-"
# Where JAX's list of changes describes each change; the one of 0.9.0 is announced there under an earlier release. The
# list does not mention the one of 0.11.1, which was seen by running the releases on both sides.
SOURCES = {
    "0.3.16": "0-3-16",
    "0.4.1": "0-4-1-dec-13-2022",
    "0.4.27": "0-4-27-may-7-2024",
    "0.4.29": "0-4-29-june-10-2024",
    "0.4.34": "0-4-34-october-4-2024",
    "0.4.38": "0-4-38-dec-17-2024",
    "0.5.0": "0-5-0-jan-17-2025",
    "0.6.0": "0-6-0-april-16-2025",
    "0.9.0": "0-8-1-november-18-2025",
    "0.10.0": "0-10-0-april-16-2026",
    "0.11.1": None,
}


def refuses(error: type[BaseException], function: Callable[..., object], *args: object, **options: object) -> bool:
    """Return whether a call raises an error of this class; any other error is raised."""
    try:
        function(*args, **options)
    except error:
        return True
    return False


class Claims:
    """The verdicts of a page, by topic and name."""

    def __init__(self) -> None:
        self.topic = ""
        self.verdicts: dict[str, dict[str, str]] = {}

    def __call__(self, name: str, found: bool, expected: str = "holds") -> None:
        """Decide a claim by what a run found, print the verdict, and compare it with the one the page expects.

        Args:
            name: short; with hyphens for blanks it is the anchor of the claim's heading.
            found: whether this run did what the sentence says.
            expected: "holds", "false", or "changed in" and the first version in which it is no longer so.

        Raises:
            AssertionError: the run disagrees with the expected verdict.
            KeyError: there is no source for the version.
        """
        kind = expected.split(maxsplit=1)[0]
        if kind not in VERDICTS or found != (kind == "holds"):
            says = "holds" if found else "does not hold"
            raise AssertionError(f"{name!r} was expected to be {expected!r}; in this run it {says}")
        shown = _sourced(expected) if kind == "changed" else expected
        self.verdicts.setdefault(self.topic, {})[name] = kind
        print(f'<p class="live-verdict live-{kind}">{shown}</p>')

    def counts(self, topic: str) -> Counter[str]:
        """Return how many claims of a topic got each verdict."""
        return Counter(self.verdicts[topic].values())

    def index(self) -> str:
        """All claims as Markdown lists of links, by topic and verdict."""
        lines = []
        for topic, verdicts in self.verdicts.items():
            lines += [f"**{topic}**", ""]
            for kind in VERDICTS:
                links = [_link(name) for name, verdict in verdicts.items() if verdict == kind]
                lines += [f"- {kind}: {', '.join(links)}"] * bool(links)
            lines.append("")
        return "\n".join(lines)

    def draw(self, axes: Axes) -> None:
        """One bar for each topic, divided by verdict."""
        topics = list(self.verdicts)
        left = [0] * len(topics)
        for kind, color in zip(VERDICTS, ("C2", "C4", "C1"), strict=True):
            widths = [self.counts(topic)[kind] for topic in topics]
            bars = axes.barh(topics, widths, left=left, color=color, label=kind)
            axes.bar_label(bars, [str(width or "") for width in widths], label_type="center", color="black")
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axes.invert_yaxis()


def _sourced(changed: str) -> str:
    """The verdict with a link from its version to the place that says so."""
    words, version = changed.rsplit(maxsplit=1)
    place = SOURCES[version]
    return f'{words} <a href="{CHANGES}{place}">{version}</a>' if place else changed


def _link(name: str) -> str:
    return f"[{name}](#{name.replace(' ', '-')})"
