"""An explorable as HTML: the output of a block with its first parameters and, folded below, with each of the others.

The script ``vary.js`` turns it into a control that shows one output at a time.
"""

import html
import json
from collections.abc import Sequence

from livepages.source import Block


def explorable(block: Block, outputs: Sequence[str]) -> str:
    """Return a block that varies as HTML, by its outputs with each of its parameters."""
    names = [{"name": varied.name, "values": varied.values, "order": varied.order} for varied in block.options.vary]
    first, *others = outputs
    assignments = (", ".join(map(" = ".join, variant.parameters)) for variant in block.variants)
    folds = "".join(
        f'<details class="live-value" data-search-exclude><summary>with <code>{html.escape(assigned)}</code>'
        f"</summary>{content}</details>"
        for assigned, content in zip(assignments, others, strict=True)
    )
    about = html.escape(json.dumps(names, ensure_ascii=False))
    return f'<div class="live-vary" data-live-vary="{about}"><div class="live-value">{first}</div>{folds}</div>'
