"""A hook of MkDocs: leaves out of Material's style sheet what styles only what this site does not have."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

ABSENT = re.compile(
    r"\[dir=rtl\]|mermaid|\.critic|\.keys\b|task-list|tabbed-|emoji|giscus|katex|highlighttable|linenos|mdx-|"
    r"md-(author|banner|clipboard|consent|draft|feedback|input|meta__|nav--integrated|pagination|pin|post|profile|select|"
    r"social|source|top\b|version)|--md-(author|version|source|tasklist)"
)
RULE = re.compile(r"(?<=[{}])([^{}]+)\{([^{}]*)\}")


def on_post_build(config: MkDocsConfig) -> None:
    """Rewrite the style sheet in the built site, where the theme has put it; those of other themes are left alone."""
    if config.theme.name != "material":
        return
    for file in Path(config.site_dir, "assets/stylesheets").glob("main.*.min.css"):
        file.write_text(slimmed(file.read_text(encoding="utf-8")), encoding="utf-8")


def slimmed(style: str) -> str:
    """A minified style sheet without the rules all of whose selectors are for what is absent."""

    def kept(rule: re.Match[str]) -> str:
        if rule[1].startswith("@"):
            return rule[0]
        # A comma inside of parentheses is part of a selector.
        selectors = re.split(r",(?![^()]*\))", rule[1])
        left = [selector for selector in selectors if not ABSENT.search(selector)]
        variables = re.findall(r"(?:^|;)(--[\w-]+):", rule[2])
        if rule[1] == ":root" and variables and all(map(ABSENT.search, variables)):
            return ""
        return f"{','.join(left)}{{{rule[2]}}}" if left else ""

    before = ""
    while before != style:  # an empty group of rules goes with the last of them
        before, style = style, re.sub(r"(?<=[{}])@(media|supports)[^{}]*\{\}", "", RULE.sub(kept, style))
    return style
