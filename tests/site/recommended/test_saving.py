"""Attacks on the answers about checkpoints: what was written is what comes back."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as legacy
import pytest
from hypothesis import strategies as st
from orbax.checkpoint import v1 as ocp

from tests.site.recommended.attack import ATTACKED, search
from tests.site.strategies import arrays, dtypes, shapes

# A write takes a tenth of a second, so each of a few trees holds many arrays.
TREES = st.lists(arrays(shapes(empty=False), dtypes()), min_size=40, max_size=40)
ATTACKED["answers/saving.md#checkpoint-manager"] = "test_the_new_interface_reads_what_both_wrote"


def read_back(leaves: list[np.ndarray[Any, Any]]) -> None:
    """Write arrays with both interfaces, and read both with the new one.

    Raises:
        AssertionError: one that is read is not the one that was written.
    """
    tree = {f"leaf{i}": jnp.asarray(leaf) for i, leaf in enumerate(leaves)}
    with TemporaryDirectory() as folder:
        old, new = Path(folder) / "old", Path(folder) / "new"
        with legacy.CheckpointManager(old) as manager:
            manager.save(3, args=legacy.args.StandardSave(tree))
            manager.wait_until_finished()
        with ocp.training.Checkpointer(new) as saved:
            saved.save(3, tree)
            found = saved.load(3, tree)
        for loaded in (found, ocp.load(old / "3", tree)):
            for i, leaf in enumerate(leaves):
                np.testing.assert_array_equal(np.asarray(loaded[f"leaf{i}"]), leaf)
                assert loaded[f"leaf{i}"].dtype == leaf.dtype


@pytest.mark.slow
def test_the_new_interface_reads_what_both_wrote() -> None:
    search(5, read_back, leaves=TREES)
