"""Attacks on the answers about GPUs and TPUs, as far as CPU devices and made-up machines can stand for them."""

import glob
import importlib.metadata
import os
from types import SimpleNamespace
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import attack
from tests.site.recommended.devices import eight
from tests.site.recommended.shown import shows, visible
from tests.site.strategies import arrays, assert_same

PAGE = "answers/running-on-accelerators.md"
again = visible.__wrapped__  # runs the program each time
FORMS = {
    "eager": jnp.tanh,
    "jit": jax.jit(jnp.tanh),
    "vmap": jax.vmap(jnp.tanh),
    "grad": jax.grad(lambda x: jnp.tanh(x).sum()),
}


@attack(
    f"{PAGE}#gpu-used",
    x=arrays((3,)),
    number=st.integers(0, 7),
    form=st.sampled_from(sorted(FORMS)),
    placed=st.booleans(),
)
def test_a_result_says_where_it_was_computed(x: np.ndarray[Any, Any], number: int, form: str, placed: bool) -> None:
    shows(f"{PAGE}#gpu-used", "z = np.tanh(y)", "for device in y.devices()")
    device = eight()[number]
    if placed:
        y = FORMS[form](jax.device_put(x, device))
    else:
        with jax.default_device(device):
            y = FORMS[form](jnp.asarray(x))
    assert y.devices() == {device}
    z = np.tanh(y)
    assert type(z) is np.ndarray and not hasattr(z, "devices")
    assert_same(z, jnp.tanh(y), 1e-5, 1e-6)


VERSIONS = st.sampled_from(["0.12.0", "0.12.0.1", "0.12.1"])
NAMES = ["jax", "jaxlib", "jax-cuda13-plugin", "jax_cuda12_plugin", "JAX-cuda13-pjrt"]


@attack(
    f"{PAGE}#packages-differ",
    installed=st.dictionaries(st.sampled_from(NAMES), VERSIONS, min_size=1),
    others=st.dictionaries(st.sampled_from(["jaxtyping", "numpy", "nvidia-cudnn-cu13", "my-jax-cuda"]), VERSIONS),
)
def test_packages_of_one_release_are_told_from_others(installed: dict[str, str], others: dict[str, str]) -> None:
    shows(f"{PAGE}#packages-differ", "len(set(parts.values())) == 1")
    packages = [SimpleNamespace(name=name, version=version) for name, version in {**installed, **others}.items()]
    with mock.patch.object(importlib.metadata, "distributions", lambda: packages):
        parts = again(f"{PAGE}#packages-differ")["parts"]
    assert parts == {name.lower().replace("_", "-"): version for name, version in installed.items()}


TARGETS = ["/dev/accel0", "/dev/vfio/1", "/dev/vfio/vfio", "/dev/null", "/dev/vfiox", "socket:[3]", "/home/dev/accel0"]


@attack(
    f"{PAGE}#tpu-in-use",
    open_files=st.dictionaries(
        st.tuples(st.integers(1, 99), st.integers(0, 9)), st.none() | st.sampled_from(TARGETS), max_size=9
    ),
)
def test_whoever_holds_a_tpu_is_found(open_files: dict[tuple[int, int], str | None]) -> None:
    links = {f"/proc/{process}/fd/{number}": target for (process, number), target in open_files.items()}

    def readlink(link: str) -> str:
        if links[link] is None:
            raise PermissionError(link)
        return links[link] or ""

    with mock.patch.object(glob, "glob", lambda pattern: [*links]), mock.patch.object(os, "readlink", readlink):
        holders = again(f"{PAGE}#tpu-in-use")["holders"]
    expected: dict[str, set[str]] = {}
    for (process, _), target in open_files.items():
        if target in TARGETS[:3]:
            expected.setdefault(str(process), set()).add(str(target))
    assert holders == expected
