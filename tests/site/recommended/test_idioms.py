"""New forms of old idioms, against the function of NumPy or SciPy that the old form had, or against its definition."""

import tomllib
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import ATTACKED, PROJECT, examples, search
from tests.site.strategies import arrays, assert_same, shapes

Array = np.ndarray[Any, Any]
IDIOMS = {
    idiom["name"]: idiom
    for group in tomllib.loads((PROJECT.root / "snippets" / "idioms.toml").read_text(encoding="utf-8")).values()
    for idiom in group
}
# What the new form calls, as it must appear in it; the form with any array; and what the old one returned.
NEW: dict[str, tuple[str, Callable[[Any], Any], Callable[[Array], Any]]] = {
    "jax.numpy.row_stack": ("vstack", lambda x: jnp.vstack([x, x]), lambda x: np.vstack([x, x])),
    "jax.numpy.in1d": (".ravel()", lambda x: jnp.isin(x, x[:1]).ravel(), lambda x: np.isin(x, x[:1]).ravel()),
    "jax.numpy.trapz": ("trapezoid", jnp.trapezoid, lambda x: ((x[..., 1:] + x[..., :-1]) / 2).sum(-1)),
    "jax.numpy.product": ("prod", jnp.prod, np.prod),
    "jax.numpy.alltrue": ("all", jnp.all, np.all),
    "jax.numpy.msort": ("sort(jnp.ones(3), axis=0)", lambda x: jnp.sort(x, axis=0), lambda x: np.sort(x, axis=0)),
    "jax.numpy.round_": ("round", jnp.round, np.round),
    "jax.numpy.fix": ("trunc", jnp.trunc, lambda x: np.sign(x) * np.floor(np.abs(x))),
    "jnp.clip(a_min=,a_max=)": ("min=0, max=1", lambda x: jnp.clip(x, min=0, max=1), lambda x: np.clip(x, 0, 1)),
    "jax.numpy.sometrue": ("any", jnp.any, np.any),
    "jax.numpy.cumproduct": ("cumprod", jnp.cumprod, np.cumprod),
    "jnp.percentile(interpolation=)": (
        'method="linear"',
        lambda x: jnp.percentile(x, 50, method="linear"),
        lambda x: np.percentile(x, 50),
    ),
}
ATTACKED.update({f"then and now: {name}": "test_the_new_form_returns_what_the_old_one_did" for name in NEW})


@examples
@pytest.mark.parametrize("name", NEW)
def test_the_new_form_returns_what_the_old_one_did(name: str, count: int) -> None:
    called, form, old = NEW[name]
    assert called in IDIOMS[name]["new"]

    def holds(x: Array) -> None:
        with np.errstate(all="ignore"):
            assert_same(form(jnp.asarray(x)), old(x), atol=1e-3)

    search(count, holds, x=arrays(shapes(1, 3, empty=False), "float32", odd=False))


def test_a_sort_of_another_axis_would_be_found() -> None:
    with pytest.raises(AssertionError):
        search(5, lambda x: assert_same(jnp.sort(x), np.sort(x, axis=0)), x=st.just(np.array([[2.0, 1.0], [0.0, 3.0]])))
