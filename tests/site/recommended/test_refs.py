"""Refs in loops and backward passes, against plain loops of NumPy in float64."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import assert_same

Array = np.ndarray[Any, Any]
PAGE = "extend/refs.md"
WANTED = "newton", "foreach", "ways_to_pay", "add_gradient", "add_in_half", "add_weighted", "empty", "shuffle"
NAMES = partial(program, PAGE, *WANTED, "by_grad", "by_ref", "deep", "keep")
seeds = st.integers(0, 2**31 - 1)


@cache
def compiled(name: str, *static: int) -> Any:
    return jax.jit(NAMES()[name], static_argnums=static)


@cache
def searching(limit: int) -> Any:
    """Newton's method for the cube roots of a row of numbers, compiled."""

    def root(wanted: Any, start: Any) -> Any:
        return NAMES()["newton"](lambda x: x**3 - wanted, start, limit)

    return jax.jit(jax.vmap(root)), jax.jit(root)


@attack(
    wanted=st.lists(st.floats(1, 30, width=32), min_size=3, max_size=3),
    start=st.lists(st.floats(1, 8, width=32), min_size=3, max_size=3),
    limit=st.sampled_from([1, 3, 8]),
)
def test_a_trail_holds_every_step_of_its_own_search(wanted: list[float], start: list[float], limit: int) -> None:
    together, alone = searching(limit)
    cubes, starts = jnp.asarray(wanted, jnp.float32), jnp.asarray(start, jnp.float32)
    roots, trails = (np.asarray(found, np.float64) for found in together(cubes, starts))
    for cube, first, root, trail in zip(wanted, start, roots, trails, strict=True):
        steps = int((~np.isnan(trail)).sum())
        assert np.isnan(trail[steps:]).all()
        path = trail[:steps] if np.isnan(root) else np.append(trail[:steps], root)
        assert_same(path[0], first)
        before = path[:-1]
        assert_same(path[1:], before - (before**3 - cube) / (3 * before**2), rtol=1e-4)
        assert (abs(before**3 - cube) > 5e-5).all()
        if np.isnan(root):
            assert steps == limit
        else:
            assert abs(root**3 - cube) < 2e-4 + 1e-6 * cube
    assert_same(alone(cubes[0], starts[0])[0], roots[0], rtol=1e-4)


@attack(
    amount=st.sampled_from([0, 1, 7, 12]), coins=st.sampled_from([(), (1,), (2, 5), (5, 2), (3, 3), (13, 4), (1, 2, 4)])
)
def test_ways_to_pay_are_those_of_recursion(amount: int, coins: tuple[int, ...]) -> None:
    def plain(left: int, coins: tuple[int, ...]) -> int:
        if not coins:
            return int(left == 0)
        return sum(plain(left - paid, coins[1:]) for paid in range(0, left + 1, coins[0]))

    assert compiled("ways_to_pay", 0, 1)(amount, coins) == plain(amount, coins)


@cache
def mixing() -> tuple[Any, Any]:
    """A loop that carries a sum in a ref, compiled; and how its last sum depends on what it adds."""

    def mixed(a: Any, b: Any) -> Any:
        total = jax.new_ref(jnp.float32(1))

        def body(x: Any, y: Any) -> Any:
            total[...] = 0.5 * total[...] * x + y
            return total[...]

        return NAMES()["foreach"](a, b)(body), jax.freeze(total)

    return jax.jit(mixed), jax.jit(jax.grad(lambda a, b: mixed(a, b)[1], 1))


@attack(size=st.sampled_from([0, 1, 5]), seed=seeds)
def test_foreach_runs_in_order_and_returns_the_rows(size: int, seed: int) -> None:
    given = np.random.default_rng(seed).normal(size=(2, size)).astype(np.float32)
    loop, slope = mixing()
    wanted, rows = 1.0, []
    for x, y in given.T.astype(np.float64):
        wanted = 0.5 * wanted * x + y
        rows.append(wanted)
    got, last = loop(*given)
    assert_same(got, np.array(rows), rtol=1e-3)
    assert_same(last, np.array(wanted), rtol=1e-3)
    left = [np.prod(0.5 * given[0, i + 1 :].astype(np.float64)) for i in range(size)]
    assert_same(slope(*given), np.array(left), rtol=1e-3, atol=1e-5)


def slopes(params: dict[str, Any], batch: tuple[Array, Array]) -> dict[str, Array]:
    """The gradient of the page's loss, by hand in float64."""
    (x, y), (w, b) = (np.asarray(a, np.float64) for a in batch), (np.asarray(params[n], np.float64) for n in "wb")
    hidden = np.tanh(x @ w)
    off = 2 * (hidden + b - y)
    return {"w": x.T @ (off * (1 - hidden**2)), "b": off.sum(0)}


def drawn(seed: int) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(seed)
    params = {"w": jnp.asarray(rng.normal(size=(5, 3)), jnp.float32), "b": jnp.asarray(rng.normal(size=3), jnp.float32)}
    return params, lambda rows: tuple(rng.normal(size=(rows, size)).astype(np.float32) for size in (5, 3))


@attack(seed=seeds, sizes=st.lists(st.sampled_from([0, 1, 4]), max_size=4))
def test_gradients_of_all_batches_are_in_the_buffer(seed: int, sizes: list[int]) -> None:
    params, batch_of = drawn(seed)
    names = NAMES()
    sums, weighted, halves = (names["empty"](params) for _ in range(3))
    wanted = {name: np.zeros(p.shape) for name, p in params.items()}
    with jax.default_matmul_precision("float32"):
        for batch in [batch_of(size) for size in sizes]:
            names["add_gradient"](sums, params, batch)
            names["add_in_half"](halves, params, batch)
            if len(batch[0]):
                compiled("add_weighted")(weighted, params, batch)
            for name, slope in slopes(params, batch).items():
                wanted[name] += slope
    for name, slope in wanted.items():
        room = 1e-4 * max(1.0, float(abs(slope).max()))
        assert_same(sums[name][...], slope, rtol=1e-3, atol=room)
        assert_same(weighted[name][...], slope, rtol=1e-3, atol=room)
        assert halves[name].dtype == jnp.float32
        assert_same(halves[name][...], slope, rtol=0.1, atol=0.1 * max(1.0, float(abs(slope).max())) + 0.2 * sum(sizes))


@attack(seed=seeds, states=st.sampled_from([1, 2, 20]))
def test_a_walk_counts_discounted_visits(seed: int, states: int) -> None:
    rng = np.random.default_rng(seed)
    links, state = rng.integers(0, states, states), int(rng.integers(0, states))
    costs = rng.normal(size=states).astype(np.float32)
    wanted, at = np.zeros(states), state
    for step in range(30):
        wanted[at] += 0.9**step * (at > 0)
        at = links[at]
    for name in ("by_grad", "by_ref"):
        assert_same(compiled(name)(costs, links, state), wanted, rtol=1e-4, atol=1e-5)


@attack(seed=seeds, layers=st.sampled_from([1, 4]), odd=st.booleans())
def test_each_layer_keeps_the_gradient_that_arrives(seed: int, layers: int, odd: bool) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(layers, 3, 3)).astype(np.float32)
    inputs = rng.normal(size=(2, 3)).astype(np.float32)
    if odd:
        inputs[0, 0] = np.nan
    cells = jax.new_ref(jnp.full((layers, 2, 3), 7.0))
    with jax.default_matmul_precision("float32"):
        mapped(layers)(weights, inputs, cells)
    for x, kept in zip(inputs.astype(np.float64), cells[...].swapaxes(0, 1), strict=True):
        outs = [x]
        for w in weights.astype(np.float64):
            outs.append(np.tanh(outs[-1] @ w))
        slope = np.ones(3)
        for layer in range(layers - 1, -1, -1):
            slope = weights[layer] @ (slope * (1 - outs[layer + 1] ** 2))
            assert_same(kept[layer], slope, rtol=1e-2, atol=1e-3)


@cache
def mapped(layers: int) -> Any:
    return jax.jit(jax.vmap(jax.grad(NAMES()["deep"]), (None, 0, 1)))


@attack(rows=st.lists(st.integers(0, 3), max_size=6), seed=seeds)
def test_addupdate_adds_repeated_rows(rows: list[int], seed: int) -> None:
    start, added = (np.random.default_rng(seed).integers(-9, 10, n).astype(np.float32) for n in (4, len(rows)))
    at, wanted = np.array(rows, int), start.copy()
    np.add.at(wanted, at, added)
    eager, jitted = jax.new_ref(jnp.asarray(start)), jax.new_ref(jnp.asarray(start))
    jax.ref.addupdate(eager, jnp.asarray(at), jnp.asarray(added))
    jax.jit(jax.ref.addupdate)(jitted, jnp.asarray(at), jnp.asarray(added))
    assert_same(eager[...], wanted)
    assert_same(jitted[...], wanted)


@attack(seed=seeds, size=st.sampled_from([1, 2, 7]), kind=st.sampled_from(["float32", "int8", "bool"]))
def test_a_shuffle_keeps_the_cards(seed: int, size: int, kind: str) -> None:
    cards = np.random.default_rng(seed).integers(-3, 4, size).astype(kind)
    found = np.asarray(compiled("shuffle")(jax.random.key(seed), cards))
    assert found.dtype == kind and sorted(found.tolist()) == sorted(cards.tolist())


def test_a_shuffle_finds_each_order_as_often() -> None:
    keys = jax.random.split(jax.random.key(0), 6000)
    found = jax.jit(jax.vmap(NAMES()["shuffle"], (0, None)))(keys, jnp.arange(3))
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 6 and abs(counts - 1000).max() < 150
