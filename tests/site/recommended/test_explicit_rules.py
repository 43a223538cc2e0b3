"""Attacks on the page about types that say where devices communicate, against NumPy in float64, on meshes of any shape."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import attack, examples, program, search
from tests.site.recommended.devices import mesh
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same

PAGE = "scale/explicit-rules.md"
Array = np.ndarray[Any, Any]
MESHES = st.sampled_from([(4, 2), (2, 4), (8, 1), (1, 1)])
SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def eight_devices() -> None:
    """Skip where conftest.py could not make them, which it can on a CPU only."""
    if jax.device_count() != 8:
        pytest.skip("needs eight devices")


def named(*wanted: str) -> dict[str, Any]:
    """Names of the page, none of which needs a mesh to be defined."""
    return program(PAGE, *wanted)


def decay_of_squares(params: Any) -> Any:
    return 0.1 * sum(jnp.square(a).sum() for a in params.values())


def decay_of_all(params: Any) -> Any:
    return 0.1 * sum(a.sum() for a in params.values())


DECAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "none": (lambda _: 0.0, np.zeros_like),
    "squares": (decay_of_squares, lambda a: 0.2 * a),
    "all": (decay_of_all, lambda a: np.full_like(a, 0.1)),
}


@cache
def stepped(way: str, decay: str, plain: bool = True) -> Callable[..., Any]:
    """Accumulate gradients as the page does, of a loss with this decay."""
    found = named("accumulate", "every_time", "all_there", "loss")

    def total(params: Any, x: Any, y: Any) -> Any:
        return found["loss"](params, x, y) + DECAYS[decay][0](params)

    loss = found["all_there"](total) if plain else total
    return jax.jit(lambda *given: found[way](loss, *given))


def expected(params: dict[str, Array], xs: Array, ys: Array, decay: str) -> dict[str, Array]:
    """The sum of the gradients over the batches, in float64."""
    totals = {name: np.zeros(a.shape) for name, a in params.items()}
    up, down = (params[name].astype(float) for name in ("up", "down"))
    for x, y in zip(xs.astype(float), ys.astype(float), strict=True):
        hidden = np.tanh(x @ up)
        off = 2 * (hidden @ down - y) / y.size
        totals["up"] += x.T @ (off @ down.T * (1 - hidden**2)) + DECAYS[decay][1](up)
        totals["down"] += hidden.T @ off + DECAYS[decay][1](down)
    return totals


def accumulated(
    seed: int, shape: tuple[int, ...], batches: int, way: str, decay: str, plain: bool = True
) -> tuple[Any, dict[str, Array]]:
    """The gradient that the page's program gives, and the one expected."""
    rng = np.random.default_rng(seed)
    sizes = {"up": (8, 16), "down": (16, 8)}
    params = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    xs, ys = (rng.normal(size=(batches, 8, 8)).astype(np.float32) for _ in range(2))
    with jax.set_mesh(mesh(*shape)):
        placed = jax.device_put(params, named("specs")["specs"]), *jax.device_put((xs, ys), P(None, "data"))
        return stepped(way, decay, plain)(*placed), expected(params, xs, ys, decay)


@examples
def test_gradients_add_up_to_those_of_one_device(count: int) -> None:
    def holds(seed: int, shape: tuple[int, ...], batches: int, way: str, decay: str) -> None:
        found, wanted = accumulated(seed, shape, batches, way, decay)
        for name, part in wanted.items():
            np.testing.assert_allclose(found[name], part, atol=1e-4)
            spec = named("specs")["specs"][name]
            assert jax.typeof(found[name]).sharding.spec == spec  # an update needs no communication

    ways = st.sampled_from(["accumulate", "every_time"])
    search(
        count,
        holds,
        seed=SEEDS,
        shape=MESHES,
        batches=st.sampled_from([1, 3]),
        way=ways,
        decay=st.sampled_from([*DECAYS]),
    )


def test_the_decay_that_the_page_warns_of_is_found() -> None:
    found, wanted = accumulated(0, (4, 2), 3, "accumulate", "squares", plain=False)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(found["up"], wanted["up"], atol=1e-4)


@cache
def delayed(shape: tuple[int, ...], late: bool) -> Callable[..., Any]:
    """Return the sum of two layers, added up before the devices exchange anything or after, compiled for a mesh."""
    out = P("data", unreduced={"model"}) if late else P("data")
    return jax.jit(lambda *given: named("layers")["layers"](out, *given))


@attack(
    seed=SEEDS,
    a=arrays((8, 8), odd=False),
    shape=MESHES,
    late=st.booleans(),
)
def test_two_layers_are_added_before_or_after_the_exchange(
    seed: int, a: Array, shape: tuple[int, ...], late: bool
) -> None:
    v, w = np.random.default_rng(seed).normal(size=(2, 8, 3)).astype(np.float32)
    with jax.set_mesh(mesh(*shape)):
        placed = jax.device_put(a, P("data", "model")), *jax.device_put((v, w), P("model"))
        found = delayed(shape, late)(*placed)
        assert str(jax.typeof(found)) == "float32[8@data,3]"
    wide = a.astype(float)
    np.testing.assert_allclose(found, wide @ v + np.sin(wide) @ w, atol=1e-3)


LINEAR: dict[str, Callable[[Any, Any], Any]] = {
    "added": lambda u, _: u + u,
    "of both": lambda u, v: u + v + u,
}


@cache
def combined(shape: tuple[int, ...], name: str) -> Callable[..., Any]:
    """Return a sum of partial sums, compiled for a mesh."""
    parts = P("data", unreduced={"model"})

    def both(a: Any, v: Any, w: Any) -> Any:
        products = (named("product")["product"](a, part, parts) for part in (v, w))
        return jax.reshard(LINEAR[name](*products), P("data"))

    return jax.jit(both)


@attack(
    a=arrays((8, 8), st.sampled_from([np.dtype(name) for name in ("float32", "int32")]), odd=False),
    v=arrays((8, 3), odd=False),
    w=arrays((8, 3), odd=False),
    shape=MESHES,
    name=st.sampled_from([*LINEAR]),
)
def test_partial_sums_may_be_added(a: Array, v: Array, w: Array, shape: tuple[int, ...], name: str) -> None:
    v, w = v.astype(a.dtype), w.astype(a.dtype)
    with jax.set_mesh(mesh(*shape)):
        placed = jax.device_put(a, P("data", "model")), *jax.device_put((v, w), P("model"))
        found = combined(shape, name)(*placed)
    assert_same(found, LINEAR[name](a.astype(float) @ v, a.astype(float) @ w), atol=1e-2)


OUTS = st.sampled_from([P(), P("data"), P(None, "data"), P("model"), P("data", "model"), P("data", None, "model")])


@attack(
    tokens=arrays((8, 8, 8), odd=False),
    weight=arrays((8, 8), odd=False),
    out=OUTS,
    shape=st.sampled_from([(4, 2), (1, 1)]),
)
def test_each_out_sharding_gives_the_same_numbers(
    tokens: Array, weight: Array, out: Any, shape: tuple[int, ...]
) -> None:
    ids = np.abs(weight[0]).astype(int) % 8
    with jax.set_mesh(mesh(*shape)):
        given = jax.device_put(tokens, P("data", None, "model")), jax.device_put(weight, P("model"))
        refused = program(
            PAGE, "refused", tokens=given[0], weight=given[1], x=jax.device_put(tokens[:2].reshape(8, 16), P("data")),
            table=given[0], ids=jax.device_put(ids, P("data")), normal=None,
        )["refused"]  # fmt: skip
        found = {name: refused[name](out_sharding=out) for name in ("einsum", "gather")}
        for halves in P(), P(None, "data"):
            assert_same(refused["reshape"](out_sharding=halves), tokens[:2].reshape(2, 4, 16), 0, 0)
        assert all(jax.typeof(a).sharding.spec.partitions[: len(out)] == tuple(out) for a in found.values())
    assert_same(found["einsum"], np.einsum("btd,df->btf", tokens.astype(float), weight), atol=1e-2)
    assert_same(found["gather"], tokens[ids], 0, 0)


@attack(a=arrays((8, 8), odd=False), w=arrays((8, 4), odd=False), shape=MESHES)
def test_what_is_not_asked_gives_the_numbers_of_one_device(a: Array, w: Array, shape: tuple[int, ...]) -> None:
    with jax.set_mesh(mesh(*shape)):
        placed = jax.device_put(a, P("data", "model")), jax.device_put(w, P())
        for function in named("quiet")["quiet"].values():
            assert_same(function(*placed), function(a, w), atol=1e-2)
        totals = named("totals")["totals"](jax.device_put(a, P("data")))
        assert jax.typeof(totals).sharding.spec == P("data", None)
    assert_same(totals, np.cumsum(a, axis=0), atol=1e-2)


@attack(x=arrays((8, 16), odd=False), bias=arrays((4,), odd=False), seed=SEEDS)
def test_the_gradient_of_a_marked_bias_is_that_of_the_bias(x: Array, bias: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    params = {"up": rng.normal(size=(16, 32)).astype(np.float32), "down": rng.normal(size=(32, 4)).astype(np.float32)}
    found = biased()
    with jax.set_mesh(mesh(4, 2)):
        placed = jax.device_put(params, named("specs")["specs"]), jax.device_put(x, P("data"))
        marked = jax.device_put(bias, P(reduced={"data"}))
        slope = found(marked, *placed)
        assert str(jax.typeof(slope)) == "float32[4]"
    out = np.tanh(x.astype(float) @ params["up"]) @ params["down"] + bias
    np.testing.assert_allclose(slope, 2 * out.sum(axis=0) / out.size, atol=1e-2)


@cache
def biased() -> Callable[..., Any]:
    """Return the gradient by the bias of a solution, with a target of zero."""

    def slope(bias: Any, params: Any, x: Any) -> Any:
        loss = program(PAGE, "with_bias", params=params, x=x, y=0.0)["with_bias"]
        return jax.reshard(jax.grad(loss)(bias), P())

    return jax.jit(slope)


@pytest.mark.parametrize("loop", ["scan", "while_loop"])
def test_a_loop_that_adds_partial_sums_from_outside_is_right_only_as_stated(loop: str) -> None:
    shows(f"{PAGE}#unreduced", "if it adds a partial sum made outside the loop. On jax 0.10.2, so is a `scan`")
    loops: dict[str, Callable[[Any], Any]] = {
        "scan": lambda u: jax.lax.scan(lambda c, _: (c + u, None), u, None, 2)[0],
        "while_loop": lambda u: jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + u), (0, u))[1],
    }
    a, w = np.ones((8, 8), np.float32), np.ones((8, 4), np.float32)

    def tripled(a: Any, w: Any) -> Any:
        parts = named("product")["product"](a, w, P("data", unreduced={"model"}))
        return jax.reshard(loops[loop](parts), P("data"))

    with jax.set_mesh(mesh(4, 2)):
        found = jax.jit(tripled)(jax.device_put(a, P("data", "model")), jax.device_put(w, P("model")))
    right = loop == "scan" and jax.__version_info__ >= (0, 12)
    assert bool((np.asarray(found) == 3 * a @ w).all()) == right
