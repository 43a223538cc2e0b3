"""New forms of old idioms, against what the old ones returned on the last release that had them.

old_forms.py has asked these releases, and old_forms.json is what they said. Where a form was gone before the oldest
release that can be installed, its definition in NumPy is the reference.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.site.recommended import old_forms
from tests.site.recommended.attack import ATTACKED
from tests.site.recommended.old_forms import FORMS, SAME, digest, idioms, off, recorded, run
from tests.site.strategies import assert_same

RECORD = recorded()
BY_DEFINITION = [name for name, form in FORMS.items() if form.meant]
counts = pytest.mark.parametrize("count", [3, pytest.param(60, marks=pytest.mark.slow)])  # each compiles anew
RUN = [name for name, kept in RECORD.items() if kept.get("returned")]
ATTACKED.update({f"then and now: {name}": "test_the_record_is_of_the_code_of_today" for name in (*SAME, *RECORD)})
ATTACKED.update({f"then and now: {name}": "test_a_form_returns_what_is_meant" for name in BY_DEFINITION})


@pytest.fixture(autouse=True)
def one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the forms find one device, as those did that were asked: some split an array over all that there are."""
    found = jax.devices()
    monkeypatch.setattr(jax, "devices", lambda: found[:1])


@pytest.mark.parametrize("name", [*SAME, *(name for name in FORMS if name not in BY_DEFINITION)])
def test_the_record_is_of_the_code_of_today(name: str) -> None:
    kept = RECORD[name]
    assert kept["code"] == digest(name), "run old_forms.py again"
    if name in SAME:
        assert kept["same"]
    else:
        assert kept["inputs"] in (1, old_forms.COUNT) and kept["raised"] < 3 / 4 * kept["inputs"]


@pytest.mark.parametrize("name", [name for name, kept in RECORD.items() if kept.get("differ")])
def test_a_form_that_returns_something_else_has_a_note_that_says_so(name: str) -> None:
    note = FORMS[name].note
    assert note and note in idioms()[name]["note"], RECORD[name]["differ"]


@counts
@pytest.mark.parametrize("name", RUN)
def test_todays_jax_returns_what_the_old_form_did(name: str, count: int) -> None:
    kept = RECORD[name]
    expected = kept["returned"][:count]
    rows = zip(run(name, "new", len(expected)), expected, old_forms.inputs(name, len(expected)), strict=True)
    for n, (found, one, given) in enumerate(rows):
        if one and n not in kept["differ"] and not eval(FORMS[name].varies, dict(given)):
            assert not (how := off(found, one)), (n, how, given)


@counts
@pytest.mark.parametrize("name", BY_DEFINITION)
def test_a_form_returns_what_is_meant(name: str, count: int) -> None:
    pairs = zip(run(name, "new", count), old_forms.meant(name, count), strict=True)
    for n, (found, expected) in enumerate(pairs):
        assert expected[0][0] != "raises", expected
        assert not (how := old_forms.differs(found, expected, by_definition=True)), (n, how)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("jax.numpy.in1d", ".ravel()", ""),
        ("jax.nn.normalize", "jax.nn.standardize(", "jax.nn.softmax("),
        ("jnp.cross(a[2], b[2])", "...", "0"),
        ("jax.scipy.special.sph_harm", "polar, azimuth)", "azimuth, polar)"),
    ],
)
def test_another_result_would_be_found(name: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    idiom = idioms()[name]
    assert right in idiom["new"]
    changed = {**idioms(), name: {**idiom, "new": idiom["new"].replace(right, wrong)}}
    monkeypatch.setattr(old_forms, "idioms", lambda: changed)
    with pytest.raises(AssertionError):
        test_the_record_is_of_the_code_of_today(name)
    with pytest.raises(AssertionError):
        test_todays_jax_returns_what_the_old_form_did(name, old_forms.KEPT)


def noted(name: str) -> list[str]:
    """Return the pieces of code in the note on an old name."""
    return re.findall("`(.+?)`", idioms()[name]["note"])


def test_the_copies_for_a_pmap_keep_their_axis() -> None:
    tree, code = {"w": jnp.arange(3.0), "b": jnp.int32(2)}, noted("jax.device_put_replicated")[1]
    copies = eval(code, {"jax": jax, "jnp": jnp, "tree": tree})
    stepped = jax.pmap(lambda tree: jax.tree.map(lambda x: x + 1, tree))(copies)
    for name, leaf in tree.items():
        assert_same(stepped[name], np.stack([np.asarray(leaf) + 1] * jax.local_device_count()))
        assert stepped[name].dtype == leaf.dtype


def test_a_spec_of_pjit_becomes_a_sharding() -> None:
    mesh, x = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",)), jnp.arange(4.0)
    spec, *_, code = noted("jax.experimental.pjit.pjit(in_axis_resources=)")
    assert spec == "PartitionSpec"
    by_mesh = eval(code, {"jax": jax, "mesh": mesh, "spec": jax.P("d")})
    assert_same(jax.jit(lambda x: 2 * x, in_shardings=by_mesh, out_shardings=by_mesh)(x), 2 * np.arange(4.0))
    with pytest.raises(RuntimeError, match="non-empty mesh"):
        jax.jit(lambda x: 2 * x, in_shardings=jax.P("d"))(x)
