"""Attacks on the answers about pytrees: each against what a loop over the leaves returns."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same

Array = np.ndarray[Any, Any]
PAGE = "answers/pytrees.md"
PAIR = arrays((2,), odd=False)


def made(anchor: str, *wanted: str) -> Any:
    """Return what an answer defines under these names: one of them, or a tuple of all."""
    found = program(f"{PAGE}#{anchor}", *wanted)
    return found[wanted[0]] if len(wanted) == 1 else tuple(found[name] for name in wanted)


@attack(f"{PAGE}#own-class", slope=PAIR, offset=PAIR, x=st.integers(-4, 4))
def test_a_registered_class_is_called_and_differentiated(slope: Array, offset: Array, x: int) -> None:
    value, grads = lines()(made("own-class", "Line")(slope, offset), float(x))
    assert_same(value, (slope * x + offset).sum())
    assert_same(grads.slope, np.full(2, x))
    assert_same(grads.offset, np.ones(2))


@cache
def lines() -> Any:
    """The sum of a line and its gradient, compiled."""
    return jax.jit(jax.value_and_grad(lambda line, x: line(x).sum()))


@attack(f"{PAGE}#static-fields", w=arrays((2, 2), odd=False), x=PAIR, names=st.permutations(["tanh", "sin", "cos"]))
def test_each_static_value_has_its_program(w: Array, x: Array, names: list[str]) -> None:
    layer, apply = made("static-fields", "Layer", "apply")
    for name in [*names, names[0]]:
        assert_same(apply(layer(w, name), x), getattr(np, name)(w.astype(float) @ x), atol=1e-3)
    assert len(jax.tree.leaves(layer(w, names[0]))) == 1


@cache
def filtered() -> Any:
    """The sum of a window times the gain, compiled for each window."""
    return jax.jit(lambda filter: filter.gain * sum(filter.window))


@attack(
    f"{PAGE}#array-in-static", gain=st.integers(-4, 4), window=st.sampled_from([(), (1.0,), (1.0, 2.0), (2.0, 1.5)])
)
def test_a_tuple_as_a_static_field_is_compared_by_its_numbers(gain: int, window: tuple[float, ...]) -> None:
    shows(f"{PAGE}#array-in-static", "store a tuple of numbers instead")
    made_filter = made("array-in-static", "Filter")
    assert_same(filtered()(made_filter(gain / 2, window)), gain / 2 * sum(window))


@attack(f"{PAGE}#none-leaf", w=PAIR, absent=st.lists(st.booleans(), min_size=3, max_size=3))
def test_none_is_seen_with_is_leaf_and_skipped_without(w: Array, absent: list[bool]) -> None:
    is_none = made("none-leaf", "is_none")
    shows(f"{PAGE}#none-leaf", "jax.tree.map(lambda p: 0.0 if p is None else p, layer, is_leaf=is_none)")
    tree = [None if gone else i * w for i, gone in enumerate(absent)]
    filled = jax.tree.map(lambda p: 0.0 if p is None else p, tree, is_leaf=is_none)
    for i, (gone, found) in enumerate(zip(absent, filled, strict=True)):
        assert_same(found, 0.0 if gone else i * w)
    doubled = jax.tree.map(lambda p: p * 2, tree)
    assert [one is None for one in doubled] == absent


@attack(f"{PAGE}#structure-mismatch", sizes=st.lists(st.integers(1, 3), min_size=1, max_size=12))
def test_leaves_return_to_their_containers(sizes: list[int]) -> None:
    text = "jax.tree.unflatten(jax.tree.structure(params), jax.tree.leaves(loaded))"
    shows(f"{PAGE}#structure-mismatch", text, '`"10"` sorts before `"2"`')
    params = {"layers": [np.full(n, i) for i, n in enumerate(sizes)]}
    loaded = {"layers": tuple(params["layers"])}
    found = jax.tree.unflatten(jax.tree.structure(params), jax.tree.leaves(loaded))
    assert [one[0] for one in found["layers"]] == list(range(len(sizes)))
    by_name = {"layers": {str(i): leaf for i, leaf in enumerate(params["layers"])}}
    renamed = jax.tree.unflatten(jax.tree.structure(params), jax.tree.leaves(by_name))
    in_order = [one[0] for one in renamed["layers"]] == list(range(len(sizes)))
    assert in_order == (len(sizes) <= 10)  # as the page says


@attack(f"{PAGE}#tree-map-gone", w=PAIR, grads=PAIR)
def test_trees_are_mapped_together(w: Array, grads: Array) -> None:
    shows(f"{PAGE}#tree-map-gone", "jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)")
    tree: dict[str, Any] = {"w": w, "b": [w[0]]}
    other: dict[str, Any] = {"w": grads, "b": [grads[0]]}
    found = jax.tree.map(lambda p, g: p - 0.1 * g, tree, other)
    assert_same(found["w"], w - 0.1 * grads)
    assert_same(found["b"][0], w[0] - 0.1 * grads[0])
    leaves, structure = jax.tree.flatten(tree)
    again: Any = jax.tree.unflatten(structure, leaves)
    assert again["w"] is w and again["b"][0] is tree["b"][0]


@attack(
    f"{PAGE}#count-parameters",
    shapes=st.lists(st.sampled_from([(), (0,), (3,), (2, 3)]), max_size=3),
    dtype=st.sampled_from(["float32", "bfloat16", "int8"]),
)
def test_sizes_add_up(shapes: list[tuple[int, ...]], dtype: str) -> None:
    shows(f"{PAGE}#count-parameters", "sum(p.size for p in leaves)", "sum(p.nbytes for p in leaves)")
    tree = {"layers": [jnp.zeros(shape, dtype) for shape in shapes], "none": None}
    leaves = jax.tree.leaves(tree)
    count = sum(int(np.prod(shape)) for shape in shapes)
    assert sum(p.size for p in leaves) == count
    assert sum(p.nbytes for p in leaves) == count * jnp.dtype(dtype).itemsize
    promised = jax.eval_shape(lambda: {"layers": [jnp.zeros(shape, dtype) for shape in shapes]})
    assert sum(p.size for p in jax.tree.leaves(promised)) == count


@cache
def curvature() -> Any:
    """The Hessian of the answer's loss of a vector, compiled."""
    loss, unravel = made("ravel", "loss"), ravel_pytree({"b": jnp.zeros(()), "w": jnp.zeros((1, 2))})[1]
    return jax.jit(jax.hessian(lambda flat: loss(unravel(flat))))


@slow_attack(f"{PAGE}#ravel", b=arrays((), odd=False), w=arrays((1, 2), odd=False))
def test_a_vector_holds_all_leaves_and_turns_back(b: Array, w: Array) -> None:
    flat, unravel = ravel_pytree({"b": b, "w": w})
    assert_same(flat, np.append(b, w))
    again = unravel(10 * flat)
    assert_same(again["b"], 10 * b)
    assert_same(again["w"], 10 * w)
    found = curvature()(flat)
    x, y = w[0]
    assert_same(found, [[0, 2 * x, 2 * y], [2 * x, 2 * b, 0], [2 * y, 0, 2 * b]], atol=1e-3)


@attack(f"{PAGE}#update-one-leaf", w=PAIR, new=PAIR, place=st.integers(0, 1), shared=st.booleans())
def test_one_leaf_is_changed_and_no_other(w: Array, new: Array, place: int, shared: bool) -> None:
    reset = made("update-one-leaf", "reset")
    shows(f"{PAGE}#update-one-leaf", 'eqx.tree_at(lambda p: p["layers"][1]["w"], params, jnp.zeros(3))')
    tree = {"layers": [{"w": w}, {"w": w if shared else w + 1}]}  # one array may be in two places
    found = eqx.tree_at(lambda p: p["layers"][place]["w"], tree, new)
    assert found["layers"][place]["w"] is new
    assert found["layers"][1 - place]["w"] is tree["layers"][1 - place]["w"]
    zeroed = jax.tree.map_with_path(reset, tree)
    assert_same(zeroed["layers"][0]["w"], np.zeros(2))
    assert zeroed["layers"][1]["w"] is tree["layers"][1]["w"]


@attack(f"{PAGE}#leaf-names", depth=st.integers(0, 3), names=st.permutations(["w", "bias", "now", "ww"]))
def test_weights_are_found_at_every_depth(depth: int, names: list[str]) -> None:
    is_weight = made("leaf-names", "is_weight")
    tree: Any = dict.fromkeys(names, 1.0)
    for level in range(depth):
        tree = [tree] if level % 2 else {"w": tree}
    found = jax.tree.map_with_path(is_weight, tree)
    for level in reversed(range(depth)):
        found = found[0] if level % 2 else found["w"]
    assert found == {name: name == "w" for name in names}


@attack(f"{PAGE}#stack-trees", losses=arrays((3,)), grads=arrays((3, 2)))
def test_stacked_trees_are_the_trees(losses: Array, grads: Array) -> None:
    shows(f"{PAGE}#stack-trees", "jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps)")
    shows(f"{PAGE}#stack-trees", "[jax.tree.map(lambda leaf: leaf[i], stacked) for i in range(n)]")
    steps = [{"loss": loss, "grad": grad} for loss, grad in zip(losses, grads, strict=True)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps)
    assert_same(stacked["loss"], losses)
    back = [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(3)]
    for one, step in zip(back, steps, strict=True):
        assert_same(one["grad"], step["grad"])


@attack(f"{PAGE}#two-results", w=PAIR, b=arrays((), odd=False), nested=st.booleans())
def test_a_tree_of_pairs_becomes_two_trees(w: Array, b: Array, nested: bool) -> None:
    shows(f"{PAGE}#two-results", "jax.tree.structure(params), jax.tree.structure((0, 0))")
    shows(f"{PAGE}#two-results", "new, largest = jax.tree.transpose(outer, inner, pairs)")
    params: Any = {"w": (w, [w + 1]) if nested else w, "b": b, "none": None}
    pairs = jax.tree.map(lambda p: (p + 1, np.abs(p).max()), params)
    outer, inner = jax.tree.structure(params), jax.tree.structure((0, 0))
    new, largest = jax.tree.transpose(outer, inner, pairs)
    for p, one, other in zip(*map(jax.tree.leaves, (params, new, largest)), strict=True):
        assert_same(one, p + 1)
        assert other == np.abs(p).max()
    assert str(jax.tree.structure(new)) == str(outer)


@attack(f"{PAGE}#tree-arithmetic", w=PAIR, b=PAIR, imaginary=st.booleans())
def test_norms_and_steps_of_trees_are_those_of_one_vector(w: Array, b: Array, imaginary: bool) -> None:
    shows(f"{PAGE}#tree-arithmetic", "optax.tree.norm(params, squared=True)")
    shows(f"{PAGE}#tree-arithmetic", "sum(jnp.sum(p.real**2 + p.imag**2) for p in jax.tree.leaves(params))")
    params = {"w": w * 1j if imaginary else w, "b": [b]}
    flat = np.concatenate([params["w"], b])
    assert_same(by_parts(params), np.linalg.norm(flat) ** 2, atol=1e-2)
    assert_same(optax.tree.norm(params, squared=True), np.linalg.norm(flat) ** 2, atol=1e-2)
    assert_same(optax.tree.norm(params), np.linalg.norm(flat))
    assert_same(jnp.real(optax.tree.vdot(params, params)), np.vdot(flat, flat).real, atol=1e-2)
    stepped = jax.tree.map(lambda p, g: p - 0.5 * g, params, params)
    assert_same(stepped["b"][0], b / 2)


def by_parts(params: Any) -> Any:
    """Return the penalty of the answer that needs no library."""
    return sum(jnp.sum(p.real**2 + p.imag**2) for p in jax.tree.leaves(params))


@cache
def bends(penalty: Any) -> Any:
    """Return the second derivatives of a penalty by the two parts of a complex number, compiled."""
    return jax.jit(jax.hessian(lambda parts: penalty([jax.lax.complex(parts[0], parts[1])])))


def squared_norm(params: Any) -> Any:
    """Return the penalty of the answer."""
    return optax.tree.norm(params, squared=True)


@attack(f"{PAGE}#tree-arithmetic", parts=st.just(np.zeros(2, np.float32)) | PAIR)
def test_a_penalty_bends_equally_everywhere_also_at_zero(parts: Array) -> None:
    for penalty in (squared_norm, by_parts):
        assert_same(bends(penalty)(parts), 2 * np.eye(2))


@attack(f"{PAGE}#mixed-leaves", w=PAIR, step=st.integers(-4, 4), other=st.sampled_from([0.5, "text", np.ones(1, int)]))
def test_a_split_tree_is_put_together_again(w: Array, step: int, other: Any) -> None:
    shows(f"{PAGE}#mixed-leaves", "floats, rest = eqx.partition(model, eqx.is_inexact_array)")
    model = {"w": jnp.asarray(w), "step": step, "other": other}
    floats, rest = eqx.partition(model, eqx.is_inexact_array)
    [leaf] = jax.tree.leaves(floats)
    assert leaf is model["w"]
    assert rest["step"] == step and rest["other"] is other
    combined = eqx.combine(floats, rest)
    assert all(combined[name] is model[name] for name in model)

    def loss(floats: Any) -> Any:
        model = eqx.combine(floats, rest)
        return jnp.square(model["w"]).sum() * model["step"]

    assert_same(jax.grad(loss)(floats)["w"], 2 * w * step, atol=1e-3)
    assert jax.grad(loss)(floats)["other"] is None


@attack(f"{PAGE}#init-called", w=arrays((2, 3), odd=False), filler=st.sampled_from([None, "text", (2, 3)]))
def test_a_constructor_without_checks_takes_any_leaf(w: Array, filler: Any) -> None:
    make_weights = made("init-called", "make_weights")
    weights = make_weights(w)
    rebuilt = jax.tree.map(lambda p: filler, weights)
    assert rebuilt.w is filler
    assert_same(jax.tree.map(lambda p: 2 * p, weights).w, 2 * w)
    with pytest.raises(AssertionError, match="w must be a matrix"):
        make_weights(w[0])
