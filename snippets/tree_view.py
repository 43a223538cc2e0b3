"""A pytree as HTML that opens and closes, without any script."""

import html
from typing import Any

import jax


def tree_html(tree: Any, name: str = "tree") -> str:
    """Nested lists of the containers and leaves of a tree of arrays."""
    return f'<ul class="live-tree">{_item(tree, name, " open")}</ul>'


def _item(tree: Any, name: str, state: str = "") -> str:
    label = f"<code>{html.escape(name)}</code>"
    children = jax.tree.leaves_with_path(tree, is_leaf=lambda node: node is not tree)
    if children and not children[0][0]:  # the way to a leaf is empty
        return f"<li>{label} {tree.dtype}{list(tree.shape)}</li>"
    size = sum(leaf.size for leaf in jax.tree.leaves(tree))
    inside = "".join(_item(child, jax.tree_util.keystr(path)) for path, child in children)
    summary = f"<summary>{label} {type(tree).__name__}, {size} numbers</summary>"
    return f"<li><details{state}>{summary}<ul>{inside}</ul></details></li>"
