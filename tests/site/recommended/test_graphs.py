"""Messages along the edges of made-up graphs, and graphs that share a padded batch, against loops over edges."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import examples, program, search
from tests.site.strategies import arrays

PAGE = "train/graphs.md"
NODES, EDGES = 4, 6
Array = np.ndarray[Any, Any]


@cache
def names() -> dict[str, Any]:
    """The page's functions, those on arrays of one shape compiled."""
    found = program(PAGE, "Graph", "mean", "largest", "network", "init", "batch", "edge_softmax")
    found["params"] = found["init"](jax.random.key(0), (2, 3, 2))
    mean, softmax = found["mean"], found["edge_softmax"]
    return {
        **found,
        "mean": jax.jit(lambda values, receivers: mean(values, receivers, NODES)),
        "slope": jax.jit(jax.grad(lambda values, receivers: (mean(values, receivers, NODES) ** 2).sum())),
        "edge_softmax": jax.jit(lambda scores, receivers: softmax(scores, receivers, NODES)),
        "network": jax.jit(found["network"]),
    }


ends = st.lists(st.integers(0, NODES - 1), min_size=EDGES, max_size=EDGES).map(np.array)
seeds = st.integers(0, 2**32 - 1)


@examples
def test_a_node_gets_the_mean_of_what_arrives(count: int) -> None:
    def holds(values: Array, receivers: Array) -> None:
        expected = np.zeros((NODES, 2))
        for node in set(receivers.tolist()):
            expected[node] = values[receivers == node].astype(float).mean(axis=0)
        np.testing.assert_allclose(names()["mean"](values, receivers), expected, rtol=1e-5, atol=1e-3)
        assert np.isfinite(names()["slope"](values, receivers)).all()

    values = arrays((EDGES, 2), "float32", odd=False).filter(lambda a: bool(np.abs(a).max() < 1000))
    search(count, holds, values=values, receivers=ends)


@examples
def test_the_weights_of_the_edges_into_a_node_are_their_softmax(count: int) -> None:
    def holds(scores: Array, receivers: Array) -> None:
        weights = np.asarray(names()["edge_softmax"](scores, receivers))
        for node in set(receivers.tolist()):
            own = scores[receivers == node].astype(float)
            expected = np.exp(own - own.max()) / np.exp(own - own.max()).sum()
            np.testing.assert_allclose(weights[receivers == node], expected, rtol=1e-4, atol=1e-6)

    scores = arrays((EDGES,), "float32", odd=False).filter(lambda a: bool(np.abs(a).max() < 1e4))
    search(count, holds, scores=scores, receivers=ends)


narrow: st.SearchStrategy[Any] = st.sampled_from(["bfloat16", "float16", "uint8", "int8", "bool"])


@examples
def test_a_mean_of_narrow_messages_is_one_of_wide_ones(count: int) -> None:
    def holds(seed: int, kind: str, shape: tuple[int, ...]) -> None:
        rng = np.random.default_rng(seed)
        values = np.asarray(rng.integers(0, 2 if kind == "bool" else 100, (500, *shape))).astype(jnp.dtype(kind))
        receivers = rng.integers(0, 2, 500)
        found = names()["mean"](values, receivers)
        expected = [values[receivers == node].astype(float).mean(axis=0) for node in range(2)]
        np.testing.assert_allclose(found, [*expected, *np.zeros((2, *shape))], rtol=1e-5, atol=1e-5)

    search(count, holds, seed=seeds, kind=narrow, shape=st.sampled_from([(), (2,), (2, 3)]))


@examples
def test_the_largest_message_is_that_of_a_loop(count: int) -> None:
    def holds(values: Array, receivers: Array, one: bool) -> None:
        values = values[:, 0] if one else values
        expected = np.zeros((NODES, *values.shape[1:]))
        for node in set(receivers.tolist()):
            expected[node] = values[receivers == node].max(axis=0)
        np.testing.assert_array_equal(names()["largest"](jnp.asarray(values), receivers, NODES), expected)

    values = arrays((EDGES, 2), "float32", odd=False)
    search(count, holds, values=values, receivers=ends, one=st.booleans())


@examples
def test_weights_of_narrow_or_masked_scores_add_up(count: int) -> None:
    def holds(seed: int, kind: str, all_equal: bool) -> None:
        rng = np.random.default_rng(seed)
        scores = np.asarray(rng.integers(0, 2 if kind == "bool" else 100, 500)).astype(jnp.dtype(kind))
        scores = np.full_like(scores, scores[0]) if all_equal else scores
        receivers = rng.integers(0, 3, 500)
        if kind in ("bfloat16", "float16"):
            scores[(receivers == 1) & ((rng.random(500) < 0.5) | all_equal)] = -np.inf
        weights = np.asarray(names()["edge_softmax"](scores, receivers))
        for node in range(3):
            own = scores[receivers == node].astype(float)
            expected = np.zeros(own.shape)
            if np.isfinite(own).any():
                expected = np.exp(own - own.max()) / np.exp(own - own.max()).sum()
            np.testing.assert_allclose(weights[receivers == node], expected, rtol=1e-4, atol=1e-6)

    search(count, holds, seed=seeds, kind=narrow, all_equal=st.booleans())


def by_loops(params: list[dict[str, Array]], nodes: Array, senders: Array, receivers: Array) -> Array:
    """Scores of each node in float64, one node after the other."""
    x = nodes.astype(float)
    for at, weights in enumerate(params):
        own, received = (np.asarray(weights[name], float) for name in ("own", "received"))
        x = np.maximum(x, 0) if at else x
        arrived = [x[senders[receivers == node]] for node in range(len(x))]
        x = x @ own + np.array([a.mean(axis=0) if len(a) else np.zeros(x.shape[1]) for a in arrived]) @ received
    return x


@examples
def test_a_graph_in_a_batch_gets_what_loops_give_it_alone(count: int) -> None:
    def holds(sizes: list[tuple[int, int]], seed: int) -> None:
        rng = np.random.default_rng(seed)
        graphs = [
            names()["Graph"](rng.normal(size=(nodes, 2)).astype(np.float32), *rng.integers(0, nodes, (2, edges)))
            for nodes, edges in sizes
        ]
        together, owner = names()["batch"](graphs, 20, 24)
        assert together.nodes.shape == (20, 2) and together.senders.shape == together.receivers.shape == (24,)
        scores = np.asarray(names()["network"](names()["params"], together))
        for number, graph in enumerate(graphs):
            np.testing.assert_allclose(
                scores[owner == number], by_loops(names()["params"], *graph), rtol=1e-3, atol=1e-4
            )
        assert (owner == len(graphs)).sum() == 20 - sum(nodes for nodes, _ in sizes) >= 1

    sizes = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 8)), min_size=1, max_size=3)
    search(count, holds, sizes=sizes, seed=seeds)


def test_edges_of_nodes_that_are_not_there_are_refused() -> None:
    nodes = np.zeros((3, 2), np.float32)
    for ends in ([1, 2, 3], [0, 1, -1]):
        graph = names()["Graph"](nodes, np.array(ends), np.array([0, 1, 2]))
        with pytest.raises(ValueError, match="but there are 3"):
            names()["batch"]([graph], 5, 8)


def test_ends_that_do_not_pair_are_refused() -> None:
    nodes = np.zeros((3, 2), np.float32)  # one edge too few here, one too many there: as many of each in all
    few = names()["Graph"](nodes, np.array([0, 1]), np.array([0, 1, 2]))
    many = names()["Graph"](nodes, np.array([0, 1, 2]), np.array([0, 1]))
    with pytest.raises(ValueError, match="same shape"):
        names()["batch"]([few, many], 8, 8)
