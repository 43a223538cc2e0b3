"""Attacks on the answers about export: what comes out of the bytes computes what NumPy does."""

import re
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import strategies as st
from jax import export

from tests.site.recommended.attack import attack, program
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, slopes

Array = np.ndarray[Any, Any]
PAGE = "answers/export.md"
VECTOR = jax.ShapeDtypeStruct((3,), jnp.float32)


def made(anchor: str, *wanted: str) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted)


def loaded(exported: export.Exported, vjp_order: int = 0) -> export.Exported:
    """Write an exported function, and read it."""
    return export.deserialize(exported.serialize(vjp_order=vjp_order))


@cache
def of_cpp() -> Any:
    """The program of an answer, out of its bytes."""
    return loaded(made("cpp", "exported")["exported"])


def arguments(text: str) -> list[tuple[int, ...]]:
    """The shapes of the arguments of a program's text, in their order."""
    [(head,)] = [re.findall(r"@main\((.*?)\) ->", text)]
    found = re.findall(r"%arg\d+: tensor<((?:\d+x)*)f32>", head)
    return [tuple(int(n) for n in sizes.split("x")[:-1]) for sizes in found]


SIZES = st.integers(1, 9).map(lambda n: (n,))
TREES = st.dictionaries(
    st.sampled_from("zyxba"),
    SIZES | st.lists(SIZES, max_size=2) | st.dictionaries(st.sampled_from("dc"), SIZES, max_size=2),
    min_size=1,
)


@attack(f"{PAGE}#cpp", w=arrays((3,)), x=arrays((3,)), tree=TREES, unused=st.integers(0, 9), keep=st.booleans())
def test_a_runtime_gets_one_argument_for_each_leaf_that_is_used(
    w: Array, x: Array, tree: dict[str, Any], unused: int, keep: bool
) -> None:
    shows(f"{PAGE}#cpp", "text = jax.jit(predict).lower(shape, shape).as_text()", "`keep_unused=True`")
    with np.errstate(all="ignore"):
        assert_same(of_cpp().call(w, x), np.tanh(w * x))
    sizes: list[tuple[int, ...]] = []  # by hand: the keys in the order of the alphabet, and lists as they are
    for _, part in sorted(tree.items()):
        sizes += (
            [part] if isinstance(part, tuple) else part if isinstance(part, list) else [part[k] for k in sorted(part)]
        )
    left_out = unused % len(sizes) if sizes else 0
    params = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, "float32"), tree, is_leaf=lambda s: isinstance(s, tuple))

    def total(params: Any) -> Any:
        return sum((leaf.sum() for i, leaf in enumerate(jax.tree.leaves(params)) if i != left_out), jnp.zeros(()))

    jitted = jax.jit(total, keep_unused=keep)
    expected = sizes if keep else sizes[:left_out] + sizes[left_out + 1 :]
    assert arguments(jitted.lower(params).as_text()) == expected
    exported = export.export(jitted)(params)
    assert [aval.shape for aval in exported.in_avals] == sizes
    assert arguments(exported.mlir_module()) == expected


class Pair(NamedTuple):
    """Parameters of a class that export has to be told of."""

    w: Any
    b: Any


@cache
def of_classes() -> dict[str, export.Exported]:
    """Programs of a linear layer, out of their bytes: of the answer, and of the other classes that it names."""
    shows(
        f"{PAGE}#unregistered-type",
        "`export.register_namedtuple_serialization`",
        "`eqx.partition(model, eqx.is_array)`",
        "A Flax NNX model can be flattened as it is",
    )
    export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")
    linear, static = eqx.partition(eqx.nn.Linear(3, 2, key=jax.random.key(0)), eqx.is_array)
    leaves, structure = jax.tree.flatten(linear)
    of_layer, layer = jax.tree.flatten(nnx.Linear(3, 2, rngs=nnx.Rngs(0)))

    def of_equinox(leaves: Any, x: Any) -> Any:
        return eqx.combine(jax.tree.unflatten(structure, leaves), static)(x)

    def of_nnx(leaves: Any, x: Any) -> Any:
        return jax.tree.unflatten(layer, leaves)(x)

    def of_pair(pair: Pair, x: Any) -> Pair:
        return Pair(x @ pair.w + pair.b, pair.b)

    pair = Pair(jnp.ones((3, 2)), jnp.ones(2))
    exported = {
        "equinox": export.export(jax.jit(of_equinox))(leaves, VECTOR),
        "nnx": export.export(jax.jit(of_nnx))(of_layer, VECTOR),
        "pair": export.export(jax.jit(of_pair))(pair, VECTOR),
    }
    page = export.deserialize(made("unregistered-type", "data")["data"])
    return {"page": page, **{name: loaded(one) for name, one in exported.items()}}


@attack(
    f"{PAGE}#unregistered-type",
    w=arrays((3, 2), odd=False),
    b=arrays((2,), odd=False),
    x=arrays((3,), odd=False),
    name=st.sampled_from(["page", "equinox", "nnx", "pair"]),
)
def test_a_class_is_rebuilt_from_its_leaves(w: Array, b: Array, x: Array, name: str) -> None:
    call: Any = of_classes()[name].call
    expected = x.astype(float) @ w + b * (name != "page")
    if name == "page":
        found = call([w], x)
    elif name == "equinox":  # whose weights are transposed
        found = call([w.T, b], x)
    elif name == "nnx":
        found = call([b, w], x)
    else:
        found, again = call(Pair(w, b), x)
        assert_same(again, b)
    assert_same(found, expected, 1e-3, 1e-2)


@cache
def of_platforms() -> tuple[Any, Any, Any]:
    """The program of an answer for two platforms, out of its bytes, its gradient, and that for a GPU only."""
    found = made("platforms", "both", "cuda")
    both = loaded(found["both"], vjp_order=1)
    assert both.platforms == ("cpu", "cuda")
    return both, jax.jit(jax.grad(both.call)), loaded(found["cuda"])


@attack(f"{PAGE}#platforms", x=arrays((3,)))
def test_a_program_for_two_platforms_runs_here_and_one_for_another_is_refused(x: Array) -> None:
    both, slope, cuda = of_platforms()
    assert_same(both.call(x), np.linalg.norm(np.tanh(x.astype(float))))
    if np.isfinite(x).all() and x.any():  # at the origin the norm has no derivative
        assert_same(slope(x), slopes(lambda x: np.linalg.norm(np.tanh(x)), x), atol=1e-3)
    with pytest.raises(ValueError, match="was exported for platforms"):
        cuda.call(x)


@cache
def of_eigenvalues() -> Any:
    """The program of an answer, out of its bytes."""
    found = loaded(made("compatibility", "exported")["exported"])
    low, high = export.minimum_supported_calling_convention_version, export.maximum_supported_calling_convention_version
    assert low <= found.calling_convention_version <= high
    return found


@attack(f"{PAGE}#compatibility", x=arrays((3, 3), odd=False))
def test_eigenvalues_of_a_loaded_program_are_those_of_numpy(x: Array) -> None:
    symmetric = x + x.T
    expected = np.linalg.eigvalsh(symmetric.astype(float))
    assert_same(of_eigenvalues().call(symmetric), expected, atol=1e-5 * float(np.abs(expected).max()) + 1e-6)
