"""Attacks on the answers about GPUs and TPUs, as far as CPU devices and made-up machines can stand for them."""

import glob
import importlib.metadata
import os
import subprocess
from types import SimpleNamespace
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import attack
from tests.site.recommended.devices import eight, mesh
from tests.site.recommended.shown import shows, visible
from tests.site.strategies import arrays, assert_same

PAGE = "answers/running-on-accelerators.md"
again = visible.__wrapped__  # runs the program each time
FORMS: dict[str, Any] = {
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


@attack(
    f"{PAGE}#nccl",
    number=st.integers(1, 8),
    length=st.integers(1, 3),
    seed=st.integers(0, 9),
    form=st.sampled_from([lambda f: f, jax.jit]),
)
def test_the_smallest_collective_adds_what_the_devices_hold(number: int, length: int, seed: int, form: Any) -> None:
    shows(f"{PAGE}#nccl", 'jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())')
    values = np.random.default_rng(seed).integers(-9, 9, number * length).astype(np.int32)
    line = mesh(number, names=("x",))
    x = jax.device_put(jnp.asarray(values), NamedSharding(line, P("x")))
    add = form(jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=line, in_specs=P("x"), out_specs=P()))
    assert_same(add(x), values.reshape(number, length).sum(0))


FLAGS = [
    "--xla_gpu_enable_latency_hiding_scheduler=true",
    "--xla_gpu_graph_level=0",
    "--xla_gpu_enable_async_collectives=true",
    "--xla_gpu_enable_async_all_gather=true",
]


@attack(
    f"{PAGE}#refused-flags",
    unknown=st.sets(st.sampled_from(FLAGS)),
    before=st.sampled_from(["", "a warning\n", "Unknown\n"]),
    other=st.sampled_from(["", "Could not open file", "Flag parsing failed."]),
)
def test_refused_flags_are_those_of_the_message(unknown: set[str], before: str, other: str) -> None:
    shows(f"{PAGE}#refused-flags", *FLAGS)
    flags = f"Unknown flag{'s' * (len(unknown) > 1)} in XLA_FLAGS: {' '.join(sorted(unknown))}"
    stderr = f"{before}F1128 parse_flags_from_env.cc:234] {flags}\n" if unknown else before + other
    child = SimpleNamespace(returncode=bool(unknown or other), stderr=stderr)
    with mock.patch.object(subprocess, "run", lambda *arguments, **options: child):
        if other and not unknown:
            with pytest.raises(AssertionError):
                again(f"{PAGE}#refused-flags")
        else:
            assert {*again(f"{PAGE}#refused-flags")["refused"]} == unknown
