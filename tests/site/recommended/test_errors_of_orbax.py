"""Fixes of the error dictionary for Orbax, against what was saved."""

import tempfile
from pathlib import Path

import numpy as np
import orbax.checkpoint as ocp
from hypothesis import strategies as st

from tests.site.recommended.attack import attack
from tests.site.recommended.entries import fixed, refused

ORBAX = "lookup/errors-orbax.md"


def saved(loss: float) -> Path:
    """A folder with the checkpoint that the page has made before."""
    folder = Path(tempfile.mkdtemp())
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "latest", {"loss": np.float32(loss)})
    return folder


@attack(f"{ORBAX}#destination-exists", f"{ORBAX}#restore-structure", x=st.sampled_from([0.0, -1.5, 3e9]))
def test_a_checkpoint_is_overwritten_and_read(x: float) -> None:
    folder = saved(7.0)
    [loss] = fixed(f"{ORBAX}#destination-exists", {"jnp.array(2.0)": "jnp.array(x)"}, x=x, folder=folder)
    assert loss == np.float32(x)
    names, again = fixed(f"{ORBAX}#restore-structure", folder=folder, x=x)
    assert names == ["loss"]
    assert again == np.float32(x)
    refused(f"{ORBAX}#restore-structure", folder=folder)


@attack(f"{ORBAX}#manager-args", x=st.sampled_from([0.0, -1.5, 3e9]))
def test_a_manager_restores_what_it_was_given(x: float) -> None:
    [loss] = fixed(f"{ORBAX}#manager-args", {"jnp.array(3.0)": "jnp.array(x)"}, x=x, folder=Path(tempfile.mkdtemp()))
    assert loss == np.float32(x)


@attack(f"{ORBAX}#unsupported-type", x=st.sampled_from([0.25, -3.0, 7, 1e-30]))
def test_a_number_comes_back_as_it_was_saved(x: float) -> None:
    [rate] = fixed(f"{ORBAX}#unsupported-type", {"0.1": "x"}, x=x, folder=Path(tempfile.mkdtemp()))
    assert rate == x


@attack(f"{ORBAX}#item-not-found", f"{ORBAX}#metadata-file", w=st.sampled_from([0.0, -1.5, 3e9]))
def test_an_item_comes_back_from_its_step(w: float) -> None:
    folder = Path(tempfile.mkdtemp())
    with ocp.CheckpointManager(folder / "parts") as manager:
        manager.save(0, args=ocp.args.Composite(params=ocp.args.StandardSave({"w": np.full(2, w, "float32")})))
        manager.wait_until_finished()
        [restored] = fixed(f"{ORBAX}#item-not-found", folder=folder, parts=manager)
        names, again = fixed(f"{ORBAX}#metadata-file", folder=folder)
    assert names == ["params"] or set(names) > {"params"}
    for found in (restored, again):
        np.testing.assert_array_equal(found, np.full(2, w, "float32"))


@attack(f"{ORBAX}#single-array", x=st.sampled_from([0.0, -1.5, 3e9]))
def test_an_array_comes_back_under_its_name(x: float) -> None:
    changes = {"jnp.ones(3)": "jnp.full(3, x)"}
    [array] = fixed(f"{ORBAX}#single-array", changes, x=x, folder=Path(tempfile.mkdtemp()))
    np.testing.assert_array_equal(array, np.full(3, x, "float32"))


@attack(f"{ORBAX}#reserved-metrics", x=st.sampled_from([0.25, -3.0, 7, 1e-30]))
def test_metrics_come_back_from_json(x: float) -> None:
    [metrics] = fixed(f"{ORBAX}#reserved-metrics", {"0.75": "x"}, x=x, folder=Path(tempfile.mkdtemp()))
    assert metrics == {"accuracy": x}
    refused(f"{ORBAX}#reserved-metrics", {"0.75": "x"}, x=x, folder=Path(tempfile.mkdtemp()))
