"""The tree in HTML has every container and leaf, in the order of JAX."""

import html
import re
from collections import OrderedDict, namedtuple

import jax.numpy as jnp
from tree_view import tree_html

Pair = namedtuple("Pair", "first second")


def test_containers_fold_and_leaves_say_what_they_are() -> None:
    tree = {"b": [jnp.zeros((2, 3)), None], "a": Pair(jnp.ones(4, int), OrderedDict(x=jnp.zeros(())))}
    shown = tree_html(tree, "<model>")
    text = html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", shown)).strip())
    assert text == (
        "<model> dict, 11 numbers ['a'] Pair, 5 numbers .first int32[4] .second OrderedDict, 1 numbers"
        " ['x'] float32[] ['b'] list, 6 numbers [0] float32[2, 3] [1] NoneType, 0 numbers"
    )
    assert shown.count("<details>") + 1 == shown.count("</details>") == 5 and shown.count("<details open>") == 1
    assert shown.count("<ul") == shown.count("</ul>") == 6


def test_a_leaf_alone_is_a_tree() -> None:
    assert tree_html(jnp.zeros(2), "x") == '<ul class="live-tree"><li><code>x</code> float32[2]</li></ul>'
