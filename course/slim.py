"""Hooks of MkDocs: leave out of style sheets and scripts what no reader misses, so that the first load stays small.

Of Material's style sheet, that is what styles only what this site does not have; of our own files, comments and indents
(3 kB of a first load of 82 kB, compressed); of pages, indents.
"""

import re
from pathlib import Path

from jinja2 import Environment
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ABSENT = re.compile(
    r"\[dir=rtl\]|footnote|mermaid|\.critic|\.keys\b|\.result\b|task-list|tabbed-|emoji|giscus|katex|highlighttable|lineno|mdx-|"
    r"\.(cards?|grid|inline|lg|middle|x+l)\b|--post\b|"
    r"md-(author|banner|clipboard|consent|content__button|draft|feedback|header--lifted|header__source|input|meta|"
    r"nav--integrated|nav__(container|source)|pagination|pin|post|profile|progress|select|social|source|status|tag-shadow|top\b|version)|"
    r"\.(abstract|bug|danger|info|question|quote)\b|aria-sort|arithmatex|columnheader|indeterminate|"
    # Tokens of other languages, as Pygments names them.
    r"\.(c[hms]|g[dehirstu]|go|hll|il|k[dpr]|l|mb|mh|mo|n[ailno]|s[bchrsx]|v[cgi])(?![\w-])|"
    r"--md-(author|clipboard|code-select|post|source|status|tabbed|tasklist|typeset-table|version)|"
    r"admonition-icon--(abstract|bug|danger|info|question|quote)|tag-icon|"
    r"(?<![\w-])(blockquote|d[dlt]|figcaption|figure|h[56]|iframe|video)(?![\w-])|"
    r"--md-(hue|primary-fg-color--(dark|light)|typeset-(del|ins)-color|warning-)"
)
COMMENT = {
    ".css": re.compile(r"(?s)/\*.*?\*/\n*"),
    ".js": re.compile(r"(?m)^[ \t]*//.*\n|[ \t]+// .*$"),
}  # as ours are written
VARIABLE = re.compile(r"""(--[\w-]+):(?:"[^"]*"|\((?:"[^"]*"|[^()"])*\)|[^;()"])*;?""")
ANSWER = re.compile(r'<details class="(success|failure)"')
EXCLUDED = re.compile(r' data-search-exclude(="[^"]*")?(?=[ >])')
PRE = re.compile(r"(?s)(<(?P<tag>code|pre|samp|script|textarea)\b.*?</(?P=tag)>)")
RULE = re.compile(r"(?<=[{}])([^{}]+)\{([^{}]*)\}")


@event_priority(100)  # before anything compiles a template
def on_env(env: Environment, config: MkDocsConfig, files: Files) -> None:
    """Leave out the blanks between the statements of templates, which are half of a theme's HTML."""
    env.trim_blocks = env.lstrip_blocks = True


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep solutions of exercises and wrong answers out of the search, which would show them unasked."""
    return ANSWER.sub(r"\g<0> data-search-exclude", html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Leave out a page's indents, 0.4 kB of it compressed, and marks for what has made the search's index by now."""
    return flush(EXCLUDED.sub("", output))


@event_priority(-100)  # after the plugin has written its files
def on_post_build(config: MkDocsConfig) -> None:
    """Rewrite the files in the built site, where the theme and the plugin have put them."""
    site = Path(config.site_dir)
    for folder in ("stylesheets", "javascripts", "assets/livepages"):
        found = [file for file in site.joinpath(folder).rglob("*.*") if file.suffix in COMMENT]
        for file in (file for file in found if "vendor" not in file.parts):  # which say whose they are
            file.write_text(bare(file.read_text(encoding="utf-8"), file.suffix), encoding="utf-8")
    if config.theme.name == "material":  # the style sheets of other themes are left alone
        for file in site.glob("assets/stylesheets/main.*.min.css"):
            file.write_text(slimmed(file.read_text(encoding="utf-8")), encoding="utf-8")


def flush(content: str) -> str:
    """HTML without indents, but for those of code and of scripts."""
    parts = PRE.split(content)  # what is between, what is kept, the name of its tag, and again
    return "".join(part if at % 3 == 1 else re.sub(r"\n\s+", "\n", part) for at, part in enumerate(parts) if at % 3 < 2)


def bare(text: str, suffix: str) -> str:
    """A style sheet (`.css`) or a script (`.js`) of ours without comments and indents, a style sheet without blanks."""
    short = re.sub(r"(?m)^[ \t]+", "", COMMENT[suffix].sub("", text))
    return re.sub(r"\s*([{};,])\s*|(:) ", r"\1\2", short) if suffix == ".css" else short


def slimmed(style: str) -> str:
    """A minified style sheet without the rules all of whose selectors are for what is absent."""

    def kept(rule: re.Match[str]) -> str:
        if rule[1].startswith("@"):
            return rule[0]
        # A comma inside of parentheses is part of a selector.
        selectors = re.split(r",(?![^()]*\))", rule[1])
        left = [selector for selector in selectors if not ABSENT.search(selector)]
        body = VARIABLE.sub(lambda found: "" if ABSENT.search(found[1]) else found[0], rule[2])
        return f"{','.join(left)}{{{body}}}" if left and body else ""

    before = ""
    while before != style:  # an empty group of rules goes with the last of them
        before, style = style, re.sub(r"(?<=[{}])@(media|supports)[^{}]*\{\}", "", RULE.sub(kept, style))
    return style
